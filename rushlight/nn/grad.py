"""`torch.nn.grad`: the gradients of convolutions as functions."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from rushlight.core.tensor import Tensor
from rushlight.nn.functional.common import as_tuple
from rushlight.ops.packet import namespaces

aten = namespaces.namespace("aten")

Sizes = int | Sequence[int]


def _backward(
    dims: int,
    grad_output: Tensor,
    input: Tensor,
    weight: Tensor,
    options: tuple[Sizes, Sizes, Sizes],
    groups: int,
    wanted: list[bool],
) -> tuple[Tensor, ...]:
    stride, padding, dilation = (as_tuple(value, dims) for value in options)
    zeros = (0,) * dims
    return aten.convolution_backward.default(
        grad_output, input, weight, None, stride, padding, dilation, False, zeros, groups, wanted
    )


def _input_gradient(dims: int) -> Callable:
    def gradient(
        input_size: Sequence[int],
        weight: Tensor,
        grad_output: Tensor,
        stride: Sizes = 1,
        padding: Sizes = 0,
        dilation: Sizes = 1,
        groups: int = 1,
    ) -> Tensor:
        input = grad_output.new_empty([1]).expand(input_size)
        options = (stride, padding, dilation)
        return _backward(dims, grad_output, input, weight, options, groups, [True, False, False])[0]

    gradient.__name__ = gradient.__qualname__ = f"conv{dims}d_input"
    gradient.__doc__ = f"The gradient of conv{dims}d for its input, of shape `input_size`."
    return gradient


def _weight_gradient(dims: int) -> Callable:
    def gradient(
        input: Tensor,
        weight_size: Sequence[int],
        grad_output: Tensor,
        stride: Sizes = 1,
        padding: Sizes = 0,
        dilation: Sizes = 1,
        groups: int = 1,
    ) -> Tensor:
        weight = grad_output.new_empty([1]).expand(weight_size)
        options = (stride, padding, dilation)
        return _backward(dims, grad_output, input, weight, options, groups, [False, True, False])[1]

    gradient.__name__ = gradient.__qualname__ = f"conv{dims}d_weight"
    gradient.__doc__ = f"The gradient of conv{dims}d for its weight, of shape `weight_size`."
    return gradient


conv1d_input, conv2d_input, conv3d_input = map(_input_gradient, (1, 2, 3))
conv1d_weight, conv2d_weight, conv3d_weight = map(_weight_gradient, (1, 2, 3))
