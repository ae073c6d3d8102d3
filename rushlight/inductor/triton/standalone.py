"""Standalone programs for GPUs: a file of a program's text runs without its graph's capture, to run, time and debug it alone.

In: the file's functions, its kernels' parameters, and its arguments and results. Out: a callable over device tensors, and its
time. Stage: inductor, apart from the calls.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Sequence
from typing import Any, NamedTuple

from rushlight.core.device import device, present_device
from rushlight.core.dtype import from_name
from rushlight.core.tensor import Tensor
from rushlight.cuda import runtime, tensors
from rushlight.inductor.standalone import Argument, Result
from rushlight.inductor.triton.device import DeviceLauncher
from rushlight.inductor.triton.launcher import Memory
from rushlight.ops.packet import namespaces

aten = namespaces.namespace("aten")


class Kernel(NamedTuple):
    """A kernel's parameters, as pairs of name and type, and the options of its compilation."""

    parameters: Sequence[tuple[str, str]]
    options: dict[str, Any]


class Kernels(NamedTuple):
    """The kernels of a file, in the place of a program for a launcher."""

    kernels: dict[str, Kernel]
    launches: tuple = ()
    kernel_source: str = ""


class StandaloneProgram:
    """Runs a file's program on the current device."""

    def __init__(
        self, functions: dict[str, Any], kernels: dict[str, Kernel], arguments: Sequence[Argument], constants: int,
        results: Sequence[Result], sizes: Sequence[int] = (),
    ):  # fmt: skip
        """`functions` are the file's globals, of which `call` and `fold` launch kernels. The last `constants` arguments are
        parameters."""
        self._functions, self._kernels = functions, Kernels(kernels)
        self.arguments, self.constants = list(arguments), constants
        self.results, self.sizes = list(results), list(sizes)

    def random_arguments(self) -> list[Tensor]:
        """Return tensors like those the graph was compiled for: normal numbers, or zeros for other dtypes."""
        made = []
        for argument in self.arguments:
            tensor = tensors.empty(argument.size, from_name(argument.dtype), _device().index, argument.stride)
            made.append(aten.normal_.default(tensor) if tensor.dtype.is_floating_point else aten.fill_.Scalar(tensor, 0))
        return made

    def __call__(self, arguments: Sequence[Tensor]) -> list[Tensor]:
        """Run on tensors that match `arguments`. RuntimeError for others."""
        launcher = self._launcher()
        made = self._run(launcher, arguments, self._folded(launcher, arguments))
        return [
            launcher.tensor(made[result.memory], result.size, result.stride, result.offset, from_name(result.dtype))
            for result in self.results
        ]

    def benchmark(self, times: int = 10, repeat: int = 10) -> float:
        """Print how long a call takes, and return its seconds: the median over `repeat` runs of `times` calls, after each of
        which the host waits for the device."""
        launcher, given = self._launcher(), self.random_arguments()
        folded = self._folded(launcher, given)
        self._run(launcher, given, folded)
        runtime.wait_for_device(launcher.index)
        took = []
        for _ in range(repeat):
            begin = time.perf_counter()
            for _ in range(times):
                self._run(launcher, given, folded)
            runtime.wait_for_device(launcher.index)
            took.append((time.perf_counter() - begin) / times)
        median = statistics.median(took)
        print(f"{median * 1e6:.1f} us a call")
        return median

    def _launcher(self) -> DeviceLauncher:
        return DeviceLauncher(self._kernels, self._functions["__name__"], _device().index, self._functions)

    def _folded(self, launcher: DeviceLauncher, arguments: Sequence[Tensor]) -> Sequence[Memory]:
        """Return the results of loops over the constants."""
        _check(self.arguments, arguments, launcher.index)
        constants = arguments[len(arguments) - self.constants :]
        return self._functions["fold"](launcher, *map(launcher.address, constants)) if "fold" in self._functions else ()

    def _run(self, launcher: DeviceLauncher, arguments: Sequence[Tensor], folded: Sequence[Memory]) -> Sequence[Memory]:
        addresses = [*map(launcher.address, arguments), *(memory.data_ptr for memory in folded)]
        return self._functions["call"](launcher, *addresses, *self.sizes)


def _device() -> device:
    """Return the current device."""
    return present_device("cuda")


def _check(expected: Sequence[Argument], given: Sequence[Tensor], index: int) -> None:
    if len(given) != len(expected):
        raise RuntimeError(f"the module takes {len(expected)} tensors, got {len(given)}")
    for argument, tensor in zip(expected, given, strict=True):
        have = (tuple(tensor.shape), tuple(tensor.stride()), tensor.dtype.name, tensor.is_cuda)
        if have != (argument.size, argument.stride, argument.dtype, True):
            raise RuntimeError(
                f"{argument.name} must be a {argument.dtype} tensor on cuda:{index} of size {list(argument.size)} and stride "
                f"{list(argument.stride)}, got {tensor.dtype} of size {list(tensor.shape)} and stride {list(tensor.stride())} "
                f"on {tensor.device}"
            )
