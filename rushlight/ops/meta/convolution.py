"""Checks, sizes and Meta rules of convolution: 1, 2 or 3 spatial dimensions, plain or transposed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from rushlight.core.tensor import Tensor
from rushlight.ops.meta.checks import dims_of, kept_format_strides
from rushlight.ops.meta.common import empty
from rushlight.ops.registry import meta


class Geometry(NamedTuple):
    """The parameters of a convolution, one int per spatial dimension."""

    stride: tuple[int, ...]
    padding: tuple[int, ...]
    dilation: tuple[int, ...]
    transposed: bool
    output_padding: tuple[int, ...]
    groups: int

    def spatial_sizes(self, sizes: Sequence[int], kernel: Sequence[int]) -> tuple[int, ...]:
        """Return the output's spatial sizes for the input's."""
        result = []
        for dim, (size, taps) in enumerate(zip(sizes, kernel, strict=True)):
            reach = self.dilation[dim] * (taps - 1) + 1
            if self.transposed:
                grown = (size - 1) * self.stride[dim] + reach + self.output_padding[dim]
                result.append(grown - 2 * self.padding[dim])
            else:
                result.append((size + 2 * self.padding[dim] - reach) // self.stride[dim] + 1)
        return tuple(result)


def make_geometry(
    rank: int,
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
    transposed: bool,
    output_padding: Sequence[int],
    groups: int,
) -> Geometry:
    """Return the parameters for `rank` spatial dimensions; RuntimeError where they are invalid."""
    given = {"stride": stride, "padding": padding, "dilation": dilation, "output_padding": output_padding}
    whole = {role: dims_of(value, rank, "convolution", role) for role, value in given.items()}
    for role, least in (("stride", 1), ("padding", 0), ("dilation", 1), ("output_padding", 0)):
        if any(value < least for value in whole[role]):
            kind = "non-positive" if least else "negative"
            hint = "; dilation should be greater than zero" if role == "dilation" else ""
            raise RuntimeError(f"convolution: {kind} {role} is not supported, got {list(whole[role])}{hint}")
    if groups <= 0:
        raise RuntimeError(f"convolution: non-positive groups is not supported, got {groups}")
    if transposed:
        for extra, step, spread in zip(whole["output_padding"], whole["stride"], whole["dilation"], strict=True):
            if extra >= step and extra >= spread:
                raise RuntimeError(
                    "output padding must be smaller than either stride or dilation, but got output_padding "
                    f"{extra}, stride {step}, dilation {spread}"
                )
    return Geometry(**whole, transposed=transposed, groups=groups)


def check_convolution(input: Tensor, weight: Tensor, bias: Tensor | None, geometry: Geometry) -> tuple[int, ...]:
    """Return the output's sizes; RuntimeError when input, weight and bias do not fit together."""
    sizes, kernel = input._impl.sizes, weight._impl.sizes
    if len(sizes) != len(kernel) or not 3 <= len(sizes) <= 5:
        raise RuntimeError(
            f"Expected {len(kernel)}-dimensional input for {len(kernel)}-dimensional weight {list(kernel)}, but got "
            f"{len(sizes)}-dimensional input of size {list(sizes)} instead (convolution takes 3 to 5 dimensions)"
        )
    _check_dtypes(input, weight, bias)
    outputs = _check_channels(sizes, kernel, geometry)
    if bias is not None and bias._impl.sizes != (outputs,):
        raise RuntimeError(
            f"Given transposed={int(geometry.transposed)}, weight of size {list(kernel)}, expected bias to be "
            f"1-dimensional with {outputs} elements, but got bias of size {list(bias.shape)} instead"
        )
    spatial = geometry.spatial_sizes(sizes[2:], kernel[2:])
    if not geometry.transposed:
        _check_kernel_fits(sizes, kernel, geometry)
    if any(size < 0 for size in spatial):
        raise RuntimeError(f"convolution: the output would have negative sizes {list(spatial)} for input {list(sizes)}")
    return (sizes[0], outputs, *spatial)


def _check_dtypes(input: Tensor, weight: Tensor, bias: Tensor | None) -> None:
    for role, other in (("weight", weight), ("bias", bias)):
        if other is not None and other.dtype is not input.dtype:
            raise RuntimeError(
                f"expected scalar type {input.dtype.scalar_name} but found {other.dtype.scalar_name}: Input type "
                f"({input.dtype}) and {role} type ({other.dtype}) should be the same"
            )


def _check_channels(sizes: tuple[int, ...], kernel: tuple[int, ...], geometry: Geometry) -> int:
    """Return the number of output channels."""
    groups = geometry.groups
    prefix = f"Given groups={groups}, weight of size {list(kernel)}"
    if geometry.transposed:
        if kernel[0] != sizes[1]:
            raise RuntimeError(
                f"Given transposed=1, weight of size {list(kernel)}, expected input{list(sizes)} to have {kernel[0]} "
                f"channels, but got {sizes[1]} channels instead"
            )
        if kernel[0] % groups:
            raise RuntimeError(f"{prefix}, expected weight to be divisible by {groups} at dimension 0")
        return kernel[1] * groups
    if kernel[1] * groups != sizes[1]:
        raise RuntimeError(
            f"{prefix}, expected input{list(sizes)} to have {kernel[1] * groups} channels, but got {sizes[1]} channels "
            "instead"
        )
    if kernel[0] % groups:
        raise RuntimeError(f"{prefix}, expected weight to be divisible by {groups} at dimension 0")
    return kernel[0]


def _check_kernel_fits(sizes: tuple[int, ...], kernel: tuple[int, ...], geometry: Geometry) -> None:
    padded = [size + 2 * pad for size, pad in zip(sizes[2:], geometry.padding, strict=True)]
    reach = [spread * (taps - 1) + 1 for spread, taps in zip(geometry.dilation, kernel[2:], strict=True)]
    if any(have < need for have, need in zip(padded, reach, strict=True)):
        raise RuntimeError(
            f"Calculated padded input size per channel: ({' x '.join(map(str, padded))}). Kernel size: "
            f"({' x '.join(map(str, reach))}). Kernel size can't be greater than actual input size"
        )


@meta("convolution")
def convolution(input, weight, bias, stride, padding, dilation, transposed, output_padding, groups):
    geometry = make_geometry(weight.dim() - 2, stride, padding, dilation, transposed, output_padding, groups)
    sizes = check_convolution(input, weight, bias, geometry)
    return empty(sizes, input.dtype, kept_format_strides(sizes, input, weight))


def check_convolution_backward(grad_output: Tensor, input: Tensor, weight: Tensor, geometry: Geometry) -> None:
    """Raise RuntimeError unless the gradient has the output's shape."""
    sizes = check_convolution(input, weight, None, geometry)
    if grad_output._impl.sizes != sizes:
        raise RuntimeError(
            f"convolution_backward: expected grad_output of shape {list(sizes)}, but got {list(grad_output.shape)}"
        )


@meta("convolution_backward")
def convolution_backward(
    grad_output, input, weight, bias_sizes, stride, padding, dilation, transposed, output_padding, groups, output_mask
):  # fmt: skip
    geometry = make_geometry(weight.dim() - 2, stride, padding, dilation, transposed, output_padding, groups)
    check_convolution_backward(grad_output, input, weight, geometry)
    return (
        empty(input._impl.sizes, input.dtype, kept_format_strides(input._impl.sizes, input, weight))
        if output_mask[0]
        else None,
        empty(weight._impl.sizes, weight.dtype, kept_format_strides(weight._impl.sizes, input, weight))
        if output_mask[1]
        else None,
        empty(grad_output._impl.sizes[1:2], grad_output.dtype) if output_mask[2] else None,
    )
