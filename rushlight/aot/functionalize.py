"""Functionalization: in-place operators on values made inside the graph become their functional forms.

Requires: an aten graph in which the result of a mutating node stands for the written tensor from then on.
Guarantees: `name_` nodes whose target is neither an input, a constant nor a view, and has no views, are replaced by `name`.
Others stay, and run as eager kernels in order.
"""

from __future__ import annotations

from rushlight.fx.graph_module import GraphModule
from rushlight.fx.node import Node
from rushlight.ops.dispatcher import OpOverload
from rushlight.ops.registry import INPLACE_OF


def functionalize(module: GraphModule) -> None:
    """Replace the in-place nodes of `module` that can be; see the module's docstring."""
    for node in list(module.graph.nodes):
        if node.op == "call_function" and isinstance(node.target, OpOverload):
            functional = INPLACE_OF.get(node.target)
            if functional is not None and _is_private(node.args[0]) and _keeps_type(node):
                _replace(module, node, functional)


def _is_private(target: Node) -> bool:
    """Whether the written value belongs to the graph alone and nothing else sees its memory."""
    if target.op != "call_function" or not isinstance(target.target, OpOverload) or target.target.is_view:
        return False
    return not any(_views(user) for user in target.users)


def _keeps_type(node: Node) -> bool:
    """Whether the functional form has the written tensor's dtype: all operands have it."""
    kinds = {used.meta["val"].dtype for used in node.all_input_nodes}
    return len(kinds) == 1


def _views(user: Node) -> bool:
    return user.op == "output" or (isinstance(user.target, OpOverload) and user.target.is_view)


def _replace(module: GraphModule, node: Node, functional: OpOverload) -> None:
    with module.graph.inserting_before(node):
        made = module.graph.create_node("call_function", functional, node.args, node.kwargs, name=functional._schema.name)
    made.meta = dict(node.meta)
    node.replace_all_uses_with(made)
    module.graph.erase_node(node)
