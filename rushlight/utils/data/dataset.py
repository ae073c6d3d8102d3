"""Datasets: samples by index or as a stream, and datasets composed of others."""

from __future__ import annotations

import bisect
import itertools
import math
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Generic, TypeVar

from rushlight.core.generator import Generator, default_generator
from rushlight.core.tensor import Tensor
from rushlight.ops import aten

T_co = TypeVar("T_co", covariant=True)


class Dataset(Generic[T_co]):
    """Base of datasets with samples by index: subclasses define `__getitem__(index)`, and mostly `__len__()`.

    `__getitems__(indices)`, where it is defined, gives the samples of a whole batch as a list.
    """

    def __getitem__(self, index: Any) -> T_co:
        raise NotImplementedError("Subclasses of Dataset should implement __getitem__.")

    def __add__(self, other: Dataset[T_co]) -> ConcatDataset[T_co]:
        return ConcatDataset([self, other])


class IterableDataset(Dataset[T_co]):
    """Base of datasets that are streams: subclasses define `__iter__()`.

    In worker processes every one has a copy of the dataset: `get_worker_info()` tells them apart.
    """

    def __iter__(self) -> Iterator[T_co]:
        raise NotImplementedError("Subclasses of IterableDataset should implement __iter__.")

    def __add__(self, other: Dataset[T_co]) -> ChainDataset:  # type: ignore[override]
        return ChainDataset([self, other])


class TensorDataset(Dataset[tuple[Tensor, ...]]):
    """Tuples of rows of tensors. AssertionError unless all have the same first size."""

    def __init__(self, *tensors: Tensor):
        if any(tensors[0].size(0) != tensor.size(0) for tensor in tensors):
            raise AssertionError(f"Size mismatch between tensors: first sizes are {[tensor.size(0) for tensor in tensors]}")
        self.tensors = tensors

    def __getitem__(self, index: Any) -> tuple[Tensor, ...]:
        return tuple(tensor[index] for tensor in self.tensors)

    def __len__(self) -> int:
        return self.tensors[0].size(0)


class StackDataset(Dataset[Any]):
    """Samples combined from several datasets: tuples for positional datasets, dicts for named ones.

    ValueError unless all have the same length, and for none or for both forms at once.
    """

    def __init__(self, *args: Dataset, **kwargs: Dataset):
        if bool(args) == bool(kwargs):
            raise ValueError(
                "Supported either ``tuple``- (via ``args``) or ``dict``- (via ``kwargs``) like input/output, but "
                f"{'both' if args else 'no'} types are given."
            )
        self.datasets: Any = args or kwargs
        self._parts = list(args or kwargs.values())
        lengths = {len(dataset) for dataset in self._parts}
        if len(lengths) > 1:
            raise ValueError(f"Size mismatch between datasets: lengths are {sorted(lengths)}")
        self._length = lengths.pop()

    def __getitem__(self, index: int) -> Any:
        return self._sample([dataset[index] for dataset in self._parts])

    def __getitems__(self, indices: list[int]) -> list:
        """Return the samples of a batch."""
        columns = []
        for dataset in self._parts:
            column = _fetch_samples(dataset, indices)
            if len(column) != len(indices):
                raise ValueError(f"Nested dataset's output size mismatch. Expected {len(indices)}, got {len(column)}")
            columns.append(column)
        return [self._sample(list(row)) for row in zip(*columns, strict=True)]

    def _sample(self, parts: list) -> Any:
        return dict(zip(self.datasets, parts, strict=True)) if isinstance(self.datasets, dict) else tuple(parts)

    def __len__(self) -> int:
        return self._length


def _fetch_samples(dataset: Dataset, indices: Sequence[int]) -> list:
    """Return the samples of several indices, in one call if the dataset supports that."""
    together = getattr(dataset, "__getitems__", None)
    return together(indices) if callable(together) else [dataset[index] for index in indices]


class ConcatDataset(Dataset[T_co]):
    """One dataset after another. AssertionError for none, and for streams; ValueError for an index out of range."""

    def __init__(self, datasets: Iterable[Dataset[T_co]]):
        self.datasets = list(datasets)
        if not self.datasets:
            raise AssertionError("datasets should not be an empty iterable")
        if any(isinstance(dataset, IterableDataset) for dataset in self.datasets):
            raise AssertionError("ConcatDataset does not support IterableDataset")
        self.cumulative_sizes = self.cumsum(self.datasets)

    @staticmethod
    def cumsum(sequence: Sequence) -> list[int]:
        """Return the cumulative lengths of the datasets."""
        return list(itertools.accumulate(map(len, sequence)))

    def __len__(self) -> int:
        return self.cumulative_sizes[-1]

    def __getitem__(self, index: int) -> T_co:
        if index < 0:
            if -index > len(self):
                raise ValueError("absolute value of index should not exceed dataset length")
            index += len(self)
        position = bisect.bisect_right(self.cumulative_sizes, index)
        return self.datasets[position][index - (self.cumulative_sizes[position - 1] if position else 0)]


class ChainDataset(IterableDataset):
    """One stream after another. AssertionError, when it is used, for datasets that are no streams."""

    def __init__(self, datasets: Iterable[Dataset]):
        super().__init__()
        self.datasets = datasets

    def __iter__(self) -> Iterator:
        for dataset in self.datasets:
            _check_stream(dataset)
            yield from dataset

    def __len__(self) -> int:
        total = 0
        for dataset in self.datasets:
            _check_stream(dataset)
            total += len(dataset)
        return total


def _check_stream(dataset: Dataset) -> None:
    if not isinstance(dataset, IterableDataset):
        raise AssertionError(f"ChainDataset only supports IterableDataset, not {type(dataset).__name__}")


class Subset(Dataset[T_co]):
    """The samples of a dataset at `indices`."""

    def __init__(self, dataset: Dataset[T_co], indices: Sequence[int]):
        self.dataset = dataset
        self.indices = indices

    def __getitem__(self, index: Any) -> T_co:
        if isinstance(index, list):
            return self.dataset[[self.indices[i] for i in index]]
        return self.dataset[self.indices[index]]

    def __getitems__(self, indices: list[int]) -> list[T_co]:
        """Return the samples of a batch."""
        return _fetch_samples(self.dataset, [self.indices[index] for index in indices])

    def __len__(self) -> int:
        return len(self.indices)


def random_split(
    dataset: Dataset[T_co], lengths: Sequence[int | float], generator: Generator | None = default_generator
) -> list[Subset[T_co]]:
    """Random parts of a dataset without overlap, of the given lengths, or of the given shares of it that sum to 1.

    The permutation is that of torch for the same state of the generator. ValueError unless the lengths sum to the dataset's.
    """
    if math.isclose(sum(lengths), 1) and sum(lengths) <= 1:
        lengths = _lengths_of_shares(len(dataset), lengths)
    if sum(lengths) != len(dataset):
        raise ValueError(
            f"Sum of input lengths does not equal the length of the input dataset! {list(lengths)} sum to {sum(lengths)}, "
            f"and the dataset has {len(dataset)} samples"
        )
    order = aten.randperm(sum(lengths), generator=generator).tolist()
    ends = list(itertools.accumulate(lengths))
    return [Subset(dataset, order[end - length : end]) for end, length in zip(ends, lengths, strict=True)]


def _lengths_of_shares(total: int, shares: Sequence[float]) -> list[int]:
    """Integer lengths; the remainder of rounding down goes to the first parts, one each."""
    lengths = []
    for position, share in enumerate(shares):
        if not 0 <= share <= 1:
            raise ValueError(f"Fraction at index {position} is not between 0 and 1")
        lengths.append(math.floor(total * share))
    for position in range(total - sum(lengths)):
        lengths[position % len(lengths)] += 1
    return lengths
