"""Writes values of the loops IR as Triton statements over a tile of points.

A tile has axes, such as rows "x" and columns "r". A value has an extent only along the axes that it depends on; Triton
broadcasts where values of several extents meet.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple

from rushlight.core.algebra import Const, Expr, Var, bounds, to_triton
from rushlight.core.dtype import bool_, dtype
from rushlight.inductor.codegen.triton.functions import INFIX, UNFUSED, function_text
from rushlight.inductor.codegen.triton.types import (
    HALVES,
    LIMIT,
    NoTritonForm,
    compute_type,
    literal,
    memory_type,
    size_text,
)
from rushlight.inductor.ir import (
    Call,
    Constant,
    IndexValue,
    Indirect,
    Load,
    Masked,
    RandomWord,
    Search,
    Value,
    substitute,
)

MAX_STEPS = 62  # halvings of a search in a row of unknown length
SMALL_INTEGERS = ("uint8", "int8", "int16")


class Term(NamedTuple):
    """A written value: its text, the axes that it has an extent along, and whether it is a Python number."""

    text: str
    axes: frozenset[str] = frozenset()
    is_number: bool = False


class Places(NamedTuple):
    """What a kernel tells a StatementWriter: how it reads buffers, and how it reports errors."""

    pointer: Callable[[str], str]
    element_type: Callable[[str], dtype]
    status: Callable[[], str]
    origins: Callable[[], tuple[str, ...]]


class StatementWriter:
    """Writes values as `tmpN = ...` lines. Each text is written once.

    `masks` maps each axis to the name of a mask of its points inside the ranges, or to "" if all are. `local` maps buffers to
    terms that stand for their element. `unfused` becomes true if products must not be fused with additions.
    """

    def __init__(self, places: Places, masks: dict[str, str], prefix: str = "tmp"):
        self.places = places
        self.masks = masks
        self.prefix = prefix
        self.lines: list[str] = []
        self.local: dict[str, Term] = {}
        self.unfused = False
        self.widens = True  # halves are converted to float32 when they are loaded
        self.other = ""  # the value of masked loads outside of the mask
        self.checked: list[str] = []  # conditions that all checked indices fulfil
        self._axes: dict[str, frozenset[str]] = {axis: frozenset((axis,)) for axis in masks}
        self._texts: dict[str, Term] = {}
        self._nodes: dict[tuple[int, tuple[str, ...]], Term] = {}
        self._kept: list[Value] = []
        self._guards: list[Term] = []
        self._count = 0

    def begin(self) -> None:
        """Forget all that was written: the lines that follow belong to another loop."""
        self.lines = []
        self._texts, self._nodes = {}, {}

    def name_axes(self, name: str, axes: Iterable[str]) -> None:
        """Say along which axes an index variable has an extent."""
        self._axes[name] = frozenset(axes)

    def write(self, value: Value) -> Term:
        """Write a value; returns its term."""
        key = (id(value), tuple(guard.text for guard in self._guards))
        found = self._nodes.get(key)
        if found is None:
            found = self._nodes[key] = self._write(value)
            self._kept.append(value)
        return found

    def bind(self, text: str, axes: Iterable[str]) -> Term:
        """Bind an expression to a name."""
        found = self._texts.get(text)
        if found is None:
            found = self._texts[text] = Term(f"{self.prefix}{self._count}", frozenset(axes))
            self._count += 1
            self.lines.append(f"{found.text} = {text}")
        return found

    def index(self, expression: Expr) -> Term:
        """Return an index expression as a term."""
        axes = frozenset().union(*(self._axes.get(variable.name, ()) for variable in expression.free_variables()))
        return Term(to_triton(expression), axes, isinstance(expression, Const))

    def mask(self, axes: Iterable[str]) -> Term | None:
        """Return the mask of points along these axes, under the conditions around; None if it always holds."""
        parts = [Term(self.masks[axis], frozenset((axis,))) for axis in self.masks if axis in axes and self.masks[axis]]
        parts += self._guards
        if not parts:
            return None
        held = frozenset().union(*(part.axes for part in parts))
        texts = list(dict.fromkeys(part.text for part in parts))
        return Term(" & ".join(texts), held)

    def place(self, pointer: str, index: Term, axes: Iterable[str]) -> str:
        """Return the pointers to elements at an index, with an extent along `axes`."""
        missing = [axis for axis in self.masks if axis in axes and axis not in index.axes]
        parts = ["" if index.text == "0" else index.text, *(f"{axis}*0" for axis in missing)]
        return " + ".join([pointer, *(operand_text(part) for part in parts if part)])

    def store(self, pointer: str, index: Expr, value: Term) -> None:
        """Write the store of an element."""
        at = self.index(index)
        axes = at.axes | value.axes
        mask = self.mask(self.masks if axes else ())
        axes |= mask.axes if mask is not None else frozenset()
        text = "" if mask is None else f", {mask.text}"
        self.lines.append(f"tl.store({self.place(pointer, at, axes)}, {value.text}{text})")

    def typed(self, term: Term, kind: dtype) -> str:
        """Return a term's text as a tensor of a compute type, even if it is a number."""
        return f"tl.full([], {term.text}, {compute_type(kind)})" if term.is_number else term.text

    # Nodes

    def _write(self, value: Value) -> Term:
        if isinstance(value, Load):
            return self._write_load(value)
        if isinstance(value, Constant):
            return Term(literal(value.number, value.dtype), is_number=True)
        if isinstance(value, RandomWord):
            return self._write_random_word(value)
        if isinstance(value, IndexValue):
            at = self.index(self._in_64_bits(value.index))
            return self.bind(f"tl.cast({at.text}, {compute_type(value.dtype)})", at.axes)
        if isinstance(value, Indirect):
            return self._write_indirect(value)
        if isinstance(value, Masked):
            return self._write_masked(value)
        if isinstance(value, Search):
            return self._write_search(value)
        return self._write_call(value)

    def _in_64_bits(self, expression: Expr) -> Expr:
        """Return an index expression that is used as a number over wider variables, unless 32 bits hold all its values."""
        low, high = bounds(expression)
        if low is not None and high is not None and -LIMIT <= low and high < LIMIT:
            return expression
        wide = {}
        for variable in expression.free_variables():
            term = self.bind(f"tl.cast({variable.name}, tl.int64)", self._axes.get(variable.name, ()))
            self.name_axes(term.text, term.axes)
            wide[variable] = Var(term.text, variable.extent, variable.least)
        return expression.substitute(wide)

    def _write_load(self, value: Load) -> Term:
        local = self.local.get(value.buffer)
        return self.load(value.buffer, self.index(value.index)) if local is None else local

    def load(self, buffer: str, at: Term) -> Term:
        """Write the load of a buffer's element, converted to the compute type."""
        mask = self.mask(at.axes)
        axes = at.axes if mask is None else at.axes | mask.axes
        rest = "" if mask is None else f", {mask.text}" + (f", other={self.other}" if self.other else "")
        kind = self.places.element_type(buffer)
        convert = ".to(tl.float32)" if kind.name in HALVES and self.widens else ""
        return self.bind(f"tl.load({self.place(self.places.pointer(buffer), at, axes)}{rest}){convert}", axes)

    def _write_random_word(self, value: RandomWord) -> Term:
        seed, at = self._unguarded(value.seed), self.index(value.index)
        text = f"random_{value.name}({seed.text}, {value.offset}, {f'tl.cast({at.text}, tl.int64)'})"
        return self.bind(text if value.name != "bits" else f"{text}.to(tl.int64)", at.axes)

    def _unguarded(self, value: Value) -> Term:
        guards, self._guards = self._guards, []
        found = self.write(value)
        self._guards = guards
        return found

    def _write_indirect(self, value: Indirect) -> Term:
        position = self.check_index(self.write(value.index), value.index.dtype, size_text(value.size), value.wrap)
        variable = Var(position.text, value.size)
        self._axes[position.text] = position.axes
        # A body merged from several elements may bind one variable to several positions.
        return self.write(substitute(value.body, {value.variable: variable}))

    def check_index(self, term: Term, kind: dtype, size: str, wrap: bool) -> Term:
        """Write the check that an index lies in [0, size); returns the index, 0 where it does not."""
        given = self.bind(f"{self.typed(term, kind)}.to(tl.int64)", term.axes)
        if wrap:
            given = self.bind(f"tl.where({given.text} < 0, {given.text} + {operand_text(size)}, {given.text})", given.axes)
        outside = self.bind(f"({given.text} < 0) | ({given.text} >= {size})", given.axes)
        self.report(outside)
        self.checked.append(operand_text(self.bind(f"{outside.text} == 0", given.axes).text))
        return self.bind(f"tl.where({outside.text}, 0, {given.text})", given.axes)

    def report(self, failed: Term) -> None:
        """Write the store of an error where a condition holds among the points inside the ranges."""
        mask = self.mask(failed.axes)
        axes = failed.axes if mask is None else failed.axes | mask.axes
        condition = failed.text if mask is None else f"{mask.text} & {operand_text(failed.text)}"
        at = self.place(self.places.status(), Term("0"), axes)
        self.lines.append(f"tl.store({at}, 1, {condition})")

    def _write_masked(self, value: Masked) -> Term:
        mask = self.write(value.mask)
        guard = Term(operand_text(self.typed(mask, bool_)), mask.axes)
        self._guards.append(guard)
        body = self.write(value.body)
        self._guards.pop()
        opposite = self.bind(f"{guard.text} == 0", mask.axes)
        self._guards.append(opposite)
        other = self.write(value.other)
        self._guards.pop()
        body_text, other_text = self._branches(value.dtype, body, other)
        return self.bind(f"tl.where({guard.text}, {body_text}, {other_text})", mask.axes | body.axes | other.axes)

    def _branches(self, kind: dtype, first: Term, second: Term) -> tuple[str, str]:
        """Return two operands of `tl.where`, at least one of them of the right type."""
        return self.typed(first, kind) if first.is_number and second.is_number else first.text, second.text

    def _write_search(self, value: Search) -> Term:
        wanted, row = self.write(value.value), self.index(value.row.index)
        axes = wanted.axes | row.axes
        mask = self.mask(axes)
        axes = axes if mask is None else axes | mask.axes
        steps = value.count.bit_length() if isinstance(value.count, int) else MAX_STEPS
        held = f"{wanted.text} == {wanted.text}" if mask is None else mask.text
        pointer = self.place(self.places.pointer(value.row.buffer), row, axes)
        needed = self.typed(wanted, value.value.dtype)
        arguments = [pointer, size_text(value.step), size_text(value.count), needed, held, str(value.right), str(steps)]
        return self.bind(f"search_sorted({', '.join(arguments)})", axes)

    def _write_call(self, value: Call) -> Term:
        terms = [self.write(argument) for argument in value.arguments]
        axes = frozenset().union(*(term.axes for term in terms))
        if value.name == "cast":
            return self._write_cast(terms[0], value.arguments[0].dtype, value.dtype)
        if value.name == "nonzero_divisor":
            self.report(self.bind(f"{self.typed(terms[0], value.dtype)} == 0", axes))
            return terms[0]
        if value.name == "required":
            self.report(self.bind(f"{self.typed(terms[1], bool_)} == 0", terms[1].axes))
            return terms[0]
        texts = self._operands(value, terms)
        self.unfused = self.unfused or value.name in UNFUSED
        if value.name in INFIX:
            return self.bind(f"{operand_text(texts[0])} {INFIX[value.name]} {operand_text(texts[1])}", axes)
        kind = value.arguments[-1].dtype
        form = function_text(value.name, compute_type(kind).removeprefix("tl."), 8 * kind.itemsize)
        if form is None:
            raise NoTritonForm(self.places.origins(), f"there is no function {value.name} for {kind}", value.name)
        return self.bind(form.format(*map(operand_text, texts)), axes)

    def _operands(self, value: Call, terms: list[Term]) -> list[str]:
        """Return the operands' texts. A number stays a number next to a tensor of the same type."""
        kinds = [argument.dtype for argument in value.arguments]
        if value.name == "where":
            return [self.typed(terms[0], bool_), *self._branches(kinds[1], *terms[1:])]
        if value.name in INFIX and not all(term.is_number for term in terms):
            return [term.text for term in terms]
        return [self.typed(term, kind) for term, kind in zip(terms, kinds, strict=True)]

    def _write_cast(self, term: Term, source: dtype, target: dtype) -> Term:
        text, before, after = self.typed(term, source), compute_type(source), compute_type(target)
        if target.name in HALVES and source is not target:
            rounded = text if before == "tl.float32" or source.name != "bool" else f"{text}.to(tl.float32)"
            return self.bind(f"{operand_text(rounded)}.to({memory_type(target)}).to(tl.float32)", term.axes)
        if before == after:
            return term
        if target is bool_:
            return self.bind(f"{operand_text(text)} != 0", term.axes)
        if source.is_floating_point and target.name in SMALL_INTEGERS:
            text = f"{operand_text(text)}.to(tl.int32)"
        return self.bind(f"{operand_text(text)}.to({after})", term.axes)


def operand_text(text: str) -> str:
    """Return a text in parentheses, unless it is a name, a number or a call."""
    if text.replace("_", "").replace(".", "").replace("e-", "").isalnum() or text.startswith("float("):
        return text
    depth = 0
    for position, letter in enumerate(text):
        depth += (letter == "(") - (letter == ")")
        if depth == 0 and letter in " +-*/%<>=&|^~":
            return f"({text})"
        if depth == 0 and letter == ")" and position + 1 < len(text) and text[position + 1] not in ".)":
            return f"({text})"
    return text


