"""Transforms of vectors, matrices and shapes."""

from __future__ import annotations

import functools
import math
import operator
from collections.abc import Sequence

from rushlight.core.dtype import finfo
from rushlight.core.size import Size
from rushlight.core.tensor import Tensor
from rushlight.distributions import constraints
from rushlight.distributions.transform_base import Transform
from rushlight.distributions.utils import sum_rightmost, tril_matrix_to_vec, vec_to_tril_matrix
from rushlight.ops.packet import namespaces

aten = namespaces.namespace("aten")


class ReshapeTransform(Transform):
    """The last dimensions from `in_shape` to `out_shape`."""

    bijective = True

    def __init__(self, in_shape: Sequence[int], out_shape: Sequence[int], cache_size: int = 0):
        self.in_shape, self.out_shape = Size(in_shape), Size(out_shape)
        if self.in_shape.numel() != self.out_shape.numel():
            raise ValueError("in_shape, out_shape have different numbers of elements")
        super().__init__(cache_size)

    @constraints.dependent_property
    def domain(self):
        return constraints.independent(constraints.real, len(self.in_shape))

    @constraints.dependent_property
    def codomain(self):
        return constraints.independent(constraints.real, len(self.out_shape))

    def with_cache(self, cache_size: int = 1) -> Transform:
        if self._cache_size == cache_size:
            return self
        return ReshapeTransform(self.in_shape, self.out_shape, cache_size=cache_size)

    def _call(self, x):
        return x.reshape((*x.shape[: x.dim() - len(self.in_shape)], *self.out_shape))

    def _inverse(self, y):
        return y.reshape((*y.shape[: y.dim() - len(self.out_shape)], *self.in_shape))

    def log_abs_det_jacobian(self, x, y):
        return x.new_zeros(x.shape[: x.dim() - len(self.in_shape)])

    def forward_shape(self, shape):
        return _replace_end(shape, self.in_shape, self.out_shape)

    def inverse_shape(self, shape):
        return _replace_end(shape, self.out_shape, self.in_shape)


def _replace_end(shape: Sequence[int], old: Sequence[int], new: Sequence[int]) -> Size:
    if len(shape) < len(old):
        raise ValueError("Too few dimensions on input")
    kept = len(shape) - len(old)
    if tuple(shape[kept:]) != tuple(old):
        raise ValueError(f"Shape mismatch: expected {Size(shape[kept:])} but got {Size(old)}")
    return Size((*shape[:kept], *new))


class SoftmaxTransform(Transform):
    """y = softmax(x) along the last dimension; its inverse, the logarithm, is one of many."""

    domain = constraints.real_vector
    codomain = constraints.simplex

    def __eq__(self, other: object) -> bool:
        return isinstance(other, SoftmaxTransform)

    __hash__ = Transform.__hash__

    def _call(self, x):
        return aten.softmax(x, -1)

    def _inverse(self, y):
        return y.log()

    def forward_shape(self, shape):
        if len(shape) < 1:
            raise ValueError("Too few dimensions on input")
        return shape

    inverse_shape = forward_shape


class StickBreakingTransform(Transform):
    """K - 1 numbers to a point of the simplex in K dimensions: each breaks its share off what is left of a stick."""

    domain = constraints.real_vector
    codomain = constraints.simplex
    bijective = True

    def __eq__(self, other: object) -> bool:
        return isinstance(other, StickBreakingTransform)

    __hash__ = Transform.__hash__

    @staticmethod
    def _offsets(x: Tensor, count: int) -> Tensor:
        """Return log of how many pieces are still to come, which maps x = 0 to equal shares."""
        return aten.arange(count, 0, -1, dtype=x.dtype, device=x.device).log()

    def _call(self, x):
        shares = aten.sigmoid(x - self._offsets(x, x.shape[-1]))
        one = x.new_ones((*x.shape[:-1], 1))
        left = aten.cat([one, (1 - shares).cumprod(-1)], -1)
        return aten.cat([shares, one], -1) * left

    def _inverse(self, y):
        front = y[..., :-1]
        left = (1 - front.cumsum(-1)).clamp(min=finfo(y.dtype).tiny)
        return front.log() - left.log() + self._offsets(y, front.shape[-1])

    def log_abs_det_jacobian(self, x, y):
        moved = x - self._offsets(x, x.shape[-1])
        return (-moved + aten.log_sigmoid(moved) + y[..., :-1].log()).sum(-1)

    def forward_shape(self, shape):
        if len(shape) < 1:
            raise ValueError("Too few dimensions on input")
        return (*shape[:-1], shape[-1] + 1)

    def inverse_shape(self, shape):
        if len(shape) < 1:
            raise ValueError("Too few dimensions on input")
        return (*shape[:-1], shape[-1] - 1)


class LowerCholeskyTransform(Transform):
    """Matrices to lower triangular ones with a positive diagonal: the diagonal's exponential."""

    domain = constraints.independent(constraints.real, 2)
    codomain = constraints.lower_cholesky

    def __eq__(self, other: object) -> bool:
        return isinstance(other, LowerCholeskyTransform)

    __hash__ = Transform.__hash__

    def _call(self, x):
        return x.tril(-1) + x.diagonal(dim1=-2, dim2=-1).exp().diag_embed()

    def _inverse(self, y):
        return y.tril(-1) + y.diagonal(dim1=-2, dim2=-1).log().diag_embed()


class PositiveDefiniteTransform(Transform):
    """Matrices to positive definite ones, by their Cholesky factors."""

    domain = constraints.independent(constraints.real, 2)
    codomain = constraints.positive_definite

    def __eq__(self, other: object) -> bool:
        return isinstance(other, PositiveDefiniteTransform)

    __hash__ = Transform.__hash__

    def _call(self, x):
        factor = LowerCholeskyTransform()(x)
        return factor @ factor.mT

    def _inverse(self, y):
        return LowerCholeskyTransform().inv(aten.linalg_cholesky(y))


class CorrCholeskyTransform(Transform):
    """Vectors of D(D-1)/2 numbers to Cholesky factors (D, D) of correlation matrices, through partial correlations."""

    domain = constraints.real_vector
    codomain = constraints.corr_cholesky
    bijective = True

    def _call(self, x):
        eps = finfo(x.dtype).eps
        partial = vec_to_tril_matrix(x.tanh().clamp(min=-1 + eps, max=1 - eps), diag=-1)
        left = (1 - partial.square()).sqrt().cumprod(-1)
        identity = aten.eye(partial.shape[-1], dtype=x.dtype, device=x.device)
        return (partial + identity) * aten.cat([aten.ones_like(left[..., :1]), left[..., :-1]], -1)

    def _inverse(self, y):
        left = 1 - (y * y).cumsum(-1)
        before = aten.cat([aten.ones_like(left[..., :1]), left[..., :-1]], -1)
        lower = tril_matrix_to_vec(y, diag=-1)
        partial = lower / tril_matrix_to_vec(before, diag=-1).sqrt()
        return (partial.log1p() - (-partial).log1p()) / 2

    def log_abs_det_jacobian(self, x, y, intermediates=None):
        left = 1 - (y * y).cumsum(-1)
        between = tril_matrix_to_vec(left, diag=-2).log().sum(-1) / 2
        slope = -2 * (x + aten.softplus(-2 * x) - math.log(2)).sum(-1)
        return between + slope

    def forward_shape(self, shape):
        if len(shape) < 1:
            raise ValueError("Too few dimensions on input")
        size = round((0.25 + 2 * shape[-1]) ** 0.5 + 0.5)
        if size * (size - 1) // 2 != shape[-1]:
            raise ValueError("Input is not a flattened lower-diagonal number")
        return (*shape[:-1], size, size)

    def inverse_shape(self, shape):
        if len(shape) < 2:
            raise ValueError("Too few dimensions on input")
        if shape[-2] != shape[-1]:
            raise ValueError("Input is not square")
        return (*shape[:-2], shape[-1] * (shape[-1] - 1) // 2)


class _PartsTransform(Transform):
    """Transforms of pieces of a tensor along a dimension."""

    def __init__(self, tseq: Sequence[Transform], dim: int, cache_size: int):
        if not all(isinstance(part, Transform) for part in tseq):
            raise TypeError(f"expected a sequence of transforms, but got {list(tseq)!r}")
        super().__init__(cache_size)
        self.transforms, self.dim = [part.with_cache(cache_size) for part in tseq], dim

    @property
    def bijective(self):
        return all(part.bijective for part in self.transforms)


class CatTransform(_PartsTransform):
    """Transforms of successive pieces of `lengths` along `dim`, concatenated again."""

    def __init__(self, tseq: Sequence[Transform], dim: int = 0, lengths: Sequence[int] | None = None, cache_size: int = 0):
        super().__init__(tseq, dim, cache_size)
        self.lengths = list(lengths) if lengths is not None else [1] * len(self.transforms)

    @property
    def event_dim(self):
        return max(part.event_dim for part in self.transforms)

    @property
    def length(self) -> int:
        return sum(self.lengths)

    @constraints.dependent_property
    def domain(self):
        return constraints.cat([part.domain for part in self.transforms], self.dim, self.lengths)

    @constraints.dependent_property
    def codomain(self):
        return constraints.cat([part.codomain for part in self.transforms], self.dim, self.lengths)

    def with_cache(self, cache_size: int = 1) -> Transform:
        return self if self._cache_size == cache_size else CatTransform(self.transforms, self.dim, self.lengths, cache_size)

    def _pieces(self, value: Tensor) -> list[tuple[Transform, Tensor]]:
        if value.size(self.dim) != self.length:
            raise AssertionError(f"x.size({self.dim}) = {value.size(self.dim)} must equal length {self.length}")
        return list(zip(self.transforms, aten.split_with_sizes(value, self.lengths, self.dim), strict=True))

    def _call(self, x):
        return aten.cat([part(piece) for part, piece in self._pieces(x)], self.dim)

    def _inverse(self, y):
        return aten.cat([part.inv(piece) for part, piece in self._pieces(y)], self.dim)

    def log_abs_det_jacobian(self, x, y):
        terms = []
        for (part, before), (_, after) in zip(self._pieces(x), self._pieces(y), strict=True):
            terms.append(sum_rightmost(part.log_abs_det_jacobian(before, after), self.event_dim - part.event_dim))
        dim = self.dim - x.dim() if self.dim >= 0 else self.dim
        dim += self.event_dim
        return aten.cat(terms, dim) if dim < 0 else functools.reduce(operator.add, terms)


class StackTransform(_PartsTransform):
    """Transforms of the slices along `dim`, stacked again."""

    def __init__(self, tseq: Sequence[Transform], dim: int = 0, cache_size: int = 0):
        super().__init__(tseq, dim, cache_size)

    @constraints.dependent_property
    def domain(self):
        return constraints.stack([part.domain for part in self.transforms], self.dim)

    @constraints.dependent_property
    def codomain(self):
        return constraints.stack([part.codomain for part in self.transforms], self.dim)

    def with_cache(self, cache_size: int = 1) -> Transform:
        return self if self._cache_size == cache_size else StackTransform(self.transforms, self.dim, cache_size)

    def _slices(self, value: Tensor) -> list[tuple[Transform, Tensor]]:
        if value.size(self.dim) != len(self.transforms):
            raise AssertionError(f"x.size({self.dim}) = {value.size(self.dim)} must equal {len(self.transforms)}")
        return list(zip(self.transforms, value.unbind(self.dim), strict=True))

    def _call(self, x):
        return aten.stack([part(piece) for part, piece in self._slices(x)], self.dim)

    def _inverse(self, y):
        return aten.stack([part.inv(piece) for part, piece in self._slices(y)], self.dim)

    def log_abs_det_jacobian(self, x, y):
        pairs = zip(self._slices(x), self._slices(y), strict=True)
        return aten.stack([part.log_abs_det_jacobian(before, after) for (part, before), (_, after) in pairs], self.dim)
