"""What is known of the values of a program before it runs, and how C++ spells them.

In: values that flow together, such as the results of two branches. Out: `Kind`s. Tensors have a known dtype and rank, and
sizes that are numbers or expressions of symbols; every int is such an expression, too. What a list holds is one `Cell` for all
places that may hold the same list.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field, replace

from rushlight.compiler.scripted.regions import Unsupported
from rushlight.core.algebra import Const, Expr, Var
from rushlight.core.dtype import dtype
from rushlight.inductor.sizes import Size
from rushlight.jit.ir.graph import Node, Value
from rushlight.jit.types import kinds as types

MISSING = object()
_GUESS = 3  # the example of an int that only a run knows


@dataclass(frozen=True)
class Shape:
    """What is known of a tensor."""

    dtype: dtype
    sizes: tuple[Size, ...]


@dataclass(eq=False)
class Cell:
    """What all the items of a list, the values of a dict, or an attribute of all objects of a class may be. Cells that turn
    out to be of one list become one: `merged` leads to it."""

    kind: Kind | None = None
    merged: Cell | None = None

    def root(self) -> Cell:
        """The cell that it has become."""
        return self if self.merged is None else self.merged.root()


@dataclass(frozen=True)
class Kind:
    """What a value may be, part by part: a tensor of a shape, a list or dict with items, a tuple of parts, an int that an
    expression says. A part that is None is none that it may be."""

    shape: Shape | None = None
    items: Cell | None = None
    parts: tuple[Kind, ...] | None = None
    size: Size | None = None


PLAIN = Kind()


@dataclass(eq=False)
class Operand:
    """A value where it is used. `text` is a C++ variable or expression; `value` is known now; `list` are the operands of a
    list or tuple of known length, of which no other place may change the items; `owner` is the path of an object of the
    module."""

    type: types.Type
    kind: Kind = PLAIN
    text: str | None = None
    value: object = MISSING
    list: Sequence[Operand] | None = None
    path: tuple[str, ...] | None = None

    @property
    def is_known(self) -> bool:
        """Whether the value itself is known now."""
        return self.value is not MISSING


@dataclass
class Plan:
    """What earlier rounds of the analysis have found, and whether this one finds more."""

    cells: dict[Hashable, Cell] = field(default_factory=dict)
    kinds: dict[Hashable, Kind] = field(default_factory=dict)
    symbols: dict[Hashable, Var] = field(default_factory=dict)
    hints: dict[Var, int] = field(default_factory=dict)
    small: dict[Var, set[int]] = field(default_factory=dict)
    open: set[Value] = field(default_factory=set)
    grew: bool = False

    # Sizes

    def symbol(self, key: Hashable, hint: int | None, small: Sequence[int] = ()) -> Var:
        """The symbol for what is found at a place. Hints are 2 and more: 0 and 1 are sizes of their own, `small` those
        that it may have."""
        found = self.symbols.get(key)
        if found is None:
            found = self.symbols[key] = Var(f"d{len(self.symbols)}", None, None)
            self.hints[found] = max(_GUESS if hint is None else hint, 2)
            self.small[found] = set()
            self.grew = True
        if not self.small[found].issuperset(small):
            self.small[found].update(small)
            self.grew = True
        return found

    def hint(self, size: Size) -> int:
        """What a size is in the example."""
        return size if isinstance(size, int) else size.evaluate(self.hints)

    def may_be(self, size: Size) -> set[int]:
        """Which of 0 and 1 a size may be."""
        if isinstance(size, int):
            return {size} & {0, 1}
        return set(self.small.get(size, ()))

    # Joins

    def cell(self, key: Hashable) -> Cell:
        """The cell for what is made at a place."""
        return self.cells.setdefault(key, Cell()).root()

    def put(self, cell: Cell, kind: Kind, key: Hashable) -> None:
        """Note that a value may be in a cell."""
        cell = cell.root()
        joined = kind if cell.kind is None else self.join(cell.kind, kind, ("cell", id(cell)))
        if joined != cell.kind:
            cell.kind = joined
            self.grew = True

    def unify(self, one: Cell, other: Cell) -> Cell:
        """Two cells of what may be one list."""
        one, other = one.root(), other.root()
        if one is other:
            return one
        other.merged = one
        self.grew = True
        if other.kind is not None:
            self.put(one, other.kind, None)
        return one

    def join(self, old: Kind, new: Kind, key: Hashable) -> Kind:
        """What may be either. `key` names the place where they meet."""
        if old == new:
            return old
        shape = old.shape or new.shape
        if old.shape is not None and new.shape is not None:
            shape = self._join_shapes(old.shape, new.shape, key)
        items = old.items or new.items
        if old.items is not None and new.items is not None:
            items = self.unify(old.items, new.items)
        parts = old.parts if old.parts is not None else new.parts
        if old.parts is not None and new.parts is not None:
            if len(old.parts) != len(new.parts):
                raise Unsupported("tuples of several lengths in one place")
            parts = tuple(self.join(*each, (key, place)) for place, each in enumerate(zip(old.parts, new.parts, strict=True)))
        size = old.size if old.size is not None else new.size
        if old.size is not None and new.size is not None:
            size = self._join_sizes(old.size, new.size, (key, "size"))
        return Kind(shape, items, parts, size)

    def _join_shapes(self, old: Shape, new: Shape, key: Hashable) -> Shape:
        if old.dtype is not new.dtype or len(old.sizes) != len(new.sizes):
            raise Unsupported(
                f"tensors of several dtypes or ranks in one place: {old.dtype} of {len(old.sizes)} dimensions, and "
                f"{new.dtype} of {len(new.sizes)}"
            )
        pairs = zip(old.sizes, new.sizes, strict=True)
        return Shape(old.dtype, tuple(self._join_sizes(*pair, (key, dim)) for dim, pair in enumerate(pairs)))

    def _join_sizes(self, old: Size, new: Size, key: Hashable) -> Size:
        if old == new:
            return old
        return self.symbol(key, self.hint(new), [*self.may_be(old), *self.may_be(new)])

    def note(self, key: Hashable, kind: Kind) -> Kind:
        """Note that a value may be at a place; what may be there in all."""
        before = self.kinds.get(key)
        joined = kind if before is None else self.join(before, kind, key)
        if joined != before:
            self.kinds[key] = joined
            self.grew = True
        return joined


def plain_size(size: Size) -> Size:
    """A size that is a constant as an int."""
    return size.value if isinstance(size, Const) else size


def size_of(expression: Expr | int) -> Size:
    """The same for what an expression came to."""
    return expression if isinstance(expression, int) else plain_size(expression)


def kind_of_type(kind: types.Type, plan: Plan, key: Hashable) -> Kind:
    """What is known of a value of a type that holds no tensors, or of items that are not known yet."""
    if isinstance(kind, types.OptionalType):
        return kind_of_type(kind.element, plan, key)
    if kind in (types.INT, types.NUMBER):
        return Kind(size=plan.symbol((key, "int"), None, (0, 1)))
    if isinstance(kind, types.ListType | types.DictType):
        cell = plan.cell((key, "items"))
        inner = kind.element if isinstance(kind, types.ListType) else kind.value
        if cell.kind is None and not holds_tensors(inner):
            plan.put(cell, kind_of_type(inner, plan, (key, "item")), key)
        return Kind(items=cell)
    if isinstance(kind, types.TupleType):
        return Kind(parts=tuple(kind_of_type(each, plan, (key, place)) for place, each in enumerate(kind.elements)))
    return PLAIN


def holds_tensors(kind: types.Type) -> bool:
    """Whether there may be tensors in a value of a type."""
    if isinstance(kind, types.TensorType) or kind is types.ANY:
        return True
    return (
        any(map(holds_tensors, kind.contained()))
        if kind.contained()
        else isinstance(kind, types.ClassType | types.InterfaceType)
    )


def representation(kind: types.Type) -> str:
    """The C++ type of a value."""
    return {types.INT: "int64_t", types.FLOAT: "double", types.BOOL: "bool"}.get(kind, "any")


def unboxed(text: str, kind: types.Type) -> str:
    """An `any` as the number of C++ that a value of a type is; as it is for other types."""
    forms = {"int64_t": f"({text}).as.integer", "double": f"real_in({text})", "bool": f"(({text}).as.integer != 0)"}
    return forms.get(representation(kind), text)


def line_of(node: Node) -> str:
    """Where the user wrote what a node stands for: `file.py:3`."""
    place = node.source_range.file_line_column() if node.source_range is not None else None
    return "" if place is None else f"{place[0].rpartition('/')[2]}:{place[1]}"


def with_size(kind: Kind, size: Size) -> Kind:
    """A kind of which the int is known."""
    return replace(kind, size=size)
