"""Devices: where a tensor's memory lies. `cpu` holds data; `meta` holds sizes and strides only; `cuda` is a GPU.

A device object can be made of every name that torch knows; making a tensor on one that is not present fails as it does in
torch's build for CPUs. Whether a GPU is present is asked of the provider of `GPUS`, at the first use of a device "cuda".
`with device("meta"):` makes that the device of new tensors in the block.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import NoReturn

from rushlight.core.providers import import_provider
from rushlight.core.thread_state import state

_NAMES = (
    "cpu", "cuda", "ipu", "xpu", "mkldnn", "opengl", "opencl", "ideep", "hip", "ve", "fpga", "maia", "xla", "lazy", "vulkan",
    "mps", "meta", "hpu", "mtia", "privateuseone",
)  # fmt: skip
_PRESENT = ("cpu", "meta")
GPUS = "GPUs"
_INDEX = re.compile(r"0|[1-9][0-9]*")
_FORMS = "\n * (torch.device device)\n * (str type, int index = -1)\n"


class device:
    """`device("cuda:1")`, `device("cuda", 1)`, `device(other)`: a type and an index, which is None where none is given.

    RuntimeError for an unknown name, and for `device(1)`, which means accelerator 1: there is no accelerator.
    """

    __slots__ = ("_type", "_index")

    def __new__(cls, *args: str | device | int, **kwargs: str | int | None) -> device:
        if len(args) == 1 and not kwargs:
            if type(args[0]) is device:
                return args[0]
            known = _by_text.get(args[0]) if type(args[0]) is str else None
            if known is not None:
                return known
        elif len(args) == 2 and not kwargs and type(args[0]) is str and type(args[1]) is int and args in _made:
            return _made[args]
        name, index = _parse(*_arguments(args, kwargs))
        made = _made.get((name, index))
        if made is None:
            made = object.__new__(cls)
            object.__setattr__(made, "_type", name)
            object.__setattr__(made, "_index", index)
            made = _made.setdefault((name, index), made)
        if len(args) == 1 and type(args[0]) is str:
            _by_text[args[0]] = made
        return made

    @property
    def type(self) -> str:
        """Return the name of the device type: "cpu"."""
        return self._type

    @property
    def index(self) -> int | None:
        """Return the number of the device within its type, or None."""
        return self._index

    def __setattr__(self, name: str, value: object) -> NoReturn:
        raise AttributeError(f"attribute '{name}' of 'torch.device' objects is not writable")

    def __enter__(self) -> device:
        state.default_devices += (state.default_device,)
        _choose(self)
        return self

    def __exit__(self, *error: object) -> None:
        *outer, before = state.default_devices
        state.default_devices = tuple(outer)
        _choose(before)

    def __lt__(self, other: object) -> NoReturn:
        raise TypeError("comparison not implemented")

    __le__ = __gt__ = __ge__ = __lt__

    def __str__(self) -> str:
        return self._type if self._index is None else f"{self._type}:{self._index}"

    def __repr__(self) -> str:
        suffix = "" if self._index is None else f", index={self._index}"
        return f"device(type='{self._type}'{suffix})"

    def __reduce__(self):
        return (device, (self._type,) if self._index is None else (self._type, self._index))

    def __copy__(self) -> device:
        return self

    def __deepcopy__(self, memo: dict) -> device:
        return self


_made: dict[tuple[str, int | None], device] = {}  # (type, index) -> the one object for this device
_by_text: dict[str, device] = {}  # the devices of texts that were read before


def _arguments(args: tuple, kwargs: dict) -> tuple[object, object]:
    """Return the type and the index from the arguments; TypeError where they fit no signature."""
    given = dict(zip(("type", "index"), args, strict=False)) | kwargs
    name = given.get("type", given.get("device"))
    if len(args) + len(kwargs) > len(given) or len(args) > 2 or not isinstance(name, str | device | int) or name is True:
        kinds = [type(value).__name__ for value in args] + [f"{key}={type(value).__name__}, " for key, value in kwargs.items()]
        raise TypeError(
            f"device() received an invalid combination of arguments - got ({', '.join(kinds)}), but expected one of:{_FORMS}"
        )
    index = given.get("index")
    if not isinstance(name, str) and "index" in given:
        raise TypeError(f"device(): argument 'type' (position 1) must be str, not {_kind(name)}")
    if index is not None and (isinstance(index, bool) or not isinstance(index, int)):
        raise TypeError(f"device(): argument 'index' (position 2) must be int, not {type(index).__name__}")
    return name, index


def _kind(value: object) -> str:
    return "torch.device" if isinstance(value, device) else type(value).__name__


def _parse(given: str | device | int, index: int | None) -> tuple[str, int | None]:
    if isinstance(given, device):
        return given.type, given.index
    number = given if isinstance(given, int) else index
    if number is not None and number < 0:
        raise RuntimeError("Device index must not be negative")
    if isinstance(given, int):
        if not gpus.count():
            raise RuntimeError("Cannot access accelerator device when none is available.")
        return "cuda", given
    if not given:
        raise RuntimeError("Device string must not be empty")
    name, colon, text = given.partition(":")
    if colon and not _INDEX.fullmatch(text):
        raise RuntimeError(f"Invalid device string: '{given}'")
    if name not in _NAMES:
        raise RuntimeError(f"Expected one of {', '.join(_NAMES)} device type at start of device string: {given}")
    if colon and index is not None:
        raise RuntimeError(f"type (string) must not include an index because index was passed explicitly: {given}")
    return name, int(text) if colon else index


class Gpus:
    """What lower layers ask about GPUs. The provider of `GPUS` sets the functions when it is imported: the number of GPUs, the
    index of the current one, why there is none, whether a storage is page-locked, an impl like another in page-locked memory,
    storages in page-locked memory and on a GPU, copies of bytes between storages, and the GPUs' generators."""

    def __init__(self) -> None:
        self.counted: Callable[[], int] | None = None
        self.current: Callable[[], int] | None = None
        self.why_none: Callable[[], str] | None = None
        self.is_pinned: Callable[..., bool] | None = None
        self.pinned_like: Callable | None = None
        self.allocate: Callable | None = None
        self.allocate_pinned: Callable | None = None
        self.copy_bytes: Callable | None = None
        self.seed_all: Callable[[int], None] | None = None
        self.generators: Callable[[], list] = list
        self.first_seed: int | None = None  # generators that are made later start from it

    def seed(self, seed: int) -> None:
        """Restart the generators of all GPUs, also of those that are used later."""
        self.first_seed = seed
        if self.seed_all is not None:
            self.seed_all(seed)

    def count(self) -> int:
        """Return the number of GPUs."""
        if self.counted is None:
            import_provider(GPUS)
        return 0 if self.counted is None else self.counted()

    def absence(self) -> str:
        """Return why there is no GPU; "" if that is not known."""
        return "" if self.why_none is None else self.why_none()

    def place(self, where: device) -> device | None:
        """Return a device "cuda" with its index; None if there is no GPU, RuntimeError for an index too large."""
        count = self.count()
        if not count:
            return None
        if where.index is not None and where.index >= count:
            raise RuntimeError(f"CUDA error: invalid device ordinal: there are {count} devices, got {where}")
        return where if where.index is not None else device("cuda", self.current())


gpus = Gpus()

CPU = device("cpu")
META = device("meta")


def as_device(value: device | str | int | None) -> device:
    """Return `value` as a device; None means the CPU. It need not be present."""
    if value is None:
        return CPU
    return value if isinstance(value, device) else device(value)


def present_device(value: device | str | int | None) -> device:
    """Return `value` as a device that can hold tensors; torch's error where this build lacks it."""
    where = as_device(value)
    if where.type not in _PRESENT:
        if where.type == "cuda" and (placed := gpus.place(where)) is not None:
            return placed
        _raise_if_initialised(where.type)
        raise RuntimeError(f"PyTorch is not linked with support for {where.type} devices")
    return where


def require_host(value: device | str | int | None, kind: str) -> None:
    """Raise NotImplementedError where a tensor of a kind that lives on the CPU only would be on a GPU, and RuntimeError for
    devices that are not there."""
    where = as_device(value)
    if where.type == "cuda" and gpus.count():
        raise NotImplementedError(f"{kind} tensors live on the CPU only, not on {where}")
    if where.type not in _PRESENT:
        raise RuntimeError(f"PyTorch is not linked with support for {where.type} devices")


def device_for_operator(value: device | str | int, operator: str) -> device:
    """Return `value` as the device on which `operator` makes its result; torch's error where this build lacks it."""
    where = as_device(value)
    if where.type not in _PRESENT:
        if where.type == "cuda" and (placed := gpus.place(where)) is not None:
            return placed
        _raise_if_initialised(where.type)
        if where.type in ("mkldnn", "opengl", "opencl", "ideep"):
            raise RuntimeError(f"{where.type} is a device type of the past, which has no operators")
        raise NotImplementedError(
            f"Could not run '{operator}' with arguments from the '{_BACKENDS.get(where.type, where.type.upper())}' backend. "
            f"The operator does not exist for this backend: tensors are made on {' and '.join(_PRESENT)}."
        )
    return where


def raise_absent(name: str) -> NoReturn:
    """Raise torch's error for a call into an absent device's module, such as `torch.cuda.synchronize()`."""
    _raise_if_initialised(name)
    raise RuntimeError(f"PyTorch is not linked with support for {name} devices")


_BACKENDS = {"vulkan": "Vulkan", "lazy": "Lazy"}
_MTIA_HINT = (
    ". Ensure you have `import mtia.host_runtime.torch_mtia.dynamic_library` in your python src file and include "
    "`//mtia/host_runtime/torch_mtia:torch_mtia` as your target dependency!"
)


def _raise_if_initialised(name: str) -> None:
    """Raise the error of devices that torch initialises lazily."""
    if name in ("cuda", "xpu", "mtia"):
        error = AssertionError(f"Torch not compiled with {name.upper()} enabled{_MTIA_HINT if name == 'mtia' else ''}")
        if name == "cuda" and (reason := gpus.absence()):
            error.add_note(reason)
        raise error
    if name in ("hpu", "privateuseone"):
        raise ModuleNotFoundError(f"No module named 'torch.{name}'", name=f"torch.{name}")


def default_device() -> device:
    """Return the device of new tensors on this thread."""
    chosen = state.default_device
    if chosen is None:
        return CPU
    return chosen if chosen.index is not None else present_device(chosen)


def set_default_device(value: device | str | int | None) -> None:
    """Make `value` the device of new tensors on this thread, outside `with device(...)` blocks; None means the CPU."""
    chosen = None if value is None else as_device(value)
    if state.default_devices:
        state.default_devices = (chosen, *state.default_devices[1:])
    else:
        _choose(chosen)


def _choose(chosen: device | None) -> None:
    state.default_device = chosen
    state.makes_elsewhere = chosen is not None and chosen.type != "cpu"
