"""The static analysis of a program's values, and their representation in C++.

In: values that flow together, such as the results of two branches. Out: `Kind`s, the abstract values. Tensors have a known
dtype and rank, and sizes that are numbers or expressions of symbols; every int is such an expression, too. One `Cell` describes
the contents of all lists that may be the same list.
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
_EXAMPLE_INT = 3  # the example value of an int that is known only at run time


@dataclass(frozen=True)
class Shape:
    """The static shape of a tensor."""

    dtype: dtype
    sizes: tuple[Size, ...]


@dataclass(eq=False)
class Cell:
    """The common kind of all items of a list, of a dict's values, or of an attribute in all objects of a class. If two cells
    turn out to describe the same list, they are unified: one of them is then the representative, to which `merged` of the other
    leads."""

    kind: Kind | None = None
    merged: Cell | None = None

    def root(self) -> Cell:
        """Return the representative of the unified cells."""
        return self if self.merged is None else self.merged.root()


@dataclass(frozen=True)
class Kind:
    """The abstract value of a program value. It has a field for each alternative: a tensor of a shape, a list or dict with
    items, a tuple of parts, an int with an expression. A field that is None excludes that alternative."""

    shape: Shape | None = None
    items: Cell | None = None
    parts: tuple[Kind, ...] | None = None
    size: Size | None = None


PLAIN = Kind()


@dataclass(eq=False)
class Operand:
    """A value in use. `text` is a C++ variable or expression; `value` is set if the value is known at export; `list` holds the
    operands of a list or tuple of known length that nothing else can change; `path` is the path of an object in the module."""

    type: types.Type
    kind: Kind = PLAIN
    text: str | None = None
    value: object = MISSING
    list: Sequence[Operand] | None = None
    path: tuple[str, ...] | None = None

    @property
    def is_known(self) -> bool:
        """Whether the value is known at export."""
        return self.value is not MISSING


@dataclass
class Plan:
    """The results of earlier rounds of the analysis, and whether the current round adds to them."""

    cells: dict[Hashable, Cell] = field(default_factory=dict)
    kinds: dict[Hashable, Kind] = field(default_factory=dict)
    symbols: dict[Hashable, Var] = field(default_factory=dict)
    hints: dict[Var, int] = field(default_factory=dict)
    small: dict[Var, set[int]] = field(default_factory=dict)
    open: set[Value] = field(default_factory=set)
    grew: bool = False

    # Sizes

    def symbol(self, key: Hashable, hint: int | None, small: Sequence[int] = ()) -> Var:
        """Return the symbol of a size that arises at the place `key`. Hints are at least 2, because 0 and 1 are special;
        `small` lists which of 0 and 1 may occur."""
        found = self.symbols.get(key)
        if found is None:
            found = self.symbols[key] = Var(f"d{len(self.symbols)}", None, None)
            self.hints[found] = max(_EXAMPLE_INT if hint is None else hint, 2)
            self.small[found] = set()
            self.grew = True
        if not self.small[found].issuperset(small):
            self.small[found].update(small)
            self.grew = True
        return found

    def hint(self, size: Size) -> int:
        """Return the value of a size in the example."""
        return size if isinstance(size, int) else size.evaluate(self.hints)

    def may_be(self, size: Size) -> set[int]:
        """Return the subset of {0, 1} that a size may equal."""
        if isinstance(size, int):
            return {size} & {0, 1}
        return set(self.small.get(size, ()))

    # Joins

    def cell(self, key: Hashable) -> Cell:
        """Return the cell of a container created at a place."""
        return self.cells.setdefault(key, Cell()).root()

    def put(self, cell: Cell, kind: Kind, key: Hashable) -> None:
        """Add a possible value to a cell."""
        cell = cell.root()
        joined = kind if cell.kind is None else self.join(cell.kind, kind, ("cell", id(cell)))
        if joined != cell.kind:
            cell.kind = joined
            self.grew = True

    def unify(self, one: Cell, other: Cell) -> Cell:
        """Merge two cells, because their lists may be the same."""
        one, other = one.root(), other.root()
        if one is other:
            return one
        other.merged = one
        self.grew = True
        if other.kind is not None:
            self.put(one, other.kind, None)
        return one

    def join(self, old: Kind, new: Kind, key: Hashable) -> Kind:
        """Return the join of two kinds. `key` names the place where they meet."""
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
        """Add a possible value to a place; return the join of all values that may be there."""
        before = self.kinds.get(key)
        joined = kind if before is None else self.join(before, kind, key)
        if joined != before:
            self.kinds[key] = joined
            self.grew = True
        return joined


def plain_size(size: Size) -> Size:
    """Return a constant size as an int."""
    return size.value if isinstance(size, Const) else size


def size_of(expression: Expr | int) -> Size:
    """Return the size that an expression evaluates to, as an int if it is constant."""
    return expression if isinstance(expression, int) else plain_size(expression)


def kind_of_type(kind: types.Type, plan: Plan, key: Hashable) -> Kind:
    """Return the kind of a value of a type without tensors, or with items that are not known yet."""
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
        return Kind(parts=tuple(kind_of_type(each, plan, (key, position)) for position, each in enumerate(kind.elements)))
    return PLAIN


def holds_tensors(kind: types.Type) -> bool:
    """Return whether values of a type may contain tensors."""
    if isinstance(kind, types.TensorType) or kind is types.ANY:
        return True
    return (
        any(map(holds_tensors, kind.contained()))
        if kind.contained()
        else isinstance(kind, types.ClassType | types.InterfaceType)
    )


def representation(kind: types.Type) -> str:
    """Return the C++ type of a value."""
    return {types.INT: "int64_t", types.FLOAT: "double", types.BOOL: "bool"}.get(kind, "any")


def unboxed(text: str, kind: types.Type) -> str:
    """Return an `any` converted to the C++ number of a type; unchanged for other types."""
    forms = {"int64_t": f"({text}).as.integer", "double": f"real_in({text})", "bool": f"(({text}).as.integer != 0)"}
    return forms.get(representation(kind), text)


def line_of(node: Node) -> str:
    """Return the user's source line of a node: `file.py:3`."""
    location = node.source_range.file_line_column() if node.source_range is not None else None
    return "" if location is None else f"{location[0].rpartition('/')[2]}:{location[1]}"


def with_size(kind: Kind, size: Size) -> Kind:
    """Return a kind whose int is known."""
    return replace(kind, size=size)
