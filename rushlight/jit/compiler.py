"""Compile Python functions and classes, each once per process, for `script` and for compiled code that refers to them.

In: a Python function, a NamedTuple, enumeration or class. Out: a Function or a type. Stage: jit, from `script` to the emitter.
"""

from __future__ import annotations

import builtins
import inspect
import threading
import types
import weakref
from collections.abc import Callable, Sequence

from rushlight.jit.annotations import infer_type, is_enum, is_named_tuple, named_tuple_type, type_from_python, type_from_tree
from rushlight.jit.constants import ENUM_TYPES
from rushlight.jit.emit.emitter import Emitter, signature
from rushlight.jit.emit.python_values import PythonResolver
from rushlight.jit.errors import ErrorReport, NotSupportedError
from rushlight.jit.frontend.definitions import get_jit_def, read_source
from rushlight.jit.function import Function
from rushlight.jit.ir.graph import Graph
from rushlight.jit.library import NAMES
from rushlight.jit.overloads import check_defaults, overloaded_definition, overloads_of
from rushlight.jit.passes.cleanup import run_cleanup_passes
from rushlight.jit.source import SourceRange
from rushlight.jit.tree_views import Def
from rushlight.jit.types.kinds import FLOAT, INT, STRING, TENSOR, ClassType, EnumType, Type

_lock = threading.RLock()
_functions: weakref.WeakKeyDictionary[Callable, list[Function]] = weakref.WeakKeyDictionary()
_types: weakref.WeakKeyDictionary[type, Type] = weakref.WeakKeyDictionary()
CLASS_COMPILERS: list[Callable[[type], Type | None]] = []
"""Further ways to make a type of a class, tried in order; `classes.py` adds TorchScript classes and interfaces."""


def qualified_name(definition: Callable | type) -> str:
    """Return the name of a function or class in graphs and archives: `__torch__.package.f`."""
    if definition in NAMES:
        return NAMES[definition]
    module = definition.__module__ or "__main__"  # functions made by exec() have no module
    if module.startswith("rushlight."):  # archives name the library's own modules as PyTorch does
        module = f"torch.{module.removeprefix('rushlight.')}"
    prefix = "__torch__" if module == "__main__" else f"__torch__.{module}"
    return f"{prefix}.{definition.__qualname__.replace('<locals>.', '').replace('<', '_').replace('>', '_')}"


def closure_lookup(function: Callable) -> Callable[[str], object]:
    """Return the name lookup at a function's definition: its cells, its globals, the built-ins."""
    function = inspect.unwrap(function)
    cells = dict(zip(function.__code__.co_freevars, function.__closure__ or (), strict=True))

    def lookup(name: str) -> object:
        if name in cells:
            try:
                return cells[name].cell_contents
            except ValueError:
                return None
        return function.__globals__.get(name, getattr(builtins, name, None))

    return lookup


def frame_lookup(frame: types.FrameType | None) -> Callable[[str], object]:
    """Return the name lookup in a running frame, which annotations may need in addition to a closure's."""
    scope = {} if frame is None else {**frame.f_globals, **frame.f_locals}
    return lambda name: scope.get(name, getattr(builtins, name, None))


def default_arguments(function: Callable) -> dict[str, object]:
    """Return the defaults of a function's parameters by name. RuntimeError for a list or a dict."""
    parameters = inspect.signature(function).parameters.values()
    mutable = next((each.name for each in parameters if _is_mutable(each.default)), None)
    if mutable is not None:
        problem = "Mutable default parameters are not supported because Python binds them to the function and they persist"
        raise RuntimeError(f"{problem} across function calls: parameter '{mutable}' of {function.__qualname__}")
    return {each.name: each.default for each in parameters if each.default is not inspect.Parameter.empty}


def _is_mutable(value: object) -> bool:
    """Return whether a default is a list or a dict, or a tuple with one."""
    return isinstance(value, list | dict) or isinstance(value, tuple) and any(map(_is_mutable, value))


class PythonCompiler:
    """Compiles Python functions and classes on demand."""

    def function(self, function: Callable, where: SourceRange | None = None) -> Sequence[Function]:
        """Return the compiled function of a Python one. ErrorReport where it has no source."""
        with _lock:
            found = _functions.get(function)
            if found is None:
                found = _functions[function] = self.compile_overloads(function, closure_lookup(function), where)
            return found

    def compile_overloads(
        self, function: Callable, lookup: Callable[[str], object], where: SourceRange | None = None
    ) -> list[Function]:
        """Return one function per declared signature of a Python function, or one with its own signature."""
        declared = overloads_of(function)
        if not declared:
            return [self.compile_function(function, lookup, where)]
        made = []
        for index, each in enumerate(declared):
            check_defaults(each, function)
            definition = overloaded_definition(each, get_jit_def(function))
            defaults = {**default_arguments(function), **default_arguments(each)}
            name = f"{qualified_name(function)}__{index}"
            made.append(self.define(definition, name, PythonResolver(lookup, self), defaults))
        return made

    def compile_function(
        self, function: Callable, lookup: Callable[[str], object], where: SourceRange | None = None
    ) -> Function:
        """Compile a Python function; `lookup` finds names. The body is compiled when it is first needed."""
        try:
            definition = get_jit_def(function)
        except OSError as error:
            if where is None:
                raise
            raise ErrorReport(where, str(error)) from error
        made = self.define(definition, qualified_name(function), PythonResolver(lookup, self), default_arguments(function))
        made.doc = function.__doc__
        return made

    def define(
        self, definition: Def, name: str, resolver: PythonResolver, defaults: dict[str, object],
        owner: ClassType | None = None, inferred: dict[str, Type] | None = None,
    ) -> Function:  # fmt: skip
        """Return a function from a tree. With a declared return type its schema is known before its body is compiled.
        `inferred` are types of parameters without annotation that are no tensors."""
        try:
            schema = signature(definition.decl, name, resolver.type, defaults, owner, inferred)
        except ErrorReport as error:
            error.add_call(definition.ident.name, definition.range)
            raise

        def emit(function: Function) -> None:
            graph = Graph()
            emitter = Emitter(resolver, graph, owner, definition.ident.name)
            try:
                found = emitter.emit_def(definition, schema)
            except ErrorReport as error:
                error.leave(emitter.full_name)
                raise
            run_cleanup_passes(graph)
            function.set_graph(graph, found)

        made = Function(name, define=emit)
        made.schema_ = schema if schema.returns else None
        return made

    def declared_return(self, function: Callable) -> Type:
        """Return the return type from a Python function's annotation or type comment; a tensor if it has none."""
        declared = inspect.signature(function, eval_str=True).return_annotation
        if declared is inspect.Signature.empty:
            return self._commented_return(function) or TENSOR
        return type_from_python(declared, self.class_type) or TENSOR

    def _commented_return(self, function: Callable) -> Type | None:
        """Return the return type from a function's type comment; None if it has none."""
        try:
            if "# type:" not in read_source(function).text:
                return None
            is_method = next(iter(inspect.signature(function).parameters), None) == "self"
            declared = get_jit_def(function, None, "self" if is_method else None).decl.return_type
        except (OSError, NotSupportedError):
            return None
        return None if declared is None else type_from_tree(declared, PythonResolver(closure_lookup(function), self).type)

    def class_type(self, kind: type) -> Type | None:
        """Return the type of a class; None if it can't be one."""
        with _lock:
            found = _types.get(kind)
            if found is None:
                found = self._make_type(kind)
                if found is not None:
                    _types[kind] = found
            return found

    def known_type(self, kind: type) -> Type | None:
        """Return the type of a class that was compiled before; else None."""
        with _lock:
            return _types.get(kind)

    def _make_type(self, kind: type) -> Type | None:
        if is_named_tuple(kind):
            return named_tuple_type(kind, qualified_name(kind), self.class_type)
        if is_enum(kind):
            return self._enum_type(kind)
        for compile_class in CLASS_COMPILERS:
            found = compile_class(kind)
            if found is not None:
                return found
        return None

    def _enum_type(self, kind: type) -> EnumType | None:
        members = tuple((member.name, member.value) for member in kind)
        kinds = {infer_type(value, self.class_type) for _, value in members}
        if len(kinds) != 1:
            raise RuntimeError(f"Could not unify type list of the values of enum {kind.__name__}: they must be of one type")
        if not kinds & {INT, FLOAT, STRING}:
            raise RuntimeError(f"Cannot create Enum with value type '{kinds.pop()}'. Only int, float and str are supported")
        made = EnumType(qualified_name(kind), kinds.pop(), members, kind)
        ENUM_TYPES[kind] = made
        return made


def remember_type(kind: type, made: Type) -> None:
    """Set the type of a class before its methods are compiled, which may refer to it."""
    with _lock:
        _types[kind] = made


compiler = PythonCompiler()
"""The compiler of the process."""
