"""`torch.distributed.tensor._utils`: shapes of parts."""

from __future__ import annotations

from collections.abc import Sequence

from rushlight.distributed.device_mesh import DeviceMesh
from rushlight.distributed.tensor.layout import local_part
from rushlight.distributed.tensor.placement_types import Placement


def compute_local_shape_and_global_offset(
    global_shape: Sequence[int], mesh: DeviceMesh, placements: Sequence[Placement]
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return the shape of this rank's part of a tensor, and where it begins."""
    return local_part(global_shape, mesh, tuple(placements))
