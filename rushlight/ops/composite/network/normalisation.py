"""Normalisation layers, on the primitives native_layer_norm and native_batch_norm."""

from __future__ import annotations

from rushlight.core.dtype import bfloat16, finfo, float16, float32
from rushlight.ops.composite.network.common import aten, in_order_of
from rushlight.ops.meta.normalisation import check_parameter_dtypes
from rushlight.ops.registry import composite


def _check_normalized_shape(input, normalized_shape, weight, bias) -> None:
    shape = list(normalized_shape)
    if not shape:
        raise RuntimeError(
            "Expected normalized_shape to be at least 1-dimensional, i.e., containing at least one element, "
            f"but got normalized_shape = {shape}"
        )
    for name, given in (("weight", weight), ("bias", bias)):
        if given is not None and list(given._impl.sizes) != shape:
            raise RuntimeError(
                f"Expected {name} to be of same shape as normalized_shape, but got {name} of shape {list(given.shape)} "
                f"and normalized_shape = {shape}"
            )
    if list(input._impl.sizes[-len(shape) :]) != shape or input.dim() < len(shape):
        expected = ", ".join(map(str, ["*", *shape]))
        raise RuntimeError(
            f"Given normalized_shape={shape}, expected input with shape [{expected}], "
            f"but got input of size{list(input.shape)}"
        )


@composite(
    "layer_norm(Tensor input, SymInt[] normalized_shape, Tensor? weight=None, Tensor? bias=None, float eps=1e-05, "
    "bool cudnn_enable=True) -> Tensor"
)
def layer_norm(input, normalized_shape, weight=None, bias=None, eps=1e-05, cudnn_enable=True):
    """Normalise to zero mean and unit variance over the last dimensions, then apply weight and bias (Ba et al. 2016)."""
    _check_normalized_shape(input, normalized_shape, weight, bias)
    return aten.native_layer_norm.default(input, list(normalized_shape), weight, bias, eps)[0]


@composite("rms_norm(Tensor input, SymInt[] normalized_shape, Tensor? weight=None, float? eps=None) -> Tensor")
def rms_norm(input, normalized_shape, weight=None, eps=None):
    """Divide by the root mean square over the last dimensions, then multiply by weight (Zhang and Sennrich 2019)."""
    _check_normalized_shape(input, normalized_shape, weight, None)
    eps = finfo(input.dtype).eps if eps is None else eps
    wide = input.to(float32) if input.dtype.itemsize < 4 else input
    dims = list(range(-len(normalized_shape), 0))
    scaled = wide * ((wide * wide).mean(dims, True) + eps).rsqrt()
    return (scaled if weight is None else scaled * weight).to(input.dtype)


@composite(
    "batch_norm(Tensor input, Tensor? weight, Tensor? bias, Tensor? running_mean, Tensor? running_var, "
    "bool training, float momentum, float eps, bool cudnn_enabled) -> Tensor"
)
def batch_norm(input, weight, bias, running_mean, running_var, training, momentum, eps, cudnn_enabled):
    """Normalise each channel (dimension 1); training uses and records the batch's statistics (Ioffe and Szegedy 2015)."""
    if not training and (running_mean is None or running_var is None):
        raise RuntimeError("running_mean and running_var must be defined in evaluation mode")
    if input.numel() == 0:
        return input.clone() if weight is None else input * weight[0]
    channels = input.size(1)
    given = {"running_mean": running_mean, "running_var": running_var, "weight": weight, "bias": bias}
    for name, tensor in given.items():
        if tensor is not None and tensor.numel() != channels:
            raise RuntimeError(f"{name} should contain {channels} elements not {tensor.numel()}")
    if not training:
        return aten._native_batch_norm_legit_no_training.default(
            input, weight, bias, running_mean, running_var, momentum, eps
        )[0]
    return aten.native_batch_norm.default(input, weight, bias, running_mean, running_var, training, momentum, eps)[0]


def _per_channel(parameter, dims: int):
    return parameter.view([1, -1] + [1] * (dims - 2))


@composite(
    "group_norm(Tensor input, int num_groups, Tensor? weight=None, Tensor? bias=None, float eps=1e-05, "
    "bool cudnn_enabled=True) -> Tensor"
)
def group_norm(input, num_groups, weight=None, bias=None, eps=1e-05, cudnn_enabled=True):
    """Normalise each group of channels, then apply weight and bias per channel (Wu and He 2018)."""
    _check_groups(input, num_groups, weight, bias)
    batch, channels, *extents = input.shape
    each = [channels // num_groups, *extents]
    grouped = input.view([batch, num_groups, *each])  # also valid for channels-last images
    if input.dtype in (bfloat16, float16):
        grouped = grouped.to(float32)
    result = aten.native_layer_norm.default(grouped, each, None, None, eps)[0].view(input.shape)
    if weight is not None:
        result = result * _per_channel(weight, input.dim())
    result = (result if bias is None else result + _per_channel(bias, input.dim())).to(input.dtype)
    return in_order_of(input, result)


def _check_groups(input, num_groups, weight, bias) -> None:
    if input.dim() < 2:
        raise RuntimeError(f"Expected at least 2 dimensions for input tensor but received {input.dim()}")
    channels = input.shape[1]
    if num_groups <= 0:
        raise RuntimeError(f"Expected num groups to be greater than 0, got {num_groups}")
    if channels % num_groups:
        raise RuntimeError(
            "Expected number of channels in input to be divisible by num_groups, "
            f"but got input of shape {list(input.shape)} and num_groups={num_groups}"
        )
    for name, given in (("weight", weight), ("bias", bias)):
        if given is not None and list(given.shape) != [channels]:
            raise RuntimeError(
                f"Expected {name} to be a vector of size equal to the number of channels in input, "
                f"but got {name} of shape {list(given.shape)} and input of shape {list(input.shape)}"
            )
    check_parameter_dtypes("group_norm", input, weight=weight, bias=bias)


@composite(
    "instance_norm(Tensor input, Tensor? weight, Tensor? bias, Tensor? running_mean, Tensor? running_var, "
    "bool use_input_stats, float momentum, float eps, bool cudnn_enabled) -> Tensor"
)
def instance_norm(input, weight, bias, running_mean, running_var, use_input_stats, momentum, eps, cudnn_enabled):
    """Apply batch_norm to each sample alone, as one batch with the channels of all samples (Ulyanov et al. 2016)."""
    if not use_input_stats and (running_mean is None or running_var is None):
        raise RuntimeError("Expected running_mean and running_var to be defined when use_input_stats is false")
    batch, channels = input.size(0), input.size(1)

    def repeated(tensor):
        return None if tensor is None else tensor.repeat([batch])

    merged = input.reshape([1, batch * channels, *input.shape[2:]])
    mean, variance = repeated(running_mean), repeated(running_var)
    result = aten.native_batch_norm.default(
        merged, repeated(weight), repeated(bias), mean, variance, use_input_stats, momentum, eps
    )[0]
    if use_input_stats:
        for running, updated in ((running_mean, mean), (running_var, variance)):
            if running is not None:
                running.copy_(updated.view([batch, channels]).mean([0]))
    return result.view(input.shape)
