"""Create parameters and buffers of layers: uninitialised, to be filled by `nn.init`."""

from __future__ import annotations

from collections.abc import Sequence

from rushlight.core.device import device as device_type
from rushlight.core.dtype import dtype as element_type
from rushlight.core.dtype import get_default_dtype
from rushlight.core.overrides import asks_modes
from rushlight.core.tensor import Tensor
from rushlight.core.thread_state import state
from rushlight.nn.parameter import Parameter
from rushlight.ops.packet import namespaces

aten = namespaces.namespace("aten")


def new_tensor(
    shape: Sequence[int],
    device: device_type | str | None = None,
    dtype: element_type | None = None,
    fill: float | None = None,
) -> Tensor:
    """Return a tensor of the default dtype unless `dtype` says otherwise, filled with a number or uninitialised."""
    if asks_modes():
        public = aten.empty.public if fill is None else aten.full.public
        return public(list(shape), *(() if fill is None else (fill,)), device=device, dtype=dtype)
    dtype = dtype or get_default_dtype()
    device = state.default_device if device is None else device
    if fill is None:
        return aten.empty.memory_format(list(shape), dtype=dtype, device=device)
    return aten.full.default(list(shape), fill, dtype=dtype, device=device)


def new_parameter(
    shape: Sequence[int],
    device: device_type | str | None = None,
    dtype: element_type | None = None,
    fill: float | None = None,
) -> Parameter:
    """Return a parameter made like `new_tensor`."""
    return Parameter(new_tensor(shape, device, dtype, fill))
