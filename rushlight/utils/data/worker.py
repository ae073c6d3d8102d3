"""The worker processes of a loader: their main function, and the transport of errors.

In: a queue of tasks (number, indices). Out: a queue of (number, worker, pickled result).
"""

from __future__ import annotations

import os
import pickle
import queue
import random
import sys
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from multiprocessing.reduction import ForkingPickler
from typing import Any

import numpy as np

from rushlight.core.parallel import set_num_threads
from rushlight.random import manual_seed
from rushlight.utils.data.fetching import make_fetcher

# Seconds that a worker waits for a task before it checks whether its parent is alive.
_PATIENCE = 5.0


@dataclass(frozen=True)
class WorkerInfo:
    """A worker's number, the number of workers, its seed, and its copy of the dataset."""

    id: int
    num_workers: int
    seed: int
    dataset: Any


_info: WorkerInfo | None = None


def get_worker_info() -> WorkerInfo | None:
    """Information about the running worker; None in the main process."""
    return _info


@dataclass(frozen=True)
class StreamEnd:
    """A worker's stream has no more samples."""

    worker: int


@dataclass(frozen=True)
class Resume:
    """A task that starts a new pass in a persistent worker."""


class WorkerError:
    """A picklable form of a worker's exception: its type and the text of its traceback."""

    def __init__(self, where: str):
        self.kind, error, _ = sys.exc_info()
        self.text = f"Caught {self.kind.__name__} {where}.\nOriginal {''.join(traceback.format_exception(error))}"

    def reraise(self) -> None:
        """Raise it here; as RuntimeError if its class needs other arguments than a message."""
        if self.kind is KeyError:
            # A KeyError prints its message in quotes, which would hide the line breaks.
            raise KeyError(_Text(self.text))
        try:
            error = self.kind(self.text)
        except Exception:
            raise RuntimeError(self.text) from None
        raise error


class _Text(str):
    """A string whose repr is itself."""

    def __repr__(self) -> str:
        return str(self)


@dataclass(frozen=True)
class Job:
    """The arguments of a worker."""

    dataset: Any
    iterable: bool
    auto_collation: bool
    collate_fn: Callable
    drop_last: bool
    base_seed: int
    worker_init_fn: Callable[[int], None] | None
    worker: int
    num_workers: int


def run(job: Job, tasks: Any, results: Any, done: Any) -> None:
    """The main function of a worker: process tasks until None arrives, or the parent is gone."""
    problem = _prepare(job)
    fetcher = None
    parent = os.getppid()
    while os.getppid() == parent:
        try:
            task = tasks.get(timeout=_PATIENCE)
        except queue.Empty:
            continue
        if task is None or done.is_set():
            break
        if isinstance(task, Resume):
            fetcher = None
            results.put((task, job.worker, b""))
            continue
        number, indices = task
        try:
            if problem is None and fetcher is None:
                fetcher = make_fetcher(job.iterable, job.dataset, job.auto_collation, job.collate_fn, job.drop_last)
            answer = problem if problem is not None else fetcher(indices)
        except StopIteration:
            answer = StreamEnd(job.worker) if job.iterable else WorkerError(_where(job))
        except Exception:
            answer = WorkerError(_where(job))
        results.put((number, job.worker, _pickle_answer(answer, job)))
    results.close()
    if done.is_set():
        # Nobody reads the rest of the pipe.
        results.cancel_join_thread()


def _generate_state(base_seed: int, worker_id: int) -> list[int]:
    """Four 32-bit words that seed NumPy's generator in a worker."""
    words = [worker_id, base_seed & 0xFFFFFFFF, base_seed >> 32, 0]
    return np.random.SeedSequence(words).generate_state(4).tolist()


def _prepare(job: Job) -> WorkerError | None:
    """Set up the process; returns the error of the user's part, if any."""
    global _info
    set_num_threads(1)
    seed = job.base_seed + job.worker
    random.seed(seed)
    manual_seed(seed)
    np.random.seed(_generate_state(job.base_seed, job.worker))
    _info = WorkerInfo(job.worker, job.num_workers, seed, job.dataset)
    try:
        if job.worker_init_fn is not None:
            job.worker_init_fn(job.worker)
    except Exception:
        return WorkerError(_where(job))
    return None


def _where(job: Job) -> str:
    return f"in DataLoader worker process {job.worker}"


def _pickle_answer(answer: Any, job: Job) -> bytes:
    """Pickle an answer here instead of in the queue's thread, whose errors would be lost."""
    try:
        return bytes(ForkingPickler.dumps(answer))
    except Exception:
        failure = WorkerError(_where(job))
    try:
        return pickle.dumps(failure)
    except Exception:  # the exception's class itself cannot be pickled
        failure.kind = RuntimeError
        return pickle.dumps(failure)
