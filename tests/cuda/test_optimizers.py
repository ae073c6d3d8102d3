"""Optimizers on the device: the CPU's numbers, steps of a group as one graph, numbers of states on the device, state dicts."""

import gc
import io
import weakref

import pytest

import rushlight as torch

optim = torch.optim
CASES = {
    "adam": (optim.Adam, {"weight_decay": 0.1, "amsgrad": True}),
    "adamw": (optim.AdamW, {}),
    "radam": (optim.RAdam, {"weight_decay": 0.1, "decoupled_weight_decay": True}),
    "nadam": (optim.NAdam, {"maximize": True}),
    "adamax": (optim.Adamax, {}),
    "rprop": (optim.Rprop, {}),
    "rmsprop": (optim.RMSprop, {"centered": True, "momentum": 0.9}),
    "asgd": (optim.ASGD, {"t0": 2, "lambd": 0.1, "weight_decay": 0.1}),
    "adadelta": (optim.Adadelta, {"weight_decay": 0.1}),
    "adagrad": (optim.Adagrad, {"lr_decay": 0.1, "initial_accumulator_value": 0.1}),
    "sgd": (optim.SGD, {"lr": 0.1, "momentum": 0.9, "nesterov": True, "weight_decay": 0.1}),
    "adafactor": (optim.Adafactor, {"weight_decay": 0.1}),
    "muon": (optim.Muon, {}),
}
CAPTURABLE = ("adam", "adamw", "radam", "nadam", "adamax", "rprop", "rmsprop", "asgd", "adadelta")
SIZES = [(3, 4), (4, 3), (2, 3)]


def started(name, place, **more):
    make, options = CASES[name]
    torch.manual_seed(0)
    parameters = [torch.nn.Parameter(torch.randn(*size).to(place)) for size in SIZES]
    for parameter in parameters:
        parameter.grad = torch.zeros_like(parameter)
    return parameters, make(parameters, **options | more)


def step(parameters, run):
    for parameter in parameters:
        parameter.grad.copy_(torch.randn(*parameter.shape))
    run()


def stepped(name, place, steps=7, **more):
    parameters, optimizer = started(name, place, **more)
    for _ in range(steps):
        step(parameters, optimizer.step)
    return [parameter.detach().cpu() for parameter in parameters], optimizer


def same(ours, theirs):
    for one, other in zip(ours, theirs, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-4, atol=2e-6)


@pytest.mark.parametrize("name", CASES)
def test_numbers(name):
    same(stepped(name, "cuda")[0], stepped(name, "cpu")[0])


@pytest.mark.parametrize("name", [name for name in CASES if name != "muon"])
def test_a_step_is_one_graph(name, monkeypatch):
    parameters, optimizer = started(name, "cuda")
    for _ in range(2):
        step(parameters, optimizer.step)
    monkeypatch.setattr(optimizer, "_update_parameter", None)  # the step of one parameter on its own
    optimizer.param_groups[0]["lr"] *= 0.5
    step(parameters, optimizer.step)


@pytest.mark.parametrize("name", CAPTURABLE)
def test_captured_steps_count_on_the_device(name):
    parameters, optimizer = started(name, "cuda", capturable=True)
    for _ in range(3):
        step(parameters, optimizer.step)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        optimizer.step()
    for _ in range(4):
        step(parameters, graph.replay)
    state = optimizer.state[parameters[0]]
    assert state["step"].is_cuda and state["step"].item() == 7
    same([parameter.detach().cpu() for parameter in parameters], stepped(name, "cpu")[0])


@pytest.mark.parametrize("name", ["adam", "radam", "asgd", "sgd"])
def test_a_learning_rate_on_the_device(name):
    rate = torch.tensor(0.02, device="cuda")
    same(stepped(name, "cuda", lr=rate)[0], stepped(name, "cpu", lr=0.02)[0])


def test_no_state_without_momentum():
    for place in ("cpu", "cuda"):
        assert not stepped("sgd", place, 2, momentum=0, nesterov=False)[1].state


def test_fused_steps_count_on_the_device():
    numbers, optimizer = stepped("adam", "cuda", fused=True)
    assert all(state["step"].is_cuda for state in optimizer.state.values())
    same(numbers, stepped("adam", "cpu")[0])
    with pytest.raises(RuntimeError, match="`fused` and `foreach`"):
        started("adam", "cuda", fused=True, foreach=True)


def test_capturable_needs_the_device():
    parameters, optimizer = started("adam", "cpu", capturable=True)
    with pytest.raises(AssertionError, match="capturable=True"):
        optimizer.step()


@pytest.mark.parametrize("name", ["adam", "nadam", "asgd"])
@pytest.mark.parametrize("capturable", [False, True])
def test_state_dicts(name, capturable):
    _, optimizer = stepped(name, "cuda", 3, capturable=capturable)
    file = io.BytesIO()
    torch.save(optimizer.state_dict(), file)
    for place in ("cpu", "cuda"):
        file.seek(0)
        parameters, again = started(name, "cuda", capturable=capturable)
        again.load_state_dict(torch.load(file, map_location=place))
        for parameter in parameters:
            state = again.state[parameter]
            assert state["step"].is_cuda is (capturable or place == "cuda") and state["step"].item() == 3
            assert all(value.is_cuda for value in state.values() if value.dim())
        step(parameters, again.step)


def test_steps_under_a_scaler():
    for name in ("adam", "rmsprop"):
        (parameters, optimizer), scaler = started(name, "cuda"), torch.amp.GradScaler("cuda", init_scale=8.0)
        for scale in (1.0, float("inf"), 2.0):
            optimizer.zero_grad()
            scaler.scale(sum((parameter * scale).sum() for parameter in parameters)).backward()
            scaler.step(optimizer)
            scaler.update()
        assert all(state["step"].item() == 2 for state in optimizer.state.values()) and scaler.get_scale() == 4.0


def test_parameters_on_two_devices():
    here, there = torch.nn.Parameter(torch.ones(2)), torch.nn.Parameter(torch.ones(2, device="cuda"))
    optimizer = optim.Adam([here, there])
    (here.sum() + there.sum().cpu()).backward()
    optimizer.step()
    assert here.tolist() == there.tolist() != [1, 1]


def launches_of(standin, run):
    torch.cuda.synchronize()
    standin.log.clear()
    run()
    torch.cuda.synchronize()
    return [entry for entry in standin.log if entry[0] == "launch"]


def various(place):
    """Parameters of several sizes and dtypes, one in memory that is not aligned, and one of two elements in a transposed one."""
    torch.manual_seed(0)
    kinds = [torch.float32] * 4 + [torch.bfloat16] * 2
    sizes = [(5, 7), (16,), (64, 3), (300,), (5, 7), (300,)]
    found = [torch.randn(*size).to(kind).to(place) for size, kind in zip(sizes, kinds, strict=True)]
    found.append(torch.randn(34).to(place)[1:])
    found.append(torch.randn(6, 4).to(place).t())
    return [torch.nn.Parameter(each) for each in found]


@pytest.mark.parametrize("name", ["adamw", "sgd", "rmsprop"])
def test_parameters_of_all_kinds(name):
    make, options = CASES[name]
    ours, theirs = various("cuda"), various("cpu")
    optimizers = make(ours, **options), make(theirs, **options)
    for number in range(5):
        torch.manual_seed(number)
        for place, (one, other) in enumerate(zip(ours, theirs, strict=True)):
            gradient = torch.randn(*other.shape).to(other.dtype)
            missing = place == number  # gradients are at other addresses in each step, and some are missing
            one.grad, other.grad = (None, None) if missing else (gradient.to("cuda"), gradient)
        for optimizer in optimizers:
            optimizer.step()
    for one, other in zip(ours, theirs, strict=True):
        tolerance = 2e-2 if one.dtype is torch.bfloat16 else 1e-5
        torch.testing.assert_close(one.detach().cpu(), other.detach(), rtol=10 * tolerance, atol=tolerance)


@pytest.mark.parametrize("options", [{}, {"fused": True}, {"capturable": True, "amsgrad": True}])
def test_a_step_takes_few_launches(options, standin):
    parameters = [torch.nn.Parameter(torch.randn(16 * size, device="cuda")) for size in range(1, 41)]
    for parameter in parameters:
        parameter.grad = torch.ones_like(parameter)
    optimizer = optim.AdamW(parameters, **options)
    optimizer.step()
    assert len(launches_of(standin, optimizer.step)) <= 2


def test_states_may_be_replaced():
    results = []
    for place in ("cuda", "cpu"):
        parameters, optimizer = started("adamw", place)
        for _ in range(3):
            step(parameters, optimizer.step)
        optimizer.load_state_dict(optimizer.state_dict())
        optimizer.param_groups[0]["lr"] = 0.5
        step(parameters, optimizer.step)
        optimizer.param_groups[0]["weight_decay"] = 0
        step(parameters, optimizer.step)
        results.append([parameter.detach().cpu() for parameter in parameters])
    same(*results)


def test_steps_count_writes():
    parameters, optimizer = started("adamw", "cuda", fused=True)
    for expected in range(1, 4):
        before = [parameter._version for parameter in parameters]
        optimizer.step()
        assert all(parameter._version > version for parameter, version in zip(parameters, before, strict=True))
        assert optimizer.state[parameters[0]]["step"].item() == expected


def test_an_optimizer_is_not_kept():
    parameters, optimizer = started("adamw", "cuda")
    optimizer.step()
    optimizer.step()
    kept = weakref.ref(optimizer)
    del optimizer
    gc.collect()
    assert kept() is None


def test_a_captured_step_keeps_its_addresses():
    parameters, optimizer = started("adamw", "cuda", capturable=True)
    others, other = started("adamw", "cuda", capturable=True)
    for mine, run in ((parameters, optimizer.step), (others, other.step)):
        for parameter in mine:
            parameter.grad.fill_(0.5)
        run()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        optimizer.step()
    gradients = [parameter.grad for parameter in parameters]
    for parameter in parameters:
        parameter.grad = torch.full_like(parameter, 100.0)
    graph.replay()
    graph.replay()
    other.step()
    other.step()
    assert all((gradient == 0.5).all() for gradient in gradients)
    same([parameter.detach().cpu() for parameter in parameters], [parameter.detach().cpu() for parameter in others])
