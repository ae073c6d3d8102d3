"""NVIDIA's driver: `libcuda`, loaded at run time. Every call's status is checked; an error is named.

In: the calls of `Driver`. Out: the same of CUDA's driver interface, version 12. Definition: NVIDIA, "CUDA Driver API".
"""

from __future__ import annotations

import ctypes
import functools
import threading
from collections.abc import Sequence
from ctypes import POINTER, byref, c_char_p, c_float, c_int, c_size_t, c_ubyte, c_uint, c_uint64, c_void_p

from rushlight._C import gpu_in_use, is_gpu_in_use, launch_on_gpu, note_gpu_in_use
from rushlight.cuda.driver import DeviceProperties, DriverError, DriverOutOfMemory, KernelImage

_OUT = POINTER(c_void_p)
_SIGNATURES = {
    "cuInit": (c_uint,),
    "cuDriverGetVersion": (POINTER(c_int),),
    "cuDeviceGetCount": (POINTER(c_int),),
    "cuDeviceGet": (POINTER(c_int), c_int),
    "cuDeviceGetName": (c_char_p, c_int, c_int),
    "cuDeviceGetAttribute": (POINTER(c_int), c_int, c_int),
    "cuDeviceTotalMem_v2": (POINTER(c_size_t), c_int),
    "cuDevicePrimaryCtxRetain": (_OUT, c_int),
    "cuCtxSetCurrent": (c_void_p,),
    "cuCtxSynchronize": (),
    "cuMemGetInfo_v2": (POINTER(c_size_t), POINTER(c_size_t)),
    "cuMemAlloc_v2": (POINTER(c_uint64), c_size_t),
    "cuMemFree_v2": (c_uint64,),
    "cuMemAllocHost_v2": (_OUT, c_size_t),
    "cuMemFreeHost": (c_void_p,),
    "cuMemcpyHtoDAsync_v2": (c_uint64, c_void_p, c_size_t, c_void_p),
    "cuMemcpyDtoHAsync_v2": (c_void_p, c_uint64, c_size_t, c_void_p),
    "cuMemcpyAsync": (c_uint64, c_uint64, c_size_t, c_void_p),
    "cuMemsetD8Async": (c_uint64, c_ubyte, c_size_t, c_void_p),
    "cuMemsetD32Async": (c_uint64, c_uint, c_size_t, c_void_p),
    "cuStreamCreateWithPriority": (_OUT, c_uint, c_int),
    "cuStreamQuery": (c_void_p,),
    "cuStreamSynchronize": (c_void_p,),
    "cuStreamWaitEvent": (c_void_p, c_void_p, c_uint),
    "cuStreamBeginCapture_v2": (c_void_p, c_int),
    "cuStreamEndCapture": (c_void_p, _OUT),
    "cuStreamIsCapturing": (c_void_p, POINTER(c_int)),
    "cuEventCreate": (_OUT, c_uint),
    "cuEventDestroy_v2": (c_void_p,),
    "cuEventRecord": (c_void_p, c_void_p),
    "cuEventQuery": (c_void_p,),
    "cuEventSynchronize": (c_void_p,),
    "cuEventElapsedTime": (POINTER(c_float), c_void_p, c_void_p),
    "cuModuleLoadData": (_OUT, c_char_p),
    "cuModuleGetFunction": (_OUT, c_void_p, c_char_p),
    "cuFuncSetAttribute": (c_void_p, c_int, c_int),
    "cuLaunchKernel": (c_void_p, *[c_uint] * 7, c_void_p, POINTER(c_void_p), c_void_p),
    "cuGraphInstantiateWithFlags": (_OUT, c_void_p, ctypes.c_ulonglong),
    "cuGraphLaunch": (c_void_p, c_void_p),
    "cuGraphDestroy": (c_void_p,),
    "cuGraphExecDestroy": (c_void_p,),
    "cuGetErrorName": (c_int, POINTER(c_char_p)),
    "cuGetErrorString": (c_int, POINTER(c_char_p)),
}
_OUT_OF_MEMORY, _NOT_READY = 2, 600
_UNKNOWN_IMAGES = (200, 209, 222)  # an invalid image, one of another generation of GPUs, one of a later CUDA
_NON_BLOCKING_STREAM = 1
_UNTIMED_EVENT = 2
_RELAXED_CAPTURE = 2  # memory may be allocated meanwhile
_MAX_DYNAMIC_SHARED_BYTES = 8  # CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
_STATIC_SHARED_LIMIT = 48 << 10  # kernels with more shared memory must ask for it
_ATTRIBUTES = {
    "major": 75, "minor": 76, "multi_processor_count": 16, "warp_size": 10, "max_threads_per_multi_processor": 39,
    "regs_per_multiprocessor": 82, "shared_memory_per_block": 8, "shared_memory_per_block_optin": 97,
    "shared_memory_per_multiprocessor": 81, "L2_cache_size": 38, "clock_rate": 13, "memory_clock_rate": 36,
    "memory_bus_width": 37, "pci_bus_id": 33, "pci_device_id": 34,
}  # fmt: skip


def find() -> LibCuda | None:
    """Return the driver; None if the library or a device is missing."""
    try:
        library = ctypes.CDLL("libcuda.so.1")
    except OSError:
        return None
    if library.cuInit(0) != 0:
        return None
    made = LibCuda(library)
    return made if made.device_count() else None


def _address_of(function: object) -> int:
    return ctypes.cast(function, c_void_p).value or 0


class LibCuda:
    """The devices that `libcuda` shows. Each is used by its primary context, which other libraries of the process share."""

    def __init__(self, library: ctypes.CDLL):
        for name, types in _SIGNATURES.items():
            function = getattr(library, name)
            function.argtypes, function.restype = types, c_int
        self._library = library
        self.launch_address = _address_of(library.cuLaunchKernel)
        # What launch plans call themselves: copies of memory, and whether a stream is being captured.
        self.entries = _address_of(library.cuMemcpyAsync), _address_of(library.cuStreamIsCapturing)
        self._contexts: dict[int, c_void_p] = {}
        self._lock = threading.Lock()
        note_gpu_in_use(0, 0)  # what is noted may be about a former driver with this one's number

    def _error(self, name: str, status: int) -> DriverError:
        found, text = c_char_p(), c_char_p()
        self._library.cuGetErrorName(status, byref(found))
        self._library.cuGetErrorString(status, byref(text))
        kind = DriverOutOfMemory if status == _OUT_OF_MEMORY else DriverError
        return kind(name, (found.value or b"CUDA_ERROR_UNKNOWN").decode(), (text.value or b"").decode())

    def fail(self, name: str, status: int) -> None:
        """Raise the error of a call with this status."""
        raise self._error(name, status)

    def _call(self, name: str, *arguments: object) -> None:
        status = getattr(self._library, name)(*arguments)
        if status:
            raise self._error(name, status)

    def _made(self, name: str, *arguments: object) -> int:
        """Call a function whose first argument receives a handle."""
        handle = c_void_p()
        self._call(name, byref(handle), *arguments)
        return handle.value or 0

    def _is_done(self, name: str, handle: int) -> bool:
        status = getattr(self._library, name)(handle)
        if status not in (0, _NOT_READY):
            raise self._error(name, status)
        return status == 0

    # Devices

    @functools.cache  # noqa: B019  (the driver lives as long as the process; a forked one cannot ask)
    def device_count(self) -> int:
        """Return the number of devices."""
        count = c_int()
        self._call("cuDeviceGetCount", byref(count))
        return count.value

    @functools.cache  # noqa: B019  (the driver lives as long as the process)
    def properties(self, device: int) -> DeviceProperties:
        """Return what a device is."""
        handle = self._device(device)
        name, total, value, facts = ctypes.create_string_buffer(256), c_size_t(), c_int(), {}
        self._call("cuDeviceGetName", name, 256, handle)
        self._call("cuDeviceTotalMem_v2", byref(total), handle)
        for field, attribute in _ATTRIBUTES.items():
            self._call("cuDeviceGetAttribute", byref(value), attribute, handle)
            facts[field] = value.value
        return DeviceProperties(name=name.value.decode(), total_memory=total.value, **facts)

    def _device(self, index: int) -> int:
        handle = c_int()
        self._call("cuDeviceGet", byref(handle), index)
        return handle.value

    def use(self, device: int) -> None:
        """Make a device this thread's current one."""
        if is_gpu_in_use(id(self), device):
            return
        with self._lock:
            if device not in self._contexts:
                self._contexts[device] = c_void_p(self._made("cuDevicePrimaryCtxRetain", self._device(device)))
        self._call("cuCtxSetCurrent", self._contexts[device])
        note_gpu_in_use(id(self), device)

    # Memory

    def memory_info(self) -> tuple[int, int]:
        """Return the free and the total bytes of the device."""
        free, total = c_size_t(), c_size_t()
        self._call("cuMemGetInfo_v2", byref(free), byref(total))
        return free.value, total.value

    def allocate(self, nbytes: int) -> int:
        """Return the address of new memory."""
        address = c_uint64()
        self._call("cuMemAlloc_v2", byref(address), nbytes)
        return address.value

    def free(self, address: int) -> None:
        """Release memory."""
        self._call("cuMemFree_v2", address)

    def allocate_host(self, nbytes: int) -> int:
        """Return the address of page-locked host memory."""
        return self._made("cuMemAllocHost_v2", nbytes)

    def free_host(self, address: int) -> None:
        """Release page-locked host memory."""
        self._call("cuMemFreeHost", address)

    def copy_to_device(self, target: int, source: int, nbytes: int, stream: int) -> None:
        """Copy from host memory. The driver stages pageable memory before it returns."""
        self._call("cuMemcpyHtoDAsync_v2", target, source, nbytes, stream)

    def copy_to_host(self, target: int, source: int, nbytes: int, stream: int) -> None:
        """Copy to host memory. The driver waits if that memory is pageable."""
        self._call("cuMemcpyDtoHAsync_v2", target, source, nbytes, stream)

    def copy_on_device(self, target: int, source: int, nbytes: int, stream: int) -> None:
        """Copy between devices' memory, which has one address space."""
        self._call("cuMemcpyAsync", target, source, nbytes, stream)

    def fill(self, target: int, byte: int, nbytes: int, stream: int) -> None:
        """Set bytes."""
        self._call("cuMemsetD8Async", target, byte, nbytes, stream)

    def fill_word(self, target: int, word: int, stream: int, count: int = 1) -> None:
        """Write four bytes, `count` times one after the other."""
        self._call("cuMemsetD32Async", target, word, count, stream)

    # Streams and events

    def create_stream(self, priority: int) -> int:
        """Return a new stream."""
        return self._made("cuStreamCreateWithPriority", _NON_BLOCKING_STREAM, priority)

    def is_stream_done(self, stream: int) -> bool:
        """Return whether all work of a stream is done."""
        return self._is_done("cuStreamQuery", stream)

    def wait_for_stream(self, stream: int) -> None:
        """Let the host wait for a stream's work."""
        self._call("cuStreamSynchronize", stream)

    def wait_for_device(self) -> None:
        """Let the host wait for all work of the device."""
        self._call("cuCtxSynchronize")

    def create_event(self, timed: bool) -> int:
        """Return a new event."""
        return self._made("cuEventCreate", 0 if timed else _UNTIMED_EVENT)

    def destroy_event(self, event: int) -> None:
        """Release an event."""
        self._call("cuEventDestroy_v2", event)

    def record_event(self, event: int, stream: int) -> None:
        """Let an event stand for the work that is on a stream now."""
        self._call("cuEventRecord", event, stream)

    def is_event_done(self, event: int) -> bool:
        """Return whether the work that an event stands for is done."""
        return self._is_done("cuEventQuery", event)

    def wait_for_event(self, event: int) -> None:
        """Let the host wait for an event."""
        self._call("cuEventSynchronize", event)

    def stream_waits_for(self, stream: int, event: int) -> None:
        """Let the later work of a stream wait for an event."""
        self._call("cuStreamWaitEvent", stream, event, 0)

    def milliseconds(self, first: int, last: int) -> float:
        """Return the time between two timed events."""
        found = c_float()
        self._call("cuEventElapsedTime", byref(found), first, last)
        return found.value

    # Kernels

    def load(self, image: KernelImage) -> LoadedKernel:
        """Load a kernel's cubin to the current device."""
        facts = self.properties(gpu_in_use())
        cubin = image.cubin(facts.major * 10 + facts.minor)
        module = self._load_module(cubin.code)
        function = self._made("cuModuleGetFunction", module, cubin.entry.encode())
        if cubin.shared > _STATIC_SHARED_LIMIT:
            self._call("cuFuncSetAttribute", function, _MAX_DYNAMIC_SHARED_BYTES, cubin.shared)
        if cubin.scratch:
            raise NotImplementedError(f"kernel {image.name} needs scratch memory, which no kernel of this library asks for")
        return LoadedKernel(self, function, cubin.threads, cubin.shared)

    def _load_module(self, code: bytes) -> int:
        module, version = c_void_p(), c_int()
        status = self._library.cuModuleLoadData(byref(module), code)
        if status in _UNKNOWN_IMAGES:
            self._call("cuDriverGetVersion", byref(version))
            known = f"CUDA {version.value // 1000}.{version.value % 1000 // 10}"
            raise DriverError("cuModuleLoadData", self._error("", status).status, (
                f"the driver, which knows {known}, cannot load what Triton's assembler makes. Install a later driver, or an "
                "earlier Triton"
            ))  # fmt: skip
        if status:
            raise self._error("cuModuleLoadData", status)
        return module.value or 0

    # Graphs

    def begin_capture(self, stream: int) -> None:
        """Collect the later work of a stream."""
        self._call("cuStreamBeginCapture_v2", stream, _RELAXED_CAPTURE)

    def end_capture(self, stream: int) -> int:
        """Return the graph of the work that was collected."""
        graph = c_void_p()
        self._call("cuStreamEndCapture", stream, byref(graph))
        return graph.value or 0

    def is_capturing(self, stream: int) -> bool:
        """Return whether a stream's work is being collected."""
        found = c_int()
        self._call("cuStreamIsCapturing", stream, byref(found))
        return found.value != 0

    def instantiate(self, graph: int) -> int:
        """Return an executable form of a graph, and release the graph."""
        executable = self._made("cuGraphInstantiateWithFlags", graph, 0)
        self._call("cuGraphDestroy", graph)
        return executable

    def launch_graph(self, executable: int, stream: int) -> None:
        """Put the work of a graph on a stream."""
        self._call("cuGraphLaunch", executable, stream)

    def destroy_executable(self, executable: int) -> None:
        """Release an executable graph."""
        self._call("cuGraphExecDestroy", executable)


_SCRATCH = (0, 0)


class LoadedKernel:
    """A function of a loaded cubin. Triton's kernels take two more pointers, to scratch memory that is not used here."""

    def __init__(self, driver: LibCuda, function: int, threads: int, shared: int):
        self._driver, self._function, self._threads, self._shared = driver, function, threads, shared
        self.native = driver.launch_address, function, threads, shared, len(_SCRATCH)  # for launch plans

    def launch(self, stream: int, grid: tuple[int, int, int], arguments: Sequence[int], constants: dict[str, int]) -> None:
        """Put a launch on a stream. The driver copies the arguments before it returns."""
        driver = self._driver
        status = launch_on_gpu(
            driver.launch_address, self._function, *grid, self._threads, self._shared, stream, (*arguments, *_SCRATCH)
        )
        if status:
            raise driver._error("cuLaunchKernel", status)
