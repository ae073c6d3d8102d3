"""The compiler: `compile()`, backends, the list of passes, settings, logs and dumps. It wires the stages together."""

from rushlight.compiler.backends import list_backends, register_backend
from rushlight.compiler.compile import Compiled, OptimizedModule, compile
from rushlight.compiler.settings import Settings, from_environment

__all__ = ["Compiled", "OptimizedModule", "Settings", "compile", "from_environment", "list_backends", "register_backend"]
