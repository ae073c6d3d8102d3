"""Random operators on distributed tensors: every part has numbers of its own, and what is replicated is alike on all ranks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from rushlight.core.generator import default_generator
from rushlight.distributed.collectives import broadcast
from rushlight.distributed.tensor.layout import Spec
from rushlight.distributed.tensor.placement_types import Shard
from rushlight.distributed.tensor.rules.pointwise import RANDOM
from rushlight.distributed.tensor.special import special
from rushlight.ops import aten


@special(*RANDOM)
def random(op: Any, args: tuple, kwargs: dict, specs: Sequence[Spec], outputs: Sequence[Spec]) -> Any:
    """Run a random operator with numbers that depend on which part this rank has. A generator of the caller's is used as is."""
    if kwargs.get("generator") is not None:
        return op(*args, **kwargs)
    with _numbers_of_part(outputs[0]):
        return op(*args, **kwargs)


@contextmanager
def _numbers_of_part(spec: Spec) -> Iterator[None]:
    """Start the default generator from a seed of this rank's part; afterwards it goes on one number after where it was.

    The seed is the generator's next number on the first rank. Without broadcasts, ranks whose generators differ would have
    different values of one replicated tensor.
    """
    seed = aten.randint(0, 2**48, [1])
    for mesh_dim in range(spec.mesh.ndim):
        broadcast(seed, group=spec.mesh.get_group(mesh_dim), group_src=0)
    after = default_generator.get_state()
    default_generator.manual_seed(int(seed) + _number_of_part(spec))
    try:
        yield
    finally:
        default_generator.set_state(after)


def _number_of_part(spec: Spec) -> int:
    """Return which of a tensor's parts this rank has: ranks with the same part get the same number."""
    number = 0
    for mesh_dim, (place, placement) in enumerate(zip(spec.mesh.get_coordinate() or (), spec.placements, strict=False)):
        if isinstance(placement, Shard):
            number = number * spec.mesh.size(mesh_dim) + place
    return number
