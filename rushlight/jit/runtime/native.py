"""The way to native code: a callback that the compiler sets, so that the jit needs not know it.

In: a graph and arguments. Out: what runs it natively for arguments like these, or None.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib import import_module

from rushlight.jit.ir.graph import Graph

Native = Callable[[Sequence[object]], list | None]
"""The graph's results for a function's arguments; None where the interpreter has to run them."""
NativeCompiler = Callable[[Graph, Sequence[object], str], Native | None]

_compiler: NativeCompiler | None = None
_provider: str | None = None


def set_native_compiler(compiler: NativeCompiler | None) -> None:
    """Say what makes native code of graphs; None: nothing does."""
    global _compiler
    _compiler = compiler


def set_native_provider(module: str | None) -> None:
    """Name the module that calls `set_native_compiler` when it is imported, which happens when native code is first wanted."""
    global _provider
    _provider = module


def native_compiler() -> NativeCompiler | None:
    """What makes native code."""
    global _provider
    if _compiler is None and _provider is not None:
        name, _provider = _provider, None
        import_module(name)
    return _compiler
