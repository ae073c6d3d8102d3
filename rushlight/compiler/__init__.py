"""The compiler: `compile()`, backends, the list of passes, settings, logs and dumps. It wires the stages together.

For users it is `torch.compiler`: what a program says to the compiler.
"""

from rushlight.compiler.backends import list_backends, register_backend
from rushlight.compiler.compile import OptimizedModule, compile
from rushlight.compiler.control import allow_in_graph, disable, graph_break, is_compiling, reset, substitute_in_graph
from rushlight.compiler.settings import Settings, from_environment

is_dynamo_compiling = is_compiling

__all__ = [
    "OptimizedModule", "Settings", "allow_in_graph", "compile", "disable", "from_environment", "graph_break", "is_compiling",
    "is_dynamo_compiling", "list_backends", "register_backend", "reset", "substitute_in_graph",
]  # fmt: skip
