"""fx: programs as graphs of six kinds of node, and the tools to make, edit, check, print and run them."""

from rushlight.core.lazy_module import lazy_names
from rushlight.fx.graph import Graph
from rushlight.fx.graph_module import GraphModule
from rushlight.fx.immutable_collections import immutable_dict, immutable_list, map_aggregate
from rushlight.fx.node import Node, has_side_effect, map_arg

__all__ = [
    "PH",
    "CodeGen",
    "Graph",
    "GraphModule",
    "Interpreter",
    "Match",
    "Node",
    "Proxy",
    "ProxyableClassMeta",
    "TraceError",
    "Tracer",
    "Transformer",
    "has_side_effect",
    "immutable_dict",
    "immutable_list",
    "make_fx",
    "map_aggregate",
    "map_arg",
    "replace_pattern",
    "symbolic_trace",
    "wrap",
]
# Tools to make and rewrite graphs by hand and to run them node by node. They are imported lazily: compiling a graph needs none.
__getattr__, __dir__ = lazy_names(globals(), {
    "rushlight.fx.codegen_hooks": ("CodeGen",),
    "rushlight.fx.interpreter": ("Interpreter",),
    "rushlight.fx.patching": ("wrap",),
    "rushlight.fx.proxy": ("Proxy", "TraceError"),
    "rushlight.fx.proxy_tensor": ("make_fx",),
    "rushlight.fx.subgraph_rewriter": ("Match", "replace_pattern"),
    "rushlight.fx.proxyable_classes": ("ProxyableClassMeta",),
    "rushlight.fx.tracer": ("PH", "Tracer", "symbolic_trace"),
    "rushlight.fx.transformer": ("Transformer",),
})  # fmt: skip
