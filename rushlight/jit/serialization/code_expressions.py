"""Nodes to expressions of printed code: operators, calls, containers, casts.

In: a node, and the texts of its inputs. Out: text that parses to an equivalent node. Stage: jit, printing.
"""

from __future__ import annotations

import keyword
from collections.abc import Callable
from typing import TYPE_CHECKING

from rushlight.core.tensor import Tensor
from rushlight.jit.constants import simplified
from rushlight.jit.ir.graph import Node, Value
from rushlight.jit.operators.lookup import operator_of
from rushlight.jit.operators.registry import Operator
from rushlight.jit.serialization.code_constants import needs_annotation
from rushlight.jit.serialization.code_names import is_named_tuple
from rushlight.jit.types.kinds import INT, DictType, ListType
from rushlight.jit.types.relations import unshaped

if TYPE_CHECKING:
    from rushlight.jit.serialization.code_printer import FunctionPrinter

_CASTS = {"aten::Int": "int", "aten::Float": "float", "aten::Bool": "bool", "aten::Complex": "complex", "aten::str": "str"}
_IMPLICIT = {"aten::IntImplicit": "int", "aten::FloatImplicit": "float", "aten::ComplexImplicit": "complex",
             "aten::ScalarImplicit": "number"}  # fmt: skip
_NEVER_SAVED = {"prim::IgnoredPythonOp", "prim::PythonOp"}
Write = Callable[["FunctionPrinter", Node], str]


def expression(printer: FunctionPrinter, node: Node) -> str:
    """Return a node's only result as an expression. RuntimeError for nodes that only this process can run."""
    if node.kind in _NEVER_SAVED:
        name = node.attributes.get("name", node.kind)
        raise RuntimeError(f"Couldn't export Python operator {name}: it is a function of Python, which archives can't hold. "
                           "Mark it with @unused, or script it")  # fmt: skip
    write = _WRITERS.get(node.kind)
    if write is not None:
        return write(printer, node)
    if node.kind in _CASTS and node.input_count == 1:
        return f"{_CASTS[node.kind]}({printer.text(node.input())})"
    if node.kind in _IMPLICIT:
        return f"annotate({_IMPLICIT[node.kind]}, {printer.text(node.input())})"
    return _print_operator(printer, node)


def operator_name(kind: str) -> str:
    """Return the name of an operator in code: `torch.add`, `ops.prim.min`."""
    namespace, _, name = kind.partition("::")
    return f"torch.{name}" if namespace == "aten" else f"ops.{namespace}.{name}"


def _print_operator(printer: FunctionPrinter, node: Node) -> str:
    operator = operator_of(node)
    values = list(node.inputs)
    if operator is None or operator.schema.is_vararg:
        arguments = [printer.text(value) for value in values]
    else:
        arguments = _print_arguments(printer, operator, values[: _needed_argument_count(operator, values)])
    return f"{operator_name(node.kind)}({', '.join(arguments)})"


def _print_arguments(printer: FunctionPrinter, operator: Operator, values: list[Value]) -> list[str]:
    texts = map(printer.text, values)
    pairs = zip(operator.schema.arguments, texts, strict=False)
    return [f"{argument.name}={text}" if argument.kwarg_only else text for argument, text in pairs]


def _needed_argument_count(operator: Operator, values: list[Value]) -> int:
    """Return the number of arguments to write: trailing defaults are left out."""
    arguments = operator.schema.arguments
    count = len(values)
    while count and arguments[count - 1].has_default and _is_default(values[count - 1], arguments[count - 1].default):
        count -= 1
    return count


def _is_default(value: Value, default: object) -> bool:
    if not value.is_constant:
        return False
    held, default = value.constant(), simplified(default)
    if isinstance(held, Tensor) or isinstance(held, list) or isinstance(default, list | tuple):
        return False
    return type(held) is type(default) and held == default


# Attributes, calls and objects


def _get_attribute(printer: FunctionPrinter, node: Node) -> str:
    name, owner = node["name"], printer.text(node.input())
    return f"{owner}.{name}" if is_plain(name) else f'getattr({owner}, "{name}")'


def is_plain(name: str) -> bool:
    """Return whether an attribute can be written with a dot."""
    return name.isidentifier() and name.isascii() and not keyword.iskeyword(name)


def _call_function(printer: FunctionPrinter, node: Node) -> str:
    arguments = "".join(f"{printer.text(value)}, " for value in node.inputs[1:])
    return f"{printer.text(node.input())}({arguments})"


def _call_method(printer: FunctionPrinter, node: Node) -> str:
    arguments = "".join(f"{printer.text(value)}, " for value in node.inputs[1:])
    return f"({printer.text(node.input())}).{node['name']}({arguments})"


def _print_create(printer: FunctionPrinter, node: Node) -> str:
    name = printer.types.text(node.output.type)
    return f"{name}.__new__({name})"


def _print_enum(field: str) -> Write:
    return lambda printer, node: f"({printer.text(node.input())}).{field}"


# Print type operators


def _print_cast(word: str) -> Write:
    return lambda printer, node: f"{word}({', '.join([printer.types.text(node.output.type), *map(printer.text, node.inputs)])})"


def _print_isinstance(printer: FunctionPrinter, node: Node) -> str:
    kinds = [printer.types.text(kind) for kind in node["types"]]
    shown = kinds[0] if len(kinds) == 1 else f"({', '.join(kinds)})"
    return f"isinstance({printer.text(node.input())}, {shown})"


def _to_list(printer: FunctionPrinter, node: Node) -> str:
    return f"annotate({printer.types.text(node.output.type)}, ({printer.text(node.input())}).tolist())"


# Print containers


def _print_list(printer: FunctionPrinter, node: Node) -> str:
    kind = node.output.type
    text = f"[{', '.join(map(printer.text, node.inputs))}]"
    if not node.inputs or needs_annotation(kind.element) or _differs(node.inputs, kind.element):
        return f"annotate({printer.types.text(kind)}, {text})"
    return text


def _differs(values: tuple[Value, ...], kind: object) -> bool:
    return any(unshaped(value.type) != kind for value in values)


def _print_dict(printer: FunctionPrinter, node: Node) -> str:
    kind = node.output.type
    keys, values = node.inputs[::2], node.inputs[1::2]
    pairs = [f"{printer.text(key)}: {printer.text(value)}" for key, value in zip(keys, values, strict=True)]
    text = f"{{{', '.join(pairs)}}}"
    if not pairs or needs_annotation(kind.value) or _differs(values, kind.value) or _differs(keys, kind.key):
        return f"annotate({printer.types.text(kind)}, {text})"
    return text


def _print_tuple(printer: FunctionPrinter, node: Node) -> str:
    parts = [printer.text(value) for value in node.inputs]
    kind = node.output.type
    if is_named_tuple(kind):
        return f"{printer.types.text(kind)}({', '.join(parts)})"
    return f"({', '.join(parts)}{',' if len(parts) == 1 else ''})"


def _print_tuple_item(printer: FunctionPrinter, node: Node) -> str:
    return f"({printer.text(node.input())})[{printer.text(node.input(1))}]"


def _print_tuple_slice(printer: FunctionPrinter, node: Node) -> str:
    return f"({printer.text(node.input())})[{node['beg']}:{node['end']}]"


def _print_item(printer: FunctionPrinter, node: Node) -> str:
    owner = node.input()
    if isinstance(owner.type, ListType | DictType) and (isinstance(owner.type, DictType) or node.input(1).type == INT):
        text = printer.text(owner)
        return f"{text if text.isidentifier() else f'({text})'}[{printer.text(node.input(1))}]"
    return _print_operator(printer, node)


def _print_print(printer: FunctionPrinter, node: Node) -> str:
    return f"print({', '.join(map(printer.text, node.inputs))})"


def _print_raise(printer: FunctionPrinter, node: Node) -> str:
    given = [value for value in node.inputs if not value.is_none]
    return f"ops.prim.RaiseException({', '.join(map(printer.text, given))})"


def _print_sorted(printer: FunctionPrinter, node: Node) -> str:
    return f"sorted({printer.text(node.input())})"


_WRITERS: dict[str, Write] = {
    "prim::GetAttr": _get_attribute, "prim::CallFunction": _call_function, "prim::CallMethod": _call_method,
    "prim::CreateObject": _print_create, "prim::EnumName": _print_enum("name"), "prim::EnumValue": _print_enum("value"),
    "prim::unchecked_cast": _print_cast("unchecked_cast"), "prim::Uninitialized": _print_cast("uninitialized"),
    "prim::isinstance": _print_isinstance, "prim::tolist": _to_list, "prim::ListConstruct": _print_list,
    "prim::DictConstruct": _print_dict,
    "prim::TupleConstruct": _print_tuple, "prim::TupleIndex": _print_tuple_item,
    "prim::TupleSlice": _print_tuple_slice,
    "aten::__getitem__": _print_item, "prim::Print": _print_print, "prim::RaiseException": _print_raise,
    "aten::sorted": _print_sorted,
}  # fmt: skip


