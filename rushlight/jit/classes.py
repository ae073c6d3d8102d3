"""TorchScript classes and interfaces: the types of the user's own classes.

In: a Python class. Out: a ClassType whose methods are compiled (`__init__` at once, since it defines the attributes), or an
InterfaceType with the signatures of its methods. Stage: jit, script.
"""

from __future__ import annotations

import ast
import dataclasses
import inspect
from collections.abc import Callable

from rushlight.core.naming import own_module
from rushlight.core.tensor import Tensor
from rushlight.jit.annotations import is_enum, type_from_tree
from rushlight.jit.compiler import (
    CLASS_COMPILERS,
    closure_lookup,
    compiler,
    default_arguments,
    qualified_name,
    remember_type,
)
from rushlight.jit.decorators import is_ignored, is_unused
from rushlight.jit.emit.emitter import signature
from rushlight.jit.emit.python_values import PythonResolver
from rushlight.jit.errors import ErrorReport
from rushlight.jit.frontend.context import SourceContext
from rushlight.jit.frontend.definitions import build_def, get_jit_class_def
from rushlight.jit.function import Function
from rushlight.jit.source import Source
from rushlight.jit.tree_views import ClassDef, Def, Var
from rushlight.jit.types.kinds import ClassType, InterfaceType, Type
from rushlight.nn import Module

_INTERFACE = "_rushlight_interface"
_NOT_CLASSES = (Module, BaseException, Tensor, tuple, list, dict, set, str, int, float, complex)
Lookup = Callable[[str], object]


def interface(kind: type) -> type:
    """Declare a class as an interface: any class or module that has its methods conforms to the type.

    RuntimeError where the class has other bases than `object` or `nn.Module`.
    """
    if not isinstance(kind, type):
        raise RuntimeError("interface must be applied to a class")
    bases = [base for base in kind.__mro__[1:] if base is not object]
    if bases and bases[0] is not Module:
        raise RuntimeError("TorchScript interface does not support inheritance yet. Please directly inherit from 'object' or "
                           "'nn.Module'")  # fmt: skip
    setattr(kind, _INTERFACE, True)
    return kind


def compile_class(kind: type) -> Type | None:
    """Return the type of an interface, or of a class with all methods in Python; None for any other class."""
    if vars(kind).get(_INTERFACE):
        return _make_interface(kind, _class_lookup(kind))
    return define_class(kind, _class_lookup(kind)) if _is_compilable(kind) else None


def script_class(kind: type, frame: Lookup) -> type:
    """Compile a class with all its methods. Names missing in the methods' closures are looked up in `frame`.

    RuntimeError where it inherits from another class, or cannot be compiled.
    """
    if vars(kind).get(_INTERFACE):
        compiler.class_type(kind)
        return kind
    if is_enum(kind):
        compiler.class_type(kind)
        return kind
    if len(kind.__mro__) > 2:
        raise RuntimeError("TorchScript classes does not support inheritance yet. Please directly inherit from 'object'.")
    if not _is_compilable(kind):
        raise RuntimeError(f"Type '{kind.__name__}' cannot be compiled since it inherits from a class or defines a method that "
                           "is not written in Python")  # fmt: skip
    closure = _class_lookup(kind)

    def lookup(name: str) -> object:
        found = closure(name)
        return frame(name) if found is None else found

    found = compiler.known_type(kind) or define_class(kind, lookup)
    for method in [*found.methods.values(), *found.static_methods.values()]:
        method.ensure_defined()
    return kind


def _is_compilable(kind: type) -> bool:
    if issubclass(kind, _NOT_CLASSES) or kind.__module__.startswith(("builtins", "typing", "collections")):
        return False
    if own_module(kind).startswith("rushlight.") and not own_module(kind).startswith("rushlight.jit.library."):
        return False
    own = [getattr(each, "__func__", each) for name, each in vars(kind).items() if inspect.isroutine(each)]
    return bool(own) and all(inspect.isfunction(each) for each in own)


def _class_lookup(kind: type) -> Lookup:
    """Return the name lookup for the methods of a class: the class itself, then the methods' closures."""
    functions = [each for each in map(_function_of, vars(kind).values()) if each is not None]
    closures = [closure_lookup(each) for each in functions]

    def lookup(name: str) -> object:
        if name == kind.__name__:
            return kind
        return next((found for found in (closure(name) for closure in closures) if found is not None), None)

    return lookup


def _function_of(member: object) -> Callable | None:
    member = member.fget if isinstance(member, property) else getattr(member, "__func__", member)
    return member if inspect.isfunction(member) else None


def define_class(kind: type, lookup: Lookup) -> ClassType:
    """Return the type of a class with its methods declared, and `__init__` compiled."""
    made = ClassType(qualified_name(kind), python_class=kind)
    remember_type(kind, made)
    try:
        _declare_members(kind, made, PythonResolver(lookup, compiler))
    except ErrorReport as error:
        error.leave(made.name)
        raise
    return made


def _declare_members(kind: type, made: ClassType, resolver: PythonResolver) -> None:
    skipped = [name for name, each in vars(kind).items() if is_ignored(_function_of(each)) or is_unused(_function_of(each))]
    tree = get_jit_class_def(kind, made.short_name, skipped)
    _declare_annotated(tree, made, resolver)
    for definition in [*tree.body, *_generate_dataclass_methods(kind, tree)]:
        member = inspect.getattr_static(kind, definition.ident.name)
        _add_method(made, definition, member, resolver)
    for each in tree.properties:
        getter = _compile_method(made, each.getter, {}, resolver)
        setter = None if each.setter is None else _compile_method(made, each.setter, {}, resolver)
        made.properties[each.ident.name] = (getter, setter)
    if "__init__" in made.methods:
        made.methods["__init__"].ensure_defined()


def _declare_annotated(tree: ClassDef, made: ClassType, resolver: PythonResolver) -> None:
    """Record the attribute types that annotations in the class body declare, for `__init__`."""
    for statement in tree.assignments:
        if statement.annotation is not None and isinstance(statement.targets[0], Var):
            made.annotations[statement.targets[0].name] = type_from_tree(statement.annotation, resolver.type)


def _add_method(made: ClassType, definition: Def, member: object, resolver: PythonResolver) -> None:
    is_static = isinstance(member, staticmethod)
    function = getattr(member, "__func__", member)
    _compile_method(made, definition, default_arguments(function), resolver, is_static)


def _compile_method(
    made: ClassType, definition: Def, defaults: dict, resolver: PythonResolver, is_static: bool = False
) -> Function:
    name = f"{made.name}.{definition.ident.name}"
    method = compiler.define(definition, name, resolver, defaults, None if is_static else made)
    (made.static_methods if is_static else made.methods)[definition.ident.name] = method
    return method


def _generate_dataclass_methods(kind: type, tree: ClassDef) -> list[Def]:
    """Return the methods that `dataclass` generates without source: `__init__` and the comparisons."""
    if not dataclasses.is_dataclass(kind):
        return []
    written = {each.ident.name for each in tree.body}
    fields = dataclasses.fields(kind)
    if any(field.default_factory is not dataclasses.MISSING for field in fields):
        raise NotImplementedError("Default factory initializers are not supported in TorchScript dataclasses")
    texts = {"__init__": _write_init(kind, fields)}
    compared = [field for field in fields if field.compare]
    if kind.__dataclass_params__.eq:
        texts["__eq__"] = _write_comparison(kind, "__eq__", compared, _compare_fields, "return False", True)
    if kind.__dataclass_params__.order:
        for name, operator in (("__lt__", "<"), ("__le__", "<="), ("__gt__", ">"), ("__ge__", ">=")):
            missing = f"raise TypeError('Cannot compare {kind.__name__} with None')"
            decided = _order_by(operator[0])
            texts[name] = _write_comparison(kind, name, compared, decided, missing, len(operator) == 2)
    missing_methods = [name for name in texts if name not in written and name in vars(kind)]
    return [_parse_method(texts[name], name, tree.ident.name) for name in missing_methods]


def _write_init(kind: type, fields: tuple) -> str:
    annotated = ", ".join(f"{field.name}: {_write_annotation(field.type)}" for field in fields if field.init)
    body = [f"    self.{field.name} = {field.name}" for field in fields if field.init]
    if hasattr(kind, "__post_init__"):
        body.append("    self.__post_init__()")
    return f"def __init__(self, {annotated}) -> None:\n" + "\n".join(body or ["    pass"])


def _write_annotation(declared: object) -> str:
    if isinstance(declared, str):
        return declared
    return declared.__name__ if isinstance(declared, type) and not hasattr(declared, "__args__") else \
        str(declared).replace("typing.", "")  # fmt: skip


def _compare_fields(own: str, theirs: str) -> list[str]:
    """Return statements that return False if two values differ."""
    return [f"if {own} != {theirs}:", "    return False"]


def _order_by(operator: str) -> Callable[[str, str], list[str]]:
    """Return statements that return the result of `<` or `>` for two values that differ."""
    return lambda own, theirs: [f"if {own} {operator} {theirs}:", "    return True", *_compare_fields(own, theirs)]


def _write_comparison(
    kind: type, name: str, fields: list, differs: Callable[[str, str], list[str]], missing: str, otherwise: bool
) -> str:
    """Return a field-by-field comparison method: `differs` decides by two values, `missing` if one of them is None."""
    lines: list[str] = []
    for field in fields:
        own, theirs = f"self_{field.name}", f"other_{field.name}"
        inner = differs(own, theirs)
        lines += [f"{own} = self.{field.name}", f"{theirs} = other.{field.name}"]
        if _is_optional(field.type):
            lines += [f"if {own} is not None and {theirs} is not None:", *(f"    {line}" for line in inner)]
            lines += [f"elif ({own} is None) != ({theirs} is None):", f"    {missing}"]
        else:
            lines += inner
    body = "\n".join(f"    {line}" for line in (*lines, f"return {otherwise}"))
    return f"def {name}(self, other: {kind.__name__}) -> bool:\n{body}"


def _is_optional(declared: object) -> bool:
    text = (declared if isinstance(declared, str) else str(declared)).removeprefix("typing.")
    return text.startswith("Optional[") or text.endswith("| None")


def _parse_method(text: str, name: str, self_name: str) -> Def:
    source = Source(text, f"<{name} of a dataclass>")
    return build_def(SourceContext(source), ast.parse(text).body[0], name, self_name)


def _make_interface(kind: type, lookup: Lookup) -> InterfaceType:
    made = InterfaceType(qualified_name(kind), {}, issubclass(kind, Module))
    remember_type(kind, made)
    resolver = PythonResolver(lookup, compiler)
    for definition in get_jit_class_def(kind, made.short_name).body:
        schema = signature(definition.decl, f"{made.name}.{definition.ident.name}", resolver.type, {}, made)
        if not schema.returns:
            raise RuntimeError(f"interface declarations must have a return type annotated: {definition.ident.name}")
        made.methods[definition.ident.name] = schema
    return made


CLASS_COMPILERS.append(compile_class)
