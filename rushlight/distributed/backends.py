"""The names of backends, and which of them can be asked for: MPI only; "gloo" means it too, and "nccl" where there are GPUs."""

from __future__ import annotations

import os

from rushlight.core.device import device
from rushlight.core.lazy_module import LazyModule
from rushlight.distributed.engine import mpi

_cuda = LazyModule("rushlight.cuda")


class Backend(str):
    """The name of a way of communicating, in lower case. ValueError for a name that is no string."""

    UNDEFINED, GLOO, NCCL, UCC, MPI, XCCL = "undefined", "gloo", "nccl", "ucc", "mpi", "xccl"
    backend_list = [UNDEFINED, GLOO, NCCL, XCCL, UCC, MPI]

    def __new__(cls, name: str) -> Backend:
        if not isinstance(name, str):
            raise ValueError(f"Backend constructor parameter must be string-ish, got {name!r}")
        return super().__new__(cls, name.lower())


_MEAN_MPI = (Backend.MPI, Backend.GLOO)


def is_available() -> bool:
    """Return whether processes can work together: whether mpi4py is installed (`pip install rushlight[mpi]`)."""
    return mpi.is_present()


def is_mpi_available() -> bool:
    """Return whether MPI is there."""
    return mpi.is_present()


def is_gloo_available() -> bool:
    """Return whether the backend "gloo" can be asked for: it means MPI."""
    return mpi.is_present()


def is_nccl_available() -> bool:
    """Return whether the backend "nccl" can be asked for: it means MPI where there is a GPU."""
    return mpi.is_present() and has_gpu()


def is_ucc_available() -> bool:
    """Return whether UCC is there: never."""
    return False


def is_xccl_available() -> bool:
    """Return whether XCCL is there: never."""
    return False


def is_backend_available(backend: str) -> bool:
    """Return whether a backend can be asked for: "mpi", and "gloo" and "nccl", which mean it."""
    return mpi.is_present() and (backend.lower() in _MEAN_MPI or backend.lower() == Backend.NCCL and has_gpu())


def is_torchelastic_launched() -> bool:
    """Return whether torchrun started this process, which it says by TORCHELASTIC_RUN_ID."""
    return os.environ.get("TORCHELASTIC_RUN_ID") is not None


def has_gpu() -> bool:
    """Return whether there is a GPU."""
    return _cuda.is_available()


def check_backend(backend: str | None) -> None:
    """Raise the error of a backend that is not there."""
    if not mpi.is_present():
        raise RuntimeError(mpi.HOW_TO_GET)
    names = [] if backend is None else [part.rpartition(":")[2] for part in Backend(backend).split(",")]
    for name in names:
        if name in _MEAN_MPI or name == Backend.NCCL and has_gpu():
            return
    if Backend.NCCL in names:
        raise RuntimeError("the backend 'nccl' is for GPUs, of which none is here: ask for 'mpi'")
    if names:
        raise ValueError(f"init_process_group: there is no backend {backend!r}; ask for 'mpi'")


def name_asked_for(backend: str | None) -> str | None:
    """Return "mpi", "gloo" or "nccl", whichever comes first in what was asked for; None for nothing."""
    names = [] if backend is None else [part.rpartition(":")[2] for part in Backend(backend).split(",")]
    return next((name for name in names if name in (*_MEAN_MPI, Backend.NCCL)), None)


def get_default_backend_for_device(device: str | device) -> str:
    """Return "mpi" for the CPU and GPUs. ValueError for other devices."""
    kind = device if isinstance(device, str) else device.type
    if kind.partition(":")[0] not in ("cpu", "cuda"):
        raise ValueError(f"Default backend not registered for device : {device}")
    return Backend.MPI


