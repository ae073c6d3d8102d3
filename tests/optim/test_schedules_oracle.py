"""All schedules and averages of weights, epoch by epoch, against PyTorch's; state dicts move between the two."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import rushlight

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.oracle


def optimizer(library, kind: str = "SGD"):
    parameters = [library.nn.Parameter(library.ones(2)) for _ in range(2)]
    groups = [{"params": parameters[:1]}, {"params": parameters[1:], "lr": 0.05}]
    momentum = {"momentum": 0.9} if kind == "SGD" else {}
    made = getattr(library.optim, kind)(groups, lr=0.1, **momentum)
    for parameter in parameters:
        parameter.grad = library.ones(2) * 0
    return made


CASES = {
    "lambda": lambda L, o: L.LambdaLR(o, lambda epoch: 0.9**epoch),
    "lambdas": lambda L, o: L.LambdaLR(o, [lambda epoch: 0.9**epoch, lambda epoch: 1 / (epoch + 1)]),
    "multiplicative": lambda L, o: L.MultiplicativeLR(o, lambda epoch: 0.9 + 0.01 * epoch),
    "step": lambda L, o: L.StepLR(o, 3, gamma=0.3),
    "milestones": lambda L, o: L.MultiStepLR(o, [2, 4, 4, 9], gamma=0.5),
    "constant": lambda L, o: L.ConstantLR(o, factor=0.5, total_iters=4),
    "linear": lambda L, o: L.LinearLR(o, 0.2, 0.8, total_iters=7),
    "exponential": lambda L, o: L.ExponentialLR(o, 0.9),
    "polynomial": lambda L, o: L.PolynomialLR(o, total_iters=8, power=1.7),
    "cosine": lambda L, o: L.CosineAnnealingLR(o, 4, eta_min=0.01),
    "restarts": lambda L, o: L.CosineAnnealingWarmRestarts(o, 3, eta_min=0.001),
    "longer restarts": lambda L, o: L.CosineAnnealingWarmRestarts(o, 2, T_mult=2),
    "cyclic": lambda L, o: L.CyclicLR(o, 0.01, 0.1, step_size_up=3),
    "cyclic by halves": lambda L, o: L.CyclicLR(o, [0.01, 0.02], 0.1, 3, step_size_down=5, mode="triangular2"),
    "cyclic exponential": lambda L, o: L.CyclicLR(o, 0.01, 0.1, 4, mode="exp_range", gamma=0.9),
    "cyclic by function": lambda L, o: L.CyclicLR(o, 0.01, 0.1, 4, scale_fn=lambda x: 1 / (5**x), scale_mode="iterations"),
    "one cycle": lambda L, o: L.OneCycleLR(o, [0.1, 0.3], total_steps=30),
    "one cycle in three": lambda L, o: L.OneCycleLR(o, 0.2, epochs=6, steps_per_epoch=5, three_phase=True,
                                                    anneal_strategy="linear"),
    "sequence": lambda L, o: L.SequentialLR(o, [L.ConstantLR(o, 0.1, 20), L.ExponentialLR(o, 0.9), L.StepLR(o, 2)], [4, 9]),
    "sequence of cosines": lambda L, o: L.SequentialLR(o, [L.LinearLR(o, 0.1, total_iters=4), L.CosineAnnealingLR(o, 9)], [4]),
    "chain": lambda L, o: L.ChainedScheduler([L.ConstantLR(o, 0.1, 4), L.ExponentialLR(o, 0.9)], o),
    "sequence with a chain": lambda L, o: L.SequentialLR(
        o, [L.ChainedScheduler([L.LinearLR(o), L.ExponentialLR(o, 0.9)]), L.StepLR(o, 2)], [5]
    ),
}  # fmt: skip


def plain(value):
    """A state dict without the classes of its parts."""
    if isinstance(value, dict):
        return {key: plain(part) for key, part in value.items()}
    return [plain(part) for part in value] if isinstance(value, list | tuple) else value


def settings(made) -> list:
    return [{name: value for name, value in group.items() if name != "params"} for group in made.param_groups]


def assert_same(ours, theirs):
    assert list(ours) == list(theirs)
    for name, value in theirs.items():
        if isinstance(value, dict):
            assert_same(ours[name], value)
        elif isinstance(value, list) and value and isinstance(value[0], dict):
            for a, b in zip(ours[name], value, strict=True):
                assert_same(a, b)
        elif isinstance(value, float | list | tuple):
            np.testing.assert_allclose(ours[name], value, rtol=1e-12, err_msg=name)
        else:
            assert ours[name] == value, name


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("kind", ["SGD", "Adam"])
@pytest.mark.parametrize("name", CASES)
def test_epoch_by_epoch(name, kind):
    ours, theirs = optimizer(rushlight, kind), optimizer(torch, kind)
    mine, other = CASES[name](rushlight.optim.lr_scheduler, ours), CASES[name](torch.optim.lr_scheduler, theirs)
    for _ in range(25):
        np.testing.assert_allclose(mine.get_last_lr(), other.get_last_lr(), rtol=1e-12)
        for a, b in zip(settings(ours), settings(theirs), strict=True):
            assert_same(a, b)
        for part in (ours, theirs, mine, other):
            part.step()
    assert_same_keys(mine.state_dict(), other.state_dict())


def assert_same_keys(ours: dict, theirs: dict):
    assert set(ours) == set(theirs)
    for name, value in theirs.items():
        if isinstance(value, list) and value and isinstance(value[0], dict):
            for a, b in zip(ours[name], value, strict=True):
                assert_same_keys(a, b)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", CASES)
def test_state_dicts_move_to_torch_and_back(name):
    ours, theirs = optimizer(rushlight), optimizer(torch)
    mine, other = CASES[name](rushlight.optim.lr_scheduler, ours), CASES[name](torch.optim.lr_scheduler, theirs)
    for _ in range(7):
        other.step()
    mine.load_state_dict(plain(other.state_dict()))
    ours.load_state_dict({**ours.state_dict(), "param_groups": theirs.state_dict()["param_groups"]})
    for _ in range(7):
        other.step()
        mine.step()
        np.testing.assert_allclose(mine.get_last_lr(), other.get_last_lr(), rtol=1e-12)
    other.load_state_dict(plain(mine.state_dict()))


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", ["step", "milestones", "constant", "linear", "exponential", "polynomial", "cosine"])
def test_jumps_to_an_epoch(name):
    ours, theirs = optimizer(rushlight), optimizer(torch)
    mine, other = CASES[name](rushlight.optim.lr_scheduler, ours), CASES[name](torch.optim.lr_scheduler, theirs)
    for epoch in (3, 1, 12, 6):
        mine.step(epoch)
        other.step(epoch)
        np.testing.assert_allclose(mine.get_last_lr(), other.get_last_lr(), rtol=1e-12)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("epochs", [(0.5, 1.25, 2.0, 7.3), (3, 9, 1)])
@pytest.mark.parametrize("factor", [1, 2])
def test_restarts_in_fractions(epochs, factor):
    ours, theirs = optimizer(rushlight), optimizer(torch)
    mine = rushlight.optim.lr_scheduler.CosineAnnealingWarmRestarts(ours, 2, factor)
    other = torch.optim.lr_scheduler.CosineAnnealingWarmRestarts(theirs, 2, factor)
    for epoch in epochs:
        mine.step(epoch)
        other.step(epoch)
        np.testing.assert_allclose(mine.get_last_lr(), other.get_last_lr(), rtol=1e-12)


@pytest.mark.parametrize("mode", ["min", "max"])
@pytest.mark.parametrize("threshold_mode", ["rel", "abs"])
def test_plateau(mode, threshold_mode):
    options = {"mode": mode, "factor": 0.5, "patience": 2, "threshold_mode": threshold_mode, "cooldown": 1,
               "min_lr": [0.01, 0.0], "threshold": 0.05}  # fmt: skip
    ours, theirs = optimizer(rushlight), optimizer(torch)
    mine = rushlight.optim.lr_scheduler.ReduceLROnPlateau(ours, **options)
    other = torch.optim.lr_scheduler.ReduceLROnPlateau(theirs, **options)
    for value in np.random.default_rng(0).normal(size=40).cumsum() * 0.1 + 1:
        mine.step(rushlight.tensor(value))
        other.step(torch.tensor(value))
        assert mine.get_last_lr() == pytest.approx(other.get_last_lr())
    assert_same(mine.state_dict(), other.state_dict())


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("strategy", ["cos", "linear"])
@pytest.mark.parametrize("epochs", [0, 5])
def test_annealing_to_a_constant_rate(strategy, epochs):
    ours, theirs = optimizer(rushlight), optimizer(torch)
    mine = rushlight.optim.swa_utils.SWALR(ours, [0.02, 0.3], epochs, strategy)
    other = torch.optim.swa_utils.SWALR(theirs, [0.02, 0.3], epochs, strategy)
    for _ in range(9):
        mine.step()
        other.step()
        np.testing.assert_allclose(mine.get_last_lr(), other.get_last_lr(), rtol=1e-12)


WRONG = {
    "rate": lambda L, o: L.ConstantLR(o, factor=2),
    "start": lambda L, o: L.LinearLR(o, start_factor=0),
    "end": lambda L, o: L.LinearLR(o, end_factor=-1),
    "no schedules": lambda L, o: L.SequentialLR(o, [], []),
    "milestones": lambda L, o: L.SequentialLR(o, [L.ConstantLR(o)], [1]),
    "plateau in a chain": lambda L, o: L.ChainedScheduler([L.ReduceLROnPlateau(o)]),
    "factor": lambda L, o: L.ReduceLROnPlateau(o, factor=1.0),
    "mode": lambda L, o: L.ReduceLROnPlateau(o, mode="up"),
    "min_lr": lambda L, o: L.ReduceLROnPlateau(o, min_lr=[0.1]),
    "cycle mode": lambda L, o: L.CyclicLR(o, 0.1, 0.2, mode="square"),
    "T_0": lambda L, o: L.CosineAnnealingWarmRestarts(o, 0),
    "T_mult": lambda L, o: L.CosineAnnealingWarmRestarts(o, 1, 0),
    "steps": lambda L, o: L.OneCycleLR(o, 0.1),
    "pct": lambda L, o: L.OneCycleLR(o, 0.1, 10, pct_start=2),
    "strategy": lambda L, o: L.OneCycleLR(o, 0.1, 10, anneal_strategy="up"),
    "none": lambda L, o: L.StepLR(3, 1),
}


@pytest.mark.parametrize("name", WRONG)
def test_wrong_options_raise_the_same_type(name):
    with pytest.raises(Exception) as expected:
        WRONG[name](torch.optim.lr_scheduler, optimizer(torch))
    with pytest.raises(expected.type):
        WRONG[name](rushlight.optim.lr_scheduler, optimizer(rushlight))


def test_a_momentum_is_needed_to_cycle_it():
    made = rushlight.optim.Adagrad([rushlight.nn.Parameter(rushlight.ones(1))])
    with pytest.raises(ValueError, match="must support momentum or beta1"):
        rushlight.optim.lr_scheduler.CyclicLR(made, 0.1, 0.2)
    rushlight.optim.lr_scheduler.CyclicLR(made, 0.1, 0.2, cycle_momentum=False)


def test_rates_outside_of_a_step_warn():
    made = rushlight.optim.lr_scheduler.StepLR(optimizer(rushlight), 1)
    with pytest.warns(UserWarning, match="get_last_lr"):
        made.get_lr()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        made.optimizer.step()
        made.step()


def model(library):
    layers = [library.nn.Linear(3, 4), library.nn.BatchNorm1d(4), library.nn.Linear(4, 2)]
    made = library.nn.Sequential(*layers)
    with library.no_grad():
        for number, parameter in enumerate(made.parameters()):
            values = np.random.default_rng(number).normal(size=tuple(parameter.shape)).astype("float32")
            parameter.copy_(library.from_numpy(values))
    return made


AVERAGES = {
    "equal": lambda S: {},
    "exponential": lambda S: {"avg_fn": S.get_ema_avg_fn(0.7)},
    "exponential in place": lambda S: {"multi_avg_fn": S.get_ema_multi_avg_fn(0.7)},
    "equal with buffers": lambda S: {"avg_fn": S.get_swa_avg_fn(), "use_buffers": True},
}


@pytest.mark.parametrize("name", AVERAGES)
def test_averaged_models(name):
    states = []
    for library in (rushlight, torch):
        S = library.optim.swa_utils
        trained = model(library)
        averaged = S.AveragedModel(trained, **AVERAGES[name](S))
        batches = [
            library.from_numpy(np.random.default_rng(10 + step).normal(size=(8, 3)).astype("float32")) for step in range(4)
        ]
        for step, batch in enumerate(batches):
            trained(batch)
            with library.no_grad():
                for parameter in trained.parameters():
                    parameter.mul_(0.9).add_(0.1 * step)
            averaged.update_parameters(trained)
        S.update_bn([(batch, 0) for batch in batches], averaged)
        states.append({key: value.numpy() for key, value in averaged.state_dict().items()})
    assert list(states[0]) == list(states[1])
    for key, value in states[1].items():
        np.testing.assert_allclose(states[0][key], value, rtol=1e-5, atol=1e-6, err_msg=key)
