"""Attributes by dotted names, and splitting a graph by tags on its nodes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rushlight.fx.graph_module import GraphModule
from rushlight.fx.node import Node
from rushlight.fx.passes.split_module import split_module

__all__ = ["getattr_recursive", "setattr_recursive", "split_by_tags"]


def getattr_recursive(obj: Any, name: str) -> Any:
    """Return the attribute at a dotted name, None if a part of it is missing; list items are found by number."""
    for part in name.split("."):
        if isinstance(obj, list | tuple):
            obj = obj[int(part)]
        elif hasattr(obj, part):
            obj = getattr(obj, part)
        else:
            return None
    return obj


def setattr_recursive(obj: Any, attr: str, value: Any) -> None:
    """Set the attribute at a dotted name."""
    *path, name = attr.split(".")
    for part in path:
        obj = getattr(obj, part)
    setattr(obj, name, value)


def split_by_tags(
    gm: GraphModule, tags: Sequence[str], return_fqn_mapping: bool = False, return_tuple: bool = False,
    GraphModuleCls: type[GraphModule] = GraphModule,
) -> GraphModule | tuple[GraphModule, dict[str, str]]:  # fmt: skip
    """Split `gm` into submodules named by `node.tag` of their nodes, which is one of `tags`.

    With `return_fqn_mapping`, also return the old dotted name of each module that moved, by the new one.
    """
    names: dict[str, str] = {}

    def tag_of(node: Node) -> str:
        tag = getattr(node, "tag", None) or node.meta.get("tag")
        if tag not in tags:
            raise AssertionError(f"Node {node} has tag {tag!r}, which is none of {list(tags)}")
        return tag

    split = split_module(gm, gm, tag_of, names, tuple_return=return_tuple)
    renamed = {f"submod_{tag}": tag for tag in tags}
    for node in split.graph.nodes:
        if node.op == "call_module" and node.target in renamed:
            node.target = renamed[node.target]
    root = {renamed.get(name, name): child for name, child in split.named_children()}
    root |= {node.target: getattr_recursive(split, node.target) for node in split.graph.nodes if node.op == "get_attr"}
    made = GraphModuleCls(root, split.graph)
    moved = {renamed[new.partition(".")[0]] + "." + new.partition(".")[2]: old for new, old in names.items()}
    return (made, moved) if return_fqn_mapping else made
