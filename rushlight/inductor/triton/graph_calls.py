"""Compiled calls as CUDA graphs: after a few runs a call is captured once for each set of inputs' sizes, and then replayed.

In: a callable over flat tensors that only launches kernels. Out: one that copies its inputs into the tensors that the capture
read, and replays. Parameters and other inputs that stay in place are read where they are. Results are copied out of the graph's
memory, so that they outlive the next replay. Stage: inductor, calling. """

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from rushlight.core.lazy_module import LazyModule
from rushlight.core.tensor import Tensor
from rushlight.core.tensor_impl import count_write
from rushlight.core.thread_state import state
from rushlight.cuda import runtime
from rushlight.ops.registry import aten

graphs, streams = map(LazyModule, ("rushlight.cuda.graphs", "rushlight.cuda.streams"))
_WARM_UP_CALLS = 2  # in the first call kernels are loaded; inputs that lie where they lay in the call before count as fixed
_MAX_CAPTURES = 16  # sets of sizes


class _Captured(NamedTuple):
    """A captured call: the graph, the copies of inputs by position, the addresses of other inputs, the positions of inputs that
    are written to, and the results."""

    graph: object
    static: dict[int, Tensor]
    fixed: dict[int, int]
    written: list[int]
    results: Sequence[object]


class GraphedCalls:
    """Runs a callable by CUDA graphs."""

    def __init__(self, run: Callable[..., tuple], index: int, constants: Sequence[Tensor]):
        self._run, self._index = run, index
        self._constants = constants
        self._constants_then: list[tuple] = []
        self._calls: dict[tuple, list[tuple[int, ...]]] = {}
        self._captured: dict[tuple, _Captured] = {}

    def __call__(self, *inputs: Tensor | int) -> tuple:
        """Return the flat outputs."""
        self._check_constants()
        key = tuple([_describe(value) for value in inputs])
        found = self._captured.get(key)
        if found is not None and all(inputs[position]._impl.data_ptr == address for position, address in found.fixed.items()):
            return self._replay(found, inputs)
        return self._run(*inputs) if graphs.is_current_stream_capturing() else self._warm_up(key, inputs)

    def _check_constants(self) -> None:
        """Forget all captures when a constant has changed: a graph may read results of loops over constants."""
        now = [(tensor._impl.version.value, tensor._impl.data_ptr) for tensor in self._constants]
        if now != self._constants_then:
            self._constants_then = now
            self._captured.clear()
            self._calls.clear()

    def _warm_up(self, key: tuple, inputs: tuple) -> tuple:
        addresses = tuple([value._impl.data_ptr if isinstance(value, Tensor) else 0 for value in inputs])
        calls = self._calls.setdefault(key, [])
        calls.append(addresses)
        if len(calls) <= _WARM_UP_CALLS or len(self._captured) >= _MAX_CAPTURES:
            return self._run(*inputs)
        fixed = {
            position: address for position, address in enumerate(addresses)
            if isinstance(inputs[position], Tensor) and all(call[position] == address for call in calls)
        }  # fmt: skip
        calls.clear()
        self._captured[key] = self._capture(inputs, fixed)
        return self._replay(self._captured[key], inputs)

    def _capture(self, inputs: tuple, fixed: dict[int, int]) -> _Captured:
        static = {
            position: aten("clone")(value.detach()) for position, value in enumerate(inputs)
            if isinstance(value, Tensor) and position not in fixed
        }  # fmt: skip
        graph = graphs.CUDAGraph()
        with runtime.on_device(self._index), graphs.graph(graph):
            read = [static.get(position, value) for position, value in enumerate(inputs)]
            before = [_version(value) for value in read]
            results = self._run(*read)
        written = [position for position, value in enumerate(read) if _version(value) != before[position]]
        for position in written:
            read[position]._impl.version.value = before[position]  # nothing was written yet
        return _Captured(graph, static, fixed, written, results)

    def _replay(self, found: _Captured, inputs: tuple) -> tuple:
        for position, target in found.static.items():
            aten("copy_")(target, inputs[position].detach())
        found.graph.replay()
        for position in found.written:
            if position in found.static:
                aten("copy_")(inputs[position].detach(), found.static[position])
            else:
                count_write(inputs[position]._impl)
        given = {id(target): inputs[position] for position, target in found.static.items()}
        return tuple([_result(value, given, inputs) for value in found.results])


def _result(value: object, given: dict[int, Tensor], inputs: tuple) -> object:
    """Return a result outside of the graph's memory; an input that is a result is the caller's."""
    if not isinstance(value, Tensor) or any(value is each for each in inputs):
        return value
    return given[id(value)] if id(value) in given else aten("clone")(value.detach())


def _version(value: Tensor | int) -> int:
    return value._impl.version.value if isinstance(value, Tensor) else 0


def _describe(value: Tensor | int) -> object:
    if not isinstance(value, Tensor):
        return value
    impl = value._impl
    return impl.sizes, impl.strides, impl.dtype, state.inference
