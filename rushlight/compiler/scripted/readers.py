"""How a call finds a value: among its arguments, in objects that are always the same, or by a computation on such values.


Readers are data, so that they can be sent to another process: `to_data` returns nested tuples of plain values.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from rushlight.core.dtype import bool_, float64, int64
from rushlight.jit.operators.registry import Operator, operators_named
from rushlight.ops.packet import find_packet

Arguments = Sequence[object]
Path = tuple[int | str, ...]
"""The index of an argument, followed by attribute names."""
FAILURES = (RuntimeError, ArithmeticError, ValueError, TypeError, LookupError, AttributeError)
"""What readers may raise: errors of operators on numbers, such as a division by 0, and lookups of elements that are gone."""
DTYPES = {bool: bool_, int: int64, float: float64}


class CannotTell(ValueError):
    """The value would not be understood by another process."""


class Reader:
    """Base of readers: a reader is called with a call's arguments and returns a value."""

    __slots__ = ()

    def __call__(self, given: Arguments) -> object:
        """Return the value."""
        raise NotImplementedError

    def to_data(self) -> tuple:
        """Return nested tuples from which `from_data` makes the reader again. CannotTell if there are none."""
        raise NotImplementedError


@dataclass(frozen=True, eq=False, slots=True)
class Argument(Reader):
    """An argument."""

    index: int

    def __call__(self, given: Arguments) -> object:
        return given[self.index]

    def to_data(self) -> tuple:
        """Return the argument's index."""
        return "argument", self.index


@dataclass(frozen=True, eq=False, slots=True)
class Held(Reader):
    """Reads an object that is always the same; `path` is where to find it in another process."""

    value: object
    path: Path

    def __call__(self, given: Arguments) -> object:
        return self.value

    def to_data(self) -> tuple:
        """Return the path."""
        return "held", self.path


@dataclass(frozen=True, eq=False, slots=True)
class Slot(Reader):
    """An attribute of an object."""

    owner: Reader
    name: str

    def __call__(self, given: Arguments) -> object:
        return self.owner(given).slots[self.name]

    def to_data(self) -> tuple:
        """Return the owner and the name."""
        return "slot", self.owner.to_data(), self.name


@dataclass(frozen=True, eq=False, slots=True)
class Item(Reader):
    """An element of a container."""

    owner: Reader
    key: object

    def __call__(self, given: Arguments) -> object:
        return self.owner(given)[self.key]

    def to_data(self) -> tuple:
        """Return the container and the key."""
        return "item", self.owner.to_data(), plain(self.key)


@dataclass(frozen=True, eq=False, slots=True)
class Known(Reader):
    """A value."""

    value: object

    def __call__(self, given: Arguments) -> object:
        return self.value

    def to_data(self) -> tuple:
        """Return the value."""
        return "known", plain(self.value)


@dataclass(frozen=True, eq=False, slots=True)
class Applied(Reader):
    """The result of an operator on numbers."""

    operator: Operator
    arguments: tuple[Reader, ...]

    def __call__(self, given: Arguments) -> object:
        return self.operator.function(*[read(given) for read in self.arguments])

    def to_data(self) -> tuple:
        """Return the operator's name and overload, and its arguments."""
        schema = self.operator.schema
        return "applied", schema.name, schema.overload, tuple(each.to_data() for each in self.arguments)


@dataclass(frozen=True, eq=False, slots=True)
class AsTensor(Reader):
    """A number as a 0-dim tensor."""

    number: Reader
    type: type

    def __call__(self, given: Arguments) -> object:
        return find_packet("aten::scalar_tensor")(self.number(given), dtype=DTYPES[self.type])

    def to_data(self) -> tuple:
        """Return the number, and the name of its type."""
        return "tensor", self.number.to_data(), self.type.__name__


def plain(value: object) -> object:
    """Return a value of a plain type. CannotTell for other types."""
    if isinstance(value, bool | int | float | str | type(None)):
        return value
    raise CannotTell(type(value).__name__)


def from_data(data: tuple, find: Callable[[Path], object]) -> Reader:
    """Make a reader from the data of `to_data`; `find` returns the object at a path. LookupError, TypeError or ValueError for
    any

    other data.
    """
    kind, *parts = data
    if kind == "argument":
        return Argument(int(parts[0]))
    if kind == "held":
        return Held(find(parts[0]), parts[0])
    if kind == "known":
        return Known(plain(parts[0]))
    if kind == "slot":
        return Slot(from_data(parts[0], find), str(parts[1]))
    if kind == "item":
        return Item(from_data(parts[0], find), plain(parts[1]))
    if kind == "tensor":
        return AsTensor(from_data(parts[0], find), {each.__name__: each for each in DTYPES}[parts[1]])
    if kind == "applied":
        operator = next(each for each in operators_named(parts[0]) if each.schema.overload == parts[1] and each.is_pure)
        return Applied(operator, tuple(from_data(each, find) for each in parts[2]))
    raise LookupError(f"no reader is called {kind!r}")
