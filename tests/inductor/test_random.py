"""Random numbers in compiled graphs: seeds, distributions, and the agreement of forward, backward and interpreter."""

from __future__ import annotations

import math
import warnings

import pytest

import rushlight as torch
from rushlight.compiler import backends
from rushlight.compiler.backends import interpreted
from rushlight.utils.checkpoint import checkpoint

F = torch.nn.functional
COUNT = 200_000


def draw_all(x):
    return (
        F.dropout(x, 0.3), torch.rand_like(x), torch.rand(37), torch.rand(50, dtype=torch.float64), torch.randn(1001),
        torch.randn(9, dtype=torch.bfloat16), torch.randint(-5, 12, (70,)), torch.randint(-(2**40), 2**60, (70,)),
        torch.bernoulli(torch.full((20,), 0.5)), torch.empty(33).exponential_(2), torch.normal(x, 0.1),
    )  # fmt: skip


def equal(left, right) -> list[bool]:
    return [bool((a == b).all()) for a, b in zip(left, right, strict=True)]


def test_a_seed_gives_the_same_numbers_and_each_call_others():
    compiled, x = torch.compile(draw_all, fullgraph=True), torch.ones(7, 19)
    torch.manual_seed(3)
    first, second = compiled(x), compiled(x)
    torch.manual_seed(3)
    again = compiled(x)
    assert all(equal(first, again))
    assert not any(equal(first, second))


def test_the_state_of_the_generator_is_the_state_of_compiled_draws():
    compiled, x = torch.compile(draw_all), torch.ones(7, 19)
    compiled(x)
    state = torch.get_rng_state()
    first = compiled(x)
    torch.set_rng_state(state)
    assert all(equal(first, compiled(x)))
    with torch.random.fork_rng():
        compiled(x)
    torch.set_rng_state(state)
    assert all(equal(first, compiled(x)))


def test_compiling_draws_nothing():
    torch.manual_seed(5)
    torch.compile(draw_all)(torch.ones(7, 19))
    after_compiling = torch.rand(1)
    torch.manual_seed(5)
    torch.compile(draw_all)(torch.ones(7, 19))
    assert torch.rand(1) == after_compiling


def test_native_code_draws_what_the_interpreter_draws(monkeypatch):
    x = torch.ones(7, 19)
    torch.manual_seed(3)
    native = torch.compile(draw_all, fullgraph=True)(x)
    monkeypatch.setattr(backends, "native", lambda module, settings, log: interpreted(module, []))
    torch.manual_seed(3)
    for mine, other in zip(native, torch.compile(draw_all, fullgraph=True)(x), strict=True):
        assert mine.dtype is other.dtype
        assert float((mine.double() - other.double()).abs().max()) <= 1e-5 * max(1.0, float(mine.double().abs().max()))


# Where draws are fused: (function, sizes of its inputs)
FUSED = {
    "epilogue": (lambda x, w: F.dropout(x @ w, 0.5), (13, 20), (20, 70)),
    "batched epilogue": (lambda x, w: F.dropout(x @ w, 0.5) + 1, (3, 13, 20), (3, 20, 70)),
    "rows": (lambda x: F.dropout(x, 0.5).sum(1), (13, 70)),
    "columns": (lambda x: F.dropout(x, 0.5).sum(0), (130, 70)),
    "softmax": (lambda x: F.dropout((x * torch.rand_like(x)).softmax(-1), 0.5), (13, 70)),
    "transposed": (lambda x: F.dropout(x, 0.5).t().contiguous() * 2, (13, 70)),
    "concatenation": (lambda x: torch.cat([F.dropout(x, 0.5), torch.rand_like(x) + x], 1), (13, 7)),
    "slices": (lambda x: (torch.rand_like(x) * 2)[1:, ::3] + x[1:, ::3], (13, 70)),
    "gather": (lambda x: torch.rand_like(x)[torch.tensor([5, 1, 5])] * x[:3], (13, 70)),
    "broadcast": (lambda x: x * torch.rand(70) + torch.rand(13, 1), (13, 70)),
    "convolution": (lambda x, w: F.dropout2d(F.conv2d(x, w), 0.5), (2, 3, 9, 9), (40, 3, 3, 3)),
    "convolution's epilogue": (lambda x, w: F.dropout(F.conv2d(x, w).relu(), 0.5), (2, 3, 9, 9), (40, 3, 3, 3)),
    "depthwise epilogue": (lambda x, w: F.dropout(F.conv2d(x, w, groups=8), 0.5), (2, 8, 9, 9), (8, 1, 3, 3)),
    "double": (lambda x: torch.rand(13, 70, dtype=torch.float64) + x.double(), (13, 70)),
}


@pytest.mark.parametrize("dynamic", [False, True])
@pytest.mark.parametrize("name", FUSED)
def test_fused_draws_are_the_interpreters(name, dynamic):
    function, *sizes = FUSED[name]
    inputs = [torch.linspace(-1, 1, math.prod(size)).view(size) for size in sizes]
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # no graph is left to the interpreter
        torch.compile(function, verify=True, dynamic=dynamic)(*inputs)


def test_the_number_of_threads_does_not_matter():
    x, results = torch.ones(700, 301), []
    for threads in (1, 2, 3):
        torch.manual_seed(7)
        results.append(torch.compile(draw_all, options={"threads": threads})(x))
    assert all(equal(results[0], results[1])) and all(equal(results[0], results[2]))


def test_fallback_random_draws_what_eager_draws():
    def draw(x):
        return F.dropout(x, 0.3), torch.rand_like(x), torch.randn(100), torch.randint(-5, 12, (70,)), torch.normal(x, 0.1)

    x = torch.ones(7, 19)
    torch.manual_seed(3)
    eager = draw(x)
    torch.manual_seed(3)
    assert all(equal(eager, torch.compile(draw, options={"fallback_random": True})(x)))
    torch.manual_seed(3)
    assert not any(equal(eager, torch.compile(draw)(x)))


def moments(values) -> tuple[float, float]:
    values = values.double()
    return float(values.mean()), float(values.std())


# name: what draws COUNT numbers, their expected mean and standard deviation
DISTRIBUTIONS = {
    "uniform": (lambda: torch.rand(COUNT), 0.5, math.sqrt(1 / 12)),
    "uniform between": (lambda: torch.empty(COUNT).uniform_(-3, 5), 1.0, 8 * math.sqrt(1 / 12)),
    "double": (lambda: torch.rand(COUNT, dtype=torch.float64), 0.5, math.sqrt(1 / 12)),
    "half": (lambda: torch.rand(COUNT, dtype=torch.float16), 0.5 - 2.0**-12, math.sqrt(1 / 12)),
    "normal": (lambda: torch.randn(COUNT), 0.0, 1.0),
    "normal of": (lambda: torch.empty(COUNT).normal_(2, 3), 2.0, 3.0),
    "dropout": (lambda: F.dropout(torch.ones(COUNT), 0.2), 1.0, 0.5),
    "bernoulli": (lambda: torch.empty(COUNT).bernoulli_(0.1), 0.1, 0.3),
    "bernoulli by element": (lambda: torch.bernoulli(torch.full((COUNT,), 0.1)), 0.1, 0.3),
    "integers": (lambda: torch.randint(0, 100, (COUNT,)), 49.5, math.sqrt(9999 / 12)),
    "wide integers": (lambda: torch.randint(0, 3 << 40, (COUNT,)) / 2.0**40, 1.5, 3 * math.sqrt(1 / 12)),
    "exponential": (lambda: torch.empty(COUNT).exponential_(4), 0.25, 0.25),
    "log normal": (lambda: torch.empty(COUNT).log_normal_(0, 0.5), math.exp(0.125), math.exp(0.125) * math.sqrt(math.exp(0.25) - 1)),
    "geometric": (lambda: torch.empty(COUNT).geometric_(0.5), 2.0, math.sqrt(2)),
}


@pytest.mark.parametrize("name", DISTRIBUTIONS)
def test_moments(name):
    draw, mean, deviation = DISTRIBUTIONS[name]
    torch.manual_seed(11)
    found_mean, found_deviation = moments(torch.compile(draw, fullgraph=True)())
    error = deviation / math.sqrt(COUNT)
    assert abs(found_mean - mean) < 5 * error
    assert abs(found_deviation - deviation) < 0.03 * deviation


def test_uniform_numbers_fill_the_unit_interval_evenly():
    torch.manual_seed(2)
    numbers = torch.compile(lambda: torch.rand(COUNT))()
    counts = torch.histc(numbers, 50, 0, 1)
    chi_squared = float(((counts - COUNT / 50) ** 2 / (COUNT / 50)).sum())
    assert chi_squared < 49 + 5 * math.sqrt(2 * 49)
    pairs = numbers.view(-1, 2) - 0.5
    assert abs(float((pairs[:, 0] * pairs[:, 1]).mean())) < 5 / 12 / math.sqrt(COUNT / 2)
    assert float(numbers.min()) >= 0 and float(numbers.max()) < 1


@pytest.mark.parametrize("low, high", [(0, 1), (-1, 1), (100, 100.5), (3, 3)])
@pytest.mark.parametrize("kind", [torch.float16, torch.bfloat16, torch.float32, torch.float64])
def test_uniform_numbers_stay_below_the_upper_bound(low, high, kind):
    numbers = torch.compile(lambda: torch.empty(20_000, dtype=kind).uniform_(low, high))()
    assert float(numbers.min()) >= low
    assert float(numbers.max()) < high or low == high


def test_probabilities_0_and_1():
    zero, one, none = torch.compile(
        lambda: (torch.empty(999).bernoulli_(0.0), torch.empty(999).bernoulli_(1.0), F.dropout(torch.ones(999), 1.0))
    )()
    assert not zero.any() and one.all() and not none.any()


def test_what_eager_refuses_is_refused():
    with pytest.raises(RuntimeError, match=r"expects p to be in \[0, 1\]"):
        torch.compile(lambda: torch.empty(3).bernoulli_(1.5))()


@pytest.mark.parametrize("budget", [1.0, 0.0])
def test_the_backward_of_dropout_has_the_mask_of_the_forward(budget):
    def program(x):
        return F.dropout(torch.sin(F.dropout(x, 0.5)), 0.25)

    compiled = torch.compile(program, options={"memory_budget": budget})
    x = torch.rand(50, 41).add_(0.1).requires_grad_()
    result = compiled(x)
    result.sum().backward()
    assert bool(((result != 0) == (x.grad != 0)).all())
    kept = result != 0
    expected = torch.where(kept, torch.cos(2 * x) * 2 / 0.75, 0.0)
    assert float((x.grad - expected).abs().max()) < 1e-4


@pytest.mark.parametrize("reentrant", [False, True])
@pytest.mark.parametrize("compiled_part", [False, True])
def test_checkpoint_draws_the_forwards_mask_again(reentrant, compiled_part):
    def part(x):
        return F.dropout(x, 0.5).exp()

    inner = torch.compile(part) if compiled_part else part

    def program(x):
        return checkpoint(inner, x * 1, use_reentrant=reentrant)

    x = torch.rand(30, 17).add_(0.1).requires_grad_()
    for function in (program, torch.compile(program)):
        x.grad = None
        result = function(x)
        torch.rand(1)
        result.sum().backward()
        dropped = result == 1
        assert 150 < int(dropped.sum()) < 360
        torch.testing.assert_close(x.grad, torch.where(dropped, 0.0, 2 * result.detach()))


def test_dropout_in_a_training_step_converges():
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(8, 32), torch.nn.ReLU(), torch.nn.Dropout(0.2), torch.nn.Linear(32, 1))
    optimizer = torch.optim.Adam(model.parameters(), 0.01)
    compiled, x = torch.compile(model), torch.randn(64, 8)
    target, losses = x.sum(1, keepdim=True), []
    for _ in range(60):
        optimizer.zero_grad()
        loss = F.mse_loss(compiled(x), target)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert losses[-1] < losses[0] / 3


def test_open_sizes():
    compiled = torch.compile(lambda x: (F.dropout(x, 0.5), torch.rand_like(x)), dynamic=True)
    for rows in (3, 5, 64):
        torch.manual_seed(rows)
        dropped, numbers = compiled(torch.ones(rows, 11))
        assert set(dropped.flatten().tolist()) <= {0.0, 2.0}
        assert len(set(numbers.flatten().tolist())) > rows * 11 - 3


def test_multinomial_draws_by_weights():
    weights = torch.tensor([[0.1, 0.0, 0.6, 0.3], [1.0, 1.0, 0.0, 2.0]])
    torch.manual_seed(0)
    many = torch.compile(lambda w: torch.multinomial(w, 4000, replacement=True), fullgraph=True)(weights)
    shares = torch.stack([row.bincount(minlength=4) for row in many]) / many.shape[1]
    torch.testing.assert_close(shares, weights / weights.sum(1, keepdim=True), atol=0.05, rtol=0)
    apart = torch.compile(lambda w: torch.multinomial(w, 3), fullgraph=True)(weights)
    assert [sorted(row.tolist()) for row in apart] == [[0, 2, 3], [0, 1, 3]]


def test_multinomial_refuses_weights_as_in_eager():
    compiled = torch.compile(lambda w: torch.multinomial(w, 1), fullgraph=True)
    compiled(torch.ones(3))
    for wrong in (-torch.ones(3), torch.zeros(3), torch.tensor([1.0, float("nan"), 1.0])):
        with pytest.raises(RuntimeError, match="multinomial|probability"):
            compiled(wrong)
