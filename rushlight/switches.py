"""Settings of the whole process that programs set: deterministic algorithms, precision of products, the default device.

Every kernel here gives the same result for the same number of threads, and products of float32 are computed in float32: these
settings are kept and can be asked for, and change no result.
"""

from __future__ import annotations

import threading
import warnings
from importlib import import_module
from types import ModuleType

import rushlight._C as _C
from rushlight.core.determinism import DETERMINISM
from rushlight.core.device import as_device, default_device, device
from rushlight.core.device import set_default_device as choose_default_device

_PRECISIONS = ("highest", "high", "medium")
_lock = threading.Lock()
_settings: dict[str, object] = {
    "precision": "highest", "interop_threads": 1, "warn_always": False,
}  # fmt: skip


def _update_settings(**values: object) -> None:
    with _lock:
        _settings.update(values)


def use_deterministic_algorithms(mode: bool, *, warn_only: bool = False) -> None:
    """Ask for results that are the same in every run.

    They are, but for what is left open: where an index of `put_` or `max_unpool` occurs twice, which value stays. These raise
    RuntimeError then, or warn with `warn_only`. New memory (`torch.empty`) is filled with NaN or the largest number, unless
    `torch.utils.deterministic.fill_uninitialized_memory` is False. TypeError for what is no truth value.
    """
    if not isinstance(mode, bool):
        kind = type(mode).__name__
        raise TypeError(f"_set_deterministic_algorithms(): argument 'mode' (position 1) must be bool, not {kind}")
    if not isinstance(warn_only, bool):
        raise TypeError(f"_set_deterministic_algorithms(): argument 'warn_only' must be bool, not {type(warn_only).__name__}")
    DETERMINISM.asked, DETERMINISM.warns_only = mode, warn_only


def are_deterministic_algorithms_enabled() -> bool:
    """Return whether `use_deterministic_algorithms` is on."""
    return DETERMINISM.asked


def is_deterministic_algorithms_warn_only_enabled() -> bool:
    """Return whether only a warning was asked for where an algorithm is not deterministic."""
    return DETERMINISM.warns_only


def set_float32_matmul_precision(precision: str) -> None:
    """Set the least precision of products of float32 matrices: "highest", "high" or "medium".

    On the CPU it is always the highest. Triton kernels use TF32 for "high" and "medium".
    """
    if precision not in _PRECISIONS:
        raise ValueError(f"set_float32_matmul_precision expects one of {', '.join(_PRECISIONS)}, got {precision!r}")
    _update_settings(precision=precision)
    _C.choose_plans_anew()  # those of operators on a GPU


def get_float32_matmul_precision() -> str:
    """Return the precision that `set_float32_matmul_precision` set."""
    return _settings["precision"]


def set_num_interop_threads(count: int) -> None:
    """Set the number of operators that may run at the same time. Here they run one after the other, each on all threads."""
    if not isinstance(count, int) or count < 1:
        raise RuntimeError(f"set_num_interop_threads expects a positive integer, got {count!r}")
    _update_settings(interop_threads=count)


def get_num_interop_threads() -> int:
    """Return the number that `set_num_interop_threads` set."""
    return _settings["interop_threads"]


def set_warn_always(always: bool) -> None:
    """Set whether warnings that are given once are given every time."""
    _update_settings(warn_always=bool(always))
    if always:
        warnings.simplefilter("always", UserWarning)


def is_warn_always_enabled() -> bool:
    """Return whether warnings that are given once are given every time."""
    return _settings["warn_always"]


def set_flush_denormal(mode: bool) -> bool:
    """Treat the smallest numbers as 0: not supported, so the answer is False."""
    return False


def get_default_device() -> device:
    """Return the device of new tensors on this thread; torch's error where it has no index and this build has none of its
    kind."""
    return default_device()


def set_default_device(device: str | device | int | None) -> None:
    """Make new tensors on `device` in this thread unless they are given another; None means the CPU again."""
    choose_default_device(device)


def get_deterministic_debug_mode() -> int:
    """Return 0 if any algorithm may run, 1 if nondeterministic ones warn, 2 if they raise an error."""
    return (1 if DETERMINISM.warns_only else 2) if DETERMINISM.asked else 0


def set_deterministic_debug_mode(debug_mode: int | str) -> None:
    """Set the mode by its number or as "default", "warn" or "error". TypeError and RuntimeError for anything else."""
    if not isinstance(debug_mode, int | str):
        raise TypeError(f"debug_mode must be str or int, but got {type(debug_mode)}")
    known: dict[int | str, int] = {"default": 0, "warn": 1, "error": 2, 0: 0, 1: 1, 2: 2}
    if debug_mode not in known:
        expected = "expected one of `default`, `warn`, `error`, 0, 1, 2"
        raise RuntimeError(f"invalid value of debug_mode, {expected}, got {debug_mode!r}")
    use_deterministic_algorithms(known[debug_mode] > 0, warn_only=known[debug_mode] == 1)


def get_device_module(device: object = None) -> ModuleType:
    """Return the module of a kind of device, as `torch.cpu`. RuntimeError where there is none."""
    kind = as_device("cpu" if device is None else device).type
    try:
        return import_module(f"rushlight.{kind}")
    except ModuleNotFoundError:
        raise RuntimeError(f"Invalid device type '{kind}'; it has no module") from None
