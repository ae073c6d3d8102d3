"""Structured programs: numbers, lists and tensors of known sizes, with `if` and loops around straight-line pieces.

In: made by whoever translates a language into them. Out: C++ text (`codegen/structured.py`). A program has no effects: where
something goes wrong (a division by zero, an index out of range), it stops, and the caller runs the original instead, which
raises what is due. Everything prints:

    loop i0 < n0 while true, x1 = x0:
      c1 = eq(remainder(i0, 2), 0)
      if c1:
        x2 = region0(x1)
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from rushlight.core.dtype import dtype
from rushlight.inductor.codegen.program import Program as RegionProgram


@dataclass(frozen=True)
class Scalar:
    """An "int" of 64 bits, a "float" of 64 bits, or a "bool"."""

    name: str

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True)
class TensorOf:
    """A contiguous tensor of a known size."""

    dtype: dtype
    size: tuple[int, ...]

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
        return f"{self.dtype.name}{list(self.size)}"


@dataclass(frozen=True)
class ListOf:
    """A list of scalars, or of tensors of one size."""

    element: Scalar | TensorOf

    def __str__(self) -> str:
        return f"list of {self.element}"


Kind = Scalar | TensorOf | ListOf
INT, FLOAT, BOOL = Scalar("int"), Scalar("float"), Scalar("bool")


@dataclass(frozen=True)
class Var:
    """A value by its name, set once; those that loops carry are set in each round."""

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


Operand = Var | Literal


class Statement:
    """Base of statements."""

    def lines(self) -> list[str]:
        """Its text."""
        return [str(self)]


@dataclass
class Compute(Statement):
    """`target = op(operands)`; `op` is a name of `codegen/structured.py`'s tables. No target: it changes a list."""

    target: Var | None
    op: str
    operands: Sequence[Operand]

    def __str__(self) -> str:
        call = f"{self.op}({', '.join(map(str, self.operands))})"
        return call if self.target is None else f"{self.target} = {call}"


@dataclass
class Run(Statement):
    """Run a straight-line piece on tensors and scalars (as 0-dim tensors): its outputs are new tensors."""

    region: int
    inputs: Sequence[Operand]
    outputs: Sequence[Var]

    def __str__(self) -> str:
        return f"{', '.join(map(str, self.outputs))} = region{self.region}({', '.join(map(str, self.inputs))})"


@dataclass
class Element(Statement):
    """`target = source[index]`: a view of a tensor along its first dimension."""

    target: Var
    source: Var
    index: Operand

    def __str__(self) -> str:
        return f"{self.target} = {self.source}[{self.index}]"


@dataclass
class Read(Statement):
    """`target` is the element of a tensor that has one."""

    target: Var
    source: Var

    def __str__(self) -> str:
        return f"{self.target} = item({self.source})"


@dataclass
class Stop(Statement):
    """Give up: the caller runs the original."""

    def __str__(self) -> str:
        return "stop"


@dataclass
class Branch(Statement):
    """`if`: after it, each result is the operand of the branch that ran."""

    condition: Operand
    then: list[Statement]
    otherwise: list[Statement]
    results: list[tuple[Var, Operand | None, Operand | None]]

    def lines(self) -> list[str]:
        """Its text; results are assigned at the end of each branch."""
        text = [f"if {self.condition}:"]
        for words, body, place in (("", self.then, 1), ("else:", self.otherwise, 2)):
            text += [words] if words else []
            text += _indented(body)
            text += [f"  {each[0]} = {each[place]}" for each in self.results]
        return text


@dataclass
class Repeat(Statement):
    """A loop: while `counter` < `limit` and the condition holds. `carried`: a variable, its first value, the next round's."""

    counter: Var
    limit: Operand
    condition: Operand
    body: list[Statement]
    next_condition: Operand
    carried: list[tuple[Var, Operand, Operand]]

    def lines(self) -> list[str]:
        """Its text."""
        first = "".join(f", {var} = {initial}" for var, initial, _ in self.carried)
        text = [f"loop {self.counter} < {self.limit} while {self.condition}{first}:", *_indented(self.body)]
        text += [f"  {var} = {following}" for var, _, following in self.carried]
        return [*text, f"  while {self.next_condition}"]


def _indented(body: Sequence[Statement]) -> list[str]:
    return [f"  {line}" for statement in body for line in statement.lines()]


@dataclass
class Region:
    """A straight-line piece in C++: its program, the inputs that never change (prepared once, of which the first values of
    `program.constants` are), and its outputs' place among the program's."""

    program: RegionProgram
    constants: list[Var]
    outputs: list[str]


@dataclass
class StructuredProgram:
    """Inputs, statements, outputs."""

    inputs: list[Var]
    outputs: list[Operand]
    body: list[Statement]
    regions: list[Region] = field(default_factory=list)

    def __str__(self) -> str:
        head = f"program({', '.join(f'{var}: {var.kind}' for var in self.inputs)}):"
        return "\n".join([head, *_indented(self.body), f"  return {', '.join(map(str, self.outputs))}"]) + "\n"
