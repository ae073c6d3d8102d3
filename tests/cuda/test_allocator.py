"""The caching allocator: reuse, streams, limits, and errors."""

import pytest

import rushlight as torch
from rushlight.cuda import runtime
from rushlight.cuda.allocator import CachingAllocator
from rushlight.cuda.driver import DriverError
from rushlight.cuda.stand_in import StandIn


def allocator(memory: int = 64 << 20) -> CachingAllocator:
    return CachingAllocator(StandIn(1, memory), 0)


def test_a_freed_block_is_used_again_on_its_stream():
    made = allocator()
    first = made.allocate(1000, 0)
    address = first.data_ptr
    del first
    assert made.allocate(900, 0).data_ptr == address
    assert made.counters["segment"].current == 1


def test_a_block_of_another_stream_is_not_used():
    made = allocator()
    other = made._driver.create_stream(0)
    first = made.allocate(1000, 0)
    address = first.data_ptr
    del first
    assert made.allocate(1000, other).data_ptr != address
    assert made.counters["segment"].current == 2


def test_a_block_that_another_stream_uses_waits_for_it():
    made = allocator()
    driver, other = made._driver, made._driver.create_stream(0)
    memory = made.allocate(1000, 0)
    address = memory.data_ptr
    for _ in range(3):
        driver.fill(address, 1, 1000, other)
    memory.record_stream(other)
    del memory
    assert made.counters["allocated_bytes"].current == 0
    assert made.allocate(1000, 0).data_ptr != address
    driver.wait_for_stream(other)
    assert made.allocate(1000, 0).data_ptr == address


def test_free_neighbours_are_joined():
    made = allocator()
    blocks = [made.allocate(512, 0) for _ in range(3)]
    first = blocks[0].data_ptr
    while blocks:
        blocks.pop()
    assert made.allocate(1 << 20, 0).data_ptr == first
    assert made.counters["segment"].current == 1


def test_memory_goes_back_before_an_allocation_fails():
    made = allocator(memory=40 << 20)
    made.allocate(30 << 20, 0)
    memory = made.allocate(32 << 20, 0)
    assert made.retries == 1 and made._driver.allocated == 32 << 20
    del memory
    made.empty_cache()
    assert made._driver.allocated == 0


def test_too_little_memory_is_an_out_of_memory_error():
    made = allocator(memory=8 << 20)
    with pytest.raises(torch.OutOfMemoryError, match="CUDA out of memory. Tried to allocate 16.00 MiB"):
        made.allocate(16 << 20, 0)
    assert made.failures == 1


def test_the_stand_in_refuses_freed_and_foreign_memory():
    driver = StandIn(1)
    address = driver.allocate(64)
    driver.free(address)
    with pytest.raises(DriverError, match="illegal memory access"):
        driver.fill(address, 0, 64, 0)
    with pytest.raises(DriverError, match="no allocated memory"):
        driver.free(address)
    address = driver.allocate(64)
    with pytest.raises(DriverError, match="illegal memory access"):
        driver.fill(address, 0, 65, 0)


def test_statistics():
    torch.cuda.empty_cache()
    before = torch.cuda.memory_allocated()
    torch.cuda.reset_peak_memory_stats()
    tensor = torch.empty(1000, device="cuda")
    assert torch.cuda.memory_allocated() - before == 4096
    del tensor
    assert torch.cuda.memory_allocated() == before
    assert torch.cuda.max_memory_allocated() == before + 4096
    assert torch.cuda.memory_reserved() >= 4096
    assert torch.cuda.memory_stats()["allocated_bytes.all.current"] == before
    assert "allocated_bytes" in torch.cuda.memory_summary()


def test_a_fraction_of_the_memory(gpu):
    total = torch.cuda.get_device_properties().total_memory
    torch.cuda.empty_cache()
    torch.cuda.set_per_process_memory_fraction(0.0)
    try:
        with pytest.raises(torch.OutOfMemoryError):
            torch.empty(total // 8, dtype=torch.uint8, device="cuda")
    finally:
        runtime.device_at(0).allocator.limit = None
