"""The base of low-bit weight tensors: they consist of other tensors, and only change as a whole.

In: a subclass that defines its parts and its own functions. Out: every other function gets dequantized numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar

import numpy as np

from rushlight.core.overrides import DisableTorchFunctionSubclass
from rushlight.core.pytree import tree_map
from rushlight.core.tensor import Tensor
from rushlight.ops.packet import namespaces

aten = namespaces.namespace("aten")
_MAX_PRINTED = 1000  # larger tensors are printed without their elements


class WrappedWeight(Tensor):
    """Base of low-bit weight tensors. Captured graphs hold them as constants.

    Subclasses define `__new__`, `dequantize`, `_parts` and `_replace_content`, and fill two tables. `_functions` maps public
    functions, and `_operators` maps operators that keep the tensor's form, to implementations. `_rebuild` makes a saved tensor
    from its parts and whether it is a parameter.
    """

    __constant_of_graphs__ = True
    _functions: ClassVar[Mapping[Callable, Callable]] = {}
    _operators: ClassVar[Mapping[Any, Callable]] = {}
    _rebuild: ClassVar[Callable[..., Tensor]]

    # Accept the arguments of `__new__`; `Tensor.__init__` accepts only one.
    def __init__(self, *parts: Any, **options: Any) -> None:
        pass

    def dequantize(self) -> Tensor:
        """Return the dequantized numbers, in `dtype`."""
        raise NotImplementedError

    def _parts(self) -> tuple:
        """Return the arguments that make an equal tensor; tensors among them are attributes."""
        raise NotImplementedError

    def _replace_content(self, other: Any) -> None:
        """Replace the content by that of another tensor of the class."""
        raise NotImplementedError

    @property
    def data(self) -> Any:
        """The same tensor, not as a parameter."""
        return type(self)(*self._parts())

    @data.setter
    def data(self, value: Tensor) -> None:
        if type(value) is not type(self):
            given = f"a {type(value).__name__} of {getattr(value, 'dtype', None)}"
            raise RuntimeError(
                f"data: expected another {type(self).__name__}, got {given}: `copy_` rounds numbers to its form, and "
                "`dequantize()` gives a plain tensor"
            )
        Tensor.data.__set__(self, value)
        self._replace_content(value)

    def tolist(self) -> list:
        """Return the dequantized numbers as Python numbers."""
        return self.dequantize().tolist()

    def numpy(self, *, force: bool = False) -> np.ndarray:
        """Return the dequantized numbers in a new array."""
        return self.dequantize().numpy(force=force)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        if copy is False:
            raise ValueError(f"a {type(self).__name__} has no array of its numbers that could be used without a copy")
        numbers = self.numpy()
        return numbers if dtype is None else numbers.astype(dtype, copy=False)

    def share_memory_(self) -> Any:
        """Move its parts to shared memory."""
        for part in self._parts():
            if isinstance(part, Tensor):
                part.share_memory_()
        return self

    def is_shared(self) -> bool:
        """Return whether all its parts are in shared memory."""
        return all(part.is_shared() for part in self._parts() if isinstance(part, Tensor))

    def __setitem__(self, *_: Any) -> None:
        raise RuntimeError(_write_error_text("__setitem__", type(self)))

    @classmethod
    def __torch_function__(cls, func: Callable, types: Sequence[type], args: tuple = (), kwargs: dict | None = None) -> Any:
        handler = cls._functions.get(func)
        if handler is not None:
            return handler(*args, **(kwargs or {}))
        with DisableTorchFunctionSubclass():
            return func(*args, **(kwargs or {}))

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Sequence[type], args: tuple = (), kwargs: dict | None = None) -> Any:
        if args and isinstance(args[0], cls):
            own = cls._operators.get(func)
            if own is not None:
                return own(*args, **(kwargs or {}))
            if func.is_mutable:
                raise RuntimeError(_write_error_text(func._schema.name, cls))
        return func(*tree_map(dense, args), **tree_map(dense, kwargs or {}))

    def __repr__(self, *, tensor_contents: Any = None) -> str:
        form = ", ".join(f"{name}={value!r}" for name, value in vars(self).items() if isinstance(value, str))
        shown = "..." if self.numel() > _MAX_PRINTED else str(self.dequantize()).removeprefix("tensor(").removesuffix(")")
        return f"{type(self).__name__}({shown}, size={tuple(self.shape)}, {form}, dtype={self.dtype})"

    def __reduce_ex__(self, protocol: Any) -> tuple:
        return type(self)._rebuild, (*self._parts(), hasattr(self, "_is_param"))

    def __deepcopy__(self, memo: dict) -> Any:
        if id(self) not in memo:
            memo[id(self)] = rebuilt(type(self), _clone_tensors(self._parts()), hasattr(self, "_is_param"))
        return memo[id(self)]


def rebuilt(kind: type, parts: Sequence[Any], is_parameter: bool) -> Any:
    """Rebuild a saved tensor of a class."""
    made = kind(*parts)
    if is_parameter:
        made._is_param = True
    return made


def _clone_tensors(parts: Sequence[Any]) -> list:
    return [part.clone() if isinstance(part, Tensor) else part for part in parts]


def _write_error_text(name: str, kind: type) -> str:
    return (
        f"{name}: a {kind.__name__} is not written to in parts; `copy_` puts other numbers in its place, and `dequantize()` "
        "gives a plain tensor"
    )


def _same(self: WrappedWeight) -> WrappedWeight:
    return self.data


def _clone(self: WrappedWeight, *, memory_format: Any = None) -> WrappedWeight:
    return type(self)(*_clone_tensors(self._parts()))


def _empty(self: WrappedWeight, *, dtype: Any = None, device: Any = None, **options: Any) -> Tensor:
    if dtype not in (None, self.dtype):
        return aten.empty_like.default(self.dequantize(), dtype=dtype, device=device, **options)
    parts = (aten.empty_like.default(part, device=device) if isinstance(part, Tensor) else part for part in self._parts())
    return type(self)(*parts)


KEEPING: dict[Any, Callable] = {
    aten.empty_like.default: _empty, aten.detach.default: _same, aten.alias.default: _same, aten.clone.default: _clone,
}  # fmt: skip
"""Operators that keep the form of any of these tensors."""


def dense(value: Any) -> Any:
    """Return a plain tensor for a wrapped one; other values unchanged."""
    return value.dequantize() if isinstance(value, WrappedWeight) else value
