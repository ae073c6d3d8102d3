"""A launcher for devices: runs a program's kernels through the driver, on the current stream.

In: a program and a device. Out: launches. A kernel is compiled at its first launch for each choice of tile sizes, and for
whether all pointers, and all sizes, are multiples of 16, which allows wider loads.
"""

from __future__ import annotations

import functools
from collections import deque
from collections.abc import Sequence
from typing import Any

from rushlight.core.dtype import dtype
from rushlight.core.following import runs_as_it_is
from rushlight.core.lazy_module import LazyModule
from rushlight.core.storage import StorageImpl
from rushlight.core.tensor import Tensor
from rushlight.cuda import runtime, tensors
from rushlight.cuda.driver import Cubin, Kernel, KernelImage
from rushlight.inductor.codegen.triton.kernels import Launch
from rushlight.inductor.codegen.triton.program import TritonProgram
from rushlight.inductor.triton.planning import Planner

ahead, compiler, interpreter = map(LazyModule, (f"rushlight.inductor.triton.{n}" for n in ("ahead", "compiler", "interpreter")))
_ALIGNMENT = 16
_KEPT_COPIES = 64  # CPU numbers that one call of a program may read


class DeviceLauncher:
    """Runs one program on one device."""

    def __init__(self, program: TritonProgram, name: str, index: int, functions: dict[str, Any] | None = None):
        """`functions` are the program's kernels, if its text was executed before."""
        self._given = functions
        self.index = index
        self._program, self._name = program, name
        self._launches = program.kernels
        self._kernels: dict[tuple, Kernel] = {}
        self._compiling: Any = None  # the program's kernels, once one of them is needed
        self._copies: deque[Tensor] = deque(maxlen=_KEPT_COPIES)
        self._pointers = {
            name: [kind.startswith("*") for _, kind in launch.parameters] for name, launch in self._launches.items()
        }
        groups = [launch.group for launch in program.launches]
        self._reason = ", ".join(dict.fromkeys(origin for group in groups for origin in group.origins())) or name

    def allocate(self, nbytes: int) -> StorageImpl:
        """Return memory of the caching allocator."""
        return runtime.allocate(self.index, nbytes)

    def free(self, memory: StorageImpl) -> None:
        """Do nothing: the memory is released with its last reference, and used again in the order of the stream."""

    def copy(self, target: int, source: int, nbytes: int) -> None:
        """Copy device memory."""
        found = runtime.device_at(self.index)
        found.driver.copy_on_device(target, source, nbytes, runtime.current_stream(self.index))

    def clear_status(self) -> int:
        """Return the address of the device's status word, which is read where the host waits next."""
        found = runtime.device_at(self.index)
        found.may_have_failed[self._reason] = None
        return found.status()

    def has_failed(self, status: int) -> bool:
        """Return False: the host does not wait here."""
        return False

    def launch(
        self, kernel: str, grid: tuple[int, ...], arguments: tuple[int, ...], constants: dict[str, int], *, warps: int,
        stages: int,
    ) -> None:  # fmt: skip
        """Put a kernel on the current stream."""
        if 0 in grid:
            return
        aligned = {True: True, False: True}  # whether pointers are aligned, and numbers: each choice is another kernel
        for value, is_pointer in zip(arguments, self._pointers[kernel], strict=True):
            if value % _ALIGNMENT:
                aligned[is_pointer] = False
        found = self._kernel(kernel, constants, warps, stages, aligned)
        found.launch(runtime.current_stream(self.index), (*grid, 1, 1)[:3], arguments, constants)

    def _kernel(self, kernel: str, constants: dict[str, int], warps: int, stages: int, aligned: dict[bool, bool]) -> Kernel:
        key = (kernel, tuple(constants.values()), warps, stages, *aligned.values())
        runtime.device_at(self.index)
        found = self._kernels.get(key)
        if found is None:
            found = self._kernels[key] = self._load(kernel, constants, warps, stages, aligned)
        return found

    def planner(self, inputs: Sequence[Tensor]) -> Planner | None:
        """Return what notes the program's launches for such inputs; None if one of them is not on the device."""
        place = runtime.device_at(self.index).place
        if any(tensor._impl.device is not place for tensor in inputs):
            return None
        return Planner(self.index, inputs, self._pointers, self._kernel, self._reason)

    def address(self, tensor: Tensor) -> int:
        """Return the address of a device tensor's first element; a CPU tensor without dimensions is copied to the device. The
        copy's memory is used again in the order of the stream, so that the kernels launched next find it."""
        impl = tensor._impl
        if impl.device.type == "cuda" and impl.device.index == self.index:
            return impl.data_ptr
        if impl.sizes:
            raise RuntimeError(f"a kernel of cuda:{self.index} cannot read a tensor on {impl.device}")
        self._copies.append(tensors.to_device(tensor.detach(), runtime.device_at(self.index).place))
        return self._copies[-1]._impl.data_ptr

    def tensor(self, memory: StorageImpl, size: tuple[int, ...], stride: tuple[int, ...], offset: int, kind: dtype) -> Tensor:
        """Return a device tensor."""
        return tensors.over(memory, size, stride, offset, kind)

    @runs_as_it_is("it compiles a kernel", with_callees=True)
    def _load(self, kernel: str, constants: dict[str, int], warps: int, stages: int, aligned: dict[bool, bool]) -> Kernel:
        launch = self._launches[kernel]
        names = tuple(name for name, kind in launch.parameters if aligned[kind.startswith("*")])
        image = KernelImage(
            kernel, [kind for _, kind in launch.parameters],
            lambda capability: self._cubin(compiler.KernelSpec(
                kernel, tuple(launch.parameters), constants, warps, stages, launch.options, names
            ), capability),
            lambda: functools.partial(self._interpreted.launch, kernel, warps=warps, stages=stages),
        )  # fmt: skip
        return runtime.device_at(self.index).driver.load(image)

    def _cubin(self, spec: Any, capability: int) -> Cubin:
        if self._compiling is None:
            known = [launch for launch in self._launches.values() if isinstance(launch, Launch) and not launch.open]
            self._compiling = ahead.Ahead(self._functions, [compiler.spec_of(launch) for launch in known], capability)
        made = self._compiling.take(spec)
        return Cubin(made.cubin, made.entry, made.shared, made.threads, made.scratch)

    @functools.cached_property
    def _functions(self) -> dict[str, Any]:
        return self._given or compiler.load_text(self._program.kernel_source, self._name)

    @functools.cached_property
    def _interpreted(self) -> Any:
        return interpreter.InterpreterLauncher(self._program, self._name, self._given)
