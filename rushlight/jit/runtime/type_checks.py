"""Run-time type checks, for `isinstance` and for arguments from Python."""

from __future__ import annotations

import enum
from collections.abc import Sequence

from rushlight.core.device import device
from rushlight.core.dtype import dtype
from rushlight.core.generator import Generator
from rushlight.core.layout import layout, memory_format
from rushlight.core.lazy_module import LazyModule
from rushlight.core.tensor import Tensor
from rushlight.jit.annotations import infer_type
from rushlight.jit.constants import simplified
from rushlight.jit.runtime.futures import Future
from rushlight.jit.runtime.objects import ExtensionObject, ScriptObject, SharedContainer
from rushlight.jit.types.extensions import ExtensionType, extension_type_of
from rushlight.jit.types.kinds import (
    ANY,
    ANY_LIST,
    ANY_TUPLE,
    BOOL,
    COMPLEX,
    DEVICE,
    FLOAT,
    GENERATOR,
    INT,
    NONE,
    STRING,
    ClassType,
    DictType,
    EnumType,
    FutureType,
    InterfaceType,
    ListType,
    NumberType,
    OptionalType,
    TensorType,
    TupleType,
    Type,
    UnionType,
)
from rushlight.jit.types.relations import implements, members_of

compiler = LazyModule("rushlight.jit.compiler")  # lazy: it imports the emitter, which imports this module
_SIMPLE = {INT: int, FLOAT: float, BOOL: bool, COMPLEX: complex, STRING: str, DEVICE: device, GENERATOR: Generator}
_FAMILIES = {ANY_LIST: list, ANY_TUPLE: tuple}


def exact_class(kind: Type) -> type | None:
    """Return the Python class whose instances are exactly the values of a type; None if there is none."""
    return type(None) if kind is NONE else _SIMPLE.get(kind)


def is_instance(value: object, kind: Type) -> bool:
    """Return whether a value has a type, strictly: a bool is no int."""
    if kind is ANY:
        return True
    if isinstance(kind, TensorType):
        return isinstance(value, Tensor)
    if kind is NONE:
        return value is None
    if kind in _SIMPLE:
        return type(value) is _SIMPLE[kind]
    if kind in _FAMILIES:
        return isinstance(value, _FAMILIES[kind])
    if isinstance(kind, UnionType | OptionalType | NumberType):
        return any(is_instance(value, part) for part in members_of(kind))
    if isinstance(kind, ListType):
        return isinstance(value, list) and all(is_instance(item, kind.element) for item in value)
    if isinstance(kind, DictType):
        return isinstance(value, dict) and all(
            is_instance(key, kind.key) and is_instance(item, kind.value) for key, item in value.items()
        )
    if isinstance(kind, TupleType):
        return isinstance(value, tuple) and len(value) == len(kind.elements) and all(map(is_instance, value, kind.elements))
    if isinstance(kind, ClassType):
        return isinstance(value, ScriptObject) and value.type is kind
    if isinstance(kind, InterfaceType):
        return isinstance(value, ScriptObject) and implements(value.type, kind)
    if isinstance(kind, EnumType):
        return isinstance(value, enum.Enum) and type(value) is kind.python_class
    return isinstance(kind, FutureType) and isinstance(value, Future)


_EXACT = {id(kind): python_type for kind, python_type in ((INT, int), (FLOAT, float), (BOOL, bool), (STRING, str))}
"""The Python types whose values need no conversion, by the identity of the types that the library makes."""


def exact_form(kind: Type) -> type | tuple | None:
    """Return the description of values that need no conversion to a type, for `csrc/machine_arguments.c`; None if all values
    need none."""
    if isinstance(kind, TensorType):
        return Tensor
    if isinstance(kind, ListType | OptionalType):
        inner = exact_form(kind.element)
        return ("list" if isinstance(kind, ListType) else "optional", inner) if inner else None
    if isinstance(kind, DictType):
        key, value = exact_form(kind.key), exact_form(kind.value)
        # Tensors as keys are refused: hashing one may run arbitrary code.
        return ("dict", key, value) if key and value and key is not Tensor else None
    return _EXACT.get(id(kind))


class CannotConvert(TypeError):
    """A Python value does not fit a type."""


def to_script(value: object, kind: Type) -> object:
    """Convert a Python value to a type of scripted code; lists and dicts are copied, shared ones are not.

    CannotConvert names the mismatch.
    """
    if _EXACT.get(id(kind)) is type(value):
        return value
    if isinstance(kind, TensorType) or kind is ANY:
        return _as_tensor(value) if isinstance(kind, TensorType) else _unwrap(value)
    if isinstance(kind, OptionalType):
        return None if value is None else to_script(value, kind.element)
    if isinstance(kind, UnionType | NumberType):
        return _first_that_fits(value, kind)
    if isinstance(value, SharedContainer) and value.type == kind:
        return value.held
    if isinstance(kind, ListType):
        if not isinstance(value, Sequence) or isinstance(value, str | bytes):
            raise CannotConvert(f"Expected a value of type '{kind}' but got '{type(value).__name__}'")
        exact = _EXACT.get(id(kind.element))
        if exact is not None and set(map(type, value)) == {exact}:
            return list(value)
        return [to_script(item, kind.element) for item in value]
    if isinstance(kind, DictType):
        if not isinstance(value, dict):
            raise CannotConvert(f"Expected a value of type '{kind}' but got '{type(value).__name__}'")
        return {to_script(key, kind.key): to_script(item, kind.value) for key, item in value.items()}
    if isinstance(kind, TupleType):
        return _convert_tuple(value, kind)
    return _convert_simple(value, kind)


def _as_tensor(value: object) -> Tensor:
    if not isinstance(value, Tensor):
        raise CannotConvert(f"Expected a value of type 'Tensor' but got '{type(value).__name__}'")
    return value


def _unwrap(value: object) -> object:
    inner = getattr(value, "_c", None)
    if isinstance(inner, ScriptObject):
        return inner
    if isinstance(value, SharedContainer):
        return value.held
    return simplified(value) if isinstance(value, dtype | layout | memory_format) else value


def _first_that_fits(value: object, kind: Type) -> object:
    parts = members_of(kind)
    exact = next((part for part in parts if is_instance(value, part)), None)
    for part in parts if exact is None else (exact,):
        try:
            return to_script(value, part)
        except CannotConvert:
            continue
    found = infer_type(value, compiler.compiler.known_type)
    raise CannotConvert(f"Expected a member of {kind} but instead found type {found or type(value).__name__}")


def _convert_tuple(value: object, kind: TupleType) -> tuple:
    if not isinstance(value, tuple) or len(value) != len(kind.elements):
        raise CannotConvert(f"Expected a value of type '{kind}' but got '{type(value).__name__}'"
                            + (f" of length {len(value)}" if isinstance(value, tuple) else ""))  # fmt: skip
    parts = [to_script(item, element) for item, element in zip(value, kind.elements, strict=True)]
    return kind.python_class(*parts) if kind.python_class is not None else tuple(parts)


def _convert_object(value: object, kind: ClassType) -> ScriptObject:
    """Return an instance of the user's class converted to an object of scripted code: a copy."""
    made = ScriptObject(kind)
    for name, attribute in kind.attributes.items():
        try:
            made.slots[name] = to_script(getattr(value, name), attribute.type)
        except AttributeError:
            raise _missing_attribute(kind, name) from None
        except CannotConvert as error:
            raise CannotConvert(f"Attribute '{name}' of {kind.name}: {error}") from None
    return made


def _missing_attribute(kind: ClassType, name: str) -> CannotConvert:
    return CannotConvert(f"Tried to cast object to type {kind.name} but object was missing attribute {name}")


def _text_of(value: bytes) -> str:
    """Return bytes as a string: a character for each byte if they are no UTF-8."""
    try:
        return value.decode()
    except UnicodeDecodeError:
        return value.decode("latin-1")


def _convert_for_interface(value: object, kind: InterfaceType) -> ScriptObject:
    """Return an instance of a scripted class that implements an interface as an object of scripted code."""
    found = compiler.compiler.known_type(type(value))
    if kind.is_module:
        raise CannotConvert(f"Interface '{kind}': only ScriptModule class can be subtype of module interface")
    if not isinstance(found, ClassType) or not implements(found, kind):
        given = type(value).__name__
        raise CannotConvert(f"Expected a value of type '{kind}' but got '{given}', which is not compatible with interface")
    return _convert_object(value, found)


def _is_of_class(value: object, kind: ClassType | EnumType) -> bool:
    """Return whether a value is an instance of the scripted Python class; for an archive's type, of a class with the same
    name.
    """
    python_class = type(value)
    if kind.python_class is not None and isinstance(value, kind.python_class):
        return True
    names = (f"__torch__.{python_class.__module__}.{python_class.__qualname__}", f"__torch__.{python_class.__qualname__}")
    is_imported = kind.python_class is None or kind.python_class.__module__ == "__torch__"
    return is_imported and kind.name in names and not isinstance(value, ScriptObject)


def _convert_simple(value: object, kind: Type) -> object:
    value = simplified(_unwrap(value))
    if isinstance(kind, ExtensionType) and extension_type_of(value) is kind:
        return ExtensionObject(kind, value)
    if isinstance(kind, ClassType) and _is_of_class(value, kind):
        return _convert_object(value, kind)
    if isinstance(kind, EnumType) and isinstance(value, enum.Enum) and _is_of_class(value, kind):
        return kind.python_class[value.name] if value.name in kind.python_class.__members__ else value
    if kind == FLOAT and type(value) is int:
        return float(value)
    if kind == COMPLEX and type(value) in (int, float):
        return complex(value)
    if kind == INT and type(value) is bool:
        raise CannotConvert("Expected a value of type 'int' but got 'bool'")
    if kind == INT and isinstance(value, int):  # a subclass, such as a traced size
        return value
    if kind == DEVICE and isinstance(value, str):
        return device(value)
    if kind == BOOL and type(value) in (int, float):
        return bool(value)
    if kind == STRING and isinstance(value, bytes):
        return _text_of(value)
    if kind in (INT, FLOAT) and isinstance(value, Tensor) and value.numel() == 1:
        return _SIMPLE[kind](value.item())
    if isinstance(kind, InterfaceType) and not isinstance(value, ScriptObject):
        return _convert_for_interface(value, kind)
    if isinstance(kind, ClassType) and not isinstance(value, ScriptObject) and not kind.is_module:
        missing = next((name for name in kind.attributes if not hasattr(value, name)), None)
        if missing is not None:
            raise _missing_attribute(kind, missing)
    if isinstance(kind, InterfaceType) and not is_instance(value, kind):
        given = f"'{value.type}', which is not compatible with interface '{kind}'"
        raise CannotConvert(f"Expected a value of type '{kind}' but got {given}")
    if not is_instance(value, kind) and (
        kind in _SIMPLE or isinstance(kind, ClassType | EnumType) or kind is NONE
    ):
        raise CannotConvert(f"Expected a value of type '{kind}' but got '{type(value).__name__}'")
    return value
