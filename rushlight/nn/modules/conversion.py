"""The conversions of `Module.to`, `Module.half` and so on, as functions from tensor to tensor."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

from rushlight.core import dtype as dtypes
from rushlight.core.device import as_device, device
from rushlight.core.dtype import dtype
from rushlight.core.layout import memory_format
from rushlight.core.tensor import Tensor

Conversion = Callable[[Tensor], Tensor]
_FORMS = "to(device), to(dtype), to(device, dtype), to(tensor), each with non_blocking and memory_format"


def where_floating(name: str) -> Conversion:
    """Convert floating tensors to the dtype called `name`, and leave others unchanged."""
    target = getattr(dtypes, name)
    return lambda tensor: tensor.to(dtype=target) if tensor.is_floating_point() else tensor


def conversion_to(*args: Any, **kwargs: Any) -> Conversion:
    """Return the conversion for arguments of `Module.to`; TypeError if they fit none of its signatures."""
    where, element_type, order = parse_to_arguments(*args, **kwargs)
    if element_type is not None and not (element_type.is_floating_point or element_type.is_complex):
        raise TypeError(
            f"nn.Module.to only accepts floating point or complex dtypes, but got desired dtype={element_type}"
        )
    if kwargs.get("copy"):
        raise RuntimeError(".to() does not accept copy argument")
    if element_type is not None and element_type.is_complex:
        warnings.warn(
            "Complex modules are a new feature under active development whose design may change, and some modules might not "
            "work as expected when using complex tensors as parameters or buffers.", stacklevel=3,
        )  # fmt: skip

    def convert(tensor: Tensor) -> Tensor:
        wanted: dict[str, Any] = {} if where is None else {"device": where}
        if element_type is not None and (tensor.is_floating_point() or tensor.is_complex()):
            wanted["dtype"] = element_type
        if order is not None and tensor.dim() in (4, 5):
            wanted["memory_format"] = order
        if tensor.is_meta and where is not None and where.type != "meta":
            raise NotImplementedError(
                "Cannot copy out of meta tensor; no data! Please use torch.nn.Module.to_empty() instead of "
                "torch.nn.Module.to() when moving module from meta to a different device."
            )
        return tensor.to(**wanted) if wanted else tensor

    return convert


def parse_to_arguments(*args: Any, **kwargs: Any) -> tuple[device | None, dtype | None, memory_format | None]:
    """Return the device, dtype and memory format from arguments of `to`."""
    found: dict[str, Any] = {}
    _check_order(args)
    for value in args:
        found.update(_classify(value))
    for key, value in kwargs.items():
        if key not in ("device", "dtype", "memory_format", "non_blocking", "copy", "tensor", "other"):
            raise TypeError(f"to() got an unexpected keyword argument '{key}'; expected {_FORMS}")
        found.update(_classify(value) if isinstance(value, Tensor) else {key: value})
    where = found.get("device")
    return None if where is None else as_device(where), found.get("dtype"), found.get("memory_format")


def _check_order(args: tuple) -> None:
    """Raise TypeError unless positional arguments are in the order of one of the signatures."""
    names_dtype = len(args) > 0 and isinstance(args[0], dtype | Tensor)
    flags = args[1:] if names_dtype else args[2:]
    fits = names_dtype or len(args) < 2 or args[1] is None or isinstance(args[1], dtype)
    if not fits or not all(isinstance(flag, bool) for flag in flags):
        given = ", ".join(type(value).__name__ for value in args)
        raise TypeError(f"to() received an invalid combination of arguments - got ({given}), but expected one of {_FORMS}")


def _classify(value: Any) -> dict[str, Any]:
    if isinstance(value, Tensor):
        return {"device": value.device, "dtype": value.dtype}
    if isinstance(value, dtype):
        return {"dtype": value}
    if isinstance(value, memory_format):
        return {"memory_format": value}
    if isinstance(value, bool):
        return {"non_blocking": value}
    if value is None or isinstance(value, (str, device, int)):
        return {} if value is None else {"device": value}
    raise TypeError(f"to() received an argument of type {type(value).__name__}; expected {_FORMS}")
