"""Submodules of a split graph as graphs of their own: arguments that are attributes become the submodule's constants.

In: the split graph, a submodule, and the node that calls it. Out: the submodule, changed in place. Stage: inductor, between
splitting and lowering.
"""

from __future__ import annotations

from rushlight.core.tensor import Tensor
from rushlight.fx.graph_module import GraphModule
from rushlight.fx.node import Node


def constant_arguments(split: GraphModule, part: GraphModule, call: Node) -> tuple[list[int], bool]:
    """Make the attributes among a call's arguments constants of the submodule, which then returns a tuple.

    Returns the positions of the other arguments, and whether the submodule returned a tuple before.
    """
    placeholders = [inner for inner in part.graph.nodes if inner.op == "placeholder"]
    positions = []
    for position, (inner, outer) in enumerate(zip(placeholders, call.args, strict=True)):
        inner.meta.setdefault("val", outer.meta.get("val"))
        if outer.op == "get_attr":
            _make_constant(part, inner, getattr(split, outer.target), outer.target)
        else:
            positions.append(position)
    output = part.graph.output_node()
    is_tuple = isinstance(output.args[0], tuple | list)
    if not is_tuple:
        output.args = ((output.args[0],),)
    part.recompile()
    return positions, is_tuple


def _make_constant(part: GraphModule, placeholder: Node, tensor: Tensor, name: str) -> None:
    setattr(part, name, tensor)
    with part.graph.inserting_before(placeholder):
        attribute = part.graph.create_node("get_attr", name, name=name)
    attribute.meta = dict(placeholder.meta)
    placeholder.replace_all_uses_with(attribute)
    part.graph.erase_node(placeholder)
