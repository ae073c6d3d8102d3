"""rushlight/parallel.h: loops that the threads of a region share."""

from __future__ import annotations

import ctypes

import numpy as np
import pytest


@pytest.mark.parametrize("threads", [1, 2, 3, 7, 40])
def test_every_iteration_runs_once_before_the_loop_is_over(kernels, threads):
    counts = np.array([0, 1, 2, 15, 16, 17, 0, 0, 100, 31 * threads, 1, 4097, 16 * threads, 16 * threads + 1, 3] * 20, np.int64)
    times = np.zeros(counts.sum(), np.int32)
    undone = kernels.call("run_loops", ctypes.c_int(threads), len(counts), counts, times, result=ctypes.c_long)
    assert undone == 0
    assert (times == 1).all()


@pytest.mark.parametrize(("threads", "count"), [(2, 32), (2, 4096), (3, 4800), (5, 80)])
def test_a_thread_that_stops_leaves_its_run_to_the_others(kernels, threads, count):
    of_piece = count // (16 * threads)
    found = kernels.call(
        "wait_for_others", ctypes.c_int(threads), count, of_piece, ctypes.c_double(60), result=ctypes.c_long
    )
    assert found == count - of_piece


@pytest.mark.parametrize("threads", [2, 3])
def test_nobody_waits_for_a_thread_that_has_not_come(kernels, threads):
    found = kernels.call("come_late", ctypes.c_int(threads), 50, 100, ctypes.c_double(60), result=ctypes.c_long)
    assert found == 50 * 100
