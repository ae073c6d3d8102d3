"""`range`, `enumerate`, `zip` and `reversed`: iterables that exist only at compile time. Stage: jit, emission."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from rushlight.jit.emit.sugared import SimpleValue, SugaredValue, TupleOfSugared
from rushlight.jit.ir.graph import Value
from rushlight.jit.source import SourceRange
from rushlight.jit.types.kinds import INT, ListType, Type

if TYPE_CHECKING:
    from rushlight.jit.emit.emitter import Emitter


@dataclass
class RangeValue(SugaredValue):
    """`range(stop)` or `range(start, stop, step)`."""

    start: Value | None
    stop: Value
    step: Value | None

    def kind(self) -> str:
        return "range"

    def length(self, where: SourceRange, emitter: Emitter) -> Value:
        if self.start is None:
            return self.stop
        return emitter.insert("aten::__range_length", [self.start, self.stop, self.step], INT, where)

    def item(self, where: SourceRange, emitter: Emitter, index: Value, kind: Type | None = None) -> SugaredValue:
        if self.start is None:
            return SimpleValue(index)
        return SimpleValue(emitter.insert("aten::__derive_index", [index, self.start, self.step], INT, where))

    def as_value(self, where: SourceRange, emitter: Emitter) -> Value:
        """Return a list of the numbers."""
        node = emitter.graph.insert("prim::ListConstruct")
        node.source_range = where
        listed = node.output.set_type(ListType(INT))
        loop = emitter.graph.insert("prim::Loop", [self.length(where, emitter)], 0)
        loop.move_after(loop.previous)
        position = loop.add_block().add_input(kind=INT)
        with emitter.graph.inserting(at_end_of=loop.blocks[0]):
            item = self.item(where, emitter, position).as_value(where, emitter)
            emitter.insert("aten::append", [listed, item], ListType(INT), where)
        return listed


@dataclass
class ZipValue(SugaredValue):
    """`zip(...)`, as long as the shortest iterable."""

    parts: list[SugaredValue]

    def kind(self) -> str:
        return "zip"

    def static_elements(self, where: SourceRange, emitter: Emitter) -> list[SugaredValue] | None:
        found = [part.static_elements(where, emitter) for part in self.parts]
        fixed = [each for each in found if each is not None]
        if not fixed:
            return None
        count = min(map(len, fixed))
        columns = [
            each if each is not None else [part.item(where, emitter, emitter.constant(index, where)) for index in range(count)]
            for each, part in zip(found, self.parts, strict=True)
        ]
        return [TupleOfSugared([column[index] for column in columns]) for index in range(count)]

    def lengths(self, where: SourceRange, emitter: Emitter) -> list[Value]:
        return [length for part in self.parts for length in part.lengths(where, emitter)]

    def length(self, where: SourceRange, emitter: Emitter) -> Value:
        return _minimum_length(self.lengths(where, emitter), where, emitter)

    def item(self, where: SourceRange, emitter: Emitter, index: Value, kind: Type | None = None) -> SugaredValue:
        return TupleOfSugared([part.item(where, emitter, index) for part in self.parts])


@dataclass
class EnumerateValue(SugaredValue):
    """`enumerate(iterable, start)`."""

    part: SugaredValue
    start: Value | None

    def kind(self) -> str:
        return "enumerate"

    def static_elements(self, where: SourceRange, emitter: Emitter) -> list[SugaredValue] | None:
        elements = self.part.static_elements(where, emitter)
        if elements is None:
            return None
        return [self._add_index(where, emitter, emitter.constant(index, where), each) for index, each in enumerate(elements)]

    def _unbounded_range(self, where: SourceRange, emitter: Emitter) -> RangeValue:
        """Return an unbounded range, which is zipped with the elements."""
        endless = emitter.constant((1 << 63) - 1, where)
        return RangeValue(self.start, endless, None if self.start is None else emitter.constant(1, where))

    def _add_index(self, where: SourceRange, emitter: Emitter, index: Value, element: SugaredValue) -> SugaredValue:
        return TupleOfSugared([self._unbounded_range(where, emitter).item(where, emitter, index), element])

    def lengths(self, where: SourceRange, emitter: Emitter) -> list[Value]:
        return [self._unbounded_range(where, emitter).length(where, emitter), *self.part.lengths(where, emitter)]

    def length(self, where: SourceRange, emitter: Emitter) -> Value:
        return _minimum_length(self.lengths(where, emitter), where, emitter)

    def item(self, where: SourceRange, emitter: Emitter, index: Value, kind: Type | None = None) -> SugaredValue:
        number = self._unbounded_range(where, emitter).item(where, emitter, index)
        return TupleOfSugared([number, self.part.item(where, emitter, index)])


@dataclass
class ReversedValue(SugaredValue):
    """`reversed(iterable)`."""

    part: SugaredValue

    def kind(self) -> str:
        return "reversed"

    def static_elements(self, where: SourceRange, emitter: Emitter) -> list[SugaredValue] | None:
        elements = self.part.static_elements(where, emitter)
        return None if elements is None else elements[::-1]

    def length(self, where: SourceRange, emitter: Emitter) -> Value:
        return self.part.length(where, emitter)

    def item(self, where: SourceRange, emitter: Emitter, index: Value, kind: Type | None = None) -> SugaredValue:
        last = emitter.insert("aten::sub", [self.length(where, emitter), emitter.constant(1, where)], INT, where)
        return self.part.item(where, emitter, emitter.insert("aten::sub", [last, index], INT, where))


def _minimum_length(lengths: list[Value], where: SourceRange, emitter: Emitter) -> Value:
    if len(lengths) == 1:
        return lengths[0]
    listed = emitter.insert("prim::ListConstruct", lengths, ListType(INT), where)
    return emitter.insert("prim::min", [listed], INT, where)
