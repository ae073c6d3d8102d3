"""Checks, sizes and Meta rules of 2-dimensional pooling."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from rushlight.core.dtype import int64
from rushlight.core.tensor import Tensor
from rushlight.ops.meta.checks import dims_of, kept_format_strides, not_implemented
from rushlight.ops.meta.common import empty
from rushlight.ops.registry import meta


class Window(NamedTuple):
    """A pooling window along one dimension: its parameters and number of outputs."""

    size: int
    stride: int
    padding: int
    dilation: int
    inputs: int
    outputs: int

    @property
    def padding_after(self) -> int:
        """The number of padding elements behind the input that windows reach, which exceeds `padding` in ceil mode."""
        last = (self.outputs - 1) * self.stride + self.dilation * (self.size - 1) + 1
        return max(last - self.padding - self.inputs, 0)


def _output_size(inputs: int, size: int, stride: int, padding: int, dilation: int, ceil_mode: bool) -> int:
    room = inputs + 2 * padding - dilation * (size - 1) - 1
    outputs = (room + (stride - 1 if ceil_mode else 0)) // stride + 1
    # In ceil mode the last window must start inside the input or the padding before it.
    if ceil_mode and (outputs - 1) * stride >= inputs + padding:
        outputs -= 1
    return outputs


def make_windows(
    self: Tensor,
    kernel_size: Sequence[int],
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
    ceil_mode: bool,
    name: str,
) -> tuple[Window, Window]:
    """Return the windows along height and width; RuntimeError where the parameters or the input are invalid."""
    return windows_over(self._impl.sizes, kernel_size, stride, padding, dilation, ceil_mode, name)


def windows_over(
    sizes: tuple[int, ...],
    kernel_size: Sequence[int],
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
    ceil_mode: bool,
    name: str,
) -> tuple[Window, Window]:
    """Return `make_windows` for an input of these sizes."""
    kernel = dims_of(kernel_size, 2, name, "kernel_size")
    steps = kernel if not isinstance(stride, int) and not stride else dims_of(stride, 2, name, "stride")
    pads, spread = dims_of(padding, 2, name, "padding"), dims_of(dilation, 2, name, "dilation")
    _check_parameters(name, kernel, steps, pads, spread)
    _check_input(name, sizes)
    windows = []
    for dim in (0, 1):
        parameters = (kernel[dim], steps[dim], pads[dim], spread[dim])
        inputs = sizes[dim - 2]
        windows.append(Window(*parameters, inputs, _output_size(inputs, *parameters, ceil_mode)))
    if any(window.outputs < 1 for window in windows):
        planes = sizes[-3]
        raise RuntimeError(
            f"Given input size: ({planes}x{sizes[-2]}x{sizes[-1]}). Calculated output size: "
            f"({planes}x{windows[0].outputs}x{windows[1].outputs}). Output size is too small ({name})"
        )
    return windows[0], windows[1]


def _check_input(name: str, sizes: tuple[int, ...]) -> None:
    if len(sizes) not in (3, 4):
        raise RuntimeError(f"{name}: non-empty 3D or 4D (batch mode) tensor expected for input, but got: {list(sizes)}")
    # The batch may be empty, and so may the channels of a single image, which torch accepts.
    if 0 in sizes[len(sizes) - 3 :]:
        raise RuntimeError(
            f"{name}: Expected 3D or 4D (batch mode) tensor with optional 0 dim batch size for input, but got: {list(sizes)}"
        )


def _check_parameters(name: str, kernel: tuple, stride: tuple, padding: tuple, dilation: tuple) -> None:
    for role, values in (("kernel size", kernel), ("stride", stride), ("dilation", dilation)):
        if any(value <= 0 for value in values):
            raise RuntimeError(f"{name}: {role} should be greater than zero, but got {list(values)}")
    for size, pad, spread in zip(kernel, padding, dilation, strict=True):
        if pad < 0:
            raise RuntimeError(f"pad must be non-negative, but got pad={pad} ({name})")
        if pad > ((size - 1) * spread + 1) // 2:
            raise RuntimeError(
                f"pad should be at most half of effective kernel size, but got pad={pad}, kernel_size={size} and "
                f"dilation={spread}"
            )


def pooled_sizes(self: Tensor, windows: tuple[Window, Window]) -> tuple[int, ...]:
    """Return the output's sizes."""
    return (*self._impl.sizes[:-2], windows[0].outputs, windows[1].outputs)


@meta("max_pool2d_with_indices")
def max_pool2d(self, kernel_size, stride=(), padding=0, dilation=1, ceil_mode=False):
    sizes = pooled_sizes(self, make_windows(self, kernel_size, stride, padding, dilation, ceil_mode, "max_pool2d"))
    strides = kept_format_strides(sizes, self)
    return empty(sizes, self.dtype, strides), empty(sizes, int64, strides)


def check_pool_backward(grad_output: Tensor, self: Tensor, windows: tuple[Window, Window], name: str) -> None:
    """Raise RuntimeError unless the gradient has the output's shape."""
    sizes = pooled_sizes(self, windows)
    if grad_output._impl.sizes != sizes:
        raise RuntimeError(f"{name}: expected grad_output of shape {list(sizes)}, but got {list(grad_output.shape)}")


@meta("max_pool2d_with_indices_backward")
def max_pool2d_backward(grad_output, self, kernel_size, stride, padding, dilation, ceil_mode, indices):
    name = "max_pool2d_backward"
    check_pool_backward(
        grad_output, self, make_windows(self, kernel_size, stride, padding, dilation, ceil_mode, name), name
    )
    return empty(self._impl.sizes, grad_output.dtype, kept_format_strides(self._impl.sizes, self))


def check_divisor(divisor_override: int | None) -> None:
    """Raise RuntimeError for a divisor of zero."""
    if divisor_override == 0:
        raise RuntimeError("avg_pool2d: divisor must be not zero")


def require_poolable(name: str, tensor: Tensor) -> None:
    """Raise NotImplementedError unless average pooling supports the dtype: floating ones, and int64."""
    if not tensor.dtype.is_floating_point and tensor.dtype is not int64:
        raise not_implemented(name, tensor.dtype)


@meta("avg_pool2d")
def avg_pool2d(
    self, kernel_size, stride=(), padding=0, ceil_mode=False, count_include_pad=True, divisor_override=None
):  # fmt: skip
    check_divisor(divisor_override)
    require_poolable("avg_pool2d", self)
    sizes = pooled_sizes(self, make_windows(self, kernel_size, stride, padding, 1, ceil_mode, "avg_pool2d"))
    return empty(sizes, self.dtype, kept_format_strides(sizes, self))


@meta("avg_pool2d_backward")
def avg_pool2d_backward(
    grad_output, self, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override
):  # fmt: skip
    check_divisor(divisor_override)
    name = "avg_pool2d_backward"
    check_pool_backward(grad_output, self, make_windows(self, kernel_size, stride, padding, 1, ceil_mode, name), name)
    return empty(self._impl.sizes, grad_output.dtype, kept_format_strides(self._impl.sizes, self))
