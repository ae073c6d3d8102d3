"""What must be set before NumPy is imported: kernels of its BLAS that use the whole processor."""

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


choose_blas_kernels()
