"""Kernels for storage-only dtypes: 8-bit floats, `complex32`, and bit strings.

Such tensors carry the key Narrow, above all others. Its kernel passes operators that only move or cast elements, computes some
others in a wider dtype and casts the result back, and rejects the rest with torch's error.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from rushlight.core.dispatch_key import DispatchKey
from rushlight.core.dtype import (
    BITS_TYPES,
    FLOAT8_TYPES,
    NARROW_TYPES,
    complex32,
    complex64,
    dtype,
    float4_e2m1fn_x2,
    float16,
    float32,
    float64,
    promote_types,
)
from rushlight.core.tensor import Tensor
from rushlight.ops.dispatcher import Kernel, OpOverload, register_fallback
from rushlight.ops.meta.checks import not_implemented
from rushlight.ops.registry import aten

# Operators that move elements unchanged. `copy_` and `_to_copy` also cast them.
_MOVING = frozenset((
    "alias", "cat", "clone", "copy_", "_to_copy", "detach", "detach_", "empty_like", "equal", "fill_", "index", "index_put_",
    "_index_put_impl_", "index_select", "lift_fresh", "_local_scalar_dense", "resize_", "set_", "where", "constant_pad_nd",
    "zero_", "roll", "diag_embed", "repeat", "resize_as_", "_reshape_alias", "new_empty", "new_empty_strided", "record_stream",
))  # fmt: skip
_OF_FLOAT8 = frozenset(("abs", "addmm", "all", "any", "bmm", "eq", "isinf", "isnan", "mm", "mul", "ne"))
_PROMOTING = frozenset(("add", "sub", "mul", "div", "pow", "eq", "ne", "lt", "le", "gt", "ge", "maximum", "minimum"))
_ALLOWED_ON_BITS = frozenset(("alias", "detach", "lift_fresh", "set_", "resize_"))
_WIDE = frozenset((float32, float64, complex64))


def _kernel(op: OpOverload, below: int) -> Callable:
    chain = op.resolve(below)

    def narrow(*args: Any, **kwargs: Any) -> Any:
        kinds = {tensor._impl.dtype for tensor in _tensors((args, tuple(kwargs.values())))}.intersection(_ALL)
        moves = op._opname in _MOVING and not (op._opname == "where" and complex32 in kinds)
        if op.is_view or (moves and kinds.isdisjoint(_UNKNOWN)):
            return chain(*args, **kwargs)
        kind = next(iter(kinds), None)
        computed = op._opname in _OF_FLOAT8 or (op._opname in ("sum", "prod") and kwargs.get("dtype") is not None)
        if kind is complex32 or (computed and kind in FLOAT8_TYPES):
            return _in_wider(op, kind, args, kwargs)
        if op._opname in _ALLOWED_ON_BITS or kind is None:
            return chain(*args, **kwargs)
        name = op._opname.rstrip("_")
        if name in _PROMOTING and all(isinstance(value, Tensor) for value in args[:2]):
            promote_types(args[0].dtype, args[1].dtype)
        raise not_implemented(_NAMES.get(name, f"{name}_cpu"), kind)

    return narrow


_ALL = frozenset((*NARROW_TYPES, *BITS_TYPES))
_UNKNOWN = frozenset((float4_e2m1fn_x2, *BITS_TYPES))
_NAMES = {"add": "add_stub", "sub": "add_stub", "_local_scalar_dense": "_local_scalar_dense_cpu",
          "copy": "copy_", "_to_copy": "copy_", "isinf": "isinf", "fill": "fill_cpu"}  # fmt: skip


def _in_wider(op: OpOverload, kind: dtype, args: tuple, kwargs: dict) -> Any:
    """Compute in float32 or complex64, and cast results of those dtypes back to `kind`, or to its parts' dtype."""
    wide = complex64 if kind is complex32 else float32
    others = [tensor for tensor in _tensors((args, tuple(kwargs.values()))) if tensor._impl.dtype in _WIDE]
    if kind is not complex32 and others:
        raise RuntimeError(
            f"Promotion for Float8 Types is not supported, attempted to promote {kind.scalar_name} and "
            f"{others[0].dtype.scalar_name}"
        )
    result = op(*_widen_narrow(args, wide), **{name: _widen_narrow(value, wide) for name, value in kwargs.items()})
    if op.writes_self and args[0]._impl.dtype is kind:
        return aten("copy_")(args[0], result)
    stays_wide = kwargs.get("dtype") is not None or any(tensor.dim() for tensor in others)
    return result if stays_wide else _convert_results(result, {wide: kind, **({float32: float16} if kind is complex32 else {})})


def _widen_narrow(value: Any, wide: dtype) -> Any:
    if isinstance(value, Tensor):
        return aten("_to_copy")(value, dtype=wide) if value._impl.dtype in NARROW_TYPES else value
    return type(value)([_widen_narrow(item, wide) for item in value]) if type(value) in (list, tuple) else value


def _convert_results(value: Any, kinds: dict[dtype, dtype]) -> Any:
    if isinstance(value, Tensor):
        kind = kinds.get(value._impl.dtype)
        return value if kind is None else aten("_to_copy")(value, dtype=kind)
    return tuple([_convert_results(item, kinds) for item in value]) if type(value) is tuple else value


def _tensors(values: Any) -> list[Tensor]:
    if isinstance(values, Tensor):
        return [values]
    return [tensor for value in values for tensor in _tensors(value)] if isinstance(values, list | tuple) else []


register_fallback(DispatchKey.Narrow, Kernel(_kernel, linked=True))
