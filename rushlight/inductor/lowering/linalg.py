"""Lowering of matrix factorizations and solvers to calls of matrix.h and orthogonal.h.

These functions take row-major matrices; column-major ones, such as eager's LAPACK results, are copied.
"""

from __future__ import annotations

import math

import numpy as np

from rushlight.core.algebra import as_expr
from rushlight.core.dtype import bool_, int32
from rushlight.core.strides import broadcast_shapes
from rushlight.core.symbolic import SymInt
from rushlight.inductor.ir import Constant, Value
from rushlight.inductor.lowering.builder import call, number_value
from rushlight.inductor.lowering.library_calls import Function, library_call, transposed
from rushlight.inductor.lowering.pointwise import mul_boxes
from rushlight.inductor.lowering.products import plain_product
from rushlight.inductor.lowering.reductions import reduce_box
from rushlight.inductor.lowering.registry import lowering
from rushlight.inductor.lowering.views import expand
from rushlight.inductor.tensor_box import TensorBox
from rushlight.ops.meta.linalg_checks import is_vector_rhs

LU = ("lu_scratch_bytes<{type}>", (1,))
FUNCTIONS = {
    "cholesky": Function("matrix", "cholesky<{type}>", reports=True),
    "lu_factor": Function("matrix", "lu_factor<{type}>", reports=True),
    "lu_unpack": Function("matrix", "lu_unpack<{type}>", "permutation_scratch_bytes", (1,), reports=True),
    "solve": Function("matrix", "solve<{type}>", *LU, reports=True),
    "invert": Function("matrix", "invert<{type}>", *LU, reports=True),
    "determinant": Function("matrix", "determinant<{type}>", *LU),
    "log_determinant": Function("matrix", "log_determinant<{type}>", *LU),
    "solve_triangular": Function("matrix", "solve_triangular<{type}>"),
    "cholesky_solve": Function("matrix", "cholesky_solve<{type}>"),
    "qr": Function("orthogonal", "qr<{type}>", "qr_scratch_bytes<{type}>", (1, 2, 3)),
    "eigh": Function("orthogonal", "eigh<{type}>", "eigh_scratch_bytes", (1,), reports=True),
    "svd": Function("orthogonal", "svd<{type}>", "svd_scratch_bytes", (1, 2), reports=True),
}


def _call(graph, name: str, operands: list[TensorBox], results: list, numbers: list) -> list[TensorBox]:
    work = math.prod(operands[0].size) * operands[0].size[-1]
    return library_call(graph, FUNCTIONS[name], operands[0].dtype, operands, results, numbers, work)


def _empty_box(graph, like: TensorBox) -> TensorBox:
    return graph.pointwise((0,), like.dtype, lambda index: Constant(like.dtype, 0))


@lowering("linalg_cholesky_ex")
def cholesky_ex(graph, self, *, upper=False, check_errors=False):
    batch, n = self.size[:-2], self.size[-1]
    numbers = [math.prod(batch), n, bool(upper), bool(check_errors)]
    return tuple(_call(graph, "cholesky", [self], [(self.size, self.dtype), (batch, int32)], numbers))


@lowering("linalg_lu_factor_ex")
def lu_factor_ex(graph, A, *, pivot=True, check_errors=False):
    *batch, m, n = A.size
    results = [(A.size, A.dtype), ((*batch, min(m, n)), int32), (batch, int32)]
    return tuple(_call(graph, "lu_factor", [A], results, [math.prod(batch), m, n, bool(check_errors)]))


@lowering("lu_unpack")
def lu_unpack(graph, LU_data, LU_pivots, unpack_data=True, unpack_pivots=True):
    *batch, m, n = LU_data.size
    inner = min(m, n)
    results = [((*batch, m, m), LU_data.dtype), ((*batch, m, inner), LU_data.dtype), ((*batch, inner, n), LU_data.dtype)]
    made = _call(graph, "lu_unpack", [LU_data, LU_pivots], results, [math.prod(batch), m, n])
    wanted = (unpack_pivots, unpack_data, unpack_data)
    return tuple(box if is_wanted else _empty_box(graph, LU_data) for box, is_wanted in zip(made, wanted, strict=True))


def _broadcast(graph, a: TensorBox, b: TensorBox) -> tuple[TensorBox, TensorBox, tuple]:
    """Broadcast two operands' batch dimensions; also returns the batch sizes."""
    batch = tuple(broadcast_shapes(a.size[:-2], b.size[:-2]))
    return expand(graph, a, (*batch, *a.size[-2:])), expand(graph, b, (*batch, *b.size[-2:])), batch


@lowering("linalg_solve_ex")
def solve_ex(graph, A, B, *, left=True, check_errors=False):
    is_vector = is_vector_rhs(A.size, B.size)
    right = B.reshape((*B.size, 1)) if is_vector else B
    a, b = (A, right) if left else (transposed(A), transposed(right))
    a, b, batch = _broadcast(graph, a, b)
    numbers = [math.prod(batch), *b.size[-2:], bool(check_errors)]
    made, info = _call(graph, "solve", [a, b], [(b.size, A.dtype), (batch, int32)], numbers)
    solution = made.reshape(made.size[:-1]) if is_vector else made if left else transposed(made)
    return solution, _drop_broadcast(info, A.size[:-2])


def _drop_broadcast(info: TensorBox, batch: tuple) -> TensorBox:
    """Undo broadcasting: `info` for each of the given matrices."""
    extra = len(info.size) - len(batch)
    zero = [as_expr(0)] * extra
    return info.view(batch, lambda index: [*zero, *index])


@lowering("linalg_inv_ex")
def inv_ex(graph, A, *, check_errors=False):
    batch = A.size[:-2]
    numbers = [math.prod(batch), A.size[-1], bool(check_errors)]
    return tuple(_call(graph, "invert", [A], [(A.size, A.dtype), (batch, int32)], numbers))


@lowering("linalg_det")
def det(graph, A):
    return _call(graph, "determinant", [A], [(A.size[:-2], A.dtype)], [math.prod(A.size[:-2]), A.size[-1]])[0]


@lowering("linalg_slogdet")
def slogdet(graph, A):
    results = [(A.size[:-2], A.dtype)] * 2
    return tuple(_call(graph, "log_determinant", [A], results, [math.prod(A.size[:-2]), A.size[-1]]))


@lowering("linalg_solve_triangular")
def solve_triangular(graph, self, B, *, upper, left=True, unitriangular=False):
    a, b = (self, B) if left else (transposed(self), transposed(B))
    a, b, batch = _broadcast(graph, a, b)
    numbers = [math.prod(batch), *b.size[-2:], bool(upper) is bool(left), bool(unitriangular)]
    (made,) = _call(graph, "solve_triangular", [a, b], [(b.size, self.dtype)], numbers)
    return made if left else transposed(made)


@lowering("cholesky_solve")
def cholesky_solve(graph, self, input2, upper=False):
    factor, b, batch = _broadcast(graph, input2, self)
    numbers = [math.prod(batch), *b.size[-2:], bool(upper)]
    return _call(graph, "cholesky_solve", [b, factor], [(b.size, self.dtype)], numbers)[0]


@lowering("linalg_qr")
def qr(graph, A, mode="reduced"):
    *batch, m, n = A.size
    inner = m if mode == "complete" else min(m, n)
    results = [((*batch, m, inner), A.dtype), ((*batch, inner, n), A.dtype)]
    q, r = _call(graph, "qr", [A], results, [math.prod(batch), m, n, inner])
    return (_empty_box(graph, A) if mode == "r" else q), r


@lowering("_linalg_eigh")
def eigh(graph, A, UPLO="L", compute_v=True):
    results = [(A.size[:-1], A.dtype), (A.size, A.dtype)]
    numbers = [math.prod(A.size[:-2]), A.size[-1], UPLO.upper() == "L"]
    values, vectors = _call(graph, "eigh", [A], results, numbers)
    return values, vectors if compute_v else _empty_box(graph, A)


@lowering("_linalg_svd")
def svd(graph, A, full_matrices=False, compute_uv=True, *, driver=None):
    *batch, m, n = A.size
    count = min(m, n)
    left, right = (m, n) if full_matrices else (count, count)
    # A library call always fills its first buffer, so the values come first.
    results = [((*batch, count), A.dtype), ((*batch, m, left), A.dtype), ((*batch, right, n), A.dtype)]
    values, u, vh = _call(graph, "svd", [A], results, [math.prod(batch), m, n, left, right])
    return (u, values, vh) if compute_uv else (_empty_box(graph, A), values, _empty_box(graph, A))


@lowering("linalg_pinv.atol_rtol_tensor")
def pinv(graph, self, *, atol=None, rtol=None, hermitian=False):
    """Compute V diag(1 / s) U', where singular values up to max(atol, rtol * the largest one) count as 0."""
    *batch, m, n = self.size
    u, values, vh = svd(graph, self)
    largest = reduce_box(graph, values, (len(batch),), "max", self.dtype, True)
    limit = _cutoff(graph, largest, max(m, n), atol, rtol)
    one, zero = Constant(self.dtype, 1.0), Constant(self.dtype, 0.0)

    def inverse(index):
        value = values.value(index)
        is_large = call("gt", bool_, value, limit.value([*index[:-1], as_expr(0)]))
        return call("where", self.dtype, is_large, call("div", self.dtype, one, value), zero)

    scales = graph.pointwise(values.size, self.dtype, inverse).reshape((*batch, 1, values.size[-1]))
    return plain_product(graph, mul_boxes(graph, transposed(vh), scales), transposed(u))


def _cutoff(graph, largest: TensorBox, longest: int | SymInt, atol: TensorBox | None, rtol: TensorBox | None) -> TensorBox:
    """Return the bound up to which singular values count as 0."""
    kind, size = largest.dtype, largest.size
    usual = float(np.finfo(kind.numpy).eps)

    def tolerance(box: TensorBox, index) -> Value:
        return graph.load(box, index[:-1], size[:-1], kind)

    def inner(index):
        absolute = Constant(kind, 0.0) if atol is None else tolerance(atol, index)
        relative = number_value(longest, kind)
        relative = call("mul", kind, relative, Constant(kind, usual)) if rtol is None else tolerance(rtol, index)
        if rtol is None and atol is not None:
            is_given = call("gt", bool_, absolute, Constant(kind, 0.0))
            relative = call("where", kind, is_given, Constant(kind, 0.0), relative)
        return call("maximum", kind, absolute, call("mul", kind, relative, largest.value(index)))

    return graph.pointwise(size, kind, inner)
