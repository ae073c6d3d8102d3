"""Structured programs: numbers, lists and tensors of known sizes, with `if` and loops around straight-line regions.

In: built by translators of a language, such as `jit`. Out: C++ text (`codegen/cpp/structured.py`). A program has no side
effects: on an error (a division by zero, an index out of range) it stops, and the caller runs the original instead, which
raises the error. Everything prints:
    loop i0 < n0 while true, x1 = x0:
      c1 = eq(remainder(i0, 2), 0)
      if c1:
        x2 = region0(x1)
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from rushlight.core.dtype import dtype


@dataclass(frozen=True)
class Scalar:
    """A 64-bit "int", a 64-bit "float", or a "bool"."""

    name: str

    def __str__(self) -> str:
        return self.name


def contiguous_strides(size: Sequence[int]) -> tuple[int, ...]:
    """Return the strides of a contiguous tensor."""
    strides: list[int] = []
    step = 1
    for length in reversed(size):
        strides.append(step)
        step *= max(length, 1)
    return tuple(reversed(strides))


@dataclass(frozen=True)
class TensorOf:
    """A tensor of a known size, contiguous if `strides` is None."""

    dtype: dtype
    size: tuple[int, ...]
    strides: tuple[int, ...] | None = None

    @property
    def numel(self) -> int:
        """The number of elements."""
        count = 1
        for size in self.size:
            count *= size
        return count

    @property
    def nbytes(self) -> int:
        """The bytes of all elements."""
        return self.numel * self.dtype.itemsize

    def __str__(self) -> str:
        return f"{self.dtype.name}{list(self.size)}" + (f" by {list(self.strides)}" if self.strides is not None else "")


def tensor_of(kind: dtype, size: Sequence[int], strides: Sequence[int]) -> TensorOf:
    """Return the type of a tensor with these strides."""
    size, strides = tuple(size), tuple(strides)
    steps = zip(size, strides, contiguous_strides(size), strict=True)
    is_contiguous = 0 in size or all(length == 1 or step == usual for length, step, usual in steps)
    return TensorOf(kind, size, None if is_contiguous else strides)


@dataclass(frozen=True)
class ListOf:
    """A list of scalars, of tensors of one size, or of such lists."""

    element: Scalar | TensorOf | ListOf

    def __str__(self) -> str:
        return f"list of {self.element}"


Kind = Scalar | TensorOf | ListOf
INT, FLOAT, BOOL = Scalar("int"), Scalar("float"), Scalar("bool")


@dataclass(frozen=True)
class Var:
    """A named value, assigned once; loop-carried variables are assigned in each round."""

    name: str
    kind: Kind

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True)
class Literal:
    """A number."""

    value: bool | int | float

    @property
    def kind(self) -> Scalar:
        """Its type."""
        return BOOL if isinstance(self.value, bool) else INT if isinstance(self.value, int) else FLOAT

    def __str__(self) -> str:
        return str(self.value)


@dataclass(frozen=True)
class Null:
    """An undefined value of a type: the content of a variable before its first assignment."""

    kind: Kind

    def __str__(self) -> str:
        return "nothing"


Operand = Var | Literal | Null


class Statement:
    """Base of statements."""

    def lines(self) -> list[str]:
        """Return the text of the statement."""
        return [str(self)]


@dataclass
class Compute(Statement):
    """`target = op(operands)`; `op` is a name in the tables of `codegen/cpp/structured.py`. Without a target it changes a list.
    """

    target: Var | None
    op: str
    operands: Sequence[Operand]

    def __str__(self) -> str:
        call = f"{self.op}({', '.join(map(str, self.operands))})"
        return call if self.target is None else f"{self.target} = {call}"


@dataclass
class Run(Statement):
    """Run a region on tensors and scalars (as 0-dim tensors); its outputs are new tensors."""

    region: int
    inputs: Sequence[Operand]
    outputs: Sequence[Var]

    def __str__(self) -> str:
        return f"{', '.join(map(str, self.outputs))} = region{self.region}({', '.join(map(str, self.inputs))})"


@dataclass(frozen=True)
class Term:
    """An index that moves a view by `index * stride` elements. The program stops unless 0 <= index < limit; with `wraps`,
    negative indices count from the end."""

    index: Operand
    stride: int
    limit: int
    wraps: bool = True

    def __str__(self) -> str:
        return f"{self.index}{'' if self.wraps else '+'}*{self.stride}"


@dataclass
class View(Statement):
    """`target` is a part of `source`, in the same memory."""

    target: Var
    source: Var
    terms: Sequence[Term]
    offset: int = 0

    def __str__(self) -> str:
        offset = " + ".join([*map(str, self.terms), *([str(self.offset)] if self.offset or not self.terms else [])])
        return f"{self.target}: {self.target.kind} = {self.source} at {offset}"


@dataclass
class Copy(Statement):
    """`target` is a contiguous copy of `source`."""

    target: Var
    source: Var

    def __str__(self) -> str:
        return f"{self.target} = copy of {self.source}"


@dataclass
class Write(Statement):
    """Write a tensor of the same dtype and size, or a number, into a tensor."""

    target: Var
    source: Operand

    def __str__(self) -> str:
        return f"{self.target}[...] = {self.source}"


@dataclass
class Call(Statement):
    """Call one of the program's Python functions; its results are new tensors."""

    number: int
    inputs: Sequence[Operand]
    outputs: Sequence[Var]

    def __str__(self) -> str:
        return f"{', '.join(map(str, self.outputs))} = call{self.number}({', '.join(map(str, self.inputs))})"


@dataclass
class Read(Statement):
    """`target` is the element of a one-element tensor."""

    target: Var
    source: Var

    def __str__(self) -> str:
        return f"{self.target} = item({self.source})"


@dataclass
class Stop(Statement):
    """Give up; the caller runs the original."""

    def __str__(self) -> str:
        return "stop"


@dataclass
class Branch(Statement):
    """`if`; after it, each result has the value of its operand in the branch that ran."""

    condition: Operand
    then: list[Statement]
    otherwise: list[Statement]
    results: list[tuple[Var, Operand | None, Operand | None]]

    def lines(self) -> list[str]:
        """Return the text of the statement; each branch ends with the assignments to the results."""
        text = [f"if {self.condition}:"]
        for words, body, position in (("", self.then, 1), ("else:", self.otherwise, 2)):
            text += [words] if words else []
            text += _indent_body(body)
            text += [f"  {each[0]} = {each[position]}" for each in self.results]
        return text


@dataclass
class Repeat(Statement):
    """A loop that runs while `counter` < `limit` and the condition holds. `carried` lists (variable, first value, value for the
    next round). Carried variables in `pointers` are tensors in memory from before the loop, which is not copied."""

    counter: Var
    limit: Operand
    condition: Operand
    body: list[Statement]
    next_condition: Operand
    carried: list[tuple[Var, Operand, Operand]]
    pointers: frozenset[Var] = frozenset()

    def lines(self) -> list[str]:
        """Return the text of the statement."""
        first = "".join(f", {var} = {initial}" for var, initial, _ in self.carried)
        text = [f"loop {self.counter} < {self.limit} while {self.condition}{first}:", *_indent_body(self.body)]
        text += [f"  {var} = {following}" for var, _, following in self.carried]
        return [*text, f"  while {self.next_condition}"]


def _indent_body(body: Sequence[Statement]) -> list[str]:
    return [f"  {line}" for statement in body for line in statement.lines()]


@dataclass
class Region:
    """A straight-line region in C++: its program, its constant inputs, and the names of its outputs. The constant inputs are
    prepared once; the program's own constants come first among them."""

    lowered: Any  # the `LoweredGraph`
    program: Any  # its `codegen.cpp.program.Program`, whose text becomes part of the whole program's text
    constants: list[Var]
    outputs: list[str]


@dataclass(frozen=True)
class External:
    """A Python function that a program calls: it takes tensors and numbers and returns a sequence of tensors of these types."""

    function: Callable[..., Sequence]
    inputs: tuple[Kind, ...]
    outputs: tuple[TensorOf, ...]


@dataclass
class StructuredProgram:
    """Inputs, statements, outputs. `written` lists the inputs that the program mutates, each with a variable that holds a copy
    of it. The variable's final value is written back when the program ends."""

    inputs: list[Var]
    outputs: list[Operand]
    body: list[Statement]
    regions: list[Region] = field(default_factory=list)
    written: list[tuple[Var, Var]] = field(default_factory=list)
    calls: list[External] = field(default_factory=list)

    def __str__(self) -> str:
        head = f"program({', '.join(f'{var}: {var.kind}' for var in self.inputs)}):"
        copies = [f"  {copy} = copy of {var}" for var, copy in self.written]
        back = [f"  {var}[...] = {copy}" for var, copy in self.written]
        end = f"  return {', '.join(map(str, self.outputs))}"
        return "\n".join([head, *copies, *_indent_body(self.body), *back, end]) + "\n"
