"""Batching rules of linear algebra: hidden dimensions become batch dimensions of the matrices."""

from __future__ import annotations

from collections.abc import Callable

from rushlight.core.tensor import Tensor
from rushlight.ops.batching.kernel import first_example, invoke, rule, rules, run_per_example, wrapped
from rushlight.ops.batching.layout import all_levels, aten, batch_sizes, levels_of, spread, value_of
from rushlight.ops.dispatcher import OpOverload

_ONE_MATRIX = (
    "linalg_cholesky_ex", "linalg_lu_factor_ex", "linalg_ldl_factor_ex", "linalg_qr", "geqrf", "_linalg_eigh", "linalg_eig",
    "_linalg_eigvals", "_linalg_svd", "linalg_inv_ex", "linalg_det", "linalg_slogdet", "linalg_matrix_exp",
)  # fmt: skip
_SEVERAL_MATRICES = ("lu_unpack", "linalg_householder_product", "cholesky_solve", "linalg_ldl_solve", "linalg_solve_triangular")
_DISTANCES = ("_cdist_forward", "_cdist_backward")


_WITH_VECTORS = ("lu_unpack", "linalg_householder_product", "linalg_ldl_solve")


def _broadcasts_beside_vectors(op: OpOverload, tensors: list[Tensor]) -> bool:
    """Return whether matrices and vectors of different batch shapes broadcast, although vectors have one dimension less."""
    return op._opname == "linalg_ldl_solve" and tensors[0].dim() != tensors[-1].dim()


def _make_stack_rule(op: OpOverload) -> Callable:
    """Return the rule of an operator on one matrix, or a batch of them."""

    def run(self: Tensor, *args: object, **kwargs: object) -> object:
        if self.dim() < 2:  # with the hidden dimensions a vector would pass for a matrix
            return first_example(op, op.normalize((self, *args), kwargs))
        return wrapped(op(value_of(self), *args, **kwargs), levels_of(self))

    return run


def _make_stacks_rule(op: OpOverload) -> Callable:
    """Return the rule of an operator on several matrices of the same batch shape; others run example by example."""

    def run(*args: object, **kwargs: object) -> object:
        stack = op.normalize(args, kwargs)
        tensors = [value for value in stack if isinstance(value, Tensor)]
        least = 1 if op._opname in _WITH_VECTORS else 2
        if min(tensor.dim() for tensor in tensors) < least or _broadcasts_beside_vectors(op, tensors):
            return run_per_example(op, stack)
        levels = all_levels(stack)
        sizes = batch_sizes(levels, stack)
        widest = max(tensor.dim() for tensor in tensors)
        ranks = {tensor.dim() for tensor in tensors}
        if len(ranks) > 1 and op._opname not in _WITH_VECTORS:
            stack = [_prepend_dims(value, widest) for value in stack]
        return wrapped(invoke(op, [spread(v, levels, sizes) if isinstance(v, Tensor) else v for v in stack]), levels)

    return run


def _prepend_dims(value: object, rank: int) -> object:
    if not isinstance(value, Tensor):
        return value
    for _ in range(rank - value.dim()):
        value = aten.unsqueeze.default(value, 0)
    return value


rules(_ONE_MATRIX, _make_stack_rule)
rules((*_SEVERAL_MATRICES, *_DISTANCES), _make_stacks_rule)


@rule("linalg_solve_ex")
def _solve_rule(A: Tensor, B: Tensor, *, left: bool = True, check_errors: bool = False) -> object:
    # Decide by the dimensions of an example whether B is a vector, or a batch of them.
    is_vector = B.dim() == 1 or (B.dim() == A.dim() - 1 and B.shape == A.shape[:-1])
    right = B.unsqueeze(-1) if is_vector else B
    levels = all_levels(A, right)
    sizes = batch_sizes(levels, A, right)
    rank = max(A.dim(), right.dim())
    operands = spread(A, levels, sizes, rank), spread(right, levels, sizes, rank)
    result, info = aten.linalg_solve_ex.default(*operands, left=left or is_vector, check_errors=check_errors)
    result = aten.squeeze.dims(result, [result.dim() - 1]) if is_vector else result
    return wrapped((result, info), levels)
