"""Serialize Code as plain data for the cache, and read it back in another process.

In: Code, and names for the functions, classes and tensors that it refers to. Out: tuples of numbers and strings, and from these
an equal Code, if everything that they name is unchanged.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum
from functools import cached_property
from typing import Protocol

from rushlight.core.device import device
from rushlight.core.tensor import Tensor
from rushlight.jit.constants import ENUM_TYPES
from rushlight.jit.function import Function
from rushlight.jit.ir.graph import Graph, Node
from rushlight.jit.operators.lookup import operator_of
from rushlight.jit.operators.registry import operator_at, operators_named
from rushlight.jit.runtime.code import Code, OperatorCall
from rushlight.jit.runtime.primitives import PRIMITIVES
from rushlight.jit.types.kinds import ClassType, Type
from rushlight.jit.types.parser import Tokens, parse_type

_MAX_VALUES = 1 << 16  # values that one instruction may pop or push; a forged entry could ask for more
_PLAIN = (type(None), bool, int, float, complex, str)
_ATTRIBUTES = {"prim::TupleSlice": ("beg", "end"), "prim::ConstantChunk": ("chunks", "dim")}
"""Primitives that can be kept, with the attributes that their meaning depends on; others have none, or can't."""
_WITHOUT_ATTRIBUTES = ("prim::TupleIndex", "prim::Uninitialized")
_NAMESPACES = ("aten", "prim", "quantized", "torchvision")
"""Namespaces whose operators the library defines, so that they are the same in another process."""


class CannotKeep(Exception):
    """Code refers to something that other processes can't look up."""


class Names(Protocol):
    """Maps functions, classes and tensors to names and back."""

    def name_of_function(self, function: Function) -> tuple[str, ...]:
        """Return a function's name; CannotKeep if it has none."""

    def function(self, name: tuple[str, ...]) -> Function | None:
        """Return the function of a name."""

    def name_of_tensor(self, tensor: Tensor) -> int:
        """Return the index of a tensor among the constants; CannotKeep for other tensors."""

    def tensor(self, number: int) -> Tensor | None:
        """Return the constant of a number."""

    def type(self, name: str) -> Type | None:
        """Return the class of a name."""


# Encode code as data


def to_data(code: Code, names: Names) -> tuple:
    """Return code as data for `marshal`; CannotKeep where that is impossible."""
    if code.codes or code.guards:
        raise CannotKeep
    sources = [node for (op, _, _), node in zip(code.instructions, code.nodes, strict=True) if op == "OPN"]
    table: dict[tuple, int] = {}
    operators = [table.setdefault(_operator_data(node), len(table)) for node in sources]
    return (
        [tuple(each) for each in code.instructions], [tuple(each) for each in code.counts],
        [_constant_data(value, names) for value in code.constants],
        list(table), operators,
        [names.name_of_function(each) for each in code.functions], list(code.names),
        [_type_data(each) for each in code.types],
        code.register_count, code.input_count, code.output_count,
    )  # fmt: skip


def _operator_data(node: Node) -> tuple:
    kind, count = node.kind, len(node.outputs)
    if kind in PRIMITIVES:
        if kind not in _ATTRIBUTES and kind not in _WITHOUT_ATTRIBUTES:
            raise CannotKeep
        return (kind, count, None, *(node[name] for name in _ATTRIBUTES.get(kind, ())))
    operator = operator_of(node)
    if kind.partition("::")[0] not in _NAMESPACES or operator is None:
        raise CannotKeep
    return (kind, count, operators_named(kind).index(operator), operator.schema.overload)


def _constant_data(value: object, names: Names) -> tuple:
    if type(value) in _PLAIN:
        return ("plain", value)
    if isinstance(value, Tensor):
        return ("tensor", names.name_of_tensor(value))
    if isinstance(value, device):
        return ("device", str(value))
    if isinstance(value, Enum) and type(value) in ENUM_TYPES:
        return ("enum", (ENUM_TYPES[type(value)].name, value.name))
    if type(value) in (list, tuple):
        return (type(value).__name__, [_constant_data(item, names) for item in value])
    raise CannotKeep


def _type_data(value: object) -> tuple:
    if isinstance(value, ClassType):
        return ("class", value.name)
    if isinstance(value, list) and all(_is_nameless(each) for each in value):
        return ("types", [each.ir_text for each in value])
    raise CannotKeep


def _is_nameless(kind: Type) -> bool:
    """Return whether a type's text describes it completely, without classes and NamedTuples."""
    named = kind.__class__.__name__ in ("ClassType", "EnumType", "InterfaceType", "UnionType") or getattr(kind, "fields", ())
    return not named and all(map(_is_nameless, kind.contained()))


# Decode code from data


def fill(code: Code, data: tuple, names: Names, graph: Graph) -> bool:
    """Fill an empty Code from the result of `to_data`. Returns whether all references were found and match. `graph` provides
    source positions."""
    instructions, counts, constants, table, operators, functions, variables, types, registers, inputs, outputs = data
    found = [_decode_operator(*each) for each in table]
    called = [names.function(each) for each in functions]
    code.constants = [_decode_constant(each, names) for each in constants]
    code.types = [_decode_type(each, names) for each in types]
    if len(counts) != len(instructions) or not all(_are_small(*each) for each in (*counts, (registers, inputs), (outputs, 0))):
        return False
    if not all(_is_instruction(*each) for each in instructions) or not all(isinstance(each, str) for each in variables):
        return False
    if None in found or None in called or None in code.types or registers > len(instructions):
        return False
    code.instructions, code.counts = instructions, counts
    code.operators = [found[number][1] for number in operators]
    code.operator_names = [found[number][0] for number in operators]
    code.functions, code.names = called, variables
    code.register_count, code.input_count, code.output_count = registers, inputs, outputs
    code.nodes = LaterNodes(graph, code.name)
    return True


def _is_instruction(op: object, x: object, n: object) -> bool:
    return type(op) is str and type(x) is int and type(n) is int


def _are_small(taken: object, given: object) -> bool:
    return all(type(each) is int and 0 <= each <= _MAX_VALUES for each in (taken, given))


class LaterNodes(Sequence):
    """The nodes of instructions, looked up on demand."""

    def __init__(self, graph: Graph, name: str):
        self._graph = graph
        self._name = name

    @cached_property
    def _nodes(self) -> list[Node]:
        return Code(self._graph.copy(), self._name).nodes

    def __getitem__(self, index: int) -> Node:
        return self._nodes[index]

    def __len__(self) -> int:
        return len(self._nodes)


def _decode_operator(kind: str, count: int, index: int | None, *rest: object) -> tuple[str, OperatorCall] | None:
    if index is not None:
        operator = operator_at(kind, index)
        if operator is None or operator.schema.overload != rest[0]:
            return None
        return kind, OperatorCall(operator.full_name, operator.function, operator.plain)
    node = Graph().create(kind, (), 0)
    node.attributes.update(zip(_ATTRIBUTES.get(kind, ()), rest, strict=True))
    return kind, OperatorCall(kind, PRIMITIVES[kind](node))


def _decode_constant(data: tuple, names: Names) -> object:
    kind, value = data
    if kind == "plain":
        return value
    if kind == "tensor":
        return names.tensor(value)
    if kind == "device":
        return device(value)
    if kind == "enum":
        return names.type(value[0]).python_class[value[1]]
    items = [_decode_constant(each, names) for each in value]
    return items if kind == "list" else tuple(items)


def _decode_type(data: tuple, names: Names) -> object:
    kind, value = data
    return names.type(value) if kind == "class" else [parse_type(Tokens(text)) for text in value]
