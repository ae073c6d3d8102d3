"""The provider of GPUs: answers the questions of lower layers, and registers the kernels once there is a device."""

from __future__ import annotations

from rushlight.core.device import CPU, gpus
from rushlight.core.dispatch_key import CPU_KEYS
from rushlight.core.strides import contiguous_strides
from rushlight.core.tensor_impl import TensorImpl
from rushlight.cuda import generators, kernels, pinned, runtime, tensors
from rushlight.cuda.driver import active_driver


def _count() -> int:
    found = active_driver().device_count()
    if found:
        kernels.install()
    return found


def _why_none() -> str:
    return getattr(active_driver(), "reason", "")


def _pinned_like(impl: TensorImpl) -> TensorImpl:
    """Return an uninitialised CPU impl in page-locked memory, row-major."""
    storage = pinned.allocate_pinned(impl.numel * impl.dtype.itemsize)
    return TensorImpl(storage, impl.sizes, contiguous_strides(impl.sizes), 0, impl.dtype, CPU, CPU_KEYS)


gpus.counted, gpus.current, gpus.why_none = _count, runtime.current_index, _why_none
gpus.seed_all, gpus.generators = generators.seed_used, generators.device_generators
gpus.allocate_pinned, gpus.copy_bytes = pinned.allocate_pinned, tensors.copy_storage
gpus.is_pinned, gpus.pinned_like, gpus.allocate = pinned.is_pinned, _pinned_like, runtime.allocate
