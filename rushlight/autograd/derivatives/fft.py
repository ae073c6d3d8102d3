"""Derivatives of Fourier transforms: they are linear, so each gradient is the adjoint transform."""

from __future__ import annotations

from rushlight.autograd.derivative_table import derivative
from rushlight.autograd.derivatives.complex import real_part
from rushlight.autograd.derivatives.views import pad_dim
from rushlight.core.strides import wrap_dim
from rushlight.core.tensor import Tensor
from rushlight.ops.packet import namespaces

aten = namespaces.namespace("aten")


def _differentiate_r2c(grad, self_sizes, dim, normalization, onesided):
    """Return the gradient with 0 for the frequencies that a one-sided transform leaves out."""
    axis = wrap_dim(dim[-1], len(self_sizes))
    if onesided:
        grad = pad_dim(grad, axis, 0, self_sizes[axis] - grad.size(axis))
    return real_part(aten._fft_c2c(grad, dim, normalization, False))


def _double_mirrored(grad: Tensor, spectrum: Tensor, axis: int) -> Tensor:
    """Return `spectrum` with each frequency doubled that also stands for its mirror image, which a one-sided transform
    omits."""
    mirrored = grad.size(axis) - spectrum.size(axis)
    position = aten.arange(spectrum.size(axis), device=grad.device)
    weight = 1 + ((position >= 1) & (position <= mirrored)).to(grad.dtype)
    return spectrum * weight.reshape((-1, *(1,) * (grad.dim() - 1 - axis)))


def _differentiate_c2r(grad, dim, normalization):
    spectrum = aten._fft_r2c(grad, dim, normalization, True)
    return _double_mirrored(grad, spectrum, wrap_dim(dim[-1], grad.dim()))


derivative(
    "_fft_c2c",
    self=lambda grad, dim, normalization, forward: aten._fft_c2c(grad, dim, normalization, not forward),
)
derivative("_fft_r2c", self=_differentiate_r2c)
derivative("_fft_c2r", self=_differentiate_c2r)
