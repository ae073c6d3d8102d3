"""The types of modules: `script` derives them from an nn.Module's attributes, and compiles its methods.

In: a module. Out: a ConcreteModule: a ClassType shared by modules of the same structure, and further facts from the Python
object. Stage: jit, script.
"""

from __future__ import annotations

import inspect
import itertools
import threading
import typing
from collections.abc import Callable

from rushlight.core.tensor import Tensor
from rushlight.jit.annotations import infer_type, type_from_python
from rushlight.jit.compiler import closure_lookup, compiler, default_arguments, qualified_name
from rushlight.jit.concrete import ConcreteModule
from rushlight.jit.constants import constant_type, simplified
from rushlight.jit.decorators import is_ignored, is_unused
from rushlight.jit.emit.module_values import ModuleResolver
from rushlight.jit.frontend.definitions import get_jit_def
from rushlight.jit.function import Function
from rushlight.jit.language import Attribute
from rushlight.jit.library import has_constants, script_methods
from rushlight.jit.overloads import overloaded_definition, overloads_of
from rushlight.jit.tree_views import Def
from rushlight.jit.types.extensions import extension_type_of
from rushlight.jit.types.kinds import BOOL, NONE, TENSOR, ClassType, InterfaceType, OptionalType, Type
from rushlight.nn import Module

_INTERNAL = frozenset(vars(Module())) | {"_c", "_concrete", "original_name"}
_lock = threading.RLock()
_shared: dict[tuple, ConcreteModule] = {}
_counter = itertools.count()
_names: set[str] = set()


def concrete_module(module: Module, is_shared: bool = True) -> ConcreteModule:
    """Return the concrete type of a module; modules that look the same to the compiler share one if it `is_shared`."""
    with _lock:
        scripted = module.__dict__.get("_concrete")
        if scripted is not None:
            return scripted
        getattr(module, "forward", None)  # a GraphModule generates it on first access
        attributes, constants, functions, failed = _inspect(module)
        submodules = {name: concrete_module(child) for name, child in module._modules.items() if child is not None}
        key = _key(module, attributes, constants, functions, submodules) if is_shared else None
        found = _shared.get(key) if key is not None else None
        if found is None:
            found = _make(module, attributes, constants, functions, failed, submodules)
            if key is not None:
                _shared[key] = found
        return found


def _key(module: Module, attributes: dict, constants: dict, functions: dict, submodules: dict) -> tuple | None:
    try:
        key = (
            type(module),
            tuple((name, kind, flags) for name, (kind, flags) in attributes.items()),
            tuple((name, type(value), _frozen(value)) for name, value in constants.items()),
            tuple((name, id(function)) for name, function in functions.items()),
            tuple((name, id(each.type)) for name, each in submodules.items()),
            tuple(module._forward_pre_hooks.values()),
            tuple(module._forward_hooks.values()),
        )
        hash(key)
    except TypeError:
        return None
    return key


def _frozen(value: object) -> object:
    return tuple(map(_frozen, value)) if isinstance(value, list | tuple) else value


def _inspect(module: Module) -> tuple[dict, dict, dict, dict]:
    """Return a module's attributes with their types, its constants, its functions, and the attributes without a type, with the
    reasons."""
    annotations = _annotations(type(module))
    constant_names = set(getattr(module, "__constants__", ()))
    constant_names |= {name for name, each in annotations.items() if typing.get_origin(each) is typing.Final}
    attributes: dict[str, tuple[Type, str]] = {}
    constants: dict[str, object] = {}
    functions: dict[str, Callable] = {}
    failed: dict[str, str] = {}
    for name, value in module._parameters.items():
        attributes[name] = (_annotated_type(annotations, name) or (TENSOR if value is not None else NONE), "parameter")
    for name, value in module._buffers.items():
        attributes[name] = (_annotated_type(annotations, name) or (TENSOR if value is not None else NONE), "buffer")
    for name, value in _plain_attributes(module):
        if isinstance(value, Attribute):
            attributes[name] = (type_from_python(value.type, compiler.class_type), "attribute")
            continue
        if name in constant_names or (has_constants(type(module)) and _is_plain(value)):
            constants[name] = simplified(value) if not isinstance(value, list | tuple) else value
            continue
        kind = _annotated_type(annotations, name) or _infer(value)
        if kind is not None and isinstance(value, list | dict) and not value and name not in annotations:
            failed[name] = (
                "(This attribute exists on the Python module, but we failed to convert Python type: "
                f"'{type(value).__name__}' to a TorchScript type. List trace inputs must have elements. Its type was inferred; "
                "try adding a type annotation for the attribute.)"
            )
        elif kind is not None:
            attributes[name] = (kind, "attribute")
        elif inspect.isroutine(value) or hasattr(value, "_rushlight_functions"):
            functions[name] = value
        else:
            failed[name] = (
                "(This attribute exists on the Python module, but we failed to convert Python type: "
                f"'{type(value).__name__}' to a TorchScript type. {_why_untyped(value)})"
            )
    attributes["training"] = (BOOL, "attribute")
    attributes["_is_full_backward_hook"] = (OptionalType(BOOL), "attribute")
    return attributes, constants, functions, failed


def _why_untyped(value: object) -> str:
    """Return why a value of a module has no type."""
    if isinstance(value, list | tuple) and any(isinstance(each, Module) for each in value):
        return "Could not infer type of list element: Cannot infer concrete type of torch.nn.Module."
    return f"Only tensors and (possibly nested) tuples of tensors, lists, dicts and scripted classes have one, got {value!r}"


def _is_plain(value: object) -> bool:
    if isinstance(value, tuple | list):
        return all(map(_is_plain, value))
    return value is None or isinstance(value, bool | int | float | str)


def _annotations(kind: type) -> dict[str, object]:
    try:
        return typing.get_type_hints(kind)
    except Exception:  # annotations may name things that exist only for type checkers
        return {}


def _annotated_type(annotations: dict, name: str) -> Type | None:
    if name not in annotations:
        return None
    try:
        return type_from_python(annotations[name], compiler.class_type)
    except RuntimeError:
        return None


def _infer(value: object) -> Type | None:
    if isinstance(value, Module):
        return None
    if isinstance(value, Tensor):
        return TENSOR
    extension = extension_type_of(value)
    if extension is not None:
        return extension
    try:
        return infer_type(value, compiler.class_type)
    except RuntimeError:
        return None


def _plain_attributes(module: Module):
    ignored = getattr(type(module), "__jit_ignored_attributes__", ())
    for name, value in vars(module).items():
        if name not in _INTERNAL and name not in ignored and not name.startswith("__"):
            yield name, value


def _make(module: Module, attributes: dict, constants: dict, functions: dict, failed: dict, submodules: dict) -> ConcreteModule:
    kind = ClassType(unique_name(qualified_name(type(module))), is_module=True)
    concrete = ConcreteModule(type(module), kind, submodules, constants, functions, failed)
    for name, (declared, flag) in attributes.items():
        kind.add_attribute(name, declared, flag == "parameter", flag == "buffer")
    annotations = _annotations(type(module))
    for name, child in submodules.items():
        declared = _annotated_type(annotations, name)
        kind.add_attribute(name, declared if isinstance(declared, InterfaceType) else child.type)
    kind.constants.update({name: value for name, value in constants.items() if constant_type(value) is not None})
    kind.unresolved.update(failed)
    kind.lazy_method.append(lambda name: _compile_method(concrete, name))
    added: dict[str, Callable] = {}
    for hooks, given, called in (
        (concrete.pre_hooks, module._forward_pre_hooks, "Pre-hook"),
        (concrete.hooks, module._forward_hooks, "Hook"),
    ):
        hooks += [_add_hook(concrete, each, called, added) for each in given.values() if _is_scriptable(each)]
    concrete.type.hooks.update(pre_hooks=concrete.pre_hooks, hooks=concrete.hooks)
    return concrete


def _is_scriptable(hook: Callable) -> bool:
    return inspect.isfunction(hook) and not is_ignored(hook) and not is_unused(hook)


def _add_hook(concrete: ConcreteModule, hook: Callable, called: str, added: dict[str, Callable]) -> str:
    """Make a hook a method of the module, under its own name. RuntimeError if something else has it; `added` holds the hooks so
    far."""
    name = hook.__name__
    if added.setdefault(name, hook) is not hook:
        raise RuntimeError(f"{called} '{name}' on {concrete.python_class.__name__} has at least two different python "
                           "definitions. Please use unique names for all hooks.")  # fmt: skip
    if inspect.getattr_static(concrete.python_class, name, None) not in (None, hook):
        raise RuntimeError(f"Can't define hook: {name} on class: {concrete.type.name} "
                           "because a method or hook with that name already exists.")  # fmt: skip
    if name not in concrete.type.methods:
        concrete.type.methods[name] = _define_method(concrete, hook, name, False)
    return name


def unique_name(name: str) -> str:
    """Return the name, mangled if another type already has it."""
    if name not in _names:
        _names.add(name)
        return name
    prefix, _, last = name.rpartition(".")
    return unique_name(f"{prefix}.___torch_mangle_{next(_counter)}.{last}")


def _compile_method(concrete: ConcreteModule, name: str) -> Function | None:
    """Return a method of a module, compiled on demand; None if there is none."""
    with _lock:
        kind = concrete.type
        if name in kind.methods:
            return kind.methods[name]
        made, is_static = _define_named(concrete, name)
        if made is None:
            return None
        (kind.static_methods if is_static else kind.methods)[name] = made
        return made


def _define_named(concrete: ConcreteModule, name: str) -> tuple[Function | None, bool]:
    """Return the method called `name`, and whether it is static. `name__1` is the second declared signature of `name`."""
    method, is_static = method_of(concrete.python_class, name)
    if method is not None:
        return _define_method(concrete, method, name, is_static), is_static
    base, _, number = name.rpartition("__")
    method, is_static = method_of(concrete.python_class, base) if number.isdigit() else (None, False)
    declared = [] if method is None else overloads_of(method)
    if not number.isdigit() or int(number) >= len(declared):
        return None, False
    self_name = concrete.type.short_name
    definition = overloaded_definition(declared[int(number)], get_jit_def(method, name, self_name), self_name)
    defaults = default_arguments(declared[int(number)])
    resolver = ModuleResolver(closure_lookup(method), compiler, concrete, property_of)
    return compiler.define(definition, f"{concrete.type.name}.{name}", resolver, defaults, concrete.type), False


def method_of(kind: type, name: str) -> tuple[Callable | None, bool]:
    """Return the Python function to compile as a method of a class, and whether it is static; None if it is not compiled."""
    method = script_methods(kind).get(name)
    if method is None:
        method = inspect.getattr_static(kind, name, None)
    is_static = isinstance(method, staticmethod)
    method = getattr(method, "__func__", getattr(method, "function", method))
    if not inspect.isfunction(method) or is_unused(method) or is_ignored(method):
        return None, False
    return method, is_static


def property_of(concrete: ConcreteModule, name: str) -> tuple[Function, Function | None]:
    """Return the getter and setter of a property, compiled on demand."""
    with _lock:
        found = concrete.type.properties.get(name)
        if found is None:
            declared = inspect.getattr_static(concrete.python_class, name)
            made = [
                None if each is None else _define_accessor(concrete, each, f"__{name}_{suffix}")
                for each, suffix in ((declared.fget, "getter"), (declared.fset, "setter"))
            ]
            found = concrete.type.properties[name] = (made[0], made[1])
        return found


def _define_accessor(concrete: ConcreteModule, function: Callable, name: str) -> Function:
    made = concrete.type.methods[name] = _define_method(concrete, function, name, False)
    return made


def _define_method(concrete: ConcreteModule, method: Callable, name: str, is_static: bool) -> Function:
    definition = get_jit_def(method, name, None if is_static else concrete.type.name.rpartition(".")[2])
    resolver = ModuleResolver(closure_lookup(method), compiler, concrete, property_of)
    owner = None if is_static else concrete.type
    inferred = _type_of_state(concrete, definition) if name == "__setstate__" else None
    made = compiler.define(definition, f"{concrete.type.name}.{name}", resolver, default_arguments(method), owner, inferred)
    made.doc = method.__doc__
    return made


def _type_of_state(concrete: ConcreteModule, definition: Def) -> dict[str, Type]:
    """Return the type of the parameter of `__setstate__`: what `__getstate__` returns. RuntimeError without one."""
    get_state = method_of(concrete.python_class, "__getstate__")[0]
    if get_state is None or get_state is Module.__getstate__:
        raise RuntimeError(f"{concrete.python_class.__name__} has a __setstate__ that is compiled, but no __getstate__")
    found = _compile_method(concrete, "__getstate__")
    return {param.ident.name: found.schema.return_type for param in definition.decl.params[1:]}
