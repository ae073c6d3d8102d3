"""The schema of an operator, read off the annotations of a Python function."""

from __future__ import annotations

import collections.abc
import inspect
import types
import typing
from collections.abc import Callable, Iterable

from rushlight.core.device import device
from rushlight.core.dtype import dtype
from rushlight.core.tensor import Tensor

_PLAIN = {Tensor: "Tensor", int: "SymInt", float: "float", bool: "bool", str: "str", dtype: "ScalarType", device: "Device"}
_NUMBER = frozenset({int, float, bool})


def infer_schema(prototype_function: Callable, /, *, mutates_args: str | Iterable[str], op_name: str | None = None) -> str:
    """Return the schema that a function's annotations say: "(Tensor x, float by) -> Tensor", after `op_name` where one is
    given.

    `mutates_args` names the arguments that the function writes to; "unknown" means all tensors. ValueError for a parameter
    without a type, of a type that no operator takes, or with a default that no schema can say.
    """
    function = prototype_function
    signature = inspect.signature(function)

    def refuse(what: str) -> ValueError:
        return ValueError(f"infer_schema(func): {what} Got func with signature {signature})")

    parameters = list(signature.parameters.values())
    if any(value.kind not in (value.POSITIONAL_OR_KEYWORD, value.KEYWORD_ONLY) for value in parameters):
        raise refuse("We do not support positional-only args, varargs, or varkwargs.")
    missing = set() if mutates_args == "unknown" else set(mutates_args) - set(signature.parameters)
    if missing:
        raise refuse(f"{missing} in mutates_args were not found in the custom op's signature.")
    hints = typing.get_type_hints(function)
    texts = []
    for index, parameter in enumerate(parameters):
        name = parameter.name
        if name not in hints:
            raise refuse(f"Parameter {name} must have a type annotation.")
        kind = _type_text(hints[name])
        if kind is None:
            raise refuse(f"Parameter {name} has unsupported type {hints[name]}.")
        is_tensor = kind.startswith("Tensor")
        if name in mutates_args and mutates_args != "unknown" and not is_tensor:
            raise refuse(f"Parameter {name} is in mutates_args but only Tensors or collections of Tensors can be mutated")
        if is_tensor and (mutates_args == "unknown" or name in mutates_args):
            kind = f"Tensor(a{index}!){kind[len('Tensor') :]}"
        if parameter.kind is parameter.KEYWORD_ONLY and "*" not in texts:
            texts.append("*")
        default = "" if parameter.default is parameter.empty else _default_text(parameter.default)
        if default is None:
            raise refuse(f"Parameter {name} has an unsupported default value type {type(parameter.default)}.")
        texts.append(f"{kind} {name}{default}")
    if "return" not in hints:
        raise refuse("No return type annotation was provided. Please add one.")
    returned = _return_text(hints["return"])
    if returned is None:
        raise refuse(f"Return has unsupported type {hints['return']}.")
    return f"{op_name or ''}({', '.join(texts)}) -> {returned}"


def _type_text(annotation: object) -> str | None:
    """Return a type as schemas write it; None for one that they do not have."""
    if isinstance(annotation, type) and annotation in _PLAIN:
        return _PLAIN[annotation]
    origin, parts = typing.get_origin(annotation), typing.get_args(annotation)
    if origin in (typing.Union, types.UnionType):
        inner = [part for part in parts if part is not type(None)]
        text = "Scalar" if set(inner) == _NUMBER else _type_text(inner[0]) if len(inner) == 1 else None
        return text if text is None or len(inner) == len(parts) else f"{text}?"
    if origin in (list, collections.abc.Sequence):
        element = _type_text(parts[0])
        return None if element is None or element.endswith("]") else f"{element}[]"
    return None


def _default_text(value: object) -> str | None:
    if isinstance(value, str | device):
        return f'="{value}"'
    if isinstance(value, dtype):
        return f"={str(value).removeprefix('torch.')}"
    return f"={value}" if value is None or isinstance(value, bool | int | float) else None


def _return_text(annotation: object) -> str | None:
    if annotation is type(None):
        return "()"
    if typing.get_origin(annotation) is tuple:
        texts = [_type_text(part) for part in typing.get_args(annotation)]
        return None if None in texts else f"({', '.join(texts)})"
    return _type_text(annotation)
