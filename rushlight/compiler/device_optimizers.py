"""Optimizer steps on a GPU: one compiled graph updates all parameters of a group.

In: the function by which an optimizer updates one parameter, and rows of a parameter, its gradient and its state. Out: updated
tensors. The recorded update of a row, and the rows' sizes and dtypes, choose a graph, which is compiled once and kept. It takes
the update's numbers as 0-dim tensors. A `_Plan` holds what later steps of rows like these need.
"""

from __future__ import annotations

import weakref
from collections.abc import Sequence
from itertools import chain
from typing import Any

from rushlight.compiler.device_lists import compile_lists, facts_of
from rushlight.compiler.open_graphs import OpenNumbers
from rushlight.compiler.recorded_updates import RecordedUpdate, is_number
from rushlight.core.tensor import Tensor
from rushlight.core.tensor_impl import DataDependentError, TensorImpl, count_write
from rushlight.core.thread_state import state as thread
from rushlight.cuda import runtime, tensors
from rushlight.inductor.triton.graph import TritonGraph
from rushlight.optim.device_steps import Row, Update, steps

_MAX_PLANS = 8  # the most plans of one optimizer: one for each set of parameters that have gradients
_graphs: dict[tuple, TritonGraph | None] = {}
_plans: weakref.WeakKeyDictionary[object, list[_Plan]] = weakref.WeakKeyDictionary()
runtime.on_forget(_graphs.clear)
runtime.on_forget(_plans.clear)


def _values_of(rows: Sequence[Row]) -> list[TensorImpl]:
    """Return the tensors of rows, row by row, the numbers of states among them."""
    found: list[TensorImpl] = []
    for parameter, gradient, state in rows:
        found += (parameter._impl, gradient._impl)
        found += [value._impl for value in state.values() if isinstance(value, Tensor)]
    return found


def _plain(value: object) -> object:
    """Return an option with tensors as numbers, except a tensor on a GPU, for which the program shall not wait."""
    if isinstance(value, tuple | list):
        return type(value)([item.item() if isinstance(item, Tensor) else item for item in value])
    return value.item() if isinstance(value, Tensor) and not value.is_cuda else value


class _Plan:
    """Steps of rows of one device whose states have the same numbers. `recorded` is the update of the first one. `run` takes
    the tensors of all rows, then those of the options, then the update's numbers."""

    def __init__(self, rows: list[Row], options: dict[str, Any], recorded: RecordedUpdate, run: TritonGraph):
        self._recorded, self._run = recorded, run
        self._index = rows[0][0]._impl.device.index
        self._names = [tuple(row[2]) for row in rows]
        self._shared, self._options = _apart(options)
        impls = _values_of(rows)
        self._facts, self._shared_facts = facts_of(impls), facts_of(self._shared)
        is_held = [not _is_number_impl(impl) for impl in impls]
        self._held = [place for place, held in enumerate(is_held) if held]
        self._counts = [place for place, held in enumerate(is_held) if not held]
        self._count_names = [name for name, value in rows[0][2].items() if is_number(value)]
        self._numbers = recorded.numbers
        inputs = [buffer.name for buffer in run.lowered.inputs]
        self._written = [inputs.index(write.target) for write in run.lowered.writes]

    def step(self, update: Update, rows: list[Row], options: dict[str, Any]) -> bool:
        """Update rows. Return False, and leave them, if they or the options are not like those that the plan was made for."""
        impls = _values_of(rows)
        if facts_of(impls) != self._facts or [tuple(row[2]) for row in rows] != self._names:
            return False
        shared, plain = _apart(options)
        if facts_of(shared) != self._shared_facts:
            return False
        counts = [impls[place] for place in self._counts]
        if not self._is_alike(counts):
            return False
        if counts or plain != self._options:
            if not self._find_numbers(update, counts, options):
                return False
            self._options = plain
        with runtime.on_device(self._index):
            return self._launch([*[impls[place] for place in self._held], *shared], counts)

    def _is_alike(self, counts: list[TensorImpl]) -> bool:
        """Return whether the states of all rows have the same numbers."""
        columns, values = len(self._count_names), [float(impl.array) for impl in counts]
        return all(values[column::columns] == [values[column]] * (len(values) // columns) for column in range(columns))

    def _find_numbers(self, update: Update, counts: list[TensorImpl], options: dict[str, Any]) -> bool:
        """Calculate the update's numbers; False if it calls other operators now."""
        first = zip(self._count_names, counts, strict=False)
        numbers = self._recorded.replay(update, {name: (impl.array.item(), impl.dtype) for name, impl in first}, options)
        if numbers is not None:
            self._numbers = numbers
        return numbers is not None

    def _launch(self, given: list[TensorImpl], counts: list[TensorImpl]) -> bool:
        numbers = [tensors.number(value, self._index) for value in self._numbers]
        written = [given[place] for place in self._written]
        addresses = [impl.data_ptr for impl in chain(given, [number._impl for number in numbers])]
        if 0 in addresses or (not thread.inference and any(impl.inference for impl in written)):
            return False
        self._run.run_at(addresses)
        for impl in written:
            count_write(impl)
        after = list(self._recorded.after.values())
        for place, impl in enumerate(counts):
            impl.array.fill(after[place % len(after)])
            count_write(impl)
        return True


def _is_number_impl(impl: TensorImpl) -> bool:
    return impl.device.type != "cuda" and not impl.sizes


def _apart(options: dict[str, Any]) -> tuple[list[TensorImpl], dict[str, Any]]:
    """Return the tensors among the options, and the other options."""
    shared = [value._impl for value in options.values() if isinstance(value, Tensor)]
    return shared, {name: value for name, value in options.items() if not isinstance(value, Tensor)}


def step_rows(update: Update, rows: list[Row], options: dict[str, Any]) -> list[Row]:
    """Update rows of one device, those with the same numbers in their states together; return the rows that were left."""
    options = {name: _plain(value) for name, value in options.items() if name != "params"}
    if _step_by_plan(update, rows, options):
        return []
    alike: dict[tuple, list[Row]] = {}
    for row in rows:
        known = tuple([(name, value.item()) if is_number(value) else name for name, value in row[2].items()])
        alike.setdefault(known, []).append(row)
    return [
        row for together in alike.values()
        if not _step_by_plan(update, together, options) and not _step_anew(update, together, options) for row in together
    ]  # fmt: skip


def _step_by_plan(update: Update, rows: list[Row], options: dict[str, Any]) -> bool:
    return any(plan.step(update, rows, options) for plan in _plans.get(update.__self__, ()))


def _step_anew(update: Update, rows: list[Row], options: dict[str, Any]) -> bool:
    """Update rows with the same numbers, and keep a plan of it; False if there is no graph for them."""
    try:
        recorded = RecordedUpdate(update, rows[0], options)
    except DataDependentError:
        return False
    index = rows[0][0]._impl.device.index
    shared, _ = _apart(options)
    facts = tuple(map(tuple, facts_of([*_values_of(rows), *shared])))
    key = (type(update.__self__), recorded.form, index, len(rows), facts)
    if key not in _graphs:
        _graphs[key] = _compile(update, rows, options, recorded.numbers, index)
    run = _graphs[key]
    if run is None:
        return False
    plan = _Plan(rows, options, recorded, run)
    plans = _plans.setdefault(update.__self__, [])
    plans[:] = [plan, *plans[: _MAX_PLANS - 1]]
    return plan.step(update, rows, options)


def _tensors_of(row: Row) -> list[Tensor]:
    """Return the tensors of a row that its graph takes, in order."""
    parameter, gradient, state = row
    return [parameter, gradient, *[value for value in state.values() if isinstance(value, Tensor) and not is_number(value)]]


def _compile(
    update: Update, rows: Sequence[Row], options: dict[str, Any], numbers: list[float], index: int
) -> TritonGraph | None:  # fmt: skip
    """Compile the update of all rows, with numbers as inputs; None if it has no form as one program."""
    shared = [value for value in options.values() if isinstance(value, Tensor)]
    given = [tensor for row in rows for tensor in _tensors_of(row)]
    if any(not tensor.is_non_overlapping_and_dense() or tensor.device.index != index for tensor in given):
        return None
    recorded = [RecordedUpdate(update, row, options) for row in rows]
    if any(each.numbers != numbers for each in recorded):  # a number depends on the sizes
        return None

    def step(*values: Tensor) -> tuple:
        left, last = iter(values[: len(given)]), values[len(given) :]
        for row, each in zip(rows, recorded, strict=True):
            own = [next(left) for _ in _tensors_of(row)]
            OpenNumbers(each.module, iter(last[len(shared) :])).run(*own, *last[: len(shared)])
        return ()

    different = [tensors.number(0.5 + place, index) for place in range(len(numbers))]  # an input is no tensor that another is
    examples = [*[tensor.detach() for tensor in (*given, *shared)], *different]
    return compile_lists(step, examples, index, f"the step of {type(update.__self__).__name__}")


steps.run = step_rows
