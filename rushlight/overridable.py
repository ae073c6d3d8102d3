"""The table of functions that tensor subclasses and function modes can override, and their public names."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from types import FunctionType
from typing import Any

from rushlight._C import BinaryMethod
from rushlight.core.lazy_module import fetch
from rushlight.core.tensor import Tensor

_MODULES = ("nn.functional", "linalg", "fft", "special")
_QUESTIONS = ("is_tensor", "is_storage", "typename", "is_complex_type")


def _library() -> Any:
    return sys.modules["rushlight"]


def _functions_of(namespace: Any) -> dict[str, Callable]:
    return {name: value for name, value in vars(namespace).items() if getattr(value, "_asks_modes", False)}


def _constructors() -> dict[str, Callable]:
    return {name: getattr(_library(), name) for name in ("tensor", "as_tensor", "asarray", "frombuffer")}


@functools.cache
def _tensor_members() -> dict[str, Callable]:
    members: dict[str, Callable] = {}
    for name, value in vars(Tensor).items():
        value = getattr(value, "__wrapped__", value) if type(value).__name__ == "_AskingFunction" else value
        if isinstance(value, FunctionType | BinaryMethod) and name not in ("__new__", "as_subclass", "_autograd_meta"):
            members[name] = value
        elif hasattr(value, "__set__"):
            members.update({f"{name}.__get__": value.__get__, f"{name}.__set__": value.__set__})
    return members


@functools.cache
def _public_names() -> dict[Callable, str]:
    """Return the public name of each function, the first of several."""
    found: dict[Callable, str] = {}
    for name, function in {**_constructors(), **_functions_of(_library())}.items():
        found.setdefault(function, f"torch.{name}")
    for module in _MODULES:
        for name, function in _functions_of(fetch(f"rushlight.{module}")).items():
            found.setdefault(function, f"torch.{module}.{name}")
    for name, function in _tensor_members().items():
        found.setdefault(function, f"torch.Tensor.{name}")
    return found


def get_overridable_functions() -> dict[Any, list[Callable]]:
    """Return the functions that types and modes may decide, by the namespace that has them: modules and `torch.Tensor`."""
    found: dict[Any, list[Callable]] = {_library(): [*_constructors().values(), *_functions_of(_library()).values()]}
    for module in (fetch(f"rushlight.{name}") for name in _MODULES):
        found[module] = list(_functions_of(module).values())
    found[Tensor] = list(_tensor_members().values())
    return found


def get_ignored_functions() -> set[Callable]:
    """Return public functions that no type and no mode decides, because they do not work on tensors."""
    library = _library()
    asked = set(get_overridable_functions()[library])
    functions = {value for name, value in vars(library).items() if isinstance(value, FunctionType) and not name.startswith("_")}
    return (functions | {getattr(library, name) for name in _QUESTIONS if hasattr(library, name)}) - asked


def get_testing_overrides() -> dict[Callable, Callable]:
    """Return for each overridable function one that takes any arguments and returns -1, for tests of the protocol."""
    return {function: _any_arguments for functions in get_overridable_functions().values() for function in functions}


def _any_arguments(*args: Any, **kwargs: Any) -> int:
    return -1


def is_tensor_method_or_property(func: Callable) -> bool:
    """Return whether a function is a method of Tensor, or the getter or setter of a property."""
    return func in _tensor_member_set() or getattr(func, "__name__", None) in ("__get__", "__set__")


@functools.cache
def _tensor_member_set() -> frozenset[Callable]:
    return frozenset(_tensor_members().values())


def resolve_name(f: Any) -> str | None:
    """Return the public name of a function or operator ("torch.Tensor.size"); None where it has none."""
    if hasattr(f, "_name") and hasattr(f, "overloads") or hasattr(f, "_overloadname"):
        return str(f)
    return _public_names().get(f)
