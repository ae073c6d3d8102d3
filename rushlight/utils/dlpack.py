"""`torch.utils.dlpack`: exchange memory with other libraries by DLPack."""

from __future__ import annotations

from enum import IntEnum
from typing import Any

from rushlight.core.device import device as torch_device
from rushlight.core.dlpack import from_dlpack as _from_dlpack
from rushlight.core.tensor import Tensor
from rushlight.legacy import to_dlpack

__all__ = ["DLDeviceType", "from_dlpack", "to_dlpack"]


class DLDeviceType(IntEnum):
    """Device types, with the DLPack standard's numbers."""

    kDLCPU = 1
    kDLCUDA = 2
    kDLCUDAHost = 3
    kDLOpenCL = 4
    kDLVulkan = 7
    kDLMetal = 8
    kDLVPI = 9
    kDLROCM = 10
    kDLROCMHost = 11
    kDLExtDev = 12
    kDLCUDAManaged = 13
    kDLOneAPI = 14
    kDLWebGPU = 15
    kDLHexagon = 16
    kDLMAIA = 17


def from_dlpack(ext_tensor: Any, *, device: Any = None, copy: bool | None = None) -> Tensor:
    """Return a tensor that shares the memory of an object with `__dlpack__`, or of a capsule; a copy of it where `copy`.

    ValueError for a `device` other than the CPU, because memory cannot be shared across devices.
    """
    if device is not None and torch_device(device).type != "cpu":
        raise ValueError(f"from_dlpack: the memory lies on the CPU, got device={device!r}")
    made = _from_dlpack(ext_tensor)
    return made.clone() if copy else made
