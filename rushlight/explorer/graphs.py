"""Graphs as the page draws them.

In: a GraphModule, as it is at the moment. Out: its nodes and edges, with the user's lines and modules of each.
"""

from __future__ import annotations

import re
from typing import Any

from rushlight.explorer.places import Files
from rushlight.fx.annotations import PACKAGE_FOLDER, describe_value, innermost_frame
from rushlight.fx.graph_module import GraphModule
from rushlight.fx.node import Node

_KINDS = {"placeholder": "input", "get_attr": "constant", "output": "output"}
_ASSIGNED = re.compile(r'^\s*(\w+)(?:: "[^"]*")? = ')


def graph_of(module: GraphModule, files: Files) -> dict:
    """Nodes and edges; `line` and `kernel` are still None."""
    nodes = list(module.graph.nodes)
    places = {node: index for index, node in enumerate(nodes)}
    edges = [[places[used], places[node]] for node in nodes for used in node.all_input_nodes]
    return {"nodes": [_described(node, files) for node in nodes], "edges": edges}


def _described(node: Node, files: Files) -> dict[str, Any]:
    path, line, _, _ = innermost_frame(node.stack_trace) or ("", "", None, "")
    is_known = path and not path.startswith(PACKAGE_FOLDER)
    return {
        "name": node.name, "label": _label(node), "kind": _KINDS.get(node.op, "call"),
        "detail": describe_value(node.meta.get("val")), "places": [files.place(path, line)] if is_known else [],
        "path": list(node.meta.get("nn_module_stack", ())), "line": None, "kernel": None,
    }  # fmt: skip


def _label(node: Node) -> str:
    if node.op in ("placeholder", "output"):
        return {"placeholder": "input"}.get(node.op, node.op)
    if node.op == "get_attr":
        return str(node.meta.get("qualified_name") or node.target)
    if node.op == "call_function" and not isinstance(node.target, str):
        name = getattr(node.target, "__name__", None) or str(node.target)
        text = str(node.target) if hasattr(node.target, "_schema") else name
        return text.removesuffix(".default")
    return str(node.target)


def note_lines(graph: dict, text: str) -> None:
    """Tell each node the line of the graph's text on which it is assigned."""
    lines = {}
    for number, line in enumerate(text.split("\n"), 1):
        match = _ASSIGNED.match(line)
        if match:
            lines.setdefault(match[1], number)
        elif line.strip().startswith("return "):
            lines.setdefault("output", number)
    for node in graph["nodes"]:
        node["line"] = lines.get(node["name"])
