"""Transformer: rewrite a graph by running it. Each opcode's method returns what takes the place of its node."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from rushlight.fx.graph import Graph
from rushlight.fx.graph_module import GraphModule
from rushlight.fx.interpreter import Interpreter
from rushlight.fx.node import Node
from rushlight.fx.proxy import Proxy
from rushlight.fx.tracer import Tracer


class _ModuleKeepingTracer(Tracer):
    """Every module is a leaf: a transformer keeps the calls of modules as they are."""

    def __init__(self, module: GraphModule, graph: Graph) -> None:
        super().__init__()
        self.root = module
        self.graph = graph
        self._module_names = {id(child): name for name, child in module.named_modules()}
        self._tensor_names: dict[int, str] = {}

    def is_leaf_module(self, m: Any, module_qualified_name: str) -> bool:
        return True


class Transformer(Interpreter):
    """Runs `module`'s graph on proxies; override `call_function` and the other methods to emit other nodes.

    `transform()` returns the new GraphModule.
    """

    def __init__(self, module: GraphModule) -> None:
        super().__init__(module)
        self.new_graph = Graph()
        if module.graph._codegen is not None:
            self.new_graph.set_codegen(module.graph._codegen)
        self.tracer = _ModuleKeepingTracer(module, self.new_graph)

    def placeholder(self, target: str, args: tuple, kwargs: dict[str, Any]) -> Proxy:
        """Return an input of the new graph; the default, if there is one, stays."""
        return self.tracer.create_proxy("placeholder", target, args, kwargs, target.lstrip("*"))

    def get_attr(self, target: str, args: tuple, kwargs: dict[str, Any]) -> Proxy:
        """Add a read of the same attribute."""
        return self.tracer.create_proxy("get_attr", target, args, kwargs)

    def call_module(self, target: str, args: tuple, kwargs: dict[str, Any]) -> Any:
        """Return a call of the same submodule."""
        return self.tracer.create_proxy("call_module", target, args, kwargs)

    def call_function(self, target: Callable, args: tuple, kwargs: dict[str, Any]) -> Any:
        """Return a call of the same function."""
        return self.tracer.create_proxy("call_function", target, args, kwargs)

    def call_method(self, target: str, args: tuple, kwargs: dict[str, Any]) -> Any:
        """Return a call of the same method."""
        return self.tracer.create_proxy("call_method", target, args, kwargs)

    def run_node(self, n: Node) -> Any:
        """Run one node; nodes that it adds carry its `meta`."""
        before = set(self.new_graph.nodes)
        result = super().run_node(n)
        for node in self.new_graph.nodes:
            if node not in before:
                node.meta = {**n.meta}
        return result

    def transform(self) -> GraphModule:
        """Return the rewritten module. Shares parameters and submodules with the old one."""
        result = super().run(enable_io_processing=False)
        self.new_graph.output(self.tracer.create_arg(result))
        return GraphModule(self.module, self.new_graph, type(self.module).__name__)
