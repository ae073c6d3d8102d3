"""Composite products of vectors and matrices, and matrices built of others."""

from __future__ import annotations

import math
from itertools import combinations, combinations_with_replacement

from rushlight.core.dtype import bfloat16, bool_, float16, int64
from rushlight.core.strides import broadcast_shapes, wrap_dim, wrap_dims
from rushlight.core.tensor import Tensor
from rushlight.ops.composite.linalg_common import aten, conjugate
from rushlight.ops.composite.pointwise import with_inplace
from rushlight.ops.construct import tensor
from rushlight.ops.meta.linalg_checks import check_inexact
from rushlight.ops.meta.products import check_bmm
from rushlight.ops.promotion import check_factor, result_type
from rushlight.ops.registry import composite


@composite("linalg_cross(Tensor self, Tensor other, *, int dim=-1) -> Tensor")
def linalg_cross(self, other, *, dim=-1):
    if self.dim() != other.dim():
        raise RuntimeError(
            f"linalg.cross: inputs must have the same number of dimensions, but got {self.dim()} and {other.dim()}."
        )
    if not self.dim():
        raise IndexError(f"Dimension specified as {dim} but tensor has no dimensions (linalg.cross)")
    axis = wrap_dim(dim, self.dim())
    if self.size(axis) != 3 or other.size(axis) != 3:
        raise RuntimeError(
            f"linalg.cross: inputs dimension {dim} must have length 3. Got {self.size(axis)} and {other.size(axis)}"
        )
    if self.dtype is not other.dtype:
        raise RuntimeError(f"linalg.cross: expected scalar type {self.dtype.scalar_name} but found {other.dtype.scalar_name}")
    a, b = aten.unbind.int(self, axis), aten.unbind.int(other, axis)
    parts = [a[(row + 1) % 3] * b[(row + 2) % 3] - a[(row + 2) % 3] * b[(row + 1) % 3] for row in range(3)]
    return aten.stack.default(parts, axis)


@composite("cross(Tensor self, Tensor other, int? dim=None) -> Tensor")
def cross(self, other, dim=None):
    if dim is None:
        shape = broadcast_shapes(self.shape, other.shape)
        dim = next((axis for axis, size in enumerate(shape) if size == 3), None)
        if dim is None:
            raise RuntimeError(f"no dimension of size 3 in input of shape {list(shape)}")
    return linalg_cross(self, other, dim=dim)


@composite("linalg_vecdot(Tensor x, Tensor y, *, int dim=-1) -> Tensor")
def linalg_vecdot(x, y, *, dim=-1):
    check_inexact("linalg.vecdot", x, low_precision=True)
    if x.dtype is not y.dtype:
        raise RuntimeError(f"linalg.vecdot: Expected x and y to have the same dtype, but got {x.dtype} and {y.dtype}")
    return aten.sum.dim_IntList(conjugate(x) * y, [dim])


def _check_chain(name: str, matrices: list[Tensor]) -> list[Tensor]:
    """Return the factors, with vectors at the ends turned into matrices; RuntimeError where they cannot be multiplied."""
    last = len(matrices) - 1
    for position, matrix in enumerate(matrices):
        at_end = position in (0, last)
        if matrix.dim() != 2 and not (at_end and matrix.dim() == 1):
            wanted = "1D or 2D" if at_end else "2D"
            raise RuntimeError(f"{name}(): tensor {position} must be {wanted} but got {matrix.dim()}D")
        if matrix.dtype is not matrices[0].dtype:
            raise RuntimeError(
                f"{name}(): all tensors must have be the same dtype but tensor 0 is {matrices[0].dtype} and tensor {position} "
                f"{matrix.dtype}"
            )
    chain = list(matrices)
    if chain[0].dim() == 1:
        chain[0] = aten.unsqueeze.default(chain[0], 0)
    if chain[-1].dim() == 1:
        chain[-1] = aten.unsqueeze.default(chain[-1], -1)
    for position in range(last):
        if chain[position].size(1) != chain[position + 1].size(0):
            raise RuntimeError(
                f"{name}(): tensors {position} and {position + 1} with shapes {list(matrices[position].shape)} and "
                f"{list(matrices[position + 1].shape)} cannot be multiplied"
            )
    return chain


def _best_splits(sizes: list[int]) -> dict[tuple[int, int], int]:
    """Return for each range (i, j) of the chain the split that needs the fewest multiplications.

    Source: T. H. Cormen et al., "Introduction to Algorithms", matrix-chain multiplication by dynamic programming.
    """
    count = len(sizes) - 1
    costs = {(index, index): 0 for index in range(count)}
    splits = {}
    for length in range(1, count):
        for i in range(count - length):
            j = i + length
            costs[i, j], splits[i, j] = min(
                (costs[i, k] + costs[k + 1, j] + sizes[i] * sizes[k + 1] * sizes[j + 1], k) for k in range(i, j)
            )
    return splits


def _multiply(chain: list[Tensor], splits: dict[tuple[int, int], int], i: int, j: int) -> Tensor:
    if i == j:
        return chain[i]
    split = splits[i, j]
    return aten.mm.default(_multiply(chain, splits, i, split), _multiply(chain, splits, split + 1, j))


@composite("linalg_multi_dot(Tensor[] tensors) -> Tensor")
def linalg_multi_dot(tensors):
    if len(tensors) < 2:
        raise RuntimeError(f"multi_dot(): expected at least 2 tensors but got {len(tensors)}")
    chain = _check_chain("multi_dot", tensors)
    splits = _best_splits([chain[0].size(0), *(matrix.size(1) for matrix in chain)])
    product = _multiply(chain, splits, 0, len(chain) - 1)
    shape = [*([product.size(0)] if tensors[0].dim() == 2 else []), *([product.size(1)] if tensors[-1].dim() == 2 else [])]
    return aten.view.default(product, shape)


@composite("chain_matmul(Tensor[] matrices) -> Tensor")
def chain_matmul(matrices):
    if not matrices:
        raise RuntimeError("chain_matmul(): Expected one or more matrices")
    for position, matrix in enumerate(matrices):
        if matrix.dim() != 2:
            raise RuntimeError(f"Tensor dimension is {matrix.dim()}, expected 2 instead. (chain_matmul: argument {position})")
    return matrices[0] if len(matrices) == 1 else linalg_multi_dot(matrices)


@composite("kron(Tensor self, Tensor other) -> Tensor")
def kron(self, other):
    rank = max(self.dim(), other.dim())
    a = (*(1,) * (rank - self.dim()), *self.shape)
    b = (*(1,) * (rank - other.dim()), *other.shape)
    left = aten.reshape.default(self, [part for size in a for part in (size, 1)])
    right = aten.reshape.default(other, [part for size in b for part in (1, size)])
    return aten.reshape.default(left * right, [i * j for i, j in zip(a, b, strict=True)])


@composite("inner(Tensor self, Tensor other) -> Tensor")
def inner(self, other):
    if not self.dim() or not other.dim():
        return self * other
    if self.size(-1) != other.size(-1):
        raise RuntimeError(
            f"inner() the last dimension must match on both input tensors but got shapes {list(self.shape)} and "
            f"{list(other.shape)}"
        )
    return tensordot(self, other, [-1], [-1])


@composite("tensordot(Tensor self, Tensor other, int[] dims_self, int[] dims_other) -> Tensor")
def tensordot(self, other, dims_self, dims_other):
    if len(dims_self) != len(dims_other):
        raise RuntimeError(f"both dimension lists should have same length, but got {list(dims_self)} and {list(dims_other)}")
    if self.dtype is not other.dtype:
        raise RuntimeError(f"tensordot: both inputs should have same dtype, but got {self.dtype} and {other.dtype}")
    first, second = wrap_dims(dims_self, self.dim()), wrap_dims(dims_other, other.dim())
    for i, j in zip(first, second, strict=True):
        # A dimension of size 1 is summed over on the other side, as in broadcasting.
        if self.size(i) != other.size(j) and 1 not in (self.size(i), other.size(j)):
            raise RuntimeError(
                f"contracted dimensions need to match, but first has size {self.size(i)} in dim {i} and second has size "
                f"{other.size(j)} in dim {j}"
            )
    narrow = [i for i, j in zip(first, second, strict=True) if self.size(i) != 1 and other.size(j) == 1]
    wide = [j for i, j in zip(first, second, strict=True) if self.size(i) == 1 and other.size(j) != 1]
    self = aten.sum.dim_IntList(self, narrow, True, dtype=self.dtype) if narrow else self
    other = aten.sum.dim_IntList(other, wide, True, dtype=other.dtype) if wide else other
    kept = [axis for axis in range(self.dim()) if axis not in first]
    others = [axis for axis in range(other.dim()) if axis not in second]
    count = math.prod(self.size(axis) for axis in first)
    left_sizes, right_sizes = [self.size(axis) for axis in kept], [other.size(axis) for axis in others]
    left = aten.reshape.default(aten.permute.default(self, [*kept, *first]), (math.prod(left_sizes), count))
    right = aten.reshape.default(aten.permute.default(other, [*second, *others]), (count, math.prod(right_sizes)))
    return aten.reshape.default(aten.mm.default(left, right), [*left_sizes, *right_sizes])


def _scaled_sum(self: Tensor, product: Tensor, beta: float, alpha: float) -> Tensor:
    """Return beta * self + alpha * product, where `self` broadcasts to the product. With beta 0, NaN in `self` has no effect.
    Integer tensors require integer factors, bool tensors bools."""
    if broadcast_shapes(self.shape, product.shape) != tuple(product.shape):
        raise RuntimeError(
            f"The expanded size of the tensor {list(self.shape)} must match that of the product, {list(product.shape)}"
        )
    if product.dtype.is_integral:
        kind = bool if product.dtype is bool_ else int
        beta, alpha = kind(beta), kind(alpha)
    product = product if alpha == 1 else product * alpha
    if beta == 0:
        return product
    return product + (self if beta == 1 else self * beta)


@with_inplace("addbmm(Tensor self, Tensor batch1, Tensor batch2, *, Scalar beta=1, Scalar alpha=1) -> Tensor")
def addbmm(self, batch1, batch2, *, beta=1, alpha=1):
    check_bmm(batch1, batch2)
    rows = aten.flatten.using_ints(aten.transpose.int(batch1, 0, 1), 1)  # concatenate the batch into a single product
    return _scaled_sum(self, aten.mm.default(rows, aten.flatten.using_ints(batch2, 0, 1)), beta, alpha)


@with_inplace("baddbmm(Tensor self, Tensor batch1, Tensor batch2, *, Scalar beta=1, Scalar alpha=1) -> Tensor")
def baddbmm(self, batch1, batch2, *, beta=1, alpha=1):
    return _scaled_sum(self, aten.bmm.default(batch1, batch2), beta, alpha)


@with_inplace("addmv(Tensor self, Tensor mat, Tensor vec, *, Scalar beta=1, Scalar alpha=1) -> Tensor")
def addmv(self, mat, vec, *, beta=1, alpha=1):
    return _scaled_sum(self, aten.mv.default(mat, vec), beta, alpha)


@with_inplace("addr(Tensor self, Tensor vec1, Tensor vec2, *, Scalar beta=1, Scalar alpha=1) -> Tensor")
def addr(self, vec1, vec2, *, beta=1, alpha=1):
    if vec1.dim() != 1 or vec2.dim() != 1:
        raise RuntimeError(f"addr: Expected 1-D arguments vec1 and vec2, but got {vec1.dim()}-D and {vec2.dim()}-D")
    kind = result_type(self, vec1, vec2)
    check_factor("beta", beta, kind)
    check_factor("alpha", alpha, kind)
    return _scaled_sum(self, aten.outer.default(vec1, vec2), beta, alpha)


@composite("trace(Tensor self) -> Tensor")
def trace(self):
    if self.dim() != 2:
        raise RuntimeError(f"trace: expected a matrix, but got tensor with dim {self.dim()}")
    return aten.sum.dim_IntList(aten.diagonal.default(self), None)


@composite("linalg_diagonal(Tensor(a) A, *, int offset=0, int dim1=-2, int dim2=-1) -> Tensor(a)")
def linalg_diagonal(A, *, offset=0, dim1=-2, dim2=-1):
    return aten.diagonal.default(A, offset, dim1, dim2)


@composite("linalg_vander(Tensor x, *, SymInt? N=None) -> Tensor")
def linalg_vander(x, *, N=None):
    if x.dtype in (float16, bfloat16, bool_):
        kind = x.dtype.scalar_name
        raise RuntimeError(f"linalg.vander supports floating point, complex, and integer tensors, but got {kind}")
    return _powers(x, N)


def _powers(x: Tensor, N: int | None) -> Tensor:
    count = N if N is not None else x.size(-1) if x.dim() else 1
    if count <= 1:
        raise RuntimeError(f"N must be greater than 1. Got {count}")
    x = x.to(int64) if x.dtype.is_integral else x
    x = x if x.dim() else aten.unsqueeze.default(x, 0)
    column = aten.unsqueeze.default(x, -1)
    powers = aten.cumprod.default(aten.expand.default(column, (*x.shape, max(count - 1, 0))), -1)
    return aten.cat.default([aten.ones_like.default(column), powers], -1)


@composite("vander(Tensor x, int? N=None, bool increasing=False) -> Tensor")
def vander(x, N=None, increasing=False):
    if x.dim() != 1:
        raise RuntimeError(f"x must be a one-dimensional tensor, but got {x.dim()} dimensions (vander)")
    count = x.size(0) if N is None else N
    if count < 0:
        raise RuntimeError(f"N must be non-negative. Got {count} (vander)")
    if count < 2:
        return aten.ones.default((x.size(0), count), dtype=int64 if x.dtype.is_integral else x.dtype, device=x.device)
    powers = _powers(x, count)
    return powers if increasing else aten.flip.default(powers, [1])


@composite("block_diag(Tensor[] tensors) -> Tensor")
def block_diag(tensors):
    for position, block in enumerate(tensors):
        if block.dim() > 2:
            raise RuntimeError(
                "torch.block_diag: Input tensors must have 2 or fewer dimensions. "
                f"Input {position} has {block.dim()} dimensions"
            )
    if not tensors:
        return aten.empty.memory_format((1, 0))
    blocks = [aten.reshape.default(block, (1,) * (2 - block.dim()) + tuple(block.shape)) for block in tensors]
    kind = result_type(blocks[0], blocks[0])
    for block in blocks[1:]:
        kind = result_type(aten.empty.memory_format((1,), dtype=kind), block)
    width = sum(block.size(1) for block in blocks)
    rows, before = [], 0
    for block in blocks:
        rows.append(aten.constant_pad_nd.default(block.to(kind), [before, width - before - block.size(1)]))
        before += block.size(1)
    return aten.cat.default(rows, 0)


def _check_vectors(tensors: list[Tensor]) -> None:
    for vector in tensors:
        if vector.dim() != 1:
            raise RuntimeError(f"Expect a 1D vector, but got shape {list(vector.shape)}")


@composite("cartesian_prod(Tensor[] tensors) -> Tensor")
def cartesian_prod(tensors):
    _check_vectors(tensors)
    if len(tensors) == 1:
        return tensors[0]
    grids = aten.meshgrid.indexing(tensors, indexing="ij")
    return aten.stack.default([aten.reshape.default(grid, (-1,)) for grid in grids], 1)


@composite("combinations(Tensor self, int r=2, bool with_replacement=False) -> Tensor")
def all_combinations(self, r=2, with_replacement=False):
    _check_vectors([self])
    if r < 0:
        raise RuntimeError(f"Expect a non-negative number, but got {r}")
    if r == 0:
        return aten.empty.memory_format((0,), dtype=self.dtype, device=self.device)
    choose = combinations_with_replacement if with_replacement else combinations
    chosen = tensor(list(choose(range(self.size(0)), r)), dtype=int64, device=self.device)
    return aten.index.Tensor(self, [aten.reshape.default(chosen, (-1, r))])
