"""Samplers: iterables of indices, or of lists of them, in the order in which samples are to be loaded.

Random orders are torch's for the same state of the generator.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence, Sized
from typing import Any, Generic, TypeVar

from rushlight.core.dtype import float64, int64
from rushlight.core.generator import Generator
from rushlight.core.tensor import Tensor
from rushlight.ops import aten
from rushlight.ops.construct import as_tensor

T_co = TypeVar("T_co", covariant=True)
# The number of indices per draw with replacement.
_BLOCK = 32


class Sampler(Generic[T_co]):
    """Base of samplers: subclasses define `__iter__()`, and mostly `__len__()`."""

    def __init__(self, data_source: Sized | None = None):
        pass

    def __iter__(self) -> Iterator[T_co]:
        raise NotImplementedError(f"{type(self).__name__} does not define __iter__()")


class SequentialSampler(Sampler[int]):
    """All indices in order."""

    def __init__(self, data_source: Sized):
        self.data_source = data_source

    def __iter__(self) -> Iterator[int]:
        return iter(range(len(self.data_source)))

    def __len__(self) -> int:
        return len(self.data_source)


class RandomSampler(Sampler[int]):
    """Random indices: permutations, one after another, or with `replacement` independent draws; `num_samples` in all.

    Without a `generator`, each pass takes a seed from the default generator. TypeError for a `replacement` that is no bool,
    ValueError for `num_samples` (by default the length of `data_source`) that is not a positive int.
    """

    def __init__(
        self,
        data_source: Sized,
        replacement: bool = False,
        num_samples: int | None = None,
        generator: Generator | None = None,
    ):
        self.data_source = data_source
        self.replacement = replacement
        self._num_samples = num_samples
        self.generator = generator
        _check_bool("replacement", replacement)
        _check_positive("num_samples", self.num_samples)

    @property
    def num_samples(self) -> int:
        """Return the number of indices in one pass."""
        return len(self.data_source) if self._num_samples is None else self._num_samples

    def __iter__(self) -> Iterator[int]:
        size, count = len(self.data_source), self.num_samples
        generator = self.generator
        if generator is None:
            generator = Generator().manual_seed(random_seed())
        if self.replacement:
            for _ in range(count // _BLOCK):
                yield from aten.randint(size, [_BLOCK], dtype=int64, generator=generator).tolist()
            yield from aten.randint(size, [count % _BLOCK], dtype=int64, generator=generator).tolist()
        else:
            for _ in range(count // size):
                yield from aten.randperm(size, generator=generator).tolist()
            yield from aten.randperm(size, generator=generator).tolist()[: count % size]

    def __len__(self) -> int:
        return self.num_samples


def random_seed(generator: Generator | None = None) -> int:
    """Return a seed drawn from a generator, by default the default one."""
    return aten.empty([], dtype=int64).random_(generator=generator).item()


class SubsetRandomSampler(Sampler[int]):
    """The given indices in random order."""

    def __init__(self, indices: Sequence[int], generator: Generator | None = None):
        self.indices = indices
        self.generator = generator

    def __iter__(self) -> Iterator[int]:
        for position in aten.randperm(len(self.indices), generator=self.generator).tolist():
            yield self.indices[position]

    def __len__(self) -> int:
        return len(self.indices)


class WeightedRandomSampler(Sampler[int]):
    """`num_samples` indices, each with a probability proportional to its weight, with or without `replacement`.

    ValueError unless the weights are one row and the other options as for RandomSampler.
    """

    weights: Tensor

    def __init__(
        self,
        weights: Sequence[float],
        num_samples: int,
        replacement: bool = True,
        generator: Generator | None = None,
    ):
        _check_positive("num_samples", num_samples)
        if not isinstance(replacement, bool):
            raise ValueError(f"replacement should be a boolean value, but got replacement={replacement}")
        self.weights = as_tensor(weights, dtype=float64)
        if self.weights.dim() != 1:
            raise ValueError(f"weights should be a 1d sequence but given weights have shape {tuple(self.weights.shape)}")
        self.num_samples = num_samples
        self.replacement = replacement
        self.generator = generator

    def __iter__(self) -> Iterator[int]:
        drawn = aten.multinomial(self.weights, self.num_samples, self.replacement, generator=self.generator)
        yield from iter(drawn.tolist())

    def __len__(self) -> int:
        return self.num_samples


class BatchSampler(Sampler[list[int]]):
    """The indices of another sampler in lists of `batch_size`; the last, shorter list is left out with `drop_last`.

    ValueError unless `batch_size` is a positive int and `drop_last` a bool.
    """

    def __init__(self, sampler: Sampler[int] | Iterable[int], batch_size: int, drop_last: bool):
        _check_positive("batch_size", batch_size)
        if not isinstance(drop_last, bool):
            raise ValueError(f"drop_last should be a boolean value, but got drop_last={drop_last}")
        self.sampler = sampler
        self.batch_size = batch_size
        self.drop_last = drop_last

    def __iter__(self) -> Iterator[list[int]]:
        indices = iter(self.sampler)
        while batch := list(itertools.islice(indices, self.batch_size)):
            if len(batch) == self.batch_size or not self.drop_last:
                yield batch

    def __len__(self) -> int:
        full, rest = divmod(len(self.sampler), self.batch_size)  # type: ignore[arg-type]
        return full + (rest > 0 and not self.drop_last)


def _check_positive(name: str, value: Any) -> None:
    if not isinstance(value, int) or isinstance(value, bool) or value <= 0:
        raise ValueError(f"{name} should be a positive integer value, but got {name}={value}")


def _check_bool(name: str, value: Any) -> None:
    if not isinstance(value, bool):
        raise TypeError(f"{name} should be a boolean value, but got {name}={value}")
