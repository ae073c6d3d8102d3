"""Random programs of views and in-place writes on tensors that share memory, deterministic from a seed, as readable Python.

A program is written line by line while the library under test runs it, because each line must suit the shapes so far. The
same lines then run in another library (`torch`, or the NumPy model of `numpy_views`), and the two are compared. Most lines are
valid; some are not, and both libraries must then raise the same type of error.
"""

from __future__ import annotations

import math
import random
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from tests.ops.view_chain_lines import view_of, write_to

DTYPES = ("float32", "float64", "int64", "int32", "int8", "uint8", "bool", "float16", "bfloat16", "complex64")
GRAD_DTYPES = ("float64", "float64", "float64", "complex128")
NUMPY_DTYPES = ("float32", "float64", "int64", "int32", "uint8")
MAX_VARIABLES = 9


@dataclass
class Run:
    """A library that executes lines: its variables by name, and the type of error of each line (None where it ran)."""

    library: object
    variables: dict = field(default_factory=dict)
    errors: list = field(default_factory=list)

    def execute(self, line: str) -> None:
        """Runs one line and records its exception."""
        scope = {"torch": self.library, **self.variables}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                exec(compile(line, "<chain>", "exec"), scope)
                self.errors.append(None)
            except Exception as error:
                self.errors.append((type(error).__name__, str(error)))
        self.variables = {name: value for name, value in scope.items() if name[0] == "v" and name[1:].isdigit()}


class Chain:
    """Writes a program of `length` lines with the random numbers of `seed`, running it in `library` as it goes."""

    def __init__(self, library, seed: int, length: int = 12, grad: bool = False, for_numpy: bool = False):
        self.random = random.Random(f"{seed}-{grad}-{for_numpy}")
        self.run = Run(library)
        self.grad, self.for_numpy = grad, for_numpy
        self.lines: list[str] = []
        for _ in range(self.random.randint(1, 2)):
            self._start()
        for _ in range(self.random.randint(2, length)):
            self._step()

    def text(self) -> str:
        """The program."""
        return "\n".join(self.lines)

    # Lines

    def _add(self, line: str) -> None:
        self.lines.append(line)
        self.run.execute(line)

    def _fresh(self) -> str:
        return f"v{len(self.run.variables)}"

    def _start(self) -> None:
        pick = self.random
        sizes = [pick.choice((0, 1, 2, 2, 3, 3, 4)) if pick.random() < 0.9 else 5 for _ in range(pick.choice((0, 1, 2, 2, 3, 3, 4)))]
        kinds = GRAD_DTYPES if self.grad else NUMPY_DTYPES if self.for_numpy else DTYPES
        kind = pick.choice(kinds)
        count = math.prod(sizes)
        made = f"torch.arange({count}).remainder(7).sub({pick.randint(0, 3)}).to(torch.{kind})"
        if len(sizes) > 1 and pick.random() < 0.3:
            sizes[0], sizes[-1] = sizes[-1], sizes[0]
            self._add(f"{self._fresh()} = {made}.reshape({sizes}).transpose(0, -1).clone()")
        else:
            self._add(f"{self._fresh()} = {made}.reshape({sizes}).clone()")
        if self.grad:
            leaf = list(self.run.variables)[-1]
            self._add(f"{leaf}.requires_grad_()")
            if pick.random() < 0.9:
                self._add(f"{self._fresh()} = {leaf} * 1")

    def _step(self) -> None:
        pick = self.random
        name = pick.choice(list(self.run.variables)[-4:] if pick.random() < 0.6 else list(self.run.variables))
        tensor = self.run.variables[name]
        if pick.random() < 0.5 and len(self.run.variables) < MAX_VARIABLES:
            line = f"{self._fresh()} = {view_of(self, tensor).replace('?', name)}"
        else:
            # In torch, a view gets its history lazily, when it is queried after a write to its base.
            line = (f"{name}.is_leaf; " if self.grad else "") + write_to(self, name, tensor)
        if self.grad and pick.random() < 0.08:
            line = f"with torch.no_grad(): {line}"
        self._add(line)

    # Random arguments

    def is_mistaken(self) -> bool:
        """Whether to write an invalid line, for once."""
        return not (self.for_numpy or self.grad) and self.random.random() < 0.03

    def dim(self, tensor, extra: int = 0) -> int:
        """A dimension, sometimes one that is out of range."""
        rank = tensor.dim() + extra
        if not rank:
            return self.random.choice((0, -1)) + self.is_mistaken()
        if self.is_mistaken():
            return self.random.choice((rank, -rank - 1))
        return self.random.randint(-rank, rank - 1)

    def size_at(self, tensor, dim: int) -> int:
        """The size of a dimension, or 1 if it does not exist."""
        return tensor.shape[dim] if -tensor.dim() <= dim < tensor.dim() else 1

    def position(self, size: int) -> int:
        """An index into a dimension, sometimes one that is out of range."""
        if not size or self.is_mistaken():
            return self.random.choice((size, -size - 1))
        return self.random.randint(-size, size - 1)

    def number(self, tensor) -> str:
        """A number, mostly one that fits the tensor's dtype."""
        kind = "float" if self.is_mistaken() else str(tensor.dtype)
        if "bool" in kind:
            return self.random.choice(("True", "False"))
        if "float" in kind:
            return self.random.choice(("2", "-1", "0.5", "3", "0"))
        return self.random.choice(("2", "3", "1", "0"))

    def factors(self, count: int) -> list[int]:
        """Sizes whose product is `count`, sometimes with a -1, sometimes wrong."""
        pick, sizes = self.random, []
        while count > 1:
            divisors = [size for size in range(2, count + 1) if count % size == 0]
            sizes.append(pick.choice(divisors))
            count //= sizes[-1]
        if not count:
            sizes = [0, *sizes, pick.randint(1, 3)]
        sizes += [1] * pick.choice((0, 0, 1, 2))
        pick.shuffle(sizes)
        if sizes and pick.random() < 0.25:
            sizes[pick.randrange(len(sizes))] = -1
        if self.is_mistaken():
            sizes.append(2)
        return sizes

    def slice_text(self, size: int) -> str:
        """A slice as text."""
        pick = self.random
        bounds = [str(pick.randint(-size - 1, size + 1)) if pick.random() < 0.5 else "" for _ in range(2)]
        step = pick.choice(("", "", ":2", ":3"))
        return f"{bounds[0]}:{bounds[1]}{step}"

    def basic_index(self, tensor) -> str:
        """An index of slices, numbers, None and Ellipsis."""
        pick, parts, dim = self.random, [], 0
        while dim < tensor.dim() and pick.random() < 0.75:
            kind = pick.random()
            if kind < 0.1:
                parts.append("None")
                continue
            if kind < 0.35:
                parts.append(str(self.position(tensor.shape[dim])))
            else:
                parts.append(self.slice_text(tensor.shape[dim]))
            dim += 1
        if not parts or (pick.random() < 0.2 and "..." not in parts):
            parts.insert(pick.randint(0, len(parts)) if dim == tensor.dim() else len(parts), "...")
        return ", ".join(parts)




# Comparison


def state_of(run: Run, numbers: Callable, grad: bool) -> dict[str, tuple]:
    """The observable state of each variable: values (`numbers` makes the array), geometry and relations."""
    first_with: dict[int, str] = {}
    found = {}
    for name, tensor in run.variables.items():
        base = tensor._base
        known = next((other for other, value in run.variables.items() if value is base), "unnamed")
        same = next(other for other, value in run.variables.items() if value is tensor)
        storage = tensor.untyped_storage()
        shared = first_with.setdefault(storage.data_ptr(), name) if storage.nbytes() else ""
        found[name] = {
            "dtype": str(tensor.dtype), "shape": tuple(tensor.shape), "stride": tuple(tensor.stride()) if tensor.numel() else (),
            "storage_offset": tensor.storage_offset() if tensor.numel() else 0, "version": tensor._version, "contiguous": tensor.is_contiguous(),
            "is_view": tensor._is_view(), "base": None if base is None else known, "same as": same, "storage of": shared,
            "values": numbers(tensor), **(_autograd_state(tensor) if grad else {}),
        }  # fmt: skip
    return found


def _autograd_state(tensor) -> dict:
    try:
        return {"requires_grad": tensor.requires_grad, "is_leaf": tensor.is_leaf, "has_grad_fn": tensor.grad_fn is not None}
    except RuntimeError:
        return {"requires_grad": tensor.requires_grad, "is_leaf": "error"}


def backward(run: Run, numbers: Callable) -> dict:
    """Runs backward from all variables that require grad; returns the gradients of the leaves, or the type of the error."""
    try:
        total = 0
        for position, tensor in enumerate(run.variables.values()):
            if tensor.requires_grad:
                real = run.library.view_as_real(tensor.resolve_conj()) if tensor.is_complex() else tensor
                total = total + (real * real * (position + 1)).sum()
        if not isinstance(total, int):
            total.backward()
    except Exception as error:
        return {f"error {type(error).__name__}": str(error)}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return {
            name: numbers(tensor.grad)
            for name, tensor in run.variables.items()
            if tensor.is_leaf and tensor.requires_grad and tensor.grad is not None
        }


def difference(chain: Chain, library, numbers: Callable) -> str | None:
    """The program and its differing behaviour in `library`; None if nothing differs."""
    other = Run(library)
    for line in chain.lines:
        other.execute(line)
    found = _different_errors(chain, other) or _different_states(chain, other, numbers)
    if found is None and chain.grad:
        found = _different_gradients(backward(chain.run, numbers), backward(other, numbers))
    return None if found is None else f"{found}\n{chain.text()}"


def _different_errors(chain: Chain, other: Run) -> str | None:
    for line, got, expected in zip(chain.lines, chain.run.errors, other.errors, strict=True):
        if (got and got[0]) != (expected and expected[0]):
            return f"{line!r} raised {got}, not {expected}"
    return None


def _different_states(chain: Chain, other: Run, numbers: Callable) -> str | None:
    got, expected = state_of(chain.run, numbers, chain.grad), state_of(other, numbers, chain.grad)
    if set(got) != set(expected):
        return f"variables {sorted(got)}, not {sorted(expected)}"
    for name, facts in got.items():
        for fact, value in facts.items():
            wanted = expected[name].get(fact)
            if not (_equal(value, wanted) if fact == "values" else value == wanted):
                return f"{name}: {fact} is {value}, not {wanted}"
    return None


def _different_gradients(got: dict, expected: dict) -> str | None:
    if set(got) != set(expected):
        return f"backward gave {got}, not {expected}"
    for name, value in got.items():
        if not isinstance(value, str) and not _equal(value, expected[name]):
            return f"the gradient of {name} is {value}, not {expected[name]}"
    return None


def _equal(got: np.ndarray, expected: np.ndarray) -> bool:
    if got.shape != expected.shape:
        return False
    if got.dtype.kind in "fc":
        with np.errstate(all="ignore"):
            return bool(np.allclose(got, expected, rtol=1e-5 if got.dtype.itemsize > 2 else 1e-2, atol=1e-6, equal_nan=True))
    return bool(np.array_equal(got, expected))
