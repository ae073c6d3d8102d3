"""What programs say of their functions and tensors."""

from rushlight.compiler.control import (
    allow_in_graph,
    assume_constant_result,
    disable,
    graph_break,
    set_stance,
    substitute_in_graph,
)
from rushlight.dynamo.dynamic import mark_dynamic, mark_static, maybe_mark_dynamic

__all__ = [
    "allow_in_graph", "assume_constant_result", "disable", "graph_break", "mark_dynamic", "mark_static",
    "maybe_mark_dynamic", "set_stance", "substitute_in_graph",
]  # fmt: skip
