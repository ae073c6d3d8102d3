"""Helpers that the families share: broadcasting of parameters, lazily computed properties, probabilities and logits."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from numbers import Number
from typing import Any

from rushlight.autograd.grad_mode import enable_grad
from rushlight.core.device import device
from rushlight.core.dtype import dtype, finfo, get_default_dtype
from rushlight.core.tensor import Tensor
from rushlight.ops.construct import tensor
from rushlight.ops.functional import broadcast_tensors
from rushlight.ops.packet import namespaces

aten = namespaces.namespace("aten")
__all__ = [
    "broadcast_all", "clamp_probs", "lazy_property", "logits_to_probs", "probs_to_logits", "_standard_normal",
    "tril_matrix_to_vec", "vec_to_tril_matrix",
]  # fmt: skip
euler_constant = 0.57721566490153286060


def broadcast_all(*values: Tensor | Number) -> tuple[Tensor, ...]:
    """Return the values as tensors of one shape; numbers take dtype and device of the first tensor. ValueError for other
    types."""
    if not all(isinstance(value, Tensor | Number) for value in values):
        raise ValueError(
            "Input arguments must all be instances of Number, torch.Tensor or objects implementing __torch_function__."
        )
    tensors = [value for value in values if isinstance(value, Tensor)]
    options = {"dtype": tensors[0].dtype, "device": tensors[0].device} if tensors else {"dtype": get_default_dtype()}
    return broadcast_tensors(*(value if isinstance(value, Tensor) else tensor(value, **options) for value in values))


def _standard_normal(shape: tuple[int, ...], dtype: dtype, device: device) -> Tensor:
    """Return standard normal numbers."""
    return aten.normal(aten.zeros(shape, dtype=dtype, device=device), aten.ones(shape, dtype=dtype, device=device))


def logits_to_probs(logits: Tensor, is_binary: bool = False) -> Tensor:
    """Return probabilities of log odds (`is_binary`), or of unnormalised log probabilities along the last dimension."""
    return aten.sigmoid(logits) if is_binary else aten.softmax(logits, -1)


def clamp_probs(probs: Tensor) -> Tensor:
    """Return `probs` clamped to the open interval from 0 to 1 by the dtype's epsilon."""
    eps = finfo(probs.dtype).eps
    return probs.clamp(min=eps, max=1 - eps)


def probs_to_logits(probs: Tensor, is_binary: bool = False) -> Tensor:
    """Return the logits of probabilities, finite also for 0 and 1: the inverse of `logits_to_probs`."""
    inside = clamp_probs(probs)
    return inside.log() - (-inside).log1p() if is_binary else inside.log()


class lazy_property:
    """A property that is computed on first access, with gradients recorded, and then cached as the instance's attribute."""

    def __init__(self, wrapped: Callable[[Any], Any]):
        self.wrapped = wrapped
        functools.update_wrapper(self, wrapped)

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        if instance is None:
            return property(self.wrapped)
        with enable_grad():
            value = self.wrapped(instance)
        setattr(instance, self.wrapped.__name__, value)
        return value


def tril_matrix_to_vec(mat: Tensor, diag: int = 0) -> Tensor:
    """Return the elements of the lower triangles (up to diagonal `diag`) of matrices (..., N, N), row by row."""
    size = mat.shape[-1]
    if not -size <= diag < size:
        raise ValueError(f"diag ({diag}) provided is outside [{-size}, {size - 1}].")
    rows = aten.tril_indices(size, size, diag)
    return mat[..., rows[0], rows[1]]


def vec_to_tril_matrix(vec: Tensor, diag: int = 0) -> Tensor:
    """Return the lower triangular matrices that `tril_matrix_to_vec` turns into `vec`. ValueError where no size fits."""
    exact = (math.sqrt((1 + 2 * diag) ** 2 + 8 * vec.shape[-1] + 4 * abs(diag) * (diag + 1)) - 1 - 2 * diag) / 2
    size = round(exact)
    if not math.isclose(size, exact, abs_tol=finfo(vec.dtype).eps):
        raise ValueError(
            f"The size of last dimension is {vec.shape[-1]} which cannot be expressed as the lower triangular part of a "
            "square D x D matrix."
        )
    rows = aten.tril_indices(size, size, diag)
    mat = vec.new_zeros((*vec.shape[:-1], size, size))
    mat[..., rows[0], rows[1]] = vec
    return mat


def sum_rightmost(value: Any, dims: int) -> Any:
    """Return `value` summed over its last `dims` dimensions."""
    return value.sum(tuple(range(-dims, 0))) if dims else value


_sum_rightmost = sum_rightmost
