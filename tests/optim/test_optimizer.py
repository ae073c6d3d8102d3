"""The Optimizer base: groups, gradients, hooks, state dicts, errors and text."""

from __future__ import annotations

import io
import pickle
import warnings

import numpy as np
import pytest

import rushlight as torch
from rushlight.nn.parameter import Parameter
from rushlight.optim import SGD, Adam, AdamW, Optimizer
from rushlight.serialization import load, save


def parameter(*values: float) -> Parameter:
    return Parameter(torch.tensor(values or (1.0, 2.0)))


def with_gradient(*values: float) -> Parameter:
    made = parameter(*values)
    made.grad = torch.ones_like(made.detach())
    return made


def test_minimizes_a_quadratic():
    for kind, options in [(SGD, {"lr": 0.1}), (Adam, {"lr": 0.3}), (AdamW, {"lr": 0.3, "weight_decay": 0.0})]:
        weight = parameter(5.0, -3.0)
        optimizer = kind([weight], **options)
        for _ in range(150):
            optimizer.zero_grad()
            ((weight - torch.tensor([1.0, 2.0])) ** 2).sum().backward()
            optimizer.step()
        assert np.allclose(weight.detach().numpy(), [1, 2], atol=0.02), kind


def test_sgd_by_hand():
    weight = with_gradient(1.0)
    optimizer = SGD([weight], lr=0.5, momentum=0.9, weight_decay=0.1)
    optimizer.step()
    assert weight.item() == pytest.approx(1 - 0.5 * 1.1)
    optimizer.step()
    velocity = 0.9 * 1.1 + (1 + 0.1 * 0.45)
    assert weight.item() == pytest.approx(0.45 - 0.5 * velocity)


def test_adam_by_hand():
    weight = with_gradient(1.0)
    optimizer = Adam([weight], lr=0.1)
    optimizer.step()
    assert weight.item() == pytest.approx(0.9)
    state = optimizer.state[weight]
    assert (state["step"].item(), state["exp_avg"].item()) == (1.0, pytest.approx(0.1))
    assert state["exp_avg_sq"].item() == pytest.approx(0.001)


def test_parameters_without_gradient_stay():
    first, second = with_gradient(1.0), parameter(1.0)
    optimizer = Adam([first, second])
    optimizer.step()
    assert second.item() == 1.0
    assert second not in optimizer.state


def test_steps_are_not_recorded_and_closures_are():
    weight = parameter(2.0)
    optimizer = SGD([weight], lr=0.1)

    def closure():
        optimizer.zero_grad()
        loss = (weight * weight).sum()
        loss.backward()
        return loss

    loss = optimizer.step(closure)
    assert loss.item() == 4.0
    assert weight.item() == pytest.approx(1.6)
    assert weight.is_leaf and weight.requires_grad


def test_an_in_place_step_counts_as_a_new_version():
    weight = with_gradient(1.0)
    before = weight._version
    SGD([weight], lr=0.1).step()
    assert weight._version > before


def test_zero_grad():
    weight = with_gradient(1.0)
    optimizer = SGD([weight], lr=0.1)
    optimizer.zero_grad(set_to_none=False)
    assert weight.grad.tolist() == [0.0]
    optimizer.zero_grad()
    assert weight.grad is None


def test_groups_have_their_own_options():
    first, second = with_gradient(1.0), with_gradient(1.0)
    optimizer = SGD([{"params": first, "lr": 0.5}, {"params": [second]}], lr=0.25)
    optimizer.step()
    assert (first.item(), second.item()) == (0.5, 0.75)
    third = with_gradient(1.0)
    optimizer.add_param_group({"params": third, "momentum": 0.9})
    assert [group["momentum"] for group in optimizer.param_groups] == [0, 0, 0.9]


def test_named_parameters():
    first, second = with_gradient(1.0), with_gradient(1.0)
    optimizer = SGD([("a", first), ("b", second)], lr=0.5)
    optimizer.step()
    assert first.item() == 0.5
    assert optimizer.state_dict()["param_groups"][0]["param_names"] == ["a", "b"]
    with pytest.raises(ValueError, match="with/without names"):
        SGD([("a", first), second], lr=0.5)
    with pytest.raises(ValueError, match="with/without names"):
        optimizer.add_param_group({"params": [parameter()]})


def test_tensor_learning_rates():
    weight = with_gradient(1.0)
    optimizer = SGD([weight], lr=torch.tensor(0.5))
    optimizer.step()
    assert weight.item() == 0.5


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: SGD(parameter()), TypeError, "iterable of Tensors or dicts, but got torch.FloatTensor"),
        (lambda: SGD([]), ValueError, "empty parameter list"),
        (lambda: SGD([1]), TypeError, "can only optimize Tensors, but one of the params is int"),
        (lambda: SGD([parameter() * 2]), ValueError, "can't optimize a non-leaf Tensor"),
        (lambda: SGD([{"params": {parameter()}}]), TypeError, "use a list instead"),
        (lambda: SGD([parameter()]).add_param_group([1]), TypeError, "must be a dict"),
        (lambda: SGD([parameter()], lr=-1), ValueError, "Invalid learning rate: -1"),
        (lambda: SGD([parameter()], lr=float("nan")), ValueError, "Invalid learning rate: nan"),
        (lambda: SGD([parameter()], momentum=-1), ValueError, "Invalid momentum value: -1"),
        (lambda: SGD([parameter()], weight_decay=-1), ValueError, "Invalid weight_decay value: -1"),
        (lambda: SGD([parameter()], nesterov=True), ValueError, "Nesterov momentum requires"),
        (lambda: Adam([parameter()], betas=(0.9, 1.0)), ValueError, "Invalid beta parameter at index 1: 1.0"),
        (lambda: Adam([parameter()], eps=-1), ValueError, "Invalid epsilon value: -1"),
        (lambda: AdamW([with_gradient()], capturable=True).step(), AssertionError, "capturable=True"),
        (lambda: SGD([parameter()], differentiable=True, fused=True), RuntimeError, "`fused` does not support"),
        (lambda: Optimizer([parameter()], {}).step(), NotImplementedError, "does not define step"),
    ],
)
def test_errors(make, error, message):
    with pytest.raises(error, match=message):
        make()


def test_one_parameter_twice():
    weight = parameter()
    with pytest.raises(ValueError, match="more than one parameter group"):
        SGD([{"params": weight}, {"params": weight}])
    with pytest.warns(UserWarning, match="duplicate parameters"):
        SGD([weight, weight])


def test_text():
    text = repr(SGD([{"params": parameter()}, {"params": parameter(), "lr": 0.5}], lr=0.1))
    assert text.startswith("SGD (\nParameter Group 0\n    dampening: 0\n    differentiable: False\n")
    assert "Parameter Group 1" in text and "    lr: 0.5\n" in text and "params" not in text


def trained(kind=Adam, **options) -> tuple[Optimizer, list[Parameter]]:
    weights = [with_gradient(1.0, 2.0), with_gradient(3.0)]
    optimizer = kind([{"params": weights[:1]}, {"params": weights[1:], "lr": 0.5}], lr=0.1, **options)
    for _ in range(3):
        optimizer.step()
    return optimizer, weights


def test_state_dicts_carry_on_where_they_stopped():
    optimizer, weights = trained(amsgrad=True)
    buffer = io.BytesIO()
    save({"optimizer": optimizer.state_dict(), "weights": weights}, buffer)
    buffer.seek(0)
    loaded = load(buffer)
    copies = loaded["weights"]
    other = Adam([{"params": copies[:1]}, {"params": copies[1:]}])
    other.load_state_dict(loaded["optimizer"])
    assert [group["lr"] for group in other.param_groups] == [0.1, 0.5]
    for weight, twin in zip(weights, copies, strict=True):
        twin.grad = weight.grad
    optimizer.step()
    other.step()
    assert all(a.tolist() == b.tolist() for a, b in zip(weights, copies, strict=True))


def test_state_dict_form():
    state = trained()[0].state_dict()
    assert list(state["state"]) == [0, 1]
    assert [group["params"] for group in state["param_groups"]] == [[0], [1]]
    assert set(state["state"][0]) == {"step", "exp_avg", "exp_avg_sq"}


def test_loading_copies_and_casts():
    optimizer, _ = trained()
    state = optimizer.state_dict()
    wide = [Parameter(torch.tensor(values, dtype=torch.float64)) for values in ([1.0, 2.0], [3.0])]
    other = Adam([{"params": wide[:1]}, {"params": wide[1:]}])
    other.load_state_dict(state)
    loaded = other.state[wide[0]]
    assert loaded["exp_avg"].dtype is torch.float64
    assert loaded["step"].dtype is torch.float32
    loaded["exp_avg"].zero_()
    assert state["state"][0]["exp_avg"].tolist() != [0.0, 0.0]


def test_a_state_dict_that_does_not_fit_changes_nothing():
    optimizer, _ = trained()
    before = optimizer.state_dict()
    one, three = SGD([parameter()]), SGD([{"params": [parameter(), parameter()]}, {"params": [parameter()]}])
    with pytest.raises(ValueError, match="different number of parameter groups"):
        optimizer.load_state_dict(one.state_dict())
    with pytest.raises(ValueError, match="doesn't match the size of optimizer's group"):
        optimizer.load_state_dict(three.state_dict())
    assert optimizer.state_dict()["param_groups"] == before["param_groups"]


def test_steps_counted_in_numbers_are_understood():
    optimizer, _ = trained()
    state = optimizer.state_dict()
    state["state"][0] = {**state["state"][0], "step": 3}
    optimizer.load_state_dict(state)
    assert optimizer.state_dict()["state"][0]["step"].item() == 3.0


def test_step_hooks():
    optimizer, weights = trained()
    calls = []
    first = optimizer.register_step_pre_hook(lambda opt, args, kwargs: calls.append("before"))
    optimizer.register_step_post_hook(lambda opt, args, kwargs: calls.append("after"))
    optimizer.step()
    first.remove()
    optimizer.step()
    assert calls == ["before", "after", "after"]
    optimizer.register_step_pre_hook(lambda opt, args, kwargs: ((lambda: 7,), {}))
    assert optimizer.step() == 7
    optimizer.register_step_pre_hook(lambda opt, args, kwargs: 5)
    with pytest.raises(RuntimeError, match="step pre-hook must return"):
        optimizer.step()


def test_state_hooks():
    optimizer, _ = trained()
    calls = []
    optimizer.register_state_dict_pre_hook(lambda opt: calls.append("state"))
    optimizer.register_state_dict_post_hook(lambda opt, state: {**state, "extra": 1})
    optimizer.register_state_dict_post_hook(lambda opt, state: calls.append(sorted(state)), prepend=True)
    state = optimizer.state_dict()
    assert state["extra"] == 1
    optimizer.register_load_state_dict_pre_hook(lambda opt, state: calls.append("load"))
    optimizer.register_load_state_dict_post_hook(lambda opt: calls.append("loaded"))
    optimizer.load_state_dict(state)
    assert calls == ["state", ["param_groups", "state"], "load", "loaded"]


def test_optimizers_of_users():
    class Sign(Optimizer):
        def __init__(self, params, lr=0.5):
            super().__init__(params, {"lr": lr})

        def step(self, closure=None):
            for group in self.param_groups:
                for weight in group["params"]:
                    weight.sub_(torch.sign(weight.grad), alpha=group["lr"])

    weight = with_gradient(1.0)
    Sign([weight]).step()
    assert weight.item() == 0.5


def test_pickling():
    optimizer, _ = trained(SGD, momentum=0.9)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        copied = pickle.loads(pickle.dumps(optimizer))
    assert repr(copied) == repr(optimizer)
    copied.step()
