"""fx: programs as graphs of six kinds of node, and the tools to make, edit, check, print and run them."""

from rushlight.fx.graph import Graph
from rushlight.fx.graph_module import GraphModule
from rushlight.fx.immutable_collections import immutable_dict, immutable_list, map_aggregate
from rushlight.fx.interpreter import Interpreter
from rushlight.fx.node import Node, map_arg

__all__ = [
    "Graph",
    "GraphModule",
    "Interpreter",
    "Node",
    "immutable_dict",
    "immutable_list",
    "map_aggregate",
    "map_arg",
]
