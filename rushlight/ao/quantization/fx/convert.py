"""The last step: replace observed layers and operators by quantized ones, with conversions where needed.

In: the graph of `prepare`, whose observers have seen data. Out: a graph without observers. Float nodes read dequantized
tensors.
"""

from __future__ import annotations

import inspect
from collections import Counter
from collections.abc import Callable

from rushlight.ao.quantization.fx.prepare import (
    BINARY_ROLE,
    CAT,
    DYNAMIC,
    FUNCTION,
    NUMBER,
    SAME,
    STATIC,
    STATIC_LAYERS,
    UNIT,
    Plan,
    scopes_of,
)
from rushlight.ao.quantization.fx.roles import FUNCTIONS, binary_of, is_number, module_of, name_of
from rushlight.ao.quantization.quantization_mappings import DEFAULT_DYNAMIC_QUANT_MODULE_MAPPINGS
from rushlight.fx.graph_module import GraphModule
from rushlight.fx.node import Node, map_arg
from rushlight.nn.modules.module import Module
from rushlight.ops.construct import tensor
from rushlight.ops.packet import namespaces
from rushlight.quantized.functions import quantize_per_tensor

quantized = namespaces.namespace("quantized")


class _Converting:
    def __init__(self, module: GraphModule, plan: Plan) -> None:
        self.module, self.graph, self.plan = module, module.graph, plan
        self.quantized: dict[Node, Node] = {}  # each node's result as a quantized tensor
        self.real: dict[Node, Node] = {}  # each node's result as a float tensor
        self.source: dict[Node, Node] = {}  # observer node -> the node that it observes
        self.replaced: list[Node] = []  # nodes with replacements
        self.observers: dict[Node, Module] = {}
        self.names: dict[Node, tuple[str, str]] = {}

    def run(self) -> None:
        self._find_observers()
        for node in list(self.graph.nodes):
            if node not in self.source:
                self._convert(node)
        gone = {*self.source, *self.replaced}
        for node in reversed(list(self.graph.nodes)):
            if node in gone:
                self.graph.erase_node(node)
        self.graph.eliminate_dead_code()

    # Observers

    def _find_observers(self) -> None:
        """Find the observer of each node, and the names of the buffers for its scale and zero point."""
        calls = {name: source for source, name in self.plan.observers.items()}
        by_name = {node.name: node for node in self.graph.nodes}
        counts: Counter = Counter()
        scopes = scopes_of(self.module)
        for node in self.graph.nodes:
            if node.name not in calls:
                continue
            source = by_name[calls[node.name]]
            self.source[node], self.observers[source] = source, self.module.get_submodule(node.target)
            prefix = self._prefix(node, source, scopes)
            self.names[source] = tuple(f"{prefix}_{what}_{counts[prefix]}" for what in ("scale", "zero_point"))
            counts[prefix] += 1

    def _prefix(self, node: Node, source: Node, scopes: dict[str, str]) -> str:
        if source.name in self.plan.roles:
            return scopes[source.name].replace(".", "_")
        first = next(iter(node.users), None)
        return f"{scopes.get(first.name, '') if first is not None else ''}_input".replace(".", "_")

    def _resolve_source(self, node: Node) -> Node:
        return self.source.get(node, node)

    # Values

    def _as_real(self, node: Node) -> Node:
        source = self._resolve_source(node)
        if source not in self.real:
            held = self.quantized[source]
            with self.graph.inserting_after(held):
                self.real[source] = self.graph.call_method("dequantize", (held,))
        return self.real[source]

    def _as_quantized(self, node: Node) -> Node:
        source = self._resolve_source(node)
        if source not in self.quantized:
            held = self.real[source]
            with self.graph.inserting_before(held.next):
                scale, zero_point = self._parameters(source)
                kind = self.observers[source].dtype
                self.quantized[source] = self.graph.call_function(quantize_per_tensor, (held, scale, zero_point, kind))
        return self.quantized[source]

    def _parameters(self, source: Node) -> list[Node]:
        """Return nodes that read the buffers of the scale and zero point of a node's result."""
        found = self.observers[source].calculate_qparams()
        values = tensor(float(found[0])), tensor(int(found[1]))
        for name, value in zip(self.names[source], values, strict=True):
            self.module.register_buffer(name, value)
        return [self.graph.get_attr(name) for name in self.names[source]]

    # Nodes

    def _convert(self, node: Node) -> None:
        role = self.plan.roles.get(node.name)
        if role == STATIC:
            self._quantize_layer(node)
        elif role == SAME and node.name in self.plan.with_relu:
            before = self._resolve_source(node.args[0])
            self.quantized[node] = self.quantized[before]
            self.replaced.append(node)
        elif role == SAME:
            node.args = (self._as_quantized(node.args[0]), *map_arg(node.args[1:], self._as_real))
            self._swap(node, STATIC_LAYERS)
            self.quantized[node] = node
        elif role == CAT:
            node.args = ([self._as_quantized(each) for each in node.args[0]], *node.args[1:])
            self.quantized[node] = node
        elif role == UNIT:
            node.args = (self._as_quantized(node.args[0]), *node.args[1:])
            self.quantized[node] = node
        elif role == BINARY_ROLE:
            self._quantize_binary(node)
        elif role == NUMBER:
            self._quantize_with_number(node)
        elif role == FUNCTION:
            self._quantize_function(node)
        else:
            self._leave(node, role)

    def _leave(self, node: Node, role: str | None) -> None:
        """Keep a node on float tensors: float operators, and layers that quantize their input themselves."""
        node.args, node.kwargs = map_arg(node.args, self._as_real), map_arg(node.kwargs, self._as_real)
        if role == DYNAMIC:
            self._swap(node, {**STATIC_LAYERS, **DEFAULT_DYNAMIC_QUANT_MODULE_MAPPINGS})
        self.real[node] = node

    def _quantize_layer(self, node: Node) -> None:
        module, observer = module_of(self.module, node), self.observers[node]
        node.args = (self._as_quantized(node.args[0]), *node.args[1:])
        # The layer was called before; the results of all calls share one scale.
        if isinstance(module, tuple(STATIC_LAYERS.values())):
            scale, zero_point = observer.calculate_qparams()
            module.scale, module.zero_point = float(scale), int(zero_point)
        else:
            module.activation_post_process = observer
            self._swap(node, STATIC_LAYERS)
        self.quantized[node] = node

    def _swap(self, node: Node, mapping: dict) -> None:
        module = module_of(self.module, node)
        kind = mapping.get(type(module))
        if kind is None:
            return
        parent, _, name = node.target.rpartition(".")
        setattr(self.module.get_submodule(parent), name, kind.from_float(module))

    def _relu_after(self, node: Node) -> str | None:
        """Return the name of the ReLU that is fused with a node."""
        return next((name for name, before in self.plan.with_relu.items() if before == node.name), None)

    def _quantize_binary(self, node: Node) -> None:
        relu = self._relu_after(node)
        owner = node if relu is None else next(each for each in self.graph.nodes if each.name == relu)
        operands = [self._as_quantized(each) for each in node.args[:2]]
        name = binary_of(node) + ("" if relu is None else "_relu")
        with self.graph.inserting_before(node):
            self._replace(node, getattr(quantized, name), (*operands, *self._parameters(owner)))

    def _quantize_with_number(self, node: Node) -> None:
        operands = [each if is_number(each) else self._as_quantized(each) for each in node.args[:2]]
        name = binary_of(node) + ("" if self._relu_after(node) is None else "_relu")
        with self.graph.inserting_before(node):
            self._replace(node, getattr(quantized, name), tuple(operands))

    def _quantize_function(self, node: Node) -> None:
        bound = inspect.signature(node.target).bind(*node.args, **node.kwargs)
        bound.apply_defaults()
        held, given = self._as_quantized(bound.arguments["input"]), map_arg(dict(bound.arguments), self._as_real)
        rest = tuple(given[name] for name in FUNCTIONS[name_of(node)])
        with self.graph.inserting_before(node):
            settings = tuple(self._parameters(node))
            function = getattr(quantized, name_of(node))
            if name_of(node) == "elu":
                self._replace(node, function, (held, *settings, *rest))
            else:
                self._replace(node, function, (held, *rest, *settings))

    def _replace(self, node: Node, function: Callable, arguments: tuple) -> None:
        self.quantized[node] = self.graph.call_function(function, arguments)
        self.replaced.append(node)


def convert(module: GraphModule, remove_qconfig: bool) -> GraphModule:
    """Quantize a prepared graph, in place."""
    step = _Converting(module, module.meta.pop("quantization"))
    step.run()
    module.graph.lint()
    module.delete_all_unused_submodules()
    module.recompile()
    for each in module.modules() if remove_qconfig else ():
        if hasattr(each, "qconfig"):
            del each.qconfig
    return module
