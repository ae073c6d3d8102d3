"""Environment variables that must be set before other libraries are loaded: they make NumPy's BLAS use kernels for the whole
processor, and say how long threads of compiled code spin."""

from __future__ import annotations

import os
import sys

import rushlight._C as _C


def choose_blas_kernels() -> None:
    """Have OpenBLAS use its AVX-512 kernels where it would pick AVX2 ones (AMD processors with AVX-512).

    The variable is read when NumPy loads; a value that the user set stays.
    """
    if "numpy" not in sys.modules and "avx512vl" in _C.cpu_features():
        os.environ.setdefault("OPENBLAS_CORETYPE", "SkylakeX")


# A thread that waits for another at the end of a kernel looks this often before it sleeps: for about 0.1 ms. The default, some
# milliseconds, takes the processor from the very thread that is waited for where other programs run, and doubles the time.
SPINS = "4000"


def limit_spinning() -> None:
    """Have the threads of compiled code sleep soon when they wait.

    The variable is read when the OpenMP library loads; what the user set stays.
    """
    if "OMP_WAIT_POLICY" not in os.environ:
        os.environ.setdefault("GOMP_SPINCOUNT", SPINS)


choose_blas_kernels()
limit_spinning()
