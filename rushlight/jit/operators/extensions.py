"""Objects of extension classes in scripted code, and their methods: `unpack()`, `stride()` and so on.

In: the packed weights that an operator returns, or the state in an archive. Out: objects of scripted code, whose `held` is the
operators' argument.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

from rushlight.core.lazy_module import LazyModule
from rushlight.jit.function import Function
from rushlight.jit.runtime.objects import ExtensionObject
from rushlight.jit.types.extensions import NAMES, PREFIX, extension_type
from rushlight.jit.types.kinds import Type
from rushlight.jit.types.parser import Tokens, parse_type
from rushlight.ops.schema import CLASS_PREFIX
from rushlight.ops.schema import FunctionSchema as OperatorSchema

parser, packed = LazyModule("rushlight.jit.ir.parser"), LazyModule("rushlight.quantized.packed")
_CONV_SETTINGS = {"stride": "int[]", "padding": "int[]", "output_padding": "int[]", "dilation": "int[]", "groups": "int"}
_PAIR = ("Tensor", "Tensor?")


def _methods() -> dict[str, dict[str, tuple[str, tuple[str, ...]]]]:
    """Return the operator behind each method of each class, and the types of its results."""
    found = {"quantized.LinearPackedParamsBase": {"unpack": ("linear_unpack", _PAIR)},
             "quantized.EmbeddingPackedParamsBase": {"unpack": ("embedding_bag_unpack", ("Tensor",))}}  # fmt: skip
    for rank in (2, 3):
        settings = {name: (f"conv{rank}d_{name}", (kind,)) for name, kind in _CONV_SETTINGS.items()}
        found[f"quantized.Conv{rank}dPackedParamsBase"] = {"unpack": (f"conv{rank}d_unpack", _PAIR), **settings}
    return found


_METHODS = _methods()


@cache
def _method(class_name: str, name: str) -> Function | None:
    """Return a method as a function of one operator; None if the class has no such method."""
    operator = _METHODS.get(class_name, {}).get(name)
    if operator is None:
        return None
    short, kinds = operator
    results = ", ".join(f"%{number} : {kind}" for number, kind in enumerate(kinds, 1))
    lines = [f"graph(%self : {PREFIX}{class_name}):", f"  {results} = quantized::{short}(%self)"]
    if len(kinds) > 1:
        numbers = ", ".join(f"%{number}" for number in range(1, len(kinds) + 1))
        lines += [f"  %9 : ({', '.join(kinds)}) = prim::TupleConstruct({numbers})", "  return (%9)"]
    else:
        lines.append("  return (%1)")
    return Function(f"{PREFIX}{class_name}.{name}", parser.parse_ir("\n".join(lines) + "\n", extension_type))


for _name in NAMES:
    extension_type(PREFIX + _name).lazy_method.append(lambda name, class_name=_name: _method(class_name, name))


def wrapped(value: object) -> object:
    """Return packed weights, also those in a tuple or list, as objects of scripted code."""
    if isinstance(value, tuple):
        return tuple(wrapped(each) for each in value)
    if isinstance(value, list):
        return [wrapped(each) for each in value]
    name = getattr(type(value), "class_name", None)
    return value if name not in packed.CLASSES else ExtensionObject(extension_type(PREFIX + name), value)


def held(value: object) -> object:
    """Return the packed weights inside objects, also those in a tuple or list."""
    if isinstance(value, tuple):
        return tuple(held(each) for each in value)
    if isinstance(value, list):
        return [held(each) for each in value]
    return value.held if isinstance(value, ExtensionObject) else value


def state_of(value: ExtensionObject) -> tuple[object, Type]:
    """Return an object's state for an archive, and the type of the state."""
    if value.held is None:
        raise RuntimeError(f"an object of {value.type.name} has no weights, so it can't be saved")
    return wrapped(value.held.state()), state_types(value)[0]


def state_types(value: ExtensionObject) -> list[Type]:
    """Return the possible types of an object's state in archives, the current format first."""
    return [parse_type(Tokens(text)) for text in packed.CLASSES[value.type.name.removeprefix(PREFIX)].state_types]


def restore(value: ExtensionObject, state: object) -> None:
    """Set an object's weights from an archive's state; RuntimeError where it is malformed."""
    value.held = packed.CLASSES[value.type.name.removeprefix(PREFIX)].of_state(held(state))


def gives_objects(schema: OperatorSchema) -> bool:
    """Return whether an operator returns packed weights."""
    return any(each.type.base.startswith(CLASS_PREFIX) for each in schema.returns)


def giving_objects(function: Callable) -> Callable:
    """Wrap an operator that returns packed weights for scripted code."""
    return lambda *args: wrapped(function(*args))
