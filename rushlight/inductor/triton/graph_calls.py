"""Compiled calls as CUDA graphs: after a few runs a call is captured once for each set of inputs' sizes, and then replayed.

In: a callable over flat tensors that only launches kernels. Out: one that copies its inputs into the tensors that the capture
read, and replays. Parameters and other inputs that stay in place are read where they are. Results lie in the graph's memory.
Those that are still used when the graph is replayed again are moved to memory of their own first. Stage: inductor, calling. """

from __future__ import annotations

import weakref
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from threading import get_ident

from rushlight.core.lazy_module import LazyModule
from rushlight.core.storage import StorageImpl
from rushlight.core.tensor import Tensor
from rushlight.core.tensor_impl import count_write
from rushlight.core.thread_state import state
from rushlight.cuda import runtime, tensors
from rushlight.ops.registry import aten

graphs, streams = map(LazyModule, ("rushlight.cuda.graphs", "rushlight.cuda.streams"))
_WARM_UP_CALLS = 2  # in the first call kernels are loaded; inputs that lie where they lay in the call before count as fixed
_MAX_CAPTURES = 16  # sets of sizes


class _Lent:
    """Owns memory of a graph while results lie in it: the `buffer` of their storage. `readers` are the streams that use the
    graph's results."""

    __slots__ = ("data_ptr", "nbytes", "_memory", "_readers")

    def __init__(self, memory: object, readers: set[int]):
        self.data_ptr, self.nbytes, self._memory, self._readers = memory.data_ptr, memory.nbytes, memory, readers

    def record_stream(self, stream: int) -> None:
        """Keep the next replay from writing to the memory before the present work of a stream is done."""
        self._readers.add(stream)


@dataclass
class _Captured:
    """A captured call: the graph, the copies of inputs by position, the addresses of other inputs, the positions of inputs that
    are written to, and the results. `lent` are the storages of the last results, weakly, and `readers` the streams that use
    them."""

    graph: object
    static: dict[int, Tensor]
    fixed: dict[int, int]
    written: list[int]
    results: Sequence[object]
    lent: list[weakref.ref[StorageImpl]] = field(default_factory=list)
    readers: set[int] = field(default_factory=set)


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
        if graphs.is_current_stream_capturing() or any(map(_is_on_cpu, inputs)):
            return self._run(*inputs)
        key = get_ident(), *[_describe(value) for value in inputs]  # a thread's results are not overwritten by another's
        found = self._captured.get(key)
        if found is not None and all(inputs[position]._impl.data_ptr == address for position, address in found.fixed.items()):
            return self._replay(found, inputs)
        return self._warm_up(key, inputs)

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
            if isinstance(inputs[position], Tensor)
            and (_is_lent(inputs[position]) or all(call[position] == address for call in calls))
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
        _wait_for_readers(found, self._index)
        for position, target in found.static.items():
            aten("copy_")(target, inputs[position].detach())
        _take_back(found, self._index)
        found.graph.replay()
        found.readers.add(runtime.current_stream(self._index))
        for position in found.written:
            if position in found.static:
                aten("copy_")(inputs[position].detach(), found.static[position])
            else:
                count_write(inputs[position]._impl)
        return self._results(found, inputs)

    def _results(self, found: _Captured, inputs: tuple) -> tuple:
        """Return the results; an input that is a result is the caller's, and views of inputs and constants are copied."""
        given = {id(target): inputs[position] for position, target in found.static.items()}
        given |= {id(value): value for value in inputs if isinstance(value, Tensor)}
        others = {id(tensor._impl.storage) for tensor in (*found.static.values(), *self._constants)}
        others |= {id(value._impl.storage) for value in inputs if isinstance(value, Tensor)}
        storages: dict[int, StorageImpl] = {}

        def result(value: object) -> object:
            if not isinstance(value, Tensor) or id(value) in given:
                return given.get(id(value), value)
            if id(value._impl.storage) in others:
                return aten("clone")(value.detach())
            return _lend(value, storages, found)

        return tuple([result(value) for value in found.results])


def _is_lent(value: Tensor) -> bool:
    """Return whether a tensor lies in the memory of a graph, as it will after each replay: what a forward pass keeps for the
    backward pass."""
    return type(value._impl.storage.buffer) is _Lent


def _lend(value: Tensor, storages: dict[int, StorageImpl], found: _Captured) -> Tensor:
    """Return a tensor over a graph's memory; `storages` are those of the other results by the captured ones."""
    impl, own = value._impl, value._impl.storage
    made = storages.get(id(own))
    if made is None:
        made = storages[id(own)] = StorageImpl(_Lent(own.buffer, found.readers), own.nbytes, own.device, own.data_ptr)
        found.lent.append(weakref.ref(made))
    return tensors.over(made, impl.sizes, impl.strides, impl.storage_offset, impl.dtype)


def _wait_for_readers(found: _Captured, index: int) -> None:
    """Let the current stream wait for the streams that use a graph's results."""
    for stream in found.readers - {runtime.current_stream(index)}:
        runtime.let_wait(index, stream)


def _take_back(found: _Captured, index: int) -> None:
    """Make a graph's memory free for the next replay: results that are still used are moved to memory of their own. Streams
    that use them wait for that."""
    moved = False
    for lent in found.lent:
        storage = lent()
        if storage is not None and type(storage.buffer) is _Lent:
            tensors.move_storage(storage)
            moved = True
    found.lent.clear()
    for stream in found.readers - {runtime.current_stream(index)} if moved else ():
        runtime.let_others_wait(index, stream)
    found.readers.clear()


def _is_on_cpu(value: Tensor | int) -> bool:
    """Return whether a value is a CPU tensor, which has no dimensions: a graph would keep the number that it has now."""
    return isinstance(value, Tensor) and value._impl.device.type == "cpu"


def _version(value: Tensor | int) -> int:
    return value._impl.version.value if isinstance(value, Tensor) else 0


def _describe(value: Tensor | int) -> object:
    if not isinstance(value, Tensor):
        return value
    impl = value._impl
    return impl.sizes, impl.strides, impl.dtype, impl.device, state.inference
