"""Checks and Meta rules of the negative log-likelihood."""

from __future__ import annotations

from rushlight.core.tensor import Tensor
from rushlight.ops.meta.checks import require_floating, require_same_dtype
from rushlight.ops.meta.common import empty
from rushlight.ops.registry import meta

NONE, MEAN, SUM = range(3)


def check_nll_loss(self: Tensor, target: Tensor, weight: Tensor | None, reduction: int) -> tuple[int, ...]:
    """Return the sizes of the loss; RuntimeError unless log-probabilities (N, C) or (C,) and targets (N,) or () fit."""
    sizes = self._impl.sizes
    if len(sizes) not in (1, 2):
        raise RuntimeError(f"input tensor should be 1D or 2D (nll_loss: got shape {list(sizes)})")
    if target.dim() > 1 or (len(sizes) == 1 and target.dim() == 1 and target.numel() != 1):
        raise RuntimeError("0D or 1D target tensor expected, multi-target not supported (nll_loss)")
    if len(sizes) == 2 and target._impl.sizes != sizes[:1]:
        raise RuntimeError(f"size mismatch (got input: {list(sizes)}, target: {list(target.shape)}) in nll_loss")
    if target.dtype.name not in ("int64", "uint8"):
        raise RuntimeError(f"expected target dtype to be Long or Byte, but got {target.dtype.scalar_name} (nll_loss)")
    if weight is not None and weight._impl.sizes != sizes[-1:]:
        raise RuntimeError(
            f"weight tensor should be defined either for all {sizes[-1]} classes or no classes but got weight tensor "
            f"of shape: {list(weight.shape)}"
        )
    require_floating("nll_loss", self)
    require_same_dtype("nll_loss", self.dtype, weight=weight)
    return target._impl.sizes if reduction == NONE and len(sizes) == 2 else ()


@meta("nll_loss_forward")
def nll_loss_forward(self, target, weight, reduction, ignore_index):
    return empty(check_nll_loss(self, target, weight, reduction), self.dtype), empty((), self.dtype)


@meta("nll_loss_backward")
def nll_loss_backward(grad_output, self, target, weight, reduction, ignore_index, total_weight):
    check_nll_loss(self, target, weight, reduction)
    return empty(self._impl.sizes, self.dtype)
