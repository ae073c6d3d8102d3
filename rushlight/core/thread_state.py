"""The state of a thread: dispatch keys to include and exclude, active modes, and the grad mode."""

from __future__ import annotations

import threading

import rushlight._C as _C


class ThreadState(threading.local, _C.ThreadState):
    """One record per thread: a C struct (`csrc/thread_state.h`), which native code reads too, and more attributes.

    `include` and `exclude` are key-set masks; `modes` is the stack of dispatch modes; `grad_enabled` and `inference` are the
    grad mode. `saved_tensor_hooks` is the stack of pairs (pack, unpack), or of a message that forbids them.

    `anomaly` is the active anomaly mode or None, and `backward_task` the running call of backward. `autocast` holds the
    autocast settings, None until somebody changes them. `batch_levels` are the active vmap levels, outermost first, and
    `dual_levels` those of forward-mode AD. `recording` is the profiler's recorder of this thread, or None. `fakes` is the fake
    tensor mode for which a user's fake kernel is running. `recorder` is the function that receives every operator call under
    the key Tracer; `exporting` says whether `torch.export` runs a program, `onnx_export` whether it does so for
    `torch.onnx.export`.
    """

    def __init__(self):
        self.anomaly = None
        self.backward_task = None
        self.autocast = None
        self.batch_levels = ()
        self.dual_levels = ()
        self.recorder = None
        self.exporting = False
        self.onnx_export = False
        self.fakes = None
        self.recording = None
        self.default_device = None
        self.default_devices = ()


state = ThreadState()


class IncludeKeys:
    """Context manager that adds the keys of the mask `bits` to every dispatch of this thread."""

    __slots__ = ("bits", "previous")

    def __init__(self, bits: int):
        self.bits = bits

    def __enter__(self):
        self.previous = state.include
        state.include = self.previous | self.bits

    def __exit__(self, *error):
        state.include = self.previous


class ExcludeKeys:
    """Context manager that hides the keys of the mask `bits` from every dispatch of this thread."""

    __slots__ = ("bits", "previous")

    def __init__(self, bits: int):
        self.bits = bits

    def __enter__(self):
        self.previous = state.exclude
        state.exclude = self.previous | self.bits

    def __exit__(self, *error):
        state.exclude = self.previous
