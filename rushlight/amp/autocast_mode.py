"""autocast: a region of a program in which operators choose their precision; and the settings of a thread that it changes.

The CPU and GPUs have settings of their own; other device types of torch are accepted and disabled with a warning.
"""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

from rushlight.amp.casts import WeightCache
from rushlight.autograd.grad_mode import Mode
from rushlight.core.device import device, gpus
from rushlight.core.dispatch_key import DispatchKey, bit
from rushlight.core.dtype import bfloat16, dtype, float16, float32
from rushlight.core.tensor import Tensor
from rushlight.core.thread_state import state

_AUTOCAST = bit(DispatchKey.Autocast)
_DEVICES = ("cpu", "cuda", "xpu", "mps", "hpu", "mtia", "maia", "xla", "ipu", "privateuseone")
_DTYPES = (bfloat16, float16)


@dataclass(frozen=True)
class Autocast:
    """The settings of a thread: whether autocast is on for CPU tensors and for those of GPUs, and in which dtypes. `nesting`
    counts regions; the outermost one's end clears the cache of weights."""

    cpu: bool = False
    dtype: dtype = bfloat16
    gpu: bool = False
    gpu_dtype: dtype = float16
    cache_enabled: bool = True
    nesting: int = 0
    cache: WeightCache = field(default_factory=WeightCache, compare=False)

    @property
    def enabled(self) -> bool:
        """Whether autocast is on for any device."""
        return self.cpu or self.gpu


def settings() -> Autocast:
    """Return the thread's settings."""
    if state.autocast is None:
        state.autocast = Autocast()
    return state.autocast


def set_settings(changed: Autocast) -> None:
    """Replace the thread's settings, and let dispatch know."""
    state.autocast = changed
    state.include = state.include | _AUTOCAST if changed.enabled else state.include & ~_AUTOCAST


class autocast(Mode):
    """Context manager and decorator: in the block, operators on a type of device cast their floating-point arguments as `casts`
    says.

    `dtype` is bfloat16 or float16; the first is the CPU's default, the second the GPU's. Inner regions count, also with
    `enabled=False`. With `cache_enabled`, a weight is cast once. Raises ValueError for a device type that is no str,
    RuntimeError for one that is unknown. """

    def __init__(
        self, device_type: str, dtype: dtype | None = None, enabled: bool = True, cache_enabled: bool | None = None
    ):
        self.arguments = (device_type, dtype, enabled, cache_enabled)
        device_type = _check_device(device_type)
        self.device = device_type
        self.fast_dtype = get_autocast_dtype(device_type) if dtype is None else dtype
        self.cache_enabled = settings().cache_enabled if cache_enabled is None else cache_enabled
        self.enabled = bool(enabled) and _is_supported(device_type, self.fast_dtype)
        self._outer: list[Autocast] = []

    def _fresh(self) -> autocast:
        return autocast(*self.arguments)

    def __enter__(self) -> autocast:
        outer = settings()
        self._outer.append(outer)
        changed = replace(outer, cache_enabled=self.cache_enabled, nesting=outer.nesting + 1)
        set_settings(_changed(changed, self.device, self.enabled, self.fast_dtype))
        return self

    def __exit__(self, *error: object) -> None:
        outer = self._outer.pop()
        if outer.nesting == 0:
            outer.cache.clear()
        set_settings(outer)


class RestoredAutocast:
    """Context manager under which the settings are those of an earlier time, for what is computed again."""

    def __init__(self, earlier: Autocast):
        self.earlier = replace(earlier, cache=WeightCache())

    def __enter__(self) -> None:
        self._outer = settings()
        set_settings(self.earlier)

    def __exit__(self, *error: object) -> None:
        set_settings(self._outer)


def _check_device(device_type: str) -> str:
    """Return the device type of a name that may have an index."""
    if not isinstance(device_type, str):
        raise ValueError(f"Expected `device_type` of type `str`, got: `{type(device_type)}`")
    device_type = device(device_type).type
    if device_type not in _DEVICES:
        raise RuntimeError(f"User specified an unsupported autocast device_type '{device_type}'")
    return device_type


def _changed(found: Autocast, device_type: str, enabled: bool, kind: dtype) -> Autocast:
    """Return settings that are changed for a type of device; other types than the CPU and GPUs have none."""
    if device_type == "cpu":
        return replace(found, cpu=enabled, dtype=kind)
    return replace(found, gpu=enabled, gpu_dtype=kind) if device_type == "cuda" else found


def _is_supported(device_type: str, kind: dtype) -> bool:
    if device_type != "cpu" and not (device_type == "cuda" and gpus.count()):
        warnings.warn(
            f"User provided device_type of '{device_type}', but {device_type.upper()} is not available. Disabling", stacklevel=3
        )
        return False
    if kind not in _DTYPES:
        warnings.warn(
            "In CPU autocast, but the target dtype is not supported. Disabling autocast.\n"
            f"CPU Autocast only supports dtype of torch.bfloat16, torch.float16 currently, not {kind}.",
            stacklevel=3,
        )
        return False
    return True


def is_autocast_available(device_type: str) -> bool:
    """Return whether autocast has an effect on a type of device."""
    _check_device(device_type)
    return device_type == "cpu" or (device_type == "cuda" and gpus.count() > 0)


def is_autocast_enabled(device_type: str = "cuda") -> bool:
    """Return whether the code runs in an autocast region of a type of device."""
    return settings().cpu if device_type == "cpu" else device_type == "cuda" and settings().gpu


def set_autocast_enabled(device_type: str | bool, enabled: bool | None = None) -> None:
    """Turn autocast on or off for a type of device."""
    if device_type != "cuda" or gpus.count():
        set_settings(_changed(settings(), str(device_type), bool(enabled), get_autocast_dtype(str(device_type))))


def get_autocast_dtype(device_type: str) -> dtype:
    """Return the lower precision of a type of device."""
    if device_type == "cpu":
        return settings().dtype
    return settings().gpu_dtype if device_type == "cuda" else float16


def set_autocast_dtype(device_type: str, dtype: dtype) -> None:
    """Set the lower precision of a type of device."""
    set_settings(_changed(settings(), device_type, is_autocast_enabled(device_type), dtype))


def is_autocast_cpu_enabled() -> bool:
    """Return whether the code runs in an autocast region of the CPU."""
    return settings().cpu


def set_autocast_cpu_enabled(enabled: bool) -> None:
    """Turn autocast on or off for the CPU."""
    set_autocast_enabled("cpu", enabled)


def get_autocast_gpu_dtype() -> dtype:
    """Return the lower precision of a GPU."""
    return get_autocast_dtype("cuda")


def get_autocast_cpu_dtype() -> dtype:
    """Return the lower precision of the CPU."""
    return settings().dtype


def set_autocast_cpu_dtype(dtype: dtype) -> None:
    """Set the lower precision of the CPU."""
    set_autocast_dtype("cpu", dtype)


def is_autocast_cache_enabled() -> bool:
    """Return whether casts of weights are kept."""
    return settings().cache_enabled


def set_autocast_cache_enabled(enabled: bool) -> None:
    """Set whether casts of weights are to be kept."""
    set_settings(replace(settings(), cache_enabled=enabled))


def clear_autocast_cache() -> None:
    """Forget the casts of weights."""
    settings().cache.clear()


def autocast_increment_nesting() -> int:
    """Count one more region, and say which it is."""
    set_settings(replace(settings(), nesting=settings().nesting + 1))
    return settings().nesting


def autocast_decrement_nesting() -> int:
    """Count one region less, and say how many are left."""
    set_settings(replace(settings(), nesting=settings().nesting - 1))
    return settings().nesting


def custom_fwd(
    fwd: Callable | None = None, *, device_type: str, cast_inputs: dtype | None = None
) -> Callable:
    """Decorate the `forward` of a Function: it runs as autocast stands, or with `cast_inputs` on cast inputs without autocast.

    The `backward` that `custom_bwd` decorates runs in the same way.
    """
    if fwd is None:
        return functools.partial(custom_fwd, device_type=device_type, cast_inputs=cast_inputs)
    _check_device(device_type)

    @functools.wraps(fwd)
    def decorated(*args: Any, **kwargs: Any) -> Any:
        ctx = args[0]
        ctx._dtype = get_autocast_dtype(device_type)
        enabled = is_autocast_enabled(device_type)
        ctx._fwd_used_autocast = enabled and cast_inputs is None
        if cast_inputs is None or not enabled:
            return fwd(*args, **kwargs)
        with autocast(device_type, enabled=False):
            return fwd(*_cast_all(args, device_type, cast_inputs), **_cast_all(kwargs, device_type, cast_inputs))

    return decorated


def custom_bwd(bwd: Callable | None = None, *, device_type: str) -> Callable:
    """Decorate the `backward` of a Function whose `forward` has `custom_fwd`: it runs with the same autocast."""
    if bwd is None:
        return functools.partial(custom_bwd, device_type=device_type)
    _check_device(device_type)

    @functools.wraps(bwd)
    def decorated(*args: Any, **kwargs: Any) -> Any:
        with autocast(device_type, enabled=args[0]._fwd_used_autocast, dtype=args[0]._dtype):
            return bwd(*args, **kwargs)

    return decorated


def _cast_all(value: Any, device_type: str, kind: dtype) -> Any:
    if isinstance(value, Tensor):
        fits = value.is_floating_point() and value.device.type == device_type and value.dtype in (*_DTYPES, float32)
        return value.to(kind) if fits else value
    if isinstance(value, dict):
        return {_cast_all(key, device_type, kind): _cast_all(part, device_type, kind) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return type(value)(_cast_all(part, device_type, kind) for part in value)
    return value
