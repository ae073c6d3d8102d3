"""A type checker for traced programs with gradual types of tensors.

In: a GraphModule, some of whose nodes have types (`TensorType`, `Dyn`); those without are `Dyn`. Out: a type for each node; a
TypeError for a program that no values of these types can run. Each operation has an inference rule, in `_RULES`.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import Any

from rushlight.fx.graph_module import GraphModule
from rushlight.fx.node import Node, map_arg
from rushlight.fx.targets import TORCH
from rushlight.fx.tensor_type import Dyn, TensorType, is_consistent, is_more_precise
from rushlight.nn import AdaptiveAvgPool2d, BatchNorm2d, Conv2d, Linear, MaxPool2d, Module, ReLU

__all__ = ["GraphTypeChecker", "broadcast_types", "get_greatest_upper_bound", "register_inference_rule"]

_RULES: dict[Any, Callable] = {}


def register_inference_rule(target: Any) -> Callable[[Callable], Callable]:
    """Register the rule of a function, or of a class of modules: it takes the node, and the module of a `call_module`; it sets
    and returns the node's type."""

    def register(rule: Callable) -> Callable:
        if target in _RULES:
            raise RuntimeError(f"Rule already registered for target {target}!")
        _RULES[target] = rule
        return rule

    return register


def get_greatest_upper_bound(type1: Any, type2: Any) -> Any:
    """Return the type that says all that two consistent types say. TypeError if they are not consistent."""
    if type1 == Dyn:
        return type2
    if type2 == Dyn or type1 == type2:
        return type1
    if not is_consistent(type1, type2):
        raise TypeError(f"Inconsistent types {type1}, {type2}")
    return TensorType(map(get_greatest_upper_bound, type1.__args__, type2.__args__))


def broadcast_types(t1: Any, t2: Any) -> tuple[Any, Any]:
    """Return two types of tensors as broadcasting makes them: of one rank, with known sizes for those of 1."""
    if not isinstance(t1, TensorType) or not isinstance(t2, TensorType):
        return t1, t2
    rank = max(len(t1.__args__), len(t2.__args__))
    first, second = ([1] * (rank - len(each.__args__)) + list(each.__args__) for each in (t1, t2))
    for index, (one, other) in enumerate(zip(first, second, strict=True)):
        if one == 1:
            first[index] = other
        elif other == 1:
            second[index] = one
    return TensorType(first), TensorType(second)


def _expanded(kind: Any, rank: int) -> TensorType:
    """Return a type as one of tensors of a rank. TypeError for another type."""
    if kind == Dyn:
        return TensorType([Dyn] * rank)
    if not isinstance(kind, TensorType) or len(kind.__args__) != rank:
        raise TypeError(f"Cannot expand {kind} to a tensor type of {rank} dimensions")
    return kind


def _type_of(value: Any) -> Any:
    return value.type if isinstance(value, Node) else type(value)


def _argument(node: Node, position: int, name: str, default: Any) -> Any:
    return node.args[position] if len(node.args) > position else node.kwargs.get(name, default)


def _refine(node: Node, found: Any) -> Any:
    """Give a node the type that a rule found, together with what its annotation says."""
    node.type = get_greatest_upper_bound(found, node.type)
    return node.type


def _sum(node: Node) -> Any:
    first, second = map(_type_of, node.args)
    for scalar, other in ((first, second), (second, first)):
        if scalar in (int, float, bool):
            return _refine(node, other)
    one, other = broadcast_types(first, second)
    if (one, other) != (first, second):
        node.meta["broadcast"] = True
    if not is_consistent(one, other):
        raise TypeError(f"Cannot add arguments {node.args[0]} ({first}) and {node.args[1]} ({second}) in node {node.name}")
    node.type = other if is_more_precise(one, other) else one
    return node.type


for _target in (TORCH.add, operator.add, operator.iadd):
    register_inference_rule(_target)(_sum)


@register_inference_rule(TORCH.reshape)
def _reshape(node: Node) -> Any:
    given = _type_of(node.args[0])
    wanted = TensorType(Dyn if size == -1 else size for size in node.args[1])
    if given == Dyn:
        return _refine(node, wanted)
    known = [math.prod(size for size in kind.__args__ if size != Dyn) for kind in (given, wanted)]
    if Dyn in given.__args__ or Dyn in wanted.__args__:
        fits = known[0] % known[1] == 0 or known[1] % known[0] == 0
    else:
        fits = known[0] == known[1]
    if not fits:
        raise TypeError(f"Cannot reshape in node {node} from {given} to {wanted}")
    return _refine(node, wanted)


@register_inference_rule(TORCH.transpose)
def _transpose(node: Node) -> Any:
    given, first, second = _type_of(node.args[0]), node.args[1], node.args[2]
    if given == Dyn:
        return node.type
    sizes = list(given.__args__)
    if not all(-len(sizes) <= dim < len(sizes) for dim in (first, second)):
        raise TypeError(f"Cannot transpose {first} and {second} in type {given} for node {node}")
    sizes[first], sizes[second] = sizes[second], sizes[first]
    return _refine(node, TensorType(sizes))


@register_inference_rule(TORCH.flatten)
def _flatten(node: Node) -> Any:
    given = _type_of(node.args[0])
    if not isinstance(given, TensorType):
        return node.type
    sizes = list(given.__args__)
    start, end = _argument(node, 1, "start_dim", 0), _argument(node, 2, "end_dim", -1)
    start, end = (dim + len(sizes) if dim < 0 else dim for dim in (start, end))
    if not 0 <= start <= end < len(sizes):
        raise TypeError(f"Cannot flatten dimensions {start} to {end} of type {given} in node {node}")
    inner = sizes[start : end + 1]
    return _refine(node, TensorType([*sizes[:start], Dyn if Dyn in inner else math.prod(inner), *sizes[end + 1 :]]))


@register_inference_rule(ReLU)
def _pointwise(node: Node, module: Module) -> Any:
    return _refine(node, _type_of(node.args[0]))


def _check_channels(node: Node, kind: TensorType, channels: int) -> None:
    if not is_consistent(kind.__args__[1], channels):
        raise TypeError(f"Cannot apply {node.target} with {channels} channels to a tensor of type {kind} in node {node.name}")


@register_inference_rule(BatchNorm2d)
def _batch_norm(node: Node, module: BatchNorm2d) -> Any:
    given = node.args[0]
    given.type, node.type = _expanded(given.type, 4), _expanded(node.type, 4)
    _check_channels(node, given.type, module.num_features)
    _check_channels(node, node.type, module.num_features)
    return _refine(node, given.type)


def _windows(size: Any, module: Conv2d | MaxPool2d, axis: int) -> Any:
    """Return the number of windows along an axis of the image; `Dyn` for an unknown size."""
    if size == Dyn:
        return Dyn
    kernel, stride, padding, dilation = (
        each[axis] if isinstance(each, tuple) else each
        for each in (module.kernel_size, module.stride, module.padding, module.dilation)
    )
    return (size + 2 * padding - dilation * (kernel - 1) - 1) // stride + 1


@register_inference_rule(Conv2d)
def _convolution(node: Node, module: Conv2d) -> Any:
    given = node.args[0]
    given.type, node.type = _expanded(given.type, 4), _expanded(node.type, 4)
    _check_channels(node, given.type, module.in_channels)
    batch, _, height, width = given.type.__args__
    image = (_windows(height, module, 0), _windows(width, module, 1))
    return _refine(node, TensorType((batch, module.out_channels, *image)))


@register_inference_rule(MaxPool2d)
def _max_pool(node: Node, module: MaxPool2d) -> Any:
    given = _type_of(node.args[0])
    if given == Dyn:
        return node.type
    if len(given.__args__) not in (3, 4):
        raise TypeError(f"Wrong size {given} for {node}: a tensor of 3 or 4 dimensions is pooled")
    *outer, height, width = given.__args__
    return _refine(node, TensorType((*outer, _windows(height, module, 0), _windows(width, module, 1))))


@register_inference_rule(AdaptiveAvgPool2d)
def _adaptive_pool(node: Node, module: AdaptiveAvgPool2d) -> Any:
    given, wanted = _type_of(node.args[0]), module.output_size
    if given == Dyn:
        return node.type
    *outer, height, width = given.__args__
    wanted = (wanted, wanted) if isinstance(wanted, int) else wanted
    image = (size if fixed is None else fixed for fixed, size in zip(wanted, (height, width), strict=True))
    return _refine(node, TensorType((*outer, *image)))


@register_inference_rule(Linear)
def _linear(node: Node, module: Linear) -> Any:
    given = _type_of(node.args[0])
    if given == Dyn:
        return node.type
    if not is_consistent(given.__args__[-1], module.in_features):
        raise TypeError(f"Linear of {module.in_features} features is applied to type {given} in node {node.name}")
    return _refine(node, TensorType((*given.__args__[:-1], module.out_features)))


class GraphTypeChecker:
    """Gives every node of a GraphModule a type. `env` holds types by name, for callers of their own."""

    def __init__(self, env: dict, traced: GraphModule):
        self.env = env
        self.traced = traced

    def type_check(self) -> bool:
        """Infer all types; returns True. TypeError for types that don't fit."""
        for node in self.traced.graph.nodes:
            self.type_check_node(node)
        return True

    def type_check_node(self, n: Node) -> Any:
        """Infer the type of one node, from those of its arguments. RuntimeError for an operation without a rule."""
        if n.type is None:
            n.type = Dyn
        if n.op == "placeholder":
            return n.type
        if n.op == "get_attr":
            return _refine(n, TensorType(operator.attrgetter(n.target)(self.traced).shape))
        if n.op == "output":
            n.type = map_arg(n.args[0], _type_of)
            return n.type
        module = self.traced.get_submodule(n.target) if n.op == "call_module" else None
        targets = [n.target] if module is None else type(module).__mro__
        rule = next((_RULES[each] for each in targets if each in _RULES), None)
        if rule is None:
            raise RuntimeError(f"No inference rule registered for {n.op} of {targets[0]}!")
        return rule(n) if module is None else rule(n, module)
