"""Products, convolutions, normalisations, pooling and attention as ONNX nodes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from rushlight.core.dtype import int64
from rushlight.onnx.builder import GraphBuilder, Value
from rushlight.onnx.errors import OnnxExporterError
from rushlight.onnx.translations.table import translation


@translation("mm", "bmm", "matmul", "mv", "dot")
def matmul(g: GraphBuilder, x: Value, y: Value) -> str:
    return g.op("MatMul", x, y)


@translation("addmm")
def addmm(g: GraphBuilder, bias: Value, x: Value, y: Value, beta: float = 1, alpha: float = 1) -> str:
    return g.op("Gemm", x, y, bias, alpha=float(alpha), beta=float(beta))


@translation("baddbmm", "addmv")
def baddbmm(g: GraphBuilder, bias: Value, x: Value, y: Value, beta: float = 1, alpha: float = 1) -> str:
    product = g.op("MatMul", x, y)
    product = product if alpha == 1 else g.op("Mul", product, g.scalar(alpha, x.dtype))
    scaled = bias if beta == 1 else g.op("Mul", bias, g.scalar(beta, x.dtype))
    return g.op("Add", scaled, product)


@translation("convolution")
def convolution(
    g: GraphBuilder, x: Value, weight: Value, bias: Value | None, stride: Sequence[int], padding: Sequence[int],
    dilation: Sequence[int], transposed: bool, output_padding: Sequence[int], groups: int,
) -> str:  # fmt: skip
    count = len(weight.shape) - 2
    stride, padding, dilation, output_padding = (_spread(each, count) for each in (stride, padding, dilation, output_padding))
    options = {"strides": stride, "pads": [*padding, *padding], "dilations": dilation, "group": groups}
    options["kernel_shape"] = [int(size) for size in weight.shape[2:]]
    if transposed:
        return g.op("ConvTranspose", x, weight, bias, output_padding=output_padding, **options)
    return g.op("Conv", x, weight, bias, **options)


def _spread(values: Sequence[int], count: int) -> list[int]:
    return list(values) * count if len(values) == 1 else list(values)


@translation("_native_batch_norm_legit_no_training", "native_batch_norm", "_native_batch_norm_legit")
def batch_norm(
    g: GraphBuilder, x: Value, weight: Value | None, bias: Value | None, mean: Value | None, var: Value | None, *options: Any
) -> list[str]:  # fmt: skip
    training, eps = (options[0], options[2]) if len(options) == 3 else (False, options[1])
    if training or mean is None:
        raise OnnxExporterError("batch normalisation by statistics of the batch is not translated; export with model.eval()")
    weight, bias = (
        each if each is not None else g.op("Expand", g.scalar(fill, x.dtype), g.op("Shape", mean))
        for each, fill in ((weight, 1), (bias, 0))
    )  # fmt: skip
    return [g.op("BatchNormalization", x, weight, bias, mean, var, epsilon=float(eps))]


@translation("native_layer_norm")
def layer_norm(
    g: GraphBuilder, x: Value, shape: Sequence[int], weight: Value | None, bias: Value | None, eps: float
) -> list[str]:  # fmt: skip
    """LayerNormalization where the version has it and there is a weight; the formula otherwise."""
    dims = list(range(len(x.shape) - len(shape), len(x.shape)))
    if g.opset >= 17 and weight is not None:
        return [g.op("LayerNormalization", x, weight, bias, axis=dims[0], epsilon=float(eps))]
    centred = g.op("Sub", x, g.reduce("ReduceMean", x, dims, True))
    variance = g.reduce("ReduceMean", g.op("Mul", centred, centred), dims, True)
    found = g.op("Div", centred, g.op("Sqrt", g.op("Add", variance, g.scalar(eps, x.dtype))))
    found = found if weight is None else g.op("Mul", found, weight)
    return [found if bias is None else g.op("Add", found, bias)]


def _add_batch(g: GraphBuilder, x: Value, count: int) -> tuple[Any, bool]:
    """Return the value with a batch dimension before its channels, and whether that was added."""
    is_added = len(x.shape) == count + 1
    return (g.op("Unsqueeze", x, g.ints([0])) if is_added else x), is_added


def _remove_batch(g: GraphBuilder, value: str, is_added: bool) -> str:
    return g.op("Squeeze", value, g.ints([0])) if is_added else value


@translation("max_pool1d_with_indices", "max_pool2d_with_indices", "max_pool3d_with_indices", "max_pool2d", "max_pool3d")
def max_pool(
    g: GraphBuilder, x: Value, kernel: Sequence[int], stride: Sequence[int] = (), padding: Sequence[int] = (0,),
    dilation: Sequence[int] = (1,), ceil_mode: bool = False,
) -> list[str]:  # fmt: skip
    count = 3 if "3d" in g.output_op else 2
    kernel, padding, dilation = (_spread(each, count) for each in (kernel, padding, dilation))
    batched, is_added = _add_batch(g, x, count)
    found = g.op(
        "MaxPool", batched, kernel_shape=kernel, strides=_spread(stride, count) if stride else kernel,
        pads=[*padding, *padding], dilations=dilation, ceil_mode=int(ceil_mode),
    )  # fmt: skip
    found = _remove_batch(g, found, is_added)
    return [found] if "indices" in g.output_op else found


@translation("avg_pool1d", "avg_pool2d", "avg_pool3d")
def avg_pool(
    g: GraphBuilder, x: Value, kernel: Sequence[int], stride: Sequence[int] = (), padding: Sequence[int] = (0,),
    ceil_mode: bool = False, count_include_pad: bool = True, divisor_override: int | None = None,
) -> str:  # fmt: skip
    if divisor_override is not None:
        raise OnnxExporterError("average pooling with divisor_override is not translated")
    count = int(g.output_op[-2])
    kernel, padding = _spread(kernel, count), _spread(padding, count)
    batched, is_added = _add_batch(g, x, count)
    found = g.op(
        "AveragePool", batched, kernel_shape=kernel, strides=_spread(stride, count) if stride else kernel,
        pads=[*padding, *padding], ceil_mode=int(ceil_mode), count_include_pad=int(count_include_pad),
    )  # fmt: skip
    return _remove_batch(g, found, is_added)


@translation("_adaptive_avg_pool2d", "_adaptive_avg_pool3d", "adaptive_max_pool2d", "adaptive_max_pool3d")
def adaptive_pool(g: GraphBuilder, x: Value, size: Sequence[int]) -> Any:
    """Pooling to fixed sizes: over everything, or over windows that divide it evenly."""
    is_max, count = "max" in g.output_op, int(g.output_op[-2])
    sizes, given = _spread(size, count), x.shape[-count:]
    if all(each == 1 for each in sizes):
        found = g.reduce("ReduceMax" if is_max else "ReduceMean", x, list(range(len(x.shape) - count, len(x.shape))), True)
        return [found] if is_max else found
    if any(type(each) is not int or each % wanted for each, wanted in zip(given, sizes, strict=True)):
        raise OnnxExporterError(f"adaptive pooling from {list(given)} to {sizes} is not translated: windows differ in size")
    kernel = [each // wanted for each, wanted in zip(given, sizes, strict=True)]
    batched, is_added = _add_batch(g, x, count)
    found = g.op("MaxPool" if is_max else "AveragePool", batched, kernel_shape=kernel, strides=kernel)
    found = _remove_batch(g, found, is_added)
    return [found] if is_max else found


@translation("_scaled_dot_product_flash_attention_for_cpu")
def attention(
    g: GraphBuilder, query: Value, key: Value, value: Value, dropout_p: float = 0.0, is_causal: bool = False,
    attn_mask: Value | None = None, scale: float | None = None,
) -> list[str]:  # fmt: skip
    if dropout_p:
        raise OnnxExporterError("attention with dropout is not translated; export with model.eval()")
    kind = query.dtype
    factor = 1 / math.sqrt(int(query.shape[-1])) if scale is None else scale
    order = [*range(len(key.shape) - 2), len(key.shape) - 1, len(key.shape) - 2]
    scores = g.op("MatMul", g.op("Mul", query, g.scalar(factor, kind)), g.op("Transpose", key, perm=order))
    if attn_mask is not None:
        scores = g.op("Add", scores, g.tensor(attn_mask, kind))
    if is_causal:
        scores = g.op("Where", _causal_mask(g, query, key), scores, g.scalar(-math.inf, kind))
    shares = g.op("Softmax", scores, axis=-1)
    if attn_mask is not None:  # a query that sees no key takes nothing
        shares = g.op("Where", g.op("IsNaN", shares), g.scalar(0, kind), shares)
    return [g.op("MatMul", shares, value)]


def _causal_mask(g: GraphBuilder, query: Value, key: Value) -> str:
    """Return the mask of the keys that each query attends to: those at its own position or before."""
    rows, columns = (
        g.op("Range", g.scalar(0, int64), g.op("Gather", g.op("Shape", each), g.scalar(-2, int64), axis=0), g.scalar(1, int64))
        for each in (query, key)
    )  # fmt: skip
    return g.op("LessOrEqual", columns, g.op("Unsqueeze", rows, g.ints([1])))
