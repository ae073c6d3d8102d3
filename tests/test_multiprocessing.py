"""`rushlight.multiprocessing`: tensors through queues, processes that fail, sharing strategies."""

from __future__ import annotations

import pytest

import rushlight
from rushlight import multiprocessing


def double(index, queue):
    queue.put(2 * queue.get())


def fail(index):
    raise ValueError("a bad day")


def test_tensors_pass_through_queues():
    queue = multiprocessing.get_context("spawn").SimpleQueue()
    queue.put(rushlight.tensor([1.0, 2.0]))
    multiprocessing.spawn(double, (queue,), nprocs=1)
    assert queue.get().tolist() == [2.0, 4.0]


def test_errors_of_processes_are_raised():
    with pytest.raises(multiprocessing.ProcessRaisedException, match="a bad day"):
        multiprocessing.spawn(fail, nprocs=1)


def test_sharing_strategies():
    multiprocessing.set_sharing_strategy("file_system")
    assert multiprocessing.get_sharing_strategy() == "file_system"
    multiprocessing.set_sharing_strategy("file_descriptor")
    with pytest.raises(AssertionError, match="invalid sharing strategy"):
        multiprocessing.set_sharing_strategy("telepathy")
