"""Momentum of optimizers for cyclical schedules, which move it opposite to the rate: "momentum", or the first of "betas"."""

from __future__ import annotations

from typing import Any

from rushlight.optim.optimizer import Optimizer


def has_betas(optimizer: Optimizer) -> bool:
    """Return whether the momentum is the first beta. ValueError for an optimizer without momentum."""
    if "momentum" not in optimizer.defaults and "betas" not in optimizer.defaults:
        raise ValueError(
            "optimizer must support momentum or beta1 with `cycle_momentum` option enabled; give cycle_momentum=False"
        )
    return "betas" in optimizer.defaults


def set_momentum(group: dict[str, Any], momentum: float, is_beta: bool) -> None:
    """Set the momentum of a group."""
    if is_beta:
        group["betas"] = (momentum, *group["betas"][1:])
    else:
        group["momentum"] = momentum
