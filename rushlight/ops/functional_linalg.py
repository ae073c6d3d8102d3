"""Public functions of linear algebra whose signature is not that of one operator, and low-rank approximations.

Stage: eager calls and captured graphs; each runs operators.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NoReturn

from rushlight.core.dtype import dtype
from rushlight.core.overrides import overridable
from rushlight.core.tensor import Tensor
from rushlight.ops.out import finish
from rushlight.ops.packet import namespaces

aten = namespaces.namespace("aten")
_COMPUTE_MODES = {
    "use_mm_for_euclid_dist_if_necessary": None, "use_mm_for_euclid_dist": 1, "donot_use_mm_for_euclid_dist": 2,
}  # fmt: skip


@overridable
def norm(
    input: Tensor,
    p: float | str | None = "fro",
    dim: int | Sequence[int] | None = None,
    keepdim: bool = False,
    out: Tensor | None = None,
    dtype: dtype | None = None,
) -> Tensor:
    """Return the p-norm over `dim` (all dimensions for None); "fro" is the 2-norm, "nuc" the sum of singular values.

    RuntimeError for integers, for other names, and for "nuc" over anything but two dimensions.
    """
    if isinstance(dim, int):
        dim = [dim]
    if isinstance(p, str) and p != "fro":
        dims = list(range(input.dim())) if dim is None else dim
        result = aten.linalg_matrix_norm.str_ord(input, p, dims, keepdim, dtype=dtype)
    else:
        order = 2 if p in (None, "fro") else p
        result = aten.linalg_vector_norm.default(input, order, dim, keepdim, dtype=dtype)
    return finish("norm", out, result, input)


@overridable
def cdist(x1: Tensor, x2: Tensor, p: float = 2.0, compute_mode: str = "use_mm_for_euclid_dist_if_necessary") -> Tensor:
    """Return the p-norm distance between each row of x1 (*, P, M) and each of x2 (*, R, M): (*, P, R).

    `compute_mode` says whether Euclidean distances come from matrix products: ValueError for unknown ones.
    """
    if compute_mode not in _COMPUTE_MODES:
        raise ValueError(f"{compute_mode} is not a valid value for compute_mode; use one of {', '.join(_COMPUTE_MODES)}")
    return aten.cdist.default(x1, x2, p, _COMPUTE_MODES[compute_mode])


@overridable
def tensordot(a: Tensor, b: Tensor, dims: int | Sequence | Tensor = 2, out: Tensor | None = None) -> Tensor:
    """Return the sum of products over the last `dims` dimensions of `a` and the first of `b`, or over two lists of
    dimensions."""
    if isinstance(dims, Tensor):
        dims = dims.tolist() if dims.numel() > 1 else int(dims.item())
    if isinstance(dims, int):
        if dims < 0:
            raise RuntimeError(f"tensordot expects dims >= 0, but got dims={dims}")
        if dims > min(a.dim(), b.dim()):
            raise RuntimeError(f"tensordot expects dims < ndim_a or ndim_b, but got dims={dims}")
        first, second = list(range(a.dim() - dims, a.dim())), list(range(dims))
    else:
        first, second = ([part] if isinstance(part, int) else list(part) for part in dims)
    return finish("tensordot", out, aten.tensordot.default(a, b, first, second), a, b)


def _unpack_single_sequence(tensors: tuple) -> list[Tensor]:
    return list(tensors[0] if len(tensors) == 1 and isinstance(tensors[0], list | tuple) else tensors)


@overridable
def block_diag(*tensors: Tensor) -> Tensor:
    """Return a matrix with the given ones (numbers and vectors as single rows) along its diagonal, and 0 elsewhere."""
    return aten.block_diag.default(_unpack_single_sequence(tensors))


@overridable
def cartesian_prod(*tensors: Tensor) -> Tensor:
    """Return all rows that take one element of each vector, the last changing fastest."""
    return aten.cartesian_prod.default(_unpack_single_sequence(tensors))


@overridable
def chain_matmul(*matrices: Tensor, out: Tensor | None = None) -> Tensor:
    """Return the product of matrices, in the order that needs least multiplications."""
    factors = _unpack_single_sequence(matrices)
    return finish("chain_matmul", out, aten.chain_matmul.default(factors), *factors)


@overridable
def lu(A: Tensor, pivot: bool = True, get_infos: bool = False, out: tuple[Tensor, ...] | None = None) -> tuple[Tensor, ...]:
    """Return the packed LU factors of a batch of matrices (*, m, n) and the pivots (*, min(m, n)); with `get_infos`, their
    status."""
    found = aten.linalg_lu_factor_ex.default(A, pivot=pivot)
    found = tuple(found) if get_infos else tuple(found[:2])
    return finish("lu", out, found, A)


def _orthonormal_range(A: Tensor, size: int, iterations: int) -> Tensor:
    """Return an orthonormal basis (*, m, size) that approximates the range of A, by subspace iteration on random vectors.

    Source: N. Halko, P.-G. Martinsson and J. Tropp, "Finding structure with randomness" (2011), algorithm 4.4.
    """
    probes = aten.randn.default((A.size(-1), size), dtype=A.dtype, device=A.device)
    basis = aten.linalg_qr.default(A @ probes)[0]
    for _ in range(iterations):
        other = aten.linalg_qr.default(A.mH @ basis)[0]
        basis = aten.linalg_qr.default(A @ other)[0]
    return basis


@overridable
def svd_lowrank(A: Tensor, q: int | None = 6, niter: int | None = 2, M: Tensor | None = None) -> tuple[Tensor, Tensor, Tensor]:
    """Return U (*, m, q), S (*, q) and V (*, n, q) with U diag(S) V^H approximately equal to A - M, by random projections.

    Source: N. Halko, P.-G. Martinsson and J. Tropp, "Finding structure with randomness" (2011), algorithm 5.1.
    """
    size, iterations = 6 if q is None else q, 2 if niter is None else niter
    matrix = A if M is None else A - M.expand(A.shape)
    if matrix.size(-2) < matrix.size(-1):
        right, values, left = svd_lowrank(matrix.mH, size, iterations)
        return left, values, right
    basis = _orthonormal_range(matrix, size, iterations)
    left, values, right = aten._linalg_svd.default(basis.mH @ matrix)
    return basis @ left, values, right.mH


@overridable
def pca_lowrank(A: Tensor, q: int | None = None, center: bool = True, niter: int = 2) -> tuple[Tensor, Tensor, Tensor]:
    """Return the first q principal components of the columns of A (*, m, n), as (U, S, V) of `svd_lowrank`.

    ValueError unless 0 <= q <= min(m, n), and for negative `niter`.
    """
    m, n = A.shape[-2:]
    q = min(6, m, n) if q is None else q
    if not 0 <= q <= min(m, n):
        raise ValueError(f"q(={q}) must be non-negative integer and not greater than min(m, n)={min(m, n)}")
    if niter < 0:
        raise ValueError(f"niter(={niter}) must be non-negative integer")
    return svd_lowrank(A - A.mean(-2, True) if center else A, q, niter)


def _make_removed_stub(name: str, instead: str) -> Callable[..., NoReturn]:
    """Return a stub for a function that torch has removed: it raises a RuntimeError that names the successor."""

    def removed(*args: object, **kwargs: object) -> NoReturn:
        raise RuntimeError(
            f"This function was deprecated since version 1.9 and is now removed. Please use {instead} instead of torch.{name}."
        )

    removed.__name__ = removed.__qualname__ = name
    removed.__doc__ = f"Removed: use {instead}."
    return removed


eig = _make_removed_stub("eig", "torch.linalg.eig")
lstsq = _make_removed_stub("lstsq", "torch.linalg.lstsq, whose arguments are in the other order,")
matrix_rank = _make_removed_stub("matrix_rank", "the `torch.linalg.matrix_rank` function")
solve = _make_removed_stub("solve", "torch.linalg.solve, whose arguments are in the other order,")
symeig = _make_removed_stub("symeig", "torch.linalg.eigh")

PUBLIC = {
    function.__name__: function
    for function in (
        norm, cdist, tensordot, block_diag, cartesian_prod, chain_matmul, lu, svd_lowrank, pca_lowrank,
        eig, lstsq, matrix_rank, solve, symeig,
    )
}  # fmt: skip
# Functions here that are also methods of Tensor.
METHODS = ("norm", "lu", "eig", "lstsq", "solve", "symeig")
