"""Derivatives of matrix products, convolution and attention."""

from __future__ import annotations

from rushlight.autograd.derivative_table import derivative
from rushlight.autograd.derivatives.complex import conjugate
from rushlight.autograd.derivatives.pointwise import times
from rushlight.core.tensor import Tensor
from rushlight.ops.packet import namespaces

aten = namespaces.namespace("aten")


def _conjugate_transpose(matrix: Tensor) -> Tensor:
    """Return the matrix, or each of a batch, transposed and conjugated."""
    return conjugate(matrix.permute((1, 0) if matrix.dim() == 2 else (0, 2, 1)))


def _gradient_of_second(grad: Tensor, first: Tensor, geometry: tuple) -> Tensor:
    """Return the gradient of the second factor. It gets column-major strides where the factor has them, as in a linear
    layer."""
    (rows, columns), strides = geometry[0], geometry[1]
    if tuple(strides) == (1, rows) and columns > 1:
        return aten.mm(grad.permute((1, 0)), conjugate(first)).permute((1, 0))
    return aten.mm(_conjugate_transpose(first), grad)


derivative(
    "mm",
    self=lambda grad, mat2: aten.mm(grad, _conjugate_transpose(mat2)),
    mat2=lambda grad, self, mat2_geometry: _gradient_of_second(grad, self, mat2_geometry),
)
derivative(
    "addmm",
    self=lambda grad, beta: times(grad, conjugate(beta)),
    mat1=lambda grad, mat2, alpha: times(aten.mm(grad, _conjugate_transpose(mat2)), conjugate(alpha)),
    mat2=lambda grad, mat1, mat2_geometry, alpha: times(_gradient_of_second(grad, mat1, mat2_geometry), conjugate(alpha)),
)
derivative(
    "bmm",
    self=lambda grad, mat2: aten.bmm(grad, _conjugate_transpose(mat2)),
    mat2=lambda grad, self: aten.bmm(_conjugate_transpose(self), grad),
)


def _differentiate_convolution(
    grad, input, weight, bias_sizes, stride, padding, dilation, transposed, output_padding, groups, needs
):  # fmt: skip
    geometry = (stride, padding, dilation, transposed, output_padding, groups)
    bias_sizes = list(bias_sizes) or None
    return aten.convolution_backward(grad, conjugate(input), conjugate(weight), bias_sizes, *geometry, list(needs))


derivative("convolution", ("input", "weight", "bias"), _differentiate_convolution)


def _differentiate_convolution_backward(
    grads, grad_output, input, weight, stride, padding, dilation, transposed, output_padding, groups, needs
):  # fmt: skip
    """Differentiate the gradients of a convolution. Convolution is linear in the input, the weight and the bias, so its
    gradients are linear in each other."""
    geometry = (stride, padding, dilation, transposed, output_padding, groups)
    to_input, to_weight, to_bias = grads
    terms = []
    if to_input is not None:
        terms.append(aten.convolution(to_input, conjugate(weight), None, *geometry))
    if to_weight is not None:
        terms.append(aten.convolution(conjugate(input), to_weight, None, *geometry))
    if to_bias is not None:
        terms.append(to_bias.reshape((1, -1, *(1,) * (grad_output.dim() - 2))).expand(grad_output.shape))
    back, start = aten.convolution_backward, conjugate(grad_output)
    return (
        sum(terms[1:], terms[0]) if needs[0] and terms else None,
        back(start, input, to_weight, None, *geometry, [True, False, False])[0]
        if needs[1] and to_weight is not None
        else None,
        back(start, to_input, weight, None, *geometry, [False, True, False])[1]
        if needs[2] and to_input is not None
        else None,
    )


derivative("convolution_backward", ("grad_output", "input", "weight"), _differentiate_convolution_backward)


def _differentiate_attention(grad, query, key, value, result0, result1, dropout_p, is_causal, attn_mask, scale):
    return aten._scaled_dot_product_flash_attention_for_cpu_backward(
        grad, query, key, value, result0, result1, dropout_p, is_causal, attn_mask=attn_mask, scale=scale
    )


derivative(
    "_scaled_dot_product_flash_attention_for_cpu",
    ("query", "key", "value"),
    _differentiate_attention,
    non_differentiable_outputs=(1,),
)


def refuse_double_backward(name: str):
    """Return a formula that raises RuntimeError: this gradient cannot be differentiated again."""

    def raise_error():
        raise NotImplementedError(f"derivative for aten::{name} is not implemented: {name} cannot be differentiated twice")

    return raise_error


derivative(
    "_scaled_dot_product_flash_attention_for_cpu_backward",
    ("grad_out", "query", "key", "value", "out"),
    refuse_double_backward("_scaled_dot_product_flash_attention_for_cpu_backward"),
)
