"""Data-dependent operators: their sizes and integers are known only when the graph runs.

In: a node that needs values (`nonzero`, `x[mask]`, `item()`). Out: its fake result, with a new symbol for each number that the
values decide. For hints of these symbols the graph so far runs once, on copies of the real inputs.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from rushlight.autograd.grad_mode import no_grad
from rushlight.core.algebra import as_expr
from rushlight.core.dtype import bool_, int64, uint8
from rushlight.core.generator import default_generator
from rushlight.core.symbolic import Relation, ShapeEnv, SymInt
from rushlight.core.symbolic.relations import at_least
from rushlight.core.tensor import Tensor
from rushlight.core.thread_state import state
from rushlight.fx.fake_tensor import DataDependentError, FakeTensorMode, needs_values
from rushlight.fx.node import Node, map_arg
from rushlight.ops.dispatcher import OpOverload
from rushlight.ops.meta.vision import check_nms
from rushlight.ops.modes import DispatchMode
from rushlight.ops.packet import namespaces

aten = namespaces.namespace("aten")
_THREAD_STATE = ("include", "exclude", "modes", "autocast", "grad_enabled", "inference")


class UnknownValues:
    """Follows nodes that need values. In its methods, `real_input` returns the real value of a placeholder or attribute."""

    def __init__(self, environment: ShapeEnv, fakes: FakeTensorMode) -> None:
        self.environment = environment
        self.fakes = fakes
        self._real: dict[Node, Any] = {}

    def follow(self, node: Node, run: Callable[[Node], Any], real_input: Callable[[Node], Any]) -> Any:
        """Return the fake result of a node, computed by `run`. DataDependentError if an operator needs values that have no
        symbol."""
        counts = self._counts_of_node(node, real_input)
        self.fakes.of_values = functools.partial(self._result, counts)
        self.fakes.new_size = self._new_size
        try:
            result = run(node)
        finally:
            self.fakes.of_values = self.fakes.new_size = None
        self._learn_sizes(result, self._real[node])
        node.meta["of_values"] = True
        return result

    def number(self, node: Node, real_input: Callable[[Node], Any]) -> int | float:
        """Return the number that a node computes for the example inputs."""
        self._run_before(node, real_input)
        return self._run(node, real_input)

    def _counts_of_node(self, node: Node, real_input: Callable[[Node], Any]) -> Iterator[list[int]]:
        """Return for each data-dependent operator of a node the numbers that the example's values decide."""
        self._run_before(node, real_input)
        recorder = _Recorder()
        with recorder:
            self._run(node, real_input)
        return iter(recorder.counts)

    def _run_before(self, last: Node, real_input: Callable[[Node], Any]) -> None:
        """Run the nodes before a node on example values, each once."""
        for node in last.graph.nodes:
            if node is last:
                return
            if node not in self._real and node.op != "output":
                self._run(node, real_input)

    def _run(self, node: Node, real_input: Callable[[Node], Any]) -> Any:
        """Run a node on example values."""
        if node.op in ("placeholder", "get_attr"):
            real = real_input(node)
            made = real.detach().clone() if isinstance(real, Tensor) else real
        else:
            args, kwargs = (map_arg(given, self._real.__getitem__) for given in (node.args, node.kwargs))
            function = node.target
            if node.op == "call_method":
                function, *args = getattr(args[0], node.target), *args[1:]
            with _restore_thread_state():
                made = function(*args, **kwargs)
        self._real[node] = made
        return made

    def _new_size(self, least: int, most: int | None) -> SymInt:
        """Return a size symbol that a user's fake rule asks for; its hint is set from the real result."""
        size = self.environment.create_unknown(max(least, 2), least)
        if most is not None:
            self.environment.learn(at_least(as_expr(most), size.expr))
        return size

    def _learn_sizes(self, fake: Any, real: Any) -> None:
        """Set the hints of unknown sizes to the real tensor's sizes."""
        if isinstance(fake, Tensor):
            for size, number in zip(fake._impl.sizes, real.shape, strict=True):
                if type(size) is SymInt and size.is_unknown:
                    self.environment.set_hint(size.expr, number)
        elif isinstance(fake, list | tuple):
            for one, other in zip(fake, real, strict=True):
                self._learn_sizes(one, other)

    def _result(self, counts: Iterator[list[int]], op: OpOverload, args: list, kwargs: dict) -> Any:
        rule = FAKE_RESULTS.get(op._opname)
        found = next(counts, None)
        if rule is None or found is None:
            raise DataDependentError(f"{op} needs the values of a tensor, which are not known while a program is captured")
        stack = op.normalize(args, kwargs)
        return rule(self.environment, found, *stack)


@contextmanager
def _restore_thread_state() -> Iterator[None]:
    """Context manager: in the block, changes of the thread's state and of the random number generator are undone at the end."""
    before = {name: getattr(state, name) for name in _THREAD_STATE}
    numbers = default_generator.get_state()
    state.modes = [mode for mode in state.modes if isinstance(mode, _Recorder)]
    try:
        with no_grad():
            yield
    finally:
        default_generator.set_state(numbers)
        for name, value in before.items():
            setattr(state, name, value)


class _Recorder(DispatchMode):
    """Records, for each data-dependent operator, the numbers that the values decide."""

    def __init__(self) -> None:
        self.counts: list[list[int]] = []

    def __torch_dispatch__(self, op: OpOverload, types: tuple, args: tuple, kwargs: dict) -> Any:
        result = op(*args, **kwargs)
        if needs_values(op, args):
            self.counts.append(_counts_of_result(op, op.normalize(args, kwargs), result))
        return result


def _counts_of_result(op: OpOverload, stack: list, result: Any) -> list[int]:
    """Return the numbers in a result that depend on values: sizes, or the item."""
    if op._opname == "index":
        return [int(index.count_nonzero()) for index in stack[1] if _is_mask(index)]
    if op._opname in ("nonzero", "nms"):
        return [result.shape[0]]
    if isinstance(result, tuple | list):
        return [result[0].shape[stack[1] if op._opname == "unique_dim" else 0 if stack[-1] is None else stack[-1]]
                if op._opname != "_unique2" else result[0].shape[0]]  # fmt: skip
    return [result]


def _is_mask(index: Any) -> bool:
    return isinstance(index, Tensor) and index.dtype in (bool_, uint8)


def _nonzero(environment: ShapeEnv, counts: list[int], self: Tensor) -> Tensor:
    return aten.empty.memory_format([environment.create_unknown(counts[0]), self.dim()], dtype=int64)


def _index(environment: ShapeEnv, counts: list[int], self: Tensor, indices: list) -> Tensor:
    """Return a mask acts like as many index lists as it has dimensions."""
    lists, found = [], iter(counts)
    for index in indices:
        if _is_mask(index):
            one = aten.empty.memory_format([environment.create_unknown(next(found))], dtype=int64)
            lists += [one] * index.dim()
        else:
            lists.append(index)
    return aten.index.Tensor(self, lists)


def _nms(environment: ShapeEnv, counts: list[int], dets: Tensor, scores: Tensor, iou_threshold: float) -> Tensor:
    check_nms(dets, scores)
    kept = environment.create_unknown(counts[0])
    environment.learn(at_least(as_expr(dets.size(0)), kept.expr))
    return aten.empty.memory_format([kept], dtype=int64)


def _unique(environment: ShapeEnv, counts: list[int], self: Tensor, sorted: bool, inverse: bool, count: bool) -> tuple:
    many = environment.create_unknown(counts[0])
    return _unique_outputs(self, [many], many, self.shape if inverse else (0,), count)


def _unique_dim(
    environment: ShapeEnv, counts: list[int], self: Tensor, dim: int, sorted: bool, inverse: bool, count: bool
) -> tuple:
    many = environment.create_unknown(counts[0])
    sizes = list(self.shape)
    sizes[dim] = many
    return _unique_outputs(self, sizes, many, (self.shape[dim],) if inverse else (0,), count)


def _unique_consecutive(
    environment: ShapeEnv, counts: list[int], self: Tensor, inverse: bool, count: bool, dim: int | None
) -> tuple:
    if dim is not None:
        return _unique_dim(environment, counts, self, dim, False, inverse, count)
    return _unique(environment, counts, self, False, inverse, count)


def _unique_outputs(self: Tensor, sizes: list, many: SymInt, inverse: tuple, count: bool) -> tuple:
    """Return the fake outputs of `unique`: values, inverse indices and counts."""
    lengths = [many] if count else [0]
    return (
        self.new_empty(sizes), aten.empty.memory_format(inverse, dtype=int64), aten.empty.memory_format(lengths, dtype=int64)
    )  # fmt: skip


def _integer(environment: ShapeEnv, counts: list[int], self: Tensor) -> SymInt:
    if self.dtype.is_floating_point or self.dtype.is_complex or self.dtype is bool_:
        raise DataDependentError(f"Tensor.item() of a tensor of {self.dtype} needs its value")
    return environment.create_unknown(counts[0], None)


FAKE_RESULTS: dict[str, Callable] = {
    "nonzero": _nonzero, "index": _index, "_unique2": _unique, "unique_dim": _unique_dim,
    "unique_consecutive": _unique_consecutive, "_local_scalar_dense": _integer,
    "nms": _nms,
}  # fmt: skip


_TESTS = {"==": lambda value: value == 0, "!=": lambda value: value != 0, ">=": lambda value: value >= 0}


def check_relation(value: int, kind: str, message: str, error: type[Exception]) -> None:
    """Raise `error` with `message` unless `value kind 0`. A graph calls this to check an assumption about a number it
    computes."""
    if not _TESTS[kind](value):
        raise error(message)


check_relation._is_impure = True


def message_of(relation: Relation) -> str:
    """Return the message for an assumed relation that does not hold at run time."""
    return f"Runtime assertion failed for expression {relation}: the graph was captured for values that satisfy it"


def rounded(number: float) -> int:
    """Compute `int(number)` as a node of graphs."""
    return math.trunc(number)
