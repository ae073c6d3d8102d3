"""Module: registering, attributes, listing, modes, conversions, printing, copying."""

from __future__ import annotations

import copy
import pickle

import pytest

import rushlight as torch
from rushlight.nn.modules.container import ModuleList, Sequential
from rushlight.nn.modules.module import Module
from rushlight.nn.parameter import Buffer, Parameter


class Affine(Module):
    """Scales and shifts elementwise."""

    def __init__(self, size: int = 2) -> None:
        super().__init__()
        self.size = size
        self.weight = Parameter(torch.ones(size))
        self.register_parameter("bias", None)

    def forward(self, x):
        return x * self.weight

    def extra_repr(self) -> str:
        return f"size={self.size}"


class Model(Module):
    def __init__(self) -> None:
        super().__init__()
        self.first = Affine()
        self.second = Affine(3)
        self.scale = Parameter(torch.zeros(1))
        self.register_buffer("steps", torch.zeros(1, dtype=torch.int64))
        self.register_buffer("cache", torch.zeros(2), persistent=False)


def error_of(action) -> tuple[type, str]:
    with pytest.raises(Exception) as caught:
        action()
    return caught.type, str(caught.value.args[0])


def test_parameters_are_registered_in_order():
    model = Model()
    assert [name for name, _ in model.named_parameters()] == ["scale", "first.weight", "second.weight"]
    assert [name for name, _ in model.named_buffers("m")] == ["m.steps", "m.cache"]
    assert [name for name, _ in model.named_modules()] == ["", "first", "second"]
    assert list(model.children()) == [model.first, model.second]
    assert len(list(model.parameters(recurse=False))) == 1


def test_shared_parts_are_listed_once_unless_asked():
    model = Model()
    model.third = model.first
    model.second.weight = model.first.weight
    assert [name for name, _ in model.named_parameters()] == ["scale", "first.weight"]
    names = [name for name, _ in model.named_parameters(remove_duplicate=False)]
    assert names == ["scale", "first.weight", "second.weight", "third.weight"]
    assert [name for name, _ in model.named_modules(remove_duplicate=False)] == ["", "first", "second", "third"]
    assert [name for name, _ in model.named_children()] == ["first", "second"]


def test_assignment_moves_a_name_between_kinds():
    model = Model()
    model.plain = 3
    model.plain = Parameter(torch.ones(1))
    assert "plain" in model._parameters and "plain" not in model.__dict__
    model.plain = Affine()
    assert "plain" in model._modules and "plain" not in model._parameters
    model.plain = None
    assert model.plain is None and "plain" in model._modules
    model.steps = torch.ones(1)
    assert model._buffers["steps"] is model.steps
    model.extra = Buffer(torch.ones(1), persistent=False)
    assert "extra" in model._buffers and "extra" in model._non_persistent_buffers_set
    del model.extra, model.scale
    assert not hasattr(model, "extra") and "extra" not in model._non_persistent_buffers_set


@pytest.mark.parametrize(
    ("action", "kind", "message"),
    [
        (lambda m: m.nowhere, AttributeError, "'Model' object has no attribute 'nowhere'"),
        (lambda m: delattr(m, "nowhere"), AttributeError, "nowhere"),
        (lambda m: setattr(m, "scale", torch.ones(1)), TypeError, "cannot assign 'torch.FloatTensor' as parameter 'scale'"),
        (lambda m: setattr(m, "steps", 3), TypeError, "cannot assign 'int' as buffer 'steps'"),
        (lambda m: setattr(m, "first", 3), TypeError, "cannot assign 'int' as child module 'first'"),
        (lambda m: m.register_parameter("a.b", None), KeyError, 'parameter name can\'t contain "."'),
        (lambda m: m.register_parameter("", None), KeyError, "empty string"),
        (lambda m: m.register_parameter(3, None), TypeError, "parameter name should be a string. Got int"),
        (lambda m: m.register_parameter("forward", None), KeyError, "attribute 'forward' already exists"),
        (lambda m: m.register_parameter("w", torch.ones(1)), TypeError, "cannot assign 'torch.FloatTensor' object to parameter"),
        (lambda m: m.register_buffer("b", 3), TypeError, "cannot assign 'int' object to buffer 'b'"),
        (lambda m: m.add_module("m", 3), TypeError, "int is not a Module subclass"),
        (lambda m: m.add_module("scale", Affine()), KeyError, "attribute 'scale' already exists"),
        (lambda m: m.get_submodule("first.x"), AttributeError, "Affine has no attribute `x`"),
        (lambda m: m.get_submodule("scale"), AttributeError, "`scale` is not an nn.Module"),
        (lambda m: m.get_parameter("steps"), AttributeError, "`steps` is not an nn.Parameter"),
        (lambda m: m.get_parameter("first.q"), AttributeError, "Affine has no attribute `q`"),
        (lambda m: m.get_buffer("scale"), AttributeError, "`scale` is not a buffer"),
        (lambda m: m(3), NotImplementedError, 'Module [Model] is missing the required "forward" function'),
        (lambda m: m.train(3), ValueError, "training mode is expected to be boolean"),
        (lambda m: m.to(torch.int32), TypeError, "only accepts floating point or complex dtypes"),
        (lambda m: m.to(3.5), TypeError, "to() received an argument of type float"),
        (lambda m: m.to(colour="red"), TypeError, "unexpected keyword argument 'colour'"),
        (lambda m: Parameter(3), TypeError, "Parameter needs a Tensor, got int"),
        (lambda m: Parameter(torch.ones(1, dtype=torch.int64)), RuntimeError, "Only Tensors of floating point"),
    ],
)
def test_errors(action, kind, message):
    found_kind, found = error_of(lambda: action(Model()))
    assert found_kind is kind and message in found


def test_before_init():
    class Early(Module):
        def __init__(self, value) -> None:
            self.part = value

    parameter, buffer = Parameter(torch.ones(1)), Buffer(torch.ones(1))
    for value, kind in ((parameter, "parameters"), (Affine(), "module"), (buffer, "buffer")):
        with pytest.raises(AttributeError, match=rf"cannot assign {kind} before Module.__init__\(\) call"):
            Early(value)
    assert Early(3).part == 3


def test_lookup_by_path():
    model = Model()
    assert model.get_submodule("") is model and model.get_submodule("first") is model.first
    assert model.get_parameter("second.weight") is model.second.weight
    assert model.get_buffer("steps") is model.steps
    model.set_submodule("first", Affine(5))
    assert model.first.size == 5
    with pytest.raises(ValueError, match="without a target name"):
        model.set_submodule("", Affine())


def test_modes_and_flags():
    model = Model()
    assert model.training and model.eval() is model
    assert not model.first.training and model.train().second.training
    model.requires_grad_(False)
    assert not any(parameter.requires_grad for parameter in model.parameters())
    seen = []
    model.apply(lambda module: seen.append(type(module).__name__))
    assert seen == ["Affine", "Affine", "Model"]


def test_zero_grad():
    model = Affine()
    model.weight.grad = torch.ones(2)
    model.zero_grad(set_to_none=False)
    assert model.weight.grad.tolist() == [0, 0]
    model.zero_grad()
    assert model.weight.grad is None


def test_conversions_keep_parameters_and_integers():
    model = Model()
    weight = model.first.weight
    weight.grad = torch.ones(2)
    assert model.double() is model and model.first.weight is weight
    assert weight.dtype is torch.float64 and weight.grad.dtype is torch.float64
    assert model.cache.dtype is torch.float64 and model.steps.dtype is torch.int64
    assert model.half().scale.dtype is torch.float16 and model.bfloat16().scale.dtype is torch.bfloat16
    assert model.float().scale.dtype is torch.float32
    assert model.to("cpu", torch.float64).scale.dtype is torch.float64
    assert model.to(torch.ones(1)).scale.dtype is torch.float32
    assert model.to(device="cpu", non_blocking=True).cpu().scale.requires_grad
    assert isinstance(model.first.weight, Parameter) and weight.is_leaf


def test_printed_form():
    assert repr(Affine()) == "Affine(size=2)"
    assert repr(Module()) == "Module()"
    assert repr(Model()) == "Model(\n  (first): Affine(size=2)\n  (second): Affine(size=3)\n)"
    assert repr(Sequential(Model())) == (
        "Sequential(\n  (0): Model(\n    (first): Affine(size=2)\n    (second): Affine(size=3)\n  )\n)"
    )
    listed = ModuleList([Affine(), Affine(), Affine(3)])
    assert repr(listed) == "ModuleList(\n  (0-1): 2 x Affine(size=2)\n  (2): Affine(size=3)\n)"
    assert repr(Parameter(torch.ones(1))).startswith("Parameter containing:\ntensor([1.]")


def test_dir_names_parts():
    assert {"first", "scale", "steps", "forward"} <= set(dir(Model()))


def test_copies():
    model = Model()
    model.third = model.first
    model.first.register_forward_pre_hook(print)
    twin = copy.deepcopy(model)
    assert twin.third is twin.first is not model.first
    assert isinstance(twin.scale, Parameter) and twin.scale is not model.scale
    with torch.no_grad():
        twin.first.weight.add_(1)
    assert model.first.weight.tolist() == [1, 1] and twin.first.weight.tolist() == [2, 2]
    assert list(twin.first._forward_pre_hooks.values()) == [print]


def test_pickle():
    twin = pickle.loads(pickle.dumps(Model()))
    assert repr(twin) == repr(Model())
    assert twin.first.weight.tolist() == [1, 1] and twin.scale.requires_grad
    assert [name for name, _ in twin.named_buffers()] == ["steps", "cache"]


def test_parameter_shares_memory_and_is_a_leaf():
    data = torch.ones(2)
    parameter = Parameter(data)
    assert parameter.data_ptr() == data.data_ptr() and parameter.is_leaf and parameter.requires_grad
    assert not data.requires_grad and not Parameter(data, requires_grad=False).requires_grad
    assert type(parameter * 2) is torch.Tensor
    assert Parameter().shape == (0,)
    made = Parameter((parameter * 2), requires_grad=True)
    assert made.is_leaf


@pytest.mark.oracle
def test_same_as_torch():
    reference = pytest.importorskip("torch")

    def build(lib, base, parameter, sequence, listing):
        class Part(base):
            def __init__(self, size) -> None:
                super().__init__()
                self.weight = parameter(lib.ones(size, 3))

        model = sequence(Part(1), sequence(Part(2), Part(2)))
        model.parts = listing([Part(1), Part(1), Part(2)])
        model.register_buffer("steps", lib.zeros(1), persistent=False)
        return model

    ours = build(torch, Module, Parameter, Sequential, ModuleList)
    nn = reference.nn
    theirs = build(reference, nn.Module, nn.Parameter, nn.Sequential, nn.ModuleList)
    assert repr(ours) == repr(theirs)
    for listing in ("named_modules", "named_parameters", "named_buffers", "named_children"):
        assert [n for n, _ in getattr(ours, listing)()] == [n for n, _ in getattr(theirs, listing)()]
    assert list(ours.state_dict()) == list(theirs.state_dict())
    assert ours.state_dict()._metadata == theirs.state_dict()._metadata


def test_train_calls_what_children_override():
    class Frozen(Module):
        def train(self, mode=True):
            return super().train(False)

    model = Sequential(torch.nn.Linear(2, 2), Sequential(Frozen()))
    assert model.train() is model and model[0].training and model[1].training
    assert not model[1][0].training
