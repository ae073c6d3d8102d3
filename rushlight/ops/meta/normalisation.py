"""Checks and Meta rules of layer and batch normalisation, and of dropout."""

from __future__ import annotations

from collections.abc import Sequence

from rushlight.core.dtype import bool_, dtype
from rushlight.core.tensor import Tensor
from rushlight.ops.meta.checks import kept_format_strides, require_floating
from rushlight.ops.meta.common import empty
from rushlight.ops.meta.sorting import kept_strides
from rushlight.ops.registry import meta


def check_layer_norm(
    input: Tensor, normalized_shape: Sequence[int], weight: Tensor | None, bias: Tensor | None
) -> tuple[int, ...]:
    """Return the sizes of the statistics: the input's, with normalised dimensions of size 1."""
    shape, sizes = tuple(normalized_shape), input._impl.sizes
    if not shape:
        raise RuntimeError(
            "Expected normalized_shape to be at least 1-dimensional, i.e., containing at least one element, but got "
            "normalized_shape = []"
        )
    for role, tensor in (("weight", weight), ("bias", bias)):
        if tensor is not None and tensor._impl.sizes != shape:
            raise RuntimeError(
                f"Expected {role} to be of same shape as normalized_shape, but got {role} of shape "
                f"{list(tensor.shape)} and normalized_shape = {list(shape)}"
            )
    if len(sizes) < len(shape) or sizes[len(sizes) - len(shape) :] != shape:
        wanted = ", ".join(map(str, ("*", *shape)))
        raise RuntimeError(
            f"Given normalized_shape={list(shape)}, expected input with shape [{wanted}], but got input of "
            f"size{list(sizes)}"
        )
    require_floating("LayerNormKernelImpl", input)
    check_parameter_dtypes("native_layer_norm", input, weight=weight, bias=bias)
    return (*sizes[: len(sizes) - len(shape)], *(1,) * len(shape))


def check_parameter_dtypes(name: str, input: Tensor, **parameters: Tensor | None) -> None:
    # 16-bit inputs may come with float32 parameters.
    for role, tensor in parameters.items():
        if tensor is not None and tensor.dtype is not input.dtype:
            if tensor.dtype.name != "float32" or input.dtype.itemsize != 2:
                raise RuntimeError(f"{name}: expected {role} to have dtype {input.dtype}, but got {tensor.dtype}")


def statistics_dtype(input: Tensor, *parameters: Tensor | None) -> dtype:
    """Return the dtype of means and deviations: the parameters', or the input's without parameters."""
    return next((tensor.dtype for tensor in parameters if tensor is not None), input.dtype)


@meta("native_layer_norm")
def layer_norm(input, normalized_shape, weight, bias, eps):
    sizes = check_layer_norm(input, normalized_shape, weight, bias)
    kind = statistics_dtype(input, weight, bias)
    return empty(input._impl.sizes, input.dtype), empty(sizes, kind), empty(sizes, kind)


@meta("native_layer_norm_backward")
def layer_norm_backward(grad_out, input, normalized_shape, mean, rstd, weight, bias, output_mask):
    check_layer_norm(input, normalized_shape, weight, bias)
    affine = weight if weight is not None else input
    return (
        empty(input._impl.sizes, input.dtype) if output_mask[0] else None,
        empty(normalized_shape, affine.dtype) if output_mask[1] and weight is not None else None,
        empty(normalized_shape, affine.dtype) if output_mask[2] and bias is not None else None,
    )


def check_batch_norm(
    input: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    running_mean: Tensor | None,
    running_var: Tensor | None,
    training: bool,
) -> int:
    """Return the number of channels; RuntimeError unless every parameter has one element per channel."""
    if input.dim() < 2:
        raise RuntimeError(f"batch_norm: expected input of 2 or more dimensions, got shape {list(input.shape)}")
    channels = input._impl.sizes[1]
    parameters = {"weight": weight, "bias": bias, "running_mean": running_mean, "running_var": running_var}
    for role, tensor in parameters.items():
        if tensor is not None and tensor.numel() != channels:
            raise RuntimeError(f"{role} should contain {channels} elements not {tensor.numel()}")
    for role, tensor in (("running_mean", running_mean), ("running_var", running_var)):
        if tensor is not None and tensor.dim() != 1:
            raise RuntimeError(f"batch_norm: expected {role} of 1 dimension, got shape {list(tensor.shape)}")
    if (running_mean is None) != (running_var is None):
        raise ValueError("running_mean and running_var must either both be None or neither be None")
    if not training and running_mean is None:
        raise RuntimeError("running_mean and running_var must be defined in evaluation mode")
    require_floating("batch_norm", input)
    check_parameter_dtypes("native_batch_norm", input, **parameters)
    return channels


def batch_statistics(input: Tensor, channels: int, training: bool, *parameters: Tensor | None) -> tuple[int, dtype]:
    """Return the number of saved statistics, 0 in evaluation mode, and their dtype."""
    return (channels if training else 0), statistics_dtype(input, *parameters)


@meta("native_batch_norm")
def batch_norm(input, weight, bias, running_mean, running_var, training, momentum, eps):
    channels = check_batch_norm(input, weight, bias, running_mean, running_var, training)
    count, kind = batch_statistics(input, channels, training, weight, bias)
    sizes = input._impl.sizes
    return empty(sizes, input.dtype, kept_format_strides(sizes, input)), empty((count,), kind), empty((count,), kind)


@meta("_native_batch_norm_legit_no_training")
def batch_norm_no_training(input, weight, bias, running_mean, running_var, momentum, eps):
    return batch_norm(input, weight, bias, running_mean, running_var, False, momentum, eps)


@meta("native_batch_norm_backward")
def batch_norm_backward(
    grad_out, input, weight, running_mean, running_var, save_mean, save_invstd, train, eps, output_mask
):  # fmt: skip
    channels = check_batch_norm(input, weight, None, running_mean, running_var, train)
    sizes, kind = input._impl.sizes, statistics_dtype(input, weight)
    return (
        empty(sizes, input.dtype, kept_format_strides(sizes, input)) if output_mask[0] else None,
        empty((channels,), kind) if output_mask[1] else None,
        empty((channels,), kind) if output_mask[2] else None,
    )


def check_dropout(input: Tensor, p: float) -> None:
    """Raise RuntimeError unless `p` is a probability."""
    if not 0 <= p <= 1:
        raise RuntimeError(f"dropout probability has to be between 0 and 1, but got {p}")
    require_floating("native_dropout", input)


@meta("native_dropout")
def native_dropout(input, p, train):
    check_dropout(input, p)
    sizes, strides = input._impl.sizes, kept_strides(input)
    return empty(sizes, input.dtype, strides), empty(sizes, bool_, strides)
