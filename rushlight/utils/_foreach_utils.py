"""`torch.utils._foreach_utils`: group lists of tensors that one call can process together."""

from __future__ import annotations

from collections.abc import Sequence

from rushlight.core.device import device
from rushlight.core.dtype import dtype
from rushlight.core.tensor import Tensor

Lists = list[list[Tensor | None]]


def _get_foreach_kernels_supported_devices() -> list[str]:
    """Return the device types on which `_foreach_` operators are faster than loops."""
    return ["cuda", "xpu"]


def _get_fused_kernels_supported_devices() -> list[str]:
    """Return the device types with fused optimizers."""
    return ["cpu", "cuda"]


def _group_tensors_by_device_and_dtype(
    tensorlistlist: Sequence[Sequence[Tensor | None]], with_indices: bool = False
) -> dict[tuple[device, dtype], tuple[Lists, list[int]]]:
    """Return parallel lists of tensors, grouped by device and dtype of the first list.

    With `with_indices`, each group has its tensors' original indices. ValueError where lists differ in length.
    """
    if len({len(each) for each in tensorlistlist}) > 1:
        raise ValueError(f"lists must be of one length, got {[len(each) for each in tensorlistlist]}")
    groups: dict[tuple[device, dtype], tuple[Lists, list[int]]] = {}
    for place, first in enumerate(tensorlistlist[0] if tensorlistlist else ()):
        if first is None:
            raise ValueError(f"the first list must hold tensors only, got None in place {place}")
        lists, places = groups.setdefault((first.device, first.dtype), ([[] for _ in tensorlistlist], []))
        for made, given in zip(lists, tensorlistlist, strict=True):
            made.append(given[place])
        if with_indices:
            places.append(place)
    return groups
