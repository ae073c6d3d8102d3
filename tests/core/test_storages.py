"""Storages as objects of their own: sizes, files, memory of several processes, elements; `torch.types` and `torch._utils`."""

from __future__ import annotations

import copy
import io
import multiprocessing
import pickle

import numpy as np
import pytest

import rushlight as rl

ACTIONS = {
    "of a list": lambda torch: torch.UntypedStorage([1, 2, 3]),
    "slice": lambda torch: torch.UntypedStorage([1, 2, 3])[1:],
    "last": lambda torch: torch.UntypedStorage([1, 2, 3])[-1],
    "outside": lambda torch: torch.UntypedStorage([1])[3],
    "fill": lambda torch: torch.UntypedStorage(3).fill_(7).tolist(),
    "copy": lambda torch: torch.UntypedStorage(2).copy_(torch.UntypedStorage([1, 2])).tolist(),
    "grow": lambda torch: (lambda s: (s.resize_(8), s.nbytes(), s.tolist()[:2]))(torch.UntypedStorage([1, 2]))[1:],
    "as float": lambda torch: torch.arange(3.0).storage(),
    "as int": lambda torch: torch.arange(3.0).storage().int(),
    "bytes as bool": lambda torch: torch.UntypedStorage([0, 2]).bool(),
    "typed": lambda torch: torch.TypedStorage([1, 2], dtype=torch.int64),
    "typed over": lambda torch: torch.TypedStorage(wrap_storage=torch.arange(2).untyped_storage(), dtype=torch.int32),
    "legacy": lambda torch: torch.FloatStorage([1, 2]),
    "legacy of a buffer": lambda torch: torch.FloatStorage.from_buffer(bytearray(b"\0\0\x80?"), "native"),
    "asarray": lambda torch: torch.asarray(torch.arange(3.0).untyped_storage(), dtype=torch.float32),
    "asarray of typed": lambda torch: torch.asarray(torch.arange(3).storage(), dtype=torch.int64),
    "asarray of a buffer": lambda torch: torch.asarray(bytearray(b"\0\0\x80?"), dtype=torch.float32),
    "asarray that cannot share": lambda torch: torch.asarray([1.0], copy=False),
    "asarray of a gradient": lambda torch: torch.asarray([1.0], requires_grad=True),
    "tensor type": lambda torch: torch.FloatTensor(torch.arange(3.0).storage()),
    "set_": lambda torch: torch.empty(0).set_(torch.arange(6.0).untyped_storage(), 1, (2,), (2,)),
    "meta": lambda torch: torch.ones(2, device="meta").untyped_storage(),
    "byteswap": lambda torch: (lambda s: (s.byteswap(torch.int16), s.tolist()))(torch.UntypedStorage([1, 2, 3, 4])),
    "deepcopy": lambda torch: copy.deepcopy(torch.arange(3.0).storage()).tolist(),
    "pickle": lambda torch: pickle.loads(pickle.dumps(torch.arange(3.0).storage())).tolist(),
    "is_storage": lambda torch: [torch.is_storage(x) for x in (torch.ones(1).storage(), torch.UntypedStorage(1), torch.ones(1))],
    "is float": lambda torch: isinstance(torch.ones(1).storage(), torch.FloatStorage),
    "flatten": lambda torch: torch._utils._flatten_dense_tensors([torch.ones(2), torch.zeros(1, 2)]),
    "unflatten": lambda torch: torch._utils._unflatten_dense_tensors(torch.arange(4.0), [torch.ones(2), torch.zeros(1, 2)]),
    "rebuild": lambda torch: torch._utils._rebuild_tensor_v2(torch.arange(6.0).storage(), 1, (2,), (2,), True, {}),
    "rebuild parameter": lambda torch: torch._utils._rebuild_parameter(torch.arange(2.0), True, {}),
    "take": lambda torch: [len(chunk) for chunk in torch._utils._take_tensors([torch.ones(2)] * 3, 16)],
    "device index": lambda torch: (torch._utils._get_device_index("cuda:1"), torch._utils._get_device_index("cpu", allow_cpu=True)),
    "no index": lambda torch: torch._utils._get_device_index("cpu"),
    "accelerator": lambda torch: torch._utils._get_available_device_type(),
    "capsule": lambda torch: torch.utils.dlpack.from_dlpack(torch.utils.dlpack.to_dlpack(torch.arange(3.0))),
    "meta pickled": lambda torch: copy.deepcopy(torch.ones(2, 3, device="meta")),
}


@pytest.mark.oracle
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", ACTIONS)
def test_actions_of_torch(name):
    torch = pytest.importorskip("torch")

    def described(library):
        try:
            return repr(ACTIONS[name](library))
        except (RuntimeError, IndexError, ValueError) as error:
            return type(error), str(error)

    assert described(rl) == described(torch)


def test_a_storage_that_shrinks_and_grows():
    x = rl.arange(4.0)
    x.untyped_storage().resize_(0)
    assert x.untyped_storage().nbytes() == 0 and x.shape == (4,)
    (x + 1).sum()  # may give anything, and must not crash
    x.untyped_storage().resize_(32)
    assert x.untyped_storage().nbytes() == 32 and x[:4].shape == (4,)
    x.fill_(2)
    assert x.tolist() == [2.0] * 4


def test_storages_of_files(tmp_path):
    path = tmp_path / "bytes"
    path.write_bytes(bytes(range(16)))
    own = rl.UntypedStorage.from_file(path, False, 8)
    own[0] = 99
    assert own.tolist()[:2] == [99, 1] and path.read_bytes()[0] == 0
    shared = rl.from_file(str(path), shared=True, size=4, dtype=rl.int32)
    shared[0] = 7
    assert path.read_bytes()[:4] == bytes([7, 0, 0, 0])
    assert rl.FloatStorage.from_file(str(path), False, 2).size() == 2
    with pytest.raises(RuntimeError, match="16 bytes|has size 16"):
        rl.UntypedStorage.from_file(path, False, 64)


def _write(tensor):
    tensor[0] = 5


def test_children_write_to_shared_memory():
    x = rl.zeros(3)
    view = x[:1]
    assert not x.is_shared()
    assert x.share_memory_() is x and x.is_shared() and view.is_shared()
    process = multiprocessing.get_context("fork").Process(target=_write, args=(x,))
    process.start()
    process.join()
    assert view.item() == 5 and (x + 1).tolist() == [6.0, 1.0, 1.0]
    model = rl.nn.Linear(2, 2).share_memory()
    assert model.weight.is_shared() and isinstance(model.weight, rl.nn.Parameter)


def test_modules_of_types():
    assert rl.storage.UntypedStorage is rl.UntypedStorage and rl.storage.TypedStorage is rl.TypedStorage
    assert isinstance(1.5, rl.types.Number) and isinstance("cuda", rl.types.Device)
    assert rl.types._dtype is rl.dtype and rl.types._int is int
    file = io.BytesIO()
    rl.save(rl.arange(2).untyped_storage(), file)
    file.seek(0)
    assert rl.load(file).nbytes() == 16
    assert np.asarray(rl.UntypedStorage([1, 2])).tolist() == [1, 2]


def test_errors_of_other_threads():
    try:
        raise KeyError("x")
    except KeyError:
        wrapped = rl._utils.ExceptionWrapper(where="in a worker")
    with pytest.raises(KeyError, match="Caught KeyError in a worker"):
        wrapped.reraise()
