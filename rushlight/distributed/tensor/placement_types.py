"""Placements: how a tensor lies on the ranks of one dimension of a mesh."""

from __future__ import annotations

from dataclasses import dataclass

from rushlight.core.absent import absent_class

__all__ = ["Partial", "Placement", "Replicate", "Shard"]


class Placement:
    """How a tensor lies on the ranks along a dimension of a mesh: Shard, Replicate or Partial."""

    def is_shard(self, dim: int | None = None) -> bool:
        """Return whether each rank has a part, along `dim` if that is given."""
        return False

    def is_replicate(self) -> bool:
        """Return whether each rank has the whole tensor."""
        return False

    def is_partial(self, reduce_op: str | None = None) -> bool:
        """Return whether the tensor is the reduction of what the ranks have, by `reduce_op` if that is given."""
        return False


@dataclass(frozen=True)
class Shard(Placement):
    """Each rank has a part along the tensor's dimension `dim`, as `torch.chunk` cuts it."""

    dim: int

    def is_shard(self, dim: int | None = None) -> bool:
        return dim is None or self.dim == dim

    def __repr__(self) -> str:
        return f"Shard(dim={self.dim})"


@dataclass(frozen=True)
class Replicate(Placement):
    """Each rank has the whole tensor."""

    def is_replicate(self) -> bool:
        return True

    def __repr__(self) -> str:
        return "Replicate()"


@dataclass(frozen=True)
class Partial(Placement):
    """The tensor is the reduction of what the ranks have: "sum", "avg", "max", "min" or "product"."""

    reduce_op: str = "sum"

    def is_partial(self, reduce_op: str | None = None) -> bool:
        return reduce_op is None or self.reduce_op == reduce_op

    def __repr__(self) -> str:
        return f"Partial({self.reduce_op})"


_StridedShard = absent_class(
    "torch.distributed.tensor.placement_types._StridedShard", "shard a dimension by one axis of the mesh with Shard", Placement
)
