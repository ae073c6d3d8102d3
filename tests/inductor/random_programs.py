"""Random programs over the public API, as Python source, and how their compiled results are compared with eager's.

A program is grown statement by statement, each run in eager as it is added; statements that eager rejects are left out.
So every program is valid, and its printed source is a complete reproduction.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

import rushlight as torch
from tests.inductor.random_indexing import FURTHER_STATEMENTS
from tests.inductor.random_inputs import FLOATS, INTEGERS, LAYOUTS, InputSpec, is_exact, is_tame
from tests.inductor.random_statements import OPEN_STATEMENTS, STATEMENTS

SIZES = (1, 2, 3, 4, 5, 7, 8, 9, 16, 17, 33)
SIZE_LIMIT = 1 << 16


@dataclass
class Variable:
    """A variable of the program under construction: its name, its tensor, and whether all elements are exact."""

    name: str
    tensor: torch.Tensor
    exact: bool


@dataclass
class Program:
    """A function's source, the specs of its inputs and of its module's constants, and the dtypes of its variables."""

    source: str
    inputs: list[InputSpec]
    constants: dict[str, InputSpec] = field(default_factory=dict)
    dtypes: frozenset[str] = frozenset()

    def function(self):
        """The function, ready to call."""
        namespace: dict = {"torch": torch, "F": torch.nn.functional}
        namespace |= {name: spec.make() for name, spec in self.constants.items()}
        exec(compile(self.source, "<random program>", "exec"), namespace)
        return namespace["f"]

    @property
    def precision(self) -> str:
        """The coarsest floating dtype that occurs."""
        text = str(self)
        kinds = {spec.dtype for spec in (*self.inputs, *self.constants.values())}
        default = "float64" if kinds == {"float64"} and "float32" not in text and "float32" not in self.dtypes else "float32"
        return next((kind for kind in ("bfloat16", "float16") if kind in text), default)

    def __str__(self) -> str:
        specs = "".join(f"# input {spec}\n" for spec in self.inputs)
        return specs + "".join(f"# {name} = {spec}\n" for name, spec in self.constants.items()) + self.source


class Generator:
    """Grows one program from a seed. Statement makers use `rng`, `pick`, `number`, `constant` and `size`."""

    def __init__(self, seed: int, statements: list[tuple[int, Callable]]):
        self.statements = statements
        self.rng = random.Random(seed)
        self.special = self.rng.random() < 0.15
        self.half = self.rng.random() < 0.3
        self.inputs: list[InputSpec] = []
        self.constants: dict[str, InputSpec] = {}
        self.variables: list[Variable] = []
        self.lines: list[str] = []
        self.namespace: dict = {"torch": torch, "F": torch.nn.functional}
        self.shape = self._shape()
        self._seed = seed * 1000
        self._count = 0

    # Building blocks for statement makers

    def pick(self, *kinds: str, rank: int | None = None, exact: bool = False) -> Variable:
        """A variable of one of the kinds "float", "integer", "bool" (any if none is given); LookupError if there is none."""
        fitting = [
            variable for variable in self.variables
            if (not kinds or kind_of(variable.tensor) in kinds) and (rank is None or variable.tensor.dim() == rank)
            and (variable.exact or not exact)
        ]  # fmt: skip
        if not fitting:
            raise LookupError
        return self.rng.choice(fitting[-6:] if self.rng.random() < 0.7 else fitting)

    def number(self) -> int | float:
        """A small Python number."""
        return self.rng.choice([0, 1, 2, -1, 3, 0.5, -1.5, 2.0, True])

    def size(self) -> int:
        """An extent."""
        return self.rng.choice(SIZES)

    def constant(self, shape: tuple[int, ...], dtype: str = "float32") -> str:
        """The name of a constant tensor in the function's module."""
        name = f"w{len(self.constants)}"
        layout = self.rng.choice(LAYOUTS) if self.rng.random() < 0.3 else "contiguous"
        self.constants[name] = InputSpec(self._next_seed(), shape, dtype, layout)
        self.namespace[name] = self.constants[name].make()
        return name

    def broadcast_partner(self, variable: Variable) -> str:
        """A tensor that broadcasts with a variable: another variable, or a new input."""
        if self.rng.random() < 0.6:
            return self.pick().name
        shape = [1 if self.rng.random() < 0.3 else extent for extent in variable.tensor.shape]
        return self.new_input(tuple(shape[self.rng.randint(0, len(shape)) :])).name

    def new_input(self, shape: tuple[int, ...] | None = None, dtype: str | None = None) -> Variable:
        """A further argument of the function."""
        spec = InputSpec(
            self._next_seed(), self._shape() if shape is None else shape, dtype or self._dtype(),
            self.rng.choice(LAYOUTS) if self.rng.random() < 0.5 else "contiguous", self.special,
        )  # fmt: skip
        name = f"a{len(self.inputs)}"
        self.inputs.append(spec)
        tensor = self.namespace[name] = spec.make()
        variable = Variable(name, tensor, is_exact(tensor))
        self.variables.append(variable)
        return variable

    # Growing

    def grow(self, statements: int) -> Program:
        """The program after about this many statements."""
        for _ in range(self.rng.randint(1, 3)):
            self.new_input(self.shape if self.rng.random() < 0.7 else None)
        for _ in range(4 * statements):
            if len(self.lines) >= statements:
                break
            self._try(self.rng.choices(self.statements, [weight for weight, _ in self.statements])[0][1])
        body = "".join(f"    {line}\n" for line in [*self.lines, f"return {self._outputs()}"])
        parameters = ", ".join(f"a{position}" for position in range(len(self.inputs)))
        dtypes = frozenset(variable.tensor.dtype.name for variable in self.variables)
        return Program(f"def f({parameters}):\n{body}", self.inputs, self.constants, dtypes)

    def _try(self, maker) -> None:
        try:
            expression, exact = maker(self)
        except LookupError:
            return
        names = [f"v{self._count}", f"v{self._count + 1}"]
        targets = names[:1] if not expression.startswith("2:") else names
        line = f"{', '.join(targets)} = {expression.removeprefix('2:')}"
        before = self._snapshot()
        try:
            exec(line, self.namespace)
        except (RuntimeError, IndexError, ValueError, TypeError, OverflowError):
            return
        made = [self.namespace[name] for name in targets]
        if not all(_usable(tensor, self.special) for tensor in made):
            self._restore(before)
            return
        self._count += len(targets)
        self.lines.append(line)
        self._note(targets, made, exact)

    def _note(self, targets: list[str], made: list[torch.Tensor], exact: bool) -> None:
        for name, tensor in zip(targets, made, strict=True):
            self.variables.append(Variable(name, tensor, exact and is_exact(tensor)))
        for variable in self.variables:  # for variables that were written in place
            if any(_same_memory(variable.tensor, tensor) for tensor in made):
                variable.exact = variable.exact and exact and is_exact(variable.tensor)

    def _snapshot(self) -> list[tuple[torch.Tensor, torch.Tensor]]:
        return [(variable.tensor, variable.tensor.clone()) for variable in self.variables]

    def _restore(self, saved: list[tuple[torch.Tensor, torch.Tensor]]) -> None:
        for tensor, values in saved:
            if 0 not in tensor.stride():
                tensor.copy_(values)

    def _outputs(self) -> str:
        chosen = [self.variables[-1].name]
        chosen += [self.rng.choice(self.variables).name for _ in range(self.rng.randint(0, 5))]
        if self.rng.random() < 0.15:
            chosen.append(self.rng.choice(["3", "2.5", "None", "True", "'text'", f"{chosen[0]}.shape", f"{chosen[0]}.dim()"]))
        self.rng.shuffle(chosen)
        if len(chosen) == 1 and self.rng.random() < 0.5:
            return chosen[0]
        return f"({', '.join(chosen)},)"

    # Random choices

    def _shape(self) -> tuple[int, ...]:
        rank = self.rng.choice([0, 1, 1, 2, 2, 2, 3, 3, 4])
        shape = [self.rng.choice(SIZES[:9] if rank > 2 else SIZES) for _ in range(rank)]
        if shape and self.rng.random() < 0.05:
            shape[self.rng.randrange(rank)] = 0
        if shape and self.rng.random() < 0.05:
            shape[-1] = self.rng.choice([1000, 4100])
        return tuple(shape) if np.prod(shape, initial=1) < SIZE_LIMIT else (17, 33)

    def _dtype(self) -> str:
        chance = self.rng.random()
        if chance < 0.65:
            return "float32"
        if chance < 0.8:
            return self.rng.choice(FLOATS if self.half else FLOATS[:2])
        return self.rng.choice((*INTEGERS, "bool", "int64"))

    def _next_seed(self) -> int:
        self._seed += 1
        return self._seed


def kind_of(tensor: torch.Tensor) -> str:
    """ "float", "integer" or "bool"."""
    if tensor.dtype is torch.bool:
        return "bool"
    return "float" if tensor.dtype.is_floating_point else "integer"


def _usable(tensor: object, special: bool) -> bool:
    return isinstance(tensor, torch.Tensor) and tensor.numel() <= SIZE_LIMIT and is_tame(tensor, special)


def _same_memory(left: torch.Tensor, right: torch.Tensor) -> bool:
    return left.untyped_storage().data_ptr() == right.untyped_storage().data_ptr() and left.numel() > 0


def random_program(seed: int, statements: int = 8) -> Program:
    """The program of a seed."""
    return Generator(seed, [*STATEMENTS, *FURTHER_STATEMENTS]).grow(statements)


def random_open_program(seed: int, statements: int = 8) -> Program:
    """The program of a seed that queries tensor sizes instead of hard-coding them."""
    return Generator(seed, [*STATEMENTS, *FURTHER_STATEMENTS, *OPEN_STATEMENTS]).grow(statements)
