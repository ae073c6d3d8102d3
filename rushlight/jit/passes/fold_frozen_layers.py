"""FoldFrozenConvBatchnorm and its kin: fold batch norms and constants into the preceding layers of a frozen graph.

Requires: SSA, a frozen graph: weights are constants. Guarantees: no batch norm in evaluation of constant parameters follows a
convolution or linear layer that nothing else reads; no sum or product with a constant of one element per channel follows a
convolution that nothing else reads. Weights are multiplied in double precision, so that results differ by rounding only.

The formulas: batch norm is y = (x - mean) * s + bias with s = weight / sqrt(variance + eps), so that the layer's weight becomes
weight * s and its bias (bias - mean) * s + bias of the norm.
"""

from __future__ import annotations

from collections.abc import Callable

from rushlight.core.dtype import float64
from rushlight.core.tensor import Tensor
from rushlight.jit.ir.graph import Graph, Node, Value
from rushlight.jit.passes.dead_code_elimination import eliminate_dead_code
from rushlight.jit.passes.helpers import SHAPE_READERS
from rushlight.jit.passes.pass_log import PassLog
from rushlight.jit.passes.registry import graph_pass
from rushlight.jit.passes.shape_analysis import type_of_tensor
from rushlight.ops.construct import tensor

_LOG = PassLog(__file__)
_CONVOLUTIONS = frozenset(("aten::conv1d", "aten::conv2d", "aten::conv3d"))
_GENERAL = frozenset(("aten::_convolution", "aten::convolution"))
_ARITHMETIC = {"aten::add": True, "aten::sub": True, "aten::mul": False, "aten::div": False}


@graph_pass("FoldFrozenConvBatchnorm", "_jit_pass_fold_frozen_conv_bn")
def fold_frozen_conv_batch_norm(graph: Graph) -> bool:
    """Fold batch norms into preceding convolutions; returns whether there were any."""
    return _fold_all(graph, lambda node: node.kind == "aten::batch_norm" and _fold_norm(node, _is_convolution))


@graph_pass("FoldFrozenLinearBatchnorm", "_jit_pass_fold_frozen_linear_bn")
def fold_frozen_linear_batch_norm(graph: Graph) -> bool:
    """Fold batch norms into preceding linear layers; returns whether there were any."""
    return _fold_all(graph, lambda node: node.kind == "aten::batch_norm" and _fold_norm(node, _is_linear))


@graph_pass("FoldFrozenConvAddOrSub", "_jit_pass_fold_frozen_conv_add_or_sub")
def fold_frozen_conv_add_or_sub(graph: Graph) -> bool:
    """Fold sums with constants into the biases of convolutions; returns whether there were any."""
    return _fold_all(graph, lambda node: node.kind in ("aten::add", "aten::sub") and _fold_arithmetic(node))


@graph_pass("FoldFrozenConvMulOrDiv", "_jit_pass_fold_frozen_conv_mul_or_div")
def fold_frozen_conv_mul_or_div(graph: Graph) -> bool:
    """Fold products with constants into the weights of convolutions; returns whether there were any."""
    return _fold_all(graph, lambda node: node.kind in ("aten::mul", "aten::div") and _fold_arithmetic(node))


def _fold_all(graph: Graph, fold: Callable[[Node], bool]) -> bool:
    changed = False
    for node in list(graph.all_nodes()):
        changed |= bool(fold(node))
    if changed:
        eliminate_dead_code(graph)
    return changed


def _layer_before(node: Node, wanted: Callable[[Node], bool]) -> Node | None:
    """Return the layer with constant weights whose only user is this node."""
    layer = node.input().node
    if not wanted(layer) or layer.block is not node.block:
        return None
    if any(use.user is not node and use.user.kind not in SHAPE_READERS for use in layer.output.uses):
        return None
    weight, bias = layer.input(1), layer.input(2)
    known = isinstance(weight.constant(), Tensor) and (isinstance(bias.constant(), Tensor) or bias.is_none)
    return layer if known and weight.constant().dtype.is_floating_point else None


def _is_convolution(node: Node) -> bool:
    if node.kind in _GENERAL:
        return node.input(6).constant() is False  # not transposed
    return node.kind in _CONVOLUTIONS


def _is_linear(node: Node) -> bool:
    return node.kind == "aten::linear"


# Fold batch norms


def _is_flat(layer: Node) -> bool:
    """Return whether the input is known to have two dimensions. With more, a norm's channels are not the layer's last
    dimension."""
    sizes = getattr(layer.input().type, "sizes", None)
    return sizes is not None and len(sizes) == 2


def _fold_norm(node: Node, wanted: Callable[[Node], bool]) -> bool:
    layer = _layer_before(node, wanted)
    if layer is None or node.input(5).constant() is not False or not all(value.is_constant for value in node.inputs[1:]):
        return False
    gain, shift, mean, variance = (value.constant() for value in node.inputs[1:5])
    weight, bias = layer.input(1).constant(), layer.input(2).constant()
    if mean is None or variance is None or (wanted is _is_linear and not _is_flat(layer)):
        return False
    if not _LOG.permits("{} is folded into {}", node, layer):
        return False
    scale = (variance.to(float64) + node.input(7).constant()).rsqrt()
    if gain is not None:
        scale = scale * gain.to(float64)
    moved = (_zeros_like(mean) if bias is None else bias.to(float64)) - mean.to(float64)
    moved = moved * scale
    if shift is not None:
        moved = moved + shift.to(float64)
    _set_parameters(layer, _scale_channels(weight, scale), moved)
    node.output.replace_all_uses_with(layer.output)
    return True


def _zeros_like(value: Tensor) -> Tensor:
    return value.to(float64) * 0.0


def _scale_channels(weight: Tensor, scale: Tensor) -> Tensor:
    """Return a weight with each output channel multiplied."""
    return weight.to(float64) * scale.reshape(-1, *[1] * (weight.dim() - 1))


def _set_parameters(layer: Node, weight: Tensor, bias: Tensor | None) -> None:
    dtype = layer.input(1).constant().dtype
    layer.replace_input(1, _constant_before(layer, weight.to(dtype)))
    if bias is not None:
        layer.replace_input(2, _constant_before(layer, bias.to(dtype)))


def _constant_before(node: Node, value: Tensor) -> Value:
    made = node.graph.create("prim::Constant").insert_before(node).set("value", value.contiguous())
    return made.output.set_type(type_of_tensor(value.contiguous(), with_grad=False))


# Fold sums and products


def _fold_arithmetic(node: Node) -> bool:
    layer = _layer_before(node, _is_convolution)
    is_sum = _ARITHMETIC[node.kind]
    if layer is None or node.input_count != (3 if is_sum else 2) or (is_sum and node.input(2).constant() != 1):
        return False
    weight, bias = layer.input(1).constant(), layer.input(2).constant()
    other = _channel_constant(node.input(1), weight)
    if other is None or not _LOG.permits("{} is folded into {}", node, layer):
        return False
    if is_sum:
        added = -other if node.kind == "aten::sub" else other
        _set_parameters(layer, weight.to(float64), added if bias is None else bias.to(float64) + added)
    else:
        factor = 1.0 / other if node.kind == "aten::div" else other
        _set_parameters(layer, _scale_channels(weight, factor), None if bias is None else bias.to(float64) * factor)
    node.output.replace_all_uses_with(layer.output)
    return True


def _channel_constant(value: Value, weight: Tensor) -> Tensor | None:
    """Return a number, or a tensor of one element per channel, as one element per channel; else None."""
    found, channels = value.constant(), weight.shape[0]
    if type(found) in (int, float):
        return tensor([float(found)] * channels, dtype=float64)
    if not isinstance(found, Tensor) or found.dtype != weight.dtype:
        return None
    if found.numel() == 1 and found.dim() <= weight.dim():
        return found.reshape(-1).to(float64).expand(channels)
    per_channel = found.dim() >= weight.dim() - 1 and found.numel() == channels
    in_place = per_channel and found.shape[found.dim() - weight.dim() + 1] == channels
    leading = in_place and (found.dim() < weight.dim() or (found.dim() == weight.dim() and found.shape[0] == 1))
    return found.reshape(-1).to(float64) if leading else None
