"""Storages: memory of the allocator, borrowed memory, and who keeps it alive."""

from __future__ import annotations

import gc
import weakref

import numpy as np
import pytest

import rushlight as rl
from rushlight.core.storage import UntypedStorage, borrow

pytestmark = pytest.mark.usefixtures("small_heap")


@pytest.mark.parametrize("sizes", [(1,), (3,), (7, 5), (1000, 3)])
@pytest.mark.parametrize("kind", [rl.bool, rl.float16, rl.float32, rl.complex128])
def test_memory_of_the_library_is_aligned(sizes, kind):
    for made in (rl.empty(sizes, dtype=kind), rl.zeros(sizes, dtype=kind), rl.ones(sizes, dtype=kind) + 1):
        assert made.data_ptr() % 64 == 0
        assert made.untyped_storage().nbytes() == made.numel() * made.element_size()


def test_freed_blocks_are_used_again():
    rl.empty_cache()
    first = rl.empty(1 << 16)
    address = first.data_ptr()
    del first
    assert rl.empty(1 << 16).data_ptr() == address


def test_a_view_keeps_the_memory():
    whole = rl.arange(100)
    part = whole[10:20]
    del whole
    churn = [rl.zeros(100, dtype=rl.int64) for _ in range(20)]
    assert part.tolist() == list(range(10, 20)) and len(churn) == 20


def test_an_array_keeps_the_memory():
    array = rl.arange(100).numpy()
    churn = [rl.zeros(100, dtype=rl.int64) for _ in range(20)]
    assert array.tolist() == list(range(100)) and len(churn) == 20


def test_a_tensor_keeps_the_array_it_borrows():
    class Array(np.ndarray):
        pass

    array = np.arange(10.0).view(Array)
    alive = weakref.ref(array)
    tensor = rl.from_numpy(array)
    part = tensor[2:]
    del array, tensor
    gc.collect()
    assert part.tolist() == list(range(2, 10)) and alive() is not None
    del part
    gc.collect()
    assert alive() is None


def test_borrowed_storage_spans_what_the_array_reaches():
    array = np.arange(24.0).reshape(4, 6)[::2, 1::3]
    storage = borrow(array)
    assert storage.nbytes == ((1 * 12) + (1 * 3) + 1) * 8
    assert storage.data_ptr == array.ctypes.data
    storage.bytes()[:8] = np.array([99.0]).view(np.uint8)
    assert array[0, 0] == 99


def test_untyped_storage_counts_bytes():
    storage = rl.tensor([1, 2], dtype=rl.int16).untyped_storage()
    assert (len(storage), storage.size(), storage.element_size()) == (4, 4, 1)
    assert storage.tolist() == [1, 0, 2, 0]
    storage[2] = 7
    assert storage[2] == 7 and storage[1:3].tolist() == [0, 7]
    copied = storage.clone()
    copied[0] = 9
    assert storage[0] == 1 and copied != storage and storage == storage
    assert repr(storage) == " 1\n 0\n 7\n 0\n[torch.storage.UntypedStorage(device=cpu) of size 4]"


def test_storages_of_one_memory_are_equal():
    x = rl.zeros(4)
    assert x[1:].untyped_storage() == x.view(2, 2).untyped_storage()
    assert len({x.untyped_storage(), x[1:].untyped_storage()}) == 1
    assert x.untyped_storage() != x.clone().untyped_storage()


def test_typed_storage_counts_elements():
    x = rl.arange(6, dtype=rl.float32).view(2, 3)[1]
    storage = x.storage()
    assert storage.size() == len(storage) == 6 and storage.element_size() == 4 and storage.nbytes() == 24
    storage[3] = 40.0
    assert x[0].item() == 40 and storage[3] == 40.0 and storage[:2] == [0.0, 1.0]
    assert storage.tolist() == [0, 1, 2, 40, 4, 5]
    assert "[torch.storage.TypedStorage(dtype=torch.float32, device=cpu) of size 6]" in repr(storage)


def test_from_buffer_copies_or_borrows():
    source = bytearray(b"abcd")
    copied, borrowed = UntypedStorage.from_buffer(source), UntypedStorage.from_buffer(source, copy=False)
    source[0] = ord("z")
    assert bytes(copied.tolist()) == b"abcd" and bytes(borrowed.tolist()) == b"zbcd"


def test_meta_storage_has_a_size_and_no_data():
    storage = UntypedStorage(16, device="meta")
    assert storage.nbytes() == 16 and storage.data_ptr() == 0
    with pytest.raises(NotImplementedError, match="Not available for 'meta' device type"):
        storage.tolist()


def test_empty_storages():
    empty = rl.empty(0)
    assert empty.untyped_storage().nbytes() == 0 and empty.numpy().shape == (0,)
    assert rl.from_numpy(np.empty((0, 3))).data_ptr() >= 0
