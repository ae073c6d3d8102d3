"""Normalisation."""

from __future__ import annotations

import math
from collections.abc import Sequence

from rushlight.core.tensor import Tensor
from rushlight.nn.functional.common import aten
from rushlight.ops.out import finish


def layer_norm(
    input: Tensor,
    normalized_shape: Sequence[int],
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    eps: float = 1e-5,
) -> Tensor:
    """Zero mean and unit variance over the last dimensions, `normalized_shape`, then times weight plus bias.

    Args:
        input (Tensor): the input.
        normalized_shape (Sequence[int]): the sizes of the last dimensions, over which statistics are taken.
        weight (Tensor | None): the scale, if given.
        bias (Tensor | None): the bias, if given.
        eps (float): added to the variance.

    Example:
        >>> F.layer_norm(torch.tensor([1.0, 3.0]), (2,))
        tensor([-1.0000,  1.0000])
    """
    return aten.layer_norm.default(input, normalized_shape, weight, bias, eps)


def rms_norm(
    input: Tensor, normalized_shape: Sequence[int], weight: Tensor | None = None, eps: float | None = None
) -> Tensor:
    """x divided by its root mean square over the last dimensions, then times weight; eps defaults to the dtype's.

    Args:
        input (Tensor): the input.
        normalized_shape (Sequence[int]): the sizes of the last dimensions, over which statistics are taken.
        weight (Tensor | None): the scale, if given.
        eps (float | None): added to the mean square.

    Example:
        >>> F.rms_norm(torch.tensor([3.0, 3.0]), (2,))
        tensor([1., 1.])
    """
    return aten.rms_norm(input, normalized_shape, weight, eps)


def batch_norm(
    input: Tensor,
    running_mean: Tensor | None,
    running_var: Tensor | None,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    training: bool = False,
    momentum: float = 0.1,
    eps: float = 1e-5,
) -> Tensor:
    """Normalise each channel (dimension 1), by the batch's statistics in training and by the running ones otherwise.

    Args:
        input (Tensor): the input.
        running_mean (Tensor | None): the running average of means, which training updates.
        running_var (Tensor | None): the running average of variances, which training updates.
        weight (Tensor | None): the scale, if given.
        bias (Tensor | None): the bias, if given.
        training (bool): whether to use the batch's statistics.
        momentum (float): the weight of a batch in the running averages.
        eps (float): added to the variance.

    Example:
        >>> F.batch_norm(torch.tensor([[1.0], [3.0]]), None, None, training=True)
        tensor([[-1.0000],
                [ 1.0000]])
    """
    if training:
        _check_values_per_channel(input, "Expected more than 1 value per channel when training")
        if eps <= 0:
            raise ValueError(f"batch_norm eps must be positive during training, but got {eps}")
    return aten.batch_norm(input, weight, bias, running_mean, running_var, training, momentum, eps, False)


def _check_values_per_channel(input: Tensor, expected: str) -> None:
    size = input.shape
    if size[0] * math.prod(size[2:]) == 1:
        raise ValueError(f"{expected}, got input size {size}")


def instance_norm(
    input: Tensor,
    running_mean: Tensor | None = None,
    running_var: Tensor | None = None,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    use_input_stats: bool = True,
    momentum: float = 0.1,
    eps: float = 1e-5,
) -> Tensor:
    """Normalise each channel of each sample.

    Args:
        input (Tensor): the input.
        running_mean (Tensor | None): the running average of means, which training updates.
        running_var (Tensor | None): the running average of variances, which training updates.
        weight (Tensor | None): the scale, if given.
        bias (Tensor | None): the bias, if given.
        use_input_stats (bool): whether to use the input's statistics.
        momentum (float): the weight of a batch in the running averages.
        eps (float): added to the variance.

    Example:
        >>> F.instance_norm(torch.tensor([[[1.0, 3.0]]]))
        tensor([[[-1.0000,  1.0000]]])
    """
    if use_input_stats and math.prod(input.shape[2:]) == 1:
        raise ValueError(f"Expected more than 1 spatial element when training, got input size {input.shape}")
    return aten.instance_norm(input, weight, bias, running_mean, running_var, use_input_stats, momentum, eps, False)


def group_norm(
    input: Tensor, num_groups: int, weight: Tensor | None = None, bias: Tensor | None = None, eps: float = 1e-5
) -> Tensor:
    """Normalise each of `num_groups` groups of channels of each sample.

    Args:
        input (Tensor): the input.
        num_groups (int): the number of groups of channels.
        weight (Tensor | None): the scale, if given.
        bias (Tensor | None): the bias, if given.
        eps (float): added to the variance.

    Example:
        >>> F.group_norm(torch.tensor([[[1.0], [3.0]]]), 1).flatten()
        tensor([-1.0000,  1.0000])
    """
    if input.dim() < 2:
        raise RuntimeError(f"Expected at least 2 dimensions for input tensor but received {input.dim()}")
    size = input.shape
    if num_groups and size[0] * size[1] // num_groups * math.prod(size[2:]) == 1:
        raise ValueError(f"Expected more than 1 value per channel when training, got input size {size}")
    return aten.group_norm(input, num_groups, weight, bias, eps)


def local_response_norm(input: Tensor, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1.0) -> Tensor:
    """x / (k + alpha * mean of squares over `size` neighbouring channels) ** beta (Krizhevsky et al. 2012).

    Args:
        input (Tensor): the input.
        size (int): the number of neighbouring channels.
        alpha (float): the multiplier of the mean square.
        beta (float): the exponent.
        k (float): the constant in the denominator.

    Example:
        >>> F.local_response_norm(torch.ones(1, 2, 2), 2).shape
        torch.Size([1, 2, 2])
    """
    if input.dim() < 3:
        raise ValueError(f"Expected 3D or higher dimensionality input (got {input.dim()} dimensions)")
    if input.numel() == 0:
        return input
    batch, channels = input.shape[:2]
    squares = (input * input).reshape([batch, 1, channels, -1])
    padded = aten.constant_pad_nd.default(squares, [0, 0, size // 2, (size - 1) // 2], 0)
    mean = aten.avg_pool2d.default(padded, [size, 1], [1, 1]).reshape(input.shape)
    return input / (mean * alpha + k).pow(beta)


def normalize(input: Tensor, p: float = 2.0, dim: int = 1, eps: float = 1e-12, out: Tensor | None = None) -> Tensor:
    """x divided by its p-norm along `dim`, or by eps where that is larger.

    Args:
        input (Tensor): the input.
        p (float): the exponent of the norm.
        dim (int): the dimension along which to work; negative ones count from the last.
        eps (float): the lower bound of the norm.
        out (Tensor | None): where the result is written, if given.

    Example:
        >>> F.normalize(torch.tensor([3.0, 4.0]), dim=0)
        tensor([0.6000, 0.8000])
    """
    result = input / input.norm(p, [dim] if isinstance(dim, int) else dim, True).clamp_min(eps).expand_as(input)
    return finish("normalize", out, result, input)
