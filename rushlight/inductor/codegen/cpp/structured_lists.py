"""Lists in structured programs as C++: the list operations of `Compute` statements."""

from __future__ import annotations

from collections.abc import Iterator

from rushlight.inductor.codegen.cpp.structured_parts import SCALARS, Parts, declared, width_of
from rushlight.inductor.structured import Compute, Kind, Operand, TensorOf, Var


class ListWriter(Parts):
    """Writes operations on lists."""

    def _list(self, statement: Compute) -> Iterator[str]:
        target, element = statement.target, statement.target.kind.element
        yield f"rl::program::list* {target} = memory.make({width_of(element)}, {max(4, len(statement.operands))});"
        yield f"if (!{target}) return 1;"
        for operand in statement.operands:
            yield from self._append(Compute(None, "append", [target, operand]))

    def _append(self, statement: Compute) -> Iterator[str]:
        values, item = statement.operands
        address = self._temporary("place")
        yield f"char* {address} = rl::program::append({values});"
        yield f"if (!{address}) return 1;"
        yield from self._store(address, values.kind.element, item)

    def _store(self, address: str, element: Kind, item: Operand) -> Iterator[str]:
        if isinstance(element, TensorOf):
            yield from self._copy_tensor(address, element, self._text(item), item.kind)
        else:
            yield f"*({declared(element)}*){address} = {self._text(item, element)};"

    def _at(self, values: Var, index: Operand) -> tuple[list[str], str]:
        """Return the lines that find an element, and its address."""
        at = self._temporary("at")
        found = f"rl::program::position({self._text(index)}, {values}->length)"
        lines = [f"const int64_t {at} = {found};", f"if ({at} < 0) return 1;"]
        return lines, f"({values}->data + {at} * {width_of(values.kind.element)}L)"

    def _read_element(self, target: Var, address: str) -> Iterator[str]:
        """Read an element. Tensors are copied, because the list may move or change."""
        kind = declared(target.kind)
        if isinstance(target.kind, TensorOf):
            own = self._allocate(target.kind.nbytes)
            yield f"memcpy({own}, {address}, {target.kind.nbytes}L);"
            yield f"{kind} {target} = ({kind}){own};"
        else:
            yield f"{self._target(target)} = *({kind}*){address};"

    def _getitem(self, statement: Compute) -> Iterator[str]:
        lines, address = self._at(*statement.operands)
        yield from lines
        yield from self._read_element(statement.target, address)

    def _peek(self, statement: Compute) -> Iterator[str]:
        """Read a tensor in a list that never changes, without a copy."""
        lines, address = self._at(*statement.operands)
        yield from lines
        kind = declared(statement.target.kind)
        yield f"{kind} {statement.target} = ({kind}){address};"

    def _setitem(self, statement: Compute) -> Iterator[str]:
        values, index, item = statement.operands
        lines, address = self._at(values, index)
        yield from lines
        yield from self._store(address, values.kind.element, item)

    def _insert(self, statement: Compute) -> Iterator[str]:
        values, index, item = statement.operands
        address = self._temporary("place")
        yield f"char* {address} = rl::program::insert({values}, {self._text(index)});"
        yield f"if (!{address}) return 1;"
        yield from self._store(address, values.kind.element, item)

    def _length(self, statement: Compute) -> Iterator[str]:
        yield f"const int64_t {statement.target} = {statement.operands[0]}->length;"

    def _clear(self, statement: Compute) -> Iterator[str]:
        yield f"{statement.operands[0]}->length = 0;"

    def _pop(self, statement: Compute) -> Iterator[str]:
        values, index = statement.operands
        lines, address = self._at(values, index)
        yield from lines
        if statement.target is not None:
            yield from self._read_element(statement.target, address)
        yield f"rl::program::close({values}, {address});"

    def _make_list(self, statement: Compute) -> Iterator[str]:
        """Call a runtime function that makes a list from lists and numbers."""
        operands = ", ".join(map(self._text, statement.operands))
        yield f"rl::program::list* {statement.target} = rl::program::{_MAKERS[statement.op]}(memory, {operands});"
        yield f"if (!{statement.target}) return 1;"

    def _change_list(self, statement: Compute) -> Iterator[str]:
        """Call a runtime function that changes a list; the program stops if the function fails."""
        values, *others = statement.operands
        element = values.kind.element
        name = f"{statement.op}<{declared(element)}>" if statement.op in ("sort", "remove") else statement.op
        texts = [str(values), *(self._text(each, element if statement.op == "remove" else None) for each in others)]
        yield f"if (!rl::program::{name}({', '.join(texts)})) return 1;"

    def _search_list(self, statement: Compute) -> Iterator[str]:
        """Call a runtime function that counts, finds or tests for a number in a list."""
        values, item = statement.operands
        kind = SCALARS[values.kind.element.name]
        found = f"rl::program::{statement.op}<{kind}>({values}, {self._text(item, values.kind.element)})"
        yield f"{self._target(statement.target)} = {found};"
        if statement.op == "index":
            yield f"if ({statement.target} < 0) return 1;"

    def _reduce_list(self, statement: Compute) -> Iterator[str]:
        """Compute the sum, minimum or maximum of a list; the program stops if an empty list has none."""
        values = statement.operands[0]
        kind = SCALARS[values.kind.element.name]
        if statement.op != "sum_of":
            yield f"if (!rl::program::is_ordered<{kind}>({values})) return 1;"
        yield f"{self._target(statement.target)} = rl::program::{statement.op}<{kind}>({values});"

    def _compare_lists(self, statement: Compute) -> Iterator[str]:
        first, second = statement.operands
        yield f"{self._target(statement.target)} = rl::program::equal<{SCALARS[first.kind.element.name]}>({first}, {second});"

    def _check(self, statement: Compute) -> Iterator[str]:
        """Stop unless a condition holds."""
        yield f"if (!{self._text(statement.operands[0])}) return 1;"

    def _stack_numbers(self, statement: Compute) -> Iterator[str]:
        target, (values, count) = statement.target, statement.operands
        yield f"if ({values}->length != {self._text(count)}) return 1;"
        address = self._allocate(target.kind.nbytes)
        yield f"memcpy({address}, {values}->data, {target.kind.nbytes}L);"
        yield f"{declared(target.kind)} {target} = ({declared(target.kind)}){address};"


_MAKERS = {"repeat": "repeat", "concat": "joined", "slice": "slice", "duplicate": "duplicate", "range": "range"}
LISTS = {
    "list": ListWriter._list, "append": ListWriter._append, "getitem": ListWriter._getitem, "peek": ListWriter._peek,
    "setitem": ListWriter._setitem, "len": ListWriter._length, "pop": ListWriter._pop, "delete": ListWriter._pop,
    "stacked": ListWriter._stack_numbers, "clear": ListWriter._clear, "insert": ListWriter._insert,
    **dict.fromkeys(_MAKERS, ListWriter._make_list),
    **dict.fromkeys(("extend", "reverse", "sort", "remove"), ListWriter._change_list),
    **dict.fromkeys(("contains", "index", "count"), ListWriter._search_list),
    **dict.fromkeys(("sum_of", "least_of", "most_of"), ListWriter._reduce_list),
    "equal": ListWriter._compare_lists, "check": ListWriter._check,
}  # fmt: skip
