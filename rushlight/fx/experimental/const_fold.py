"""split_const_subgraphs: fold constants, that is, compute the values that depend on a module's parameters alone once.

In: a module. Out: a `FoldedGraphModule`, whose graph reads these values as attributes, and a module that computes them at the
first call.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from rushlight.core.device import device
from rushlight.core.tensor import Tensor
from rushlight.fx.graph import Graph
from rushlight.fx.graph_module import GraphModule
from rushlight.fx.node import Node
from rushlight.fx.tracer import symbolic_trace
from rushlight.nn.modules.container import ParameterList
from rushlight.nn.modules.module import Module
from rushlight.nn.parameter import Parameter

__all__ = ["FoldedGraphModule", "get_unique_attr_name_in_module", "split_const_subgraphs"]
_ATTRIBUTE = "_FX_CONST_FOLDED_ATTRS"


class FoldedGraphModule(GraphModule):
    """A GraphModule that reads values which `const_subgraph_module` computes once from its parameters.

    Args:
        const_subgraph: the graph of these values; None if there are none.
        fx_const_folded_attrs_name: the attribute that holds them, a parameter or a list of several.
        device_for_folded_attrs: the device to put them on.
    """

    def __init__(
        self, root: Module, graph: Graph, const_subgraph: Graph | None = None, fx_const_folded_attrs_name: str | None = None,
        device_for_folded_attrs: str | device = "cuda",
    ) -> None:  # fmt: skip
        super().__init__(root, graph)
        self.const_subgraph_module = None if const_subgraph is None else GraphModule(root, const_subgraph)
        self.fx_const_folded_attrs_name = fx_const_folded_attrs_name
        self.device_for_folded_attrs = device_for_folded_attrs
        self.has_folding_been_run = False

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if not self.has_folding_been_run:
            self.run_folding()
        return super().__call__(*args, **kwargs)

    def run_folding(self) -> None:
        """Compute the values; the first call of the module does so, too."""
        self.has_folding_been_run = True
        if self.const_subgraph_module is None:
            return
        values = self.const_subgraph_module()
        if isinstance(values, tuple):
            setattr(self, self.fx_const_folded_attrs_name, ParameterList([self._to_parameter(value) for value in values]))
        else:
            setattr(self, self.fx_const_folded_attrs_name, self._to_parameter(values))

    def _to_parameter(self, value: Any) -> Any:
        if not isinstance(value, Tensor):
            return value
        value = value.detach().to(self.device_for_folded_attrs).requires_grad_(value.requires_grad)
        return Parameter(value.detach(), requires_grad=value.requires_grad)


def split_const_subgraphs(
    module: Module, skip_folding_node_fn: Callable[[Node], bool] | None = None, device_for_folded_attrs: str | device = "cpu"
) -> FoldedGraphModule:
    """Fold the part of a module that depends on none of its inputs.

    Args:
        module: a GraphModule, or a module that can be traced.
        skip_folding_node_fn: a predicate for nodes that are not to be folded, nor the nodes that depend on them.
        device_for_folded_attrs: the device to put the folded values on.
    """
    traced = module if isinstance(module, GraphModule) else symbolic_trace(module)
    constants = _constants_of(traced, skip_folding_node_fn)
    folded = [
        node for node in traced.graph.nodes
        if node in constants and node.op != "get_attr" and any(user not in constants for user in node.users)
    ]  # fmt: skip
    if not folded:
        return FoldedGraphModule(traced, traced.graph, device_for_folded_attrs=device_for_folded_attrs)
    name = get_unique_attr_name_in_module(traced, _ATTRIBUTE)
    targets = [name] if len(folded) == 1 else [f"{name}.{index}" for index in range(len(folded))]
    graph, made = Graph(), {}
    for node in traced.graph.nodes:
        if node in folded:
            made[node] = graph.get_attr(targets[folded.index(node)])
            made[node].meta = dict(node.meta)
        elif node not in constants or node.op == "get_attr" and any(user not in constants for user in node.users):
            made[node] = graph.node_copy(node, made.__getitem__)
    setattr(traced, name, _no_values(len(folded)))
    return FoldedGraphModule(traced, graph, _graph_of(constants, folded), name, device_for_folded_attrs)


def get_unique_attr_name_in_module(mod_traced: Module, name: str) -> str:
    """Make `name` an identifier, and append the first number that makes it a new attribute name of the module."""
    name = re.sub("[^0-9a-zA-Z_]+", "_", name)
    name = f"_{name}" if name[:1].isdigit() else name
    while hasattr(mod_traced, name):
        numbered = re.match(r"(.*)_(\d+)$", name)
        name = f"{name}_1" if numbered is None else f"{numbered[1]}_{int(numbered[2]) + 1}"
    return name


def _constants_of(traced: GraphModule, skips: Callable[[Node], bool] | None) -> dict[Node, None]:
    """Return the nodes, in order, that depend on attributes alone."""
    constants: dict[Node, None] = {}
    for node in traced.graph.nodes:
        if node.op in ("placeholder", "output") or skips is not None and skips(node):
            continue
        needed = node.all_input_nodes
        if node.op == "get_attr" or needed and constants.keys() >= set(needed) and not node.is_impure():
            constants[node] = None
    return constants


def _graph_of(constants: dict[Node, None], folded: list[Node]) -> Graph:
    graph, made = Graph(), {}
    for node in constants:
        made[node] = graph.node_copy(node, made.__getitem__)
    values = tuple(made[node] for node in folded)
    graph.output(values[0] if len(values) == 1 else values)
    graph.eliminate_dead_code()
    return graph


def _no_values(count: int) -> Module | Parameter:
    """Return the placeholder in an attribute until its values are computed."""
    empty = [Parameter(Tensor(), requires_grad=False) for _ in range(count)]
    return empty[0] if count == 1 else ParameterList(empty)
