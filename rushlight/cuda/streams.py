"""`torch.cuda.Stream` and `Event`: queues of a GPU's work, and points in them."""

from __future__ import annotations

import weakref

from rushlight.core import streams
from rushlight.core.device import device, present_device
from rushlight.cuda import runtime
from rushlight.cuda.driver import DEFAULT_STREAM

__all__ = ["Event", "ExternalStream", "Stream", "StreamContext", "current_stream", "default_stream", "index_of", "set_stream",
"stream"]


def index_of(where: device | str | int | None) -> int:
    """Return the index of a device; None means the current one. AssertionError without a GPU, ValueError for another kind."""
    if where is None:
        require_device()
        return runtime.current_index()
    place = present_device(device("cuda", where) if isinstance(where, int) else where)
    if place.type != "cuda":
        raise ValueError(f"Expected a cuda device, but got: {place}")
    return place.index


def require_device() -> None:
    """Raise AssertionError if there is no GPU."""
    present_device("cuda")


class Stream(streams.Stream):
    """A queue of work on a GPU, which runs in order; streams run beside one another. Negative priorities run first."""

    def __init__(self, device: device | str | int | None = None, priority: int = 0, *, stream_ptr: int | None = None):
        if not runtime.is_present():
            raise RuntimeError("torch.cuda.Stream requires CUDA support")
        self.device_index = index_of(device)
        self.priority = priority
        self._entered: list[StreamContext] = []
        if stream_ptr is None:
            idle = runtime.device_at(self.device_index).idle_streams(priority)
            stream_ptr = idle.take()
            weakref.finalize(self, idle.give_back, stream_ptr)
        self.cuda_stream = stream_ptr

    @property
    def device(self) -> device:
        """Return the stream's device."""
        return runtime.device_at(self.device_index).place

    @property
    def stream_id(self) -> int:
        """Return the driver's handle."""
        return self.cuda_stream

    def wait_stream(self, stream: Stream) -> None:
        """Let the later work of this stream wait for the present work of another."""
        self.wait_event(stream.record_event())

    def wait_event(self, event: Event) -> None:
        """Let the later work of this stream wait for an event."""
        event.wait(self)

    def record_event(self, event: Event | None = None) -> Event:
        """Return an event that stands for the present work."""
        event = Event() if event is None else event
        event.record(self)
        return event

    def query(self) -> bool:
        """Return whether all work is done."""
        return runtime.device_at(self.device_index).driver.is_stream_done(self.cuda_stream)

    def synchronize(self) -> None:
        """Let the host wait for the present work."""
        found = runtime.device_at(self.device_index)
        found.driver.wait_for_stream(self.cuda_stream)
        found.check_status()

    @property
    def _as_parameter_(self) -> int:
        return self.cuda_stream

    def __cuda_stream__(self) -> tuple[int, int]:
        return (0, self.cuda_stream)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Stream) and (self.device_index, self.cuda_stream) == (other.device_index, other.cuda_stream)

    def __hash__(self) -> int:
        return hash((self.cuda_stream, self.device_index))

    def __enter__(self) -> Stream:
        context = StreamContext(self)
        context.__enter__()
        self._entered.append(context)
        return self

    def __exit__(self, *error: object) -> None:
        self._entered.pop().__exit__(*error)

    def __repr__(self) -> str:
        return f"<torch.cuda.Stream device={self.device} cuda_stream={self.cuda_stream:#x}>"


class ExternalStream(Stream):
    """A stream that another library made: `stream_ptr` is the driver's handle, which stays the other library's."""

    def __new__(cls, stream_ptr: int, device: device | str | int | None = None) -> ExternalStream:
        return object.__new__(cls)

    def __init__(self, stream_ptr: int, device: device | str | int | None = None):
        super().__init__(device, stream_ptr=stream_ptr)


class Event(streams.Event):
    """A point in a stream's work. With `enable_timing`, the time between two of them can be asked for."""

    def __init__(self, enable_timing: bool = False, blocking: bool = False, interprocess: bool = False, external: bool = False):
        if not runtime.is_present():
            raise RuntimeError("Tried to instantiate dummy base class Event")
        if interprocess:
            raise NotImplementedError("torch.cuda.Event: events of several processes are not here yet")
        self._timed = enable_timing
        self._handle: int | None = None
        self._index = 0

    def record(self, stream: Stream | None = None) -> None:
        """Let the event stand for the present work of a stream."""
        stream = current_stream() if stream is None else stream
        driver = runtime.device_at(stream.device_index).driver
        if self._handle is None:
            self._index, self._handle = stream.device_index, driver.create_event(self._timed)
            weakref.finalize(self, driver.destroy_event, self._handle)
        elif self._index != stream.device_index:
            raise RuntimeError(f"Event device {self._index} does not match recording stream's device {stream.device_index}.")
        driver.record_event(self._handle, stream.cuda_stream)

    def wait(self, stream: Stream | None = None) -> None:
        """Let the later work of a stream wait for this event."""
        stream = current_stream() if stream is None else stream
        if self._handle is not None:
            runtime.device_at(stream.device_index).driver.stream_waits_for(stream.cuda_stream, self._handle)

    def query(self) -> bool:
        """Return whether the work is done."""
        return self._handle is None or runtime.device_at(self._index).driver.is_event_done(self._handle)

    def synchronize(self) -> None:
        """Let the host wait for the work."""
        if self._handle is not None:
            runtime.device_at(self._index).driver.wait_for_event(self._handle)

    def elapsed_time(self, end_event: Event) -> float:
        """Return the milliseconds from this event to another; both must be done."""
        if self._handle is None or end_event._handle is None:
            raise ValueError("Both events must be recorded before calculating elapsed time.")
        if not (self._timed and end_event._timed):
            raise ValueError("Both events must be created with argument 'enable_timing=True'.")
        return runtime.device_at(self._index).driver.milliseconds(self._handle, end_event._handle)

    @property
    def cuda_event(self) -> int:
        """Return the driver's handle; 0 before the first `record`."""
        return self._handle or 0

    def __repr__(self) -> str:
        return f"<torch.cuda.Event {self.cuda_event:#x}>"


class EventOfDevice(Event):
    """What `torch.Event(device)` makes: an event of the device's current stream, unless another one is recorded."""

    def __init__(self, device: device | str | int | None = None, *, enable_timing: bool = False, blocking: bool = False,
                 interprocess: bool = False):  # fmt: skip
        super().__init__(enable_timing, blocking, interprocess)
        self.device = runtime.device_at(index_of(device)).place

    def record(self, stream: Stream | None = None) -> None:
        """Let the event stand for the present work of a stream."""
        super().record(current_stream(self.device) if stream is None else stream)


def _of(index: int, handle: int) -> Stream:
    return ExternalStream(handle, index) if handle else Stream(index, stream_ptr=DEFAULT_STREAM)


def current_stream(device: device | str | int | None = None) -> Stream:
    """Return the stream to which this thread puts its work on a device."""
    index = index_of(device)
    return _chosen.get((index, runtime.current_stream(index))) or _of(index, runtime.current_stream(index))


def default_stream(device: device | str | int | None = None) -> Stream:
    """Return a device's default stream."""
    return _of(index_of(device), DEFAULT_STREAM)


# Streams that a context chose, by index and handle, so that `current_stream` returns the object itself.
_chosen: weakref.WeakValueDictionary[tuple[int, int], Stream] = weakref.WeakValueDictionary()


def set_stream(stream: Stream | None) -> None:
    """Put this thread's later work on the stream's device to it; None changes nothing."""
    if stream is not None:
        runtime.choose_device(stream.device_index)
        runtime.choose_stream(stream.device_index, stream.cuda_stream)
        _chosen[stream.device_index, stream.cuda_stream] = stream


class StreamContext:
    """A context in which this thread's work goes to a stream; None changes nothing."""

    def __init__(self, stream: Stream | None):
        self.stream = stream

    def __enter__(self) -> None:
        if self.stream is None:
            return
        index = self.stream.device_index
        self._before = runtime.current_index(), runtime.current_stream(index)
        set_stream(self.stream)

    def __exit__(self, *error: object) -> None:
        if self.stream is not None:
            device_before, stream_before = self._before
            runtime.choose_stream(self.stream.device_index, stream_before)
            runtime.choose_device(device_before)


stream = StreamContext
