"""The way to native code: a callback that the compiler sets, so that the jit needs not know it.

In: a graph, arguments, and which dimensions of them are open. Out: what runs it natively for such arguments, or None.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from rushlight.core.providers import import_provider
from rushlight.jit.ir.graph import Graph
from rushlight.jit.source import SourceRange


@dataclass(frozen=True)
class Part:
    """A part of a function as it runs: `what` is "native", "interpreted", "branch" or "loop", whose parts follow one deeper;
    `reason` says why it is not native, `seconds` how long it took while somebody watched."""

    depth: int
    what: str
    nodes: int
    where: SourceRange
    reason: str
    seconds: float | None


class KeptPrograms(Protocol):
    """Where native programs of a function are kept, and the constants that they may name."""

    def path(self, spec: tuple) -> Path | None:
        """The file for a kind of arguments; None where nothing is kept."""


class Native(Protocol):
    """A graph's native form. `is_whole`: no part of it is interpreted."""

    is_whole: bool

    def __call__(self, arguments: Sequence[object]) -> list | None:
        """The graph's results for a function's arguments; None where the interpreter has to run them."""

    def entry(self, constants: object) -> bytes | None:
        """What is kept of it for other processes, if that can be; `constants` are those of the archive's code."""

    def watch(self, seconds: dict[object, float] | None) -> None:
        """Add up the time of each part from now on, or stop doing so."""

    def parts(self, depth: int = 0) -> list[Part]:
        """How the graph runs now."""


NativeCompiler = Callable[[Graph, Sequence[object], str, Mapping[object, frozenset[int]]], Native | None]
"""Makes native code of a graph, for arguments like these, under a name; it leaves dimensions open, by tensors' order."""

Resumer = Callable[[bytes, Sequence[object], object, Callable[[], Native | None]], Native | None]
"""Makes the native form of an entry: of its content, arguments, the archive's constants, and what compiles other forms."""

SERVICE = "native code of scripted functions"
KEPT_SERVICE = "kept native code of archives"
_resumer: Resumer | None = None
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


def set_resumer(resumer: Resumer) -> None:
    """Say what makes native forms of entries of the cache folder."""
    global _resumer
    _resumer = resumer


def resumer() -> Resumer | None:
    """What makes native forms of entries. It is imported when it is first wanted."""
    if _resumer is None:
        import_provider(KEPT_SERVICE)
    return _resumer
