"""Compute lazy negatives: rewrite a graph so that no real tensor is a view with the negative bit.

Requires: a functional aten graph with fake values. Guarantees: the same values; the memory of every real tensor holds its
values, as generated code expects. Conjugates stay views: operators on complex numbers run one by one. If `as_strided` looks
through a negative view, the graph is left unchanged, and `module.meta["keep_eager"]` says so.
"""

from __future__ import annotations

from rushlight.aot.memory import is_write, root_of
from rushlight.core.dispatch_key import AUTOGRAD_BITS
from rushlight.core.thread_state import ExcludeKeys
from rushlight.fx.fake_tensor import FakeTensorMode
from rushlight.fx.graph_module import GraphModule
from rushlight.fx.node import Node, map_arg
from rushlight.ops.registry import aten

NEGATIVE_VIEW, NEGATIVE = aten("_neg_view"), aten("neg")


def compute_negatives(module: GraphModule) -> None:
    """Rewrite `module` in place; see the module's docstring."""
    calls = [node for node in module.graph.nodes if node.op == "call_function"]
    lazy = [node for node in calls if node.target is NEGATIVE_VIEW]
    if not lazy or "keep_eager" in module.meta:
        return
    roots = {root_of(node) for node in lazy}
    for node in calls:
        if node.target is aten("as_strided") and root_of(node) in roots:
            module.meta["keep_eager"] = f"{node.name} names places in memory of which another view is the negative"
            return
    renewed: set[Node] = set()
    twice = {node: node.args[0].args[0] for node in lazy if node.args[0] in lazy}
    with FakeTensorMode(), ExcludeKeys(AUTOGRAD_BITS):
        for node in calls:
            if node in twice:
                node.replace_all_uses_with(twice[node])
                module.graph.erase_node(node)
            elif node.target is NEGATIVE_VIEW or not renewed.isdisjoint(node.all_input_nodes):
                node.target = NEGATIVE if node.target is NEGATIVE_VIEW else node.target
                if not is_write(node):
                    node.meta["val"] = node.target(*map_arg(node.args, _fake), **map_arg(node.kwargs, _fake))
                renewed.add(node)


def _fake(node: Node) -> object:
    return node.meta["val"]
