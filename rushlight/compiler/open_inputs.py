"""The open sizes of dynamo's graph inputs, for later stages.

In: dynamo's GraphModule. Out: each input's symbols.
"""

from __future__ import annotations

from rushlight.core.symbolic import SymInt
from rushlight.fx.graph_module import GraphModule
from rushlight.fx.symbolic_sizes import Geometry

Opened = list[Geometry | SymInt | None]


def open_inputs(module: GraphModule) -> Opened | None:
    """Return for each placeholder its symbolic sizes and strides, the SymInt of an int, or None; return None if nothing is
    open."""
    found = [_open_geometry(node.meta) for node in module.graph.nodes if node.op == "placeholder"]
    return found if any(entry is not None for entry in found) else None


def _open_geometry(meta: dict) -> Geometry | SymInt | None:
    value = meta.get("example_value")
    return value if type(value) is SymInt else meta.get("geometry")
