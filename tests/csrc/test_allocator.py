"""The caching allocator of rushlight._C: alignment, reuse, bounds, statistics, threads."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
import threading
import weakref

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rushlight import _C

MEBIBYTE = 1 << 20


@pytest.fixture(autouse=True)
def fresh_cache(small_heap):
    """Each test starts with an empty cache and leaves the limit as it was."""
    limit = _C.allocator_statistics()["cache_limit_bytes"]
    gc.collect()
    _C.empty_cache()
    yield
    _C.set_cache_limit(limit)
    _C.empty_cache()


def changes(before: dict[str, int]) -> dict[str, int]:
    return {key: value - before[key] for key, value in _C.allocator_statistics().items()}


@given(st.integers(0, 8 * MEBIBYTE))
def test_memory_is_aligned_writable_and_wastes_at_most_an_eighth(nbytes):
    before = _C.allocator_statistics()
    block = _C.allocate(nbytes)
    view = memoryview(block)
    assert block.data_ptr % 64 == 0
    assert block.nbytes == view.nbytes == nbytes
    assert view.format == "B" and not view.readonly and view.contiguous
    assert nbytes <= changes(before)["allocated_bytes"] <= max(nbytes + nbytes // 8 + 1, nbytes + 64)


def test_the_whole_block_can_be_used():
    for nbytes in (1, 64, 513, 4097, 2 * MEBIBYTE, 2 * MEBIBYTE + 1, 5 * MEBIBYTE):
        array = np.frombuffer(_C.allocate(nbytes), np.uint8)
        array[:] = 7
        assert array.sum(dtype=np.int64) == 7 * nbytes


def test_large_blocks_are_aligned_to_huge_pages():
    assert _C.allocate(3 * MEBIBYTE).data_ptr % (2 * MEBIBYTE) == 0


@pytest.mark.parametrize("nbytes", [0, 1, 100, 4096, 3 * MEBIBYTE])
def test_a_freed_block_is_reused(nbytes):
    block = _C.allocate(nbytes)
    address = block.data_ptr
    before = _C.allocator_statistics()
    del block
    again = _C.allocate(nbytes)
    assert again.data_ptr == address
    difference = changes(before)
    assert (difference["allocations"], difference["reuses"], difference["frees"]) == (1, 1, 1)
    assert difference["system_allocations"] == 0


def test_sizes_of_one_class_share_blocks_and_others_do_not():
    address = _C.allocate(1000).data_ptr
    assert _C.allocate(1024).data_ptr == address
    before = _C.allocator_statistics()
    assert _C.allocate(5000)
    assert changes(before)["reuses"] == 0


def test_numpy_views_keep_the_block_alive():
    block = _C.allocate(4096)
    alive = weakref.ref(block)
    view = np.frombuffer(block, np.float32).reshape(32, 32)[3:5]
    before = _C.allocator_statistics()
    del block
    assert alive() is not None
    assert changes(before)["frees"] == 0
    del view
    assert alive() is None
    assert changes(before)["cached_bytes"] == 4096


def test_statistics_add_up():
    before = _C.allocator_statistics()
    _C.reset_peak_statistics()
    blocks = [_C.allocate(4096) for _ in range(3)]
    blocks.pop()
    difference, now = changes(before), _C.allocator_statistics()
    assert difference["allocated_bytes"] == 2 * 4096
    assert now["peak_allocated_bytes"] == now["allocated_bytes"] + 4096
    assert now["reserved_bytes"] == now["allocated_bytes"] + now["cached_bytes"]
    _C.reset_peak_statistics()
    assert _C.allocator_statistics()["peak_allocated_bytes"] == now["allocated_bytes"]


def test_empty_cache_gives_everything_back():
    for nbytes in (64, 4096, 4 * MEBIBYTE):
        _C.allocate(nbytes)
    assert _C.allocator_statistics()["cached_bytes"] >= 4 * MEBIBYTE
    _C.empty_cache()
    assert _C.allocator_statistics()["cached_bytes"] == 0


def test_the_cache_stays_within_its_limit_and_evicts_the_oldest():
    _C.set_cache_limit(3 * 4096)
    blocks = [_C.allocate(4096) for _ in range(5)]
    addresses = [block.data_ptr for block in blocks]
    for position in range(len(blocks)):
        blocks[position] = None
        assert _C.allocator_statistics()["cached_bytes"] <= 3 * 4096
    before = _C.allocator_statistics()
    reused = [_C.allocate(4096) for _ in range(3)]
    assert [block.data_ptr for block in reused] == addresses[:1:-1]
    assert changes(before)["reuses"] == 3


def test_lowering_the_limit_trims_at_once_and_zero_turns_caching_off():
    blocks = [_C.allocate(MEBIBYTE) for _ in range(4)]
    del blocks
    _C.set_cache_limit(2 * MEBIBYTE)
    assert _C.allocator_statistics()["cached_bytes"] == 2 * MEBIBYTE
    _C.set_cache_limit(0)
    _C.allocate(4096)
    assert _C.allocator_statistics()["cached_bytes"] == 0


def test_a_block_larger_than_the_limit_evicts_nothing():
    _C.set_cache_limit(MEBIBYTE)
    _C.allocate(4096)
    _C.allocate(8 * MEBIBYTE)
    assert _C.allocator_statistics()["cached_bytes"] == 4096


@given(st.lists(st.tuples(st.integers(0, 300_000), st.integers(0, 15)), max_size=60), st.integers(0, 400_000))
def test_any_order_of_allocating_and_freeing_keeps_the_books(steps, limit):
    _C.set_cache_limit(limit)
    before = _C.allocator_statistics()["allocated_bytes"]
    slots = [None] * 16
    for nbytes, slot in steps:
        slots[slot] = np.frombuffer(_C.allocate(nbytes), np.uint8)
        slots[slot][:] = slot
        assert _C.allocator_statistics()["cached_bytes"] <= limit
    assert all((array == slot).all() for slot, array in enumerate(slots) if array is not None)
    slots.clear()
    assert _C.allocator_statistics()["allocated_bytes"] == before


@pytest.mark.parametrize("nbytes", [2**62, 2**63 - 1, 2**63, 2**200])
def test_refused_sizes_are_named(nbytes):
    with pytest.raises(MemoryError, match=f"cannot allocate {nbytes} bytes"):
        _C.allocate(nbytes)


def test_bad_sizes():
    for negative in (-1, -(2**100)):
        with pytest.raises(ValueError, match=f"got {negative}"):
            _C.allocate(negative)
        with pytest.raises(ValueError, match=f"got {negative}"):
            _C.set_cache_limit(negative)
    for wrong in (1.5, "1", None):
        with pytest.raises(TypeError):
            _C.allocate(wrong)
    assert _C.allocate(np.int64(100)).nbytes == 100


def test_blocks_are_made_by_allocate_only():
    with pytest.raises(TypeError):
        _C.Block()


EXHAUST = """
import resource
from rushlight import _C
_C.set_cache_limit(2**40)
_C.allocate(256 << 20)
pages = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (pages + (128 << 20),) * 2)
block = _C.allocate(300 << 20)
assert _C.allocator_statistics()["cached_bytes"] == 0
try:
    _C.allocate(400 << 20)
except MemoryError as error:
    print(error)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="needs Linux's address space limit")
def test_a_refusal_empties_the_cache_and_tries_again():
    result = subprocess.run([sys.executable, "-c", EXHAUST], capture_output=True, text=True, check=True)
    assert f"cannot allocate {400 << 20} bytes" in result.stdout


def exercise(seed: int, rounds: int, failures: list[int]) -> None:
    random = np.random.default_rng(seed)
    arrays: list[np.ndarray | None] = [None] * 8
    for step in range(rounds):
        slot = step % len(arrays)
        if arrays[slot] is not None and not (arrays[slot] == seed).all():
            failures.append(seed)
        arrays[slot] = np.frombuffer(_C.allocate(int(random.integers(0, 50_000))), np.uint8)
        arrays[slot][:] = seed


def test_threads_never_share_a_block():
    _C.set_cache_limit(MEBIBYTE)
    before = _C.allocator_statistics()
    failures: list[int] = []
    threads = [threading.Thread(target=exercise, args=(seed, 2000, failures)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    difference = changes(before)
    assert not failures
    assert difference["allocations"] == difference["frees"] == 4 * 2000
    assert difference["allocated_bytes"] == 0


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_a_forked_child_can_allocate():
    child = os.fork()
    if child == 0:
        os._exit(0 if _C.allocate(4096).nbytes == 4096 else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
