"""Print whole programs: an archive's code files, with every class and function that a module or function refers to.

In: types and functions. Out: texts by their qualified prefixes, such as `__torch__.torch.nn`. Stage: jit, printing.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from rushlight.jit.constants import simplified
from rushlight.jit.function import Function
from rushlight.jit.ir.graph import Graph
from rushlight.jit.serialization.code_constants import ConstantTable, constant_text, plain_text
from rushlight.jit.serialization.code_expressions import is_plain
from rushlight.jit.serialization.code_names import TypeTable
from rushlight.jit.serialization.code_printer import FunctionPrinter
from rushlight.jit.serialization.debug_writing import DebugPickler
from rushlight.jit.serialization.reachable import compile_reachable
from rushlight.jit.source import SourceRange
from rushlight.jit.types.kinds import ANY, ClassType, EnumType, InterfaceType, TupleType, Type


class Printed(NamedTuple):
    """The text of a definition, and the source positions of some offsets in it."""

    text: str
    places: Sequence[tuple[int, SourceRange]] = ()


class Program:
    """An archive's code. Adding a type or function prints it, and then everything that it refers to."""

    def __init__(self) -> None:
        self.constants = ConstantTable()
        self.types = TypeTable(self._record_dependency)
        self.pending: list[tuple[object, str]] = []
        self.texts: dict[str, str] = {}
        self.places: dict[str, list[tuple[int, SourceRange]]] = {}
        self.operators: set[str] = set()

    def _record_dependency(self, item: object, name: str) -> None:
        self.pending.append((item, name))

    def add(self, item: Type | Function) -> str:
        """Print a type or function and everything that it refers to; returns its name in the program."""
        self.types.classes |= {kind.name for kind in compile_reachable(item)}
        name = self.types.name_of(item)
        self.finish()
        return name

    def finish(self) -> None:
        """Print the items that were referred to since."""
        while self.pending:
            found, full = self.pending.pop(0)
            prefix, _, last = full.rpartition(".")
            printed = self._print_definition(found, last)
            before = self.texts.get(prefix, "")
            self.places.setdefault(prefix, []).extend((len(before) + offset, place) for offset, place in printed.places)
            self.texts[prefix] = before + printed.text

    def files(self) -> dict[str, str]:
        """Return the texts by the names of their files, `__torch__/torch/nn.py`."""
        return {f"{prefix.replace('.', '/')}.py": text for prefix, text in self.texts.items()}

    def debug_files(self) -> dict[str, bytes]:
        """Return the source-position records of the files, by file name."""
        made = {prefix: DebugPickler().dump_ranges(places) for prefix, places in self.places.items()}
        return {f"{prefix.replace('.', '/')}.py": data for prefix, data in made.items()}

    def function(self, function: Function, name: str, level: int = 0, self_type: Type | None = None) -> Printed:
        """Return a function's definition."""
        graph = function.graph
        self._note_operators(graph)
        printer = FunctionPrinter(self.types, self.constants, level)
        return Printed(printer.function(graph, function.schema, name, self_type), printer.ranges())

    def _note_operators(self, graph: Graph) -> None:
        for node in graph.all_nodes():
            self.operators.add(node.kind)
            inner = node.attributes.get("Subgraph")
            if isinstance(inner, Graph):
                self._note_operators(inner)

    def _print_definition(self, item: object, name: str) -> Printed:
        if isinstance(item, Function):
            return self.function(item, name)
        if isinstance(item, ClassType):
            return self._print_class(item, name)
        if isinstance(item, EnumType):
            members = [f"{member} = {plain_text(value)}" for member, value in item.members]
            return Printed(self._print_lines(f"class {name}(Enum):", members))
        if isinstance(item, TupleType):
            fields = zip(item.fields, item.elements, strict=True)
            lines = [f"{each} : {self.types.text(kind)}" for each, kind in fields]
            return Printed(self._print_lines(f"class {name}(NamedTuple):", lines))
        return Printed(self._print_interface(item, name))

    def _print_lines(self, head: str, lines: list[str]) -> str:
        return "\n".join([head, *(f"  {line}" for line in lines or ["pass"])]) + "\n"

    def _print_constant(self, value: object, kind: Type) -> str:
        return constant_text(simplified(value), kind, self.constants, self.types)

    def _print_interface(self, kind: InterfaceType, name: str) -> str:
        lines = []
        for method, schema in kind.methods.items():
            parameters = "".join(f", {each.name}: {self.types.text(each.type)}" for each in schema.arguments[1:])
            lines += [f"def {method}(self{parameters}) -> {self.types.text(schema.return_type)}:", "  pass"]
        return self._print_lines(f"class {name}({'ModuleInterface' if kind.is_module else 'Interface'}):", lines)

    # Print classes

    def _print_class(self, kind: ClassType, name: str) -> Printed:
        head = f"class {name}(Module):" if kind.is_module else f"class {name}:"
        lines = self._module_lists(kind) if kind.is_module else []
        for attribute in kind.attributes.values():
            text = self.types.text(attribute.type)
            plain = is_plain(attribute.name)
            lines.append(f"{attribute.name} : {text}" if plain else f'__annotations__["{attribute.name}"] = {text}')
        for constant, value in kind.constants.items():
            lines += self._print_final(constant, value)
        methods = [self.function(each, each.short_name, 1, kind) for each in self._methods(kind)]
        text, places = self._print_lines(head, lines) if lines or not methods else head + "\n", []
        for method in methods:
            places += [(len(text) + offset, place) for offset, place in method.places]
            text += method.text
        return Printed(text, places)

    def _module_lists(self, kind: ClassType) -> list[str]:
        parameters = "".join(f'"{each.name}", ' for each in kind.attributes.values() if each.is_parameter)
        buffers = "".join(f'"{each.name}", ' for each in kind.attributes.values() if each.is_buffer)
        lines = [f"__parameters__ = [{parameters}]", f"__buffers__ = [{buffers}]"]
        for key, names in kind.hooks.items():
            if names:
                listed = "".join(f'"{name}", ' for name in names)
                lines.append(f"__forward_{key}__ = [{listed}]")
        return lines

    def _print_final(self, name: str, value: object) -> list[str]:
        """Return a constant of a class. No code depends on it, so constants without a plain type are left out."""
        kind = literal_type(value)
        return [] if kind is None or not is_plain(name) else [f"{name} : Final[{kind}] = {self._print_constant(value, ANY)}"]

    def _methods(self, kind: ClassType) -> list[Function]:
        accessors = [each for pair in kind.properties.values() for each in pair if each is not None]
        found = {each.short_name: each for each in (*kind.methods.values(), *accessors)}
        return list(found.values())



def literal_type(value: object) -> str | None:
    """Return the type of a constant of numbers and strings, as an annotation; None for any other value."""
    if type(value) in (bool, int, float, str):
        return type(value).__name__ if type(value) is not str or value.isascii() else None
    if isinstance(value, tuple) and value:
        parts = [literal_type(item) for item in value]
        return None if None in parts else f"Tuple[{', '.join(parts)}]"
    return None


class ConstantMap:
    """The constants that code calls `CONSTANTS.c0`: as attributes `c0`, and all in `const_mapping`."""

    def __init__(self, const_mapping: dict[str, object]):
        self.const_mapping = const_mapping

    def __getattr__(self, name: str) -> object:
        try:
            return self.__dict__["const_mapping"][name]
        except KeyError:
            raise AttributeError(f"the code has no constant '{name}'") from None


def code_of(function: Function) -> tuple[str, dict[str, object]]:
    """Return one function as code, and the constants that it refers to: `{"c0": tensor}`."""
    program = Program()
    arguments = function.schema.arguments
    is_method = bool(arguments) and isinstance(arguments[0].type, ClassType) and arguments[0].type.is_module
    printer = FunctionPrinter(program.types, program.constants, 0)
    text = printer.function(function.graph, function.schema, function.short_name, hides_self=is_method)
    return text, {f"c{number}": value for number, (value, _) in enumerate(program.constants.values)}
