"""DistributedSampler: each of several processes takes its own part of a dataset."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sized

from rushlight.core.generator import Generator
from rushlight.core.lazy_module import LazyModule
from rushlight.ops import aten
from rushlight.utils.data.sampler import Sampler

dist = LazyModule("rushlight.distributed")


class DistributedSampler(Sampler[int]):
    """Every `num_replicas`-th index from `rank` on, in an order that all replicas share, shuffled by `seed` + epoch.

    To give all replicas the same number, indices are repeated at the end, or with `drop_last` left out. Call `set_epoch` before
    each pass. `num_replicas` and `rank` are those of the process group unless given. RuntimeError: they are not given, and MPI
    is not installed. ValueError: no process group was initialized, or a rank is out of range.
    """

    def __init__(
        self,
        dataset: Sized,
        num_replicas: int | None = None,
        rank: int | None = None,
        shuffle: bool = True,
        seed: int = 0,
        drop_last: bool = False,
    ):
        if num_replicas is None or rank is None:
            if not dist.is_available():
                raise RuntimeError("Requires distributed package to be available: give num_replicas and rank")
            num_replicas = dist.get_world_size() if num_replicas is None else num_replicas
            rank = dist.get_rank() if rank is None else rank
        if not 0 <= rank < num_replicas:
            raise ValueError(f"Invalid rank {rank}, rank should be in the interval [0, {num_replicas - 1}]")
        self.dataset = dataset
        self.num_replicas = num_replicas
        self.rank = rank
        self.epoch = 0
        self.drop_last = drop_last
        full, rest = divmod(len(dataset), num_replicas)
        self.num_samples = full if drop_last and rest else math.ceil(len(dataset) / num_replicas)
        self.total_size = self.num_samples * num_replicas
        self.shuffle = shuffle
        self.seed = seed

    def __iter__(self) -> Iterator[int]:
        if self.shuffle:
            generator = Generator().manual_seed(self.seed + self.epoch)
            indices = aten.randperm(len(self.dataset), generator=generator).tolist()
        else:
            indices = list(range(len(self.dataset)))
        if not self.drop_last and indices:
            indices = (indices * math.ceil(self.total_size / len(indices)))[: self.total_size]
        return iter(indices[: self.total_size][self.rank :: self.num_replicas])

    def __len__(self) -> int:
        return self.num_samples

    def set_epoch(self, epoch: int) -> None:
        """Set the number of the next pass, which changes its shuffling."""
        self.epoch = epoch
