"""Batching rules of views: the same view of the value, keeping the hidden leading dimensions."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from rushlight.core.dispatch_key import DispatchKey
from rushlight.core.dtype import dtype
from rushlight.core.strides import infer_size, wrap_dim, wrap_dims
from rushlight.core.tensor import Tensor
from rushlight.ops.batching.kernel import first_example, rule, rules
from rushlight.ops.batching.layout import all_levels, aten, batch_sizes, levels_of, make_batched, spread, value_of
from rushlight.ops.dispatcher import Kernel, OpOverload
from rushlight.ops.registry import aten as operator


def _value_and_levels(self: Tensor) -> tuple[Tensor, tuple, int]:
    levels = levels_of(self)
    return value_of(self), levels, len(levels)


@rule("view")
def _view_rule(self: Tensor, size: Sequence[int]) -> Tensor:
    value, levels, count = _value_and_levels(self)
    size = infer_size(tuple(size), self.numel())
    return make_batched(aten.view.default(value, [*value.shape[:count], *size]), levels)


@rule("permute")
def _permute_rule(self: Tensor, dims: Sequence[int]) -> Tensor:
    value, levels, count = _value_and_levels(self)
    if len(dims) != self.dim():
        return first_example(aten.permute.default, [self, dims])
    order = [count + dim for dim in wrap_dims(dims, self.dim())]
    return make_batched(aten.permute.default(value, [*range(count), *order]), levels)


@rule("expand")
def _expand_rule(self: Tensor, size: Sequence[int], *, implicit: bool = False) -> Tensor:
    value, levels, count = _value_and_levels(self)
    if len(size) < self.dim():
        return first_example(aten.expand.default, [self, size, implicit])
    batch = list(value.shape[:count])
    missing = len(size) - self.dim()
    for _ in range(missing):
        value = aten.unsqueeze.default(value, count)
    return make_batched(aten.expand.default(value, [*batch, *size]), levels)


@rule("unsqueeze")
def _unsqueeze_rule(self: Tensor, dim: int) -> Tensor:
    value, levels, count = _value_and_levels(self)
    return make_batched(aten.unsqueeze.default(value, count + wrap_dim(dim, self.dim() + 1)), levels)


@rule("squeeze.dims")
def _squeeze_rule(self: Tensor, dim: Sequence[int]) -> Tensor:
    value, levels, count = _value_and_levels(self)
    dims = [count + one for one in wrap_dims(dim, self.dim())] if self.dim() else []
    return make_batched(aten.squeeze.dims(value, dims), levels)


def _make_rule_along(op: OpOverload) -> Callable:
    """Return the rule of a view along one dimension, which an example must have."""

    def run(*args: object, **kwargs: object) -> Tensor:
        self, dim, *rest = op.normalize(args, kwargs)
        value, levels, count = _value_and_levels(self)
        if not self.dim():
            return first_example(op, [self, dim, *rest])
        if op._opname == "select" and not -self.size(dim) <= rest[0] < self.size(dim):
            return first_example(op, [self, dim, *rest])
        return make_batched(op(value, count + wrap_dim(dim, self.dim()), *rest), levels)

    return run


rules(["select.int", "slice.Tensor"], _make_rule_along)


@rule("as_strided")
def _as_strided_rule(
    self: Tensor, size: Sequence[int], stride: Sequence[int], storage_offset: int | None = None
) -> Tensor:
    value, levels, count = _value_and_levels(self)
    made = aten.as_strided.default(
        value, [*value.shape[:count], *size], [*value.stride()[:count], *stride], storage_offset
    )
    return make_batched(made, levels)


@rule("view.dtype")
def _view_dtype_rule(self: Tensor, dtype: dtype) -> Tensor:
    value, levels, _ = _value_and_levels(self)
    if not self.dim() and dtype.itemsize != self.dtype.itemsize:
        return first_example(aten.view.dtype, [self, dtype])
    return make_batched(aten.view.dtype(value, dtype), levels)


def _make_scatter_kernel(op: OpOverload, below: int) -> Callable:
    """Return the kernel of an operator that replaces a view of a copy of `self` by `src`: the copy gets all levels of both."""

    def run(self: Tensor, src: Tensor, *args: object, **kwargs: object) -> Tensor:
        levels = all_levels(self, src)
        if levels_of(self) != levels:
            self = make_batched(spread(self, levels, batch_sizes(levels, self, src)), levels)
        return op.kernels[DispatchKey.CompositeImplicitAutograd].bind(op, below)(self, src, *args, **kwargs)

    return run


for _name in ("select_scatter", "slice_scatter", "diagonal_scatter", "as_strided_scatter"):
    operator(_name).register(DispatchKey.Batched, Kernel(_make_scatter_kernel, linked=True))
