"""Derivatives of normalisation, pooling, dropout and the negative log-likelihood."""

from __future__ import annotations

from rushlight.autograd.derivative_table import derivative
from rushlight.core.tensor import Tensor
from rushlight.ops.packet import namespaces

aten = namespaces.namespace("aten")


def _differentiate_layer_norm(grad, input, normalized_shape, result1, result2, weight, bias, needs):
    return aten.native_layer_norm_backward(grad, input, normalized_shape, result1, result2, weight, bias, list(needs))


derivative("native_layer_norm", ("input", "weight", "bias"), _differentiate_layer_norm, non_differentiable_outputs=(1, 2))


def _sum_over(value: Tensor, dims: tuple[int, ...]) -> Tensor:
    return aten.sum.dim_IntList(value, dims, True) if dims else value


class _NormalisedValues:
    """Values normalised over `dims`: (input - mean) * rstd. If `live`, mean and rstd depend on the input; else they are
    constants."""

    def __init__(self, input: Tensor, mean: Tensor, rstd: Tensor, dims: tuple[int, ...], live: bool):
        self.rstd, self.dims, self.live = rstd, dims, live
        self.value = (input - mean) * rstd
        self.count = 1
        for dim in dims:
            self.count *= input.size(dim)

    def mean(self, value: Tensor) -> Tensor:
        """Return the mean over the normalised dimensions."""
        return _sum_over(value, self.dims) / self.count

    def back(self, grad: Tensor) -> Tensor:
        """Return the gradient of the input from that of the normalised value; a symmetric linear map."""
        if not self.live:
            return grad * self.rstd
        return self.rstd * (grad - self.mean(grad) - self.value * self.mean(grad * self.value))

    def back_twice(self, grad: Tensor, outer: Tensor) -> Tensor:
        """Return the gradient of <outer, back(grad)> with respect to the input."""
        if not self.live:
            return outer.new_zeros(outer.shape)
        along_grad, along_outer = self.mean(grad * self.value), self.mean(outer * self.value)
        through_value = -self.rstd * (outer * along_grad + grad * along_outer)
        through_rstd = self.mean(outer * grad) - self.mean(outer) * self.mean(grad) - along_outer * along_grad
        return self.back(through_value) - through_rstd * self.rstd * self.rstd * self.value


def _differentiate_normalisation_twice(grads, grad_output, weight, normalised, reduce, needs):
    """Compute second-order gradients of (grad_output, input, weight), from the gradients of the first backward's results.

    `weight` broadcasts against the input, and `reduce` sums a tensor of the input's shape to the weight's.
    """
    to_input, to_weight, to_bias = grads
    scaled = grad_output if weight is None else grad_output * weight
    for_grad, for_input, for_weight = None, None, None
    if to_input is not None:
        moved = normalised.back(to_input)
        for_grad = moved if weight is None else moved * weight
        for_input = normalised.back_twice(scaled, to_input)
        for_weight = reduce(grad_output * moved) if needs[2] else None
    if to_weight is not None:
        for_grad = _add(for_grad, to_weight * normalised.value)
        for_input = _add(for_input, normalised.back(to_weight * grad_output))
    if to_bias is not None:
        for_grad = _add(for_grad, to_bias.expand(grad_output.shape))
    return for_grad, for_input, for_weight


def _add(first: Tensor | None, second: Tensor) -> Tensor:
    return second if first is None else first + second


def _differentiate_layer_norm_twice(grads, grad_out, input, normalized_shape, mean, rstd, weight, needs):
    first = input.dim() - len(normalized_shape)
    normalised = _NormalisedValues(input, mean, rstd, tuple(range(first, input.dim())), live=True)

    def reduce(value: Tensor) -> Tensor:
        return _sum_over(value, tuple(range(first))).reshape(normalized_shape)

    return _differentiate_normalisation_twice(grads, grad_out, weight, normalised, reduce, needs)


derivative("native_layer_norm_backward", ("grad_out", "input", "weight"), _differentiate_layer_norm_twice)


def _differentiate_batch_norm(
    grad, input, weight, running_mean, running_var, result1, result2, training, eps, needs
):  # fmt: skip
    return aten.native_batch_norm_backward(
        grad, input, weight, running_mean, running_var, result1, result2, training, eps, list(needs)
    )


def _differentiate_batch_norm_in_training(
    grad, input, weight, running_mean_unchecked, running_var_unchecked, result1, result2, training, eps, needs
):  # fmt: skip
    """Differentiate batch normalisation in training. The running statistics are unchecked: later calls write to them, and the
    backward in training does not read them."""
    return _differentiate_batch_norm(
        grad, input, weight, running_mean_unchecked, running_var_unchecked, result1, result2, training, eps, needs
    )


derivative(
    "native_batch_norm", ("input", "weight", "bias"), _differentiate_batch_norm_in_training, non_differentiable_outputs=(1, 2)
)


def _differentiate_batch_norm_no_training(grad, input, weight, running_mean, running_var, result1, result2, eps, needs):
    return _differentiate_batch_norm(grad, input, weight, running_mean, running_var, result1, result2, False, eps, needs)


derivative(
    "_native_batch_norm_legit_no_training", ("input", "weight", "bias"), _differentiate_batch_norm_no_training,
    non_differentiable_outputs=(1, 2),
)  # fmt: skip


def _differentiate_batch_norm_twice(
    grads, grad_out, input, weight, running_mean, running_var, save_mean, save_invstd, train, eps, needs
):  # fmt: skip
    shape = (1, -1, *(1,) * (input.dim() - 2))
    others = (0, *range(2, input.dim()))
    mean = save_mean if train else running_mean
    rstd = save_invstd if train else (running_var + eps).rsqrt()
    normalised = _NormalisedValues(input, mean.reshape(shape), rstd.reshape(shape), others, live=train)
    to_input, *to_affine = grads
    to_affine = [None if value is None else value.reshape(shape) for value in to_affine]

    def reduce(value: Tensor) -> Tensor:
        return _sum_over(value, others).reshape((-1,))

    broadcast = None if weight is None else weight.reshape(shape)
    return _differentiate_normalisation_twice((to_input, *to_affine), grad_out, broadcast, normalised, reduce, needs)


derivative("native_batch_norm_backward", ("grad_out", "input", "weight"), _differentiate_batch_norm_twice)


def _differentiate_dropout(grad, result1, p, train):
    if train is False:
        return grad
    return grad * (result1 * (0.0 if p == 1 else 1 / (1 - p)))


derivative("native_dropout", input=_differentiate_dropout, non_differentiable_outputs=(1,))


def _differentiate_max_pool(grad, self, kernel_size, stride, padding, dilation, ceil_mode, result1):
    return aten.max_pool2d_with_indices_backward(
        grad, self, kernel_size, stride, padding, dilation, ceil_mode, result1
    )


def _differentiate_max_pool_twice(grad, indices):
    chosen = grad.flatten(-2).gather(-1, indices.flatten(-2))
    return chosen.reshape(indices.shape)


derivative("max_pool2d_with_indices", self=_differentiate_max_pool, non_differentiable_outputs=(1,))
derivative(
    "max_pool2d_with_indices_backward",
    grad_output=_differentiate_max_pool_twice,
    self=lambda grad, self_sizes: grad.new_zeros(self_sizes),
)


def _differentiate_avg_pool(grad, self, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override):
    return aten.avg_pool2d_backward(
        grad, self, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override
    )


def _differentiate_avg_pool_twice(grad, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override):
    return aten.avg_pool2d(grad, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override)


derivative("avg_pool2d", self=_differentiate_avg_pool)
derivative("avg_pool2d_backward", grad_output=_differentiate_avg_pool_twice)


derivative("_adaptive_avg_pool2d", self=lambda grad, self: aten._adaptive_avg_pool2d_backward(grad, self))
derivative(
    "_adaptive_avg_pool2d_backward",
    grad_output=lambda grad, grad_output_sizes: aten._adaptive_avg_pool2d(grad, grad_output_sizes[-2:]),
    self=lambda grad, self_sizes: grad.new_zeros(self_sizes),
)
derivative(
    "adaptive_max_pool2d",
    self=lambda grad, self, result1: aten.adaptive_max_pool2d_backward(grad, self, result1),
    non_differentiable_outputs=(1,),
)
derivative(
    "adaptive_max_pool2d_backward",
    grad_output=_differentiate_max_pool_twice,
    self=lambda grad, self_sizes: grad.new_zeros(self_sizes),
)


def _differentiate_nll_loss(grad, self, target, weight, reduction, ignore_index, result1):
    return aten.nll_loss_backward(grad, self, target, weight, reduction, ignore_index, result1)


def _differentiate_nll_loss_twice(grad, target, weight, reduction, ignore_index):
    return aten.nll_loss_forward(grad, target, weight, reduction, ignore_index)[0]


derivative("nll_loss_forward", self=_differentiate_nll_loss, non_differentiable_outputs=(1,))
derivative("nll_loss_backward", grad_output=_differentiate_nll_loss_twice)
