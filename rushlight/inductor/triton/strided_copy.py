"""Copies between device tensors of one dtype and any strides: one kernel for each rank and element size.

In: two tensors of the same sizes; the source's strides may be 0. Out: the step of a launch plan. Elements are copied as words,
so that one kernel serves all dtypes of a size. Dimensions that lie one in the other in both tensors are joined first.
"""

from __future__ import annotations

import functools
from typing import Any

from rushlight.core.lazy_module import LazyModule
from rushlight.core.tensor import Tensor
from rushlight.core.tensor_impl import TensorImpl
from rushlight.cuda import plans, runtime
from rushlight.cuda.driver import Cubin, Kernel, KernelImage

compiler, interpreter = map(LazyModule, ("rushlight.inductor.triton.compiler", "rushlight.inductor.triton.interpreter"))
_BLOCK, _WARPS = 1024, 4
_WORD = 8  # bytes; larger elements are several words
Dim = tuple[int, int, int]  # size, the target's stride, the source's stride


def strided_step(target: Tensor, source: Tensor, to: plans.Value, at: plans.Value) -> plans.Step:
    """Return the step that copies a tensor to another one of the same sizes, dtype and device. `to` and `at` say where the two
    begin when the plan runs."""
    ours, theirs = target._impl, source._impl
    word, dims = _joined(ours, theirs)
    count = ours.numel * ours.dtype.itemsize // word
    kernel = _kernel(runtime.device_at(ours.device.index).index, len(dims), word)
    numbers = [(plans.NUMBER, number) for number in (count, *(number for dim in dims for number in dim))]
    return plans.launch(kernel, (-(-count // _BLOCK),), (to, at, *numbers), {"BLOCK": _BLOCK})


def _joined(ours: TensorImpl, theirs: TensorImpl) -> tuple[int, list[Dim]]:
    """Return the size of a word, and the dimensions in words, innermost in the target last."""
    itemsize = ours.dtype.itemsize
    word = min(itemsize, _WORD)
    factor = itemsize // word
    dims = [
        (size, mine * factor, other * factor)
        for size, mine, other in zip(ours.sizes, ours.strides, theirs.strides, strict=True) if size != 1
    ]  # fmt: skip
    dims.sort(key=lambda dim: -dim[1])
    if factor > 1:
        dims.append((factor, 1, 1))
    joined: list[Dim] = []
    for size, mine, other in dims:
        if joined and joined[-1][1] == size * mine and joined[-1][2] == size * other:
            joined[-1] = joined[-1][0] * size, mine, other
        else:
            joined.append((size, mine, other))
    return word, joined or [(1, 1, 1)]


def _text(rank: int) -> str:
    names = ", ".join(f"size{dim}, target_stride{dim}, source_stride{dim}" for dim in range(rank))
    lines = [
        "import triton", "import triton.language as tl", "", "", "@triton.jit",
        f"def copy_strided(target, source, count, {names}, BLOCK: tl.constexpr):",
        "    rest = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK).to(tl.int64)", "    mask = rest < count",
        "    to = rest * 0", "    at = rest * 0",
    ]  # fmt: skip
    for dim in reversed(range(rank)):
        lines += [
            f"    place = rest % size{dim}", f"    rest = rest // size{dim}", f"    to += place * target_stride{dim}",
            f"    at += place * source_stride{dim}",
        ]  # fmt: skip
    return "\n".join([*lines, "    tl.store(target + to, tl.load(source + at, mask=mask), mask=mask)", ""])


@functools.cache
def _kernel(index: int, rank: int, word: int) -> Kernel:
    """Load the kernel on the current device."""
    source, name = _text(rank), f"<copies of {rank} dimensions>"
    pointer = f"*i{8 * word}"
    names = ["target", "source", "count"]
    names += [f"{kind}{dim}" for dim in range(rank) for kind in ("size", "target_stride", "source_stride")]
    parameters = tuple((each, pointer if number < 2 else "i64") for number, each in enumerate(names))
    types = [kind for _, kind in parameters]

    def cubin(capability: int) -> Cubin:
        spec = compiler.KernelSpec("copy_strided", parameters, {"BLOCK": _BLOCK}, _WARPS, 1)
        made = compiler.compile_kernel(compiler.load_text(source, name), spec, capability)
        return Cubin(made.cubin, made.entry, made.shared, made.threads, made.scratch)

    def interpreted() -> Any:
        return interpreter.interpreted_kernel(source, name, "copy_strided", types)

    return runtime.device_at(index).driver.load(KernelImage("copy_strided", types, cubin, interpreted))


runtime.on_forget(_kernel.cache_clear)
