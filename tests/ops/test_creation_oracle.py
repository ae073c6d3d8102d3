"""Making tensors of unusual data, and refusing what can't be made, as torch does."""

from __future__ import annotations

import array
import warnings
from typing import Any

import pytest

import rushlight

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.oracle


class Items:
    """A sequence by its methods alone."""

    def __init__(self, items: list) -> None:
        self.items = items

    def __len__(self) -> int:
        return len(self.items)

    def __getitem__(self, index: int) -> Any:
        return self.items[index]


class Broken(Items):
    def __getitem__(self, index: int) -> Any:
        raise TypeError


CYCLE: list = [0]
CYCLE += [CYCLE]
MADE = {
    "a sequence by its methods": lambda t: t.tensor(Items([1.0, 2.0])),
    "a range": lambda t: t.tensor(range(3)),
    "an int beyond 64 bits as a float": lambda t: t.tensor(2**64, dtype=t.float32),
    "ints beyond 64 bits among floats": lambda t: t.tensor([2**70, 1.5]),
    "ints beyond 64 bits as bools": lambda t: t.tensor([2**70, 0], dtype=t.bool),
    "ints beyond 64 bits as complex": lambda t: t.tensor([2**64, 1], dtype=t.complex64),
    "empty ones joined along any dimension": lambda t: t.cat([t.ones(0), t.ones(0)], dim=1),
    "range into out": lambda t: t.range(0, 3, out=t.empty(0, dtype=t.int32)),
    "range on a device": lambda t: t.range(0, 3, device="cpu", dtype=t.float64),
    "a complex linspace": lambda t: t.linspace(0, 1j, 3),
    "a capsule, shared": lambda t: t.asarray(t.ones(2).__dlpack__(), copy=False),
    "a capsule, copied": lambda t: t.asarray(t.ones(2).__dlpack__(), copy=True),
    "part of a buffer": lambda t: t.frombuffer(bytearray(range(8)), dtype=t.int16, count=2, offset=2),
    "a buffer of doubles": lambda t: t.frombuffer(array.array("d", [1, 2]), dtype=t.float64),
}
REFUSED = {
    "a sequence that can't be read": lambda t: t.tensor(Broken([1.0])),
    "a list within itself": lambda t: t.tensor(CYCLE),
    "a list within itself, below": lambda t: t.tensor([[1, 2], CYCLE]),
    "ints that require a gradient": lambda t: t.ones(2, dtype=t.int32, requires_grad=True),
    "a tensor of ints that requires a gradient": lambda t: t.tensor([1], requires_grad=True),
    "a new one of ints that requires a gradient": lambda t: t.arange(3).new_zeros(2, requires_grad=True),
    "zeros into out of another dtype": lambda t: t.zeros(2, dtype=t.int64, out=t.ones(2)),
    "eye into out of another dtype": lambda t: t.eye(2, dtype=t.int64, out=t.ones(2)),
    "randperm into out of another dtype": lambda t: t.randperm(2, dtype=t.int64, out=t.ones(2)),
    "a sparse layout into out": lambda t: t.zeros(2, layout=t.sparse_coo, out=t.ones(2)),
    "a linspace of complex numbers in floats": lambda t: t.linspace(0, 1j, 3, dtype=t.float32),
    "a logspace of complex numbers in ints": lambda t: t.logspace(0, 1j, 3, dtype=t.int32),
    "a range that exceeds the dtype": lambda t: t.empty(2).uniform_(-3e38, 3e38),
    "random beyond the dtype": lambda t: t.ones(2, dtype=t.float16).random_(-65505, 3),
    "half an element of a buffer": lambda t: t.frombuffer(bytearray(3), dtype=t.int16),
    "more than a buffer": lambda t: t.frombuffer(bytearray(8), dtype=t.int16, count=4, offset=2),
    "none of a buffer": lambda t: t.frombuffer(bytearray(8), dtype=t.int16, count=0),
    "behind a buffer": lambda t: t.frombuffer(bytearray(8), dtype=t.int16, offset=8),
    "no buffer": lambda t: t.frombuffer([1], dtype=t.int16),
    "a number of two elements": lambda t: int(t.ones(2)),
    "a number of no elements": lambda t: float(t.ones(0)),
    "a complex number of four elements": lambda t: complex(t.ones(2, 2)),
    "a Vandermonde matrix of -1 columns": lambda t: t.vander(t.ones(3), -1),
    "an empty name of an indexing": lambda t: t.meshgrid(t.ones(2), indexing=""),
    "a grid of two devices": lambda t: t.meshgrid(t.ones(2), t.ones(2, device="meta"), indexing="ij"),
}
WARNED = {
    "random beyond exact integers": lambda t: t.ones(2).random_(0, 2**24 + 3),
    "random below exact integers": lambda t: t.ones(2, dtype=t.float16).random_(-3000, 3),
    "a buffer that is not to be written": lambda t: t.frombuffer(b"abcd", dtype=t.int16),
}


@pytest.mark.parametrize("name", MADE)
def test_made(name):
    ours, theirs = MADE[name](rushlight), MADE[name](torch)
    assert ours.tolist() == theirs.tolist() and str(ours.dtype) == str(theirs.dtype)


@pytest.mark.parametrize("name", REFUSED)
def test_refused(name):
    kinds = []
    for library in (rushlight, torch):
        with pytest.raises((RuntimeError, ValueError, TypeError)) as caught:
            REFUSED[name](library)
        kinds.append(next(kind for kind in (RuntimeError, ValueError, TypeError) if isinstance(caught.value, kind)))
    assert kinds[0] is kinds[1]


@pytest.mark.parametrize("name", WARNED)
def test_warned(name):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for library in (rushlight, torch):
            with pytest.raises(UserWarning):
                WARNED[name](library)


def test_full_of_a_complex_number_where_halves_are_the_default():
    for library in (rushlight, torch):
        before = library.get_default_dtype()
        library.set_default_dtype(library.float16)
        try:
            assert str(library.full((2,), 1j).dtype) == "torch.complex64"
        finally:
            library.set_default_dtype(before)


def test_empty_ones_joined_along_any_dimension_compiled_and_batched():
    empty = rushlight.ones(0, requires_grad=True)
    assert rushlight.vmap(lambda x: rushlight.cat([x, x], dim=1))(rushlight.ones(3, 0)).shape == (3, 0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        made = rushlight.compile(lambda x: rushlight.cat([x * 2, x], dim=1))(empty)
    assert made.shape == (0,)
    made.sum().backward()
    assert empty.grad.shape == (0,)


def test_a_type_of_tensors_shares_the_memory_of_a_tensor():
    for library in (rushlight, torch):
        values = library.ones(2, requires_grad=True)
        made = library.FloatTensor(values)
        assert made.data_ptr() == values.data_ptr() and made.requires_grad


def test_index_add_of_ints_by_a_fraction():
    for library in (rushlight, torch):
        made = library.zeros(3, dtype=library.uint8).index_add(0, library.tensor([0]), library.ones(1).byte(), alpha=2.0)
        assert made.tolist() == [2, 0, 0]
