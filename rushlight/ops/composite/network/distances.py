"""Distances and similarities."""

from __future__ import annotations

from rushlight.core.dtype import promote_types
from rushlight.ops.composite.network.common import aten
from rushlight.ops.registry import composite


@composite("cosine_similarity(Tensor x1, Tensor x2, int dim=1, float eps=1e-08) -> Tensor")
def cosine_similarity(x1, x2, dim=1, eps=1e-08):
    """Return the dot product of x1 and x2 along `dim`, each divided by its length or eps, whichever is larger."""
    kind = promote_types(x1.dtype, x2.dtype)
    if not kind.is_floating_point:
        raise RuntimeError(f"expected common dtype to be floating point, yet common dtype is {kind}")
    x1, x2 = x1.to(kind), x2.to(kind)
    if not eps >= 0:
        raise RuntimeError(f"cosine_similarity: eps must be non-negative, got: {eps}")
    if x1.shape != x2.shape:
        x1, x2 = aten.broadcast_tensors.default([x1, x2])
    return (x1 / _length(x1, dim, eps) * (x2 / _length(x2, dim, eps))).sum([dim])


def _length(x, dim: int, eps: float):
    length = x.norm(2, [dim], True)
    # The lower bound changes only the value: gradients are those of the unclamped length.
    plain = length.detach()
    return length + (plain.clamp(min=eps) - plain)


@composite("pairwise_distance(Tensor x1, Tensor x2, float p=2.0, float eps=1e-06, bool keepdim=False) -> Tensor")
def pairwise_distance(x1, x2, p=2.0, eps=1e-06, keepdim=False):
    """Return the p-norm of x1 - x2 + eps over the last dimension."""
    return (x1 - x2 + eps).norm(p, [-1], keepdim)
