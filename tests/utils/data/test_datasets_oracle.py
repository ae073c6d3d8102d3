"""Datasets, samplers and collation against PyTorch's: the same samples in the same order for the same seeds."""

from __future__ import annotations

import collections
from collections import OrderedDict

import numpy as np
import pytest

import rushlight
import rushlight.utils.data as ours

torch = pytest.importorskip("torch")
import torch.utils.data as theirs  # noqa: E402  (needs torch)

pytestmark = pytest.mark.oracle
Point = collections.namedtuple("Point", ["x", "y"])


def plain(value):
    """Tensors as (dtype, values), in their containers."""
    if isinstance(value, rushlight.Tensor | torch.Tensor):
        return (str(value.dtype), value.tolist())
    if isinstance(value, dict):
        return (type(value).__name__, {key: plain(part) for key, part in value.items()})
    if isinstance(value, list | tuple):
        return (type(value).__name__, [plain(part) for part in value])
    return value


def both(call):
    results = []
    for library, data in ((rushlight, ours), (torch, theirs)):
        library.manual_seed(3)
        results.append(plain(call(library, data)))
    assert results[0] == results[1]


def dataset(library, data, count=10):
    return data.TensorDataset(library.arange(count), library.arange(count) * 2)


SAMPLERS = {
    "sequential": lambda t, d: list(d.SequentialSampler(range(7))),
    "random": lambda t, d: list(d.RandomSampler(range(7))),
    "random twice": lambda t, d: [list(s) for s in [d.RandomSampler(range(7))] for _ in range(2)],
    "random by generator": lambda t, d: list(d.RandomSampler(range(7), generator=t.Generator().manual_seed(5))),
    "several permutations": lambda t, d: list(d.RandomSampler(range(7), num_samples=17)),
    "replacement": lambda t, d: list(d.RandomSampler(range(7), replacement=True, num_samples=70)),
    "subset": lambda t, d: list(d.SubsetRandomSampler([3, 5, 8, 9])),
    "weighted": lambda t, d: list(d.WeightedRandomSampler([0.1, 0.5, 0.4], 12)),
    "weighted without replacement": lambda t, d: list(d.WeightedRandomSampler([0.1, 0.5, 0.4, 2.0], 3, replacement=False)),
    "batches": lambda t, d: list(d.BatchSampler(d.SequentialSampler(range(7)), 3, False)),
    "whole batches": lambda t, d: list(d.BatchSampler(d.SequentialSampler(range(7)), 3, True)),
    "distributed": lambda t, d: [list(d.DistributedSampler(range(11), 3, rank)) for rank in range(3)],
    "distributed in order": lambda t, d: list(d.DistributedSampler(range(11), 3, 1, shuffle=False, drop_last=True)),
    "distributed and few": lambda t, d: list(d.DistributedSampler(range(2), 5, 3)),
}
LOADERS = {
    "in order": lambda t, d: list(d.DataLoader(dataset(t, d), 3)),
    "whole batches": lambda t, d: list(d.DataLoader(dataset(t, d), 3, drop_last=True)),
    "shuffled": lambda t, d: list(d.DataLoader(dataset(t, d), 3, shuffle=True)),
    "random numbers after a pass": lambda t, d: [list(d.DataLoader(dataset(t, d), 3, shuffle=True)), t.rand(2)],
    "two passes": lambda t, d: [list(x) for x in [d.DataLoader(dataset(t, d), 4, shuffle=True)] for _ in range(2)],
    "by generator": lambda t, d: list(d.DataLoader(dataset(t, d), 3, True, generator=t.Generator().manual_seed(9))),
    "sampler": lambda t, d: list(d.DataLoader(dataset(t, d), 2, sampler=[3, 1, 4])),
    "batch sampler": lambda t, d: list(d.DataLoader(dataset(t, d), batch_sampler=[[3, 1], [4]])),
    "samples": lambda t, d: list(d.DataLoader(dataset(t, d), batch_size=None)),
    "lists of indices": lambda t, d: list(
        d.DataLoader(dataset(t, d), sampler=d.BatchSampler(d.SequentialSampler(range(10)), 4, False), batch_size=None)
    ),
    "collate": lambda t, d: list(d.DataLoader(list(range(5)), 2, collate_fn=sum)),
    "length": lambda t, d: [len(d.DataLoader(dataset(t, d), 3)), len(d.DataLoader(dataset(t, d), 3, drop_last=True))],
}  # fmt: skip
SPLITS = {
    "lengths": lambda t, d: [list(part) for part in d.random_split(dataset(t, d), [7, 3])],
    "shares": lambda t, d: [list(part.indices) for part in d.random_split(range(11), [0.5, 0.3, 0.2])],
    "generator": lambda t, d: [p.indices for p in d.random_split(range(9), [4, 5], t.Generator().manual_seed(1))],
}
DATASETS = {
    "concatenation": lambda t, d: list(dataset(t, d, 3) + dataset(t, d, 2)),
    "negative indices": lambda t, d: (dataset(t, d, 3) + dataset(t, d, 2))[-4],
    "stack": lambda t, d: [x for x in [d.StackDataset(dataset(t, d, 3), range(3))] for x in x],
    "stack by name": lambda t, d: list(d.DataLoader(d.StackDataset(a=dataset(t, d, 3), b=range(3)), 2)),
    "subset": lambda t, d: list(d.DataLoader(d.Subset(dataset(t, d), [7, 2, 5]), 2)),
}


@pytest.mark.parametrize("name", SAMPLERS)
def test_samplers(name):
    both(SAMPLERS[name])


@pytest.mark.parametrize("name", LOADERS)
def test_loaders(name):
    both(LOADERS[name])


@pytest.mark.parametrize("name", SPLITS)
def test_random_splits(name):
    both(SPLITS[name])


@pytest.mark.parametrize("name", DATASETS)
def test_datasets(name):
    both(DATASETS[name])


BATCHES = {
    "tensors": lambda t: [t.ones(2), t.zeros(2)],
    "arrays": lambda t: [np.ones(2, np.float32), np.zeros(2, np.float32)],
    "numpy numbers": lambda t: [np.float32(1), np.float32(2)],
    "floats": lambda t: [1.5, 2.5],
    "ints": lambda t: [1, 2],
    "bools": lambda t: [True, False],
    "strings": lambda t: ["a", "b"],
    "bytes": lambda t: [b"a", b"b"],
    "dicts": lambda t: [{"a": 1, "b": [1.0, 2]}, {"a": 2, "b": [3.0, 4]}],
    "ordered dicts": lambda t: [OrderedDict(a=1), OrderedDict(a=2)],
    "tuples": lambda t: [(1, "x", t.ones(1)), (2, "y", t.zeros(1))],
    "lists": lambda t: [[1, 2.0], [3, 4.0]],
    "named tuples": lambda t: [Point(1, 2.0), Point(3, 4.0)],
    "empty strings": lambda t: ["", ""],
}


@pytest.mark.parametrize("name", BATCHES)
def test_collate(name):
    both(lambda t, d: d.default_collate(BATCHES[name](t)))


@pytest.mark.parametrize("name", BATCHES)
def test_convert(name):
    both(lambda t, d: d.default_convert(BATCHES[name](t)[0]))


def stream(data):
    class Stream(data.IterableDataset):
        def __iter__(self):
            return iter(range(3))

    return Stream()


WRONG = {
    "no class": lambda d: d.default_collate([object()]),
    "string array": lambda d: d.default_collate([np.array(["a"])]),
    "unequal": lambda d: d.default_collate([[1, 2], [1]]),
    "sampler and shuffle": lambda d: d.DataLoader([1], sampler=[0], shuffle=True),
    "batch sampler and size": lambda d: d.DataLoader([1], batch_sampler=[[0]], batch_size=2),
    "drop_last without batches": lambda d: d.DataLoader([1], batch_size=None, drop_last=True),
    "workers": lambda d: d.DataLoader([1], num_workers=-1),
    "prefetch": lambda d: d.DataLoader([1], prefetch_factor=2),
    "persistent": lambda d: d.DataLoader([1], persistent_workers=True),
    "timeout": lambda d: d.DataLoader([1], timeout=-1),
    "context": lambda d: d.DataLoader([1], multiprocessing_context="fork"),
    "unknown context": lambda d: d.DataLoader([1], num_workers=1, multiprocessing_context="spoon"),
    "set later": lambda d: setattr(d.DataLoader([1]), "batch_size", 3),
    "no samples": lambda d: d.DataLoader([], shuffle=True),
    "batch size": lambda d: d.DataLoader([1], batch_size=0),
    "stream shuffled": lambda d: d.DataLoader(stream(d), shuffle=True),
    "stream sampled": lambda d: d.DataLoader(stream(d), sampler=[1]),
    "split": lambda d: d.random_split(range(5), [1, 2]),
    "share": lambda d: d.random_split(range(5), [-0.5, 1.5]),
    "sizes": lambda d: d.StackDataset(range(2), range(3)),
    "nothing stacked": lambda d: d.StackDataset(),
    "index": lambda d: d.ConcatDataset([range(2)])[-3],
    "nothing concatenated": lambda d: d.ConcatDataset([]),
    "weights": lambda d: d.WeightedRandomSampler([[0.1], [0.2]], 2),
    "rank": lambda d: d.DistributedSampler(range(3), 2, 2),
    "replacement": lambda d: d.RandomSampler(range(3), replacement=1),
    "abstract": lambda d: d.Dataset()[0],
}  # fmt: skip


@pytest.mark.parametrize("name", WRONG)
def test_wrong_use_raises_the_same_type(name):
    with pytest.raises(Exception) as expected:
        WRONG[name](theirs)
    with pytest.raises(expected.type):
        WRONG[name](ours)
