"""Normalisation over features, groups of channels and neighbouring channels."""

from __future__ import annotations

import numbers
from collections.abc import Sequence

from rushlight.core.tensor import Tensor
from rushlight.nn import functional as F
from rushlight.nn import init
from rushlight.nn.creation import new_parameter
from rushlight.nn.modules.module import Module
from rushlight.ops.packet import namespaces

aten = namespaces.namespace("aten")


def _shape(normalized_shape: int | Sequence[int]) -> tuple[int, ...]:
    return (normalized_shape,) if isinstance(normalized_shape, numbers.Integral) else tuple(normalized_shape)


class LayerNorm(Module):
    """Zero mean and unit variance over the last dimensions, then times weight plus bias.

    Args:
        normalized_shape (int | Sequence[int]): the sizes of the last dimensions, over which statistics are taken.
        eps (float): added to the variance.
        elementwise_affine (bool): whether the layer has weights (and a bias).
        bias (bool): whether the layer has a learned bias.
        device: the device of the parameters.
        dtype: the dtype of the parameters.

    Example:
        >>> torch.nn.LayerNorm(2)(torch.tensor([1.0, 3.0])).detach()
        tensor([-1.0000,  1.0000])
    """

    def __init__(
        self,
        normalized_shape: int | Sequence[int],
        eps: float = 1e-5,
        elementwise_affine: bool = True,
        bias: bool = True,
        device=None,
        dtype=None,
    ) -> None:
        super().__init__()
        self.normalized_shape = _shape(normalized_shape)
        self.eps = eps
        self.elementwise_affine = elementwise_affine
        has_bias = elementwise_affine and bias
        shape = self.normalized_shape
        self.register_parameter("weight", new_parameter(shape, device, dtype) if elementwise_affine else None)
        self.register_parameter("bias", new_parameter(shape, device, dtype) if has_bias else None)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Ones and zeros."""
        if self.weight is not None:
            init.ones_(self.weight)
        if self.bias is not None:
            init.zeros_(self.bias)

    def forward(self, input: Tensor) -> Tensor:
        return F.layer_norm(input, self.normalized_shape, self.weight, self.bias, self.eps)

    def extra_repr(self) -> str:
        text = f"{self.normalized_shape}, eps={self.eps}, elementwise_affine={self.elementwise_affine}"
        return text + f", bias={self.bias is not None}"


class RMSNorm(Module):
    """x divided by its root mean square over the last dimensions, then times weight.

    Args:
        normalized_shape (int | Sequence[int]): the sizes of the last dimensions, over which statistics are taken.
        eps (float | None): added to the mean square.
        elementwise_affine (bool): whether the layer has weights (and a bias).
        device: the device of the parameters.
        dtype: the dtype of the parameters.

    Example:
        >>> torch.nn.RMSNorm(2)(torch.tensor([3.0, 3.0])).detach()
        tensor([1., 1.])
    """

    def __init__(
        self,
        normalized_shape: int | Sequence[int],
        eps: float | None = None,
        elementwise_affine: bool = True,
        device=None,
        dtype=None,
    ) -> None:
        super().__init__()
        self.normalized_shape = _shape(normalized_shape)
        self.eps = eps
        self.elementwise_affine = elementwise_affine
        weight = new_parameter(self.normalized_shape, device, dtype) if elementwise_affine else None
        self.register_parameter("weight", weight)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Ones."""
        if self.weight is not None:
            init.ones_(self.weight)

    def forward(self, x: Tensor) -> Tensor:
        return F.rms_norm(x, self.normalized_shape, self.weight, self.eps)

    def extra_repr(self) -> str:
        return f"{self.normalized_shape}, eps={self.eps}, elementwise_affine={self.elementwise_affine}"


class GroupNorm(Module):
    """Zero mean and unit variance over each of `num_groups` groups of channels, then weight and bias per channel.

    Args:
        num_groups (int): the number of groups of channels.
        num_channels (int): the number of channels.
        eps (float): added to the variance.
        affine (bool): whether the layer has a weight and a bias per channel.
        device: the device of the parameters.
        dtype: the dtype of the parameters.
        bias (bool): whether the layer has a learned bias.

    Example:
        >>> torch.nn.GroupNorm(1, 2)(torch.ones(1, 2, 4)).shape
        torch.Size([1, 2, 4])
    """

    def __init__(
        self,
        num_groups: int,
        num_channels: int,
        eps: float = 1e-5,
        affine: bool = True,
        device=None,
        dtype=None,
        *,
        bias: bool = True,
    ) -> None:
        super().__init__()
        if num_channels % num_groups:
            raise ValueError(f"num_channels ({num_channels}) must be divisible by num_groups ({num_groups})")
        self.num_groups = num_groups
        self.num_channels = num_channels
        self.eps = eps
        self.affine = affine
        self.register_parameter("weight", new_parameter([num_channels], device, dtype) if affine else None)
        self.register_parameter("bias", new_parameter([num_channels], device, dtype) if affine and bias else None)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Ones and zeros."""
        if self.weight is not None:
            init.ones_(self.weight)
        if self.bias is not None:
            init.zeros_(self.bias)

    def forward(self, input: Tensor) -> Tensor:
        return F.group_norm(input, self.num_groups, self.weight, self.bias, self.eps)

    def extra_repr(self) -> str:
        text = f"{self.num_groups}, {self.num_channels}, eps={self.eps}, affine={self.affine}"
        return text + f", bias={self.bias is not None}"


class LocalResponseNorm(Module):
    """x / (k + alpha * mean of squares over `size` neighbouring channels) ** beta.

    Args:
        size (int): the number of neighbouring channels.
        alpha (float): the multiplier of the mean square.
        beta (float): the exponent.
        k (float): the constant in the denominator.

    Example:
        >>> torch.nn.LocalResponseNorm(2)(torch.ones(1, 2, 2)).shape
        torch.Size([1, 2, 2])
    """

    def __init__(self, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1.0) -> None:
        super().__init__()
        self.size = size
        self.alpha = alpha
        self.beta = beta
        self.k = k

    def forward(self, input: Tensor) -> Tensor:
        return F.local_response_norm(input, self.size, self.alpha, self.beta, self.k)

    def extra_repr(self) -> str:
        return f"{self.size}, alpha={self.alpha}, beta={self.beta}, k={self.k}"


class CrossMapLRN2d(Module):
    """LocalResponseNorm of (N, C, H, W) over the (size - 1) // 2 neighbours on each side.

    As in torch, the windows of all later channels include the first channel.

    Args:
        size (int): the number of neighbouring channels.
        alpha (float): the multiplier of the mean square.
        beta (float): the exponent.
        k (float): the constant in the denominator.

    Example:
        >>> torch.nn.CrossMapLRN2d(2)(torch.ones(1, 2, 2, 2)).shape
        torch.Size([1, 2, 2, 2])
    """

    def __init__(self, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1) -> None:
        super().__init__()
        self.size = size
        self.alpha = alpha
        self.beta = beta
        self.k = k

    def forward(self, input: Tensor) -> Tensor:
        if input.dim() != 4:
            raise ValueError(f"CrossMapLRN2d: Expected input to be 4D, got {input.dim()}D instead.")
        reach = (self.size - 1) // 2
        squares = F.pad(input * input, [0, 0, 0, 0, reach, reach])
        total = squares.unfold(1, 2 * reach + 1, 1).sum([-1])
        first = squares.narrow(1, reach, 1)
        total = aten.cat.default([total[:, : reach + 1], total[:, reach + 1 :] + first], 1)
        return input * (total * (self.alpha / self.size) + self.k).pow(-self.beta)

    def extra_repr(self) -> str:
        return f"{self.size}, alpha={self.alpha}, beta={self.beta}, k={self.k}"
