"""Functions of lists of tensors on the device: one graph from the second call on, with the CPU's numbers."""

import pytest

import rushlight as torch
from rushlight.compiler import device_lists

SIZES = [(3, 4), (5,), (16,), (), (2, 3, 4), (40,)]


@pytest.fixture
def known(gpu):
    device_lists._known.clear()
    return device_lists._known


def made(place, kind=torch.float32, seed=0):
    torch.manual_seed(seed)
    return [(torch.randn(size) * 4).to(kind).to(place) for size in SIZES]


def graphs(known):
    return sum(isinstance(value, device_lists._ListGraph) for value in known.values())


def on_device(values):
    return [value.to("cuda") if isinstance(value, torch.Tensor) else value for value in values]


CALLS = {
    "multiply by a number": lambda a, b: torch._foreach_mul(a, 0.3),
    "multiply by numbers": lambda a, b: torch._foreach_mul(a, [0.1, 0.2, -0.0, 0.1, 2.0, 3.0]),
    "add with a factor": lambda a, b: torch._foreach_add(a, b, alpha=0.7),
    "square roots": lambda a, b: torch._foreach_sqrt(torch._foreach_abs(a)),
    "powers": lambda a, b: torch._foreach_pow(2.0, a),
    "weighted products": lambda a, b: torch._foreach_addcmul(a, a, b, 0.5),
    "interpolate": lambda a, b: torch._foreach_lerp(a, b, 0.25),
    "norms": lambda a, b: torch._foreach_norm(a, 1.0),
    "integers": lambda a, b: torch._foreach_add(torch._foreach_mul([each.to(torch.int64) for each in a], 3), 1.5),
    "clones": lambda a, b: torch._foreach_clone(a),
}


@pytest.mark.parametrize("kind", [torch.float32, torch.bfloat16], ids=["float32", "bfloat16"])
@pytest.mark.parametrize("name", CALLS)
def test_results(name, kind, known):
    call = CALLS[name]
    for seed in range(3):
        a, b = made("cpu", kind, seed), made("cpu", kind, seed + 10)
        for ours, theirs in zip(call(on_device(a), on_device(b)), call(a, b), strict=True):
            assert ours.is_cuda and ours.dtype is theirs.dtype and ours.shape == theirs.shape
            tolerance = 0.05 if ours.dtype is torch.bfloat16 else 1e-5  # products are rounded before they are added
            torch.testing.assert_close(ours.cpu(), theirs, rtol=tolerance, atol=tolerance)
    assert graphs(known) >= 1


def test_writes(known):
    values, gradients = made("cuda"), made("cuda", seed=1)
    wanted, others = made("cpu"), made("cpu", seed=1)
    for factor in (0.5, -0.25, 3.0, 0.125):
        for lists in ((values, gradients), (wanted, others)):
            torch._foreach_mul_(lists[0], factor)
            torch._foreach_add_(lists[0], lists[1], alpha=-factor)
    for ours, theirs in zip(values, wanted, strict=True):
        torch.testing.assert_close(ours.cpu(), theirs)
    assert graphs(known) == 2  # other numbers need no other graphs
    assert [value._version for value in values] == [value._version for value in wanted]


def test_numbers_that_a_graph_holds(known):
    for bound in (1.0, 2.0, 2.0, 0.5, 0.5):
        ours, theirs = made("cuda"), made("cpu")
        torch._foreach_clamp_max_(ours, bound)
        torch._foreach_clamp_max_(theirs, bound)
        for one, other in zip(ours, theirs, strict=True):
            torch.testing.assert_close(one.cpu(), other)


def test_tensors_that_share_memory_run_one_by_one(known):
    memory = torch.ones(8, device="cuda")
    for _ in range(3):
        torch._foreach_mul_([memory[:6], memory[2:]], 2.0)
    assert memory.tolist() == [8, 8, 64, 64, 64, 64, 8, 8] and not known


def test_views_at_any_address(known):
    memory = torch.arange(24.0, device="cuda")
    for _ in range(3):
        torch._foreach_add_([memory[1:6], memory[7:12], memory[13:]], 1.0)
    assert (memory.cpu() - torch.arange(24.0)).tolist() == [0] + [3] * 5 + [0] + [3] * 5 + [0] + [3] * 11


def test_gradients_are_recorded_as_ever(known):
    values = [torch.ones(4, device="cuda", requires_grad=True) for _ in range(3)]
    for _ in range(3):
        sum(each.sum() for each in torch._foreach_mul(values, 2.0)).backward()
    assert all(value.grad.tolist() == [6.0] * 4 for value in values) and not known


def test_a_captured_call(known):
    values = made("cuda")
    for _ in range(2):
        torch._foreach_mul_(values, 2.0)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        torch._foreach_mul_(values, 2.0)
    torch._foreach_zero_(values)
    torch._foreach_add_(values, 1.0)
    graph.replay()
    graph.replay()
    assert all((value == 4).all() for value in values)


def parameters(place):
    found = [torch.nn.Parameter(value) for value in made(place)]
    for parameter, gradient in zip(found, made(place, seed=1), strict=True):
        parameter.grad = gradient
    return found


@pytest.mark.parametrize("order", [1.0, 2.0, float("inf")])
def test_clipped_gradients(order, known):
    for limit in (1.0, 2.0, 1000.0):
        ours, theirs = parameters("cuda"), parameters("cpu")
        norms = [torch.nn.utils.clip_grad_norm_(each, limit, order) for each in (ours, theirs)]
        torch.testing.assert_close(norms[0].cpu(), norms[1])
        for one, other in zip(ours, theirs, strict=True):
            torch.testing.assert_close(one.grad.cpu(), other.grad)
    assert graphs(known) == 2


def test_many_norms(known):
    values = [torch.full((2,), 1.0, device="cuda") for _ in range(70)]
    for _ in range(2):
        assert torch.nn.utils.get_total_norm(values).item() == pytest.approx(140**0.5)
    assert graphs(known) == 1


def test_unscaled_gradients(known):
    for bad in (False, False, True):
        mine = parameters("cuda")
        before = [parameter.grad.clone() for parameter in mine]
        if bad:
            mine[2].grad[3] = float("inf")
        scaler = torch.amp.GradScaler("cuda", init_scale=4.0)
        scaler.scale(torch.ones((), device="cuda"))
        optimizer = torch.optim.SGD(mine, lr=0.0)
        scaler.unscale_(optimizer)
        assert scaler._found_inf[id(optimizer)] is bad
        torch.testing.assert_close(mine[0].grad, before[0] / 4)
    assert graphs(known) == 1


@pytest.mark.parametrize("make", [torch.optim.swa_utils.get_swa_multi_avg_fn, torch.optim.swa_utils.get_ema_multi_avg_fn])
def test_averaged_weights(make, known):
    averages = {}
    for place in ("cuda", "cpu"):
        torch.manual_seed(0)
        model = torch.nn.Linear(3, 4)
        averaged = torch.optim.swa_utils.AveragedModel(model.to(place), multi_avg_fn=make())
        for _ in range(4):
            averaged.update_parameters(model)
            with torch.no_grad():
                model.weight.mul_(2)
        averages[place] = averaged.module.weight.detach().cpu()
    torch.testing.assert_close(averages["cuda"], averages["cpu"])
    assert graphs(known) == 1


def test_modes_see_single_operators(known):
    class Names(torch.utils._python_dispatch.TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            seen.append(func._schema.name)
            return func(*args, **(kwargs or {}))

    seen, values = [], made("cuda")
    for _ in range(3):
        with Names():
            torch._foreach_mul_(values, 2.0)
    assert len(seen) == 3 * len(values) and not known
