"""state_dict and load_state_dict: contents, faults, atomicity, hooks."""

from __future__ import annotations

from collections import OrderedDict

import pytest

import rushlight as torch
from rushlight.nn.modules.container import Sequential
from rushlight.nn.modules.module import Module
from rushlight.nn.parameter import Parameter


class Part(Module):
    _version = 2

    def __init__(self, value: float = 0.0, size: int = 2) -> None:
        super().__init__()
        self.weight = Parameter(torch.full((size,), float(value)))
        self.register_parameter("bias", None)
        self.register_buffer("steps", torch.full((1,), float(value)))
        self.register_buffer("cache", torch.ones(1), persistent=False)


class WithExtra(Part):
    def __init__(self) -> None:
        super().__init__()
        self.extra = "new"

    def get_extra_state(self):
        return self.extra

    def set_extra_state(self, state) -> None:
        self.extra = state


def values(module: Module) -> list[float]:
    return [tensor.tolist()[0] for tensor in module.state_dict().values()]


def test_state_dict():
    model = Sequential(Part(1), Part(2))
    state = model.state_dict()
    assert list(state) == ["0.weight", "0.steps", "1.weight", "1.steps"]
    assert state._metadata == {"": {"version": 1}, "0": {"version": 2}, "1": {"version": 2}}
    assert not state["0.weight"].requires_grad and state["0.weight"].data_ptr() == model[0].weight.data_ptr()
    assert model.state_dict(keep_vars=True)["0.weight"] is model[0].weight
    into = OrderedDict(a=1)
    assert model[0].state_dict(destination=into, prefix="p.") is into and list(into) == ["a", "p.weight", "p.steps"]


def test_load_copies_in_place():
    model, source = Sequential(Part(1), Part(2)), Sequential(Part(3), Part(4))
    weight, version = model[0].weight, model[0].weight._version
    result = model.load_state_dict(source.state_dict())
    assert str(result) == "<All keys matched successfully>" and result.missing_keys == []
    assert model[0].weight is weight and weight._version == version + 1
    assert values(model) == [3, 3, 4, 4] and weight.requires_grad and weight.is_leaf


def test_load_converts_dtype():
    model = Part(1)
    model.load_state_dict({"weight": torch.full((2,), 5, dtype=torch.int64), "steps": torch.ones(1).double()})
    assert model.weight.dtype is torch.float32 and values(model) == [5, 1]


def test_faults_are_listed_together_and_nothing_is_changed():
    model = Sequential(Part(1), Part(2))
    bad = {"0.weight": torch.ones(3), "0.steps": torch.zeros(1), "1.weight": 3, "other": torch.ones(1), "0.x": 1}
    with pytest.raises(RuntimeError) as caught:
        model.load_state_dict(bad)
    assert str(caught.value) == (
        "Error(s) in loading state_dict for Sequential:\n"
        '\tMissing key(s) in state_dict: "1.steps". \n'
        '\tUnexpected key(s) in state_dict: "other", "0.x". \n'
        "\tsize mismatch for 0.weight: copying a param with shape torch.Size([3]) from checkpoint, the shape in "
        "current model is torch.Size([2]).\n"
        '\tWhile copying the parameter named "1.weight", expected torch.Tensor or Tensor-like object from checkpoint '
        "but received <class 'int'>"
    )
    assert values(model) == [1, 1, 2, 2]
    with pytest.raises(RuntimeError, match="size mismatch for 0.weight"):
        model.load_state_dict(bad, strict=False)
    assert values(model) == [1, 1, 2, 2]
    with pytest.raises(TypeError, match="Expected state_dict to be dict-like, got <class 'int'>"):
        model.load_state_dict(3)


def test_not_strict():
    model = Sequential(Part(1), Part(2))
    result = model.load_state_dict({"0.weight": torch.zeros(2), "more": torch.ones(1)}, strict=False)
    assert result.missing_keys == ["0.steps", "1.weight", "1.steps"] and result.unexpected_keys == ["more"]
    assert repr(result).startswith("_IncompatibleKeys(missing_keys=['0.steps',")
    assert values(model) == [0, 1, 2, 2]


def test_one_element_for_a_zero_dim_tensor():
    model = Module()
    model.register_buffer("count", torch.tensor(0.0))
    model.load_state_dict({"count": torch.ones(1)})
    assert model.count.item() == 1 and model.count.dim() == 0


def test_assign():
    model, given = Part(1), {"weight": torch.zeros(2).double(), "steps": torch.zeros(1)}
    model.weight.requires_grad_(False)
    model.load_state_dict(given, assign=True)
    assert isinstance(model.weight, Parameter) and not model.weight.requires_grad
    assert model.weight.dtype is torch.float64 and model.weight.data_ptr() == given["weight"].data_ptr()
    assert model.steps is given["steps"]
    model.weight.requires_grad_(True)
    with pytest.raises(RuntimeError, match='cannot assign "weight": the parameter requires grad'):
        model.load_state_dict({**given, "weight": torch.zeros(2, dtype=torch.int64)}, assign=True)
    assert model.weight.dtype is torch.float64


def test_extra_state():
    model = Sequential(WithExtra())
    state = model.state_dict()
    assert state["0._extra_state"] == "new"
    state["0._extra_state"] = "loaded"
    with pytest.raises(RuntimeError, match="Unexpected key"):
        model.load_state_dict({**state, "more": 1})
    assert model[0].extra == "new"
    model.load_state_dict(state)
    assert model[0].extra == "loaded"
    del state["0._extra_state"]
    with pytest.raises(RuntimeError, match='Missing key.*"0._extra_state"'):
        model.load_state_dict(state)
    with pytest.raises(RuntimeError, match="Unexpected key"):
        Sequential(Part()).load_state_dict({**Sequential(Part()).state_dict(), "0._extra_state": 1})


def test_override_of_load_from_state_dict():
    seen = []

    class Renamed(Part):
        def _load_from_state_dict(self, state_dict, prefix, local_metadata, *rest):
            seen.append((prefix, local_metadata.get("version"), rest[0]))
            if prefix + "old" in state_dict:
                state_dict[prefix + "weight"] = state_dict.pop(prefix + "old")
            super()._load_from_state_dict(state_dict, prefix, local_metadata, *rest)

    model = Sequential(Renamed(1))
    state = model.state_dict()
    state["0.old"] = state.pop("0.weight") + 4
    model.load_state_dict(state)
    assert values(model) == [5, 1] and seen == [("0.", 2, True)] and "0.old" in state


def test_direct_call_loads_at_once():
    model, missing, unexpected, errors = Part(1), [], [], []
    model._load_from_state_dict({"p.weight": torch.zeros(2), "p.q": 1}, "p.", {}, True, missing, unexpected, errors)
    assert (missing, unexpected, errors) == (["p.steps"], ["p.q"], []) and values(model) == [0, 1]


def test_hooks():
    model, calls = Sequential(Part(1)), []
    part = model[0]
    part.register_state_dict_pre_hook(lambda module, prefix, keep: calls.append((module is part, prefix, keep)))
    handle = part.register_state_dict_post_hook(lambda module, state, prefix, meta: state.update({prefix + "z": 1}))
    part.register_load_state_dict_pre_hook(lambda module, state, prefix, *rest: state.pop(prefix + "z", None))
    state = model.state_dict()
    assert calls == [(True, "0.", False)] and "0.z" in state
    assert model.load_state_dict(state).unexpected_keys == []
    handle.remove()
    assert "0.z" not in model.state_dict()


def test_post_hooks_may_forgive_keys():
    model = Part(1)
    model.register_load_state_dict_post_hook(lambda module, keys: keys.missing_keys.clear())
    model.load_state_dict({"weight": torch.zeros(2)})
    assert values(model) == [0, 1]


def test_values_are_put_back_when_post_hooks_forgive_nothing():
    model, seen = Part(1), []
    model.register_load_state_dict_post_hook(lambda module, keys: seen.append(module.weight.tolist()))
    with pytest.raises(RuntimeError, match='Missing key.*"steps"'):
        model.load_state_dict({"weight": torch.zeros(2)})
    assert seen == [[0, 0]] and values(model) == [1, 1]
    with pytest.raises(RuntimeError, match="size mismatch"):
        model.load_state_dict({"weight": torch.zeros(3), "steps": torch.zeros(1)})
    assert len(seen) == 1


@pytest.mark.oracle
def test_same_error_as_torch():
    reference = pytest.importorskip("torch")

    def error_of(lib, base, parameter):
        class Layer(base):
            def __init__(self) -> None:
                super().__init__()
                self.w = parameter(lib.ones(2))
                self.v = parameter(lib.ones(2))

        model = Layer()
        model.part = Layer()
        with pytest.raises(RuntimeError) as caught:
            model.load_state_dict({"w": lib.ones(3), "part.w": 3, "part.q": lib.ones(1), "z.a": lib.ones(1)})
        return str(caught.value)

    assert error_of(torch, Module, Parameter) == error_of(reference, reference.nn.Module, reference.nn.Parameter)
