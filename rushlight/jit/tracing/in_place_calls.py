"""The form in graphs of methods that change a tensor's shape or memory in place: `t_`, `resize_`, `set_`, `detach_`.

In: a method's name and arguments, as a program passes them. Out: a `Call`. These methods are Python functions on Tensor, which
the tracer's key does not see.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable

from rushlight.core.tensor import Tensor
from rushlight.jit.tracing.calls import Call
from rushlight.ops.schema import Type

_TENSOR, _INT, _FORMAT = Type("Tensor"), Type("int"), Type("MemoryFormat", optional=True)
_INTS, _OPTIONAL_INT = Type("int", is_list=True), Type("int", optional=True)


def _transpose(dim0: int, dim1: int) -> Call:
    return Call("aten::transpose_", [(dim0, _INT), (dim1, _INT)])


def _swapaxes(axis0: int, axis1: int) -> Call:
    return _transpose(axis0, axis1)


def _squeeze(dim: int | tuple | None = None) -> Call:
    kind = _INTS if isinstance(dim, list | tuple) else _INT
    return Call("aten::squeeze_", [] if dim is None else [(dim, kind)])


def _unsqueeze(dim: int) -> Call:
    return Call("aten::unsqueeze_", [(dim, _INT)])


def _as_strided(size: tuple, stride: tuple, storage_offset: int | None = None) -> Call:
    return Call("aten::as_strided_", [(size, _INTS), (stride, _INTS), (storage_offset, _OPTIONAL_INT)])


def _resize(*size: object, memory_format: object = None) -> Call:
    listed = size[0] if len(size) == 1 and isinstance(size[0], list | tuple) else size
    return Call("aten::resize_", [(listed, _INTS), (memory_format, _FORMAT)])


def _resize_as(the_template: Tensor, memory_format: object = None) -> Call:
    return Call("aten::resize_as_", [(the_template, _TENSOR), (memory_format, _FORMAT)])


def _set(source: object = None, storage_offset: int = 0, size: tuple | None = None, stride: tuple = ()) -> Call:
    if source is None:
        return Call("aten::set_", [])
    if not isinstance(source, Tensor):
        raise RuntimeError("set_ to a storage can't be traced: pass a tensor, or make the tensor before the trace")
    if size is None:
        return Call("aten::set_", [(source, _TENSOR)])
    return Call("aten::set_", [(source, _TENSOR), (storage_offset, _INT), (size, _INTS), (stride, _INTS)])


_RULES: dict[str, Callable[..., Call]] = {
    "t_": lambda: Call("aten::t_", []),
    "transpose_": _transpose, "swapaxes_": _swapaxes, "swapdims_": _transpose, "squeeze_": _squeeze, "unsqueeze_": _unsqueeze,
    "as_strided_": _as_strided, "resize_": _resize, "resize_as_": _resize_as, "set_": _set,
    "detach_": lambda: Call("aten::detach", []),
}  # fmt: skip
IN_PLACE = tuple(_RULES)


def in_place_call(name: str, self: Tensor, args: tuple, kwargs: dict) -> Call:
    """Return the graph's form of a call of one of the methods `IN_PLACE`. TypeError for arguments that the method does not
    accept."""
    rule = _RULES[name]
    given = inspect.signature(rule).bind(*args, **kwargs)
    made = rule(*given.args, **given.kwargs)
    return Call(made.name, [(self, _TENSOR), *made.arguments])
