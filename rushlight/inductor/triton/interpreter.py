"""Triton's interpreter as a launcher: kernels run in Python over CPU memory, to check them without a GPU.

Triton decides when it is first imported whether its kernels are interpreted. So the first `InterpreterLauncher` sets
`TRITON_INTERPRET=1` for the process, which cannot compile kernels for a device afterwards.
"""

from __future__ import annotations

import ctypes
import functools
import linecache
import os
import sys
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import ml_dtypes
import numpy as np

from rushlight.core.device import CPU
from rushlight.core.dispatch_key import CPU_KEYS
from rushlight.core.dtype import dtype
from rushlight.core.following import runs_as_it_is
from rushlight.core.storage import StorageImpl, allocate
from rushlight.core.tensor import Tensor, wrap
from rushlight.core.tensor_impl import TensorImpl
from rushlight.core.thread_state import state
from rushlight.inductor.codegen.triton.program import TritonProgram
from rushlight.utils.native.toolchain import CompilerMissing

BFLOAT16_NAN = 0x7FC0
POISON = 77  # the value of integer loads outside of their mask


class TritonMissing(CompilerMissing):
    """Triton is not installed, or imported in the wrong mode."""


@functools.cache
def interpreting_triton() -> Any:
    """Import Triton so that it interprets its kernels; TritonMissing if that is impossible."""
    if "triton" not in sys.modules:
        os.environ["TRITON_INTERPRET"] = "1"
    try:
        import triton
    except ImportError as error:
        raise TritonMissing("the Triton interpreter needs Triton: pip install triton") from error
    if os.environ.get("TRITON_INTERPRET") != "1":
        raise TritonMissing("Triton was imported before; set TRITON_INTERPRET=1 when the program starts")
    _mend_bfloat16(triton.runtime.interpreter, triton.language)
    _mend_comparisons(triton.runtime.interpreter, triton.language)
    _poison_masked_loads(triton.runtime.interpreter)
    _reduce_at_once(triton.runtime.interpreter)
    return triton


def _poison_masked_loads(interpreter: Any) -> None:
    """Make loads give NaN, or an odd number, outside of their mask, where devices give anything. So kernels that use such
    values give wrong results here, too."""
    builder, handle = interpreter.InterpreterBuilder, interpreter.TensorHandle
    load = builder.create_masked_load

    def poisoned(self: Any, pointers: Any, mask: Any, other: Any, *rest: Any) -> Any:
        if other is None:
            kind = pointers.get_element_ty()
            stored = interpreter._get_np_dtype(kind)
            unknown = {"bf16": BFLOAT16_NAN, "int1": True}.get(kind.name, np.nan if stored.kind == "f" else POISON)
            other = handle(np.full(pointers.data.shape, unknown, dtype=stored), kind)
        return load(self, pointers, mask, other, *rest)

    builder.create_masked_load = poisoned


def _reduce_at_once(interpreter: Any) -> None:
    """Make Triton's interpreter reduce by some device functions with NumPy. It calls other functions once for each element."""
    known = {"larger": np.max, "smaller": np.min, "product_of": np.prod}
    operations = interpreter.ReduceOps
    reduce = operations.apply_impl

    def reduced(self: Any, given: Any) -> Any:
        function = known.get(getattr(self.combine_fn, "__name__", ""))
        if function is None or len(given) != 1 or self.axis is None:
            return reduce(self, given)
        (tile,) = given
        found = function(tile.handle.data, axis=self.axis, keepdims=self.keep_dims)
        return self.to_tensor(found.astype(tile.handle.data.dtype), tile.dtype)

    operations.apply_impl = reduced


def _mend_comparisons(interpreter: Any, tl: Any) -> None:
    """Make Triton's interpreter give the results of comparisons the type of truth values. It gives them the operands' type, and
    so widens scalar ones to numbers, which are no masks."""
    builder = interpreter.InterpreterBuilder
    compute = builder.binary_op

    def typed(self: Any, left: Any, right: Any, function: Any) -> Any:
        found = compute(self, left, right, function)
        if found.data.dtype == np.bool_:
            found.dtype = tl.int1
        return found

    builder.binary_op = typed


def _mend_bfloat16(interpreter: Any, tl: Any) -> None:
    """Make Triton's interpreter round to bfloat16 as devices do, and multiply such matrices: it keeps the numbers as bits, cuts
    off the lower bits of float32, and multiplies the bits as integers."""
    builder, handle = interpreter.InterpreterBuilder, interpreter.TensorHandle
    cast, dot = builder.cast_impl, builder.create_dot

    def widened(operand: Any) -> Any:
        if operand.dtype.scalar != tl.bfloat16:
            return operand
        return handle((operand.data.astype(np.uint32) << 16).view(np.float32), tl.float32)

    def cast_rounded(self: Any, source: Any, kind: Any) -> Any:
        if (source.dtype.scalar, kind.scalar) == (tl.float32, tl.bfloat16):
            return handle(source.data.astype(ml_dtypes.bfloat16).view(np.uint16), tl.bfloat16)
        if kind.scalar == tl.bfloat16 and source.dtype.scalar != tl.bfloat16:
            return cast_rounded(self, cast(self, source, tl.float32), kind)
        return cast(self, widened(source), kind)

    def dot_widened(self: Any, left: Any, right: Any, *rest: Any) -> Any:
        return dot(self, widened(left), widened(right), *rest)

    builder.cast_impl, builder.create_dot = cast_rounded, dot_widened


def load_text(source: str, name: str) -> dict[str, Any]:
    """Execute a program's text; returns its globals. Triton reads the functions' source again, by the file name `name`."""
    linecache.cache[name] = (len(source), None, source.splitlines(keepends=True), name)
    names: dict[str, Any] = {"__name__": name}
    exec(compile(source, name, "exec"), names)
    return names


def interpreted_kernel(source: str, name: str, kernel: str, types: Sequence[str]) -> Callable[..., None]:
    """Return a kernel of a text as a function of its grid, its arguments as ints, and its constants."""
    triton = interpreting_triton()
    function = load_text(source, name)[kernel]
    handle, tl = triton.runtime.interpreter.TensorHandle, triton.language

    def run(grid: tuple[int, ...], arguments: Sequence[int], constants: dict[str, int]) -> None:
        given = [typed_argument(tl, handle, value, kind) for value, kind in zip(arguments, types, strict=True)]
        function[grid](*given, **constants)

    return run


def typed_argument(tl: Any, handle: Any, value: int, kind: str) -> Any:
    """Return an address as a typed pointer, an integer as a typed number."""
    if not kind.startswith("*"):
        return tl.tensor(handle(np.array([value], dtype=np.int64), tl.int64), tl.int64)
    pointer = tl.pointer_type(tl.str_to_ty(kind[1:], None))
    return tl.tensor(handle(np.array([value], dtype=np.uint64), pointer), pointer)


class InterpreterLauncher:
    """Runs a program's kernels in Triton's interpreter."""

    def __init__(self, program: TritonProgram, name: str, functions: dict[str, Any] | None = None):
        """`functions` are the program's kernels, if its text was executed before."""
        triton = interpreting_triton()
        self._language = triton.language
        self._handle = triton.runtime.interpreter.TensorHandle
        self._signatures = {kernel: [kind for _, kind in launch.parameters] for kernel, launch in program.kernels.items()}
        self._kernels = functions or load_text(program.kernel_source, name)
        self._status = ctypes.c_int32(0)

    def allocate(self, nbytes: int) -> StorageImpl:
        """Return CPU memory."""
        return allocate(nbytes)

    def free(self, memory: StorageImpl) -> None:
        """Do nothing: the memory is released with its last reference."""

    def copy(self, target: int, source: int, nbytes: int) -> None:
        """Copy CPU memory."""
        ctypes.memmove(target, source, nbytes)

    def clear_status(self) -> int:
        """Return the address of the launcher's status."""
        self._status.value = 0
        return ctypes.addressof(self._status)

    def has_failed(self, status: int) -> bool:
        """Return whether a kernel has reported an error."""
        return self._status.value != 0

    @runs_as_it_is("it interprets a kernel", with_callees=True)
    def launch(
        self, kernel: str, grid: tuple[int, ...], arguments: tuple[int, ...], constants: dict[str, int], *, warps: int,
        stages: int,
    ) -> None:  # fmt: skip
        """Run a kernel program by program."""
        if 0 in grid:
            return
        types = self._signatures[kernel]
        given = [typed_argument(self._language, self._handle, *each) for each in zip(arguments, types, strict=True)]
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore", RuntimeWarning)
            self._kernels[kernel][grid](*given, **constants)

    def address(self, tensor: Tensor) -> int:
        """Return the address of a CPU tensor's first element."""
        return tensor._impl.data_ptr

    def tensor(self, memory: StorageImpl, size: tuple[int, ...], stride: tuple[int, ...], offset: int, kind: dtype) -> Tensor:
        """Return a CPU tensor."""
        impl = TensorImpl(memory, size, stride, offset, kind, CPU, CPU_KEYS)
        impl.inference = state.inference
        return wrap(impl)
