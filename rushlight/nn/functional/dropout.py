"""Dropout. With `training=False` the input is returned unchanged."""

from __future__ import annotations

import warnings

from rushlight.core.tensor import Tensor
from rushlight.nn.functional.common import aten, check_probability


def dropout(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """Zero each element with probability p, and divide the others by 1 - p.

    Args:
        input (Tensor): the input.
        p (float): the probability of zeroing an element.
        training (bool): whether to drop elements; otherwise the input is returned.
        inplace (bool): whether to overwrite the input.

    Example:
        >>> F.dropout(torch.ones(1, 1, 1, 2), training=False).flatten()
        tensor([1., 1.])
    """
    check_probability(p)
    return aten.dropout_(input, p, training) if inplace else aten.dropout(input, p, training)


def alpha_dropout(input: Tensor, p: float = 0.5, training: bool = False, inplace: bool = False) -> Tensor:
    """dropout to SELU's saturation value, keeping mean and variance.

    Args:
        input (Tensor): the input.
        p (float): the probability of zeroing an element.
        training (bool): whether to drop elements; otherwise the input is returned.
        inplace (bool): whether to overwrite the input.

    Example:
        >>> F.alpha_dropout(torch.ones(1, 1, 1, 2), training=False).flatten()
        tensor([1., 1.])
    """
    check_probability(p)
    return aten.alpha_dropout_(input, p, training) if inplace else aten.alpha_dropout(input, p, training)


def dropout1d(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """dropout of whole channels of (N, C, L) or (C, L).

    Args:
        input (Tensor): the input.
        p (float): the probability of zeroing an element.
        training (bool): whether to drop elements; otherwise the input is returned.
        inplace (bool): whether to overwrite the input.

    Example:
        >>> F.dropout1d(torch.ones(1, 1, 2), training=False).flatten()
        tensor([1., 1.])
    """
    check_probability(p)
    if input.dim() not in (2, 3):
        raise RuntimeError(
            f"dropout1d: Expected 2D or 3D input, but received a {input.dim()}D input. It drops channels of "
            "inputs with 1 spatial dimension, a channel dimension and an optional batch dimension."
        )
    batched = input.dim() == 3
    result = _feature_dropout(input if batched else input.unsqueeze(0), p, training, inplace)
    return result if batched else result.squeeze(0)


def dropout2d(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """dropout of whole channels of (N, C, H, W).

    Args:
        input (Tensor): the input.
        p (float): the probability of zeroing an element.
        training (bool): whether to drop elements; otherwise the input is returned.
        inplace (bool): whether to overwrite the input.

    Example:
        >>> F.dropout2d(torch.ones(1, 1, 1, 2), training=False).flatten()
        tensor([1., 1.])
    """
    check_probability(p)
    _warn_unless(input, (3, 4), "dropout2d", "2 spatial dimensions")
    return _feature_dropout(input, p, training, inplace)


def dropout3d(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """dropout of whole channels of (N, C, D, H, W) or (C, D, H, W).

    Args:
        input (Tensor): the input.
        p (float): the probability of zeroing an element.
        training (bool): whether to drop elements; otherwise the input is returned.
        inplace (bool): whether to overwrite the input.

    Example:
        >>> F.dropout3d(torch.ones(1, 1, 1, 2, 1), training=False).flatten()
        tensor([1., 1.])
    """
    check_probability(p)
    _warn_unless(input, (4, 5), "dropout3d", "3 spatial dimensions")
    batched = input.dim() == 5
    result = _feature_dropout(input if batched else input.unsqueeze(0), p, training, inplace)
    return result if batched else result.squeeze(0)


def feature_alpha_dropout(input: Tensor, p: float = 0.5, training: bool = False, inplace: bool = False) -> Tensor:
    """alpha_dropout of whole channels.

    Args:
        input (Tensor): the input.
        p (float): the probability of zeroing an element.
        training (bool): whether to drop elements; otherwise the input is returned.
        inplace (bool): whether to overwrite the input.

    Example:
        >>> F.feature_alpha_dropout(torch.ones(1, 1, 1, 2), training=False).flatten()
        tensor([1., 1.])
    """
    check_probability(p)
    drop = aten.feature_alpha_dropout_ if inplace else aten.feature_alpha_dropout
    return drop(input, p, training)


def _feature_dropout(input: Tensor, p: float, training: bool, inplace: bool) -> Tensor:
    return aten.feature_dropout_(input, p, training) if inplace else aten.feature_dropout(input, p, training)


def _warn_unless(input: Tensor, dims: tuple[int, ...], name: str, meant: str) -> None:
    if input.dim() not in dims:
        given = f"{name}: Received a {input.dim()}-D input"
        warnings.warn(f"{given}; it drops channels of inputs with {meant}.", stacklevel=3)
