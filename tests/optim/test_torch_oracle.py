"""Trajectories of 20 steps, state dicts and schedules agree with PyTorch's."""

from __future__ import annotations

import io

import numpy as np
import pytest

import rushlight
from rushlight import optim
from rushlight.nn.parameter import Parameter
from rushlight.serialization import load, save

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.oracle

SHAPES = [(3, 4), (5,), ()]
CASES = [
    ("SGD", {"lr": 0.1}),
    ("SGD", {"lr": 0.1, "momentum": 0.9}),
    ("SGD", {"lr": 0.1, "momentum": 0.9, "nesterov": True, "weight_decay": 0.01}),
    ("SGD", {"lr": 0.1, "momentum": 0.5, "dampening": 0.3, "maximize": True}),
    ("Adam", {}),
    ("Adam", {"lr": 0.05, "betas": (0.8, 0.95), "eps": 1e-6, "weight_decay": 0.1}),
    ("Adam", {"amsgrad": True, "lr": 0.05}),
    ("Adam", {"maximize": True, "weight_decay": 0.1, "amsgrad": True}),
    ("Adam", {"betas": (0.4, 0.4), "lr": 0.05}),
    ("Adam", {"decoupled_weight_decay": True, "weight_decay": 0.1}),
    ("AdamW", {}),
    ("AdamW", {"lr": 0.05, "weight_decay": 0.3, "amsgrad": True}),
    ("RMSprop", {}),
    ("RMSprop", {"momentum": 0.9, "centered": True, "weight_decay": 0.1, "maximize": True}),
    ("Adagrad", {}),
    ("Adagrad", {"lr_decay": 0.1, "initial_accumulator_value": 0.1, "weight_decay": 0.1, "maximize": True}),
    ("Adadelta", {}),
    ("Adadelta", {"lr": 0.5, "rho": 0.5, "weight_decay": 0.1, "maximize": True}),
    ("Adamax", {}),
    ("Adamax", {"betas": (0.5, 0.8), "weight_decay": 0.1, "maximize": True}),
    ("NAdam", {}),
    ("NAdam", {"decoupled_weight_decay": True, "weight_decay": 0.1, "momentum_decay": 0.1}),
    ("RAdam", {}),
    ("RAdam", {"betas": (0.5, 0.8), "weight_decay": 0.1, "decoupled_weight_decay": True, "maximize": True}),
    ("ASGD", {"foreach": False}),
    ("ASGD", {"t0": 3, "lambd": 0.01, "weight_decay": 0.1, "maximize": True, "foreach": False}),
    ("Rprop", {}),
    ("Rprop", {"etas": (0.3, 1.5), "step_sizes": (1e-3, 0.1), "maximize": True}),
    ("Adafactor", {}),
    ("Adafactor", {"eps": (1e-3, 1e-2), "d": 2.0, "beta2_decay": -0.5, "weight_decay": 0.1, "maximize": True}),
]
IDS = [f"{kind}-{'-'.join(options) or 'defaults'}" for kind, options in CASES]


def pair(kind: str, options: dict, dtype: str = "float32"):
    """An optimizer and its parameters, of rushlight and of torch, from the same numbers."""
    arrays = [np.random.default_rng(n).normal(size=shape).astype(dtype) for n, shape in enumerate(SHAPES)]
    ours = [Parameter(rushlight.from_numpy(array.copy())) for array in arrays]
    theirs = [torch.nn.Parameter(torch.from_numpy(array.copy())) for array in arrays]
    return getattr(optim, kind)(ours, **options), ours, getattr(torch.optim, kind)(theirs, **options), theirs


def run(optimizer, weights, steps, library, first=0):
    """Steps on a bowl with noise, the same for both libraries."""
    for step in range(first, first + steps):
        for n, weight in enumerate(weights):
            noise = np.random.default_rng(100 * step + n).normal(size=SHAPES[n]).astype(str(weight.dtype)[6:])
            weight.grad = weight.detach() * 0.5 + library.from_numpy(np.asarray(noise))
        optimizer.step()


def close(ours, theirs, tolerance=2e-6):
    for a, b in zip(ours, theirs, strict=True):
        np.testing.assert_allclose(a.detach().numpy(), b.detach().numpy(), rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize(("dtype", "tolerance"), [("float32", 2e-6), ("float64", 1e-13)])
@pytest.mark.parametrize(("kind", "options"), CASES, ids=IDS)
def test_trajectories(kind, options, dtype, tolerance):
    optimizer, ours, reference, theirs = pair(kind, options, dtype)
    run(optimizer, ours, 20, rushlight)
    run(reference, theirs, 20, torch)
    close(ours, theirs, tolerance)


@pytest.mark.parametrize(("kind", "options"), CASES, ids=IDS)
def test_state_dicts_move_between_libraries(kind, options):
    optimizer, ours, reference, theirs = pair(kind, options)
    run(optimizer, ours, 5, rushlight)
    run(reference, theirs, 5, torch)
    ours_saved, theirs_saved = io.BytesIO(), io.BytesIO()
    save(optimizer.state_dict(), ours_saved)
    torch.save(reference.state_dict(), theirs_saved)
    ours_saved.seek(0)
    theirs_saved.seek(0)
    reference.load_state_dict(torch.load(ours_saved, weights_only=True))
    optimizer.load_state_dict(load(theirs_saved))
    run(optimizer, ours, 5, rushlight, 5)
    run(reference, theirs, 5, torch, 5)
    close(ours, theirs)


@pytest.mark.parametrize(("kind", "options"), CASES, ids=IDS)
def test_text_and_packed_groups(kind, options):
    optimizer, _, reference, _ = pair(kind, options)
    assert repr(optimizer) == repr(reference)
    ours, theirs = optimizer.state_dict(), reference.state_dict()
    assert ours["param_groups"] == theirs["param_groups"]
    assert {number: [*state] for number, state in ours["state"].items()} == {n: [*state] for n, state in theirs["state"].items()}


def test_training_a_network():
    inputs = np.random.default_rng(7).normal(size=(16, 4)).astype("float32")
    targets = np.random.default_rng(8).normal(size=(16, 1)).astype("float32")
    losses = {}
    for library, kinds in ((rushlight, optim), (torch, torch.optim)):
        parameter = Parameter if library is rushlight else torch.nn.Parameter
        first, second = (
            parameter(library.from_numpy(np.random.default_rng(n).normal(size=shape).astype("float32")))
            for n, shape in ((1, (4, 8)), (2, (8, 1)))
        )
        optimizer = kinds.AdamW([first, second], lr=0.02)
        x, y = library.from_numpy(inputs), library.from_numpy(targets)
        for _ in range(20):
            optimizer.zero_grad()
            loss = ((library.tanh(x @ first) @ second - y) ** 2).mean()
            loss.backward()
            optimizer.step()
        losses[library.__name__] = loss.item()
    assert losses["rushlight"] == pytest.approx(losses["torch"], rel=1e-4)


@pytest.mark.parametrize(
    ("kind", "options"),
    [
        ("StepLR", {"step_size": 3, "gamma": 0.3}),
        ("CosineAnnealingLR", {"T_max": 6, "eta_min": 0.01}),
        ("LambdaLR", {"lr_lambda": lambda epoch: 1 / (1 + epoch)}),
    ],
)
def test_schedules(kind, options):
    optimizer, ours, reference, theirs = pair("SGD", {"lr": 0.1})
    schedule = getattr(optim.lr_scheduler, kind)(optimizer, **options)
    other = getattr(torch.optim.lr_scheduler, kind)(reference, **options)
    for _ in range(25):
        assert schedule.get_last_lr() == pytest.approx(other.get_last_lr(), rel=1e-12)
        optimizer.step()
        reference.step()
        schedule.step()
        other.step()
    assert set(schedule.state_dict()) <= set(other.state_dict())
