"""A pass over a loader: in this process, or by worker processes that fetch ahead."""

from __future__ import annotations

import itertools
import multiprocessing
import pickle
import queue
import warnings
from collections.abc import Iterator
from multiprocessing.connection import wait
from typing import Any, NoReturn

from rushlight.autograd.profiler import section
from rushlight.utils.data.fetching import make_fetcher
from rushlight.utils.data.sampler import random_seed
from rushlight.utils.data.worker import Job, Resume, StreamEnd, WorkerError, run

# Seconds that the main process waits for a dead worker's last results, and for a worker to exit after its loader.
_EXIT_SECONDS = 0.2
_NOTHING = object()


class LoaderIterator(Iterator):
    """Base: counts batches, and warns when a stream is longer than its dataset's length."""

    def __init__(self, loader: Any):
        self.loader = loader
        self.indices = iter(loader._index_sampler)
        # Drawn in every pass, even if unused, so that the random stream equals torch's.
        self.base_seed = random_seed(loader.generator)
        self.count = 0

    def __next__(self) -> Any:
        with section(f"enumerate(DataLoader)#{type(self).__name__}.__next__"):
            batch = self._next_batch()
        self.count += 1
        length = self.loader._reported_length
        if self.loader._is_iterable and length is not None and self.count > length:
            warnings.warn(
                f"Length of IterableDataset {self.loader.dataset} was reported to be {length} (when accessing "
                f"len(dataloader)), but {self.count} samples have been fetched.",
                stacklevel=2,
            )
        return batch

    def _next_batch(self) -> Any:
        raise NotImplementedError

    def __len__(self) -> int:
        return len(self.loader._index_sampler)


class LocalIterator(LoaderIterator):
    """Fetches on demand, in this process."""

    def __init__(self, loader: Any):
        super().__init__(loader)
        self.fetch = make_fetcher(
            loader._is_iterable, loader.dataset, loader._auto_collation, loader.collate_fn, loader.drop_last
        )

    def _next_batch(self) -> Any:
        return self.fetch(next(self.indices))


class WorkerIterator(LoaderIterator):
    """Keeps `prefetch_factor` tasks in each worker's queue, and returns results in the order of the tasks.

    `owners` maps the number of each pending task to its worker, `arrived` maps it to its result.
    """

    def __init__(self, loader: Any):
        super().__init__(loader)
        context = loader.multiprocessing_context or multiprocessing.get_context()
        self.results = context.Queue()
        self.done = context.Event()
        self.tasks, self.processes = [], []
        for worker in range(loader.num_workers):
            tasks = context.Queue()
            tasks.cancel_join_thread()
            process = context.Process(target=run, args=(self._job(worker), tasks, self.results, self.done), daemon=True)
            process.start()
            self.tasks.append(tasks)
            self.processes.append(process)
        self._begin()

    def _job(self, worker: int) -> Job:
        loader = self.loader
        return Job(
            loader.dataset, loader._is_iterable, loader._auto_collation, loader.collate_fn, loader.drop_last,
            self.base_seed, loader.worker_init_fn, worker, loader.num_workers,
        )  # fmt: skip

    def _begin(self) -> None:
        self.owners: dict[int, int] = {}
        self.arrived: dict[int, bytes] = {}
        self.working = [True] * len(self.tasks)
        self.turns = itertools.cycle(range(len(self.tasks)))
        self.sent = self.next_number = 0
        for _ in range(self.loader.prefetch_factor * len(self.tasks)):
            self._send()

    def restart(self) -> None:
        """Begin another pass with persistent workers. Results of an aborted pass are discarded."""
        self.indices = iter(self.loader._index_sampler)
        self.count = 0
        for tasks in self.tasks:
            tasks.put(Resume())
        waiting = len(self.tasks)
        while waiting:
            number, _, _ = self._receive()
            waiting -= isinstance(number, Resume)
        self._begin()

    def _send(self) -> None:
        """Send the next task to the next active worker."""
        worker = next((w for w in itertools.islice(self.turns, len(self.tasks)) if self.working[w]), None)
        if worker is None:
            return
        indices = next(self.indices, _NOTHING)
        if indices is not _NOTHING:
            self.tasks[worker].put((self.sent, indices))
            self.owners[self.sent] = worker
            self.sent += 1

    def _next_batch(self) -> Any:
        while self.owners:
            number = self.next_number if self.loader.in_order else self._any_arrived()
            if number in self.arrived:
                answer = pickle.loads(self.arrived.pop(number))
                del self.owners[number]
                self.next_number += 1
                if isinstance(answer, StreamEnd):
                    self._stop(answer.worker)
                    continue
                self._send()
                if isinstance(answer, WorkerError):
                    answer.reraise()
                return answer
            received, _, payload = self._receive()
            self.arrived[received] = payload
        if not self.loader.persistent_workers:
            self.shut_down()
        raise StopIteration

    def _any_arrived(self) -> int:
        return next(iter(self.arrived), -1)

    def _stop(self, worker: int) -> None:
        """A worker's stream has ended: other workers take its turns, and its remaining tasks will report the same."""
        self.working[worker] = False
        if not self.loader.persistent_workers:
            self.tasks[worker].put(None)
        self._send()

    def _receive(self) -> tuple:
        """Return the next result of any worker; RuntimeError when it takes longer than the loader's timeout, or a worker
        died."""
        workers = [p.sentinel for p, working in zip(self.processes, self.working, strict=True) if working]
        ready = wait([self.results._reader, *workers], self.loader.timeout or None)
        if not ready:
            self.shut_down(0)
            raise RuntimeError(f"DataLoader timed out after {self.loader.timeout} seconds")
        try:
            # A dead worker may have sent something before.
            return self.results.get(timeout=None if self.results._reader in ready else _EXIT_SECONDS)
        except queue.Empty:
            self._raise_dead()

    def _raise_dead(self) -> NoReturn:
        dead = [
            process for process, working in zip(self.processes, self.working, strict=True)
            if working and not process.is_alive()
        ]  # fmt: skip
        pids = ", ".join(str(process.pid) for process in dead)
        codes = ", ".join(str(process.exitcode) for process in dead)
        self.shut_down(0)
        raise RuntimeError(f"DataLoader worker (pid(s) {pids}) exited unexpectedly (exit code {codes})")

    def shut_down(self, patience: float = 5.0) -> None:
        """Stop all workers; those that do not exit within `patience` seconds are terminated."""
        if self.done.is_set():
            return
        self.done.set()
        for tasks in self.tasks:
            tasks.put(None)
            tasks.close()
        for process in self.processes:
            process.join(patience)
            if process.is_alive():
                process.terminate()
                process.join()
        self.owners.clear()
        self.results.close()

    def __del__(self):
        # Garbage collection may have closed the queues before; then the workers are not told to stop.
        if self.__dict__.get("processes"):
            self.shut_down(_EXIT_SECONDS)


# PyTorch's names, which programs test for.
_BaseDataLoaderIter = LoaderIterator
_SingleProcessDataLoaderIter, _MultiProcessingDataLoaderIter = LocalIterator, WorkerIterator
