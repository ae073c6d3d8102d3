"""Functions of a compilation unit: compiled on demand, and run by an executor."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TYPE_CHECKING

from rushlight._C import machine_forget_callees
from rushlight.core.garbage import making_objects_that_stay
from rushlight.core.lazy_module import LazyModule
from rushlight.jit.ir.graph import Graph
from rushlight.jit.schema import Argument, FunctionSchema
from rushlight.jit.types.relations import unshaped

if TYPE_CHECKING:
    from rushlight.jit.runtime.native import KeptPrograms

preparation = LazyModule("rushlight.jit.runtime.preparation")  # lazy: it imports the passes, and these import this module
_compiling = threading.RLock()
"""Compilation is one at a time: functions that call one another are compiled in turn."""


class RecursionInCompilation(RuntimeError):
    """A function's compilation needs its own return type."""


class Function:
    """A function with a graph. `define(function)` fills in graph and schema on demand."""

    def __init__(self, name: str, graph: Graph | None = None, define: Callable[[Function], None] | None = None):
        self.name = name
        self._graph = graph
        self._define = define
        self._is_defining = False
        self.schema_ = None if graph is None else schema_of_graph(name, graph)
        self._executor = None
        self.binding: object = None
        """The cached argument binding for calls from Python; `method_binding` is that for method calls with an object."""
        self.method_binding: object = None
        self.doc: str | None = None
        self.kept: KeptPrograms | None = None
        """The cache of its native programs for other processes; None: no cache."""
        self.depth: int | None = None
        """The maximum number of specialised plans, each for inputs that the last one does not fit; None: the global setting."""

    @property
    def short_name(self) -> str:
        """Return the name without its qualification."""
        return self.name.rpartition(".")[2]

    def ensure_defined(self) -> None:
        """Compile the function if it is not compiled yet. RuntimeError where it calls itself without a declared return type."""
        if self._define is None:
            return
        with _compiling:
            if self._define is None:
                return
            if self._is_defining:
                raise RecursionInCompilation(
                    f"function '{self.short_name}' is called recursively. Recursive calls are not supported"
                )
            self._is_defining = True
            try:
                with making_objects_that_stay():
                    self._define(self)
                self._define = None
            finally:
                self._is_defining = False

    def set_graph(self, graph: Graph, schema: FunctionSchema) -> None:
        """Set the body and signature. If an executor from the code cache has served so far, it stays."""
        is_first = self._graph is None
        self._graph, self.schema_ = graph, schema
        if not is_first:
            self._executor = None
            machine_forget_callees()

    @property
    def graph(self) -> Graph:
        """Return its body, as emitted: calls of other functions are calls."""
        self.ensure_defined()
        return self._graph

    def prepared_graph(self) -> Graph:
        """Return a new graph for an executor: calls are inlined, and nothing is assumed about the arguments."""
        with making_objects_that_stay():
            return preparation.prepared(self.graph)

    @property
    def schema(self) -> FunctionSchema:
        """Return its signature."""
        if self.schema_ is None:
            self.ensure_defined()
        return self.schema_

    def __repr__(self) -> str:
        return f"<Function {self.name}>"


def schema_of_graph(name: str, graph: Graph) -> FunctionSchema:
    """Return a signature from a graph's inputs and outputs."""
    arguments = tuple(Argument(value.debug_name, unshaped(value.type)) for value in graph.inputs)
    returns = tuple(Argument("", unshaped(value.type)) for value in graph.outputs)
    return FunctionSchema(name, "", arguments, returns)
