"""Public functions that take tensors one by one or in a sequence: meshgrid and the `atleast` views."""

from __future__ import annotations

import warnings
from collections.abc import Sequence

from rushlight.core.overrides import overridable
from rushlight.core.tensor import Tensor
from rushlight.ops.packet import namespaces

aten = namespaces.namespace("aten")
_NO_INDEXING = (
    "torch.meshgrid: in an upcoming release, it will be required to pass the indexing argument. Pass indexing='ij' for "
    "matrix indexing, as now."
)


@overridable
def meshgrid(*tensors: Tensor | Sequence[Tensor], indexing: str | None = None) -> tuple[Tensor, ...]:
    """Return the coordinates of the points of a grid, from those along each axis (0- or 1-dimensional): one view per axis.

    `indexing` "ij" (the default) orders the dimensions as the tensors are given, "xy" exchanges the first two.
    RuntimeError for tensors of more dimensions or of several dtypes.
    """
    given = tensors[0] if len(tensors) == 1 and isinstance(tensors[0], list | tuple) else tensors
    if indexing is None:
        warnings.warn(_NO_INDEXING, UserWarning, stacklevel=2)
    return aten.meshgrid.indexing(list(given), indexing="ij" if indexing is None else indexing)


def _of_least_rank(name: str, tensors: tuple) -> Tensor | tuple[Tensor, ...]:
    packet = getattr(aten, name)
    given = tensors[0] if len(tensors) == 1 else tensors
    return packet.Sequence(list(given)) if isinstance(given, list | tuple) else packet.default(given)


@overridable
def atleast_1d(*tensors: Tensor | Sequence[Tensor]) -> Tensor | tuple[Tensor, ...]:
    """Return each tensor as one of at least 1 dimension; a tuple where several are given."""
    return _of_least_rank("atleast_1d", tensors)


@overridable
def atleast_2d(*tensors: Tensor | Sequence[Tensor]) -> Tensor | tuple[Tensor, ...]:
    """Return each tensor as one of at least 2 dimensions, the new ones first; a tuple where several are given."""
    return _of_least_rank("atleast_2d", tensors)


@overridable
def atleast_3d(*tensors: Tensor | Sequence[Tensor]) -> Tensor | tuple[Tensor, ...]:
    """Return each tensor as one of at least 3 dimensions: (n,) gives (1, n, 1), (m, n) gives (m, n, 1)."""
    return _of_least_rank("atleast_3d", tensors)
