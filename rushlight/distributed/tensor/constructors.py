"""Constructors of distributed tensors: zeros, ones, full, empty, rand, randn."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from rushlight.core.dtype import dtype as element_type
from rushlight.distributed.device_mesh import DeviceMesh
from rushlight.distributed.tensor.api import distribute_tensor
from rushlight.distributed.tensor.dtensor import DTensor
from rushlight.distributed.tensor.placement_types import Placement
from rushlight.ops import aten


def _constructor(name: str, what: str) -> Callable[..., DTensor]:
    def make(
        *size: Any, dtype: element_type | None = None, requires_grad: bool = False, device_mesh: DeviceMesh | None = None,
        placements: Sequence[Placement] | None = None,
    ) -> DTensor:  # fmt: skip
        sizes = list(size[0]) if len(size) == 1 and not isinstance(size[0], int) else list(size)
        whole = getattr(aten, name)(sizes, dtype=dtype)
        return distribute_tensor(whole, device_mesh, placements).requires_grad_(requires_grad)

    make.__name__ = make.__qualname__ = name
    make.__doc__ = f"Return a distributed tensor of shape `size`: {what}; replicated unless `placements` are given."
    return make


zeros = _constructor("zeros", "zeros")
ones = _constructor("ones", "ones")
empty = _constructor("empty", "any values")
rand = _constructor("rand", "random numbers between 0 and 1, those of the first rank")
randn = _constructor("randn", "normally distributed random numbers, those of the first rank")


def full(
    size: Sequence[int], fill_value: float, *, dtype: element_type | None = None, requires_grad: bool = False,
    device_mesh: DeviceMesh | None = None, placements: Sequence[Placement] | None = None,
) -> DTensor:  # fmt: skip
    """Return a distributed tensor of shape `size` filled with a number; replicated unless `placements` are given."""
    whole = aten.full(list(size), fill_value, dtype=dtype)
    return distribute_tensor(whole, device_mesh, placements).requires_grad_(requires_grad)
