"""Fetchers: turn indices into a batch, or for streams, a number of samples."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any


def make_fetcher(
    iterable: bool, dataset: Any, auto_collation: bool, collate_fn: Callable, drop_last: bool
) -> Callable[[Any], Any]:
    """Return the function from a sampler's item to a batch; for a stream, it raises StopIteration at the end."""
    if iterable:
        return _StreamFetcher(dataset, auto_collation, collate_fn, drop_last)
    return lambda indices: collate_fn(_samples(dataset, indices) if auto_collation else dataset[indices])


def _samples(dataset: Any, indices: Sequence) -> list:
    together = getattr(dataset, "__getitems__", None)
    return together(indices) if callable(together) else [dataset[index] for index in indices]


class _StreamFetcher:
    """Takes as many samples from a stream as a sampler gives indices; without batching, a single sample."""

    def __init__(self, dataset: Any, auto_collation: bool, collate_fn: Callable, drop_last: bool):
        self.samples = iter(dataset)
        self.auto_collation = auto_collation
        self.collate_fn = collate_fn
        self.drop_last = drop_last

    def __call__(self, indices: Any) -> Any:
        if not self.auto_collation:
            return self.collate_fn(next(self.samples))
        batch = list(itertools.islice(self.samples, len(indices)))
        if not batch or (self.drop_last and len(batch) < len(indices)):
            raise StopIteration
        return self.collate_fn(batch)
