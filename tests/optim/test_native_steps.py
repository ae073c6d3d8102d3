"""Steps of all parameters by one native call: they go as those that take parameters one by one, and leave what they cannot take."""

from __future__ import annotations

import copy

import numpy as np
import pytest

import rushlight as torch
from rushlight.optim import per_parameter
from tests.csrc.test_native_paths import native

CASES = [
    ("SGD", {"lr": 0.1}),
    ("SGD", {"lr": 0.1, "momentum": 0.9, "dampening": 0.3, "weight_decay": 0.1}),
    ("Adam", {"weight_decay": 0.1, "maximize": True}),
    ("AdamW", {"amsgrad": True}),
    ("RMSprop", {"weight_decay": 0.1}),
    ("RMSprop", {"momentum": 0.9, "centered": True}),
    ("Adagrad", {"lr_decay": 0.1, "maximize": True}),
    ("Adadelta", {"weight_decay": 0.1}),
    ("Adamax", {"weight_decay": 0.1}),
    ("NAdam", {"weight_decay": 0.1, "decoupled_weight_decay": True}),
    ("RAdam", {"weight_decay": 0.1, "maximize": True}),
    ("RAdam", {"betas": (0.5, 0.6)}),
    ("ASGD", {"t0": 2, "weight_decay": 0.1}),
    ("Rprop", {"step_sizes": (0.005, 0.02)}),
    ("Adafactor", {"weight_decay": 0.1}),
    ("Adafactor", {"eps": (1e-2, 1e-1), "d": 2.0, "maximize": True}),
]
IDS = [f"{kind}-{'-'.join(options) or 'defaults'}" for kind, options in CASES]
SHAPES = [(3, 4), (), (70, 130), (2, 3, 4, 5), (33,)]


def parameters_of(shapes, dtype=torch.float32):
    numbers = np.random.default_rng(5)
    return [torch.from_numpy(np.asarray(numbers.normal(size=shape))).to(dtype).requires_grad_() for shape in shapes]


def gradient_for(parameter, step):
    values = np.random.default_rng(step * 1000 + parameter.numel()).normal(size=parameter.shape)
    return torch.empty_like(parameter.detach()).copy_(torch.from_numpy(np.asarray(values)))


def train(optimizer, parameters, steps=5):
    for step in range(steps):
        for parameter in parameters:
            parameter.grad = gradient_for(parameter, step)
        optimizer.step()


def one_by_one(optimizer):
    """The same optimizer without its native form."""
    optimizer._native_step = lambda group: None
    return optimizer


def same(ours, theirs, dtype):
    tolerance = {torch.float64: 1e-12, torch.float32: 2e-5}[dtype]
    np.testing.assert_allclose(ours.detach().numpy(), theirs.detach().numpy(), rtol=tolerance, atol=tolerance)


@pytest.fixture
def left(monkeypatch):
    """What each native call left to others."""
    answers = []

    def watched(*arguments):
        answers.append(step(*arguments))
        return answers[-1]

    step = per_parameter.optimizer_step
    monkeypatch.setattr(per_parameter, "optimizer_step", watched)
    return answers


@native
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
@pytest.mark.parametrize(("kind", "options"), CASES, ids=IDS)
def test_one_call_takes_all_parameters(kind, options, dtype, left):
    ours, theirs = parameters_of(SHAPES, dtype), parameters_of(SHAPES, dtype)
    together = getattr(torch.optim, kind)(ours, **options)
    apart = one_by_one(getattr(torch.optim, kind)(theirs, **options))
    train(together, ours)
    train(apart, theirs)
    assert left == [[]] * 5
    for one, other in zip(ours, theirs, strict=True):
        same(one, other, dtype)
        assert together.state[one].keys() == apart.state[other].keys()
        for name, value in together.state[one].items():
            same(value, apart.state[other][name], dtype)
            assert value.shape == apart.state[other][name].shape


@native
def test_channels_last_parameters_are_taken(left):
    ours, theirs = parameters_of([(4, 3, 2, 2), (5,)]), parameters_of([(4, 3, 2, 2), (5,)])
    ours[0] = ours[0].detach().to(memory_format=torch.channels_last).requires_grad_()
    train(torch.optim.NAdam(ours), ours)
    train(torch.optim.NAdam(theirs), theirs)
    assert left == [[]] * 10 and ours[0].stride() != theirs[0].stride()
    for one, other in zip(ours, theirs, strict=True):
        same(one, other, torch.float32)


@native
@pytest.mark.parametrize("kind", ["Adam", "RMSprop", "Adamax", "Rprop", "ASGD"])
def test_what_it_cannot_take_goes_one_by_one(kind, left):
    dtypes = [torch.float32, torch.bfloat16, torch.complex64, torch.float64]
    ours = [parameters_of([(6,)])[0].detach().to(dtype).requires_grad_() for dtype in dtypes]
    theirs = [parameter.detach().clone().requires_grad_() for parameter in ours]
    together = getattr(torch.optim, kind)(ours, lr=0.05)
    train(together, ours)
    train(one_by_one(getattr(torch.optim, kind)(theirs, lr=0.05)), theirs)
    assert left == [[1, 2]] * 5
    for one, other in zip(ours, theirs, strict=True):
        assert torch.allclose(one, other, atol=1e-5) and together.state[one]["step"].item() == 5


@native
def test_sparse_gradients_go_one_by_one(left):
    table, weight = parameters_of([(4, 2), (3,)])
    optimizer = torch.optim.Adagrad([table, weight], lr=0.5)
    table.grad = torch.sparse_coo_tensor([[1]], torch.ones(1, 2), (4, 2))
    weight.grad, before = torch.ones(3), table.detach().clone()
    optimizer.step()
    assert left == [[]] and optimizer.state[weight]["sum"].tolist() == [1, 1, 1]
    assert (table - before).detach()[1].tolist() == pytest.approx([-0.5, -0.5]) and torch.equal(table[2:], before[2:])


@native
def test_parameters_that_share_memory_are_stepped_in_turn(left):
    whole = torch.ones(6)
    first, second = whole[:4].requires_grad_(), whole[2:].requires_grad_()
    first.grad, second.grad = torch.ones(4), torch.ones(4)
    torch.optim.SGD([first, second], lr=1.0, weight_decay=0.5).step()
    assert left == [[0, 1]] and whole.tolist() == [-0.5, -0.5, -1.25, -1.25, -0.5, -0.5]
    twice = torch.ones(2, requires_grad=True)
    twice.grad = torch.ones(2)
    with pytest.warns(UserWarning, match="duplicate parameters"):
        optimizer = torch.optim.NAdam([twice, twice])
    optimizer.step()
    assert left[1] == [0, 1] and optimizer.state[twice]["step"].item() == 2


@native
def test_many_threads_share_a_step():
    results = []
    before = torch.get_num_threads()
    try:
        for threads in (1, 4):
            torch.set_num_threads(threads)
            for kind in ("Adadelta", "Adafactor"):
                parameters = parameters_of([(300, 301), (7,), (2000, 33), (64, 1024)])
                train(getattr(torch.optim, kind)(parameters, lr=0.5), parameters, 2)
                results.append(parameters)
    finally:
        torch.set_num_threads(before)
    for one, four in zip(results[:2], results[2:], strict=True):
        assert all(torch.equal(a, b) for a, b in zip(one, four, strict=True))


@native
def test_options_that_change_between_steps(left):
    ours, theirs = parameters_of(SHAPES), parameters_of(SHAPES)
    optimizers = [torch.optim.NAdam(ours), one_by_one(torch.optim.NAdam(theirs))]
    for optimizer, parameters in zip(optimizers, (ours, theirs), strict=True):
        for rate, decay, betas in [(0.1, 0.0, (0.9, 0.999)), (0.01, 0.1, (0.5, 0.9)), (0.5, 0.0, (0.9, 0.99))]:
            optimizer.param_groups[0].update(lr=rate, weight_decay=decay, betas=betas)
            train(optimizer, parameters, 2)
    for one, other in zip(ours, theirs, strict=True):
        same(one, other, torch.float32)


@native
def test_a_state_that_an_option_lacks_is_an_error_as_in_eager():
    weight = parameters_of([(3,)])[0]
    optimizer = torch.optim.Adam([weight])
    train(optimizer, [weight], 1)
    optimizer.param_groups[0]["amsgrad"] = True
    with pytest.raises(KeyError, match="max_exp_avg_sq"):
        train(optimizer, [weight], 1)


@native
def test_a_copied_optimizer_goes_on_alone():
    weight = parameters_of([(3,)])[0]
    optimizer = torch.optim.ASGD([weight])
    train(optimizer, [weight], 2)
    state = copy.deepcopy(optimizer.state_dict())
    train(optimizer, [weight], 2)
    assert state["state"][0]["step"].item() == 2 and optimizer.state[weight]["step"].item() == 4


def test_capturable_steps_need_a_compiled_function():
    weight = parameters_of([(3,)])[0]
    optimizer = torch.optim.RMSprop([weight], capturable=True)
    with pytest.raises(AssertionError, match="capturable=True"):
        train(optimizer, [weight], 1)
    weight.grad = None
    optimizer.step()


def test_matrices_of_one_shape_are_made_orthogonal_together():
    shapes = [(3, 4), (4, 3), (3, 4), (3, 4), (5, 5), (4, 3)]
    ours, theirs = parameters_of(shapes), parameters_of(shapes)
    together, apart = torch.optim.Muon(ours, lr=0.1, nesterov=False), torch.optim.Muon(theirs, lr=0.1, nesterov=False)
    apart._update_together = lambda parameters, group: parameters
    train(together, ours)
    train(apart, theirs)
    for one, other in zip(ours, theirs, strict=True):
        assert torch.allclose(one, other, atol=2e-2)
        assert torch.equal(together.state[one]["momentum_buffer"], apart.state[other]["momentum_buffer"])


@pytest.mark.parametrize("kind", ["Adam", "ASGD"])
def test_a_state_of_inference_mode_stays_there(kind):
    weight = parameters_of([(3,)])[0]
    optimizer = getattr(torch.optim, kind)([weight])
    with torch.inference_mode():
        train(optimizer, [weight], 1)
    with pytest.raises(RuntimeError, match="Inplace update to inference tensor outside InferenceMode"):
        train(optimizer, [weight], 1)
