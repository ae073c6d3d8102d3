"""Scripted modules: nn.Modules whose methods run as TorchScript.

A ScriptModule holds parameters, buffers and submodules as any module does, so that it trains, moves and saves like one.
Scripted code
reaches them through an object whose slots are the module's own attributes.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, MutableMapping

from rushlight.jit.decorators import is_exported, is_ignored
from rushlight.jit.function import Function
from rushlight.jit.ir.graph import Graph
from rushlight.jit.module_types import ConcreteModule, concrete_module
from rushlight.jit.runtime.executor import run_function
from rushlight.jit.runtime.objects import ScriptObject
from rushlight.jit.script import ScriptFunction, bind_arguments
from rushlight.jit.types.kinds import ClassType
from rushlight.nn import Module


class ModuleSlots(MutableMapping):
    """A module's parameters, buffers, submodules and attributes, by name, as scripted code sees them."""

    def __init__(self, module: ScriptModule):
        self._module = module

    def __getitem__(self, name: str) -> object:
        module = self._module
        for table in (module._parameters, module._buffers):
            if name in table:
                return table[name]
        child = module._modules.get(name)
        if child is not None:
            return child._c
        return module.__dict__[name]

    def __setitem__(self, name: str, value: object) -> None:
        module = self._module
        if name in module._parameters:
            module._parameters[name] = value
        elif name in module._buffers:
            module._buffers[name] = value
        else:
            module.__dict__[name] = value

    def __delitem__(self, name: str) -> None:
        raise TypeError("attributes of a scripted module can't be deleted")

    def __iter__(self) -> Iterator[str]:
        return iter(self._module._c.type.attributes)

    def __len__(self) -> int:
        return len(self._module._c.type.attributes)


class ScriptModule(Module):
    """A module whose methods are scripted. Made by `script`, `trace` and `load`."""

    def __init__(self) -> None:
        super().__init__()
        object.__setattr__(self, "_c", None)

    @classmethod
    def _of(cls, kind: ClassType) -> ScriptModule:
        made = RecursiveScriptModule.__new__(RecursiveScriptModule)
        Module.__init__(made)
        inner = ScriptObject(kind)
        inner.slots = ModuleSlots(made)
        object.__setattr__(made, "_c", inner)
        object.__setattr__(made, "original_name", kind.name.rpartition(".")[2])
        return made

    @property
    def graph(self) -> Graph:
        """The graph of `forward`."""
        return self._method("forward").graph

    @property
    def inlined_graph(self) -> Graph:
        """The graph of `forward` with everything it calls."""
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
            if inner.type.find_method(name) is not None:
                return self._method(name)
            raise

    def forward(self, *args: object, **kwargs: object) -> object:
        """Run the scripted `forward`."""
        return self._method("forward")(*args, **kwargs)

    def extra_repr(self) -> str:
        """The name of the class that was scripted."""
        return f"original_name={self.original_name}"


class RecursiveScriptModule(ScriptModule):
    """A module that `script` made of another."""


class ScriptMethod(ScriptFunction):
    """A method of a scripted module."""

    def __init__(self, owner: ScriptModule, function: Function):
        super().__init__(function)
        self.owner = owner

    def __call__(self, *args: object, **kwargs: object) -> object:
        bound = bind_arguments(self._function.schema.without_self(), args, kwargs)
        return run_function(self._function, [self.owner._c, *bound])


def script_module(module: Module) -> ScriptModule:
    """Script a module and its submodules, recursively. Parameters and buffers are shared with the original."""
    if isinstance(module, ScriptModule):
        return module
    made = _wrap(module, concrete_module(module), {})
    for name in exported_methods(type(module)):
        function = made._c.type.find_method(name)
        if function is not None:
            function.ensure_defined()
    return made


def exported_methods(kind: type) -> list[str]:
    """The methods that are compiled at once: `forward`, unless it is Python's, and those marked with `export`."""
    names = [name for name, each in inspect.getmembers(kind, inspect.isfunction) if is_exported(each)]
    forward = getattr(kind, "forward", None)
    is_own = forward is not None and not getattr(forward, "_is_unimplemented", False) and not is_ignored(forward)
    return (["forward"] if is_own and forward is not Module.forward else []) + names


def _wrap(module: Module, concrete: ConcreteModule, seen: dict[Module, ScriptModule]) -> ScriptModule:
    if module in seen:
        return seen[module]
    made = seen[module] = ScriptModule._of(concrete.type)
    made._parameters.update(module._parameters)
    made._buffers.update(module._buffers)
    made._non_persistent_buffers_set = set(module._non_persistent_buffers_set)
    for name, child in module._modules.items():
        made._modules[name] = None if child is None else _wrap(child, concrete.submodules[name], seen)
    for name, attribute in concrete.type.attributes.items():
        if not (attribute.is_parameter or attribute.is_buffer or name in made._modules):
            made.__dict__[name] = getattr(module, name, None)
    return made


def script_method(function: Callable) -> Callable:
    """Mark a method of a ScriptModule subclass for compilation."""
    function._rushlight_script_method = True
    return function
