"""Compile all methods and functions reachable from a type or function.

Methods are compiled when they are first called, and a class can only be printed when all of its methods that are called are
known. Stage: jit, printing.
"""

from __future__ import annotations

from rushlight.jit.function import Function
from rushlight.jit.ir.graph import Graph
from rushlight.jit.types.kinds import ClassType, FunctionType, Type


def compile_reachable(root: Type | Function) -> list[ClassType]:
    """Compile everything reachable; returns the classes among it."""
    search = _Search()
    search.item(root)
    while search.classes and search.round():
        pass
    return search.classes


class _Search:
    def __init__(self) -> None:
        self.functions: set[Function] = set()
        self.types: set[Type] = set()
        self.classes: list[ClassType] = []

    def item(self, item: Type | Function) -> None:
        """Visit a type or function."""
        pending = [item]
        while pending:
            each = pending.pop()
            known = self.functions if isinstance(each, Function) else self.types
            if each in known:
                continue
            known.add(each)
            pending += self._reachable_from_function(each) if isinstance(each, Function) else self._reachable_from_type(each)

    def _reachable_from_type(self, kind: Type) -> list[Type | Function]:
        if isinstance(kind, FunctionType):
            return [kind.function]
        if not isinstance(kind, ClassType):
            return list(kind.contained())
        self.classes.append(kind)
        return [attribute.type for attribute in kind.attributes.values()]

    def _reachable_from_function(self, function: Function) -> list[Type | Function]:
        return _types_in(function.graph)

    def round(self) -> bool:
        """Compile the methods that the classes have by now; returns whether there were new ones."""
        before = len(self.functions)
        for kind in list(self.classes):
            for name in [name for names in kind.hooks.values() for name in names]:
                kind.find_method(name)
            accessors = [each for pair in kind.properties.values() for each in pair if each is not None]
            for method in (*list(kind.methods.values()), *accessors):
                self.item(method)
        return len(self.functions) != before


def _types_in(graph: Graph) -> list[Type]:
    found = {value.type for value in graph.inputs}
    for node in graph.all_nodes():
        found.update(value.type for value in node.outputs)
        if node.kind == "prim::CallMethod" and isinstance(node.input().type, ClassType):
            node.input().type.find_method(node["name"])
        inner = node.attributes.get("Subgraph")
        if isinstance(inner, Graph):
            found.update(_types_in(inner))
    return list(found)
