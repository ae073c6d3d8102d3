"""Gradient clipping, in place. `foreach` is accepted and has no effect: gradients on a GPU are clipped together."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Sequence

from rushlight.autograd.grad_mode import no_grad
from rushlight.core.tensor import Tensor
from rushlight.ops.packet import namespaces
from rushlight.ops.together import call_together, stacked

aten = namespaces.namespace("aten")


def _as_list(tensors: Tensor | Iterable[Tensor]) -> list[Tensor]:
    return [tensors] if isinstance(tensors, Tensor) else list(tensors)


@no_grad()
def get_total_norm(
    tensors: Tensor | Iterable[Tensor],
    norm_type: float = 2.0,
    error_if_nonfinite: bool = False,
    foreach: bool | None = None,
) -> Tensor:
    """Return the norm of all tensors as one vector, a 0-dim tensor; RuntimeError if not finite and `error_if_nonfinite`."""
    tensors = _as_list(tensors)
    if not tensors:
        return aten.full.default([], 0.0)
    (total,) = call_together(_total_norm, tensors, options=float(norm_type))
    if error_if_nonfinite and not bool(total.isfinite()):
        raise RuntimeError(
            f"The total norm of order {float(norm_type)} for gradients from `parameters` is non-finite, so it cannot "
            "be clipped. To disable this error and scale the gradients by the non-finite norm anyway, set "
            "`error_if_nonfinite=False`"
        )
    return total


def _total_norm(tensors: Sequence[Tensor], numbers: Sequence[float], order: float) -> tuple[Tensor]:
    norms = [tensor.norm(order) for tensor in tensors]
    return (stacked([norm if norm.device == norms[0].device else norm.to(norms[0].device) for norm in norms]).norm(order),)


@no_grad()
def clip_grads_with_norm_(
    parameters: Tensor | Iterable[Tensor], max_norm: float, total_norm: Tensor, foreach: bool | None = None
) -> None:
    """Scale the gradients by max_norm / total_norm where that is below 1."""
    gradients = [parameter.grad for parameter in _as_list(parameters) if parameter.grad is not None]
    call_together(_scale_to_norm, [total_norm, *gradients], [float(max_norm)])


def _scale_to_norm(tensors: Sequence[Tensor], numbers: Sequence[float], options: tuple) -> tuple:
    total, *gradients = tensors
    scale = (numbers[0] / (total + 1e-6)).clamp(max=1.0)
    for gradient in gradients:
        gradient.mul_(scale if scale.device == gradient.device else scale.to(gradient.device))
    return ()


@no_grad()
def clip_grad_norm_(
    parameters: Tensor | Iterable[Tensor],
    max_norm: float,
    norm_type: float = 2.0,
    error_if_nonfinite: bool = False,
    foreach: bool | None = None,
) -> Tensor:
    """Scale the gradients so that their common norm is at most `max_norm`; returns the norm before."""
    parameters = _as_list(parameters)
    gradients = [parameter.grad for parameter in parameters if parameter.grad is not None]
    total = get_total_norm(gradients, norm_type, error_if_nonfinite)
    clip_grads_with_norm_(parameters, max_norm, total)
    return total


@no_grad()
def clip_grad_value_(parameters: Tensor | Iterable[Tensor], clip_value: float, foreach: bool | None = None) -> None:
    """Clamp every element of the gradients to [-clip_value, clip_value]."""
    gradients = [parameter.grad for parameter in _as_list(parameters) if parameter.grad is not None]
    call_together(_clamp, gradients, options=float(clip_value))


def _clamp(tensors: Sequence[Tensor], numbers: Sequence[float], limit: float) -> tuple:
    for tensor in tensors:
        tensor.clamp_(-limit, limit)
    return ()


def clip_grad_norm(
    parameters: Tensor | Iterable[Tensor],
    max_norm: float,
    norm_type: float = 2.0,
    error_if_nonfinite: bool = False,
    foreach: bool | None = None,
) -> Tensor:
    """Return the deprecated name of clip_grad_norm_."""
    warnings.warn(
        "torch.nn.utils.clip_grad_norm is now deprecated in favor of torch.nn.utils.clip_grad_norm_.",
        FutureWarning,
        stacklevel=2,
    )
    return clip_grad_norm_(parameters, max_norm, norm_type, error_if_nonfinite, foreach)
