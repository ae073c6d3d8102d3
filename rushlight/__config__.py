"""`torch.__config__`: with what the native code was built, and with how many threads it runs."""

from __future__ import annotations

import os
import platform
import sysconfig

from rushlight.core.parallel import get_num_threads

__all__ = ["parallel_info", "show"]


def _cxx_flags() -> str:
    """Return the flags with which extension modules are built."""
    return sysconfig.get_config_var("CFLAGS") or ""


def show() -> str:
    """Return the library's version, its compiler's and the processor's instructions, in lines."""
    from rushlight.backends.cpu import get_cpu_capability
    from rushlight.version import __version__

    lines = [
        f"Rushlight {__version__} built with:", f"  - Python {platform.python_version()}, {platform.python_compiler()}",
        f"  - C and C++ flags: {_cxx_flags()}", "  - OpenMP", f"  - CPU capability usage: {get_cpu_capability()}",
        "  - Build settings: USE_CUDA=0, USE_MKL=0, USE_MKLDNN=0, USE_OPENMP=1, USE_MPI=0, USE_NCCL=0",
    ]  # fmt: skip
    return "\n".join(lines) + "\n"


def parallel_info() -> str:
    """Return the number of threads within operators, and what set it, in lines."""
    settings = [f"  {name}: {os.environ.get(name, '[not set]')}" for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS")]
    lines = [
        f"Threads within operators: {get_num_threads()}", f"Processors: {os.cpu_count()}", "Environment variables:", *settings,
        "Parallel backend: OpenMP",
    ]  # fmt: skip
    return "\n".join(lines) + "\n"
