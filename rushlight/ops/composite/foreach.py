"""`_foreach_*`: apply an operator to each tensor of a list, as optimizers and moving averages of weights do.

Every operator takes lists of one length in place of tensors. Numbers are either one for all tensors or a list of their own. The
variants `_foreach_*_` write to the tensors of `self`, and return them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from rushlight.core.tensor import Tensor
from rushlight.ops.packet import namespaces
from rushlight.ops.registry import composite
from rushlight.ops.together import call_together, may_be_a_graph

aten = namespaces.namespace("aten")

_UNARY = (
    "abs acos asin atan ceil cos cosh erf erfc exp expm1 floor frac lgamma log log10 log1p log2 neg reciprocal round rsqrt "
    "sigmoid sign sin sinh sqrt tan tanh trunc"
).split()
_NUMBERS = (".Scalar(Tensor[] self, Scalar scalar)", ".ScalarList(Tensor[] self, Scalar[] scalars)")
_LISTS = ".List(Tensor[] self, Tensor[] other)"
_SCALED = (*_NUMBERS, ".List(Tensor[] self, Tensor[] other, *, Scalar alpha=1)")
_BINARY = {
    "add": (*_SCALED, ".Tensor(Tensor[] self, Tensor other, *, Scalar alpha=1)"), "sub": _SCALED,
    **dict.fromkeys(("mul", "div"), (*_NUMBERS, _LISTS, ".Tensor(Tensor[] self, Tensor other)")),
    **dict.fromkeys(("clamp_max", "clamp_min", "maximum", "minimum"), (*_NUMBERS, _LISTS)),
    "pow": (
        ".List(Tensor[] self, Tensor[] exponent)", ".Scalar(Tensor[] self, Scalar exponent)",
        ".ScalarList(Tensor[] self, Scalar[] exponent)",
    ),
    "lerp": (
        ".List(Tensor[] self, Tensor[] tensors1, Tensor[] weights)", ".Scalar(Tensor[] self, Tensor[] tensors1, Scalar weight)",
        ".ScalarList(Tensor[] self, Tensor[] tensors1, Scalar[] weight)",
    ),
}  # fmt: skip
_REPLACEMENTS = {"maximum": "clamp_min", "minimum": "clamp_max"}  # these also accept numbers, and otherwise compute the same
_ADDED = (
    ".Scalar(Tensor[] self, Tensor[] tensor1, Tensor[] tensor2, Scalar value=1)",
    ".ScalarList(Tensor[] self, Tensor[] tensor1, Tensor[] tensor2, Scalar[] scalars)",
    ".Tensor(Tensor[] self, Tensor[] tensor1, Tensor[] tensor2, Tensor scalars)",
)

_OPERANDS = ("tensors1", "tensor1", "tensor2", "other", "exponent", "scalar", "scalars", "weight", "weights", "value")


def _map_lists(function: Callable, self: Sequence[Tensor], *others: Any, **options: Any) -> tuple:
    """Call `function` with each tensor of `self` and the corresponding elements of the other lists."""
    if not self:
        raise RuntimeError("Tensor list must have at least one tensor.")
    for other in others:
        if isinstance(other, Tensor) and other.dim():
            raise RuntimeError(
                f"scalar tensor expected to be 0 dim but it has {other.dim()} dimensions and {other.numel()} elements."
            )
        if isinstance(other, list | tuple) and len(other) != len(self):
            if other and not isinstance(other[0], Tensor):
                raise RuntimeError("Tensor list must have same number of elements as scalar list.")
            raise RuntimeError(f"Tensor lists must have the same number of tensors, got {len(self)} and {len(other)}")
    if not may_be_a_graph(self):
        columns = [other if isinstance(other, list | tuple) else [other] * len(self) for other in others]
        return tuple([function(*arguments, **options) for arguments in zip(self, *columns, strict=True)])
    values = _Values()
    columns = tuple([values.describe(column) for column in (list(self), *others)])
    named = tuple([(name, values.describe(value)) for name, value in options.items()])
    return call_together(_for_each, values.tensors, values.numbers, (function, columns, named))


class _Values:
    """Takes tensors and floats out of operands, for `call_together`."""

    def __init__(self) -> None:
        self.tensors: list[Tensor] = []
        self._places: dict[int, int] = {}
        self.numbers: list[float] = []

    def describe(self, value: object) -> tuple:
        """Return where an operand's values are from now on."""
        if isinstance(value, Tensor):
            place = self._places.setdefault(id(value), len(self.tensors))
            if place == len(self.tensors):
                self.tensors.append(value)
            return "tensor", place
        if type(value) is float:
            self.numbers.append(value)
            return "number", len(self.numbers) - 1
        if isinstance(value, list | tuple):
            return "list", tuple([self.describe(item) for item in value])
        return type(value), value


def _for_each(tensors: Sequence[Tensor], numbers: Sequence[float], options: tuple) -> tuple:
    """Call a function with operands that `_Values` has described: lists, and values for all calls."""
    function, described, named = options

    def found(place: tuple) -> object:
        kind, value = place
        return tensors[value] if kind == "tensor" else numbers[value] if kind == "number" else value

    count = len(described[0][1])
    columns = [map(found, place[1]) if place[0] == "list" else [found(place)] * count for place in described]
    keywords = {name: found(place) for name, place in named}
    results = tuple([function(*arguments, **keywords) for arguments in zip(*columns, strict=True)])
    return () if any(results[0] is tensor for tensor in tensors) else results


def _define(name: str, declarations: Sequence[str], run: Callable) -> None:
    """Define the operator with these overloads, and its variant that writes to the tensors of `self`.

    `run` takes the operator name's suffix, the operands in order, and the options by name.
    """

    def functional(self, *others, **options):
        return run("", self, *others, *_keyword_operands(options), **options)

    def in_place(self, *others, **options):
        run("_", self, *others, *_keyword_operands(options), **options)
        return self

    composite(*(f"_foreach_{name}{declaration} -> Tensor[]" for declaration in declarations))(functional)
    written = (declaration.replace("(Tensor[] self", "(Tensor(a!)[] self", 1) for declaration in declarations)
    composite(*(f"_foreach_{name}_{declaration} -> ()" for declaration in written))(in_place)


def _keyword_operands(options: dict) -> list:
    """Return the operands given by keyword, in the schemas' order."""
    return [options.pop(name) for name in _OPERANDS if name in options]


def _define_by(name: str, declarations: Sequence[str], one: str) -> None:
    """Define an operator that calls the operator `one` for each tensor."""
    _define(name, declarations, lambda suffix, *lists, **options: _map_lists(getattr(aten, one + suffix), *lists, **options))


def _define_added(name: str) -> None:
    """Define an operator that adds `value` times a product or quotient to each tensor."""
    scaled = {suffix: partial(_add_scaled, name + suffix) for suffix in ("", "_")}
    weighted = {suffix: partial(_add_weighted, name + suffix) for suffix in ("", "_")}

    def run(suffix, self, tensor1, tensor2, scalars=1):
        if not isinstance(scalars, Tensor):
            return _map_lists(scaled[suffix], self, tensor1, tensor2, scalars)
        if scalars.shape != (len(self),):
            raise RuntimeError(f"Expected scalars to be of shape [{len(self)}], one for each tensor, got {list(scalars.shape)}")
        return _map_lists(weighted[suffix], self, tensor1, tensor2, scalars.unbind())

    _define(name, _ADDED, run)


def _add_scaled(name: str, tensor: Tensor, first: Tensor, second: Tensor, value: float) -> Tensor:
    return getattr(aten, name)(tensor, first, second, value=value)


def _add_weighted(name: str, tensor: Tensor, first: Tensor, second: Tensor, weight: Tensor) -> Tensor:
    return getattr(aten, name)(tensor, first * weight, second)


for _name in _UNARY:
    _define_by(_name, ["(Tensor[] self)"], _name)
for _name, _declarations in _BINARY.items():
    _define_by(_name, _declarations, _REPLACEMENTS.get(_name, _name))
for _name in ("addcmul", "addcdiv"):
    _define_added(_name)


@composite("_foreach_pow.ScalarAndTensor(Scalar self, Tensor[] exponent) -> Tensor[]")
def foreach_power_of_number(self, exponent):
    return _map_lists(_power_of_number, exponent, self)


def _power_of_number(exponent: Tensor, number: float) -> Tensor:
    return aten.pow(number, exponent)


@composite("_foreach_norm.Scalar(Tensor[] self, Scalar ord=2, ScalarType? dtype=None) -> Tensor[]")
def foreach_norm(self, ord=2, dtype=None):
    return _map_lists(aten.linalg_vector_norm, self, ord, dtype=dtype)


@composite("_foreach_max(Tensor[] self) -> Tensor[]")
def foreach_max(self):
    return _map_lists(aten.max, self)


@composite("_foreach_clone(Tensor[] self, *, MemoryFormat? memory_format=None) -> Tensor[]")
def foreach_clone(self, memory_format=None):
    return _map_lists(aten.clone, self, memory_format=memory_format)


@composite("_foreach_zero_(Tensor(a!)[] self) -> ()")
def foreach_zero_(self):
    _map_lists(aten.zero_, self)
    return self


@composite("_foreach_copy_(Tensor(a!)[] self, Tensor[] src, bool non_blocking=False) -> ()")
def foreach_copy_(self, src, non_blocking=False):
    _map_lists(aten.copy_, self, src, non_blocking=non_blocking)
    return self
