"""Kept graphs: a cache of an archive's compiled functions, for other processes that load the same archive.

In: an archive's code and constants, whose digest names the entries of the cache folder. Out: graphs for executors, with code
read from the cache; their nodes are created on demand.

Entries hold instructions as plain data: a forged one can only refer to operators of the library and register numbers, as the
archive's own code can. Stage: jit, loading.
"""

from __future__ import annotations

import marshal
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from rushlight.core.lazy_module import LazyModule
from rushlight.core.parallel import get_num_threads
from rushlight.core.tensor import Tensor
from rushlight.jit.function import Function
from rushlight.jit.ir.graph import Block, Graph
from rushlight.jit.runtime.code import Code
from rushlight.jit.types.kinds import Type
from rushlight.utils.native import cache

if TYPE_CHECKING:
    from rushlight.jit.serialization.importer import Importer

kept_code = LazyModule("rushlight.jit.runtime.kept_code")
_LIBRARY = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
_WATCHED = ("RUSHLIGHT_JIT_LOG_LEVEL", "RUSHLIGHT_JIT_OPT_LIMIT", "PYTORCH_JIT_LOG_LEVEL", "PYTORCH_JIT_OPT_LIMIT")
"""With these somebody looks at the passes, which therefore run."""
_COMPILER = ("compiler", "aot", "fx", "inductor", "core")
_SOURCES = ("jit", "ops", "quantized")
"""Folders of the library that decide about the code of a graph."""


class KeptGraphs:
    """The entries of one archive. `content` are the texts and bytes from which its functions are compiled."""

    def __init__(self, importer: Importer, content: Callable[[], list[str | bytes]]):
        self.importer = importer
        self.content = content
        self._key: str | None = None

    def path(self, function: Function, *about: str, kind: str = "code") -> Path | None:
        """Return the entry of a function and kind; None without a cache."""
        if any(map(os.environ.get, _WATCHED)):
            return None
        try:
            folder = cache.open_folder(cache.default_folder())
        except OSError:
            return None
        if self._key is None:
            self._key = cache.digest(sys.version, cache.version_of(_LIBRARY, _SOURCES), *self.content())
        return folder / f"{cache.digest(self._key, function.name, *about)}.{kind}"

    def graph_of(self, function: Function, compile: Callable[[], Graph]) -> Graph:
        """Return the graph of a function for an executor; `compile` makes it if it is not cached."""
        path = self.path(function)
        if path is None:
            return compile()
        content = cache.read(path)
        graph = compile() if content is None else LaterGraph(compile)
        graph.code_keeper = _Keeper(self, path, graph, content)
        return graph

    # Names of references in instructions

    def name_of_function(self, function: Function) -> tuple[str, ...]:
        """Return the qualified name of one of the archive's functions."""
        name = tuple(function.name.rpartition(".")[::2])
        if self.function(name) is not function:
            raise kept_code.CannotKeep
        return name

    def function(self, name: tuple[str, ...]) -> Function | None:
        """Return the method of a class, or the function, of a qualified name."""
        owner = self.type(name[0])
        found = getattr(owner, "methods", {}).get(name[1])
        return self.importer.find_function(".".join(name)) if owner is None else found

    def name_of_tensor(self, tensor: Tensor) -> int:
        """Return its number among the archive's constants."""
        for number, each in enumerate(self.importer.constants()):
            if each is tensor:
                return number
        raise kept_code.CannotKeep

    def tensor(self, number: int) -> Tensor | None:
        """Return the constant of a number."""
        constants = self.importer.constants()
        return constants[number] if 0 <= number < len(constants) else None

    def type(self, name: str) -> Type | None:
        """Return one of the archive's classes."""
        return self.importer.find_type(name) if name.startswith("__torch__.") else None


class KeptPrograms:
    """The cache of native programs of one of an archive's functions."""

    def __init__(self, names: KeptGraphs, function: Function):
        self.names = names
        self.function = function
        self.tensor = names.tensor

    def path(self, spec: tuple) -> Path | None:
        """Return the entry for a kind of arguments and the current number of threads."""
        compiler = cache.version_of(_LIBRARY, _COMPILER)
        return self.names.path(self.function, compiler, str(get_num_threads()), repr(spec), kind="program")

    def name_of_tensor(self, tensor: Tensor) -> int:
        """Return the number of a constant; ValueError for a tensor that is none."""
        try:
            return self.names.name_of_tensor(tensor)
        except kept_code.CannotKeep as error:
            raise ValueError("a tensor that is no constant of the archive") from error


class _Keeper:
    """Caches the code of one function in an entry of the cache folder; `content` is the entry's data."""

    def __init__(self, names: KeptGraphs, path: Path, graph: Graph, content: bytes | None = None):
        self.names = names
        self.path = path
        self.graph = graph
        self.content = content

    def fill(self, code: Code) -> bool:
        """Fill an empty code with the cached instructions; returns whether there are matching ones."""
        content, self.content = self.content, None
        if content is None:
            return False
        try:
            return kept_code.fill(code, marshal.loads(content), self.names, self.graph)
        except (ValueError, TypeError, LookupError, AttributeError, EOFError, RuntimeError):  # the entry was forged or damaged
            return False

    def keep(self, code: Code) -> None:
        """Cache the instructions of a code."""
        try:
            content = marshal.dumps(kept_code.to_data(code, self.names))
        except (kept_code.CannotKeep, ValueError):  # ValueError comes from objects that marshal does not support
            return
        cache.keep(self.path, content)


class LaterGraph(Graph):
    """A graph that `make` creates on first access."""

    def __init__(self, make: Callable[[], Graph]):
        self._make = make

    def __getattr__(self, name: str) -> object:
        if name not in ("block", "names", "completed_runs", "current_range", "current_scope", "_unique", "_insert_before"):
            raise AttributeError(f"a graph has no attribute {name!r}")
        vars(self).update(vars(self._make()))
        _take_over(self.block, self)
        return vars(self)[name]


def _take_over(block: Block, graph: Graph) -> None:
    """Move a block and everything in it to another graph."""
    block.graph = graph
    for node in (block.param, *block.nodes, block.result):
        node.graph = graph
        for inner in node.blocks:
            _take_over(inner, graph)
