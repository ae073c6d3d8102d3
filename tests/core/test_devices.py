"""Device objects, devices that are not there, and the default device of new tensors."""

from __future__ import annotations

import copy
import io
import pickle
import re
import threading

import pytest

import rushlight as rl

NAMES = (
    "cpu", "cuda", "ipu", "xpu", "mkldnn", "opengl", "opencl", "ideep", "hip", "ve", "fpga", "maia", "xla", "lazy", "vulkan",
    "mps", "meta", "hpu", "mtia", "privateuseone",
)  # fmt: skip
ABSENT = ("cuda", "cuda:1", "mps", "xpu", "mtia", "hpu", "vulkan", "banana", 0, "cuda:x")
FACTORIES = {
    "ones": lambda torch, **where: torch.ones(2, **where),
    "empty": lambda torch, **where: torch.empty(2, **where),
    "tensor": lambda torch, **where: torch.tensor([1.0], **where),
    "as_tensor": lambda torch, **where: torch.as_tensor([1.0], **where),
    "asarray": lambda torch, **where: torch.asarray([1.0], **where),
    "arange": lambda torch, **where: torch.arange(3, **where),
    "full": lambda torch, **where: torch.full((2,), 1.0, **where),
    "rand": lambda torch, **where: torch.rand(2, **where),
    "randn": lambda torch, **where: torch.randn(2, **where),
    "randint": lambda torch, **where: torch.randint(3, (2,), **where),
    "randperm": lambda torch, **where: torch.randperm(3, **where),
    "linspace": lambda torch, **where: torch.linspace(0, 1, 3, **where),
    "logspace": lambda torch, **where: torch.logspace(0, 1, 3, **where),
    "eye": lambda torch, **where: torch.eye(3, **where),
    "empty_strided": lambda torch, **where: torch.empty_strided((2,), (1,), **where),
    "hann_window": lambda torch, **where: torch.hann_window(3, **where),
    "kaiser_window": lambda torch, **where: torch.kaiser_window(3, **where),
    "cosine_window": lambda torch, **where: torch.signal.windows.cosine(3, **where),
    "tril_indices": lambda torch, **where: torch.tril_indices(3, 3, **where),
    "scalar_tensor": lambda torch, **where: torch.scalar_tensor(1.0, **where),
    "fftfreq": lambda torch, **where: torch.fft.fftfreq(3, **where),
    "linear": lambda torch, **where: torch.nn.Linear(2, 2, **where).weight,
    "embedding": lambda torch, **where: torch.nn.Embedding(2, 2, **where).weight,
    "lstm": lambda torch, **where: torch.nn.LSTM(2, 2, **where).weight_ih_l0,
    "batch_norm": lambda torch, **where: torch.nn.BatchNorm1d(2, **where).running_mean,
}
OTHERS = {
    "ones_like": lambda torch, where: torch.ones_like(torch.ones(2), device=where),
    "rand_like": lambda torch, where: torch.rand_like(torch.ones(2), device=where),
    "new_zeros": lambda torch, where: torch.ones(2).new_zeros(2, device=where),
    "new_tensor": lambda torch, where: torch.ones(2).new_tensor([2.0], device=where),
    "to": lambda torch, where: torch.ones(2).to(where),
    "to_keyword": lambda torch, where: torch.ones(2).to(device=where),
    "to_device": lambda torch, where: torch.ones(2).to(torch.device(where)),
    "module_to": lambda torch, where: torch.nn.Linear(2, 2).to(where).weight,
    "to_empty": lambda torch, where: torch.nn.Linear(2, 2).to_empty(device=where).weight,
    "generator": lambda torch, where: torch.Generator(device=where),
    "storage": lambda torch, where: torch.UntypedStorage(3, device=where),
    "sparse": lambda torch, where: torch.sparse_coo_tensor([[0]], [1.0], (2,), device=where),
}


def outcome(action) -> tuple:
    """The device of a result, or the error."""
    try:
        return "device", str(action().device)
    except Exception as error:
        # Torch goes on to explain its build.
        return type(error).__name__, re.split(r"(?<=\.) ", str(error))[0]


def test_device_parses_its_forms():
    assert rl.device("cuda", 1) == rl.device("cuda:1") == rl.device(type="cuda", index=1) == rl.device(rl.device("cuda:1"))
    assert rl.device("cuda:0") != rl.device("cuda") != "cuda" and rl.device("cuda").index is None
    assert hash(rl.device("cuda", 1)) == hash(rl.device("cuda:1"))
    assert repr(rl.device("cuda:1")) == "device(type='cuda', index=1)" and str(rl.device("cuda:1")) == "cuda:1"
    for kept in (copy.deepcopy, copy.copy, lambda value: pickle.loads(pickle.dumps(value))):
        assert kept(rl.device("xpu:1")) is rl.device("xpu", 1)
    with pytest.raises(AttributeError, match="not writable"):
        rl.device("cpu").type = "cuda"


@pytest.mark.oracle
@pytest.mark.parametrize("name", [*NAMES, "banana", "", "cuda:", "cuda:x", "cuda:-1", "cuda:01", "cpu:1", "meta:0", 0, -1])
def test_names_of_devices_are_those_of_torch(name):
    torch = pytest.importorskip("torch")

    def described(library):
        try:
            return repr(library.device(name))
        except RuntimeError as error:
            return str(error)

    assert described(rl) == described(torch)


@pytest.mark.oracle
@pytest.mark.parametrize("arguments", [("cuda:1", 1), ("cuda", -1), ("cuda", "1"), ("cuda", None), (1.5,), (None,), (), (True,)])
def test_wrong_devices_raise_as_in_torch(arguments):
    torch = pytest.importorskip("torch")

    def described(library):
        try:
            return repr(library.device(*arguments))
        except (RuntimeError, TypeError) as error:
            return type(error), str(error).split("\n")[0]

    assert described(rl) == described(torch)


@pytest.mark.oracle
@pytest.mark.parametrize("where", [*ABSENT, "cpu:1", "meta"])
@pytest.mark.parametrize("name", [*FACTORIES, *OTHERS])
def test_use_of_devices_is_that_of_torch(name, where):
    torch = pytest.importorskip("torch")
    if name == "sparse" and where == "meta":
        pytest.skip("sparse tensors are on the CPU")

    def make(library):
        made = FACTORIES[name](library, device=where) if name in FACTORIES else OTHERS[name](library, where)
        return made

    assert outcome(lambda: make(rl)) == outcome(lambda: make(torch))


@pytest.mark.oracle
@pytest.mark.parametrize("name", ["cuda", "xpu", "mtia", "ipu"])
def test_methods_of_absent_devices_raise_as_in_torch(name):
    torch = pytest.importorskip("torch")
    for make in (lambda library: library.ones(2), lambda library: library.nn.Linear(2, 2)):
        assert outcome(lambda: getattr(make(rl), name)()) == outcome(lambda: getattr(make(torch), name)())  # noqa: B023


@pytest.mark.oracle
@pytest.mark.parametrize("place", ["cuda", "xpu", "hpu", "banana", "vulkan", {"cpu": "cuda"}, "meta"])
def test_map_location_of_absent_devices(place):
    torch = pytest.importorskip("torch")

    def load(library):
        file = io.BytesIO()
        library.save(library.ones(2), file)
        file.seek(0)
        return library.load(file, map_location=place)

    kind, message = outcome(lambda: load(torch))
    if kind == "device":
        assert load(rl).device.type == message
    else:
        with pytest.raises(RuntimeError, match=re.escape(message)):
            load(rl)


@pytest.mark.oracle
@pytest.mark.parametrize(
    "name",
    [
        "is_available", "device_count", "is_initialized", "current_device", "synchronize", "init", "get_device_name",
        "get_device_properties", "get_device_capability", "current_stream", "Stream", "Event", "memory_allocated",
        "max_memory_allocated", "memory_reserved", "mem_get_info", "empty_cache", "get_rng_state", "get_rng_state_all",
        "initial_seed", "is_bf16_supported", "ipc_collect", "get_arch_list", "get_gencode_flags", "memory_stats",
    ],
)  # fmt: skip
def test_cuda_answers_as_in_torch(name):
    torch = pytest.importorskip("torch")

    def answer(library):
        try:
            return getattr(library.cuda, name)()
        except (AssertionError, RuntimeError) as error:
            return type(error), str(error)

    assert answer(rl) == answer(torch)


@pytest.mark.oracle
@pytest.mark.parametrize("name", FACTORIES)
def test_default_device_is_that_of_new_tensors(name):
    torch = pytest.importorskip("torch")
    found = []
    for library in (rl, torch):
        with library.device("meta"):
            made = FACTORIES[name](library)
            assert FACTORIES[name](library, device="cpu").device.type == "cpu"
        assert FACTORIES[name](library).device.type == "cpu"
        found.append((str(made.device), tuple(made.shape), str(made.dtype), repr(made)))
    assert found[0] == found[1]


def test_default_devices_nest_and_belong_to_their_thread():
    rl.set_default_device("meta")
    try:
        assert rl.ones(1).is_meta and rl.get_default_device() == rl.device("meta")
        with rl.device("cpu"):
            assert rl.ones(1).is_cpu and rl.get_default_device() == rl.device("cpu")
            with rl.device("meta"):
                assert rl.nn.Linear(1, 1).weight.is_meta
            assert rl.ones_like(rl.ones(1)).is_cpu
        assert rl.nn.Parameter().is_meta
        elsewhere = []
        thread = threading.Thread(target=lambda: elsewhere.append(rl.ones(1).device.type))
        thread.start()
        thread.join()
        assert elsewhere == ["cpu"]
    finally:
        rl.set_default_device(None)
    assert rl.ones(1).is_cpu and rl.get_default_device() == rl.device("cpu")


def test_default_device_that_is_absent():
    with rl.device("cuda"), pytest.raises(AssertionError, match="Torch not compiled with CUDA enabled"):
        rl.ones(2)
    with rl.device("cuda:1"):
        assert rl.get_default_device() == rl.device("cuda:1")


def test_modules_begin_on_meta_and_get_their_weights_later():
    source = rl.nn.BatchNorm1d(2)
    with rl.device("meta"):
        model = rl.nn.BatchNorm1d(2)
    with pytest.raises(NotImplementedError, match="Module.to_empty"):
        model.to("cpu")
    model.load_state_dict(source.state_dict(), assign=True)
    assert model.weight.data_ptr() == source.weight.data_ptr() and isinstance(model.weight, rl.nn.Parameter)
    assert model(rl.ones(3, 2)).shape == (3, 2)
    assert rl.nn.utils.skip_init(rl.nn.Linear, 2, 2).weight.is_cpu
    assert rl.nn.Linear(2, 2, device="meta").to_empty(device="cpu").weight.is_cpu


META = {
    "item": lambda torch, m: m.sum().item(),
    "numpy": lambda torch, m: m.numpy(),
    "tolist": lambda torch, m: m.tolist(),
    "bool": lambda torch, m: bool(m.sum()),
    "float": lambda torch, m: float(m.sum()),
    "copy_from": lambda torch, m: torch.ones(2, 3).copy_(m),
    "copy_to": lambda torch, m: m.copy_(torch.ones(2, 3)),
    "cpu": lambda torch, m: m.cpu(),
    "mixed": lambda torch, m: m + torch.ones(2, 3),
    "mixed_cat": lambda torch, m: torch.cat([m, torch.ones(2, 3)]),
    "number": lambda torch, m: m + torch.tensor(1.0),
    "product": lambda torch, m: m @ m.T,
    "double": lambda torch, m: m.double(),
    "parameter": lambda torch, m: torch.nn.Parameter(m),
    "history": lambda torch, m: m.clone().requires_grad_() * 2,
    "softmax": lambda torch, m: m.softmax(-1),
    "orthogonal": lambda torch, m: torch.nn.init.orthogonal_(m),
    "xavier": lambda torch, m: torch.nn.init.xavier_uniform_(m),
    "dlpack": lambda torch, m: m.__dlpack__(),
}


@pytest.mark.oracle
@pytest.mark.parametrize("name", META)
def test_meta_tensors_are_those_of_torch(name):
    torch = pytest.importorskip("torch")

    def described(library):
        try:
            return repr(META[name](library, library.ones(2, 3, device="meta")))
        except (RuntimeError, TypeError, BufferError) as error:
            return type(error), str(error)

    assert described(rl) == described(torch)
