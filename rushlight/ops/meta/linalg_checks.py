"""Checks of the arguments of linear-algebra operators, shared by their Meta rules, CPU kernels and composites."""

from __future__ import annotations

from collections.abc import Sequence

from rushlight.core.dtype import dtype, float32, float64
from rushlight.core.strides import broadcast_shapes, contiguous_strides
from rushlight.core.tensor import Tensor
from rushlight.ops.meta.checks import not_implemented
from rushlight.ops.meta.common import empty


def column_major(sizes: Sequence[int]) -> tuple[int, ...]:
    """Return strides of a batch of matrices, each column-major, as LAPACK writes them."""
    if len(sizes) < 2:
        return contiguous_strides(tuple(sizes))
    strides = contiguous_strides((*sizes[:-2], sizes[-1], sizes[-2]))
    return (*strides[:-2], strides[-1], strides[-2])


def check_inexact(name: str, tensor: Tensor, low_precision: bool = False, kernel: str = "") -> None:
    """Raise RuntimeError unless the dtype is floating or complex, with 16-bit floats only if `low_precision`.

    With `kernel`, a 16-bit float raises NotImplementedError in the name of this kernel.
    """
    kind = tensor.dtype
    if kind.is_integral:
        raise RuntimeError(f"{name}: Expected a floating point or complex tensor as input. Got {kind.scalar_name}")
    if not low_precision and kind.to_real() not in (float32, float64):
        if kernel:
            raise not_implemented(kernel, kind)
        raise RuntimeError(f"{name}: Low precision dtypes not supported. Got {kind.scalar_name}")


def check_matrices(name: str, tensor: Tensor, role: str = "A") -> tuple[int, ...]:
    """Return the sizes of a batch of matrices; RuntimeError for fewer than two dimensions."""
    sizes = tensor._impl.sizes
    if len(sizes) < 2:
        raise RuntimeError(f"{name}: The input tensor {role} must have at least 2 dimensions.")
    return sizes


def check_square(name: str, tensor: Tensor, role: str = "A") -> tuple[int, ...]:
    """Return the sizes of a batch of square matrices; RuntimeError for anything else."""
    sizes = check_matrices(name, tensor, role)
    if sizes[-1] != sizes[-2]:
        raise RuntimeError(
            f"{name}: {role} must be batches of square matrices, but they are {sizes[-2]} by {sizes[-1]} matrices"
        )
    return sizes


def check_square_inexact(name: str, tensor: Tensor, role: str = "A", kernel: str = "") -> tuple[int, ...]:
    """Return the sizes of a batch of square matrices of float32, float64 or their complex dtypes; see `check_inexact`."""
    sizes = check_square(name, tensor, role)
    check_inexact(name, tensor, kernel=kernel)
    return sizes


def check_same_dtype(name: str, a: Tensor, b: Tensor, roles: tuple[str, str] = ("A", "B")) -> None:
    """Raise RuntimeError unless both dtypes are one."""
    if a.dtype is not b.dtype:
        raise RuntimeError(
            f"{name}: Expected {roles[0]} and {roles[1]} to have the same dtype, but found {roles[0]} of type "
            f"{a.dtype.scalar_name} and {roles[1]} of type {b.dtype.scalar_name} instead"
        )


def check_sides(name: str, a: Sequence[int], b: Sequence[int], left: bool) -> None:
    """Raise RuntimeError unless matrices of sizes `a` and `b` fit into AX = B (`left`) or XA = B."""
    if a[-2] != (b[-2] if left else b[-1]):
        equation = "AX = B" if left else "XA = B"
        raise RuntimeError(
            f"{name}: Incompatible shapes of A and B for the equation {equation} ({a[-2]}x{a[-1]} and {b[-2]}x{b[-1]})"
        )


def is_vector_rhs(a: Sequence[int], b: Sequence[int]) -> bool:
    """Return whether a right-hand side of sizes `b` is a batch of vectors for matrices of sizes `a`, by NumPy's rule."""
    return len(b) == 1 or (len(b) + 1 == len(a) and tuple(b) == tuple(a[:-1]))


def solution_sizes(name: str, a: Tensor, b: Tensor, left: bool) -> tuple[int, ...]:
    """Return the sizes of the solution of a square system; RuntimeError where the operands do not fit."""
    sizes = check_square_inexact(name, a)
    check_same_dtype(name, a, b)
    right = b._impl.sizes
    if not right:
        raise RuntimeError(f"{name}: B must have at least 1 dimension, but it has none")
    vector = is_vector_rhs(sizes, right)
    if vector and not left:
        raise RuntimeError(
            f"{name}: Vector broadcasting of the left hand side is not supported for left=False. In this case "
            f"{name} is equivalent to B / A.squeeze(-1)"
        )
    shape = (*right, 1) if vector else right
    check_sides(name, sizes, shape, left)
    solved = (*broadcast_shapes(sizes[:-2], shape[:-2]), *shape[-2:])
    return solved[:-1] if vector else solved


def empty_matrices(sizes: Sequence[int], element_type: dtype) -> Tensor:
    """Return a meta tensor for a batch of column-major matrices."""
    return empty(sizes, element_type, column_major(sizes))


def check_dim_pair(name: str, dims: Sequence[int], rank: int) -> None:
    """Raise RuntimeError unless `dims` are two different dimensions."""
    if len(dims) != 2:
        raise RuntimeError(f"{name}: dim must be a 2-tuple. Got {' '.join(map(str, dims))}")
    if rank and dims[0] % rank == dims[1] % rank:
        raise RuntimeError(f"{name}: dims must be different. Got ({dims[0]}, {dims[1]})")
