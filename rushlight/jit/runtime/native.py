"""The hook for native code: a callback that the compiler registers, so that the jit does not depend on it.

In: a graph, arguments, and their open dimensions. Out: a native form for such arguments, or None.
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
    """A part of a running function: `what` is "native", "interpreted", "branch" or "loop", whose inner parts follow at depth +
    1; `reason` says why it is not native, `seconds` is its time while watched."""

    depth: int
    what: str
    nodes: int
    where: SourceRange
    reason: str
    seconds: float | None


class KeptPrograms(Protocol):
    """The cache of a function's native programs, and the constants that they may refer to."""

    def path(self, spec: tuple) -> Path | None:
        """Return the file for a kind of arguments; None without a cache."""


class Native(Protocol):
    """A graph's native form. `is_whole`: nothing in it is interpreted."""

    is_whole: bool

    def __call__(self, arguments: Sequence[object]) -> list | None:
        """Return the graph's results for a function's arguments; None if the interpreter must run them."""

    def entry(self, constants: object) -> bytes | None:
        """Return its cache entry for other processes, if it can be cached; `constants` are those of the archive's code."""

    def watch(self, seconds: dict[object, float] | None) -> None:
        """Start or stop summing up the time of each part."""

    def parts(self, depth: int = 0) -> list[Part]:
        """Return the parts of the graph as it runs now."""


NativeCompiler = Callable[[Graph, Sequence[object], str, Mapping[object, frozenset[int]] | None], Native | None]
"""Makes native code of a graph under a name. Without dimensions it is called only for arguments of the same kind as these. With
dimensions, by the tensors' order, it leaves those open, and is called for arguments of any sizes and strides."""

Resumer = Callable[[bytes, Sequence[object], object, Callable[[], Native | None]], Native | None]
"""Loads an entry's native form: (content, arguments, the archive's constants, compiler of further forms) -> program."""

SERVICE = "native code of scripted functions"
KEPT_SERVICE = "kept native code of archives"
_resumer: Resumer | None = None
_compiler: NativeCompiler | None = None


def set_native_compiler(compiler: NativeCompiler | None) -> None:
    """Register the native compiler; None disables it."""
    global _compiler
    _compiler = compiler


def native_compiler() -> NativeCompiler | None:
    """Return the native compiler, imported on first use."""
    if _compiler is None:
        import_provider(SERVICE)
    return _compiler


def set_resumer(resumer: Resumer) -> None:
    """Register the function that makes native forms from cache entries."""
    global _resumer
    _resumer = resumer


def resumer() -> Resumer | None:
    """Return the function that makes native forms from cache entries, imported on first use."""
    if _resumer is None:
        import_provider(KEPT_SERVICE)
    return _resumer
