"""Hooks on all modules, the former backward hooks, and what else a Module can do: compile, copies, empty tensors."""

from __future__ import annotations

import copy
import pickle

import pytest

import rushlight as torch
from rushlight import nn
from rushlight.nn.modules import module as module_file


@pytest.fixture
def model():
    return nn.Sequential(nn.Linear(2, 3), nn.ReLU())


def test_forward_hooks_on_all_modules_run_until_removed(model):
    log = []
    handles = [
        module_file.register_module_forward_pre_hook(lambda module, args: log.append(("before", module._get_name()))),
        module_file.register_module_forward_hook(lambda module, args, output: log.append(("after", module._get_name()))),
    ]
    model(torch.ones(1, 2))
    assert log == [("before", "Sequential"), ("before", "Linear"), ("after", "Linear"), ("before", "ReLU"),
                   ("after", "ReLU"), ("after", "Sequential")]  # fmt: skip
    for handle in handles:
        handle.remove()
    model(torch.ones(1, 2))
    assert len(log) == 6


def test_forward_hook_on_all_modules_may_change_the_output(model):
    with module_file.register_module_forward_hook(lambda module, args, kwargs, output: output + 1, with_kwargs=True):
        assert nn.Identity()(input=torch.zeros(1)).tolist() == [1.0]


def test_always_called_hook_runs_after_an_error():
    log = []
    with module_file.register_module_forward_hook(lambda *args: log.append(args[-1]), always_call=True):
        with pytest.raises(RuntimeError):
            nn.Linear(2, 2)(torch.ones(1, 3))
    assert log == [None]


def test_backward_hooks_on_all_modules(model):
    log = []
    handles = [
        module_file.register_module_full_backward_pre_hook(lambda module, grads: log.append(f"to {module._get_name()}")),
        module_file.register_module_full_backward_hook(lambda module, *grads: log.append(f"from {module._get_name()}")),
    ]
    model(torch.ones(1, 2, requires_grad=True)).sum().backward()
    for handle in handles:
        handle.remove()
    assert log == ["to Sequential", "to ReLU", "from ReLU", "to Linear", "from Linear", "from Sequential"]


def test_registration_hooks_see_names_and_may_replace_values():
    log = []
    handles = [
        module_file.register_module_parameter_registration_hook(lambda module, name, value: log.append(name)),
        module_file.register_module_buffer_registration_hook(lambda module, name, value: log.append(name)),
        module_file.register_module_module_registration_hook(lambda module, name, value: nn.Identity()),
    ]
    outer = nn.Module()
    outer.norm = nn.BatchNorm1d(2)
    for handle in handles:
        handle.remove()
    assert log == ["weight", "bias", "running_mean", "running_var", "num_batches_tracked"]
    assert isinstance(outer.norm, nn.Identity)


def test_former_backward_hooks_see_the_last_operation_and_exclude_full_ones():
    layer, seen = nn.Linear(2, 3), []
    handle = layer.register_backward_hook(lambda module, grad_input, grad_output: seen.append(grad_output[0].shape))
    with pytest.raises(RuntimeError, match="Cannot use both regular backward hooks and full backward hooks"):
        layer.register_full_backward_hook(lambda *args: None)
    layer(torch.ones(4, 2)).sum().backward()
    assert seen == [(4, 3)]
    handle.remove()
    layer.register_full_backward_hook(lambda *args: None)


def test_compile_in_place_is_left_out_of_copies(model):
    model.compile(backend="eager")
    with torch.no_grad():
        assert model(torch.ones(1, 2)).shape == (1, 3)
    for twin in (copy.deepcopy(model), pickle.loads(pickle.dumps(model))):
        assert "forward" in model.__dict__ and "forward" not in twin.__dict__


def test_to_empty_gives_tensors_of_a_meta_module():
    layer = nn.Linear(2, 3, device="meta").to_empty(device="cpu")
    assert layer.weight.device.type == "cpu" and layer.weight.shape == (3, 2)


@pytest.mark.parametrize(
    ("action", "error", "text"),
    [
        (lambda: nn.Module(3), TypeError, "takes 1 positional argument but 2 were given"),
        (lambda: nn.Module(size=3), TypeError, "unexpected keyword argument 'size'"),
        (lambda: nn.Linear(1, 1).cuda(), AssertionError, "not compiled with CUDA"),
        (lambda: nn.Linear(1, 1).set_submodule("a", nn.ReLU(), strict=True), AttributeError, "has no attribute `a`"),
        (lambda: nn.Linear(1, 1).set_submodule("a", 3), ValueError, "is not an nn.Module"),
    ],
)
def test_errors(action, error, text):
    with pytest.raises(error, match=text):
        action()


def test_a_state_of_an_earlier_version_gets_the_later_dicts():
    layer = nn.Linear(1, 1)
    state = layer.__getstate__()
    del state["_state_dict_pre_hooks"]
    made = nn.Linear.__new__(nn.Linear)
    made.__setstate__(state)
    assert made.state_dict().keys() == layer.state_dict().keys()


def test_call_super_init_passes_arguments_on():
    class Named:
        def __init__(self, name):
            self.name = name

    class Both(nn.Module, Named):
        call_super_init = True

    assert Both(name="both").name == "both"
