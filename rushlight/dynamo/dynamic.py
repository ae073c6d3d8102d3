"""Dynamic shapes: decide which sizes and integers a capture leaves open, from users' marks and from changes between captures.

In: tensors and integers that a frame reaches, with their sources. Out: symbols for the open ones. Stage: capture.
`dynamic=None` opens what changed since an earlier capture of the same function, `True` opens everything but parameters, `False`
opens nothing. Sizes 0 and 1 are always fixed.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from rushlight.core.algebra import Expr, Var, as_expr
from rushlight.core.symbolic import ConstraintViolationError, ShapeEnv, SymInt
from rushlight.core.symbolic.relations import Relation, at_least, below, equal
from rushlight.core.tensor import Tensor
from rushlight.dynamo.sources import Held, Local, Source
from rushlight.fx.symbolic_sizes import Geometry, symbolic_strides
from rushlight.nn.parameter import Buffer, Parameter


class SymbolicFailure(Exception):
    """Open sizes do not work here; the capture restarts with all sizes fixed."""


# mark_dynamic and the like store their marks in these attributes of a tensor, as PyTorch does.
DYNAMIC, MAYBE, STATIC, LIMITS = (
    "_dynamo_dynamic_indices", "_dynamo_weak_dynamic_indices", "_dynamo_static_indices", "_dynamo_dynamic_range",
)  # fmt: skip


def _dims_of(tensor: Tensor, index: int | Sequence[int], name: str) -> list[int]:
    dims = [index] if isinstance(index, int) else list(index)
    for dim in dims:
        if not 0 <= dim < tensor.dim():
            raise IndexError(f"{name} got dimension {dim} of a tensor with {tensor.dim()} dimensions")
    return dims


def _mark(tensor: Tensor, attribute: str, dims: list[int]) -> None:
    if not hasattr(tensor, attribute):
        setattr(tensor, attribute, set())
    getattr(tensor, attribute).update(dims)


def mark_dynamic(t: Tensor, index: int | Sequence[int], *, min: int | None = None, max: int | None = None) -> None:
    """Mark dimensions whose sizes vary within `min` and `max`: the first capture already leaves them open.

    Raises ConstraintViolationError for a capture that specializes such a size or narrows its range, IndexError for a negative
    or missing dimension.
    """
    dims = _dims_of(t, index, "mark_dynamic")
    _mark(t, DYNAMIC, dims)
    if min is not None or max is not None:
        setattr(t, LIMITS, getattr(t, LIMITS, {}) | dict.fromkeys(dims, (min, max)))


def maybe_mark_dynamic(t: Tensor, index: int | Sequence[int]) -> None:
    """Mark dimensions like `mark_dynamic`, but let a capture fix the size without an error."""
    _mark(t, MAYBE, _dims_of(t, index, "maybe_mark_dynamic"))


def mark_static(t: Tensor, index: int | Sequence[int] | None = None) -> None:
    """Mark dimensions (by default all) whose sizes every capture fixes."""
    _mark(t, STATIC, list(range(t.dim())) if index is None else _dims_of(t, index, "mark_static"))


class _Seen:
    """The latest geometry met at one source, and the dimensions whose size or stride has changed."""

    def __init__(
        self, sizes: tuple[int, ...], strides: tuple[int, ...], open_sizes: frozenset[int] = frozenset(),
        open_strides: frozenset[int] = frozenset(),
    ) -> None:  # fmt: skip
        self.sizes = sizes
        self.strides = strides
        self.open_sizes = open_sizes
        self.open_strides = open_strides


# A number that changed this often between captures is expected to change with every call.
_MIN_CHANGES = 2


class History:
    """Sizes, strides and numbers that the captures of one function met, by source."""

    def __init__(self) -> None:
        self.tensors: dict[str, _Seen] = {}
        self.integers: dict[str, tuple[int, bool]] = {}
        self.numbers: dict[str, tuple[float, int]] = {}
        self.is_unsteady = False  # some number keeps changing, but each capture is specialized to one value of it

    def repeat(self, tensors: tuple, integers: tuple, numbers: tuple) -> None:
        """Restore the history of a first capture that another process made."""
        self.tensors = {place: _Seen(sizes, strides) for place, sizes, strides in tensors}
        self.integers = {place: (value, False) for place, value in integers}
        self.numbers = {place: (value, 0) for place, value in numbers}

    def number(self, place: str, value: float) -> None:
        """Record an int or float."""
        before, changes = self.numbers.get(place, (value, 0))
        changes += before != value
        self.numbers[place] = value, changes
        self.is_unsteady |= changes >= _MIN_CHANGES

    def changes(self, place: str) -> int:
        """Return how often a number differed from the previous capture."""
        return self.numbers[place][1]

    def tensor(self, place: str, tensor: Tensor) -> _Seen:
        """Record a tensor, and return its geometry with the changed dimensions."""
        sizes, strides = tensor._impl.sizes, tensor._impl.strides
        seen = self.tensors.get(place)
        if seen is None or len(seen.sizes) != len(sizes):
            made = _Seen(sizes, strides)
        else:
            open_strides = seen.open_strides | _differing(seen.strides, strides)
            made = _Seen(sizes, strides, seen.open_sizes | _differing(seen.sizes, sizes), open_strides)
        self.tensors[place] = made
        return made

    def integer(self, place: str, value: int) -> bool:
        """Record an integer, and return whether it has changed."""
        before, changes = self.integers.get(place, (value, False))
        self.integers[place] = value, changes or before != value
        return self.integers[place][1]


def _differing(before: tuple[int, ...], now: tuple[int, ...]) -> frozenset[int]:
    return frozenset(dim for dim, (one, other) in enumerate(zip(before, now, strict=True)) if one != other)


class SizeOf(Source):
    """A size or stride of the tensor at a source: `reader` is "size" or "stride"."""

    __slots__ = ("reader",)

    def __init__(self, base: Source, reader: str, dim: int) -> None:
        super().__init__(base, dim, f"{base.text}.{reader}({dim})")
        self.reader = reader


class OpenSizes:
    """The symbols of one capture's open sizes, and the strides derived from them."""

    def __init__(self, dynamic: bool | None, history: History) -> None:
        self.dynamic = dynamic
        self.history = history
        self.environment = ShapeEnv()
        self.derived: list[tuple[SizeOf, SymInt]] = []
        self.modules: set[Source] = set()  # sources of the nn.Modules that the capture met
        self._required: list[tuple[SizeOf, Var, tuple[int | None, int | None]]] = []
        self._integers: dict[str, SymInt | int] = {}

    @property
    def any(self) -> bool:
        """Return whether anything is open."""
        return bool(self.environment.bindings)

    def geometry(self, tensor: Tensor, source: Source) -> Geometry | None:
        """Return sizes and strides for the fake tensor of an input; None if all are fixed."""
        if self.dynamic is False or isinstance(tensor, Parameter | Buffer):
            return None
        seen = self.history.tensor(source.text, tensor)
        impl, bound_before = tensor._impl, len(self.environment.bindings)
        sizes = tuple([self._size(tensor, source, dim, seen) for dim in range(len(impl.sizes))])
        strides = symbolic_strides(impl, sizes, lambda dim, stride: self._stride(source, dim, stride, seen))
        if not any(type(value) is SymInt for value in sizes + strides):
            return None
        bound = {binding.source for binding in self.environment.bindings[bound_before:]}
        for reader, values in (("size", sizes), ("stride", strides)):
            for dim, value in enumerate(values):
                place = SizeOf(source, reader, dim)
                if type(value) is SymInt and place not in bound:
                    self.derived.append((place, value))
        return sizes, strides

    def _size(self, tensor: Tensor, source: Source, dim: int, seen: _Seen) -> SymInt | int:
        size, place = tensor._impl.sizes[dim], SizeOf(source, "size", dim)
        required = dim in getattr(tensor, DYNAMIC, ())
        wished = self.dynamic is True or dim in getattr(tensor, MAYBE, ()) or dim in seen.open_sizes
        if not required and (dim in getattr(tensor, STATIC, ()) or not wished):
            return size
        least, most = getattr(tensor, LIMITS, {}).get(dim, (None, None))
        if required and size in (0, 1):
            raise ConstraintViolationError(
                f"{place} was marked dynamic, but it is {size}, and captures treat the sizes 0 and 1 apart. Call with 2 or "
                "more first, or do not mark it."
            )
        if required and not (least or 2) <= size <= (size if most is None else most):
            raise ConstraintViolationError(f"{place} was marked dynamic with min={least} and max={most}, but it is {size}")
        made = self.environment.create_symbol(size, place, self.dynamic is True and not required, max(least or 2, 2), most)
        if required:
            self._required.append((place, made.expr, (least, most)))
        return made

    def _stride(self, source: Source, dim: int, stride: int, seen: _Seen) -> SymInt | int:
        if dim not in seen.open_strides:
            return stride
        return self.environment.create_symbol(stride, SizeOf(source, "stride", dim), share=False)

    def integer(self, value: int, source: Source) -> SymInt | int:
        """Return a symbol for an int that is open, else the int. An int held by a module is a setting and opens only after it
        changed."""
        if self.dynamic is False:
            return value
        found = self._integers.get(source.text)
        if found is None:
            is_open = self.history.integer(source.text, value) or (self.dynamic is True and not self._is_setting(source))
            made = self.environment.create_symbol(value, source, share=False, least=None) if is_open else value
            found = self._integers[source.text] = made
        return found

    def _is_setting(self, source: Source) -> bool:
        """Return whether a value belongs to a module or to another object that compiled code holds."""
        while source.base is not None and source not in self.modules:
            source = source.base
        return isinstance(source, Held) or source in self.modules

    def opens_float(self, source: Source) -> bool:
        """Return whether a recorded float is left open. A parameter opens at its second value. Attributes open later, because
        they mostly are settings that differ between objects."""
        least = 1 if isinstance(source, Local) else _MIN_CHANGES
        return self.dynamic is not False and self.history.changes(source.text) >= least

    def places(self) -> dict[Var, Source]:
        """Return symbol -> the source its value is read from."""
        found: dict[Var, Source] = {}
        for binding in self.environment.bindings:
            found.setdefault(binding.symbol, binding.source)
        return found

    def check_required(self) -> None:
        """Raise ConstraintViolationError if a size marked as dynamic was fixed or its range narrowed."""
        for place, symbol, limits in self._required:
            fixed = self.environment.simplify(symbol)
            if not fixed.free_variables():
                reasons = "".join(f"\n{guard.location}" for guard in self.environment.guards if guard.location)
                raise ConstraintViolationError(
                    f"Constraints violated ({place})! {place} was marked dynamic, but the capture holds for {fixed} only: the "
                    f"program, or what compiled it, needs its value. Use maybe_mark_dynamic or mark_static instead, or change "
                    f"the program:{reasons}"
                )
            self._check_limits(place, symbol, limits)

    def _check_limits(self, place: SizeOf, symbol: Var, limits: tuple[int | None, int | None]) -> None:
        for guard in self.environment.relations():
            if limits != (None, None) and guard.relation.expression.free_variables() == {symbol}:
                raise ConstraintViolationError(
                    f"Constraints violated ({place})! {place} was marked dynamic with min={limits[0]} and max={limits[1]}, but "
                    f"the capture holds only where {guard.relation}, with {symbol} = {place}:\n{guard.location}"
                )


def all_fixed() -> OpenSizes:
    """Open nothing."""
    return OpenSizes(False, History())


class Assumption(NamedTuple):
    """A relation that must hold of open sizes. `places` gives the source of each variable, `source` the value to show on
    failure, `location` the line that needed it. The relation's text is an expression over the frame's values."""

    relation: Relation
    source: Source
    places: dict[Var, Source]
    location: str = ""


def assumptions(sizes: OpenSizes) -> Iterator[Assumption]:
    """Yield all assumptions of a capture about its open sizes."""
    places = sizes.places()
    at = {symbol: Var(source.text, None, symbol.least) for symbol, source in places.items()}
    reached = {at[symbol]: source for symbol, source in places.items()}
    for symbol, source in places.items():
        if symbol.least is not None:
            yield Assumption(at_least(at[symbol], as_expr(symbol.least)), source, reached)
        if symbol.extent is not None:
            yield Assumption(below(at[symbol], as_expr(symbol.extent)), source, reached)
    for binding in sizes.environment.bindings:
        if binding.source != places[binding.symbol]:
            yield _assume_equality(binding.source, at[binding.symbol], reached)
    for place, number in sizes.derived:
        yield _assume_equality(place, number.expr.substitute(at), reached)
    for guard in sizes.environment.relations():
        first = min(guard.relation.expression.free_variables())
        yield Assumption(guard.relation.substitute(at), places[first], reached, guard.location)


def _assume_equality(source: Source, expression: Expr, reached: dict[Var, Source]) -> Assumption:
    """Return the assumption that the value at `source` equals an expression."""
    place = Var(source.text, None, None)
    return Assumption(equal(place, expression), source, reached | {place: source})
