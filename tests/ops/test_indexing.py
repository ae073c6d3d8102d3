"""`x[...]` and `x[...] = y`: views, copies and writes, against NumPy and torch on random indices."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import rushlight as rl

SHAPE = (3, 4, 2)


@st.composite
def basic_items(draw, size):
    kind = draw(st.sampled_from(["int", "slice", "none", "all"]))
    if kind == "int":
        return draw(st.integers(-size, size - 1))
    if kind == "slice":
        bound = st.none() | st.integers(-size - 1, size + 1)
        return slice(draw(bound), draw(bound), draw(st.none() | st.integers(1, 3)))
    return None if kind == "none" else slice(None)


@st.composite
def basic_indices(draw):
    items, dim = [], 0
    while dim < draw(st.integers(0, len(SHAPE))):
        item = draw(basic_items(SHAPE[dim]))
        items.append(item)
        dim += item is not None
    if draw(st.booleans()):
        items.insert(draw(st.integers(0, len(items))) if dim == len(SHAPE) else len(items), Ellipsis)
    return tuple(items) if len(items) != 1 or draw(st.booleans()) else items[0]


def arrays_of(index, convert):
    """The index with its arrays converted."""
    if isinstance(index, tuple):
        return tuple(arrays_of(item, convert) for item in index)
    return convert(index) if isinstance(index, np.ndarray) else index


@st.composite
def advanced_indices(draw, least_dims=1):
    """Integer arrays of at least so many dimensions, masks, lists and slices."""
    broadcast = draw(st.sampled_from([(1,), (3,), (2, 1), (2, 3)]))
    items = []
    for size in SHAPE:
        kind = draw(st.sampled_from(["array", "array", "slice", "mask", "list"]))
        if kind == "array":
            shape = broadcast[draw(st.integers(0, len(broadcast) - least_dims)) :]
            count = int(np.prod(shape))
            values = draw(st.lists(st.integers(-size, size - 1), min_size=count, max_size=count))
            items.append(np.array(values, np.int64).reshape(shape))
        elif kind == "list":
            items.append(draw(st.lists(st.integers(-size, size - 1), min_size=1, max_size=1)))
        elif kind == "mask":
            items.append(np.array(draw(st.lists(st.booleans(), min_size=size, max_size=size))))
        else:
            items.append(slice(draw(st.integers(0, 1)), None, draw(st.integers(1, 2))))
    return tuple(items[: draw(st.integers(1, 3))])


@settings(max_examples=500)
@given(basic_indices())
def test_basic_indices_are_views_as_in_numpy(index):
    array = np.arange(24.0).reshape(SHAPE)
    tensor = rl.from_numpy(array)
    expected, got = array[index], tensor[index]
    assert got.shape == np.shape(expected) and got.tolist() == np.asarray(expected).tolist()
    assert got.untyped_storage() == tensor.untyped_storage()


@settings(max_examples=500)
@given(basic_indices(), st.booleans())
def test_basic_writes_are_numpys(index, is_number):
    array = np.arange(24.0).reshape(SHAPE)
    tensor = rl.from_numpy(array.copy())
    value = 7.0 if is_number else np.arange(100.0, 100.0 + np.size(array[index])).reshape(np.shape(array[index]))
    array[index] = value
    tensor[index] = value if is_number else rl.from_numpy(np.asarray(value))
    assert tensor.tolist() == array.tolist() and tensor._version == 1


@settings(max_examples=500)
@given(advanced_indices())
def test_advanced_indices_are_numpys(index):
    array = np.arange(24.0).reshape(SHAPE)
    try:
        expected = array[index]
    except IndexError:
        assume(False)
    got = rl.from_numpy(array)[arrays_of(index, rl.from_numpy)]
    assert got.shape == expected.shape and got.tolist() == expected.tolist()
    basic = all(isinstance(item, slice) or (isinstance(item, np.ndarray) and item.ndim == 0) for item in index)
    assert basic or got.untyped_storage() != rl.from_numpy(array).untyped_storage()
    assert rl.from_numpy(array)[index].tolist() == expected.tolist(), "NumPy arrays are indices too"


@pytest.mark.oracle
@settings(max_examples=300, deadline=None)
@given(advanced_indices(least_dims=0))
def test_advanced_indices_are_torchs(index):
    # In torch 0-dim integer tensors select, where in NumPy they are arrays like others.
    torch = pytest.importorskip("torch")
    ours, theirs = rl.arange(24.0).view(SHAPE), torch.arange(24.0).view(SHAPE)
    try:
        expected = theirs[arrays_of(index, torch.from_numpy)]
    except IndexError:
        with pytest.raises(IndexError):
            ours[arrays_of(index, rl.from_numpy)]  # noqa: B018
        return
    got = ours[arrays_of(index, rl.from_numpy)]
    assert tuple(got.shape) == tuple(expected.shape) and got.tolist() == expected.tolist()


@settings(max_examples=300)
@given(advanced_indices(), st.booleans())
def test_advanced_writes_are_numpys(index, is_number):
    array = np.arange(24.0).reshape(SHAPE)
    places = np.arange(24).reshape(SHAPE)
    try:
        chosen = places[index]
    except IndexError:
        assume(False)
    assume(np.unique(chosen).size == chosen.size)  # which of several writes wins is not defined
    tensor = rl.from_numpy(array.copy())
    value = 7.0 if is_number else np.arange(100.0, 100.0 + chosen.size).reshape(chosen.shape)
    array[index] = value
    tensor[arrays_of(index, rl.from_numpy)] = value if is_number else rl.from_numpy(value)
    assert tensor.tolist() == array.tolist()


@pytest.mark.oracle
@pytest.mark.filterwarnings("ignore:Using a non-tuple sequence")
@pytest.mark.parametrize(
    "index",
    [
        np.s_[[0, 1]], np.s_[[[0, 1]]], np.s_[[[0, 1], [1, 0]]], np.s_[[0, 1], [1, 0]], np.s_[[]], np.s_[[True, False, True]],
        np.s_[True], np.s_[False], np.s_[None, True], np.s_[..., [1]], np.s_[:, [0, 1], :, None], np.s_[[1], :, [0]],
        np.s_[0, :, [0, 1]], np.s_[range(2)], np.s_[np.int64(1)], np.s_[..., None], np.s_[1, ..., 0], np.s_[:, None, 1:1],
        np.s_[np.array(1)], np.s_[[slice(0, 1), 1]],
    ],
    ids=str,
)  # fmt: skip
def test_forms_of_indices_are_torchs(index):
    torch = pytest.importorskip("torch")
    ours, theirs = rl.arange(24.0).view(SHAPE), torch.arange(24.0).view(SHAPE)
    try:
        expected = theirs[index]
    except (IndexError, TypeError) as error:
        with pytest.raises(type(error)):
            ours[index]  # noqa: B018
        return
    got = ours[index]
    assert tuple(got.shape) == tuple(expected.shape) and got.tolist() == expected.tolist()


def test_tensors_as_indices():
    x = rl.arange(12).view(3, 4)
    assert x[rl.tensor(1)].tolist() == [4, 5, 6, 7] and x[rl.tensor(1)].untyped_storage() == x.untyped_storage()
    assert x[rl.tensor([2, 0])].tolist() == [[8, 9, 10, 11], [0, 1, 2, 3]]
    assert x[x > 9].tolist() == [10, 11] and x[x[:, 0] > 3, 1].tolist() == [5, 9]
    assert x[rl.tensor([[0], [1]]), rl.tensor([0, 3])].tolist() == [[0, 3], [4, 7]]
    x[x % 2 == 0] = -1
    assert x[0].tolist() == [-1, 1, -1, 3]
    x[:, 0] += 10
    assert x[:, 0].tolist() == [9, 9, 9]
    x[rl.tensor([0, 0])] = rl.zeros(4, dtype=rl.int64)
    assert x[0].tolist() == [0, 0, 0, 0]


def test_values_are_broadcast_and_converted():
    x = rl.zeros(2, 3)
    x[0] = rl.tensor([1, 2, 3])
    x[1] = np.array([4, 5, 6])
    assert x.tolist() == [[1, 2, 3], [4, 5, 6]]
    x[:] = [9, 8, 7]
    assert x.tolist() == [[9, 8, 7]] * 2
    x[:, 1] = rl.ones(1, 1, 2)
    assert x[:, 1].tolist() == [1, 1]
    x[..., 0] = True
    assert x[0, 0].item() == 1
    whole = rl.zeros(3, dtype=rl.int64)
    whole[1:] = 2.9
    assert whole.tolist() == [0, 2, 2]


@pytest.mark.parametrize(
    ("use", "error", "message"),
    [
        (lambda x: x[3], IndexError, "index 3 is out of bounds for dimension 0 with size 3"),
        (lambda x: x[0, -5], IndexError, "index -5 is out of bounds for dimension 1 with size 4"),
        (lambda x: x[0, 0, 0], IndexError, "too many indices for tensor of dimension 2"),
        (lambda x: x[..., ..., 0], IndexError, "too many indices|Dimension out of range"),
        (lambda x: x[0, 0][0], IndexError, "invalid index of a 0-dim tensor"),
        (lambda x: x[::-1], ValueError, "step must be greater than zero"),
        (lambda x: x[::0], ValueError, "step must be greater than zero|slice step cannot be zero"),
        (lambda x: x[[5]], IndexError, "index 5 is out of bounds for dimension 0 with size 3"),
        (lambda x: x[rl.tensor([1.0])], IndexError, "tensors used as indices must be long, int, byte or bool tensors"),
        (lambda x: x["a"], TypeError, "invalid data type 'str'"),
        (lambda x: x[1.5], IndexError, "only integers, slices"),
        (lambda x: x.__setitem__([0], rl.ones(4, dtype=rl.int64)), RuntimeError, "got Float for the destination and Long for"),
        (lambda x: x[[0, 1], [0, 1, 2]], IndexError, "shape mismatch: indexing tensors could not be broadcast"),
        (lambda x: x[rl.tensor([True, False])], IndexError, r"shape of the mask \[2\] at index 0 does not match"),
        (lambda x: x.__setitem__(0, rl.ones(3)), RuntimeError, r"must match|doesn't match the broadcast shape"),
        (lambda x: x.__setitem__([0], rl.ones(2, 3)), RuntimeError, "shape mismatch: value tensor"),
    ],
)
def test_impossible_indices_are_named(use, error, message):
    with pytest.raises(error, match=message):
        use(rl.arange(12.0).view(3, 4))


def test_masks_of_bytes_are_deprecated():
    mask = rl.tensor([1, 0, 1], dtype=rl.uint8)
    with pytest.warns(UserWarning, match="indexing with dtype torch.uint8 is now deprecated"):
        assert rl.arange(3)[mask].tolist() == [0, 2]


def test_items_cannot_be_deleted():
    with pytest.raises(TypeError, match="does not support deleting items"):
        del rl.ones(3)[0]


def test_accumulating_into_windows_adds_at_places_in_memory():
    x = rl.arange(5.0)
    x.unfold(0, 3, 1).index_put_((rl.tensor([0, 1]), rl.tensor([1, 0])), rl.tensor([10.0, 100.0]), accumulate=True)
    assert x.tolist() == [0, 111, 2, 3, 4]
    x = rl.arange(5.0)[::1].as_strided((2, 2), (2, 1), 1)
    x.as_strided((2, 2), (1, 1)).index_put_((rl.tensor([0, 1]),), rl.ones(2), accumulate=True)
    assert x.tolist() == [[2, 4], [4, 4]]
