"""`torch.cuda.graphs`: work that is captured once and launched many times at the cost of one launch.

A graph replays kernels with the addresses that they had. So its memory comes from a pool that nothing else uses while the graph
lives, and inputs are written to the tensors that the capture read.
"""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from typing import Any

from rushlight.autograd.backward import grad
from rushlight.autograd.function import Function
from rushlight.core.pytree import tree_flatten, tree_unflatten
from rushlight.core.tensor import Tensor
from rushlight.cuda import runtime
from rushlight.cuda.generators import CapturedDraws, DeviceGenerator, generator_of
from rushlight.cuda.streams import Stream, StreamContext, current_stream, require_device

__all__ = ["CUDAGraph", "graph", "graph_pool_handle", "is_current_stream_capturing", "make_graphed_callables"]

_CAPTURE_MODES = ("global", "thread_local", "relaxed")
_WARM_UP_RUNS = 3  # before a capture: kernels are loaded, and memory is at hand


def is_current_stream_capturing() -> bool:
    """Return whether the current stream's work is being captured; False without a GPU."""
    if not runtime.is_present():
        return False
    index = runtime.current_index()
    return runtime.device_at(index).driver.is_capturing(runtime.current_stream(index))


def graph_pool_handle() -> tuple[int, int]:
    """Return a pool of memory that several graphs may share, if they are not replayed at the same time."""
    require_device()
    return (0, runtime.new_pool())


class CUDAGraph:
    """A captured graph. Its capture is "relaxed" in CUDA's sense, whatever `capture_error_mode` says: the allocator may ask the
    driver for memory meanwhile. NotImplementedError for `keep_graph`."""

    def __init__(self, keep_graph: bool = False):
        if keep_graph:
            raise NotImplementedError("CUDAGraph(keep_graph=True): only the executable graph is kept; leave keep_graph out")
        require_device()
        self._executable: int | None = None
        self._pool: tuple[int, int] | None = None
        self._index = runtime.current_index()
        self._release: Callable[[], None] | None = None
        self._draws = CapturedDraws()

    def capture_begin(self, pool: tuple[int, int] | None = None, capture_error_mode: str = "global") -> None:
        """Capture the later work of the current stream, which must not be the default one."""
        if capture_error_mode not in _CAPTURE_MODES:
            raise RuntimeError(f"expected capture_error_mode in {_CAPTURE_MODES}, got {capture_error_mode!r}")
        if self._executable is not None:
            raise RuntimeError("This CUDAGraph instance already owns a captured graph: call reset() first")
        stream = current_stream()
        if not stream.cuda_stream:
            raise RuntimeError("CUDA graphs must be captured on a non-default stream.")
        self._index, self._pool = stream.device_index, pool or graph_pool_handle()
        found = runtime.device_at(self._index)
        found.allocator.retain_pool(self._pool[1])
        found.pool = self._pool[1]
        found.draws = self._draws = CapturedDraws()
        found.driver.begin_capture(stream.cuda_stream)

    def capture_end(self) -> None:
        """End the capture."""
        found = runtime.device_at(self._index)
        found.pool, found.draws = 0, None
        self._draws.end()
        driver, pool = found.driver, self._pool[1]
        self._executable = executable = driver.instantiate(driver.end_capture(current_stream().cuda_stream))

        def release() -> None:
            driver.destroy_executable(executable)
            found.allocator.release_pool(pool)

        self._release = weakref.finalize(self, release)

    def replay(self) -> None:
        """Put the captured work on the current stream."""
        if self._executable is None:
            raise RuntimeError("Called CUDAGraph::replay without a preceding successful capture.")
        found = runtime.device_at(self._index)
        self._draws.write()
        found.driver.launch_graph(self._executable, runtime.current_stream(self._index))

    def reset(self) -> None:
        """Release the captured graph and its memory."""
        if self._release is not None:
            self._release()
        self._executable = self._release = None
        self._draws = CapturedDraws()

    def register_generator_state(self, generator: DeviceGenerator) -> None:
        """Let a generator's numbers differ at each replay, as those of all generators do whose numbers the capture draws.
        RuntimeError for one of another device."""
        generator_of(self._index, generator)

    def pool(self) -> tuple[int, int]:
        """Return the pool of the graph's memory."""
        return self._pool


class graph:  # noqa: N801  (torch's name)
    """A context whose work on the GPU is captured in `cuda_graph` instead of being done."""

    def __init__(
        self, cuda_graph: CUDAGraph, pool: tuple[int, int] | None = None, stream: Stream | None = None,
        capture_error_mode: str = "global",
    ):  # fmt: skip
        self.cuda_graph, self.pool, self.capture_error_mode = cuda_graph, pool, capture_error_mode
        self.stream = Stream() if stream is None else stream

    def __enter__(self) -> None:
        runtime.wait_for_device(self.stream.device_index)
        gc.collect()
        self._stack = ExitStack()
        self._stack.enter_context(StreamContext(self.stream))
        self.cuda_graph.capture_begin(self.pool, self.capture_error_mode)

    def __exit__(self, *error: object) -> None:
        with self._stack:
            self.cuda_graph.capture_end()


def make_graphed_callables(
    callables: Callable | Sequence[Callable], sample_args: tuple, num_warmup_iters: int = _WARM_UP_RUNS,
    allow_unused_input: bool = False, pool: tuple[int, int] | None = None,
) -> Any:  # fmt: skip
    """Return functions or modules whose forward and backward are captured graphs. Arguments must be tensors of the sizes of the
    samples, which tell by `requires_grad` what gets gradients. RuntimeError if a result does not depend on one of these, unless
    `allow_unused_input`."""
    several = isinstance(callables, tuple | list)
    given = zip(callables, sample_args, strict=True) if several else [(callables, sample_args)]
    made = [_graphed(function, samples, num_warmup_iters, allow_unused_input, pool) for function, samples in given]
    return tuple(made) if several else made[0]


def _graphed(
    function: Callable, samples: tuple, warm_up: int, allow_unused: bool, pool: tuple[int, int] | None
) -> Callable:  # fmt: skip
    parameters = tuple(function.parameters()) if hasattr(function, "parameters") else ()
    inputs = (*samples, *parameters)
    wanted = [tensor for tensor in inputs if tensor.requires_grad]
    side = Stream()
    side.wait_stream(current_stream())
    with StreamContext(side):
        for _ in range(warm_up):
            results = [value for value in tree_flatten(function(*samples))[0] if value.requires_grad]
            if results and wanted:
                grad(results, wanted, [value.detach() * 0 + 1 for value in results], allow_unused=allow_unused)
    current_stream().wait_stream(side)
    ahead, back = CUDAGraph(), CUDAGraph()
    with graph(ahead, pool=pool):
        outputs, spec = tree_flatten(function(*samples))
    trained = [value for value in outputs if value.requires_grad]
    seeds = [value.detach() * 0 + 1 for value in trained]
    found: Sequence[Tensor | None] = ()
    if trained and wanted:
        with graph(back, pool=ahead.pool()):
            found = grad(trained, wanted, seeds, allow_unused=allow_unused)
    gradients = iter(found)
    by_input = [next(gradients) if tensor.requires_grad and found else None for tensor in inputs]

    class Graphed(Function):
        @staticmethod
        def forward(ctx: Any, *given: Tensor) -> tuple:
            for static, value in zip(samples, given, strict=False):
                if static.data_ptr() != value.data_ptr():
                    static.detach().copy_(value)
            ahead.replay()
            return tuple([value.detach() for value in outputs])

        @staticmethod
        def backward(ctx: Any, *gradients: Tensor) -> tuple:
            asked = [value for value, output in zip(gradients, outputs, strict=True) if output.requires_grad]
            for static, value in zip(seeds, asked, strict=True):
                if value is not None:
                    static.copy_(value)
            back.replay()
            return tuple([None if value is None else value.detach() for value in by_input])

    def run(*args: Tensor) -> Any:
        return tree_unflatten(list(Graphed.apply(*args, *parameters)), spec)

    if not hasattr(function, "parameters"):
        return run
    eager, trains = function.forward, function.training
    function.forward = lambda *args: run(*args) if function.training == trains else eager(*args)
    return function
