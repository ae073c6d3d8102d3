"""Whole modules and other objects in checkpoints: `weights_only=False`, and classes that the user vouches for."""

from __future__ import annotations

import collections
import dataclasses
import enum
import functools
import io
import pickle

import numpy as np
import pytest

import rushlight as rl
from rushlight.serialization import UnpicklingError, add_safe_globals, clear_safe_globals, get_safe_globals, safe_globals


class Plain:
    """An object with a tensor."""

    def __init__(self, value=1):
        self.tensor, self.value = rl.ones(2), value

    class Inner:
        """A class within a class."""


@dataclasses.dataclass
class Record:
    """A dataclass."""

    a: int = 1
    tensor: object = None


class Colour(enum.Enum):
    """An enumeration."""

    RED = 1


class Slotted:
    """An object without a dict."""

    __slots__ = ("a",)


Pair = collections.namedtuple("Pair", "first second")


def function():
    """A function that is written by name."""


def written(library, value, **options):
    file = io.BytesIO()
    library.save(value, file, **options)
    file.seek(0)
    return file


def again(value):
    return rl.load(written(rl, value), weights_only=False)


MODULES = {
    "linear": lambda torch: torch.nn.Linear(3, 2),
    "convolutional": lambda torch: torch.nn.Sequential(
        torch.nn.Conv2d(1, 2, 3), torch.nn.BatchNorm2d(2), torch.nn.ReLU(), torch.nn.MaxPool2d(2), torch.nn.Flatten(),
        torch.nn.Dropout(0.1), torch.nn.Linear(2, 3),
    ),
    "lstm": lambda torch: torch.nn.LSTM(3, 2, 2),
    "gru": lambda torch: torch.nn.GRU(3, 2, bidirectional=True),
    "encoder": lambda torch: torch.nn.TransformerEncoder(torch.nn.TransformerEncoderLayer(4, 2, 8, batch_first=True), 2),
    "activations": lambda torch: torch.nn.Sequential(*[
        getattr(torch.nn, name)() for name in "SiLU GELU Sigmoid LeakyReLU ELU Hardswish Mish PReLU Identity Tanhshrink".split()
    ]),
    "pools": lambda torch: torch.nn.Sequential(
        torch.nn.AvgPool2d(2), torch.nn.Upsample(scale_factor=2), torch.nn.ConvTranspose2d(1, 1, 2), torch.nn.ZeroPad2d(1)
    ),
}  # fmt: skip
SIZES = {
    "linear": (1, 3), "convolutional": (1, 1, 5, 5), "lstm": (4, 1, 3), "gru": (4, 1, 3), "encoder": (1, 3, 4),
    "activations": (2, 3), "pools": (1, 1, 4, 4),
}  # fmt: skip


@pytest.mark.oracle
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("zipped", [True, False])
@pytest.mark.parametrize("name", MODULES)
def test_modules_that_torch_saved(name, zipped):
    torch = pytest.importorskip("torch")
    theirs = MODULES[name](torch).eval()
    ours = rl.load(written(torch, theirs, _use_new_zipfile_serialization=zipped), weights_only=False)
    assert type(ours).__module__.startswith("rushlight.nn") and repr(ours) == repr(theirs)
    x = np.random.default_rng(0).random(SIZES[name], np.float32)
    expected, found = theirs(torch.from_numpy(x)), ours(rl.from_numpy(x))
    expected, found = (value[0] if isinstance(value, tuple) else value for value in (expected, found))
    np.testing.assert_allclose(found.detach().numpy(), expected.detach().numpy(), atol=1e-5)


@pytest.mark.oracle
def test_containers_and_optimizers_that_torch_saved():
    torch = pytest.importorskip("torch")
    weight = torch.nn.Parameter(torch.ones(2))
    listed = rl.load(written(torch, torch.nn.ParameterList([weight, 3])), weights_only=False)
    assert listed[0].tolist() == [1.0, 1.0] and listed[1] == 3 and len(listed) == 2
    named = rl.load(written(torch, torch.nn.ParameterDict({"a": weight, "b": 3})), weights_only=False)
    assert list(named.keys()) == ["a", "b"] and named["b"] == 3
    optimizer = rl.load(written(torch, torch.optim.Adam([weight], lr=0.5)), weights_only=False)
    assert isinstance(optimizer, rl.optim.Adam) and optimizer.param_groups[0]["lr"] == 0.5


@pytest.mark.oracle
@pytest.mark.parametrize("name", ["linear", "convolutional", "activations", "pools"])
def test_modules_that_torch_loads(name):
    torch = pytest.importorskip("torch")
    ours = MODULES[name](rl).eval()
    theirs = torch.load(written(rl, ours), weights_only=False)
    assert type(theirs).__module__.startswith("torch.nn")
    x = np.random.default_rng(0).random(SIZES[name], np.float32)
    np.testing.assert_allclose(theirs(torch.from_numpy(x)).detach(), ours(rl.from_numpy(x)).detach(), atol=1e-5)


def test_modules_of_our_own():
    for make in MODULES.values():
        model = make(rl)
        loaded = again(model)
        assert repr(loaded) == repr(model)
        for key, value in model.state_dict().items():
            assert rl.equal(loaded.state_dict()[key], value)


@pytest.mark.parametrize(
    "value",
    [
        Record(2), Colour.RED, Pair(1, 2), function, Plain, Plain.Inner, range(3), frozenset([1]), {(1, (2,)): 3}, 1 << 5000,
        collections.deque([1]), collections.defaultdict(list, a=[1]), rl.nn.ReLU, rl.relu, len, rl.channels_last, type(None),
        np.float32(2), {"a": {1, 2}}, 1 + 2j,
    ],
)  # fmt: skip
def test_objects(value):
    assert again(value) == value


def test_objects_with_state():
    plain = again([plain := Plain(3), plain])
    assert plain[0] is plain[1] and plain[0].value == 3 and plain[0].tensor.tolist() == [1.0, 1.0]
    slotted = Slotted()
    slotted.a = 5
    assert again(slotted).a == 5
    assert again(np.ones(3)).tolist() == [1.0] * 3
    assert again(functools.partial(function, 1)).args == (1,)
    shared = rl.zeros(2)
    loaded = again(Record(1, [shared, shared[:1]]))
    loaded.tensor[0][0] = 7
    assert loaded.tensor[1].item() == 7


@pytest.mark.parametrize("value", [lambda: 1, open, (x for x in ())])
def test_what_cannot_be_pickled(value, tmp_path):
    if value is open:
        value = open(tmp_path / "file", "w")  # noqa: SIM115
    with pytest.raises(pickle.PicklingError, match="(?i)can(no|')t pickle"):
        rl.save({"x": value}, tmp_path / "x.pt")
    assert not (tmp_path / "x.pt").exists()


def test_other_classes_are_refused_by_default():
    message = (
        r"Unsupported global: GLOBAL torch.nn.modules.linear.Linear was not an allowed global by default. Please use "
        r"`torch.serialization.add_safe_globals\(\[Linear\]\)`"
    )
    with pytest.raises(UnpicklingError, match=message):
        rl.load(written(rl, rl.nn.Linear(1, 1)))
    with pytest.raises(UnpicklingError, match="Weights only load failed"):
        rl.load(written(rl, Plain()))


def test_the_user_vouches_for_classes():
    try:
        add_safe_globals([Record])
        assert rl.load(written(rl, Record(3, rl.ones(1)))) == Record(3, rl.ones(1)) and Record in get_safe_globals()
        with safe_globals([Plain]):
            assert rl.load(written(rl, Plain(4))).value == 4 and {Plain, Record} <= set(get_safe_globals())
        with pytest.raises(UnpicklingError):
            rl.load(written(rl, Plain()))
        with safe_globals([rl.nn.Linear]):
            assert isinstance(rl.load(written(rl, rl.nn.Linear(1, 1))), rl.nn.Linear)
    finally:
        clear_safe_globals()
    assert get_safe_globals() == []
    with pytest.raises(TypeError, match="add_safe_globals takes classes"):
        add_safe_globals([3])


def test_an_object_of_no_class():
    """A pickle that makes an object of what is no trusted class runs nothing."""
    file = written(rl, Plain())
    with safe_globals([function]), pytest.raises(UnpicklingError):
        rl.load(file)


def test_other_arguments_of_torch():
    file = written(rl, Record(1), pickle_protocol=2)
    assert rl.load(file, pickle_module=pickle, encoding="utf-8") == Record(1)
    with pytest.raises(RuntimeError, match="explicit pickle_module"):
        rl.load(file, pickle_module=pickle, weights_only=True)
    with pytest.warns(UserWarning, match="pickle_protocol changes nothing"):
        written(rl, 1, pickle_protocol=4)
