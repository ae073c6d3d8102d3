"""Data in and out without copies: NumPy, DLPack, buffers."""

from __future__ import annotations

import array
import warnings

import numpy as np
import pytest

import rushlight as rl


@pytest.mark.parametrize("kind", rl.core.dtype.ALL, ids=repr)
def test_numpy_shares_memory_both_ways(kind):
    source = np.ones((2, 3), kind.numpy)
    tensor = rl.from_numpy(source)
    assert tensor.dtype is kind and tensor.data_ptr() == source.ctypes.data
    tensor[0, 1] = 0
    assert source[0, 1] == 0
    back = tensor.numpy()
    assert back.dtype == source.dtype and np.shares_memory(back, source)
    back[1, 1] = 0
    assert tensor[1, 1].item() == 0


@pytest.mark.parametrize(
    "view", [np.s_[::2], np.s_[:, 1], np.s_[1:, ::3], np.s_[0, 0], np.s_[:0], np.s_[None, :, None]], ids=str
)
def test_strided_arrays_keep_their_strides(view):
    source = np.arange(24.0).reshape(4, 6)[view]
    source = source if isinstance(source, np.ndarray) else np.asarray(source)
    tensor = rl.from_numpy(source)
    assert tensor.tolist() == source.tolist()
    if source.size:
        assert tensor.stride() == tuple(stride // 8 for stride in source.strides)
        assert np.shares_memory(tensor.numpy(), source)
        assert tensor.as_strided(tensor.shape, tensor.stride()).tolist() == source.tolist()


def test_transposed_and_broadcast_arrays():
    source = np.arange(6).reshape(2, 3)
    assert rl.from_numpy(source.T).stride() == (1, 3)
    expanded = np.broadcast_to(np.arange(3.0), (2, 3))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert rl.from_numpy(expanded).stride() == (0, 1)


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: np.arange(3)[::-1], ValueError, "stride in the given numpy array is negative"),
        (lambda: np.arange(3).astype(">i4"), ValueError, "byte order different from the native"),
        (lambda: np.array([1], "M8[s]"), TypeError, "can't convert np.ndarray of type datetime64"),
        (lambda: np.zeros(2, "i1,i4")["f1"], ValueError, "strides not a multiple of the element byte size"),
        (lambda: [1, 2], TypeError, r"expected np.ndarray \(got list\)"),
    ],
)
def test_what_from_numpy_refuses(make, error, message):
    with pytest.raises(error, match=message):
        rl.from_numpy(make())


def test_read_only_arrays_warn_and_stay_unwritten():
    source = np.arange(3)
    source.flags.writeable = False
    with pytest.warns(UserWarning, match="not writable"):
        tensor = rl.from_numpy(source)
    assert tensor.tolist() == [0, 1, 2]
    with pytest.raises(ValueError, match="read-only"):
        tensor.add_(1)


def test_numpy_of_a_tensor_with_history():
    x = rl.ones(2, requires_grad=True)
    with pytest.raises(RuntimeError, match=r"Use tensor.detach\(\).numpy\(\) instead"):
        x.numpy()
    assert x.numpy(force=True).tolist() == [1, 1]


def test_array_protocol():
    x = rl.arange(4, dtype=rl.float32)
    assert np.shares_memory(np.asarray(x), x.numpy())
    assert not np.shares_memory(np.array(x), x.numpy())
    assert np.asarray(x, np.int64).tolist() == [0, 1, 2, 3]
    assert isinstance(np.sqrt(x), rl.Tensor) and np.sqrt(x).dtype is rl.float32
    assert np.concatenate([x, x]).shape == (8,)


def test_numpy_operands_on_either_side():
    x, y = rl.ones(3), np.arange(3.0)
    for result in (x + y, y + x, x - y, y - x, y * x, y / x, y**x, x < y):
        assert isinstance(result, rl.Tensor)
    assert (y - x).tolist() == [-1, 0, 1] and (y - x).dtype is rl.float64
    for number in (np.float32(2), np.float64(2), np.int64(2), np.bool_(True)):
        assert isinstance(number * x, rl.Tensor) and (number * x).dtype is rl.float32
        assert (x * number).dtype is rl.float32
    assert (rl.arange(3) * np.float64(0.5)).tolist() == [0, 0.5, 1]


def test_dlpack_shares_memory():
    x = rl.arange(6, dtype=rl.float32).view(2, 3)
    array_ = np.from_dlpack(x)
    assert np.shares_memory(array_, x.numpy()) and x.__dlpack_device__() == (1, 0)
    y = rl.from_dlpack(x.t())
    assert y.data_ptr() == x.data_ptr() and y.stride() == (1, 3)
    y[0, 0] = 9
    assert x[0, 0].item() == 9
    assert rl.from_dlpack(np.arange(3)).tolist() == [0, 1, 2]


@pytest.mark.oracle
def test_dlpack_with_torch():
    torch = pytest.importorskip("torch")
    theirs = torch.arange(4.0)
    ours = rl.from_dlpack(theirs)
    assert ours.data_ptr() == theirs.data_ptr()
    ours[0] = 7
    assert theirs[0].item() == 7
    again = torch.from_dlpack(rl.arange(3))
    again[0] = 5
    assert again.tolist() == [5, 1, 2]


def test_frombuffer():
    source = bytearray(np.arange(4, dtype=np.float32).tobytes())
    x = rl.frombuffer(source, dtype=rl.float32)
    x[0] = 5
    assert np.frombuffer(source, np.float32)[0] == 5
    assert rl.frombuffer(source, dtype=rl.float32, count=2, offset=4).tolist() == [1, 2]
    assert rl.frombuffer(array.array("i", [1, 2]), dtype=rl.int32).tolist() == [1, 2]
    assert rl.frombuffer(source, dtype=rl.float32, requires_grad=True).requires_grad
    with pytest.raises(ValueError, match="buffer"):
        rl.frombuffer(b"abc", dtype=rl.float32)


def test_as_tensor_copies_only_to_convert():
    source = np.arange(3.0)
    assert rl.as_tensor(source).data_ptr() == source.ctypes.data
    assert rl.as_tensor(source, dtype=rl.float32).data_ptr() != source.ctypes.data
    x = rl.ones(2)
    assert rl.as_tensor(x) is x and rl.as_tensor(x, dtype=rl.float64) is not x
    assert rl.as_tensor([1, 2]).tolist() == [1, 2] and rl.asarray(3).item() == 3


@pytest.mark.filterwarnings("error")
def test_memory_of_a_capsule_may_be_written_to():
    x = rl.arange(3.0)
    shared = rl.utils.dlpack.from_dlpack(rl.utils.dlpack.to_dlpack(x))
    shared[0] = 9
    assert x.tolist() == [9.0, 1.0, 2.0]
    del x
    assert shared.tolist() == [9.0, 1.0, 2.0]
    with pytest.raises(ValueError, match="lies on the CPU"):
        rl.utils.dlpack.from_dlpack(shared, device="cuda")
