"""Size, device, layouts, dispatch keys: values that are passed around."""

from __future__ import annotations

import copy
import pickle

import rushlight as rl
from rushlight.core.dispatch_key import DispatchKey, DispatchKeySet


def test_size_is_a_tuple_that_stays_a_size():
    size = rl.Size([2, 3, 4])
    assert size == (2, 3, 4) and size.numel() == 24
    assert repr(size) == "torch.Size([2, 3, 4])"
    for made in (size[1:], size + (5,), (1,) + size, [1] + list(size) and size * 2, pickle.loads(pickle.dumps(size))):
        assert isinstance(made, rl.Size)
    assert size[0] == 2 and not isinstance(size[0], rl.Size)


def test_device_parses_its_forms():
    assert rl.device("cpu") == rl.device("cpu")
    assert rl.device("cpu:0") == rl.device("cpu", 0) != rl.device("cpu")
    assert str(rl.device("cpu:0")) == "cpu:0" and repr(rl.device("meta")) == "device(type='meta')"
    assert {rl.device("cpu"): 1}[copy.deepcopy(rl.device("cpu"))] == 1
    assert pickle.loads(pickle.dumps(rl.device("cpu", 0))).index == 0


def test_layouts_survive_pickling():
    for value in (rl.strided, rl.contiguous_format, rl.channels_last, rl.preserve_format):
        assert pickle.loads(pickle.dumps(value)) is value
    assert repr(rl.channels_last) == "torch.channels_last"


def test_key_sets_have_set_algebra():
    cpu, grad = DispatchKeySet(DispatchKey.CPU), DispatchKeySet(DispatchKey.Autograd)
    both = cpu | grad
    assert both.highest() is DispatchKey.Autograd
    assert list(both) == [DispatchKey.Autograd, DispatchKey.CPU]
    assert both - grad == cpu and both & grad == grad and both.remove(DispatchKey.CPU) == grad
    assert DispatchKey.CPU in both and not cpu.has(DispatchKey.Autograd)
    assert cpu.add(DispatchKey.Autograd) == both and hash(cpu.add(DispatchKey.Autograd)) == hash(both)
    assert DispatchKeySet().highest() is DispatchKey.Undefined and list(DispatchKeySet()) == []
    assert int(both) == int(cpu) | int(grad)
    assert repr(both) == "DispatchKeySet(Autograd, CPU)"
    assert DispatchKeySet((DispatchKey.CPU, DispatchKey.CPU)) == cpu
