"""Operations on graph values, by type: select, call, unpack, index, iterate. Stage: jit, emission."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from rushlight.jit.emit.callables import BoundBuiltin, CastMethod, MethodValue, SpecialMethod
from rushlight.jit.emit.sugared import NamedValue, SimpleValue, SugaredValue
from rushlight.jit.errors import ErrorReport
from rushlight.jit.ir.graph import Value
from rushlight.jit.operators.registry import operators_named
from rushlight.jit.source import SourceRange
from rushlight.jit.types.kinds import (
    ANY,
    ANY_TUPLE,
    BOOL,
    COMPLEX,
    DEVICE,
    FLOAT,
    INT,
    NONE,
    STRING,
    TENSOR,
    ClassType,
    DictType,
    EnumType,
    FutureType,
    InterfaceType,
    ListType,
    OptionalType,
    TensorType,
    TupleType,
    Type,
)
from rushlight.jit.types.relations import implements, is_subtype, unify, unshaped

if TYPE_CHECKING:
    from rushlight.jit.emit.emitter import Emitter

_TENSOR_PROPERTIES = {
    "dtype": ("prim::dtype", INT), "device": ("prim::device", DEVICE), "grad": ("prim::grad", TENSOR), "data":
    ("prim::data", TENSOR),
    "shape": ("aten::size", ListType(INT)), "is_cuda": ("prim::is_cuda", BOOL), "is_cpu": ("prim::is_cpu", BOOL),
    "is_sparse": ("prim::is_sparse", BOOL), "is_quantized": ("prim::is_quantized", BOOL), "is_meta": ("prim::is_meta", BOOL),
    "requires_grad": ("prim::requires_grad", BOOL), "layout": ("prim::layout", INT), "T": ("aten::numpy_T", TENSOR),
    "H": ("aten::matrix_H", TENSOR), "mT": ("aten::mT", TENSOR), "mH": ("aten::mH", TENSOR), "ndim": ("aten::dim", INT),
    "is_leaf": ("aten::is_leaf", BOOL),
    "is_sparse_csr": ("prim::is_sparse_csr", BOOL), "is_xpu": ("prim::is_xpu", BOOL),
    "is_mkldnn": ("prim::is_mkldnn", BOOL), "is_vulkan": ("prim::is_vulkan", BOOL), "is_mps": ("prim::is_mps", BOOL),
    "itemsize": ("prim::itemsize", INT), "nbytes": ("prim::nbytes", INT),
    "real": ("aten::real", TENSOR), "imag": ("aten::imag", TENSOR), "name": ("prim::name", OptionalType(STRING)),
}  # fmt: skip
_CASTS = {"float": "float32", "double": "float64", "half": "float16", "bfloat16": "bfloat16", "int": "int32", "long": "int64",
          "short": "int16", "char": "int8", "byte": "uint8", "bool": "bool", "cfloat": "complex64", "cdouble": "complex128"}
_ENUM = {"name": "prim::EnumName", "value": "prim::EnumValue"}
_METHOD_NAMES = {"tolist", "__len__"}


class SimpleValues:
    """The rules for the values of one graph."""

    def __init__(self, emitter: Emitter):
        self.emitter = emitter

    def _insert(self, kind: str, inputs: Sequence[Value], result: Type, where: SourceRange) -> Value:
        return self.emitter.insert(kind, inputs, result, where)

    # Access attributes

    def attribute(self, where: SourceRange, value: Value, name: str) -> SugaredValue:
        """Emit `value.name`."""
        found = self._find_attribute(where, value, name)
        if found is None:
            raise ErrorReport(where, self._missing_attribute_message(value.type, name))
        return found

    def has_attribute(self, where: SourceRange, value: Value, name: str) -> bool:
        """Emit `hasattr(value, name)`, decided at compile time."""
        if isinstance(value.type, ClassType):
            kind = value.type
            return name in kind.attributes or name in kind.constants or kind.find_method(name) is not None
        if isinstance(value.type, TupleType) and value.type.fields:
            return name in value.type.fields
        if isinstance(value.type, TupleType):
            given = "but got a normal Tuple"
            raise ErrorReport(where, f"hasattr's and getattr's first argument must be an object or NamedTuple, {given}")
        raise ErrorReport(where, f"hasattr's first argument must be a object or NamedTuple, but got a {value.type}")

    def _missing_attribute_message(self, kind: Type, name: str) -> str:
        if isinstance(kind, OptionalType):
            return (
                f"'{kind}' object has no attribute or method '{name}'. "
                "The value may be None: check it with 'is not None' or assert before"
            )
        python_class = kind.python_class if isinstance(kind, ClassType) else None
        if python_class is not None and hasattr(python_class, name):
            return (
                f"'{kind}' object has no attribute or method '{name}'. '{name}' is defined as a class attribute, which is not "
                "supported: make it an attribute of the instance in __init__"
            )
        return f"'{kind}' object has no attribute or method '{name}'."

    def _find_attribute(self, where: SourceRange, value: Value, name: str) -> SugaredValue | None:
        kind = value.type
        if isinstance(kind, TensorType) and name in _TENSOR_PROPERTIES:
            operator, result = _TENSOR_PROPERTIES[name]
            return SimpleValue(self._insert(operator, [value], result, where))
        if isinstance(kind, TupleType) and name in kind.fields:
            return SimpleValue(self.element(where, value, kind.fields.index(name)))
        if isinstance(kind, ClassType):
            return self._attribute_of_class(where, value, kind, name)
        if isinstance(kind, InterfaceType):
            return MethodValue(value, name) if name in kind.methods else None
        if isinstance(kind, EnumType) and name in _ENUM:
            result = STRING if name == "name" else kind.value_type
            return SimpleValue(self._insert(_ENUM[name], [value], result, where))
        if kind == DEVICE and name in ("type", "index"):
            return SimpleValue(self._insert(f"prim::{name}", [value], STRING if name == "type" else OptionalType(INT), where))
        if isinstance(kind, TensorType) and name in _CASTS:
            return CastMethod(value, _CASTS[name])
        return self._method(value, name)

    def _attribute_of_class(self, where: SourceRange, value: Value, kind: ClassType, name: str) -> SugaredValue | None:
        attribute = kind.attributes.get(name)
        if attribute is not None:
            node = self.emitter.graph.insert("prim::GetAttr", [value]).set("name", name)
            node.source_range = where
            node.output.type = attribute.type
            is_plain = name.isidentifier() and name.isascii()
            node.output.debug_name = name if is_plain else "_" + re.sub(r"\W", "_", name, flags=re.ASCII)
            return SimpleValue(node.output)
        if name in kind.properties:
            getter = kind.properties[name][0]
            return MethodValue(value, getter.short_name, getter).call(where, self.emitter, [], [])
        if name in kind.constants:
            return self.emitter.sugared_constant(kind.constants[name], where)
        if kind.find_method(name) is not None:
            static = kind.static_methods.get(name)
            return MethodValue(None, name, static) if static is not None else MethodValue(value, name)
        if name in kind.unresolved:
            raise ErrorReport(
                where, f"Module '{kind.name.rpartition('.')[2]}' has no attribute '{name}' {kind.unresolved[name]}"
            )
        return None

    def _method(self, value: Value, name: str) -> SugaredValue | None:
        if isinstance(value.type, FutureType) and name == "wait":
            return SpecialMethod("wait", value)
        if name in _METHOD_NAMES or isinstance(value.type, TensorType) and name in ("__getitem__", "where"):
            return SpecialMethod(name, value)
        if value.type in (INT, FLOAT, COMPLEX):  # numbers have no methods, though operators take them first
            return None
        own = isinstance(value.type, TensorType) or name in (
            "sort",
            "copy",
            "format",
            "index",
            "clear",
            "pop",
            "count",
            "split",
        )
        for operators in (operators_named(f"aten::{name}"), operators_named(f"prim::{name}")):
            formals = [each.schema.arguments[0].type for each in operators if each.schema.arguments]
            if any(self._accepts_type(formal, value.type) for formal in formals):
                return BoundBuiltin(operators[0].schema.name, value)
        return BoundBuiltin(f"aten::{name}", value) if own and operators_named(f"aten::{name}") else None

    def _accepts_type(self, formal: Type, actual: Type) -> bool:
        if is_subtype(actual, formal):
            return True
        if isinstance(formal, ListType | DictType):
            return type(formal) is type(actual)
        return False

    def set_attribute(self, where: SourceRange, target: Value, name: str, value: Value) -> None:
        """Emit `target.name = value`; in `__init__` a new attribute gets the value's type."""
        kind = target.type
        if not isinstance(kind, ClassType):
            raise ErrorReport(where, f"Tried to set an attribute: {name} on a non-class: {kind}")
        if name in kind.properties and kind.properties[name][1] is not None:
            setter = kind.properties[name][1]
            MethodValue(target, setter.short_name, setter).call(where, self.emitter, [NamedValue(where, value)], [])
            return
        if name not in kind.attributes:
            self._declare(where, kind, name, value)
        wanted = kind.attributes[name].type
        value = self.emitter.matcher.convert_value(value, wanted, False)
        if not is_subtype(value.type, wanted):
            raise ErrorReport(where, f"Wrong type for attribute assignment. Expected {wanted} but got {value.type}")
        self.emitter.graph.insert("prim::SetAttr", [target, value], 0).set("name", name).source_range = where

    def _declare(self, where: SourceRange, kind: ClassType, name: str, value: Value) -> None:
        if not self.emitter.is_initializer_of(kind):
            hint = "" if kind.is_module else " Did you forget to initialize an attribute in __init__()?"
            raise ErrorReport(where, f"Tried to set nonexistent attribute: {name}.{hint}")
        if self.emitter.in_control_flow:
            hint = f"Initialize the field at the top level first, to give attribute '{name}' a type"
            raise ErrorReport(where, f"First assignment cannot be in a control-flow block. {hint}")
        kind.add_attribute(name, kind.annotations.get(name, unshaped(value.type)))

    # Call values

    def call(
        self, where: SourceRange, value: Value, args: Sequence[NamedValue], keywords: Sequence[NamedValue]
    ) -> SugaredValue:
        """Emit `value(args)`: `forward` of a module, `__call__` of a class."""
        kind = value.type
        if isinstance(kind, ClassType | InterfaceType):
            module = kind.is_module
            for name in ("forward", "__call__") if module else ("__call__",):
                if (kind.find_method(name) if isinstance(kind, ClassType) else kind.methods.get(name)) is not None:
                    return MethodValue(value, name).call(where, self.emitter, args, keywords)
        raise ErrorReport(where, f"cannot call a value: '{kind}' object is not callable")

    def enter(self, where: SourceRange, value: Value) -> SugaredValue:
        """Emit `value.__enter__()`, for an object of a class."""
        if not isinstance(value.type, ClassType) or any(
            value.type.find_method(each) is None for each in ("__enter__", "__exit__")
        ):
            raise ErrorReport(
                where, f"Object of type {value.type} does not define __enter__ and __exit__ methods: it can't be used in with"
            )
        self._check_context_manager(where, value.type)
        node = self.emitter.graph.insert("prim::Enter", [value])
        node.source_range = where
        node.output.type = value.type.find_method("__enter__").schema.return_type
        return SimpleValue(node.output)

    def _check_context_manager(self, where: SourceRange, kind: ClassType) -> None:
        enter, leave = (kind.find_method(name).schema for name in ("__enter__", "__exit__"))
        if len(enter.arguments) != 1:
            raise ErrorReport(where, "__enter__ must have only one argument and one return value")
        if len(leave.arguments) != 4:
            raise ErrorReport(where, "__exit__ must have four arguments")
        wrong = next((index for index in (1, 2, 3) if leave.arguments[index].type is not ANY), None)
        if wrong is not None:
            raise ErrorReport(where, f"argument {wrong} of __exit__ must have Any type, since no exception reaches it")

    # Unpack, index and iterate

    def unpack(self, where: SourceRange, value: Value, count: int | None) -> list[SugaredValue]:
        """Return the elements for `count` targets."""
        kind = value.type
        if isinstance(kind, TupleType):
            node = self.emitter.graph.insert("prim::TupleUnpack", [value], 0)
            node.source_range = where
            return [SimpleValue(node.add_output(element)) for element in kind.elements]
        if isinstance(kind, ListType | TensorType):
            if count is None and isinstance(kind, ListType):
                raise ErrorReport(where, "cannot statically infer the expected size of a list in this context")
            if count is None:
                raise ErrorReport(where, f"'{kind}' object cannot be used as a tuple: its size is not known here")
            if isinstance(kind, TensorType):
                value = self._insert("aten::unbind", [value, self.emitter.constant(0, where)], ListType(TENSOR), where)
            node = self.emitter.graph.insert("prim::ListUnpack", [value], 0)
            node.source_range = where
            return [SimpleValue(node.add_output(value.type.element)) for _ in range(count)]
        if kind in (ANY, ANY_TUPLE):
            raise ErrorReport(where, "Provided tuple is not fully defined/refined including its element types")
        raise ErrorReport(where, f"'{kind}' object cannot be used as a tuple")

    def static_elements(self, where: SourceRange, value: Value) -> list[SugaredValue] | None:
        """Return the elements of a tuple for unrolling; loops over other values run in the graph."""
        return self.unpack(where, value, None) if isinstance(value.type, TupleType) else None

    def element(self, where: SourceRange, value: Value, position: int) -> Value:
        """Return an element of a tuple, by its number."""
        kind = value.type
        count = len(kind.elements)
        if not -count <= position < count:
            raise ErrorReport(where, f"Tuple index out of range. Tuple is length {count} and index is {position}")
        index = self.emitter.constant(position, where)
        return self._insert("prim::TupleIndex", [value, index], kind.elements[position], where)

    def length(self, where: SourceRange, value: Value) -> Value:
        """Emit `len(value)`."""
        if isinstance(value.type, TupleType) and value.type.elements:
            value = self._tuple_to_list(where, value)
        if isinstance(value.type, ListType | DictType | TensorType) or value.type == STRING:
            return self.emitter.call_operator("aten::len", where, [value]).as_value(where, self.emitter)
        if isinstance(value.type, TupleType):
            return self.emitter.constant(0, where)
        raise ErrorReport(where, f"'{value.type}' object is not iterable")

    def _tuple_to_list(self, where: SourceRange, value: Value) -> Value:
        """Return the elements of a tuple as a list; a list of Any if they have no common type."""
        kinds = [unshaped(kind) for kind in value.type.elements]
        element: Type | None = kinds[0]
        for kind in kinds[1:]:
            element = element and unify(element, kind)
        parts = [each.as_value(where, self.emitter) for each in self.unpack(where, value, None)]
        return self._insert("prim::ListConstruct", parts, ListType(element or ANY), where)

    def module_item(self, where: SourceRange, value: Value, index: Value, interface: InterfaceType) -> SugaredValue:
        """Return the submodule that an index or key selects at run time, typed as an interface that all submodules have."""
        for name, attribute in value.type.attributes.items():
            if isinstance(attribute.type, ClassType) and attribute.type.is_module and not implements(attribute.type, interface):
                raise ErrorReport(
                    where,
                    f"Attribute {name} is not of annotated type {interface.name}: Class '{attribute.type}' does not have its "
                    f"methods {', '.join(interface.methods)} with the same signatures",
                )
        return SimpleValue(self._insert("prim::ModuleContainerIndex", [value, index], interface, where))

    def item(self, where: SourceRange, value: Value, index: Value, hint: Type | None = None) -> SugaredValue:
        """Emit `value[index]` with one index that is no slice, as loops take elements."""
        kind = value.type
        if isinstance(kind, TensorType):
            zero = self.emitter.constant(0, where)
            return SimpleValue(self._insert("aten::select", [value, zero, index], TENSOR, where))
        if isinstance(kind, TupleType):
            return self._tuple_item(where, value, index)
        if isinstance(kind, ClassType) and kind.is_module and isinstance(hint, InterfaceType):
            return self.module_item(where, value, index, hint)
        if isinstance(kind, ClassType):
            return MethodValue(value, "__getitem__").call(where, self.emitter, [NamedValue(where, index)], [])
        if isinstance(kind, ListType | DictType) or kind == STRING:
            return self.emitter.call_operator("aten::__getitem__", where, [value, index])
        if kind is NONE or isinstance(kind, OptionalType):
            raise ErrorReport(where, f"'{kind}' object is not subscriptable. Check it with 'is not None' before")
        raise ErrorReport(where, f"'{kind}' object is not subscriptable")

    def _tuple_item(self, where: SourceRange, value: Value, index: Value) -> SugaredValue:
        position = index.constant()
        if isinstance(position, int):
            return SimpleValue(self.element(where, value, position))
        kinds = value.type.elements
        joined: Type | None = kinds[0] if kinds else None
        for kind in kinds[1:]:
            joined = joined and unify(joined, kind)
        if index.type != INT:
            raise ErrorReport(where, f"tuple index must be an integer, got {index.type}")
        if joined is None:
            raise ErrorReport(
                where,
                "Cannot index into a tuple with a non-integer literal because we cannot resolve the output type: "
                "its elements have different types",
            )
        return SimpleValue(self._insert("prim::TupleIndex", [value, index], joined, where))


NUMERIC = (INT, FLOAT, BOOL)
