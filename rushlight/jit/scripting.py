"""`script`, the entry: functions, classes and modules of Python as TorchScript; `CompilationUnit`, functions of source text.

In: a function, class, module or text. Out: a ScriptFunction, the class itself, or a ScriptModule.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable

from rushlight.jit.classes import script_class
from rushlight.jit.compiler import compiler, frame_lookup
from rushlight.jit.emit.callables import FunctionValue
from rushlight.jit.emit.python_values import PythonResolver
from rushlight.jit.emit.sugared import SugaredValue
from rushlight.jit.frontend.definitions import defaults_of_text, definitions_of_text
from rushlight.jit.function import Function
from rushlight.jit.graph_api import Graph
from rushlight.jit.library import REPLACEMENTS
from rushlight.jit.module import ScriptModule, script_module
from rushlight.jit.runtime.objects import SharedContainer
from rushlight.jit.runtime.type_checks import to_script
from rushlight.jit.script_class import RecursiveScriptClass
from rushlight.jit.script_containers import script_container
from rushlight.jit.script_function import ScriptFunction, script_function
from rushlight.jit.settings import is_enabled
from rushlight.jit.source import SourceRange
from rushlight.nn import Module


def script(
    obj: object, optimize: None = None, _frames_up: int = 0, _rcb: Callable[[str], object] | None = None,
    example_inputs: object = None,
) -> object:  # fmt: skip
    """Compile a function, a class or a module, with everything that it calls; or share an object, a list or a dict.

    A function becomes a ScriptFunction; a module a ScriptModule that shares its parameters; a class is compiled and returned as
    it is. An instance of a class becomes a RecursiveScriptClass, a list a ScriptList and a dict a ScriptDict: copies, that
    scripted functions change in place. An object with a method `__prepare_scriptable__` stands for what that returns.

    `_rcb` looks up names that are missing in the function's own scope. ErrorReport marks the code that can't be
    compiled, RuntimeError names an object that can't be scripted at all. With RUSHLIGHT_JIT=0 everything is returned unchanged.
    """
    if not is_enabled() or isinstance(obj, ScriptModule | ScriptFunction | RecursiveScriptClass):
        return obj
    if isinstance(obj, Module):
        return script_module(obj)
    if not inspect.isclass(obj) and hasattr(obj, "__prepare_scriptable__"):
        obj = obj.__prepare_scriptable__()
    if isinstance(obj, list | dict):
        return script_container(obj)
    if inspect.isclass(obj):
        if issubclass(obj, Module):
            raise RuntimeError(
                f"Type '{obj.__name__}' cannot be compiled since it inherits from nn.Module, "
                "consider passing an instance instead"
            )
        return script_class(obj, _rcb or frame_lookup(sys._getframe(_frames_up + 1)))
    obj = REPLACEMENTS.get(obj, obj) if inspect.isfunction(obj) else obj
    if inspect.isfunction(obj) or inspect.ismethod(obj):
        return script_function(obj, _rcb or frame_lookup(sys._getframe(_frames_up + 1)))
    if inspect.isroutine(obj) or type(obj).__module__ == "builtins" or isinstance(obj, SharedContainer):
        raise RuntimeError(
            f"a {type(obj).__name__} cannot be scripted: script takes a function, a class or a module, got {obj!r}"
        )
    script_class(type(obj), _rcb or frame_lookup(sys._getframe(_frames_up + 1)))
    return RecursiveScriptClass(to_script(obj, compiler.known_type(type(obj))))


class _UnitResolver(PythonResolver):
    """Resolves names: functions of the unit first, then names visible in the defining frame."""

    def __init__(self, unit: CompilationUnit, lookup: Callable[[str], object]):
        super().__init__(lookup, compiler)
        self.unit = unit

    def shadows(self, name: str) -> bool:
        return name in self.unit._defined or super().shadows(name)

    def value(self, name: str, where: SourceRange, emitter: object) -> SugaredValue | None:
        found = self.unit._defined.get(name)
        return FunctionValue([found]) if found is not None else super().value(name, where, emitter)


class CompilationUnit:
    """Functions compiled from source text, as attributes: `CompilationUnit("def f(x):\\n  return x").f(x)`."""

    def __init__(self, lang: str | None = None, _frames_up: int = 0):
        self._defined: dict[str, Function] = {}
        if lang is not None:
            self.define(lang, None, _frames_up + 1)

    def define(self, lang: str, rcb: Callable[[str], object] | None = None, _frames_up: int = 0) -> None:
        """Define the functions of a text; they can use one another, and the names of the calling frame."""
        resolver = _UnitResolver(self, rcb or frame_lookup(sys._getframe(_frames_up + 1)))
        added = []
        for definition, defaults in zip(definitions_of_text(lang), defaults_of_text(lang), strict=True):
            name = definition.ident.name
            made = compiler.define(definition, name, resolver, defaults)
            self._defined[name] = made
            added.append(made)
        for made in added:
            made.ensure_defined()

    def __getattr__(self, name: str) -> ScriptFunction:
        found = self.__dict__.get("_defined", {}).get(name)
        if found is None:
            raise AttributeError(f"'CompilationUnit' has no attribute '{name}'")
        return ScriptFunction(found)

    def find_function(self, name: str) -> ScriptFunction | None:
        """Return one of its functions; None for an unknown name."""
        found = self._defined.get(name)
        return None if found is None else ScriptFunction(found)

    def create_function(self, name: str, graph: Graph) -> ScriptFunction:
        """Define a function by a graph, of which it gets a copy."""
        made = self._defined[name] = Function(name, graph.raw.copy())
        return ScriptFunction(made)

    def get_functions(self) -> list[ScriptFunction]:
        """Return all functions that it defines."""
        return [ScriptFunction(each) for each in self._defined.values()]
