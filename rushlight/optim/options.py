"""Checks of options that optimizers share, with torch's messages, and options as numbers."""

from __future__ import annotations

from rushlight._C import in_region
from rushlight.core.tensor import Tensor


def check_learning_rate(lr: float | Tensor, *, foreach: bool | None = False, capturable: bool = True) -> None:
    """Raise ValueError unless `lr` is a number, or a tensor of one element, that is not negative.

    With `foreach`, torch accepts a tensor only together with `capturable`.
    """
    if isinstance(lr, Tensor):
        if foreach and not capturable:
            raise ValueError("lr as a Tensor is not supported for capturable=False and foreach=True; give a float")
        if lr.numel() != 1:
            raise ValueError(f"Tensor lr must be 1-element, but it has {lr.numel()} elements")
    check_not_negative({"learning rate": lr})


def check_not_negative(options: dict[str, float | Tensor]) -> None:
    """Raise ValueError for the first option that is negative or no number; keys are the names in messages."""
    for name, value in options.items():
        if not value >= 0.0:
            raise ValueError(f"Invalid {name}: {value}")


def check_betas(betas: tuple[float | Tensor, float | Tensor]) -> None:
    """Raise ValueError unless both decay rates are in [0, 1)."""
    for index, beta in enumerate(betas):
        if not 0.0 <= beta < 1.0:
            raise ValueError(f"Invalid beta parameter at index {index}: {beta}")


def check_tensor_betas(betas: tuple, foreach: bool | None, capturable: bool) -> None:
    """Raise ValueError unless the rates are both numbers or both tensors of one element (not with `foreach` alone)."""
    if isinstance(betas[0], Tensor) is not isinstance(betas[1], Tensor):
        raise ValueError("betas must be either both floats or both Tensors")
    for index, beta in enumerate(betas):
        if isinstance(beta, Tensor):
            if foreach and not capturable:
                raise ValueError(
                    f"betas[{index}] as a Tensor is not supported for capturable=False and foreach=True; give a float"
                )
            if beta.numel() != 1:
                raise ValueError(f"Tensor betas[{index}] must be 1-element, but it has {beta.numel()} elements")


def check_implementation(*, foreach: bool | None = None, fused: bool | None = None, differentiable: bool = False) -> None:
    """Raise RuntimeError for flags that exclude each other. They select torch's equivalent implementations."""
    if fused and differentiable:
        raise RuntimeError("`fused` does not support `differentiable`")
    if fused and foreach:
        raise RuntimeError("`fused` and `foreach` cannot be `True` together.")


def check_capturable(group: dict, parameters: list[Tensor]) -> None:
    """Raise AssertionError, as torch does, for an eager step of CPU parameters with `capturable`: it is meant for compiled
    functions and graphs of GPUs."""
    if group.get("capturable") and not in_region() and not all(parameter.is_cuda for parameter in parameters):
        raise AssertionError("If capturable=True, params and state_steps must be on supported devices: cuda, not cpu")


def number(value: float | Tensor) -> float:
    """Return a number from an option that may be a one-element tensor."""
    return value.item() if isinstance(value, Tensor) else value


def hyperparameter(group: dict, name: str) -> float | Tensor:
    """Return an option as a number; unchanged if it is a tensor on a GPU, for which the program does not wait, or if the step
    is differentiable, because it may be a tensor with history."""
    value = group[name]
    return value if group.get("differentiable") or (isinstance(value, Tensor) and value.is_cuda) else number(value)
