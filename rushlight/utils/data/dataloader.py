"""DataLoader: batches of a dataset's samples."""

from __future__ import annotations

import multiprocessing
import warnings
from collections.abc import Callable, Iterable, Iterator
from multiprocessing.context import BaseContext
from typing import Any, Generic, TypeVar

from rushlight.core.device import gpus
from rushlight.core.generator import Generator
from rushlight.utils.data._utils.pin_memory import PinnedBatches
from rushlight.utils.data.collate import default_collate, default_convert
from rushlight.utils.data.dataset import Dataset, IterableDataset
from rushlight.utils.data.iterators import (  # noqa: F401  (programs import PyTorch's names from here)
    LoaderIterator,
    LocalIterator,
    WorkerIterator,
    _BaseDataLoaderIter,
    _MultiProcessingDataLoaderIter,
    _SingleProcessDataLoaderIter,
)
from rushlight.utils.data.sampler import BatchSampler, RandomSampler, Sampler, SequentialSampler

T_co = TypeVar("T_co", covariant=True)
_FIXED = ("batch_size", "batch_sampler", "sampler", "drop_last", "dataset", "persistent_workers")


class _EndlessSampler(Sampler[None]):
    """The sampler of a stream: yields None forever."""

    def __iter__(self) -> Iterator[None]:
        while True:
            yield None


class DataLoader(Generic[T_co]):
    """An iterable of batches of `dataset`, which has samples by index or is a stream.

    Args:
        batch_size: samples per batch; None gives samples as they are, or for a `sampler` of lists what the dataset gives.
        shuffle, sampler, batch_sampler: the order: as it is, random (torch's for the same generator), or a sampler's.
        num_workers: how many processes fetch samples, `prefetch_factor` batches each ahead; 0 is this process.
        collate_fn: makes a batch of a list of samples; `default_collate`.
        drop_last: leave out a last, shorter batch.
        timeout: seconds to wait for a worker's batch; 0 is for ever.
        worker_init_fn: called in each worker with its number, after seeding.
        multiprocessing_context: how workers are started: a name, as "spawn", or a context.
        generator: where seeds and random orders come from.
        persistent_workers: keep the workers for the next pass.
        in_order: give batches in the sampler's order, not as they come.
        pin_memory: batches are in page-locked memory, if there is a GPU. `pin_memory_device` may name the kind of device.

    Raises ValueError for options that exclude each other or are out of range. Exceptions of workers are raised here, with
    their traceback in the message; RuntimeError when a worker dies or takes too long.
    """

    def __init__(
        self,
        dataset: Dataset[T_co],
        batch_size: int | None = 1,
        shuffle: bool | None = None,
        sampler: Sampler | Iterable | None = None,
        batch_sampler: Sampler[list] | Iterable[list] | None = None,
        num_workers: int = 0,
        collate_fn: Callable[[list[T_co]], Any] | None = None,
        pin_memory: bool = False,
        drop_last: bool = False,
        timeout: float = 0,
        worker_init_fn: Callable[[int], None] | None = None,
        multiprocessing_context: BaseContext | str | None = None,
        generator: Generator | None = None,
        *,
        prefetch_factor: int | None = None,
        persistent_workers: bool = False,
        pin_memory_device: str = "",
        in_order: bool = True,
    ):
        _check_workers(num_workers, timeout, prefetch_factor, persistent_workers)
        if pin_memory and not gpus.count():
            warnings.warn("'pin_memory' argument is set as true but no accelerator is found: it has no effect", stacklevel=2)
        self._is_iterable = isinstance(dataset, IterableDataset)
        if self._is_iterable:
            _check_stream_options(shuffle, sampler, batch_sampler)
        _check_order_options(batch_size, shuffle, sampler, batch_sampler, drop_last)
        if batch_sampler is not None:
            batch_size, drop_last = None, False
        if sampler is None:
            sampler = self._default_sampler(dataset, shuffle, generator)
        if batch_size is not None and batch_sampler is None:
            batch_sampler = BatchSampler(sampler, batch_size, drop_last)
        self.dataset = dataset
        self.num_workers = num_workers
        self.prefetch_factor = 2 if num_workers and prefetch_factor is None else prefetch_factor
        self.pin_memory = pin_memory
        self.pin_memory_device = pin_memory_device
        self.timeout = timeout
        self.worker_init_fn = worker_init_fn
        self.multiprocessing_context = multiprocessing_context
        self.in_order = in_order
        self.batch_size = batch_size
        self.drop_last = drop_last
        self.sampler = sampler
        self.batch_sampler = batch_sampler
        self.generator = generator
        self.collate_fn = collate_fn or (default_convert if batch_sampler is None else default_collate)
        self.persistent_workers = persistent_workers
        self._reported_length: int | None = None
        self._iterator: WorkerIterator | None = None
        self._initialized = True

    def _default_sampler(self, dataset: Any, shuffle: bool | None, generator: Generator | None) -> Sampler:
        if self._is_iterable:
            return _EndlessSampler()
        return RandomSampler(dataset, generator=generator) if shuffle else SequentialSampler(dataset)

    @property
    def multiprocessing_context(self) -> BaseContext | None:
        """The multiprocessing context of workers; None for the default."""
        return self._context

    @multiprocessing_context.setter
    def multiprocessing_context(self, context: BaseContext | str | None) -> None:
        if context is not None and not self.num_workers:
            raise ValueError(
                "multiprocessing_context can only be used with multi-process loading (num_workers > 0), but got num_workers=0"
            )
        if isinstance(context, str):
            known = multiprocessing.get_all_start_methods()
            if context not in known:
                raise ValueError(
                    f"multiprocessing_context option should specify a valid start method in {known!r}, but got {context!r}"
                )
            context = multiprocessing.get_context(context)
        elif context is not None and not isinstance(context, BaseContext):
            raise TypeError(
                "multiprocessing_context option should be a valid context object or a string specifying the start method, but "
                f"got {context!r}"
            )
        self._context = context

    def __setattr__(self, name: str, value: Any) -> None:
        if name in _FIXED and self.__dict__.get("_initialized"):
            raise ValueError(f"{name} attribute should not be set after {type(self).__name__} is initialized")
        super().__setattr__(name, value)

    @property
    def _auto_collation(self) -> bool:
        return self.batch_sampler is not None

    @property
    def _index_sampler(self) -> Any:
        return self.batch_sampler if self._auto_collation else self.sampler

    def __iter__(self) -> LoaderIterator | PinnedBatches:
        batches = self._batches()
        return PinnedBatches(batches) if self.pin_memory and gpus.count() else batches

    def _batches(self) -> LoaderIterator:
        if not self.num_workers:
            return LocalIterator(self)
        if not self.persistent_workers:
            return WorkerIterator(self)
        if self._iterator is None:
            self._iterator = WorkerIterator(self)
        else:
            self._iterator.restart()
        return self._iterator

    def __len__(self) -> int:
        if not self._is_iterable:
            return len(self._index_sampler)
        length = len(self.dataset)  # type: ignore[arg-type]
        if self.batch_size is not None:
            full, rest = divmod(length, self.batch_size)
            length = full + (rest > 0 and not self.drop_last)
        self._reported_length = length
        return length


def _check_workers(num_workers: int, timeout: float, prefetch_factor: int | None, persistent_workers: bool) -> None:
    if num_workers < 0:
        raise ValueError(
            "num_workers option should be non-negative; use num_workers=0 to disable multiprocessing. "
            f"Got num_workers={num_workers}"
        )
    if timeout < 0:
        raise ValueError(f"timeout option should be non-negative, but got timeout={timeout}")
    if num_workers == 0 and prefetch_factor is not None:
        raise ValueError(
            "prefetch_factor option could only be specified in multiprocessing. Let num_workers > 0 to enable multiprocessing, "
            "otherwise set prefetch_factor to None."
        )
    if prefetch_factor is not None and prefetch_factor < 0:
        raise ValueError(f"prefetch_factor option should be non-negative, but got prefetch_factor={prefetch_factor}")
    if persistent_workers and num_workers == 0:
        raise ValueError("persistent_workers option needs num_workers > 0")


def _check_stream_options(shuffle: bool | None, sampler: Any, batch_sampler: Any) -> None:
    for name, value, is_given in (
        ("shuffle", shuffle, shuffle not in (False, None)),
        ("sampler", sampler, sampler is not None),
        ("batch_sampler", batch_sampler, batch_sampler is not None),
    ):
        if is_given:
            raise ValueError(f"DataLoader with IterableDataset: expected unspecified {name} option, but got {name}={value}")


def _check_order_options(
    batch_size: int | None, shuffle: bool | None, sampler: Any, batch_sampler: Any, drop_last: bool
) -> None:
    if sampler is not None and shuffle:
        raise ValueError("sampler option is mutually exclusive with shuffle")
    if batch_sampler is not None:
        if batch_size != 1 or shuffle or sampler is not None or drop_last:
            raise ValueError("batch_sampler option is mutually exclusive with batch_size, shuffle, sampler, and drop_last")
    elif batch_size is None and drop_last:
        raise ValueError("batch_size=None option disables auto-batching and is mutually exclusive with drop_last")
