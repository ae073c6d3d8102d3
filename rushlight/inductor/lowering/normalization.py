"""Lowering of softmax and of layer and batch normalisation into loops that the scheduler fuses."""

from __future__ import annotations

import math

from rushlight.core.dtype import bfloat16, float16, float32
from rushlight.core.strides import wrap_dim
from rushlight.inductor.lowering.pointwise import add, div, mul_boxes, sub
from rushlight.inductor.lowering.reductions import lies_side_by_side, reduce_box
from rushlight.inductor.lowering.registry import lowering


def _shifted_exponentials(graph, self, dim):
    """Return exp(x - max) along `dim`, flushed to 0 below the smallest normal number, and its argument."""
    high = reduce_box(graph, self, (dim,), "max", self.dtype, True)
    shifted = sub(graph, self, high)
    return graph.elementwise("exp_nonpositive", self.dtype, self.dtype, shifted), shifted


def _prepare_rows(graph, self, dim):
    """Return the input of softmax: a box with at least one dimension, in full precision, and the dimension."""
    box = self if self.size else self.reshape((1,))
    if box.reindex is None:
        graph.realize(box)  # both the maximum and the sum read it
    return in_full_precision(graph, box), wrap_dim(dim, len(box.size))


def in_full_precision(graph, box):
    """Return half-precision boxes as float32, others unchanged: eager only rounds results to half precision, not intermediate
    values."""
    return graph.pointwise(box.size, float32, box.value) if box.dtype in (bfloat16, float16) else box


@lowering("_softmax")
def softmax(graph, self, dim, half_to_float):
    box, dim = _prepare_rows(graph, self, dim)
    grown, _ = _shifted_exponentials(graph, box, dim)
    graph.realize(grown)
    return div(graph, grown, reduce_box(graph, grown, (dim,), "sum", box.dtype, True)).reshape(self.size)


@lowering("_log_softmax")
def log_softmax(graph, self, dim, half_to_float):
    box, dim = _prepare_rows(graph, self, dim)
    grown, shifted = _shifted_exponentials(graph, box, dim)
    total = reduce_box(graph, grown, (dim,), "sum", box.dtype, True)
    logarithm = graph.realize(graph.elementwise("log", box.dtype, box.dtype, total))
    return sub(graph, shifted, logarithm).reshape(self.size)


@lowering("native_layer_norm")
def layer_norm(graph, self, normalized_shape, weight, bias, eps):
    rank, inner = len(self.size), len(normalized_shape)
    dims = tuple(range(rank - inner, rank))
    count = math.prod(normalized_shape)
    values = in_full_precision(graph, graph.realize(self))
    kind = values.dtype
    mean = graph.realize(div(graph, reduce_box(graph, values, dims, "sum", kind, True), count))
    spread = _make_spreader(graph, values, dims)
    centred = sub(graph, values, spread(mean))
    squares = mul_boxes(graph, centred, centred)
    variance = div(graph, reduce_box(graph, squares, dims, "sum", kind, True), count)
    deviation = add(graph, variance, eps)
    rstd = graph.realize(graph.elementwise("rsqrt", kind, kind, deviation))
    result = mul_boxes(graph, centred, spread(rstd))
    result = result if weight is None else mul_boxes(graph, result, weight)
    return (result if bias is None else add(graph, result, bias)), mean, rstd


def _make_spreader(graph, values, dims):
    """Return a function that expands statistics for reading. If the first normalised dimension is innermost in memory, the
    function copies the statistics once for each index in that dimension."""
    if len(dims) == 1 or not lies_side_by_side(values, dims):
        return lambda statistic: statistic
    size = [1 if dim in dims[1:] else size for dim, size in enumerate(values.size)]

    def spread(statistic):
        zeros = [0] * len(dims)
        return graph.realize(graph.pointwise(size, statistic.dtype, lambda index: statistic.value([*index[: dims[0]], *zeros])))

    return spread


@lowering("_native_batch_norm_legit_no_training")
def batch_norm(graph, self, weight, bias, running_mean, running_var, momentum, eps):
    shape = (1, self.size[1], *(1,) * (len(self.size) - 2))
    variance = in_full_precision(graph, running_var)
    invstd = graph.elementwise("rsqrt", variance.dtype, variance.dtype, add(graph, variance.reshape(shape), eps))
    scale = invstd if weight is None else mul_boxes(graph, invstd, weight.reshape(shape))
    graph.realize(scale)
    empty = running_mean.view((0,), lambda index: index)
    scaled = graph.scaled_forms.get(self)
    if scaled is not None and all(part is None or graph.is_constant(part) for part in (scale, bias, running_mean)):
        shift = mul_boxes(graph, running_mean.reshape(shape), scale)
        shift = sub(graph, 0, shift) if bias is None else sub(graph, bias.reshape(shape), shift)
        return add(graph, scaled(scale), graph.realize(shift)), empty, empty
    result = mul_boxes(graph, sub(graph, self, running_mean.reshape(shape)), scale)
    if bias is not None:
        result = add(graph, result, bias.reshape(shape))
    return result, empty, empty
