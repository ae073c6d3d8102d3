"""Which inputs of dynamo's graph have open sizes, for the stages after it.

In: dynamo's GraphModule. Out: for each input the symbols in its place, and the way to do without them.
"""

from __future__ import annotations

from collections.abc import Callable

from rushlight.core.symbolic import SymInt
from rushlight.core.tensor import Tensor
from rushlight.fx.graph_module import GraphModule
from rushlight.fx.symbolic_sizes import Geometry

Opened = list[Geometry | SymInt | None]


def open_inputs(module: GraphModule) -> Opened | None:
    """For each placeholder, its symbolic sizes and strides, the SymInt of an int, or None; None where nothing is open."""
    found = [_opened(node.meta) for node in module.graph.nodes if node.op == "placeholder"]
    return found if any(entry is not None for entry in found) else None


def _opened(meta: dict) -> Geometry | SymInt | None:
    value = meta.get("example_value")
    return value if type(value) is SymInt else meta.get("geometry")


def fix(opened: Opened) -> None:
    """Have the guards fix every open size to the example's, for what cannot do with symbols."""
    for entry in opened:
        for number in (entry,) if type(entry) is SymInt else (*entry[0], *entry[1]) if entry is not None else ():
            int(number)


def without_integers(run: Callable) -> Callable:
    """`run`, called with ints among its inputs that it does not take."""
    return lambda *values: run(*[value for value in values if isinstance(value, Tensor)])
