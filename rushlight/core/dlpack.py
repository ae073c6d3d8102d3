"""DLPack: import memory of other libraries as a tensor, by `__dlpack__` or from a capsule."""

from __future__ import annotations

import numpy as np

from rushlight.core.device import gpus
from rushlight.core.lazy_module import LazyModule
from rushlight.core.tensor import Tensor, from_numpy

interchange = LazyModule("rushlight.cuda.interchange")
CUDA_KIND = 2  # the specification's number of the kind of device


class _Capsule:
    """An object with `__dlpack__` that returns the caller's capsule."""

    def __init__(self, capsule: object):
        self.capsule = capsule

    def __dlpack__(self, **kwargs: object) -> object:
        return self.capsule

    def __dlpack_device__(self) -> tuple[int, int]:
        return (1, 0)


class _Writable:
    """Exposes an array's memory as writable."""

    def __init__(self, array: np.ndarray):
        self.array = array  # holds a reference, so that the memory stays alive
        self.__array_interface__ = array.__array_interface__ | {"data": (array.ctypes.data, False)}


def _says_what_may_be_written(capsule: object) -> bool:
    """Return whether a capsule is of DLPack 1.0 or later. NumPy treats the memory of earlier ones as read-only."""
    return '"dltensor_versioned"' in repr(capsule)


def from_dlpack(source: object) -> Tensor:
    """Return a tensor that shares the memory of any object with `__dlpack__`."""
    if isinstance(source, Tensor):
        return source.detach()
    if type(source).__name__ != "PyCapsule":
        if source.__dlpack_device__()[0] == CUDA_KIND:
            return interchange.from_capsule(source.__dlpack__())
        return from_numpy(np.from_dlpack(source))
    if gpus.counted is not None and interchange.is_capsule_of_gpu(source):
        return interchange.from_capsule(source)
    array = np.from_dlpack(_Capsule(source))
    return from_numpy(array if _says_what_may_be_written(source) else np.asarray(_Writable(array)))
