"""Pieces: straight-line sequences of tensor operators with dynamic sizes.

In: nodes, and the known facts about the tensors and numbers that they take. Out: the kinds of their results, found by running
them on fake tensors, and graphs: a general one, and others specialised for sizes of 0 and 1 that may occur.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice, product

from rushlight.autograd.grad_mode import no_grad
from rushlight.compiler.passes import for_fusion
from rushlight.compiler.scripted.regions import Unsupported, run_nodes
from rushlight.compiler.scripted.typed import Number
from rushlight.core.algebra import Var
from rushlight.core.dtype import bool_, float64, int64
from rushlight.core.symbolic import ShapeEnv, SymInt
from rushlight.core.tensor import Tensor
from rushlight.deploy.direct.values import Kind, Operand, Plan, Shape, size_of
from rushlight.fx.graph_module import GraphModule
from rushlight.fx.proxy_tensor import capture
from rushlight.inductor.sizes import Size
from rushlight.jit.ir.graph import Node, Value
from rushlight.jit.types import kinds as types
from rushlight.ops.registry import aten

_NUMBERS = {types.FLOAT: float64, types.BOOL: bool_, types.INT: int64}
_MAX_VARIANTS = 17  # maximal number of graphs per piece, including the general one
Key = Value | tuple[Value, int]
"""A result of a piece: a value, or an item of one that is a list."""


@dataclass(eq=False)
class Given:
    """An input of a piece. With `as_tensor`, a number is passed as a 0-dim tensor; without it, an int is passed as a size."""

    operand: Operand
    as_tensor: bool = False

    @property
    def key(self) -> tuple[Operand, bool]:
        """The identity of this input."""
        return self.operand, self.as_tensor


class Sizes:
    """Maps a plan's sizes to symbols of one capture. `fixed` are the sizes that are constants in this capture."""

    def __init__(self, plan: Plan, fixed: Mapping[Size, int]):
        self.plan, self.fixed = plan, fixed
        self.environment = ShapeEnv()
        self._symbols: dict[Size, SymInt | int] = {}
        self._back: dict[Var, Size] = {}

    def open(self, size: Size, least: int | None = 0) -> SymInt | int:
        """Return the capture's symbol for a size of the plan."""
        if isinstance(size, int):
            return size
        if size in self.fixed:
            return self.fixed[size]
        if size not in self._symbols:
            hint = max(self.plan.hint(size), 2)
            made = self._symbols[size] = self.environment.create_symbol(hint, size, share=False, least=least)
            self._back[made.expr] = size
        return self._symbols[size]

    def excluded(self) -> dict[Size, set[int]]:
        """Return the values 0 and 1 that the captured graph's guards exclude, by size."""
        found: dict[Size, set[int]] = {}
        for guard in self.environment.relations():
            free = guard.relation.expression.free_variables()
            if len(free) == 1 and free <= self._back.keys():
                (symbol,) = free
                wrong = {value for value in (0, 1) if not guard.relation.holds({symbol: value})}
                found.setdefault(self._back[symbol], set()).update(wrong)
        return found

    def implied(self, fixed: Mapping[Size, int]) -> dict[Size, int]:
        """Return the fixed sizes, plus sizes that follow from them, because the graph was captured with sizes that are
        expressions of others."""
        values = {symbol: fixed[size] for symbol, size in self._back.items() if size in fixed}
        found = dict(fixed)
        for symbol, expression in self.environment.replacements.items():
            if symbol in self._back and expression.free_variables() and expression.free_variables() <= values.keys():
                found[self._back[symbol]] = expression.evaluate(values)
        return found

    def back(self, size: SymInt | int) -> Size:
        """Return the plan's size for a size of the capture."""
        if type(size) is not SymInt:
            return size
        expression = self.environment.simplify(size.expr)
        found = expression.substitute({var: plan_size for var, plan_size in self._back.items()})
        return size_of(found)


def strides_of(sizes: Sequence[SymInt | int]) -> tuple[SymInt | int, ...]:
    """Return the strides of a contiguous tensor."""
    strides: list[SymInt | int] = []
    step: SymInt | int = 1
    for size in reversed(sizes):
        strides.append(step)
        step = step * size if type(size) is SymInt or size > 1 else step
    return tuple(reversed(strides))


def example_of(given: Given, sizes: Sizes) -> tuple[object, object]:
    """Return an example of an input, and its open sizes."""
    operand = given.operand
    if operand.kind.shape is not None and isinstance(operand.type, types.TensorType | types.OptionalType):
        opened = tuple(map(sizes.open, operand.kind.shape.sizes))
        known = [sizes.plan.hint(size) if size not in sizes.fixed else sizes.fixed[size] for size in operand.kind.shape.sizes]
        leaf = aten("empty.memory_format")([max(size, 0) for size in known], dtype=operand.kind.shape.dtype)
        is_open = any(type(size) is SymInt for size in opened)
        return leaf, (opened, strides_of(opened)) if is_open else None
    if given.as_tensor:
        return aten("empty.memory_format")([], dtype=_NUMBERS[operand.type]), None
    found = sizes.open(operand.kind.size, None)
    return (sizes.plan.hint(operand.kind.size), found) if type(found) is SymInt else (found, None)


def kinds_of(node: Node, arguments: Sequence[object], plan: Plan) -> list[object]:
    """Return a Kind, a list of Kinds or a known value for each result of a node. `arguments` have the form that the operator
    takes, with a `Given` for each value known only at run time."""
    sizes = Sizes(plan, {})
    inputs: dict[object, Given] = {}
    collect(arguments, inputs)
    examples = [example_of(given, sizes) for given in inputs.values()]
    found: list[object] = []

    def run(*leaves: object) -> tuple:
        given = dict(zip(inputs, leaves, strict=True))
        local = dict(zip(node.inputs, [argument_of(each, given, {}) for each in arguments], strict=True))
        run_nodes([node], local, in_place=True)
        found.extend(_kind_of(local[value], sizes) for value in node.outputs)
        return ()

    with no_grad():
        capture(run, tuple(leaf for leaf, _ in examples), open_leaves=[opened for _, opened in examples])
    return found


def collect(argument: object, inputs: dict[object, Given]) -> None:
    """Collect the run-time inputs among arguments."""
    if isinstance(argument, list):
        for each in argument:
            collect(each, inputs)
    elif isinstance(argument, Given):
        inputs.setdefault(argument.key, argument)


def argument_of(argument: object, given: Mapping[object, object], values: Mapping[Value, object]) -> object:
    """Return an argument in the form that an operator takes."""
    if isinstance(argument, list):
        return [argument_of(each, given, values) for each in argument]
    if isinstance(argument, Given):
        found = given[argument.key]
        return Number(found) if argument.as_tensor else found
    return _value_at(values, argument.key) if isinstance(argument, ComputedInside) else argument


def _kind_of(value: object, sizes: Sizes) -> object:
    value = getattr(value, "tensor", value)
    if isinstance(value, Tensor):
        return Kind(Shape(value.dtype, tuple(map(sizes.back, value.shape))))
    if isinstance(value, list | tuple) and any(isinstance(each, Tensor) for each in value):
        return [_kind_of(each, sizes) for each in value]
    if type(value) is SymInt:
        return Kind(size=sizes.back(value))
    return value


@dataclass(eq=False)
class Piece:
    """Nodes that run together, their inputs, and the known facts about values from outside."""

    nodes: list[Node]
    inputs: dict[object, Given]
    arguments: dict[Node, list[object]]

    def captured(self, wanted: Sequence[Key], plan: Plan, fixed: Mapping[Size, int]) -> tuple[GraphModule, Sizes]:
        """Return the piece as a graph, and its sizes. `fixed` are the sizes to specialise."""
        sizes = Sizes(plan, fixed)
        examples = [example_of(given, sizes) for given in self.inputs.values()]
        keys = list(self.inputs)

        def run(*leaves: object) -> tuple:
            found = dict(zip(keys, leaves, strict=True))
            return tuple(_value_at(self._values(found), key) for key in wanted)

        with no_grad():
            module = capture(run, tuple(leaf for leaf, _ in examples), open_leaves=[opened for _, opened in examples]).module
            for graph_pass in for_fusion(fallback_random=False):
                graph_pass(module)
        return module, sizes

    def _values(self, given: Mapping[object, object]) -> dict[Value, object]:
        values: dict[Value, object] = {}
        for node in self.nodes:
            local = dict(zip(node.inputs, [argument_of(each, given, values) for each in self.arguments[node]], strict=True))
            run_nodes([node], local, in_place=True)
            for value in node.outputs:
                values[value] = getattr(local[value], "tensor", local[value])
        return values


def variants(general: Sizes) -> Iterator[dict[Size, int]]:
    """Yield the fixed sizes of each specialised graph: the values 0 and 1 that may occur and that the general graph excludes,
    singly and combined."""
    rows, plan = [], general.plan
    for size, values in general.excluded().items():
        possible = values & {0, 1} & (plan.small[size] if isinstance(size, Var) else {0, 1})
        if possible:
            rows.append([(size, value) for value in (None, *sorted(possible))])
    for chosen in islice(product(*rows), 1, _MAX_VARIANTS):
        yield general.implied({size: value for size, value in chosen if value is not None})


@dataclass(frozen=True, eq=False)
class ComputedInside:
    """Stands for an argument that the piece itself computes."""

    key: Key


def _value_at(values: Mapping[Value, object], key: Key) -> object:
    return values[key[0]][key[1]] if isinstance(key, tuple) else values[key]


def check_tensor(value: object) -> None:
    """Raise Unsupported for anything but a tensor."""
    if not isinstance(value, Kind) or value.shape is None:
        raise Unsupported("an operator with a result that is no tensor")
