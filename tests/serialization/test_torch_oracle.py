"""PyTorch reads what `save` writes, and `load` reads what PyTorch writes, in both of its formats."""

from __future__ import annotations

import io
from collections import Counter, OrderedDict

import numpy as np
import pytest

from rushlight.core.dtype import ALL, dtype
from rushlight.core.size import Size
from rushlight.core.tensor import Tensor, from_numpy
from rushlight.nn.parameter import Parameter
from rushlight.serialization import UnpicklingError, load, save
from tests.serialization.archives import example, load_bytes, save_bytes

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.oracle
FORMATS = pytest.mark.parametrize("zipped", [True, False], ids=["zip", "legacy"])


def torch_bytes(value, zipped: bool = True, **options) -> bytes:
    buffer = io.BytesIO()
    torch.save(value, buffer, _use_new_zipfile_serialization=zipped, **options)
    return buffer.getvalue()


def torch_load(data: bytes):
    return torch.load(io.BytesIO(data), weights_only=True)


def same(ours, theirs) -> None:
    """Assert that a value of rushlight equals one of torch, in types, geometry and contents."""
    if isinstance(theirs, torch.Tensor):
        assert isinstance(ours, Parameter) == isinstance(theirs, torch.nn.Parameter)
        assert repr(ours.dtype) == repr(theirs.dtype)
        assert (tuple(ours.shape), ours.stride()) == (tuple(theirs.shape), theirs.stride())
        assert (ours.storage_offset(), ours.requires_grad) == (theirs.storage_offset(), theirs.requires_grad)
        assert ours.untyped_storage().tolist() == theirs.untyped_storage().tolist()
    elif isinstance(theirs, dict):
        assert type(ours) is type(theirs) and list(ours) == list(theirs)
        for key, value in theirs.items():
            same(ours[key], value)
    elif isinstance(theirs, list | tuple) and not isinstance(theirs, torch.Size):
        assert type(ours) is type(theirs) and len(ours) == len(theirs)
        for a, b in zip(ours, theirs, strict=True):
            same(a, b)
    elif isinstance(theirs, torch.dtype | torch.device | torch.layout | torch.Size):
        assert repr(ours) == repr(theirs)
    else:
        assert type(ours) is type(theirs) and ours == theirs


@FORMATS
@pytest.mark.parametrize("element_type", ALL, ids=lambda d: d.name)
def test_every_dtype(element_type: dtype, zipped):
    theirs = (torch.arange(12).reshape(3, 4) % 5).to(getattr(torch, element_type.name))
    same(load_bytes(torch_bytes(theirs, zipped)), theirs)
    same(from_numpy((np.arange(4) % 5).astype(element_type.numpy)), theirs.flatten()[:4].clone())
    ours = from_numpy((np.arange(12).reshape(3, 4) % 5).astype(element_type.numpy))
    same(ours, torch_load(save_bytes(ours)))


def rich() -> dict:
    base = torch.arange(24, dtype=torch.float32)
    parameter = torch.nn.Parameter(base[:6].view(2, 3))
    parameter.note = "kept"
    return {
        "views": [base.view(4, 6).t(), base[3:9], base.as_strided((2, 2), (0, 1), 5), base[::2], base[5:5]],
        "parameters": OrderedDict(a=parameter, b=torch.nn.Parameter(torch.ones(2), requires_grad=False)),
        "empty": torch.empty(0, 3),
        "scalar": torch.tensor(2.5, requires_grad=True),
        "plain": [None, True, 1, -5, 1 << 40, 1 << 100, 0.5, "text", b"\x00\xff", bytearray(b"x"), 1 + 2j, (1, (2,))],
        "set": {3, 4},
        "torch": [torch.float32, torch.bfloat16, torch.device("cpu"), torch.Size([1, 2]), torch.strided],
        "counter": Counter("aab"),
        7: {"nested": {None: 1, 2.5: 2}},
    }


@FORMATS
def test_rich_object_from_torch(zipped):
    loaded = load_bytes(torch_bytes(rich(), zipped))
    same(loaded, rich())
    views = loaded["views"]
    assert all(view.untyped_storage() == views[0].untyped_storage() for view in views)
    assert loaded["parameters"]["a"].note == "kept"


@pytest.mark.parametrize("protocol", [2, 3, 4, 5])
def test_pickle_protocols(protocol):
    same(load_bytes(torch_bytes(rich(), pickle_protocol=protocol)), rich())


def test_rich_object_to_torch():
    loaded = load_bytes(torch_bytes(rich()))
    again = torch_load(save_bytes(loaded))
    same(loaded, again)
    views = again["views"]
    assert all(view.untyped_storage().data_ptr() == views[0].untyped_storage().data_ptr() for view in views)


def test_torch_reads_paths_and_maps_them(tmp_path):
    path = tmp_path / "model.pt"
    save(example(), path)
    for options in ({}, {"mmap": True}):
        theirs = torch.load(path, weights_only=True, **options)
        same(example()["weight"], theirs["weight"])
    torch.save(rich(), path)
    same(load(path, mmap=True), rich())


class Network(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.BatchNorm1d(4), torch.nn.Linear(4, 2))
        self.tied = self.layers[0]


@FORMATS
def test_state_dict_of_a_module(zipped):
    theirs = Network().state_dict()
    ours = load_bytes(torch_bytes(theirs, zipped))
    same(ours, theirs)
    assert ours._metadata == theirs._metadata
    assert ours["tied.weight"].untyped_storage() == ours["layers.0.weight"].untyped_storage()
    again = torch_load(save_bytes(ours))
    assert again._metadata == theirs._metadata
    Network().load_state_dict(again)


@FORMATS
@pytest.mark.parametrize("kind", ["SGD", "Adam", "AdamW", "Adagrad"])
def test_optimizer_state(kind, zipped):
    network = Network()
    optimizer = getattr(torch.optim, kind)(network.parameters(), lr=0.1, **({"momentum": 0.9} if kind == "SGD" else {}))
    for parameter in network.parameters():
        parameter.grad = torch.ones_like(parameter)
    optimizer.step()
    theirs = optimizer.state_dict()
    ours = load_bytes(torch_bytes({"optimizer": theirs, "epoch": 3}, zipped))["optimizer"]
    same(ours, theirs)
    optimizer.load_state_dict(torch_load(save_bytes(ours)))


@FORMATS
def test_lazy_views(zipped):
    conjugate = torch.tensor([1 + 2j, 3 - 4j]).conj()
    for lazy in (conjugate, conjugate.imag):
        ours = load_bytes(torch_bytes(lazy, zipped))
        assert (ours.is_conj(), ours.is_neg(), ours.tolist()) == (lazy.is_conj(), lazy.is_neg(), lazy.tolist())
        back = torch_load(save_bytes(ours))
        assert (back.is_conj(), back.is_neg(), back.tolist()) == (lazy.is_conj(), lazy.is_neg(), lazy.tolist())


def test_meta_tensors():
    loaded = load_bytes(torch_bytes(torch.empty(2, 3, device="meta")))
    assert (loaded.device.type, loaded.shape, repr(loaded.dtype)) == ("meta", (2, 3), "torch.float32")
    again = torch_load(save_bytes(loaded))
    assert again.is_meta and again.shape == (2, 3)


def test_storages():
    data = torch_bytes([torch.arange(3).untyped_storage(), torch.arange(3)])
    loaded = load_bytes(data)
    assert loaded[0].tolist() == torch.arange(3).untyped_storage().tolist()
    assert loaded[1].tolist() == [0, 1, 2]


def test_whole_modules_and_unsupported_tensors_are_refused():
    with pytest.raises(UnpicklingError, match=r"Linear.*state_dict\(\)"):
        load_bytes(torch_bytes(torch.nn.Linear(2, 2)))
    with pytest.raises(UnpicklingError, match="no storage|global|external"):
        load_bytes(torch_bytes(torch.nn.Linear(2, 2), zipped=False))
    with pytest.raises(UnpicklingError, match="sparse tensors of the layout torch.sparse_bsr"):
        load_bytes(torch_bytes(torch.eye(2).to_sparse_bsr((1, 1))))


def test_scripted_archives_are_named_as_such():
    buffer = io.BytesIO()
    torch.jit.save(torch.jit.script(torch.nn.ReLU()), buffer)
    with pytest.raises(RuntimeError, match="TorchScript archive"):
        load_bytes(buffer.getvalue())


def test_sizes_and_tensors_stay_of_their_types():
    loaded = torch_load(save_bytes({"size": Size((1, 2)), "tensor": from_numpy(np.ones(2)), "type": ALL[0]}))
    assert type(loaded["size"]) is torch.Size
    assert type(loaded["tensor"]) is torch.Tensor
    assert loaded["type"] is torch.bool
    assert isinstance(example()["weight"], Tensor)
