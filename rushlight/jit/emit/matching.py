"""Overload resolution, with conversion of arguments.

In: arguments with their types, and schemas. Out: the arguments in the schema's order, implicitly converted where allowed: an
int where a list of fixed length is expected, a tuple for a list, a Tensor for a number, a default. Stage: jit, emission.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from rushlight.jit.emit.sugared import NamedValue
from rushlight.jit.errors import ErrorReport
from rushlight.jit.ir.graph import Graph, Value
from rushlight.jit.operators.registry import Operator
from rushlight.jit.schema import Argument, FunctionSchema
from rushlight.jit.source import SourceRange
from rushlight.jit.types.kinds import (
    ANY,
    BOOL,
    COMPLEX,
    DEVICE,
    FLOAT,
    INT,
    NONE,
    NUMBER,
    STRING,
    TENSOR,
    ClassType,
    InterfaceType,
    ListType,
    OptionalType,
    TensorType,
    TupleType,
    Type,
)
from rushlight.jit.types.relations import NoMatch, is_subtype, match_variables, optional, substitute, unshaped

_OPTIONAL_TENSORS = ListType(OptionalType(TENSOR))
_OPTIONAL_NUMBER = optional(NUMBER)
MakeConstant = Callable[[object, SourceRange], Value]


@dataclass
class Match:
    """A matching schema: the inputs of the node, and the types of its results."""

    schema: FunctionSchema
    inputs: list[Value]
    return_types: list[Type]


class Matcher:
    """Matches arguments for one graph; conversions insert nodes into it."""

    def __init__(self, graph: Graph, constant: MakeConstant):
        self.graph = graph
        self.constant = constant
        self.inferred: set[str] = set()
        """The parameters without annotation, which are tensors."""

    def match(
        self, schema: FunctionSchema, where: SourceRange, args: Sequence[NamedValue], keywords: Sequence[NamedValue],
        convert: bool = True, self_value: NamedValue | None = None,
    ) -> Match:  # fmt: skip
        """Return the arguments for one schema; NoMatch says why they don't fit."""
        positional = ([] if self_value is None else [self_value]) + list(args)
        named = {each.name: each for each in keywords}
        names = {argument.name for argument in schema.arguments}
        if "input" in named and "self" in names and "input" not in names:
            named["self"] = named.pop("input")  # functions of torch call this parameter `input`, operators call it `self`
        used: set[str] = set()
        bound: dict[str, Type] = {}
        inputs: list[Value] = []
        taken = 0
        for argument in schema.arguments:
            given = None
            if not argument.kwarg_only and taken < len(positional):
                is_self = self_value is not None and not taken
                if not is_self and self._takes_the_rest(argument, positional[taken:], schema, convert):
                    given = NamedValue(where, self._collect_list(positional[taken:], argument.type, where))
                    taken = len(positional)
                else:
                    given = positional[taken]
                    taken += 1
                if argument.name in named:
                    raise NoMatch(f"argument '{argument.name}' specified twice")
            elif (name := _find_keyword(argument, schema, named)) is not None:
                given = named[name]
                used.add(name)
            elif argument.has_default:
                inputs.append(self._default_value(argument, where, bound))
                continue
            else:
                raise NoMatch(f"Argument {argument.name} not provided.")
            inputs.append(self._convert(argument, given, convert, bound))
        rest = positional[taken:]
        if rest and not schema.is_vararg:
            raise NoMatch(
                f"Expected at most {len(schema.arguments)} arguments but found {len(positional)} positional arguments."
            )
        inputs += [self._value(each) for each in rest]
        unknown = [name for name in named if name not in used]
        if unknown:
            raise NoMatch(f"Keyword argument {unknown[0]} unknown.")
        return Match(schema, inputs, [substitute(result.type, bound) for result in schema.returns])

    def _takes_the_rest(self, argument: Argument, rest: Sequence[NamedValue], schema: FunctionSchema, convert: bool) -> bool:
        """Return whether the last parameter is a list that takes all remaining arguments, as in `x.view(2, 3)` for `view(int[]
        size)`."""
        positional = [each for each in schema.arguments if not each.kwarg_only]
        if argument is not positional[-1] or not isinstance(argument.type, ListType) or argument.length is not None or not rest:
            return False
        element = argument.type.element
        if isinstance(_type(rest[0]), ListType):
            return False
        if element == INT and all(_type(each) == INT or _is_tensor(each) for each in rest):
            return True
        return convert and all(is_subtype(_type(each), element) or _can_convert(_type(each), element) for each in rest)

    def _collect_list(self, values: Sequence[NamedValue], kind: ListType, where: SourceRange) -> Value:
        items = [self.convert_value(self._value(each), kind.element, True) for each in values]
        node = self.graph.insert("prim::ListConstruct", items)
        node.source_range = where
        return node.output.set_type(kind)

    def _default_value(self, argument: Argument, where: SourceRange, bound: dict[str, Type]) -> Value:
        made = self.constant(argument.default, where)
        return made.set_type(argument.type) if argument.default == [] else made

    def _value(self, given: NamedValue) -> Value:
        return given.value if isinstance(given.value, Value) else self.constant(given.value, given.range)

    def _convert(self, argument: Argument, given: NamedValue, convert: bool, bound: dict[str, Type]) -> Value:
        value = self._value(given)
        formal = argument.type
        try:
            concrete = match_variables(formal, self._as_list(value, formal).type, bound)
        except NoMatch as error:
            raise NoMatch(f"Could not match type {value.type} to {formal} in argument '{argument.name}': {error}.") from None
        value = self.convert_value(value, concrete, convert, argument.length)
        if concrete == _OPTIONAL_TENSORS and value.type == ListType(TENSOR):
            return value
        if not is_subtype(value.type, concrete):
            wanted = argument.type_text if argument.is_inferred else concrete
            raise NoMatch(
                f"Expected a value of type '{wanted}' for argument '{argument.name}' but instead found type '{value.type}'."
                f"{argument.inference_hint}{self._hint(argument, value)}"
            )
        return value

    def _hint(self, argument: Argument, value: Value) -> str:
        """Return a line for errors: the method that a class lacks for an interface; or why the type of an argument is Tensor,
        if it is that of a bare parameter."""
        if isinstance(argument.type, InterfaceType) and isinstance(value.type, ClassType):
            missing = [name for name in argument.type.methods if value.type.find_method(name) is None]
            return f"\n'{value.type}' does not have method '{missing[0]}'" if missing else ""
        if value.node.kind != "prim::Load" or value.node["name"] not in self.inferred:
            return ""
        reason = "because it was not annotated with an explicit type."
        return f"\nInferred the value for argument '{argument.name}' to be of type 'Tensor' {reason}"

    def _as_list(self, value: Value, formal: Type) -> Value:
        wanted = formal.element if isinstance(formal, OptionalType) else formal
        if isinstance(wanted, ListType) and isinstance(value.type, TupleType) and value.type.elements:
            return _Typed(ListType(unshaped(value.type.elements[0])))
        return value

    def convert_value(self, value: Value, wanted: Type, convert: bool, length: int | None = None) -> Value:
        """Convert `value` to `wanted` if there is an implicit conversion; else return it unchanged."""
        target = wanted.element if isinstance(wanted, OptionalType) else NUMBER if wanted == _OPTIONAL_NUMBER else wanted
        if is_subtype(value.type, wanted) and wanted is not ANY:
            return value
        if value.node.kind == "prim::TupleConstruct" and isinstance(target, TupleType) and value.type.name is None:
            return self._convert_elements(value, target, convert)
        if isinstance(target, ListType):
            if value.type == ListType(TENSOR) and value.node.kind == "prim::ListConstruct" and not value.node.inputs:
                return self._insert_node("prim::ListConstruct", [], target)  # `[]` has any list type
            if length is not None and is_subtype(value.type, target.element):
                return self._insert_node("prim::ListConstruct", [value] * length, target)
            if isinstance(value.type, TupleType) and all(is_subtype(each, target.element) for each in value.type.elements):
                return self._list_from_tuple(value, target)
        if not convert:
            return value
        return self._convert_implicitly(value, target)

    def _convert_implicitly(self, value: Value, target: Type) -> Value:
        name = _implicit_conversion(value.type, target)
        if name is None:
            return value
        return self._insert_node(name, [value], INT if name == "aten::Int" else target)

    def _convert_elements(self, value: Value, target: TupleType, convert: bool) -> Value:
        parts = list(value.node.inputs)
        if len(parts) != len(target.elements):
            return value
        made = [self.convert_value(part, kind, convert) for part, kind in zip(parts, target.elements, strict=True)]
        if all(new is old for new, old in zip(made, parts, strict=True)):
            return value
        return self._insert_node("prim::TupleConstruct", made, TupleType(tuple(each.type for each in made)))

    def _list_from_tuple(self, value: Value, target: ListType) -> Value:
        if value.node.kind == "prim::TupleConstruct":
            parts = list(value.node.inputs)
        else:
            node = self.graph.insert("prim::TupleUnpack", [value], 0)
            parts = [node.add_output(kind) for kind in value.type.elements]
        return self._insert_node("prim::ListConstruct", parts, target)

    def _insert_node(self, kind: str, inputs: Sequence[Value], result: Type) -> Value:
        return self.graph.insert(kind, inputs).output.set_type(result)

    def match_operators(
        self, operators: Sequence[Operator], where: SourceRange, args: Sequence[NamedValue], keywords: Sequence[NamedValue],
        self_value: NamedValue | None = None, name: str = "",
    ) -> tuple[Operator, Match]:  # fmt: skip
        """Return the first overload that fits, preferably without implicit conversions. ErrorReport lists every reason."""
        reasons: list[str] = []
        for convert in (False, True):
            for operator in operators:
                try:
                    with self.tentative():
                        return operator, self.match(operator.schema, where, args, keywords, convert, self_value)
                except NoMatch as error:
                    if convert:
                        reasons.append(f"  {operator.schema}:\n  {error}")
        listed = "\n\n".join(reasons)
        head = "Arguments for call are not valid.\nThe following variants are available:\n" if len(reasons) > 1 else ""
        raise ErrorReport(where, f"{head}\n{listed}\n\nThe original call is".replace("\n\n\n", "\n\n").strip("\n"))

    def tentative(self):
        """Return a context that removes inserted nodes if NoMatch leaves it."""
        return _Tentative(self.graph)


class _Tentative:
    def __init__(self, graph: Graph):
        self.graph = graph
        self.last = graph.insert_point.previous

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: type | None, error: object, trace: object) -> None:
        if kind is not None and issubclass(kind, NoMatch):
            while self.graph.insert_point.previous is not self.last:
                self.graph.insert_point.previous.destroy()


_OF_TENSORS = {INT: "aten::IntImplicit", FLOAT: "aten::FloatImplicit", COMPLEX: "aten::ComplexImplicit",
               NUMBER: "aten::ScalarImplicit"}  # fmt: skip
_OF_SCALARS = {INT: "aten::Int", FLOAT: "aten::Float", COMPLEX: "aten::Complex"}
_OF_BOOLS = {INT: "aten::Int", FLOAT: "aten::Float", NUMBER: "aten::Int"}


def _implicit_conversion(kind: Type, target: Type) -> str | None:
    """Return the operator that implicitly converts a value of one type to another; None if there is none."""
    if isinstance(kind, TensorType):
        return _OF_TENSORS.get(target)
    if kind == NUMBER:
        return _OF_SCALARS.get(target)
    if kind == BOOL:
        return _OF_BOOLS.get(target)
    return "aten::device" if kind == STRING and target == DEVICE else None


def _can_convert(kind: Type, target: Type) -> bool:
    return _implicit_conversion(kind, target) is not None


def _find_keyword(argument: Argument, schema: FunctionSchema, named: dict[str, NamedValue]) -> str | None:
    """Return the keyword for an argument: its name, or `input` for an operator's `self`; None if it was not passed."""
    if argument.name in named:
        return argument.name
    return "input" if argument.name == "self" and "input" in named and schema.name.startswith("aten::") else None


@dataclass
class _Typed:
    type: Type


def _type(given: NamedValue) -> Type:
    if isinstance(given.value, Value):
        return given.value.type
    return INT if type(given.value) is int else NONE if given.value is None else ANY


def _is_tensor(given: NamedValue) -> bool:
    return isinstance(given.value, Value) and isinstance(given.value.type, TensorType)
