"""Dropout modules: active in training, the identity otherwise."""

from __future__ import annotations

from rushlight.core.tensor import Tensor
from rushlight.nn import functional as F
from rushlight.nn.functional.common import check_probability
from rushlight.nn.modules.module import Module


class _DropoutNd(Module):
    def __init__(self, p: float = 0.5, inplace: bool = False) -> None:
        super().__init__()
        check_probability(p)
        self.p = p
        self.inplace = inplace

    def extra_repr(self) -> str:
        return f"p={self.p}, inplace={self.inplace}"


class Dropout(_DropoutNd):
    """Zeroes each element with probability p, and divides the others by 1 - p.

    Args:
        p (float): the probability of zeroing an element.
        inplace (bool): whether to overwrite the input.

    Example:
        >>> torch.nn.Dropout().eval()(torch.ones(2))
        tensor([1., 1.])
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.dropout(input, self.p, self.training, self.inplace)


class Dropout1d(_DropoutNd):
    """Dropout of whole channels of (N, C, L) or (C, L).

    Args:
        p (float): the probability of zeroing an element.
        inplace (bool): whether to overwrite the input.

    Example:
        >>> torch.nn.Dropout1d().eval()(torch.ones(1, 1, 4)).shape
        torch.Size([1, 1, 4])
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.dropout1d(input, self.p, self.training, self.inplace)


class Dropout2d(_DropoutNd):
    """Dropout of whole channels of (N, C, H, W).

    Args:
        p (float): the probability of zeroing an element.
        inplace (bool): whether to overwrite the input.

    Example:
        >>> torch.nn.Dropout2d().eval()(torch.ones(1, 1, 4, 4)).shape
        torch.Size([1, 1, 4, 4])
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.dropout2d(input, self.p, self.training, self.inplace)


class Dropout3d(_DropoutNd):
    """Dropout of whole channels of (N, C, D, H, W) or (C, D, H, W).

    Args:
        p (float): the probability of zeroing an element.
        inplace (bool): whether to overwrite the input.

    Example:
        >>> torch.nn.Dropout3d().eval()(torch.ones(1, 1, 4, 4, 4)).shape
        torch.Size([1, 1, 4, 4, 4])
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.dropout3d(input, self.p, self.training, self.inplace)


class AlphaDropout(_DropoutNd):
    """Dropout to SELU's saturation value, keeping mean and variance.

    Args:
        p (float): the probability of zeroing an element.
        inplace (bool): whether to overwrite the input.

    Example:
        >>> torch.nn.AlphaDropout().eval()(torch.ones(2))
        tensor([1., 1.])
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.alpha_dropout(input, self.p, self.training)


class FeatureAlphaDropout(_DropoutNd):
    """AlphaDropout of whole channels.

    Args:
        p (float): the probability of zeroing an element.
        inplace (bool): whether to overwrite the input.

    Example:
        >>> torch.nn.FeatureAlphaDropout().eval()(torch.ones(1, 1, 2))
        tensor([[[1., 1.]]])
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.feature_alpha_dropout(input, self.p, self.training)
