"""Functions of lists of tensors on a GPU as one graph each, such as `torch._foreach_mul_` and the clipping of gradients.

In: a function, tensors and numbers. Out: its results, by a graph that was compiled for the tensors' sizes, strides and dtypes.
Only what is called with the same ones a second time is compiled. Numbers become inputs of the graph where the function passes
them to operators as they are; else the graph holds them.
"""

from __future__ import annotations

import enum
import threading
from collections.abc import Callable, Hashable, Iterator, Sequence
from functools import partial
from itertools import chain
from typing import NamedTuple

from rushlight.autograd.grad_mode import set_grad_enabled
from rushlight.compiler import passes
from rushlight.compiler.logs import StageLog
from rushlight.compiler.open_graphs import OpenNumbers, form_of, numbers_of
from rushlight.compiler.settings import Settings
from rushlight.core.dtype import dtype
from rushlight.core.strides import is_non_overlapping_and_dense
from rushlight.core.tensor import Tensor
from rushlight.core.tensor_impl import TensorImpl, count_write
from rushlight.cuda import runtime, tensors
from rushlight.fx.graph_module import GraphModule
from rushlight.fx.proxy_tensor import capture
from rushlight.inductor.codegen.triton.templates import Precision
from rushlight.inductor.triton.device import DeviceLauncher
from rushlight.inductor.triton.graph import TritonGraph
from rushlight.inductor.triton.pieces import TritonCompiler
from rushlight.inductor.triton.tuning import limits_of
from rushlight.ops.together import Function, together


class _State(enum.Enum):
    """What is known about a call without a graph: it happened once, it has none, or its numbers belong to its key."""

    CALLED = 1
    HOPELESS = 2
    CLOSED = 3


class _ListGraph(NamedTuple):
    """A compiled function. `used` are the places of the numbers that it takes, `written` those of tensors that it writes to."""

    run: TritonGraph
    used: list[int]
    written: list[int]


_MAX_GRAPHS = 1024  # graphs and calls that are known; all are forgotten when there are more
_known: dict[tuple, _ListGraph | _State] = {}
_lock = threading.RLock()
runtime.on_forget(_known.clear)


def facts_of(impls: Sequence[TensorImpl]) -> tuple[list, ...]:
    """Return all that a graph depends on of its tensors."""
    return (
        [impl.sizes for impl in impls], [impl.strides for impl in impls], [impl.dtype for impl in impls],
        [impl.device for impl in impls],
    )  # fmt: skip


def run(function: Function, given: Sequence[Tensor], numbers: Sequence[float], options: Hashable) -> object:
    """Return function(given, numbers, options), calculated by one graph, or NotImplemented."""
    impls = [tensor._impl for tensor in given]
    if _share_memory(impls):
        return NotImplemented
    key = (function, options, len(numbers), *map(tuple, facts_of(impls)))
    found = _find(key, function, given, numbers, options, True)
    if found is _State.CLOSED:
        found = _find((*key, *numbers), function, given, numbers, options, False)
    if not isinstance(found, _ListGraph):
        return NotImplemented
    index = impls[0].device.index
    with runtime.on_device(index):
        held = [tensors.number(numbers[place], index) for place in found.used]
        results = found.run.run_at([impl.data_ptr for impl in chain(impls, [number._impl for number in held])])
    for place in found.written:
        count_write(impls[place])
    return results


together.run = run


def _share_memory(impls: Sequence[TensorImpl]) -> bool:
    """Return whether tensors have no memory, lie with gaps, or overlap: such calls run operator by operator."""
    if not all(is_non_overlapping_and_dense(impl.sizes, impl.strides) for impl in impls):
        return True
    end = 1
    for start, nbytes in sorted([(impl.data_ptr, impl.numel * impl.dtype.itemsize) for impl in impls]):
        if start < end:
            return True
        end = start + nbytes
    return False


def _find(
    key: tuple, function: Function, given: Sequence[Tensor], numbers: Sequence[float], options: Hashable, is_open: bool
) -> _ListGraph | _State:  # fmt: skip
    """Return the graph of a call; compile it if this is the second one."""
    found = _known.get(key)
    if isinstance(found, _ListGraph) or found in (_State.HOPELESS, _State.CLOSED):
        return found
    with _lock:
        if len(_known) >= _MAX_GRAPHS:
            _known.clear()
        _known[key] = _State.CALLED if found is None else _compile(function, given, numbers, options, is_open)
        return _known[key]


def _compile(
    function: Function, given: Sequence[Tensor], numbers: Sequence[float], options: Hashable, is_open: bool
) -> _ListGraph | _State:  # fmt: skip
    index, count = given[0]._impl.device.index, len(given)
    try:
        record = _Recorded.open if is_open else _Recorded.of
        recorded = record(function, given, numbers, options)
        if recorded is None:
            return _State.CLOSED
        used = sorted({place for place in recorded.places if place is not None})

        def step(*values: Tensor) -> tuple:
            opened = dict(zip(used, values[count:], strict=True))
            return OpenNumbers(recorded.module, recorded.values(opened)).run(*values[:count])

        different = [tensors.number(0.5 + place, index) for place in used]  # an input is no tensor that another is
        made = compile_lists(step, [*[tensor.detach() for tensor in given], *different], index, function.__name__)
    except Exception:  # the function is right, since it ran once, so it runs operator by operator
        return _State.HOPELESS
    if made is None or any(view.buffer not in made.program.outputs for view in made.lowered.outputs):
        return _State.HOPELESS
    if made.output_dtypes != recorded.output_dtypes():
        return _State.CLOSED if is_open else _State.HOPELESS
    inputs = [buffer.name for buffer in made.lowered.inputs]
    return _ListGraph(made, used, [inputs.index(write.target) for write in made.lowered.writes])


class _Recorded(NamedTuple):
    """A function's operators as a graph. `numbers` are those in the graph that may be tensors, and `places` says which of the
    function's own each of them is; None for one of the function's constants."""

    module: GraphModule
    numbers: list[float]
    places: list[int | None]

    @classmethod
    def of(cls, function: Function, given: Sequence[Tensor], numbers: Sequence[float], options: Hashable) -> _Recorded:
        """Record a call of a function."""
        run = lambda *values: function(values, numbers, options)  # noqa: E731
        with set_grad_enabled(False):
            module = capture(run, tuple([tensor.detach() for tensor in given])).module
        found = numbers_of(module)
        return cls(module, found, [None] * len(found))

    @classmethod
    def open(
        cls, function: Function, given: Sequence[Tensor], numbers: Sequence[float], options: Hashable
    ) -> _Recorded | None:  # fmt: skip
        """Record a call so that its numbers may change. None if the function calculates with them: then they are not those of
        its operators."""
        trials = [[start + place for place in range(len(numbers))] for start in (0.59375, 1024.28125)]
        first, second = (cls.of(function, given, trial, options) for trial in trials)
        if form_of(first.module) != form_of(second.module):
            return None
        places: list[int | None] = []
        for pair in zip(first.numbers, second.numbers, strict=True):
            place = next((place for place, values in enumerate(zip(*trials, strict=True)) if values == pair), None)
            if place is None and pair[0] != pair[1]:
                return None
            places.append(place)
        return cls(first.module, first.numbers, places)

    def values(self, opened: dict[int, Tensor]) -> Iterator[Tensor | float]:
        """Return what the graph reads in place of its numbers."""
        return (value if place is None else opened[place] for value, place in zip(self.numbers, self.places, strict=True))

    def output_dtypes(self) -> list[dtype]:
        """Return the dtypes of the function's results."""
        (output,) = (node for node in self.module.graph.nodes if node.op == "output")
        return [node.meta["val"].dtype for node in output.args[0]]


def compile_lists(step: Callable[..., tuple], examples: Sequence[Tensor], index: int, title: str) -> TritonGraph | None:
    """Compile a function of tensors of one device; None if it has no form as one program. The caller counts its writes."""
    with set_grad_enabled(False):
        module = capture(step, tuple(examples)).module
        passes.run(passes.for_fusion(False), module, StageLog(Settings(), title))
        launcher = partial(DeviceLauncher, index=index)
        compiler = TritonCompiler(launcher, Precision("ieee"), counts_writes=False, limits=limits_of(index))
        run, made = compiler.compile(module)
    return run if isinstance(run, TritonGraph) and not made.eager else None
