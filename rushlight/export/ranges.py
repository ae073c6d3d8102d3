"""The symbols of open sizes: created from the user's dimensions before a trace, and checked against its guards after it.

In: the arguments and `dynamic_shapes`. Out: symbolic sizes of the inputs, then the range of each symbol and the guards.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import Any

from rushlight.core.algebra import Const, Expr, Var
from rushlight.core.algebra.nodes import linear_form
from rushlight.core.symbolic import ShapeEnv, SymInt
from rushlight.core.symbolic.relations import EQUAL, NOT_NEGATIVE, Relation
from rushlight.core.tensor_impl import TensorImpl
from rushlight.dynamo.dynamic import ConstraintViolationError
from rushlight.export.dynamic_shapes import INFINITY, DerivedDim, Dim, DimHint, OpenSizes, open_leaves
from rushlight.export.errors import UserError
from rushlight.fx.proxy_tensor import user_frame
from rushlight.fx.symbolic_sizes import Geometry, symbolic_strides


@dataclass(frozen=True)
class ValueRanges:
    """The possible values of a size, both ends included."""

    lower: float
    upper: float

    def __repr__(self) -> str:
        return f"VR[{self.lower}, {'int_oo' if self.upper == INFINITY else self.upper}]"


@dataclass
class _Symbol:
    """A symbol of the trace: the user's Dim or hint, and its first location."""

    value: SymInt
    entry: Dim | DimHint
    source: str

    @property
    def name(self) -> str:
        return self.entry.__name__ if isinstance(self.entry, Dim) else self.source


class OpenInputs:
    """The open sizes of one trace. `geometry` has the symbolic sizes and strides of each open tensor."""

    def __init__(self, named: dict[str, Any], shapes: Any) -> None:
        self.environment = ShapeEnv(locate=lambda: user_frame(sys._getframe(1)), keeps_floats=True)
        self.geometry: dict[TensorImpl, Geometry] = {}
        self._symbols: dict[str, _Symbol] = {}
        self._sizes: list[SymInt] = []
        for leaf in [] if shapes is None else open_leaves(named, shapes):
            self._create_symbols(leaf)

    def _create_symbols(self, leaf: OpenSizes) -> None:
        impl = leaf.value._impl
        sizes = list(impl.sizes)
        for dim, entry in leaf.entries.items():
            sizes[dim] = self._size(sizes[dim], entry, f"{leaf.source}.size()[{dim}]")
        self._sizes += [size for size in sizes if type(size) is SymInt]
        if impl not in self.geometry:
            self.geometry[impl] = tuple(sizes), symbolic_strides(impl, sizes, lambda dim, stride: stride)

    def _size(self, size: int, entry: Any, source: str) -> SymInt | int:
        if isinstance(entry, DimHint):
            return self._size_from_hint(size, entry, source)
        if isinstance(entry, DerivedDim):
            root, rest = divmod(size - entry.offset, entry.scale)
            if rest:
                raise UserError(f"{source} = {size} is not of the form {entry}")
            return self._symbol_of_dim(root, entry.root, source) * entry.scale + entry.offset
        return self._symbol_of_dim(size, entry, source) if isinstance(entry, Dim) else size

    def _size_from_hint(self, size: int, hint: DimHint, source: str) -> SymInt | int:
        if hint.type is Dim.STATIC.type or (hint.type is Dim.AUTO.type and size < 2):
            return size
        if size < 2:
            raise ValueError(
                f"{source} was said to be Dim.DYNAMIC, but a size of {size} in the example is taken for fixed. Export with an "
                "example of at least 2."
            )
        return self._new(size, hint, source, source)

    def _symbol_of_dim(self, size: int, dim: Dim, source: str) -> SymInt:
        known = self._symbols.get(dim.__name__)
        if known is None:
            return self._new(size, dim, source, dim.__name__)
        if known.value.hint != size:
            raise UserError(f"{source} = {size} is not equal to {known.source} = {known.value.hint}")
        return known.value

    def _new(self, size: int, entry: Dim | DimHint, source: str, name: str) -> SymInt:
        least, most = entry.min or 0, INFINITY if entry.max is None else entry.max
        if not least <= size <= most:
            raise ConstraintViolationError(f"{size} not in range [{least}, {most}]")
        if size < 2:
            raise UserError(f"{source} is {size} in the example; a size that is to be open ({name}) must be at least 2 there")
        value = self.environment.create_symbol(
            size, source, share=False, least=max(2, least), most=None if most == INFINITY else most
        )
        self._symbols[name] = _Symbol(value, entry, source)
        return value

    # After the trace

    def settle(self) -> tuple[dict[Expr, ValueRanges], list[Relation]]:
        """Return the range of each open size, and the remaining relations. UserError: the program needs tighter constraints
        than the user specified."""
        ranges = {
            symbol.value.expr: ValueRanges(_least(symbol.entry), symbol.entry.max or INFINITY)
            for symbol in self._symbols.values() if type(symbol.value.expr) is Var
        }  # fmt: skip
        problems, fixes = self._find_specialized_symbols()
        guards = []
        for relation, _ in list(self.environment.relations()):
            if relation.kind == EQUAL and relation.expression.free_variables() & set(self.environment.replacements):
                continue
            bounded = _bound(relation)
            if bounded is None:
                guards.append(relation)
            elif bounded[0] in ranges:
                ranges[bounded[0]] = self._narrow_range(ranges[bounded[0]], bounded, relation, problems, fixes)
        if problems:
            raise _violation(problems, fixes)
        for size in self._sizes:
            if type(size.expr) not in (Var, Const):
                ranges[size.expr] = _range_of(size.expr, ranges)
        return ranges, guards

    def names(self) -> dict[str, str]:
        """Return the user's names of the symbols."""
        named = (symbol for symbol in self._symbols.values() if isinstance(symbol.entry, Dim))
        return {str(symbol.value.expr): symbol.name for symbol in named}

    def _find_specialized_symbols(self) -> tuple[dict[str, str], list[str]]:
        """Find symbols that the program fixed, or equated with others although the user gave them separate names."""
        problems, fixes = {}, []
        for symbol in self._symbols.values():
            name, found = symbol.name, symbol.value.expr
            if type(found) is Const and not _is_auto(symbol.entry):
                problems[name] = (
                    f"{name} was said to be open, but the program fixes it to {found.value}. Use Dim.STATIC or Dim.AUTO, or "
                    "change the program."
                )
                fixes.append(f"{name} = {found.value}")
            elif isinstance(symbol.entry, Dim) and found is not self._own(symbol):
                other = next((each for each in self._symbols.values() if each.value.expr is found and each is not symbol), None)
                equal = other.name if other else str(found)
                problems[name] = f"The values of {name} = {symbol.source} and {equal} must always be equal."
                fixes.append(f"{name} = {equal}")
        return problems, fixes

    def _own(self, symbol: _Symbol) -> Var:
        return next(made.symbol for made in self.environment.bindings if made.source == symbol.source)

    def _narrow_range(self, known: ValueRanges, bounded: tuple, relation: Relation, problems: dict, fixes: list) -> ValueRanges:
        variable, least, most = bounded
        narrowed = ValueRanges(max(known.lower, least), min(known.upper, most))
        symbol = next(each for each in self._symbols.values() if each.value.expr is variable)
        if narrowed != known and isinstance(symbol.entry, Dim):
            problems[symbol.name] = (
                f"Not all values of {symbol.name} = {symbol.source} in the specified range satisfy the generated guard "
                f"{relation}"
            )
            upper = "" if narrowed.upper == INFINITY else f", max={narrowed.upper}"
            fixes.append(f"{symbol.name} = Dim('{symbol.name}', min={narrowed.lower}{upper})")
        return narrowed


def _least(entry: Dim | DimHint) -> int:
    return entry.min or (0 if isinstance(entry, Dim) else 2)


def _is_auto(entry: Dim | DimHint) -> bool:
    return isinstance(entry, DimHint) and entry.type is Dim.AUTO.type


def _violation(problems: dict[str, str], fixes: list[str]) -> UserError:
    text = "".join(f"\n  - {problem}" for problem in problems.values())
    suggested = "".join(f"\n  {fix}" for fix in fixes)
    return UserError(f"Constraints violated ({', '.join(problems)})!{text}\n\nSuggested fixes:{suggested}")


def _bound(relation: Relation) -> tuple[Var, float, float] | None:
    """Return the variable that a relation bounds, and its bounds; None for other relations."""
    terms, constant = linear_form(relation.expression)
    if relation.kind != NOT_NEGATIVE or len(terms) != 1 or type(terms[0][0]) is not Var:
        return None
    variable, scale = terms[0]
    if scale > 0:
        return variable, -(constant // scale), INFINITY
    return variable, 0, constant // -scale


def _range_of(expression: Expr, ranges: dict[Expr, ValueRanges]) -> ValueRanges:
    """Return the range of an expression that increases with its symbols."""
    ends = []
    for end in ("lower", "upper"):
        values = {variable: getattr(ranges[variable], end) for variable in expression.free_variables()}
        ends.append(INFINITY if INFINITY in values.values() else expression.evaluate(values))
    return ValueRanges(*ends)


