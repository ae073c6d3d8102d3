"""Python source of a graph: one statement per node, releasing each value after its last use.

In: a `Graph`. Out: `PythonCode`, the source of one `forward` function with the globals that it needs. The verbose
form, for reading, adds types from `meta["val"]` and comments with the user's lines.
"""

from __future__ import annotations

import builtins
import operator
from typing import TYPE_CHECKING, Any, NamedTuple

from rushlight.core.device import device
from rushlight.fx.annotations import source_comment, value_annotation
from rushlight.fx.codegen_hooks import CodeGen
from rushlight.fx.node import Node
from rushlight.fx.source_values import attribute_path, format_value
from rushlight.fx.targets import TORCH, path_expression, qualified_name, resolve

if TYPE_CHECKING:
    from rushlight.fx.node import NodeGraph

_INDENT = "    "

_BINARY = {
    operator.add: "+", operator.sub: "-", operator.mul: "*", operator.truediv: "/", operator.floordiv: "//",
    operator.mod: "%", operator.pow: "**", operator.matmul: "@", operator.lshift: "<<", operator.rshift: ">>",
    operator.and_: "&", operator.or_: "|", operator.xor: "^", operator.eq: "==", operator.ne: "!=",
    operator.lt: "<", operator.gt: ">", operator.le: "<=", operator.ge: ">=",
}  # fmt: skip
_UNARY = {operator.pos: "+", operator.neg: "-", operator.invert: "~"}
_IN_PLACE = {
    operator.iadd: "+=", operator.isub: "-=", operator.imul: "*=", operator.itruediv: "/=", operator.ifloordiv: "//=",
    operator.imod: "%=", operator.ipow: "**=", operator.imatmul: "@=", operator.ilshift: "<<=",
    operator.irshift: ">>=", operator.iand: "&=", operator.ior: "|=", operator.ixor: "^=",
}  # fmt: skip


class PythonCode(NamedTuple):
    """The source of a function, the globals to execute it with, and which node each line runs (1-based)."""

    src: str
    globals: dict[str, Any]
    node_of_line: dict[int, Node]


def generate(
    graph: NodeGraph, root_module: str, *, verbose: bool = False, include_stride: bool = False, include_device: bool = False
) -> PythonCode:
    """Write `graph` as a function `forward(root_module, *placeholders)`."""
    writer = _Writer(graph, root_module)
    if verbose:
        writer.annotate = lambda node: value_annotation(node, include_stride, include_device)
        writer.comment = source_comment
    return writer.write()


def last_uses(graph: NodeGraph) -> dict[Node, list[Node]]:
    """For each node, find the nodes whose values no later node needs, in the order of its arguments."""
    seen: set[Node] = set()
    released: dict[Node, list[Node]] = {}
    for user in reversed(graph.nodes):
        for used in user._input_nodes:
            if used not in seen:
                seen.add(used)
                released.setdefault(user, []).append(used)
    return released


class _Writer:
    """Collects the parameters, statements and globals of one function."""

    def __init__(self, graph: NodeGraph, root_module: str) -> None:
        self.graph = graph
        self.root_module = root_module
        self.globals: dict[str, Any] = {
            "torch": TORCH, "inf": float("inf"), "nan": float("nan"), "device": device,
        }  # fmt: skip
        self.local_names = {node.name for node in graph.nodes}
        self.global_names: dict[int, str] = {}
        self.parameters: list[str] = [root_module]
        self.hooks = graph._codegen
        self.lines: list[tuple[str, Node | None]] = []
        self.released = last_uses(graph)
        self.annotate = self._type_annotation
        self.comment = None

    def write(self) -> PythonCode:
        previous_comment = None
        for node in self.graph.nodes:
            previous_comment = self._write_comment(node, previous_comment)
            statement = self._statement(node)
            if statement:
                self.lines.append((statement + self._release(node), node))
        header = self._header()
        body = self.lines or [("pass", None)]
        source = "\n".join([header, *(_INDENT + text if text else "" for text, _ in body)]) + "\n"
        first = header.count("\n") + 2
        node_of_line = {number: node for number, (_, node) in enumerate(body, first) if node is not None}
        return PythonCode(source, self.globals, node_of_line)

    def _header(self) -> str:
        if self.hooks is None:
            return f"def forward({', '.join(self.parameters)}):"
        self.globals.update(self.hooks.additional_globals())
        return self.hooks.gen_fn_def(self.parameters[self.parameters[0] == "self" :], "")

    def _write_comment(self, node: Node, previous: str | None) -> str | None:
        if self.comment is None or node.op in ("placeholder", "output"):
            return previous
        comment = self.comment(node)
        if comment != previous:
            if self.lines:
                self.lines.append(("", None))
            self.lines.append((comment, None))
        return comment

    def _statement(self, node: Node) -> str:
        if node.op == "placeholder":
            return self._placeholder(node)
        if node.op == "output":
            if self.hooks is not None and type(self.hooks).generate_output is not CodeGen.generate_output:
                return self.hooks.generate_output(node.args[0])
            return f"return {self.value(node.args[0])}"
        if node.target is operator.setitem and isinstance(node.args[0], Node):
            target, index, item = map(self.value, node.args)
            return f"{target}[{index}] = {item}" + (f";  {node.name} = None" if node.users else "")
        symbol = _IN_PLACE.get(node.target) if node.op == "call_function" else None
        if symbol and len(node.args) == 2:
            # Bound to the new name first: `a += b` on an immutable value must not change the value of `a`.
            return f"{node.name} = {self.value(node.args[0])};  {node.name} {symbol} {self.value(node.args[1])}"
        return f"{node.name}{self.annotate(node)} = {self._expression(node)}"

    def _placeholder(self, node: Node) -> str:
        default = f" = {self.value(node.args[0])}" if node.args else ""
        self.parameters.append(f"{node.target}{self.annotate(node)}{default}")
        parameter = node.target.lstrip("*")
        return "" if parameter == node.name else f"{node.name} = {parameter}"

    def _expression(self, node: Node) -> str:
        if node.op == "get_attr":
            return attribute_path(self.root_module, node.target)
        if node.op == "call_module":
            return f"{attribute_path(self.root_module, node.target)}({self._arguments(node.args, node.kwargs)})"
        if node.op == "call_method":
            return f"{self._owner(node.args[0])}.{node.target}({self._arguments(node.args[1:], node.kwargs)})"
        return self._operator_expression(node) or (
            f"{self.global_name(node.target)}({self._arguments(node.args, node.kwargs)})"
        )

    def _operator_expression(self, node: Node) -> str | None:
        """Return infix, prefix, index or attribute form for Python's own operators; None for other functions."""
        target, args = node.target, node.args
        if node.kwargs:
            return None
        if target in _BINARY and len(args) == 2:
            left = self._owner(args[0]) if target is operator.pow else self.value(args[0])
            return f"{left} {_BINARY[target]} {self.value(args[1])}"
        if target in _UNARY and len(args) == 1:
            return f"{_UNARY[target]}{self.value(args[0])}"
        if target is operator.getitem and len(args) == 2:
            return f"{self._owner(args[0])}[{self.value(args[1])}]"
        if target is getattr and len(args) == 2 and isinstance(args[1], str) and args[1].isidentifier():
            return f"{self._owner(args[0])}.{args[1]}"
        return None

    def _owner(self, value: Any) -> str:
        """Return the source of a value as the operand of `**`, `.` or `[]`: `-2 ** x` is not `(-2) ** x`, and `1.real` is a
        syntax error."""
        text = self.value(value)
        return f"({text})" if isinstance(value, (int, float, complex)) and not isinstance(value, bool) else text

    def _arguments(self, args: tuple, kwargs: dict[str, Any]) -> str:
        parts = [self.value(value) for value in args]
        for key, value in kwargs.items():
            source = self.value(value)
            parts.append(f"{key} = {source}" if key.isidentifier() else f"**{{{key!r}: {source}}}")
        return ", ".join(parts)

    def _release(self, node: Node) -> str:
        if node.op in ("placeholder", "output"):
            return ""
        names = [used.name for used in self.released.get(node, ())]
        if not node.users and node.target is not operator.setitem:
            names.append(node.name)
        return f";  {' = '.join(names)} = None" if names else ""

    def _type_annotation(self, node: Node) -> str:
        return "" if node.type is None else f" : {self.value(node.type)}"

    def value(self, value: Any) -> str:
        """Return the source of an argument."""
        return format_value(value, self.global_name)

    def global_name(self, value: Any) -> str:
        """Return an expression for a function, type or other object, which is made a global if it has no public path."""
        known = self.global_names.get(id(value))
        if known is None:
            known = self.global_names[id(value)] = self._new_global(value)
        return known

    def _new_global(self, value: Any) -> str:
        path = qualified_name(value)
        if path.startswith("torch.") and resolve(path) is value:
            return path_expression(path)
        name = path.removeprefix("builtins.").replace(".", "_").replace("<", "_").replace(">", "_")
        if getattr(builtins, name, None) is value:
            return name
        candidate, number = name, 0
        while candidate in self.globals or candidate in self.local_names:
            number += 1
            candidate = f"{name}_{number}"
        self.globals[candidate] = value
        return candidate
