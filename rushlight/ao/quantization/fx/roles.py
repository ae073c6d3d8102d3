"""The role of each kind of operator in a traced graph, by its class or name."""

from __future__ import annotations

import operator
from typing import Any

from rushlight.ao.nn.intrinsic import _FusedModule
from rushlight.core.naming import own_module
from rushlight.fx.graph_module import GraphModule
from rushlight.fx.node import Node
from rushlight.nn import modules as nn
from rushlight.nn.modules.module import Module

# Operators whose results keep the scale of their input: they move, select or average elements.
_SAME_SCALE_MODULES = (
    nn.AdaptiveAvgPool1d, nn.AdaptiveAvgPool2d, nn.AdaptiveAvgPool3d, nn.AvgPool1d, nn.AvgPool2d, nn.AvgPool3d,
    nn.Flatten, nn.Hardtanh, nn.Identity, nn.MaxPool1d, nn.MaxPool2d, nn.MaxPool3d, nn.PixelShuffle, nn.ReLU, nn.ReLU6,
)  # fmt: skip
_SAME_SCALE_NAMES = frozenset(
    "adaptive_avg_pool1d adaptive_avg_pool2d adaptive_avg_pool3d avg_pool1d avg_pool2d avg_pool3d clamp contiguous detach "
    "detach_ dropout flatten hardtanh hardtanh_ interpolate max_pool1d max_pool2d max_pool3d mean permute relu relu6 relu_ "
    "repeat reshape squeeze transpose unsqueeze view".split()
)
BINARY = {"add": "add", "iadd": "add", "mul": "mul", "imul": "mul", "matmul": "matmul"}
"""Functions of two tensors by their names, with the names of their quantized operators."""
ON_UNIT = frozenset(("hardsigmoid", "hardsigmoid_", "sigmoid", "sigmoid_", "tanh", "tanh_"))
"""Functions of a quantized tensor whose results have a known range."""


def module_of(graph_module: GraphModule, node: Node) -> Module | None:
    """Return the module that a node calls; None for other nodes."""
    return graph_module.get_submodule(node.target) if node.op == "call_module" else None


def name_of(node: Node) -> str:
    """Return the name of the function or method that a node calls; "" for other nodes."""
    if node.op == "call_method":
        return node.target
    return getattr(node.target, "__name__", "") if node.op == "call_function" else ""


def kind_of(graph_module: GraphModule, node: Node) -> Any:
    """Return the lookup key for a qconfig: the class of a module, a function, or the name of a method."""
    module = module_of(graph_module, node)
    return type(module) if module is not None else node.target


def binary_of(node: Node) -> str | None:
    """Return the quantized operator for a sum or product called as a function; None for other nodes and for methods."""
    if node.op != "call_function" or node.target is operator.matmul:
        return None
    return BINARY.get(name_of(node))


def is_relu(graph_module: GraphModule, node: Node) -> bool:
    """Return whether a node is a ReLU that can be fused with the layer before: a module, or a function of `nn.functional`."""
    return type(module_of(graph_module, node)) is nn.ReLU or (is_relu_function(node) and _is_functional(node))


def is_relu_function(node: Node) -> bool:
    """Return whether a node calls a ReLU as a function that can be fused with the sum or product before."""
    return node.op == "call_function" and name_of(node) in ("relu", "relu_")


def _is_functional(node: Node) -> bool:
    return own_module(node.target).startswith("rushlight.nn.")


def keeps_scale(graph_module: GraphModule, node: Node) -> bool:
    """Return whether a node's result keeps the scale of its first argument."""
    module = module_of(graph_module, node)
    if isinstance(module, _FusedModule):
        return False
    if is_relu_function(node):
        return _is_functional(node)
    return type(module) in _SAME_SCALE_MODULES or name_of(node) in _SAME_SCALE_NAMES


def is_cat(node: Node) -> bool:
    """Return whether a node concatenates tensors, which all get one scale."""
    return name_of(node) in ("cat", "stack") and bool(node.args) and isinstance(node.args[0], list | tuple)


FUNCTIONS = {
    "elu": ("alpha",), "hardswish": (), "leaky_relu": ("negative_slope", "inplace"),
    "layer_norm": ("normalized_shape", "weight", "bias", "eps"), "group_norm": ("num_groups", "weight", "bias", "eps"),
    "instance_norm": ("weight", "bias", "eps"),
}  # fmt: skip
"""Functions of `nn.functional` whose quantized operators take the result's scale and zero point, with the arguments that
the operators take besides these and the input."""


def is_quantizable_function(node: Node) -> bool:
    """Return whether a node calls one of `FUNCTIONS`."""
    return node.op == "call_function" and name_of(node) in FUNCTIONS and _is_functional(node)


_SIZES = ("size", "dim", "numel", "stride", "item", "len")


def is_number(value: object) -> bool:
    """Return whether an argument is no tensor: a plain value, or a node that computes with sizes."""
    if not isinstance(value, Node):
        return True
    if value.op == "call_method" and value.target in _SIZES or value.target is len:
        return True
    if value.op != "call_function":
        return False
    if value.target is getattr:
        return value.args[1] in ("shape", "ndim")
    return value.target.__module__ in ("_operator", "builtins", "math") and all(map(is_number, value.args))


def tensor_operands(node: Node) -> list[Node]:
    """Return the tensors among the first two arguments of a binary operator."""
    return [each for each in node.args[:2] if not is_number(each)]
