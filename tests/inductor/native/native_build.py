"""Compiles kernels.cpp for one instruction set and wraps its functions for NumPy arrays.

In: the name of a target below. Out: a `Kernels` object whose attribute access gives a callable that takes arrays, ints
and floats. Used by the tests of rushlight/inductor/include.
"""

from __future__ import annotations

import ctypes
import platform
import shutil
import subprocess
from functools import partial
from pathlib import Path

import numpy as np

from rushlight.inductor.build import headers_digest
from rushlight.inductor.prebuilt import CONDITIONAL_MOVE_WORKAROUND
from rushlight.inductor.processor import instructions
from rushlight.utils.native import cache, toolchain

HERE = Path(__file__).parent
INCLUDE = HERE.parents[2] / "rushlight" / "inductor" / "include"
FLAGS = (
    "-std=c++17 -O2 -fopenmp -fno-math-errno -fno-trapping-math -ffp-contract=fast -shared -fPIC "
    f"-Wall -Wextra -Wno-psabi {CONDITIONAL_MOVE_WORKAROUND}"
)
TARGETS = {
    "native": ["-march=native", *(["-mprefer-vector-width=512"] if platform.machine() == "x86_64" else [])],
    "avx2": ["-mavx2", "-mfma", "-mno-avx512f"],
    # AVX-512's code in halves; unoptimized, since optimizing it is slow.
    "wide": ["-mavx2", "-mfma", "-mno-avx512f", "-DRL_LANES=16", "-O0"],
    "baseline": [],
}


def cpu_flags() -> set[str]:
    """The processor's feature names on Linux x86-64; empty elsewhere."""
    info = Path("/proc/cpuinfo")
    lines = info.read_text().splitlines() if info.exists() else []
    return next((set(line.split()[2:]) for line in lines if line.startswith("flags")), set())


def available(target: str) -> bool:
    """Whether a target can be built and run here, and does not duplicate another target."""
    if shutil.which("g++") is None:
        return False
    if target not in ("avx2", "wide"):
        return True
    flags = cpu_flags()
    here = platform.machine() == "x86_64" and {"avx2", "fma"} <= flags
    return here and ("avx512f" in flags) == (target == "avx2")  # "native" duplicates the other one


def pointer(array: np.ndarray) -> ctypes.c_void_p:
    return ctypes.c_void_p(array.ctypes.data)


def built(source: str, compiler: str, flags: list[str]) -> Path:
    """The compiled library of a source in this folder, from the cache folder if possible."""
    path, command = HERE / source, (compiler, *flags)
    key = cache.digest(path.read_text(), *command, headers_digest(), toolchain.identity(command), *instructions())
    make = partial(_compile, [*command, f"-I{INCLUDE}", str(path)])
    return cache.obtain((key,), path.read_text(), make, lambda made: made)[1]


def _compile(command: list[str], source: Path, folder: Path, output: Path) -> None:
    """Runs the compiler, which must print nothing."""
    done = subprocess.run([*command, "-o", str(output)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stderr == "", f"warnings:\n{done.stderr}"


class Kernels:
    """The shared library of one target; `kernels.name(*arguments)` calls a function that returns nothing."""

    def __init__(self, target: str) -> None:
        self.library = ctypes.CDLL(str(built("kernels.cpp", "g++", [*FLAGS.split(), *TARGETS[target]])))

    def call(self, name: str, *arguments: object, result: object = None) -> object:
        function = getattr(self.library, name)
        function.restype = result
        return function(*[self.convert(argument) for argument in arguments])

    @staticmethod
    def convert(argument: object) -> object:
        if isinstance(argument, np.ndarray):
            return pointer(argument)
        if isinstance(argument, bool):
            return ctypes.c_bool(argument)
        if isinstance(argument, int):
            return ctypes.c_long(argument)
        if isinstance(argument, float):
            return ctypes.c_float(argument)
        return argument

    def map(self, name: str, *inputs: np.ndarray, out: object = None) -> np.ndarray:
        """Runs a pointwise function over arrays of one length; `out` is the result's dtype, by default the input's."""
        result = np.empty(inputs[0].shape, inputs[0].dtype if out is None else out)
        self.call(name, *inputs, result, len(result))
        return result


def aligned(count: int) -> np.ndarray:
    """`count` float32 zeros on a 64-byte boundary."""
    raw = np.zeros(count + 16, np.float32)
    start = -raw.ctypes.data % 64 // 4
    return raw[start : start + count]
