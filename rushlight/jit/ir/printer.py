"""Graphs as text, in torch's notation:

graph(%a.1 : Tensor,
      %b.1 : Tensor):
  %2 : int = prim::Constant[value=1]()
  %c.1 : Tensor = aten::add(%a.1, %b.1, %2) # model.py:9:6
  return (%c.1)
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from enum import Enum
from typing import Protocol, runtime_checkable

from rushlight.core.device import device
from rushlight.core.dtype import dtype
from rushlight.core.tensor import Tensor
from rushlight.jit.ir.graph import Block, Graph, Node, Value
from rushlight.jit.types.kinds import EnumType, TupleType, Type

_MAX_SHOWN_ELEMENTS = 10  # graphs print the elements of tensors of up to this size


@runtime_checkable
class FunctionLike(Protocol):
    """A function as a constant, which is printed as its name."""

    name: str

    def ensure_defined(self) -> None:
        """Compile the function; this method identifies constants of this kind."""


def graph_text(graph: Graph, show_ranges: bool = True) -> str:
    """Return a graph as text; the graphs that its nodes hold follow it."""
    printer = _Printer(show_ranges)
    parameters = ",\n      ".join(_print_typed(value) for value in graph.inputs)
    lines = [f"graph({parameters}):"]
    printer.block(graph.block, 1, lines)
    lines.append(f"  return ({_names(graph.outputs)})")
    for index, (kind, inner) in enumerate(printer.subgraphs):
        lines.append(f"with {kind}_{index} = {graph_text(inner, show_ranges).rstrip()}")
    return "\n".join(lines) + "\n"


def node_text(node: Node) -> str:
    """Return a node with its blocks as text, without a line end."""
    lines: list[str] = []
    _Printer(True).node(node, 0, lines)
    return "\n".join(lines)


def _print_typed(value: Value) -> str:
    return f"%{value.debug_name} : {value.type.ir_text}"


def _names(values: Iterable[Value]) -> str:
    return ", ".join(f"%{value.debug_name}" for value in values)


class _Printer:
    """Collects the graphs that nodes hold while it prints them."""

    def __init__(self, show_ranges: bool):
        self.show_ranges = show_ranges
        self.subgraphs: list[tuple[str, Graph]] = []

    def block(self, block: Block, level: int, lines: list[str]) -> None:
        """Print the nodes of a block."""
        for node in block.nodes:
            self.node(node, level, lines)

    def node(self, node: Node, level: int, lines: list[str]) -> None:
        """Print one node and its blocks."""
        results = ", ".join(map(_print_typed, node.outputs))
        place = str(node.source_range) if self.show_ranges else ""
        scope = f", scope: {node.scope}" if node.scope and self.show_ranges else ""
        lines.append(f"{'  ' * level}{results} = {self.call(node)}{scope}" + (f" # {place}" if place else ""))
        for index, block in enumerate(node.blocks):
            lines.append(f"{'  ' * (level + 1)}block{index}({', '.join(map(_print_typed, block.inputs))}):")
            self.block(block, level + 2, lines)
            lines.append(f"{'  ' * (level + 2)}-> ({_names(block.outputs)})")

    def call(self, node: Node) -> str:
        """Return the right side of the equals sign."""
        kind = node.kind
        if kind == "prim::PythonOp":
            return f"^{node['name']}[]()({_names(node.inputs)})"
        inner = node.attributes.get("Subgraph")
        if isinstance(inner, Graph):
            kind = f"{kind}_{len(self.subgraphs)}"
            self.subgraphs.append((node.kind, inner))
        shown = [
            self.attribute(node, name, value)
            for name, value in node.attributes.items()
            if name != "Subgraph" and not (name == "value" and value is None)
        ]
        return kind + (f"[{', '.join(shown)}]" if shown else "") + f"({_names(node.inputs)})"

    def attribute(self, node: Node, name: str, value: object) -> str:
        """Return one attribute. An empty list is annotated with its type, which it does not show otherwise."""
        if isinstance(value, FunctionLike):
            return f"name={quoted(value.name.rpartition('.')[2])}"
        if node.kind != "prim::Constant":
            return f"{name}={constant_text(value)}"
        if value == []:
            return f"{name}=annotate({node.output.type}, [])"
        return f"{name}={constant_text(value, node.output.type)}"




def _tensor_text(value: Tensor) -> str:
    """Return a small tensor with its elements, as `{3}` or ` 1  2 [ CPUFloatType{2} ]`; `<Tensor>` for others."""
    count = value.numel()
    if value.device.type != "cpu" or value.is_complex() or not 0 < count <= _MAX_SHOWN_ELEMENTS:
        return "<Tensor>"
    if count == 1:
        item = value.item()
        return f"{{{item:g}}}" if isinstance(item, float) else f"{{{int(item)}}}"
    sizes = ",".join(map(str, value.shape))
    return f"{_elements(value.detach().reshape(-1).tolist())} [ CPU{value.dtype.scalar_name}Type{{{sizes}}} ]"


def _elements(numbers: list) -> str:
    """Return numbers in columns: integers as such, else with four decimals, or in exponent form where magnitudes differ
    greatly.
    """
    finite = [abs(number) for number in numbers if math.isfinite(number)]
    if all(number == int(number) for number in finite) and max(finite, default=0) < 1e6:
        texts = [f"{number:.0f}" if math.isfinite(number) else str(number) for number in map(float, numbers)]
        return _columns(texts, max(len(f"{number:.0f}") for number in map(float, finite or [0])) + 1)
    exponents = [_digits(number) for number in finite]
    if max(exponents) - min(exponents) > 4 or max(exponents) > 5 or max(exponents) < 0:
        return _columns([f"{number:.4e}" for number in numbers], 11)
    return _columns([f"{number:.4f}" for number in numbers], max(1, max(exponents)) + 6)


def _digits(number: float) -> int:
    """Return the number of digits before the point; -1 for 0.01."""
    return 1 if number == 0 else math.floor(math.log10(number)) + 1


def _columns(texts: list[str], width: int) -> str:
    return " ".join(text.rjust(width) for text in texts)


def constant_text(value: object, kind: Type | None = None, is_element: bool = False) -> str:
    """Return a constant as text in attributes; a member of an enumeration with its full name if its type is given."""
    if isinstance(value, bool):
        return str(value if is_element else int(value))
    if isinstance(value, Enum):
        return f"{kind.name}.{value.name}" if isinstance(kind, EnumType) else str(value)
    if isinstance(value, float):
        return float_text(value)
    if isinstance(value, complex):
        imaginary = float_text(value.imag)
        return f"{float_text(value.real)}{'' if imaginary.startswith('-') else '+'}{imaginary}j"
    if isinstance(value, str):
        return quoted(value)
    if isinstance(value, list | tuple):
        marks = "[]" if isinstance(value, list) else "()"
        return marks[0] + ", ".join(_element_texts(value, kind)) + marks[1]
    if isinstance(value, dict):
        return "{" + ", ".join(f"{constant_text(key)}: {constant_text(item)}" for key, item in value.items()) + "}"
    if isinstance(value, Tensor):
        return _tensor_text(value)
    if isinstance(value, Graph):
        return "<Graph>"
    if isinstance(value, device):
        return quoted(str(value))
    if isinstance(value, dtype):
        return value.name
    if isinstance(value, Type):
        return value.ir_text
    return str(value)


def _element_texts(values: list | tuple, kind: Type | None) -> list[str]:
    kinds = kind.elements if isinstance(kind, TupleType) else [getattr(kind, "element", None)] * len(values)
    return [constant_text(value, each, True) for value, each in zip(values, kinds, strict=True)]


def float_text(value: float) -> str:
    """Return a float with 17 significant digits, `1.` for a whole number."""
    if not math.isfinite(value):
        return str(value)
    text = f"{value:.17g}"
    return text if any(char in text for char in ".e") else text + "."


def quoted(text: str) -> str:
    """Return a string in double quotes, with everything but printable ASCII escaped."""
    out = []
    for byte in text.encode("utf-8", errors="surrogateescape"):
        char = chr(byte)
        if char in _ESCAPES:
            out.append(_ESCAPES[char])
        elif 32 <= byte < 127:
            out.append(char)
        else:
            out.append(f"\\{byte:03o}")
    return f'"{"".join(out)}"'


_ESCAPES = {
    '"': '\\"', "'": "\\'", "\\": "\\\\", "\n": "\\n", "\t": "\\t", "\r": "\\r", "\a": "\\a", "\b": "\\b", "\f": "\\f",
    "\v": "\\v",
}  # fmt: skip
