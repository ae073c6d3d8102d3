"""Distances and similarities."""

from __future__ import annotations

from rushlight.core.tensor import Tensor
from rushlight.nn.functional.common import aten


def cosine_similarity(x1: Tensor, x2: Tensor, dim: int = 1, eps: float = 1e-8) -> Tensor:
    """x1 . x2 / (max(|x1|, eps) * max(|x2|, eps)) along `dim`."""
    return aten.cosine_similarity(x1, x2, dim, eps)


def pairwise_distance(x1: Tensor, x2: Tensor, p: float = 2.0, eps: float = 1e-6, keepdim: bool = False) -> Tensor:
    """The p-norm of x1 - x2 + eps over the last dimension."""
    return aten.pairwise_distance(x1, x2, p, eps, keepdim)


def pdist(input: Tensor, p: float = 2) -> Tensor:
    """The p-norms of the differences between all pairs of rows, of which the second comes later: (N * (N - 1) / 2)."""
    return aten.pdist(input, p)
