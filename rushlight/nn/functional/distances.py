"""Distances and similarities."""

from __future__ import annotations

from rushlight.core.tensor import Tensor
from rushlight.nn.functional.common import aten


def cosine_similarity(x1: Tensor, x2: Tensor, dim: int = 1, eps: float = 1e-8) -> Tensor:
    """x1 . x2 / (max(|x1|, eps) * max(|x2|, eps)) along `dim`.

    Args:
        x1 (Tensor): the first operand.
        x2 (Tensor): the second operand.
        dim (int): the dimension along which to work; negative ones count from the last.
        eps (float): the lower bound of the lengths.

    Example:
        >>> F.cosine_similarity(torch.tensor([1.0, 0.0]), torch.tensor([1.0, 1.0]), dim=0)
        tensor(0.7071)
    """
    return aten.cosine_similarity(x1, x2, dim, eps)


def pairwise_distance(x1: Tensor, x2: Tensor, p: float = 2.0, eps: float = 1e-6, keepdim: bool = False) -> Tensor:
    """Return the p-norm of x1 - x2 + eps over the last dimension.

    Args:
        x1 (Tensor): the first operand.
        x2 (Tensor): the second operand.
        p (float): the exponent of the norm.
        eps (float): added to the differences.
        keepdim (bool): keep reduced dimensions, with size 1.

    Example:
        >>> F.pairwise_distance(torch.zeros(1, 2), torch.tensor([[3.0, 4.0]]))
        tensor([5.0000])
    """
    return aten.pairwise_distance(x1, x2, p, eps, keepdim)


def pdist(input: Tensor, p: float = 2) -> Tensor:
    """Return the p-norm of row i - row j for all pairs i < j: (N * (N - 1) / 2).

    Args:
        input (Tensor): the input.
        p (float): the exponent of the norm.

    Example:
        >>> F.pdist(torch.tensor([[0.0, 0.0], [3.0, 4.0]]))
        tensor([5.])
    """
    return aten.pdist(input, p)
