"""fx: programs as graphs of six kinds of node, and the tools to make, edit, check, print and run them."""

from rushlight.fx.graph import Graph
from rushlight.fx.graph_module import GraphModule
from rushlight.fx.immutable_collections import immutable_dict, immutable_list, map_aggregate
from rushlight.fx.interpreter import Interpreter
from rushlight.fx.node import Node, map_arg
from rushlight.fx.patching import wrap
from rushlight.fx.proxy import Proxy, TraceError
from rushlight.fx.proxy_tensor import make_fx
from rushlight.fx.subgraph_rewriter import Match, replace_pattern
from rushlight.fx.tracer import PH, Tracer, symbolic_trace
from rushlight.fx.transformer import Transformer

__all__ = [
    "PH",
    "Graph",
    "GraphModule",
    "Interpreter",
    "Match",
    "Node",
    "Proxy",
    "TraceError",
    "Tracer",
    "Transformer",
    "immutable_dict",
    "immutable_list",
    "make_fx",
    "map_aggregate",
    "map_arg",
    "replace_pattern",
    "symbolic_trace",
    "wrap",
]
