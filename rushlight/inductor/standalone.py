"""Standalone modules: a compiled graph that runs without its capture. A dumped `module.py` is one, to run, time and debug
alone.

In: C++ text, and its arguments and results. Out: a callable over tensors, and its time. Stage: inductor, apart from the calls.
"""

from __future__ import annotations

import ctypes
import statistics
import time
from collections.abc import Sequence
from dataclasses import dataclass

import rushlight._C as _C
from rushlight.core.device import CPU
from rushlight.core.dispatch_key import CPU_KEYS
from rushlight.core.dtype import from_name
from rushlight.core.storage import StorageImpl, allocate
from rushlight.core.tensor import Tensor, wrap
from rushlight.core.tensor_impl import TensorImpl
from rushlight.inductor.build import build
from rushlight.ops.packet import namespaces

aten = namespaces.namespace("aten")


@dataclass(frozen=True)
class Argument:
    """An input or constant of the program."""

    name: str
    size: tuple[int, ...]
    stride: tuple[int, ...]
    dtype: str


@dataclass(frozen=True)
class Result:
    """A result of the program: a view of memory number `memory`; `outputs` holds the memories' sizes in bytes."""

    memory: int
    size: tuple[int, ...]
    stride: tuple[int, ...]
    offset: int
    dtype: str


class StandaloneModule:
    """Builds the program on first use, through the same cache as `compile`."""

    def __init__(
        self, source: str, arguments: Sequence[Argument], constants: int, kept: Sequence[int], outputs: Sequence[int],
        results: Sequence[Result], sizes: Sequence[int] = (), passing_bytes: int = 0,
    ):  # fmt: skip
        """The last `constants` arguments are parameters. `kept` are the bytes of folded and packed constants, `passing_bytes`
        the scratch memory for packing."""
        self.source = source
        self.arguments = list(arguments)
        self.constants = constants
        self.kept = list(kept)
        self.outputs = list(outputs)
        self.results = list(results)
        self.sizes = list(sizes)
        self.passing_bytes = passing_bytes

    def random_arguments(self) -> list[Tensor]:
        """Return tensors like those the graph was compiled for: normal numbers, or zeros for other dtypes."""
        made = []
        for argument in self.arguments:
            tensor = aten.empty_strided.default(argument.size, argument.stride, dtype=from_name(argument.dtype))
            made.append(aten.normal_.default(tensor) if tensor.dtype.is_floating_point else aten.fill_.Scalar(tensor, 0))
        return made

    def __call__(self, arguments: Sequence[Tensor]) -> list[Tensor]:
        """Run on tensors that match `arguments`. RuntimeError for others, and for an index out of range."""
        run = _Run(self, arguments)
        run()
        return [_make_result(result, run.outputs[result.memory]) for result in self.results]

    def benchmark(self, times: int = 10, repeat: int = 10) -> float:
        """Print how long a call takes, and return its seconds: the median over `repeat` runs of `times` calls."""
        run = _Run(self, self.random_arguments())
        run()
        took = []
        for _ in range(repeat):
            begin = time.perf_counter()
            for _ in range(times):
                run()
            took.append((time.perf_counter() - begin) / times)
        median = statistics.median(took)
        print(f"{median * 1e6:.1f} us a call")
        return median


class _Run:
    """A program with its memory and arguments."""

    def __init__(self, module: StandaloneModule, arguments: Sequence[Tensor]):
        _check(module.arguments, arguments)
        library = build(module.source)
        sizes = (ctypes.c_int64 * len(module.sizes))(*module.sizes)
        arena_bytes = library.arena_bytes_for(sizes) if library.arena_bytes_for else library.arena_bytes
        self.outputs = [allocate(nbytes) for nbytes in module.outputs]
        self._held = [*arguments, *(allocate(nbytes) for nbytes in module.kept)]
        passing = allocate(module.passing_bytes)
        panels = [] if library.pack is None else [0]
        self._arena = _C.allocate(arena_bytes)
        self._entry = library.entry
        addresses = [tensor._impl.data_ptr if isinstance(tensor, Tensor) else tensor.data_ptr for tensor in self._held]
        for make in filter(None, (library.fold, library.pack)):
            _C.launch(make, [*addresses[len(arguments) - module.constants :], passing.data_ptr])
        outputs = [storage.data_ptr for storage in self.outputs]
        self._pointers = [*addresses, *panels, *outputs, self._arena.data_ptr, *module.sizes]

    def __call__(self) -> None:
        if _C.launch(self._entry, self._pointers):
            raise RuntimeError("an index is out of range")


def _check(expected: Sequence[Argument], given: Sequence[Tensor]) -> None:
    if len(given) != len(expected):
        raise RuntimeError(f"the module takes {len(expected)} tensors, got {len(given)}")
    for argument, tensor in zip(expected, given, strict=True):
        have = (tuple(tensor.shape), tuple(tensor.stride()), tensor.dtype.name, tensor.device)
        if have != (argument.size, argument.stride, argument.dtype, CPU):
            raise RuntimeError(
                f"{argument.name} must be a {argument.dtype} CPU tensor of size {list(argument.size)} and stride "
                f"{list(argument.stride)}, got {tensor.dtype} of size {list(tensor.shape)} and stride {list(tensor.stride())}"
            )


def _make_result(result: Result, storage: StorageImpl) -> Tensor:
    return wrap(TensorImpl(storage, result.size, result.stride, result.offset, from_name(result.dtype), CPU, CPU_KEYS))
