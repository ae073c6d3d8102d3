"""Compiles all kernels of a program at once, in threads, when the first of them is needed.

In: a program's functions and what to compile of it. Out: cubins. Triton's compiler leaves Python's lock free for most of its
time, and its assembler is a process of its own.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Iterable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

from rushlight.inductor.triton.compiler import Compiled, KernelSpec, compile_kernel


class Ahead:
    """Kernels of one program that compile in threads, for one compute capability."""

    def __init__(self, functions: Mapping[str, Any], specs: Iterable[KernelSpec], capability: int):
        self._functions, self._capability = functions, capability
        self._begun = {_key(spec): _pool().submit(compile_kernel, functions, spec, capability) for spec in specs}

    def take(self, spec: KernelSpec) -> Compiled:
        """Return a kernel, when it is compiled; one that was not begun is compiled now. Errors are those of the compiler."""
        found: Future[Compiled] | None = self._begun.pop(_key(spec), None)
        return compile_kernel(self._functions, spec, self._capability) if found is None else found.result()


def _key(spec: KernelSpec) -> tuple:
    return spec.name, tuple(spec.constants.items()), spec.warps, spec.stages, spec.aligned


@functools.cache
def _pool() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(os.cpu_count() or 1, "rushlight-triton")


os.register_at_fork(after_in_child=_pool.cache_clear)
