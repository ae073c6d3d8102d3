"""`torch.distributed.algorithms.ddp_comm_hooks.powerSGD_hook`: gradients sent as products of two thin matrices.

The algorithm is PowerSGD (Vogels, Karimireddy and Jaggi, "PowerSGD: Practical Low-Rank Gradient Compression for Distributed
Optimization", 2019): for a gradient M of n x m, ranks average P = M Q (n x r), make its columns orthonormal, average
Q = M^T P (m x r), and use P Q^T. What that leaves out is added to the next gradient.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Callable

from rushlight._utils import _flatten_dense_tensors, _unflatten_dense_tensors
from rushlight.autograd.grad_mode import no_grad
from rushlight.core.generator import Generator
from rushlight.core.tensor import Tensor
from rushlight.distributed.algorithms.ddp_comm_hooks.default_hooks import allreduce_hook
from rushlight.distributed.collectives import all_reduce
from rushlight.distributed.engine.process_group import ProcessGroup
from rushlight.distributed.engine.work import Work
from rushlight.distributed.groups import default_group
from rushlight.distributed.reducer.buckets import GradBucket
from rushlight.futures import Future
from rushlight.ops import aten

__all__ = ["PowerSGDState", "batched_powerSGD_hook", "powerSGD_hook"]

_log = logging.getLogger(__name__)


class PowerSGDState:
    """The settings of the PowerSGD hooks, and what they keep from step to step.

    `matrix_approximation_rank` is r; `start_powerSGD_iter` the first step that compresses (at least 2 with error feedback or
    warm start, so that buckets are laid out for good); `min_compression_rate` how many times smaller the matrices must be
    than the gradient. `use_error_feedback` adds what was left out to the next gradient, `warm_start` begins with the last Q,
    `orthogonalization_epsilon` is added to the norms of columns. `compression_stats` is logged every
    `compression_stats_logging_frequency` steps. ValueError for a step that is too early. NotImplementedError for
    `batch_tensors_with_same_shape`.
    """

    def __init__(
        self, process_group: ProcessGroup | None, matrix_approximation_rank: int = 1, start_powerSGD_iter: int = 1_000,
        min_compression_rate: float = 2, use_error_feedback: bool = True, warm_start: bool = True,
        orthogonalization_epsilon: float = 0, random_seed: int = 0, compression_stats_logging_frequency: int = 10_000,
        batch_tensors_with_same_shape: bool = False,
    ) -> None:  # fmt: skip
        if (use_error_feedback or warm_start) and start_powerSGD_iter <= 1:
            raise ValueError(
                "Expect `start_powerSGD_iter` > 1 if `use_error_feedback` or `warm_start` is enabled, because PowerSGD can "
                "only be applied after the first two iterations in DDP."
            )
        if batch_tensors_with_same_shape:
            raise NotImplementedError(
                "PowerSGDState: batch_tensors_with_same_shape is not there: matrices are multiplied one by one. Leave it out"
            )
        self.process_group = process_group
        self.matrix_approximation_rank = matrix_approximation_rank
        self.start_powerSGD_iter = start_powerSGD_iter
        self.min_compression_rate = min_compression_rate
        self.use_error_feedback, self.warm_start = use_error_feedback, warm_start
        self.orthogonalization_epsilon = orthogonalization_epsilon
        self.rng = Generator().manual_seed(random_seed)
        self.compression_stats_logging_frequency = max(compression_stats_logging_frequency, 1)
        self.batch_tensors_with_same_shape = False
        self.iter = 0
        self.error_dict: dict[int, Tensor] = {}
        self.q_memory_dict: dict[int, list[Tensor]] = {}
        self.total_numel_before_compression = self.total_numel_after_compression = 0

    def compression_stats(self) -> tuple[float, int, int]:
        """Return how many times smaller what was sent is, and the numbers of elements before and after."""
        before, after = self.total_numel_before_compression, self.total_numel_after_compression
        return (before / after if after else 0.0), before, after

    @property
    def group(self) -> ProcessGroup:
        """Return the group of ranks that average."""
        return self.process_group or default_group()


class _Continued(Future):
    """A future whose value is calculated by the thread that waits for it, so that all ranks begin collectives in one order."""

    def __init__(self, calculate: Callable[[], Tensor]) -> None:
        super().__init__()
        self._calculate: Callable[[], Tensor] | None = calculate

    def wait(self) -> Tensor:
        """Calculate the value, and return it."""
        calculate, self._calculate = self._calculate, None
        if calculate is not None:
            with no_grad():
                self.set_result(calculate())
        return super().wait()


def powerSGD_hook(state: PowerSGDState, bucket: GradBucket) -> Future[Tensor]:
    """Average the bucket, each matrix in it as a product of two of rank `state.matrix_approximation_rank`.

    Vectors, and matrices that would not get smaller, are averaged as they are.
    """
    if _is_too_early(state, bucket):
        return allreduce_hook(state.group, bucket)
    with no_grad():
        flat = _with_error(state, bucket)
        gradients = _unflatten_dense_tensors(flat, bucket.parameters())
        thin = [each.view(each.shape[0], -1) for each in gradients if _is_worth_it(state, each)]
        return _begin(state, bucket, flat, thin, [each for each in gradients if not _is_worth_it(state, each)])


def batched_powerSGD_hook(state: PowerSGDState, bucket: GradBucket) -> Future[Tensor]:
    """Average the bucket as one square matrix, as a product of two of rank `state.matrix_approximation_rank`.

    Faster than `powerSGD_hook`, and less precise.
    """
    if _is_too_early(state, bucket):
        return allreduce_hook(state.group, bucket)
    with no_grad():
        flat = _with_error(state, bucket)
        side = math.isqrt(max(flat.numel() - 1, 0)) + 1
        square = flat.new_zeros(side * side)
        square[: flat.numel()] = flat
        future = _begin(state, bucket, square, [square.view(side, side)], [])
        return _Continued(lambda: bucket.buffer().copy_(future.wait()[: flat.numel()]))


def _is_too_early(state: PowerSGDState, bucket: GradBucket) -> bool:
    early = state.iter < state.start_powerSGD_iter
    if bucket.is_last():
        state.iter += 1
        if not early and state.iter % state.compression_stats_logging_frequency == 0:
            _log.info("step %d: compression rate %.4g, %d elements before, %d after", state.iter, *state.compression_stats())
    return early


def _with_error(state: PowerSGDState, bucket: GradBucket) -> Tensor:
    """Return the bucket's gradients and what the last step left out of them."""
    flat = bucket.buffer()
    if state.use_error_feedback:
        left_out = state.error_dict.get(bucket.index())
        if left_out is not None and left_out.numel() == flat.numel():
            flat.add_(left_out)
        state.error_dict[bucket.index()] = flat.clone()
    return flat


def _is_worth_it(state: PowerSGDState, gradient: Tensor) -> bool:
    if gradient.dim() < 2:
        return False
    rows, columns = gradient.shape[0], gradient[0].numel()
    rank = min(rows, columns, state.matrix_approximation_rank)
    after, before = (rows + columns) * rank, rows * columns
    worth = after * state.min_compression_rate < before
    state.total_numel_before_compression += before
    state.total_numel_after_compression += after if worth else before
    return worth


def _begin(
    state: PowerSGDState, bucket: GradBucket, flat: Tensor, matrices: list[Tensor], others: list[Tensor]
) -> Future[Tensor]:
    """Begin to average the gradients that stay as they are, and the first factors of the others."""
    group = state.group
    qs = _first_factors(state, bucket, matrices)
    rest = _sum_of(others, group)
    ps = [matrix @ q for matrix, q in zip(matrices, qs, strict=True)]
    summed = _sum_of(ps, group)

    def finish() -> Tensor:
        _write_back(rest, others, group.size())
        _write_back(summed, ps, 1)
        for p in ps:
            _orthogonalize(p, state.orthogonalization_epsilon)
        new = [matrix.t() @ p for matrix, p in zip(matrices, ps, strict=True)]
        _write_back(_sum_of(new, group), new, group.size())
        for matrix, p, q in zip(matrices, ps, new, strict=True):
            matrix.copy_(p @ q.t())
        if state.warm_start:
            state.q_memory_dict[bucket.index()] = new
        if state.use_error_feedback:
            error = state.error_dict[bucket.index()]
            error.sub_(flat[: error.numel()])
        return flat

    return _Continued(finish)


def _first_factors(state: PowerSGDState, bucket: GradBucket, matrices: list[Tensor]) -> list[Tensor]:
    """Return the last step's second factors, or random ones that are the same on all ranks; their columns are orthonormal."""
    kept = state.q_memory_dict.get(bucket.index(), [])
    made = []
    for number, matrix in enumerate(matrices):
        rank = min(*matrix.shape, state.matrix_approximation_rank)
        shape = (matrix.shape[1], rank)
        if number < len(kept) and tuple(kept[number].shape) == shape:
            q = kept[number].clone()
        else:
            q = aten.randn(shape, generator=state.rng, dtype=matrix.dtype)
        _orthogonalize(q, state.orthogonalization_epsilon)
        made.append(q)
    return made


def _orthogonalize(matrix: Tensor, epsilon: float) -> None:
    """Make the columns orthonormal, in place."""
    if epsilon == 0 and matrix.shape[0] >= matrix.shape[1]:
        matrix.copy_(aten.linalg_qr(matrix)[0])
        return
    for column in range(matrix.shape[1]):
        vector = matrix[:, column : column + 1]
        vector.div_(vector.norm() + epsilon)
        rest = matrix[:, column + 1 :]
        if rest.shape[1]:
            rest.sub_((vector * rest).sum(0) * vector)


def _sum_of(tensors: list[Tensor], group: ProcessGroup) -> tuple[Tensor, Work] | None:
    """Begin to sum tensors over ranks, as one."""
    if not tensors:
        return None
    flat = _flatten_dense_tensors(tensors)
    return flat, all_reduce(flat, group=group, async_op=True)


def _write_back(summed: tuple[Tensor, Work] | None, tensors: list[Tensor], divisor: int) -> None:
    if summed is None:
        return
    flat, work = summed
    work.wait()
    for tensor, values in zip(tensors, _unflatten_dense_tensors(flat, tensors), strict=True):
        tensor.copy_(values / divisor if divisor != 1 else values)
