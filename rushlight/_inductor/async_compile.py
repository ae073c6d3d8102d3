"""`torch._inductor.async_compile`: kernels of generated programs, C++ text to functions, through the cache of compiled code."""

from __future__ import annotations

import ctypes
import functools
import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

from rushlight.core.tensor import Tensor
from rushlight.utils.native import cache, toolchain

FLAGS = (
    "-std=c++17", "-O3", "-march=native", "-fopenmp", "-fPIC", "-shared", "-fno-math-errno", "-ffp-contract=off", "-Wno-psabi",
)  # fmt: skip
_OTHER_MACHINE = re.compile(r'#include\s+"(/[^"]*torchinductor[^"]*\.h)"')
_STANDARD = "".join(f"#include <{name}>\n" for name in ("algorithm", "atomic", "cmath", "cstdint", "cstdlib", "limits"))
"""What stands for the header that a program of PyTorch's names by its path on the machine that generated it."""


class AsyncCompile:
    """Makes functions of C++ text. Each is compiled when it is asked for, so that there is nothing to wait for."""

    def cpp(self, source_code: str) -> Callable[..., None]:
        """The function `kernel` of a text, which has `extern "C"`. It is called with pointers (`c_void_p`) and integers.

        BuildError with what the compiler said; CompilerMissing where there is no compiler.
        """
        return _kernel(_with_headers(source_code))

    def cpp_pybinding(self, argtypes: list[str], source_code: str) -> Callable[..., None]:
        """The same, called with tensors and integers. `argtypes` are the types of the kernel's parameters."""
        kernel = self.cpp(source_code)

        def call(*values: Any) -> None:
            if len(values) != len(argtypes):
                raise TypeError(f"the kernel takes {len(argtypes)} arguments, got {len(values)}")
            kernel(*(ctypes.c_void_p(each.data_ptr()) if isinstance(each, Tensor) else ctypes.c_int64(each) for each in values))

        return call

    def wait(self, scope: dict[str, Any]) -> None:
        """All functions are there."""


def _with_headers(source: str) -> str:
    return _OTHER_MACHINE.sub(lambda match: match[0] if os.path.exists(match[1]) else _STANDARD, source)


@functools.cache
def _kernel(source: str) -> Callable[..., None]:
    compiler = toolchain.compiler()
    key = cache.digest(source, *FLAGS, toolchain.identity(compiler))
    made, _, _ = cache.obtain((key,), source, functools.partial(_compile, compiler), lambda path: ctypes.CDLL(str(path)).kernel)
    made.restype = None
    return made


def _compile(compiler: toolchain.Command, source: Path, folder: Path, output: Path) -> None:
    toolchain.run([[*compiler, *FLAGS, str(source), "-o", str(output)]], str(source), folder)
