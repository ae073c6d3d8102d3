"""Values of exported graphs as JSON: arguments of nodes, sizes with symbols, trees, specs. And back.

Plain numbers, strings, None and lists are encoded as themselves; other values are an object with one key, its kind. The content
cannot refer to Python code: functions are operators by name, or of the short table `FUNCTIONS`.
"""

from __future__ import annotations

import math
import operator
import re
from collections import OrderedDict
from collections.abc import Callable
from typing import Any

from rushlight.core import dtype as dtypes
from rushlight.core import layout as layouts
from rushlight.core.algebra import Const, Expr, FloorDiv, Product, Sum, Var, as_expr
from rushlight.core.algebra.nodes import linear_form
from rushlight.core.device import device
from rushlight.core.pytree import LEAF, TreeSpec
from rushlight.core.symbolic import SymInt, sym_float
from rushlight.core.symbolic.relations import DIFFERENT, EQUAL, NOT_NEGATIVE, Relation
from rushlight.dynamo.unknown_values import check_relation, rounded
from rushlight.fx.node import Node
from rushlight.ops.dispatcher import OpOverload, find_operator
from rushlight.utils._pytree import SUPPORTED_SERIALIZED_TYPES

FUNCTIONS: dict[str, Callable] = {
    **{
        name: getattr(operator, name)
        for name in ("getitem", "add", "sub", "mul", "floordiv", "mod", "truediv", "pow", "neg", "abs")
    },
    "sqrt": math.sqrt, "sym_float": sym_float, "check_relation": check_relation, "rounded": rounded,
}  # fmt: skip
RELATIONS = (EQUAL, DIFFERENT, NOT_NEGATIVE)
_OPERATOR = re.compile(r"[A-Za-z_]\w*::[A-Za-z_]\w*")
_DTYPES = {kind.name: kind for kind in (*vars(dtypes).values(), *dtypes.STORED_TYPES) if isinstance(kind, dtypes.dtype)}
_LAYOUTS = {str(value): value for value in vars(layouts).values() if isinstance(value, layouts.layout | layouts.memory_format)}
_ERRORS = {kind.__name__: kind for kind in (RuntimeError, IndexError, ValueError, TypeError, NotImplementedError)}
_CONTAINERS = {kind.__name__: kind for kind in (list, tuple, dict, OrderedDict)}


class FormatError(ValueError):
    """The content was not written by `encode` and its counterparts."""


# Arguments


def encode(value: Any) -> Any:
    """Encode an argument of a node. TypeError where a file cannot hold it."""
    if value is None or isinstance(value, str) or type(value) in (bool, int):
        return value
    if type(value) is SymInt:
        raise TypeError("a symbolic size stands among the arguments of a node")
    for kind, (known, write, _) in _KINDS.items():
        if isinstance(value, known):
            return write(value) if kind == "list" else {kind: write(value)}
    raise TypeError(f"an exported program with a {type(value).__name__} among its arguments cannot be saved: {value!r:.100}")


def decode(found: Any, nodes: dict[str, Node]) -> Any:
    """Return the inverse of `encode`."""
    if isinstance(found, list):
        return [decode(item, nodes) for item in found]
    if not isinstance(found, dict):
        return found
    kind, content = _single(found)
    if kind == "node":
        return nodes[content]
    if kind == "tuple":
        return tuple(decode(item, nodes) for item in content)
    if kind == "slice":
        return slice(*(decode(item, nodes) for item in content))
    if kind == "dict":
        return {key: decode(item, nodes) for key, item in content}
    return _KINDS[kind][2](content)


def _single(found: dict) -> tuple[str, Any]:
    if len(found) != 1:
        raise FormatError(f"expected an object with one key, found {sorted(found)}")
    return next(iter(found.items()))


_KINDS: dict[str, tuple[Any, Callable, Callable]] = {
    "node": (Node, lambda value: value.name, str),
    "list": (list, lambda value: [encode(item) for item in value], list),
    "tuple": (tuple, lambda value: [encode(item) for item in value], tuple),
    "dict": (dict, lambda value: [[key, encode(item)] for key, item in value.items()], dict),
    "float": (float, lambda value: value.hex(), float.fromhex),
    "complex": (complex, lambda value: [value.real.hex(), value.imag.hex()], lambda found: complex(*map(float.fromhex, found))),
    "dtype": (dtypes.dtype, lambda value: value.name, lambda name: dtype_named(name)),
    "device": (device, str, device),
    "layout": ((layouts.layout, layouts.memory_format), str, _LAYOUTS.__getitem__),
    "error": (type, lambda value: _name_of_error(value), _ERRORS.__getitem__),
    "slice": (slice, lambda value: [encode(value.start), encode(value.stop), encode(value.step)], list),
    "ellipsis": (type(...), lambda value: 0, lambda found: ...),
}


def _name_of_error(kind: type) -> str:
    if kind not in _ERRORS.values():
        raise TypeError(f"an exported program that checks numbers with {kind.__name__} cannot be saved")
    return kind.__name__


def dtype_named(name: str) -> dtypes.dtype:
    """Return the dtype of a name."""
    if name not in _DTYPES:
        raise FormatError(f"no dtype is called {name!r:.50}")
    return _DTYPES[name]


def encode_target(target: Any) -> str:
    """Return an operator, or a function of `FUNCTIONS`, by name."""
    if isinstance(target, OpOverload):
        return target.name()
    for name, function in FUNCTIONS.items():
        if function is target:
            return name
    raise TypeError(f"an exported program that calls {target} cannot be saved")


def decode_target(name: str) -> Callable:
    """Return the inverse of `encode_target`."""
    if name in FUNCTIONS:
        return FUNCTIONS[name]
    base, _, overload = name.partition(".")
    if not _OPERATOR.fullmatch(base):
        raise FormatError(f"{name!r:.100} is not the name of an operator")
    return find_operator(base, overload)


# Sizes


def encode_size(value: Any) -> Any:
    """Return a size, stride or expression of symbols."""
    if type(value) is SymInt:
        value = value.expr
    if not isinstance(value, Expr):
        return int(value)
    if type(value) is Const:
        return value.value
    if type(value) is Var:
        return value.name
    if type(value) is Product:
        return ["*", *map(encode_size, value.factors)]
    if type(value) is Sum:
        terms, constant = linear_form(value)
        return ["+", constant, *(["*", scale, encode_size(term)] for term, scale in terms)]
    return ["//" if type(value) is FloorDiv else "%", encode_size(value.dividend), encode_size(value.divisor)]


def decode_size(found: Any, symbols: dict[str, Var]) -> Expr:
    """Return the inverse of `encode_size`."""
    if isinstance(found, str):
        return symbols[found]
    if isinstance(found, int):
        return as_expr(found)
    function, *parts = found
    result, *others = (decode_size(part, symbols) for part in parts)
    for other in others:
        result = _ARITHMETIC[function](result, other)
    return result


_ARITHMETIC = {"+": operator.add, "*": operator.mul, "//": operator.floordiv, "%": operator.mod}


def encode_relation(relation: Relation) -> list:
    """Return a relation between sizes."""
    return [relation.kind, encode_size(relation.expression)]


def decode_relation(found: list, symbols: dict[str, Var]) -> Relation:
    """Return the inverse of `encode_relation`."""
    kind, expression = found
    if kind not in RELATIONS:
        raise FormatError(f"no relation is called {kind!r:.50}")
    return Relation(kind, decode_size(expression, symbols))


# Trees


def encode_tree(spec: TreeSpec) -> Any:
    """Encode a tree's spec. TypeError for containers whose class has no serialized name."""
    if spec.kind is None:
        return None
    children = [encode_tree(child) for child in spec.children]
    if spec.kind in _CONTAINERS.values():
        return [spec.kind.__name__, None if spec.keys is None else [encode(key) for key in spec.keys], children]
    if spec.kind not in SUPPORTED_SERIALIZED_TYPES:
        raise TypeError(f"a {spec.kind.__name__} among the inputs or outputs cannot be saved; use register_dataclass")
    return [SUPPORTED_SERIALIZED_TYPES[spec.kind], encode(spec.context), children]


def decode_tree(found: Any) -> TreeSpec:
    """Return the inverse of `encode_tree`. FormatError for a class that is not registered in this process."""
    if found is None:
        return LEAF
    name, context, children = found
    children = tuple(map(decode_tree, children))
    if name in _CONTAINERS:
        return TreeSpec(_CONTAINERS[name], None if context is None else tuple(decode(key, {}) for key in context), children)
    kind = {written: kind for kind, written in SUPPORTED_SERIALIZED_TYPES.items()}.get(name)
    if kind is None:
        raise FormatError(f"the class {name!r:.100} is not registered here; call register_dataclass first")
    return TreeSpec(kind, None, children, decode(context, {}))
