"""Optimizer steps on a GPU: one compiled graph updates all parameters of a group.

In: the function by which an optimizer updates one parameter, and rows of a parameter, its gradient and its state. Out: updated
tensors. Each step records the update of one row, in which Python numbers appear as they are now. The recorded operators and the
rows' sizes and dtypes choose a graph, which is compiled once, is kept, and takes the numbers as 0-dim tensors.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

from rushlight.autograd.grad_mode import set_grad_enabled
from rushlight.compiler import passes
from rushlight.compiler.logs import StageLog
from rushlight.compiler.open_numbers import open_form_in_graphs
from rushlight.compiler.settings import Settings
from rushlight.core.dtype import dtype
from rushlight.core.tensor import Tensor
from rushlight.core.tensor_impl import DataDependentError
from rushlight.cuda import runtime, tensors
from rushlight.fx.graph_module import GraphModule
from rushlight.fx.interpreter import Interpreter
from rushlight.fx.node import Node
from rushlight.fx.proxy_tensor import capture
from rushlight.inductor.codegen.triton.templates import Precision
from rushlight.inductor.triton.device import DeviceLauncher
from rushlight.inductor.triton.pieces import TritonCompiler
from rushlight.inductor.triton.tuning import limits_of
from rushlight.optim.device_steps import Row, Update, steps

_graphs: dict[tuple, Callable[..., tuple] | None] = {}
runtime.on_forget(_graphs.clear)


class _Number:
    """A number of a state, such as the count of steps, while an update is recorded: it is calculated with at once. It stands
    for a CPU tensor without dimensions, and is rounded like it."""

    is_cuda = False

    def __init__(self, value: float, kind: dtype):
        self._round = kind.numpy.type
        self._value = self._round(value)

    def item(self) -> float:
        """Return the number."""
        return self._value.item()

    def fill_(self, value: float) -> _Number:
        """Replace the number."""
        self._value = self._round(value)
        return self

    def add_(self, value: float) -> _Number:
        """Add to the number."""
        return self.fill_(self.item() + value)

    def mul_(self, factor: float) -> _Number:
        """Multiply the number."""
        return self.fill_(self.item() * factor)


class _OpenNumbers(Interpreter):
    """Runs a recorded update with tensors in place of its numbers."""

    def __init__(self, module: GraphModule, numbers: Iterator[Tensor]):
        super().__init__(module)
        self._numbers = numbers

    def call_function(self, target: Callable, args: tuple, kwargs: dict[str, Any]) -> Any:
        """Run an operator."""
        function = open_form_in_graphs(target)
        if function is None:
            return super().call_function(target, args, kwargs)
        opened = [next(self._numbers) if type(value) is float else value for value in args]
        return function(*opened, **{
            name: next(self._numbers) if type(value) is float else value for name, value in kwargs.items()
        })  # fmt: skip


def _numbers_of(module: GraphModule) -> list[float]:
    """Return the numbers of a recorded update that a graph takes as tensors, in the order in which they are read."""
    return [
        value for node in module.graph.nodes if node.op == "call_function" and open_form_in_graphs(node.target) is not None
        for value in (*node.args, *node.kwargs.values()) if type(value) is float
    ]  # fmt: skip


def _form_of(module: GraphModule) -> tuple:
    """Return what a recorded update does, without the numbers that a graph takes as tensors."""
    places: dict[Node, int] = {}
    form = []
    for node in module.graph.nodes:
        is_open = node.op == "call_function" and open_form_in_graphs(node.target) is not None
        facts = [_fact(value, places, is_open) for value in (*node.args, *node.kwargs.values())]
        form.append((node.op, node.target, tuple(node.kwargs), repr(facts)))
        places[node] = len(places)
    return tuple(form)


def _fact(value: object, places: dict[Node, int], is_open: bool) -> object:
    if isinstance(value, Node):
        return "node", places[value]
    if isinstance(value, list | tuple):
        return [_fact(item, places, is_open) for item in value]
    return "number" if is_open and type(value) is float else (type(value).__name__, value)


def _recorded(update: Update, row: Row, options: dict[str, Any]) -> tuple[GraphModule, dict[str, _Number]]:
    """Record the update of a row; return the graph, and the numbers of the row's state after it."""
    parameter, gradient, state = row
    numbers = {name: _Number(value.item(), value.dtype) for name, value in state.items() if _is_number(value)}
    there = {name: value for name, value in state.items() if name not in numbers}
    shared = {name: value for name, value in options.items() if isinstance(value, Tensor) and value.is_cuda}

    def run(parameter: Tensor, gradient: Tensor, there: dict[str, Any], shared: dict[str, Tensor]) -> tuple:
        update(parameter, gradient, {**there, **numbers}, {**options, **shared})
        return ()

    with set_grad_enabled(False):
        module = capture(run, (parameter.detach(), gradient.detach(), there, shared)).module
    return module, numbers


def _is_number(value: object) -> bool:
    return isinstance(value, Tensor) and not value.is_cuda and not value.dim()


def _tensors_of(row: Row) -> list[Tensor]:
    """Return the tensors of a row that its graph takes, in order."""
    parameter, gradient, state = row
    return [parameter, gradient, *[value for value in state.values() if isinstance(value, Tensor) and not _is_number(value)]]


def _plain(value: object) -> object:
    """Return an option with tensors as numbers, except a tensor on a GPU, for which the program shall not wait."""
    if isinstance(value, tuple | list):
        return type(value)([item.item() if isinstance(item, Tensor) else item for item in value])
    return value.item() if isinstance(value, Tensor) and not value.is_cuda else value


def step_rows(update: Update, rows: list[Row], options: dict[str, Any]) -> list[Row]:
    """Update rows of one device, those with the same numbers in their states together; return the rows that were left."""
    alike: dict[tuple, list[Row]] = {}
    for row in rows:
        known = tuple([(name, value.item()) if _is_number(value) else name for name, value in row[2].items()])
        alike.setdefault(known, []).append(row)
    options = {name: _plain(value) for name, value in options.items() if name != "params"}
    return [row for together in alike.values() if not _step_alike(update, together, options) for row in together]


def _step_alike(update: Update, rows: list[Row], options: dict[str, Any]) -> bool:
    """Update rows with the same numbers; False if there is no graph for them."""
    index = rows[0][0]._impl.device.index
    shared = [value for value in options.values() if isinstance(value, Tensor)]
    given = [tensor for row in rows for tensor in _tensors_of(row)]
    try:
        module, numbers = _recorded(update, rows[0], options)
    except DataDependentError:
        return False
    shapes = tuple([(t._impl.sizes, t._impl.strides, t._impl.dtype, t._impl.device) for t in (*given, *shared)])
    key = (type(update.__self__), _form_of(module), index, len(rows), shapes)
    if key not in _graphs:
        _graphs[key] = _compile(update, rows, options, _numbers_of(module), index)
    run = _graphs[key]
    if run is None:
        return False
    with runtime.on_device(index):
        given_numbers = [tensors.number(value, index) for value in _numbers_of(module)]
        run(*[tensor.detach() for tensor in (*given, *shared)], *given_numbers)
    for row in rows:
        for name, number in numbers.items():
            row[2][name].fill_(number.item())
    return True


def _compile(
    update: Update, rows: Sequence[Row], options: dict[str, Any], numbers: list[float], index: int
) -> Callable[..., tuple] | None:  # fmt: skip
    """Compile the update of all rows, with numbers as inputs; None if it has no form as one program."""
    shared = [value for value in options.values() if isinstance(value, Tensor)]
    given = [tensor for row in rows for tensor in _tensors_of(row)]
    if any(not tensor.is_non_overlapping_and_dense() or tensor.device.index != index for tensor in given):
        return None
    modules = [_recorded(update, row, options)[0] for row in rows]
    if any(_numbers_of(module) != numbers for module in modules):  # a number depends on the sizes
        return None

    def step(*values: Tensor) -> tuple:
        left, last = iter(values[: len(given)]), values[len(given) :]
        for row, module in zip(rows, modules, strict=True):
            own = [next(left) for _ in _tensors_of(row)]
            _OpenNumbers(module, iter(last[len(shared) :])).run(*own, *last[: len(shared)])
        return ()

    different = [tensors.number(0.5 + place, index) for place in range(len(numbers))]  # an input is no tensor that another is
    examples = [*[tensor.detach() for tensor in (*given, *shared)], *different]
    with set_grad_enabled(False):
        module = capture(step, tuple(examples)).module
        passes.run(passes.for_fusion(False), module, StageLog(Settings(), f"the step of {type(update.__self__).__name__}"))
        launcher = partial(DeviceLauncher, index=index)
        run, made = TritonCompiler(launcher, Precision("ieee"), limits=limits_of(index)).compile(module)
    return None if made.eager else run


steps.run = step_rows
