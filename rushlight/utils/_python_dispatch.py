"""`torch.utils._python_dispatch`: modes that see every operator."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from rushlight.core.tensor import Tensor
from rushlight.core.thread_state import state
from rushlight.ops.dispatcher import OpOverload
from rushlight.ops.modes import DispatchMode, SuspendModes


class TorchDispatchMode(DispatchMode):
    """Base of modes. Subclasses define `__torch_dispatch__(self, func, types, args=(), kwargs=None)`, which gets each operator
    (`torch.ops.aten.add.Tensor`) that is called under `with mode:`; while it runs, the mode itself is not active."""

    as_called = False

    @classmethod
    def push(cls, *args: object, **kwargs: object) -> TorchDispatchMode:
        """Return a mode of this class; deprecated, as in torch."""
        warnings.warn("`Mode.push()` is no longer necessary and can be replaced with just `with Mode()`", stacklevel=2)
        return cls(*args, **kwargs)


class BaseTorchDispatchMode(TorchDispatchMode):
    """A mode that changes nothing."""

    def __torch_dispatch__(self, func: Callable, types: tuple, args: tuple = (), kwargs: dict | None = None) -> object:
        return func(*args, **(kwargs or {}))


def _get_current_dispatch_mode() -> DispatchMode | None:
    """Return the innermost mode of this thread; None where there is none."""
    return state.modes[-1] if state.modes else None


def _get_current_dispatch_mode_stack() -> list[DispatchMode]:
    """Return the modes of this thread, outermost first."""
    return list(state.modes)


@contextmanager
def _disable_current_modes() -> Iterator[list[DispatchMode]]:
    """Return a context without modes; yields the modes that are active outside."""
    before = list(state.modes)
    with SuspendModes():
        yield before


def is_traceable_wrapper_subclass(t: object) -> bool:
    """Return whether a value is a tensor subclass that wraps others and lists them by `__tensor_flatten__`."""
    kind = type(t)
    is_wrapper = isinstance(t, Tensor) and kind is not Tensor
    return is_wrapper and hasattr(kind, "__tensor_flatten__") and hasattr(kind, "__tensor_unflatten__")


def is_traceable_wrapper_subclass_type(t: type) -> bool:
    """Return whether a class is a tensor subclass that wraps others and lists them."""
    return issubclass(t, Tensor) and t is not Tensor and hasattr(t, "__tensor_flatten__") and hasattr(t, "__tensor_unflatten__")


def return_and_correct_aliasing(func: OpOverload, args: tuple, kwargs: dict, out: Any) -> Any:
    """Return the result that a handler must return for `func`: written arguments themselves, else `out`.

    TypeError if a written argument is no tensor.
    """
    schema = func._schema
    written = [result.is_write for result in schema.returns]
    if not any(written):
        return out
    named = {argument.name: value for argument, value in zip(schema.arguments, args, strict=False)} | (kwargs or {})
    targets = [named[argument.name] for argument in schema.arguments if argument.is_write and argument.name in named]
    if not all(isinstance(target, Tensor) for target in targets):
        raise TypeError(f"{func} writes to its arguments, which must be tensors")
    if len(schema.returns) == 1:
        return targets[0]
    rest = iter(targets)
    return tuple(next(rest) if writes else value for writes, value in zip(written, out, strict=True))


def transform_subclass(
    t: Any, callback: Callable[[str, Tensor], Tensor], outer_size: Any = None, outer_stride: Any = None
) -> Any:
    """Return a tensor of the class of `t`, with inner tensors replaced by `callback(name, inner)`."""
    names, context = t.__tensor_flatten__()
    inner = {name: callback(name, getattr(t, name)) for name in names}
    sizes = t.size() if outer_size is None else outer_size
    strides = t.stride() if outer_stride is None else outer_stride
    return type(t).__tensor_unflatten__(inner, context, sizes, strides)
