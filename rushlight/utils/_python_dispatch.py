"""`torch.utils._python_dispatch`: modes that see every operator."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from rushlight.core.tensor import Tensor
from rushlight.core.thread_state import state
from rushlight.ops.modes import DispatchMode, SuspendModes


class TorchDispatchMode(DispatchMode):
    """Base of modes. Subclasses define `__torch_dispatch__(self, func, types, args=(), kwargs=None)`, which gets each operator
    (`torch.ops.aten.add.Tensor`) that is called under `with mode:`; while it runs, the mode itself is not active."""


def _get_current_dispatch_mode() -> DispatchMode | None:
    """The innermost mode of this thread; None where there is none."""
    return state.modes[-1] if state.modes else None


def _get_current_dispatch_mode_stack() -> list[DispatchMode]:
    """The modes of this thread, outermost first."""
    return list(state.modes)


@contextmanager
def _disable_current_modes() -> Iterator[list[DispatchMode]]:
    """A context without modes; the ones that are active outside."""
    before = list(state.modes)
    with SuspendModes():
        yield before


def is_traceable_wrapper_subclass(t: object) -> bool:
    """Whether a value is a tensor of a class that wraps others and says which by `__tensor_flatten__`."""
    kind = type(t)
    is_wrapper = isinstance(t, Tensor) and kind is not Tensor
    return is_wrapper and hasattr(kind, "__tensor_flatten__") and hasattr(kind, "__tensor_unflatten__")


def is_traceable_wrapper_subclass_type(t: type) -> bool:
    """Whether a class is of tensors that wrap others and say which."""
    return issubclass(t, Tensor) and t is not Tensor and hasattr(t, "__tensor_flatten__") and hasattr(t, "__tensor_unflatten__")
