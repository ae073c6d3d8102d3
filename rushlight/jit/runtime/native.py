"""The way to native code: a callback that the compiler sets, so that the jit needs not know it.

In: a graph and arguments. Out: what runs it natively for arguments like these, or None.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from rushlight.core.providers import import_provider
from rushlight.jit.ir.graph import Graph

Native = Callable[[Sequence[object]], list | None]
"""The graph's results for a function's arguments; None where the interpreter has to run them."""
NativeCompiler = Callable[[Graph, Sequence[object], str], Native | None]

SERVICE = "native code of scripted functions"
_compiler: NativeCompiler | None = None


def set_native_compiler(compiler: NativeCompiler | None) -> None:
    """Say what makes native code of graphs; None: nothing does."""
    global _compiler
    _compiler = compiler


def native_compiler() -> NativeCompiler | None:
    """What makes native code. The compiler is imported when it is first wanted."""
    if _compiler is None:
        import_provider(SERVICE)
    return _compiler
