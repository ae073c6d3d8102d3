"""Scripted modules: nn.Modules whose methods run as TorchScript.

A ScriptModule holds parameters, buffers and submodules like any module, so that it trains, moves and saves like one. Scripted
code reaches them through an object whose slots are the module's own attributes.
"""

from __future__ import annotations

import copy
import functools
import inspect
import sys
import types
from collections.abc import Callable, Iterator, MutableMapping
from typing import TYPE_CHECKING

from rushlight._C import ModuleSlotsBase
from rushlight.core.lazy_module import LazyModule
from rushlight.core.naming import own_module
from rushlight.jit.concrete import ConcreteModule
from rushlight.jit.decorators import is_exported, is_ignored
from rushlight.jit.function import Function
from rushlight.jit.runtime.conversions import from_script
from rushlight.jit.runtime.executor import run_function
from rushlight.jit.runtime.objects import ScriptObject
from rushlight.jit.runtime.type_checks import to_script
from rushlight.jit.savable import Savable
from rushlight.jit.script_function import Binding, CannotBind, ScriptFunction, call_of_override
from rushlight.jit.source import NO_SOURCE
from rushlight.jit.types.kinds import NONE, InterfaceType, Type
from rushlight.jit.types.relations import implements
from rushlight.nn import Module

if TYPE_CHECKING:
    from rushlight.jit.graph_api import Graph

# Imported lazily: a loaded module may never need the compiler.
compiler, definitions, hook_checks, language, module_types, module_values, overloads = map(LazyModule, (
    "rushlight.jit.compiler", "rushlight.jit.frontend.definitions", "rushlight.jit.emit.hook_checks", "rushlight.jit.language",
    "rushlight.jit.module_types", "rushlight.jit.emit.module_values", "rushlight.jit.overloads",
))  # fmt: skip


class ModuleSlots(ModuleSlotsBase, MutableMapping):
    """A module's parameters, buffers, submodules and attributes by name, for scripted code. C code reads them."""

    __slots__ = ()

    def entry(self, name: str) -> tuple[dict, str, object]:
        """Return the location of an attribute: the module's dict, its name there, and the kind of its content (a module for a
        submodule)."""
        module = self._module
        tables = (module._parameters, module._buffers, module._modules, module.__dict__)
        table = next(table for table in tables if name in table)
        return table, name, table[name]

    def __setitem__(self, name: str, value: object) -> None:
        module = self._module
        if name in module._parameters:
            module._parameters[name] = value
        elif name in module._buffers:
            module._buffers[name] = value
        elif name in module._modules:
            module._modules[name] = value.slots._module if isinstance(value, ScriptObject) else value
        else:
            module.__dict__[name] = value

    def __delitem__(self, name: str) -> None:
        raise TypeError("attributes of a scripted module can't be deleted")

    def __iter__(self) -> Iterator[str]:
        return iter(self._module._c.type.attributes)

    def __len__(self) -> int:
        return len(self._module._c.type.attributes)

    def __deepcopy__(self, memo: dict[int, object]) -> ModuleSlots:
        return copy.deepcopy(self._module, memo)._c.slots


class _CompilesWhenMade(type(Module)):
    """The metaclass of ScriptModule: compiles an instance of a subclass after its `__init__`."""

    def __call__(cls, *args: object, **kwargs: object) -> ScriptModule:
        made = super().__call__(*args, **kwargs)
        if made._c is None:
            made._compile()
        return made


class ScriptModule(Savable, Module, metaclass=_CompilesWhenMade):
    """A module whose methods are scripted. Made by `script`, `trace` and `load`, or by a subclass with `script_method`s."""

    def __init__(self) -> None:
        super().__init__()
        object.__setattr__(self, "_c", None)

    @classmethod
    def _make_module(cls, concrete: ConcreteModule) -> ScriptModule:
        """Return a module of a type, still without parameters, buffers and submodules."""
        made = RecursiveScriptModule.__new__(RecursiveScriptModule)
        Module.__init__(made)
        made._take_type(concrete)
        return made

    def _take_type(self, concrete: ConcreteModule) -> None:
        inner = ScriptObject(concrete.type)
        inner.slots = ModuleSlots(self)
        self.__dict__.setdefault("_is_full_backward_hook", None)  # archives store this attribute as part of the module's type
        object.__setattr__(self, "_c", inner)
        object.__setattr__(self, "_concrete", concrete)
        object.__setattr__(self, "original_name", concrete.type.short_name)

    def __deepcopy__(self, memo: dict[int, object]) -> ScriptModule:
        """Return a module of the same type, whose code it shares, with copies of parameters, buffers, attributes and
        submodules."""
        made = memo[id(self)] = type(self).__new__(type(self))
        Module.__init__(made)
        made._take_type(self._concrete)
        shared = ("_c", "_concrete", "original_name")
        own = {name: value for name, value in self.__dict__.items() if name not in shared}
        made.__dict__.update(copy.deepcopy(own, memo))
        return made

    def _add_scripted_hooks(self) -> None:
        """Make calls from Python run the hooks that are methods of the type."""
        for hook in self._concrete.pre_hooks:
            self.register_forward_pre_hook(lambda module, args, name=hook: module._method(name)(args))
        for hook in self._concrete.hooks:
            self.register_forward_hook(lambda module, args, result, name=hook: module._method(name)(args, result))

    def _compile(self) -> None:
        """Script the marked methods, and the submodules."""
        for name, child in self._modules.items():
            if child is not None:
                self._modules[name] = script_module(child)
        pending = self.__dict__.pop("_pending_definitions", [])
        self._take_type(module_types.concrete_module(self, is_shared=not pending))
        for src, frame in pending:
            self._define(src, frame)
        for name, value in list(vars(self).items()):
            if isinstance(value, language.Attribute):
                self.__dict__[name] = value.value
        for name, _ in inspect.getmembers_static(type(self), lambda member: isinstance(member, ScriptMethodStub)):
            if self._c.type.find_method(name) is not None:
                self._c.type.find_method(name).ensure_defined()

    def __setattr__(self, name: str, value: object) -> None:
        """Set an attribute. RuntimeError for constants, and for values that do not have the attribute's scripted type."""
        inner = self.__dict__.get("_c")
        if inner is not None:
            if name in self._modules:
                self._check_submodule(name, value)
            elif name in inner.type.constants:
                raise RuntimeError(f"Cannot mutate TorchScript constant value: '{name}'. Value: '{inner.type.constants[name]}'")
            elif name in inner.type.attributes and name not in self._parameters and name not in self._buffers:
                value = self._converted(name, value, inner.type.attributes[name].type)
        super().__setattr__(name, value)

    def _converted(self, name: str, value: object, kind: Type) -> object:
        try:
            return to_script(value, kind)
        except TypeError as error:
            raise RuntimeError(
                f"Expected a value of type '{kind}' for field '{name}', but found '{type(value).__name__}': {error}"
            ) from None

    def _check_submodule(self, name: str, value: object) -> None:
        """Raise RuntimeError unless a module may take the place of a submodule: one of its type or of its interface."""
        if not isinstance(value, ScriptModule):
            raise RuntimeError(
                "Cannot re-assign modules in a ScriptModule with non-scripted module, tried to replace existing module "
                f"'{name}': {value}"
            )
        kind, wanted = value._c.type, self._c.type.attributes[name].type
        if isinstance(wanted, InterfaceType):
            if not implements(kind, wanted):
                raise RuntimeError(f"Module '{kind}' is not compatible with interface '{wanted}' of submodule '{name}'")
        elif kind is not wanted:
            raise RuntimeError(
                f"Expected a value of type '{wanted}' for field '{name}', but found '{kind}': submodules keep their type"
            )

    def define(self, src: str) -> None:
        """Compile methods from source text: `m.define("def f(self, x):\\n    return x + 1")`. Within `__init__` they are
        compiled when it has ended, and with the whole module."""
        self._define(src, compiler.frame_lookup(sys._getframe(1)))

    def _define(self, src: str, frame: Callable[[str], object]) -> None:
        if self._c is None:
            self.__dict__.setdefault("_pending_definitions", []).append((src, frame))
            return
        trees = definitions.definitions_of_text(src, self._c.type.short_name)
        for definition, defaults in zip(trees, definitions.defaults_of_text(src), strict=True):
            name = definition.ident.name
            resolver = module_values.ModuleResolver(frame, compiler.compiler, self._concrete, module_types.property_of)
            made = compiler.compiler.define(definition, f"{self._c.type.name}.{name}", resolver, defaults, self._c.type)
            self._c.type.methods[name] = made
            made.ensure_defined()

    @property
    def code(self) -> str:
        """Return `forward` as TorchScript's Python."""
        return self._method("forward").code

    @property
    def code_with_constants(self) -> tuple[str, object]:
        """Return `forward` as TorchScript's Python, and the constants that it refers to."""
        return self._method("forward").code_with_constants

    def graph_for(self, *args: object, **kwargs: object) -> Graph:
        """Return the optimised graph of `forward` for such arguments."""
        return self._method("forward").graph_for(*args, **kwargs)

    @property
    def graph(self) -> Graph:
        """Return the graph of `forward`."""
        return self._method("forward").graph

    @property
    def inlined_graph(self) -> Graph:
        """Return the graph of `forward` with all calls inlined."""
        return self._method("forward").inlined_graph

    def _method(self, name: str) -> ScriptMethod:
        function = self._c.type.find_method(name)
        if function is None:
            raise AttributeError(f"'{self.original_name}' object has no attribute '{name}'")
        return ScriptMethod(self, function)

    def __getattr__(self, name: str) -> object:
        try:
            return super().__getattr__(name)
        except AttributeError:
            inner = self.__dict__.get("_c")
            if inner is None or name.startswith("__"):
                raise
            if name in inner.type.constants:
                return inner.type.constants[name]
            if name in inner.type.properties or isinstance(getattr(self._concrete.python_class, name, None), property):
                getter = module_types.property_of(self._concrete, name)[0]
                return ScriptMethod(self, getter)()
            ignored = getattr(self._concrete.python_class, name, None)
            if is_ignored(ignored):
                return types.MethodType(ignored, self)
            if inner.type.find_method(name) is not None:
                return self._method(name)
            raise

    @property
    def forward(self) -> ScriptMethod:
        """Return the scripted `forward`."""
        return self._method("forward")

    def __bool__(self) -> bool:
        """Return True: the number of a container's modules says nothing about the module itself."""
        return True

    def __len__(self) -> int:
        return self._call_special("__len__")

    def __iter__(self) -> Iterator:
        return self._call_special("__iter__")

    def __contains__(self, item: object) -> bool:
        return self._call_special("__contains__", item)

    def __getitem__(self, index: object) -> object:
        return self._call_special("__getitem__", index)

    def _call_special(self, name: str, *arguments: object) -> object:
        """Call a special method: the scripted one, or that of the library's containers. TypeError if the class has none."""
        found = getattr(self._concrete.python_class, name, None)
        if found is not None and self._concrete.is_iterable and own_module(found).startswith("rushlight."):
            return found(self, *arguments)
        if self._c.type.find_method(name) is None:
            raise TypeError(f"'{self.original_name}' object has no {name}")
        return self._method(name)(*arguments)

    def extra_repr(self) -> str:
        """Return the name of the class that was scripted."""
        return f"original_name={self.original_name}"


class RecursiveScriptModule(ScriptModule):
    """A module that `script` made from an nn.Module."""


class ScriptMethod(ScriptFunction):
    """A method of a scripted module."""

    def __init__(self, owner: ScriptModule, function: Function):
        super().__init__(function)
        self.owner = owner
        self.__doc__ = function.doc

    def __call__(self, *args: object, **kwargs: object) -> object:
        function = self._function
        binding = function.method_binding
        if binding is None or binding.schema is not function.schema_:
            binding = function.method_binding = Binding(function.schema, of_method=True)
        try:
            bound = binding.bind(args, kwargs)
        except CannotBind:
            return call_of_override(self, args, kwargs)
        result = run_function(function, [self.owner._c, *bound])
        return from_script(result, binding.result_type) if binding.converts_result else result


def script_module(module: Module) -> ScriptModule:
    """Script a module and its submodules, recursively. Parameters and buffers are shared with the original."""
    if isinstance(module, ScriptModule):
        return module
    module = _prepared(module, {})
    made = _wrap(module, module_types.concrete_module(module), {})
    _compile_exported(module, made)
    return made


def _prepared(module: Module | None, seen: dict[Module, Module]) -> Module | None:
    """Return a module with it and its submodules replaced by what their `__prepare_scriptable__` returns, if any has one."""
    if module is None or isinstance(module, ScriptModule):
        return module
    if module in seen:
        return seen[module]
    prepare = getattr(module, "__prepare_scriptable__", None)
    made = seen[module] = module if prepare is None else prepare()
    if not isinstance(made, Module):
        return made
    children = {name: _prepared(child, seen) for name, child in made._modules.items()}
    if any(child is not made._modules[name] for name, child in children.items()):
        made = seen[module] = copy.copy(made)
        made.__dict__["_modules"] = type(made._modules)(children)
    return made


def _compile_exported(module: Module, made: ScriptModule) -> None:
    for name, child in module._modules.items():
        if child is not None and not isinstance(child, ScriptModule):
            _compile_exported(child, made._modules[name])
    for name in exported_methods(type(module)):
        method, _ = module_types.method_of(type(module), name)
        count = 0 if method is None else len(overloads.overloads_of(method))
        for each in [f"{name}__{index}" for index in range(count)] or [name]:
            function = made._c.type.find_method(each)
            if function is not None:
                function.ensure_defined()
    _check_hooks(made)


def _check_hooks(made: ScriptModule) -> None:
    """Check the signatures of a module's scripted hooks against that of its `forward`."""
    kind, concrete = made._c.type, made._concrete
    forward = kind.find_method("forward") if concrete.pre_hooks or concrete.hooks else None
    if forward is None:
        return
    name, inputs = concrete.python_class.__name__, [each.type for each in forward.schema.arguments[1:]]
    result = forward.schema.return_type
    for hook in concrete.pre_hooks:
        hook_checks.check_pre_hook(NO_SOURCE, hook, name, kind.find_method(hook).schema, inputs)
    for hook in concrete.hooks:
        schema = kind.find_method(hook).schema
        hook_checks.check_hook(NO_SOURCE, hook, name, schema, inputs, result)
        result = result if schema.return_type is NONE else schema.return_type


def exported_methods(kind: type) -> list[str]:
    """Return the methods that are compiled at once: `forward`, unless it is left to Python, and those marked with `export`."""
    names = [name for name, each in inspect.getmembers_static(kind, inspect.isfunction) if is_exported(each)]
    forward = getattr(kind, "forward", None)
    is_own = forward is not None and not getattr(forward, "_is_unimplemented", False) and not is_ignored(forward)
    return (["forward"] if is_own and forward is not Module.forward else []) + names


def _wrap(module: Module, concrete: ConcreteModule, seen: dict[Module, ScriptModule]) -> ScriptModule:
    if module in seen:
        return seen[module]
    if isinstance(module, ScriptModule):
        return module
    made = seen[module] = ScriptModule._make_module(concrete)
    made._parameters.update(module._parameters)
    made._buffers.update(module._buffers)
    made._non_persistent_buffers_set = set(module._non_persistent_buffers_set)
    for name, child in module._modules.items():
        made._modules[name] = None if child is None else _wrap(child, concrete.submodules[name], seen)
    for name, attribute in concrete.type.attributes.items():
        if not (attribute.is_parameter or attribute.is_buffer or name in made._modules):
            value = getattr(module, name, None)
            made.__dict__[name] = value.value if isinstance(value, language.Attribute) else to_script(value, attribute.type)
    made._add_scripted_hooks()
    return made


class ScriptMethodStub:
    """A method of a ScriptModule subclass, to be compiled when an instance is created."""

    def __init__(self, function: Callable):
        self.function = function
        functools.update_wrapper(self, function)

    def __get__(self, owner: ScriptModule | None, kind: type) -> object:
        if owner is None:
            return self.function
        return types.MethodType(self.function, owner) if owner._c is None else owner._method(self.function.__name__)


def script_method(function: Callable) -> ScriptMethodStub:
    """Mark a method of a ScriptModule subclass for compilation."""
    return ScriptMethodStub(function)
