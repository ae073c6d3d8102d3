"""Convolutions by number of dimensions, all on the primitive `convolution`."""

from __future__ import annotations

from rushlight.ops.composite.network.common import aten, spread
from rushlight.ops.registry import composite


def _add_batch_dim(input, dims: int, name: str):
    """Return the input with a batch dimension, and whether that was added."""
    if input.dim() == dims + 2:
        return input, False
    if input.dim() == dims + 1:
        return input.unsqueeze(0), True
    raise RuntimeError(
        f"Expected {dims + 1}D (unbatched) or {dims + 2}D (batched) input to {name}, "
        f"but got input of size: {list(input.shape)}"
    )


def _check_weight(batched, weight, groups: int, transposed: bool) -> None:
    size, kernel = list(batched.shape), list(weight.shape)
    if weight.dim() < 3:
        raise RuntimeError(f"weight should have at least three dimensions, but got weight of size {kernel}")
    if weight.dim() != batched.dim():
        raise RuntimeError(
            f"Expected {len(kernel)}-dimensional input for {len(kernel)}-dimensional weight {kernel}, "
            f"but got {len(size)}-dimensional input of size {size} instead"
        )
    if not transposed and weight.shape[0] < groups:
        raise RuntimeError(
            f"Given groups={groups}, expected weight to be at least {groups} at dimension 0, "
            f"but got weight of size {kernel} instead"
        )


def _convolve(dims: int, name: str, input, weight, bias, stride, padding, dilation, groups, transposed=None):
    batched, added = _add_batch_dim(input, dims, name)
    _check_weight(batched, weight, groups, transposed is not None)
    result = aten.convolution.default(
        batched,
        weight,
        bias,
        spread(stride, dims, "stride"),
        spread(padding, dims, "padding"),
        spread(dilation, dims, "dilation"),
        transposed is not None,
        spread(0 if transposed is None else transposed, dims, "output_padding"),
        groups,
    )
    return result.squeeze(0) if added else result


def _convolve_padded(dims: int, name: str, input, weight, bias, stride, padding, dilation, groups):
    """Convolve with padding given by a word: "valid" is none, "same" keeps the size."""
    if padding == "valid":
        return _convolve(dims, name, input, weight, bias, stride, 0, dilation, groups)
    if padding != "same":
        raise RuntimeError(f"Invalid padding string: '{padding}'; expected 'valid' or 'same'")
    if any(step != 1 for step in spread(stride, dims, "stride")):
        raise RuntimeError("padding='same' is not supported for strided convolutions")
    batched, added = _add_batch_dim(input, dims, name)
    _check_weight(batched, weight, groups, False)
    totals = [d * (k - 1) for d, k in zip(spread(dilation, dims, "dilation"), weight.shape[2:], strict=True)]
    if any(total % 2 for total in totals):
        # `convolution` pads both sides equally, so `pad` adds the odd element on the right beforehand.
        extra = [amount for total in reversed(totals) for amount in (0, total % 2)]
        batched = aten.constant_pad_nd.default(batched, extra, 0)
    halves = [total // 2 for total in totals]
    result = _convolve(dims, name, batched, weight, bias, stride, halves, dilation, groups)
    return result.squeeze(0) if added else result


def _define(dims: int) -> None:
    name, sizes = f"conv{dims}d", f"SymInt[{dims}]"
    head = "Tensor input, Tensor weight, Tensor? bias=None"
    tail = f"{sizes} dilation=1, SymInt groups=1"

    @composite(f"{name}({head}, {sizes} stride=1, {sizes} padding=0, {tail}) -> Tensor")
    def convolution(input, weight, bias=None, stride=1, padding=0, dilation=1, groups=1):
        return _convolve(dims, name, input, weight, bias, stride, padding, dilation, groups)

    @composite(f'{name}.padding({head}, {sizes} stride=1, str padding="valid", {tail}) -> Tensor')
    def padded(input, weight, bias=None, stride=1, padding="valid", dilation=1, groups=1):
        return _convolve_padded(dims, name, input, weight, bias, stride, padding, dilation, groups)


def _define_transposed(dims: int, overload: str) -> None:
    name, sizes = f"conv_transpose{dims}d", f"SymInt[{dims}]"

    @composite(
        f"{name}{overload}(Tensor input, Tensor weight, Tensor? bias=None, {sizes} stride=1, {sizes} padding=0, "
        f"{sizes} output_padding=0, SymInt groups=1, {sizes} dilation=1) -> Tensor"
    )
    def transposed(input, weight, bias=None, stride=1, padding=0, output_padding=0, groups=1, dilation=1):
        return _convolve(dims, name, input, weight, bias, stride, padding, dilation, groups, output_padding)


for _dims in (1, 2, 3):
    _define(_dims)
    _define_transposed(_dims, "" if _dims == 1 else ".input")
