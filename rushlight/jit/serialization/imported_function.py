"""Functions and methods of an archive's code: signature and body are compiled on demand.

In: a definition as Python's syntax tree, and its source context. Out: a Function. Stage: jit, loading.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from rushlight.core.lazy_module import LazyModule
from rushlight.jit.errors import ErrorReport
from rushlight.jit.frontend.context import SourceContext
from rushlight.jit.function import Function
from rushlight.jit.ir.graph import Graph
from rushlight.jit.schema import NO_DEFAULT, Argument, FunctionSchema
from rushlight.jit.serialization.kept_graphs import KeptPrograms
from rushlight.jit.serialization.literals import literal_value
from rushlight.jit.types.kinds import BOOL, FLOAT, INT, STRING, TENSOR, ClassType, OptionalType, Type
from rushlight.jit.types.plain import plain_type

if TYPE_CHECKING:
    from rushlight.jit.serialization.importer import Importer

cleanup, definitions, emitter, upgraders = map(LazyModule, (
    "rushlight.jit.passes.cleanup", "rushlight.jit.frontend.definitions", "rushlight.jit.emit.emitter",
    "rushlight.jit.passes.upgraders",
))  # fmt: skip

_DEFAULTS = {bool: BOOL, int: INT, float: FLOAT, str: STRING}


class ImportedFunction(Function):
    """A function or method of an archive's code."""

    def __init__(
        self, name: str, importer: Importer, node: ast.FunctionDef, context: SourceContext, owner: Type | None = None
    ):  # fmt: skip
        super().__init__(name, define=ImportedFunction._compile)
        self.importer = importer
        self.node = node
        self.context = context
        self.owner = owner
        if importer.kept_graphs is not None:
            self.kept = KeptPrograms(importer.kept_graphs, self)

    @property
    def schema(self) -> FunctionSchema:
        """Return the signature that the code declares."""
        if self.schema_ is None:
            with self.importer.lock:
                self.schema_ = self._plain_schema() or self._any_schema()
        return self.schema_

    def _plain_schema(self) -> FunctionSchema | None:
        """Return a signature of plain types, with plain defaults; None for any other."""
        arguments = self.node.args
        if arguments.posonlyargs or arguments.vararg or arguments.kwonlyargs or arguments.kwarg or self.node.decorator_list:
            return None
        kinds = [TENSOR if each.annotation is None else self._plain(each.annotation) for each in arguments.args]
        if self.owner is not None:
            kinds[:1] = [self.owner]
        returned = self._plain(self.node.returns)
        if returned is None or None in kinds:
            return None
        defaults = self._defaults()
        made = [Argument(each.arg, kind, defaults.get(each.arg, NO_DEFAULT))
                for each, kind in zip(arguments.args, kinds, strict=True)]  # fmt: skip
        if not all(_is_plain_default(each) for each in made if each.has_default):
            return None
        return FunctionSchema(self.name, "", tuple(made), (Argument("", returned),))

    def _plain(self, node: ast.expr | None) -> Type | None:
        return plain_type(node, self.importer.find_type)

    def _any_schema(self) -> FunctionSchema:
        definition = definitions.build_def(self.context, _without_body(self.node), self.node.name)
        schema = emitter.signature(definition.decl, self.name, self.importer.find_type, self._defaults(), self.owner)
        if not schema.returns:
            raise ErrorReport(definition.range, f"{self.name} does not declare what it returns")
        return schema

    def _defaults(self) -> dict[str, object]:
        arguments, values = self.node.args.args, self.node.args.defaults
        return {
            each.arg: literal_value(value, self.context, self.importer)
            for each, value in zip(arguments[len(arguments) - len(values) :], values, strict=True)
        }

    def prepared_graph(self) -> Graph:
        """Return a graph for an executor; read from the cache folder if another process has compiled it."""
        kept = self.importer.kept_graphs
        return super().prepared_graph() if kept is None else kept.graph_of(self, super().prepared_graph)

    def _compile(self) -> None:
        definition = definitions.build_def(self.context, self.node, self.node.name)
        graph = Graph()
        owner = self.owner if isinstance(self.owner, ClassType) else None
        emitter.Emitter(self.importer.resolver, graph, owner, self.node.name).emit_def(definition, self.schema)
        upgraders.replace_old_operators(graph, self.importer.version)
        cleanup.run_cleanup_passes(graph)
        self.set_graph(graph, self.schema)


def _is_plain_default(argument: Argument) -> bool:
    kind = argument.type
    if argument.default is None:
        return isinstance(kind, OptionalType)
    return kind is _DEFAULTS.get(type(argument.default))


def _without_body(node: ast.FunctionDef) -> ast.FunctionDef:
    return ast.copy_location(ast.FunctionDef(node.name, node.args, [], node.decorator_list, node.returns, None), node)
