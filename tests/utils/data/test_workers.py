"""Loading by worker processes: order, seeds, streams, exceptions, deaths, time limits, and workers that stay."""

from __future__ import annotations

import os
import random
import signal
import time

import numpy as np
import pytest

import rushlight as torch
from rushlight.utils.data import DataLoader, Dataset, IterableDataset, TensorDataset, get_worker_info


class Failing(Dataset):
    def __init__(self, error):
        self.error = error

    def __getitem__(self, index):
        if index == 3:
            raise self.error
        return index

    def __len__(self):
        return 6


class Stream(IterableDataset):
    def __init__(self, count):
        self.count = count

    def __iter__(self):
        info = get_worker_info()
        first, step = (info.id, info.num_workers) if info else (0, 1)
        return iter(range(first, self.count, step))


class Process(Dataset):
    """Samples that tell about the worker."""

    def __getitem__(self, index):
        info = get_worker_info()
        drawn = (torch.rand(1).item(), random.random(), float(np.random.rand()))
        return os.getpid(), info.id, info.num_workers, info.seed, drawn

    def __len__(self):
        return 4


class Slow(Dataset):
    def __getitem__(self, index):
        time.sleep(5)

    def __len__(self):
        return 2


class Dying(Dataset):
    def __getitem__(self, index):
        os.kill(os.getpid(), signal.SIGKILL)

    def __len__(self):
        return 2


def first(batch):
    return batch[0]


@pytest.mark.parametrize("context", ["fork", "spawn"])
def test_batches_are_those_of_one_process_in_its_order(context):
    data = TensorDataset(torch.arange(11), torch.arange(22).reshape(11, 2).double())
    for options in ({}, {"shuffle": True}, {"drop_last": True}):
        torch.manual_seed(1)
        expected = [[part.tolist() for part in batch] for batch in DataLoader(data, 3, **options)]
        torch.manual_seed(1)
        loader = DataLoader(data, 3, num_workers=2, multiprocessing_context=context, **options)
        assert [[part.tolist() for part in batch] for batch in loader] == expected
        if context == "spawn":
            break


def test_seeds_and_information():
    torch.manual_seed(4)
    rows = list(DataLoader(Process(), batch_size=1, num_workers=2, collate_fn=first))
    assert [row[1] for row in rows] == [0, 1, 0, 1]
    assert {row[2] for row in rows} == {2}
    assert rows[1][3] == rows[0][3] + 1
    assert len({row[0] for row in rows} | {os.getpid()}) == 3
    assert len({row[4] for row in rows}) == 4
    torch.manual_seed(4)
    again = list(DataLoader(Process(), batch_size=1, num_workers=2, collate_fn=first))
    assert [row[4] for row in again] == [row[4] for row in rows]
    assert get_worker_info() is None


@pytest.mark.oracle
def test_numbers_in_workers_are_torchs():
    oracle = pytest.importorskip("torch")

    class Theirs(oracle.utils.data.Dataset):
        def __getitem__(self, index):
            drawn = (oracle.rand(1).item(), random.random(), float(np.random.rand()))
            return oracle.utils.data.get_worker_info().seed, drawn

        def __len__(self):
            return 4

    torch.manual_seed(4)
    oracle.manual_seed(4)
    rows = [(row[3], row[4]) for row in DataLoader(Process(), 1, num_workers=2, collate_fn=first)]
    assert rows == list(oracle.utils.data.DataLoader(Theirs(), 1, num_workers=2, collate_fn=first))


@pytest.mark.parametrize("workers", [0, 1, 3])
def test_streams(workers):
    loader = DataLoader(Stream(10), 2, num_workers=workers)
    found = [batch.tolist() for batch in loader]
    assert sorted(sum(found, [])) == list(range(10))
    if workers == 3:
        assert found == [[0, 3], [1, 4], [2, 5], [6, 9], [7], [8]]
    whole = [batch.tolist() for batch in DataLoader(Stream(5), 2, num_workers=workers, drop_last=True)]
    assert all(len(batch) == 2 for batch in whole)
    assert sorted(DataLoader(Stream(4), None, num_workers=workers)) == [0, 1, 2, 3]


def test_errors_come_back_with_their_traceback():
    for error in (ValueError("bad sample"), KeyError("missing"), ZeroDivisionError()):
        loader = DataLoader(Failing(error), 2, num_workers=2)
        seen = []
        with pytest.raises(type(error), match=f"Caught {type(error).__name__} in DataLoader worker process 1") as caught:
            for batch in loader:
                seen.append(batch)
        assert "Original Traceback" in str(caught.value)
        assert "raise self.error" in str(caught.value)
        assert len(seen) == 1


def test_errors_of_the_start_and_of_pickling():
    def fail(worker):
        raise ValueError(f"no worker {worker}")

    with pytest.raises(ValueError, match="no worker 0"):
        list(DataLoader([1, 2], num_workers=1, worker_init_fn=fail))
    with pytest.raises(Exception, match="in DataLoader worker process 0"):
        list(DataLoader([1, 2], num_workers=1, collate_fn=lambda batch: lambda: batch))


def test_a_dead_worker_and_a_slow_one():
    with pytest.raises(RuntimeError, match=r"DataLoader worker \(pid\(s\) \d+\) exited unexpectedly"):
        list(DataLoader(Dying(), num_workers=1))
    with pytest.raises(RuntimeError, match="DataLoader timed out after 0.2 seconds"):
        list(DataLoader(Slow(), num_workers=1, timeout=0.2))


def test_workers_that_stay():
    loader = DataLoader(Process(), 1, num_workers=2, persistent_workers=True, collate_fn=first)
    pids = [{row[0] for row in loader} for _ in range(2)]
    assert pids[0] == pids[1]
    iterator = iter(loader)
    next(iterator)  # broken off
    assert [row[1] for row in loader] == [0, 1, 0, 1]
    streams = DataLoader(Stream(5), 2, num_workers=2, persistent_workers=True)
    assert [[batch.tolist() for batch in streams] for _ in range(2)] == [[[0, 2], [1, 3], [4]]] * 2
    loader._iterator.shut_down()
    streams._iterator.shut_down()


def test_batches_as_they_come_and_a_pass_that_is_broken_off():
    found = [batch.tolist() for batch in DataLoader(range(8), 2, num_workers=2, in_order=False)]
    assert sorted(found) == [[0, 1], [2, 3], [4, 5], [6, 7]]
    for batch in DataLoader(range(100), 2, num_workers=2):
        assert batch.tolist() == [0, 1]
        break


def test_streams_longer_than_they_say():
    class Liar(Stream):
        def __len__(self):
            return 2

    loader = DataLoader(Liar(4), 1)
    assert len(loader) == 2
    with pytest.warns(UserWarning, match="was reported to be 2"):
        list(loader)
