"""The contents of `torch.cuda`, `torch.xpu`, `torch.mps` and `torch.mtia` on a machine without these devices."""

from __future__ import annotations

from collections.abc import Callable, Iterable


def raising(name: str, error: type[Exception], message: str) -> Callable:
    """Return a function that raises `error`, because it needs the device."""

    def function(*args: object, **kwargs: object) -> None:
        raise error(message)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"Needs the device: {error.__name__}, as there is none."
    return function


def answering(name: str, answer: object, text: str) -> Callable:
    """Return a function that returns the answer which says that there is no device."""

    def function(*args: object, **kwargs: object) -> object:
        return answer

    function.__name__ = function.__qualname__ = name
    function.__doc__ = text
    return function


def _set_rng_state_all(set_rng_state: Callable) -> Callable:
    def set_rng_state_all(new_states: Iterable) -> None:
        """Set the generators of all devices. There are none, so the empty list that `get_rng_state_all` returns fits."""
        for index, state in enumerate(new_states):
            set_rng_state(state, index)

    return set_rng_state_all


class NoDevice:
    """A context that selects a device. None and negative numbers select nothing; other numbers raise `message`."""

    message = "there is no such device"

    def __init__(self, device: object) -> None:
        index = getattr(device, "index", device)
        self.idx = -1 if index is None else index
        self.prev_idx = -1

    def __enter__(self) -> None:
        if not isinstance(self.idx, int) or self.idx >= 0:
            raise AssertionError(self.message)

    def __exit__(self, *args: object) -> bool:
        return False


class NoStream:
    """A context that selects a stream; None changes nothing."""

    def __init__(self, stream: object) -> None:
        self.stream = stream

    def __enter__(self) -> None:
        return None

    def __exit__(self, *args: object) -> None:
        return None


def _needing_class(module: str, name: str, error: type[Exception], message: str) -> type:
    """Return a class that can be named and tested for; making an instance raises, because that needs the device."""

    def refuse(cls: type, *args: object, **kwargs: object) -> None:
        raise error(message)

    text = f"Needs the device: {error.__name__}, as there is none."
    return type(name, (), {"__new__": refuse, "__module__": module, "__doc__": text})


def device_names(kind: str, message: str, error: type[Exception] = AssertionError) -> dict[str, object]:
    """Return the names that `torch.<kind>` has for every kind of device."""
    needing = (
        "init", "current_device", "set_device", "synchronize", "current_stream", "default_stream", "set_stream", "seed",
        "seed_all", "initial_seed", "get_rng_state", "set_rng_state", "get_device_name",
        "get_device_capability", "get_device_properties", "mem_get_info", "utilization", "temperature", "power_draw",
        "clock_rate", "memory_usage", "can_device_access_peer", "ipc_collect", "set_per_process_memory_fraction",
    )  # fmt: skip
    counts = ("memory_allocated", "max_memory_allocated", "memory_reserved", "max_memory_reserved", "device_count")
    names: dict[str, object] = {name: raising(name, error, message) for name in needing}
    names.update({name: answering(name, 0, "0, as there is no device.") for name in counts})
    for name in ("is_available", "is_initialized", "is_bf16_supported", "is_tf32_supported", "is_current_stream_capturing"):
        names[name] = answering(name, False, "False, as there is no device.")
    for name in ("manual_seed", "manual_seed_all", "empty_cache"):
        names[name] = answering(name, None, "There is no device whose state this would change, as in torch.")
    for name in ("reset_peak_memory_stats", "reset_accumulated_memory_stats"):
        names[name] = raising(name, error, message)
    names["get_rng_state_all"] = answering("get_rng_state_all", [], "An empty list, as there is no device.")
    names["set_rng_state_all"] = _set_rng_state_all(names["set_rng_state"])
    names["get_arch_list"] = answering("get_arch_list", [], "An empty list, as there is no device.")
    for name in ("memory_stats", "memory_stats_as_nested_dict"):
        names[name] = answering(name, {}, "An empty dict, as there is no device.")
    names["device"] = names["device_of"] = type("device", (NoDevice,), {"message": message, "__doc__": NoDevice.__doc__})
    names["StreamContext"] = names["stream"] = NoStream
    needs = f"torch.{kind}.Stream requires {kind.upper()} support"
    names["Stream"] = _needing_class(f"torch.{kind}", "Stream", RuntimeError, needs)
    names["Event"] = _needing_class(f"torch.{kind}", "Event", RuntimeError, "Tried to instantiate dummy base class Event")
    names["default_generators"] = ()
    return names
