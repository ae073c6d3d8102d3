"""Modules as sugared values: attributes, submodules, methods, and loops over containers. Stage: jit, emission."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from rushlight.core.naming import own_module
from rushlight.jit.decorators import is_ignored, is_unused
from rushlight.jit.emit.callables import MethodValue
from rushlight.jit.emit.hook_checks import check_hook, check_pre_hook
from rushlight.jit.emit.python_values import Compiler, IgnoredFunction, PythonResolver
from rushlight.jit.emit.sugared import NamedValue, SimpleValue, SugaredValue, TupleOfSugared
from rushlight.jit.errors import ErrorReport
from rushlight.jit.function import Function
from rushlight.jit.ir.graph import Value
from rushlight.jit.overloads import overloads_of
from rushlight.jit.source import SourceRange
from rushlight.jit.types.kinds import NONE, TENSOR, InterfaceType, ListType, TupleType, Type
from rushlight.nn.modules.container import ModuleDict
from rushlight.nn.modules.module import Module
from rushlight.nn.modules.parameter_container import ParameterDict
from rushlight.nn.modules.rnn import RNNBase

if TYPE_CHECKING:
    from rushlight.jit.concrete import ConcreteModule
    from rushlight.jit.emit.emitter import Emitter


TRAVERSALS = ("named_buffers", "children", "named_children", "modules", "named_modules")
"""Module methods whose results are iterated at compile time, by unrolling."""


class ModuleResolver(PythonResolver):
    """The resolver of a module's methods: `self` is the module."""

    def __init__(
        self,
        lookup: Callable[[str], object],
        compiler: Compiler,
        concrete: ConcreteModule,
        property_of: Callable[[ConcreteModule, str], tuple[Function, Function | None]],
    ):
        super().__init__(lookup, compiler)
        self.concrete = concrete
        self.property_of = property_of

    def self_value(self, value: Value) -> SugaredValue:
        """Return the value of `self`."""
        return ModuleValue(value, self.concrete, self)


@dataclass
class ModuleValue(SugaredValue):
    """A module: its graph value, and its concrete type."""

    value: Value
    concrete: ConcreteModule
    resolver: ModuleResolver

    def kind(self) -> str:
        return "module"

    def as_value(self, where: SourceRange, emitter: Emitter) -> Value:
        return self.value

    def attribute(self, where: SourceRange, emitter: Emitter, name: str) -> SugaredValue:
        found = self._find(where, emitter, name)
        if found is None:
            reason = self.concrete.failed.get(name, "")
            raise ErrorReport(
                where, f"Module '{self.concrete.python_class.__name__}' has no attribute '{name}' {reason}".rstrip()
            )
        return found

    def _find(self, where: SourceRange, emitter: Emitter, name: str) -> SugaredValue | None:
        child = self.concrete.submodules.get(name)
        if child is not None and self.concrete.type.attributes[name].type is child.type:
            value = emitter.simple.attribute(where, self.value, name).as_value(where, emitter)
            return ModuleValue(value, child, self.resolver)
        if name == "_flat_weights" and issubclass(self.concrete.python_class, RNNBase):
            return SimpleValue(self._weights(where, emitter))
        if name in self.concrete.constants:
            if isinstance(self.concrete.constants[name], bool):
                return SimpleValue(emitter.static(self.concrete.constants[name], where))
            return self.resolver.constant_value(_make_immutable(self.concrete.constants[name]), where, emitter)
        if name in self.concrete.functions:
            return self.resolver.sugared(self.concrete.functions[name], where, name)
        if name in self.concrete.type.attributes:
            return emitter.simple.attribute(where, self.value, name)
        if self.concrete.is_iterable and name in ("keys", "values", "items"):
            return ContainerMethod(self, name)
        if name in TRAVERSALS and getattr(self.concrete.python_class, name, None) is getattr(Module, name):
            return ContainerMethod(self, name)
        return self._method(where, emitter, name)

    def _method(self, where: SourceRange, emitter: Emitter, name: str) -> SugaredValue | None:
        python = getattr(self.concrete.python_class, name, None)
        if isinstance(python, property):
            if is_unused(python.fget) or is_ignored(python.fget):
                return IgnoredFunction(python.fget, is_unused(python.fget), self.value).call(where, emitter, [], [])
            return self._property(where, emitter, name)
        declared = getattr(self.concrete.python_class, "__overloads__", {}).get(name)
        if declared is not None:
            return OverloadedMethod(self.value, list(declared))
        if is_ignored(python) or is_unused(python):
            return IgnoredFunction(python, is_unused(python), self.value)
        overloads = overloads_of(python) if inspect.isfunction(python) else []
        if overloads:
            return OverloadedMethod(self.value, [f"{name}__{index}" for index in range(len(overloads))])
        if name == "forward" and issubclass(self.concrete.python_class, RNNBase) and python is RNNBase.forward:
            return OverloadedMethod(self.value, ["forward", "forward__1"])
        if self.concrete.type.find_method(name) is not None:
            static = self.concrete.type.static_methods.get(name)
            return MethodValue(None, name, static) if static is not None else MethodValue(self.value, name)
        if python is not None and not callable(python):
            return self.resolver.constant_value(python, where, emitter)
        return None

    def _weights(self, where: SourceRange, emitter: Emitter) -> Value:
        """Return the weights of a recurrent layer, layer by layer."""
        values = [each.as_value(where, emitter) for each in self._child_values(where, emitter)]
        return emitter.insert("prim::ListConstruct", values, ListType(TENSOR), where)

    def _property(self, where: SourceRange, emitter: Emitter, name: str) -> SugaredValue:
        getter = self.resolver.property_of(self.concrete, name)[0]
        return MethodValue(self.value, getter.short_name, getter).call(where, emitter, [], [])

    def has_attribute(self, where: SourceRange, emitter: Emitter, name: str) -> bool:
        concrete = self.concrete
        known = (concrete.submodules, concrete.constants, concrete.functions, concrete.type.attributes)
        return any(name in each for each in known) or hasattr(concrete.python_class, name)

    def set_attribute(self, where: SourceRange, emitter: Emitter, name: str, value: Value) -> None:
        attribute = self.concrete.type.attributes.get(name)
        is_interface = attribute is not None and isinstance(attribute.type, InterfaceType)
        is_submodule = name in self.concrete.submodules and not is_interface
        if name in self.concrete.constants or is_submodule and attribute.type is not value.type:
            raise ErrorReport(where, f"Tried to set the constant '{name}' of a module; only attributes can be assigned")
        if name in self.concrete.failed:
            raise ErrorReport(where, f"Tried to set nonexistent attribute: {name}. {self.concrete.failed[name]}")
        if isinstance(getattr(self.concrete.python_class, name, None), property):
            self.resolver.property_of(self.concrete, name)
        emitter.simple.set_attribute(where, self.value, name, value)

    def call(
        self, where: SourceRange, emitter: Emitter, args: Sequence[NamedValue], keywords: Sequence[NamedValue]
    ) -> SugaredValue:
        forward = self.attribute(where, emitter, "forward")
        if not self.concrete.pre_hooks and not self.concrete.hooks:
            return forward.call(where, emitter, args, keywords)
        return self._call_with_hooks(forward, where, emitter, [*args, *keywords])

    def _call_with_hooks(
        self, forward: SugaredValue, where: SourceRange, emitter: Emitter, args: Sequence[NamedValue]
    ) -> SugaredValue:
        """Return a call with the module's scripted hooks around it. A hook that returns None changes nothing."""
        given = [emitter.value_of(each) for each in args]
        kind, module = self.value.type, self.concrete.python_class.__name__
        for name in self.concrete.pre_hooks:
            check_pre_hook(where, name, module, kind.find_method(name).schema, [each.type for each in given])
            packed = NamedValue(where, emitter.make_tuple(given, where))
            changed = MethodValue(self.value, name).call(where, emitter, [packed], []).as_value(where, emitter)
            if isinstance(changed.type, TupleType):
                given = [each.as_value(where, emitter) for each in emitter.simple.unpack(where, changed, None)]
            elif changed.type is not NONE:
                given = [changed]
        result = forward.call(where, emitter, [NamedValue(where, each) for each in given], [])
        for name in self.concrete.hooks:
            packed = NamedValue(where, emitter.make_tuple(given, where))
            value = result.as_value(where, emitter)
            check_hook(where, name, module, kind.find_method(name).schema, [each.type for each in given], value.type)
            output = NamedValue(where, value)
            changed = MethodValue(self.value, name).call(where, emitter, [packed, output], []).as_value(where, emitter)
            if changed.type is not NONE:
                result = SimpleValue(changed)
        return result

    # Module containers

    def _child_values(self, where: SourceRange, emitter: Emitter) -> list[SugaredValue]:
        names = self.concrete.submodules or [name for name, each in self.concrete.type.attributes.items() if each.is_parameter]
        return [self.attribute(where, emitter, name) for name in names]

    def keys(self) -> list[str]:
        """Return the names of a container's children."""
        if self.concrete.submodules:
            return list(self.concrete.submodules)
        return [name for name, each in self.concrete.type.attributes.items() if each.is_parameter]

    def named_buffers(self, where: SourceRange, emitter: Emitter) -> list[tuple[str, SugaredValue]]:
        """Return the module's own buffers, without those that are None."""
        names = [name for name, each in self.concrete.type.attributes.items() if each.is_buffer and each.type is not NONE]
        return [(name, self.attribute(where, emitter, name)) for name in names]

    def named_children(self, where: SourceRange, emitter: Emitter) -> list[tuple[str, SugaredValue]]:
        """Return the submodules."""
        return [(name, self.attribute(where, emitter, name)) for name in self.concrete.submodules]

    def named_modules(self, where: SourceRange, emitter: Emitter, prefix: str = "") -> list[tuple[str, SugaredValue]]:
        """Return the module and all modules below it, by path."""
        found: list[tuple[str, SugaredValue]] = [(prefix, self)]
        for name, child in self.named_children(where, emitter):
            path = f"{prefix}.{name}" if prefix else name
            found += child.named_modules(where, emitter, path) if isinstance(child, ModuleValue) else [(path, child)]
        return found

    def static_elements(self, where: SourceRange, emitter: Emitter) -> list[SugaredValue] | None:
        if not self.concrete.is_iterable:
            raise ErrorReport(
                where, "Only constant Sequential, ModuleList, ModuleDict, or ParameterList can be used as an iterable"
            )
        if issubclass(self.concrete.python_class, ModuleDict | ParameterDict):
            return [SimpleValue(emitter.constant(key, where)) for key in self.keys()]
        return self._child_values(where, emitter)

    def as_tuple(self, where: SourceRange, emitter: Emitter, count: int | None = None) -> list[SugaredValue]:
        return self.static_elements(where, emitter)

    @property
    def has_own_length(self) -> bool:
        """Return whether the user's class defines `__len__`."""
        found = getattr(self.concrete.python_class, "__len__", None)
        return found is not None and not own_module(found).startswith("rushlight.")

    def length(self, where: SourceRange, emitter: Emitter) -> Value:
        return emitter.constant(len(self.static_elements(where, emitter)), where)

    def contains(self, where: SourceRange, key: Value) -> bool:
        """Emit `key in self`, for a container with names."""
        if not self.concrete.is_iterable or not isinstance(key.constant(), str):
            raise ErrorReport(where, "only a string literal can be looked for in a ModuleDict or ParameterDict")
        return key.constant() in self.keys()

    def item(self, where: SourceRange, emitter: Emitter, index: Value, kind: Type | None = None) -> SugaredValue:
        children = self._child_values(where, emitter)
        position = index.constant()
        if isinstance(position, str) and position in self.keys():
            return children[self.keys().index(position)]
        if isinstance(position, int) and -len(children) <= position < len(children):
            return children[position]
        if isinstance(kind, InterfaceType):
            return emitter.simple.module_item(where, self.value, index, kind)
        if isinstance(position, str):
            raise ErrorReport(where, f"Key Error, {position}")
        if isinstance(position, int):
            raise ErrorReport(where, f"Index {position} out of range of {len(children)} modules")
        if issubclass(self.concrete.python_class, ModuleDict):
            raise ErrorReport(
                where, "Unable to extract string literal index. ModuleDict indexing is only supported with string literals. "
                       "For example, 'i = \"a\"; self.layers[i](x)' will fail because i is not a literal. Enumeration is "
                       "supported, e.g. 'for k, v in self.items(): out = v(inp)'"
            )  # fmt: skip
        raise ErrorReport(
            where, "Expected integer literal for index. ModuleList/Sequential indexing is only supported with integer "
                   "literals. "
                   "For example, 'i = 4; self.layers[i](x)' will fail because i is not a literal. Enumeration is supported, "
                   "e.g. 'for index, v in enumerate(self): out = v(inp)'"
        )  # fmt: skip


@dataclass
class ContainerMethod(SugaredValue):
    """`keys`, `values` and `items` of a ModuleDict or ParameterDict."""

    module: ModuleValue
    name: str

    def kind(self) -> str:
        return "method of a module container"

    def call(
        self, where: SourceRange, emitter: Emitter, args: Sequence[NamedValue], keywords: Sequence[NamedValue]
    ) -> SugaredValue:
        if self.name in TRAVERSALS:
            if args or keywords:
                raise ErrorReport(where, f"{self.name}() takes no arguments in scripts")
            return TupleOfSugared(self._list_members(where, emitter))
        keys: list[SugaredValue] = [SimpleValue(emitter.constant(key, where)) for key in self.module.keys()]
        values = self.module._child_values(where, emitter)
        if self.name == "keys":
            return TupleOfSugared(keys)
        if self.name == "values":
            return TupleOfSugared(values)
        return TupleOfSugared([TupleOfSugared([key, value]) for key, value in zip(keys, values, strict=True)])

    def _list_members(self, where: SourceRange, emitter: Emitter) -> list[SugaredValue]:
        if self.name == "named_buffers":
            found = self.module.named_buffers(where, emitter)
        elif self.name.endswith("children"):
            found = self.module.named_children(where, emitter)
        else:
            found = self.module.named_modules(where, emitter)
        if not self.name.startswith("named_"):
            return [value for _, value in found]
        return [TupleOfSugared([SimpleValue(emitter.constant(name, where)), value]) for name, value in found]


@dataclass
class OverloadedMethod(SugaredValue):
    """A method with several declared signatures: the first that fits is called."""

    value: Value
    names: list[str]

    def kind(self) -> str:
        return "overloaded method"

    def call(
        self, where: SourceRange, emitter: Emitter, args: Sequence[NamedValue], keywords: Sequence[NamedValue]
    ) -> SugaredValue:
        functions = [self.value.type.find_method(name) for name in self.names]
        signatures = [(function.schema, function.short_name) for function in functions]
        return emitter.emit_overloaded_method_call(signatures, self.value, where, args, keywords)


def _make_immutable(value: object) -> object:
    return tuple(map(_make_immutable, value)) if isinstance(value, list) else value
