"""Sugared values that are called: operators, functions, methods, classes, casts and Python's built-ins. Stage: jit,
emission."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from rushlight.core.dtype import dtype
from rushlight.jit.decorators import is_ignored
from rushlight.jit.emit.sugared import NamedValue, SimpleValue, SugaredValue
from rushlight.jit.enumerations import SCALAR_TYPES
from rushlight.jit.errors import ErrorReport, FrontendError
from rushlight.jit.function import Function
from rushlight.jit.ir.graph import Value
from rushlight.jit.operators.registry import operators_named
from rushlight.jit.source import SourceRange
from rushlight.jit.tree_views import Return, Tree
from rushlight.jit.types.kinds import (
    BOOL,
    INT,
    STRING,
    TENSOR,
    ClassType,
    DictType,
    InterfaceType,
    ListType,
    TupleType,
    Type,
)
from rushlight.jit.types.relations import is_subtype

if TYPE_CHECKING:
    from rushlight.jit.emit.emitter import Emitter


@dataclass
class BuiltinFunction(SugaredValue):
    """An operator by its name, `aten::add`; with an overload, `aten.add.Tensor`, only that one."""

    name: str
    overload: str | None = None

    def kind(self) -> str:
        return "builtin"

    def attribute(self, where: SourceRange, emitter: Emitter, name: str) -> SugaredValue:
        overload = "" if name == "default" else name
        if self.overload is not None or all(each.schema.overload != overload for each in operators_named(self.name)):
            raise ErrorReport(where, f"'{self.name}' has no overload '{name}'")
        return BuiltinFunction(self.name, overload)

    def call(
        self, where: SourceRange, emitter: Emitter, args: Sequence[NamedValue], keywords: Sequence[NamedValue]
    ) -> SugaredValue:
        return emitter.emit_operator(self.name, where, args, keywords, overload=self.overload)


@dataclass
class BoundBuiltin(SugaredValue):
    """An operator with its first argument: `x.add`."""

    name: str
    value: Value

    def kind(self) -> str:
        return "builtin"

    def call(
        self, where: SourceRange, emitter: Emitter, args: Sequence[NamedValue], keywords: Sequence[NamedValue]
    ) -> SugaredValue:
        if (
            self.name == "aten::sort"
            and isinstance(self.value.type, ListType)
            and isinstance(self.value.type.element, ClassType)
        ):
            pass  # aten::sort calls the class's __lt__ itself
        return emitter.emit_operator(self.name, where, args, keywords, NamedValue(where, self.value, "self"))


@dataclass
class SpecialMethod(SugaredValue):
    """Methods that are no operators: `wait` of a future, `tolist` of a tensor."""

    name: str
    value: Value

    def kind(self) -> str:
        return "builtin method"

    def call(
        self, where: SourceRange, emitter: Emitter, args: Sequence[NamedValue], keywords: Sequence[NamedValue]
    ) -> SugaredValue:
        if self.name == "wait":
            return SimpleValue(emitter.insert("aten::wait", [self.value], self.value.type.element, where))
        if self.name == "__getitem__":
            if len(args) != 1 or keywords:
                raise ErrorReport(where, f"__getitem__ expected exactly 1 argument, got {len(args) + len(keywords)}")
            return SimpleValue(emitter.index_by_value(where, self.value, emitter.value_of(args[0])))
        if self.name == "where":
            return self._where(where, emitter, args, keywords)
        if self.name == "__len__":
            return SimpleValue(emitter.simple.length(where, self.value))
        return emitter.emit_tolist(where, self.value)

    def _where(
        self, where: SourceRange, emitter: Emitter, args: Sequence[NamedValue], keywords: Sequence[NamedValue]
    ) -> SugaredValue:
        """Emit `tensor.where(condition, other)`, whose operator takes the condition first."""
        condition = [*args[:1], *(each for each in keywords if each.name == "condition")]
        others = [*args[1:], *(each for each in keywords if each.name != "condition")]
        positional = [each for each in others if each.name is None]
        named = [each for each in others if each.name is not None]
        return emitter.emit_operator("aten::where", where, [*condition, NamedValue(where, self.value), *positional], named)


@dataclass
class CastMethod(SugaredValue):
    """`tensor.float()` and its kin: `to` another dtype."""

    value: Value
    dtype_name: str

    def kind(self) -> str:
        return "builtin method"

    def call(
        self, where: SourceRange, emitter: Emitter, args: Sequence[NamedValue], keywords: Sequence[NamedValue]
    ) -> SugaredValue:
        if args or keywords:
            raise ErrorReport(where, "a conversion of a tensor takes no arguments here; use to(dtype)")
        numbers = [emitter.constant(each, where) for each in (SCALAR_TYPES.index(self.dtype_name), False, False, None)]
        return SimpleValue(emitter.insert("aten::to", [self.value, *numbers], TENSOR, where))


@dataclass
class FunctionValue(SugaredValue):
    """A function that was or will be compiled. For several overloads, the first that fits is called."""

    functions: Sequence[Function]

    def kind(self) -> str:
        return "function"

    def call(
        self, where: SourceRange, emitter: Emitter, args: Sequence[NamedValue], keywords: Sequence[NamedValue]
    ) -> SugaredValue:
        return emitter.emit_call(self.functions, where, args, keywords)

    def as_value(self, where: SourceRange, emitter: Emitter) -> Value:
        if len(self.functions) != 1:
            raise ErrorReport(where, "overloaded functions cannot be used as values")
        return emitter.function_constant(self.functions[0], where)


@dataclass
class MethodValue(SugaredValue):
    """A method of an object, or a static method (no object)."""

    value: Value | None
    name: str
    function: Function | None = None

    def kind(self) -> str:
        return "method"

    def call(
        self, where: SourceRange, emitter: Emitter, args: Sequence[NamedValue], keywords: Sequence[NamedValue]
    ) -> SugaredValue:
        if self.value is None:
            return emitter.emit_call([self.function], where, args, keywords)
        kind = self.value.type
        if isinstance(kind, InterfaceType):
            return emitter.emit_method_call(kind.methods[self.name], self.name, self.value, where, args, keywords)
        function = self.function or kind.find_method(self.name)
        if function is None:
            raise ErrorReport(where, f"'{kind}' object has no attribute or method '{self.name}'.")
        return emitter.emit_method_call(function.schema, function.short_name, self.value, where, args, keywords)


@dataclass
class ClassValue(SugaredValue):
    """A class: called, it makes an object."""

    type: ClassType

    def kind(self) -> str:
        return str(self.type)

    def as_type(self) -> Type:
        return self.type

    def attribute(self, where: SourceRange, emitter: Emitter, name: str) -> SugaredValue:
        found = self.type.static_methods.get(name) or self.type.find_method(name)
        if found is None:
            raise ErrorReport(where, f"class '{self.type.name}' does not have a static method called '{name}'")
        return FunctionValue([found])

    def call(
        self, where: SourceRange, emitter: Emitter, args: Sequence[NamedValue], keywords: Sequence[NamedValue]
    ) -> SugaredValue:
        if is_ignored(self.type.python_class):
            raise FrontendError(where, f"Cannot instantiate class '{self.type.short_name}' in a script function: it is ignored")
        node = emitter.graph.insert("prim::CreateObject")
        node.source_range = where
        made = node.output.set_type(self.type)
        if self.type.find_method("__init__") is None:
            raise ErrorReport(where, f"class '{self.type.name}' has no __init__ method, so it can't be constructed")
        MethodValue(made, "__init__").call(where, emitter, args, keywords)
        return SimpleValue(made)


@dataclass
class NamedTupleValue(SugaredValue):
    """A NamedTuple class: called, it makes a tuple."""

    type: TupleType

    def kind(self) -> str:
        return str(self.type)

    def as_type(self) -> Type:
        return self.type

    def call(
        self, where: SourceRange, emitter: Emitter, args: Sequence[NamedValue], keywords: Sequence[NamedValue]
    ) -> SugaredValue:
        named = {each.name: each for each in keywords}
        defaults = dict(
            zip(self.type.fields[len(self.type.fields) - len(self.type.defaults) :], self.type.defaults, strict=True)
        )
        parts = []
        for index, (name, kind) in enumerate(zip(self.type.fields, self.type.elements, strict=True)):
            given = args[index] if index < len(args) else named.pop(name, None)
            if given is None and name not in defaults:
                raise ErrorReport(where, f"Argument {name} not provided for {self.type.name}")
            value = emitter.value_of(given) if given is not None else emitter.constant(defaults[name], where)
            value = emitter.matcher.convert_value(value, kind, True)
            if not is_subtype(value.type, kind):
                wanted = f"{kind} (inferred)" if self._is_inferred(name) else kind
                problem = f"Expected a value of type '{wanted}' for argument '{name}' but instead found type '{value.type}'."
                raise ErrorReport(where, f"{self.type.name}: {problem}")
            parts.append(value)
        if len(args) > len(self.type.fields) or named:
            raise ErrorReport(where, f"{self.type.name} takes the fields {', '.join(self.type.fields)}")
        return SimpleValue(emitter.insert("prim::TupleConstruct", parts, self.type, where))

    def _is_inferred(self, field: str) -> bool:
        """Return whether a field has no annotation."""
        python_class = self.type.python_class
        return python_class is not None and field not in getattr(python_class, "__annotations__", {})


@dataclass
class CastValue(SugaredValue):
    """`int`, `float`, `bool`, `complex` and `str`: types that convert when they are called."""

    type: Type
    operator: str

    def kind(self) -> str:
        return str(self.type)

    def as_type(self) -> Type:
        return self.type

    def call(
        self, where: SourceRange, emitter: Emitter, args: Sequence[NamedValue], keywords: Sequence[NamedValue]
    ) -> SugaredValue:
        if not args and not keywords:
            return SimpleValue(emitter.constant({"aten::str": ""}.get(self.operator, 0 if self.type == INT else 0.0), where))
        if len(args) == 1 and not keywords:
            value = emitter.value_of(args[0])
            if isinstance(value.type, ClassType):
                name = {"aten::Int": "__int__", "aten::Float": "__float__", "aten::Bool": "__bool__", "aten::str": "__str__"}[
                    self.operator
                ]
                return MethodValue(value, name).call(where, emitter, [], [])
            if is_subtype(value.type, self.type) and value.type == self.type:
                return SimpleValue(value)
            if self.type == BOOL and (value.type == STRING or isinstance(value.type, ListType | DictType)):
                length = emitter.call_operator("aten::len", where, [value]).as_value(where, emitter)
                return emitter.call_operator("aten::gt", where, [length, emitter.constant(0, where)])
        return emitter.emit_operator(self.operator, where, args, keywords)


@dataclass
class LegacyTensorValue(SugaredValue):
    """`LongTensor` and its kin: called with ints, an uninitialised tensor of these sizes; with a list, one of its values."""

    dtype: dtype

    def kind(self) -> str:
        return "tensor type"

    def call(
        self, where: SourceRange, emitter: Emitter, args: Sequence[NamedValue], keywords: Sequence[NamedValue]
    ) -> SugaredValue:
        if keywords:
            raise ErrorReport(where, f"Legacy tensor constructors take sizes or one list, got the keyword '{keywords[0].name}'")
        kind = [NamedValue(where, emitter.constant(self.dtype, where), "dtype")]
        values = [emitter.value_of(each) for each in args]
        if all(value.type == INT for value in values):
            sizes = emitter.insert("prim::ListConstruct", values or [emitter.constant(0, where)], ListType(INT), where)
            return emitter.emit_operator("aten::empty", where, [NamedValue(where, sizes)], kind)
        if len(values) != 1:
            raise ErrorReport(where, "Legacy tensor constructor got multiple positional arguments that were not all integers")
        return emitter.emit_operator("aten::tensor", where, args, kind)


@dataclass
class TypeValue(SugaredValue):
    """A type for `isinstance` and annotations only: `Tensor`, `List[int]`."""

    type: Type

    def kind(self) -> str:
        return f"type '{self.type}'"

    def as_type(self) -> Type:
        return self.type


@dataclass
class ClosureValue(SugaredValue):
    """A nested function, which an archive's code has for `fork`. A call emits its body, which ends with a return."""

    body: list[Tree]

    def kind(self) -> str:
        return "closure"

    def call(
        self, where: SourceRange, emitter: Emitter, args: Sequence[NamedValue], keywords: Sequence[NamedValue]
    ) -> SugaredValue:
        if args or keywords or not isinstance(self.body[-1], Return) or _returns(self.body[:-1]):
            raise ErrorReport(where, "a function inside a function takes no arguments, and returns only at its end")
        emitter.push(emitter.graph.insert_point.block)
        emitter.emit_statements(self.body[:-1])
        result = emitter.emit_expression(self.body[-1].value)
        emitter.pop(lambda: None)
        return SimpleValue(result)


def _returns(trees: Sequence[Tree]) -> bool:
    """Return whether some statements contain a return, also nested."""
    for tree in trees:
        inner = [*getattr(tree, "body", ()), *getattr(tree, "true_branch", ()), *getattr(tree, "false_branch", ())]
        if isinstance(tree, Return) or _returns(inner):
            return True
    return False


@dataclass
class SpecialForm(SugaredValue):
    """A function with a compiler rule; `emit` gets the emitter and the call's tree."""

    name: str
    emit: Callable[..., SugaredValue]

    def kind(self) -> str:
        return self.name


@dataclass
class ConstantValue(SugaredValue):
    """A constant of Python, such as a global number."""

    value: object

    def kind(self) -> str:
        return f"python value of type '{type(self.value).__name__}'"

    def has_value(self) -> bool:
        return True

    def as_value(self, where: SourceRange, emitter: Emitter) -> Value:
        return emitter.constant(self.value, where)

    def length(self, where: SourceRange, emitter: Emitter) -> Value:
        return emitter.simple.length(where, self.as_value(where, emitter))

    def attribute(self, where: SourceRange, emitter: Emitter, name: str) -> SugaredValue:
        return emitter.simple.attribute(where, self.as_value(where, emitter), name)


def named(values: Sequence[Value], where: SourceRange) -> list[NamedValue]:
    """Return graph values as arguments."""
    return [NamedValue(where, value) for value in values]
