"""Gradients of tensors from outside, and dicts whose keys are parameters: optimizers that users write are captured whole."""

from __future__ import annotations

import gc
import warnings
import weakref
from collections import defaultdict

import pytest

import rushlight as torch
from rushlight import nn

pytestmark = pytest.mark.usefixtures("small_heap")


def counted():
    graphs = []

    def backend(module, inputs):
        graphs.append(module)
        return module.forward

    return graphs, backend


def parameters_of(*shapes):
    return [nn.Parameter(torch.arange(float(torch.empty(shape).numel())).view(shape)) for shape in shapes]


def test_a_gradient_is_an_input():
    graphs, backend = counted()
    step = torch.compile(lambda p: p.detach() - p.grad * 2, backend=backend, fullgraph=True)
    (weight,) = parameters_of((3,))
    for value in (1.0, 2.0, 3.0):
        weight.grad = torch.full((3,), value)
        assert step(weight).tolist() == [0 - 2 * value, 1 - 2 * value, 2 - 2 * value]
    assert len(graphs) == 1


def test_whether_there_is_a_gradient_is_guarded():
    graphs, backend = counted()
    step = torch.compile(lambda p: p * 2 if p.grad is None else p + p.grad, backend=backend, fullgraph=True)
    (weight,) = parameters_of((2,))
    for gradient in (None, torch.ones(2), None, torch.ones(2)):
        weight.grad = gradient
        expected = weight * 2 if gradient is None else weight + gradient
        assert torch.equal(step(weight), expected)
    assert len(graphs) == 2


def test_gradients_are_written_in_place():
    graphs, backend = counted()

    @torch.no_grad()
    def clip(parameters):
        for parameter in parameters:
            if parameter.grad is not None:
                parameter.grad.clamp_(-1, 1)

    weights = parameters_of((2,), (3,), (2, 2))
    weights[0].grad, weights[2].grad = torch.tensor([3.0, -0.5]), torch.full((2, 2), -7.0)
    kept = weights[0].grad
    torch.compile(clip, backend=backend, fullgraph=True)(weights)
    assert weights[0].grad is kept and kept.tolist() == [1, -0.5] and weights[1].grad is None
    assert weights[2].grad.tolist() == [[-1, -1], [-1, -1]] and len(graphs) == 1


def test_one_gradient_of_two_parameters():
    _, backend = counted()

    @torch.no_grad()
    def halve(parameters):
        for parameter in parameters:
            parameter.grad.mul_(0.5)

    step = torch.compile(halve, backend=backend)
    for shared in (False, True):
        weights = parameters_of((2,), (2,))
        weights[0].grad = torch.ones(2)
        weights[1].grad = weights[0].grad if shared else torch.ones(2)
        step(weights)
        assert weights[0].grad.tolist() == [0.25 if shared else 0.5] * 2


def test_gradients_of_what_is_no_leaf():
    def read(x):
        y = x * 2
        return y.sin() if x.grad is None else y

    step = torch.compile(read, backend=counted()[1])
    x = torch.ones(2, requires_grad=True) * 1
    x.retain_grad()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert torch.equal(step(x), read(x))
        x.sum().backward()
        assert torch.equal(step(x), read(x)) and x.grad is not None


@pytest.mark.parametrize("create", [
    lambda x: torch.zeros_like(x, requires_grad=True),
    lambda x: torch.full((3,), 0.5, requires_grad=True),
    lambda x: x.new_ones(3, requires_grad=True),
    lambda x: torch.arange(3.0, requires_grad=True),
], ids=["zeros_like", "full", "new_ones", "arange"])  # fmt: skip
def test_leaves_made_on_the_way(create):
    def attack(x, weight):
        delta = create(x)
        loss = ((x * weight + delta) ** 2).sum()
        loss.backward()
        return delta, loss

    def differentiate(x, weight):
        delta = create(x)
        return torch.autograd.grad(((x * weight + delta) ** 3).sum(), delta, create_graph=True)[0]

    x = torch.ones(3)
    for function in (attack, differentiate):
        weights = [torch.tensor([1.0, -2.0, 3.0], requires_grad=True) for _ in range(2)]
        expected, found = function(x, weights[0]), torch.compile(function)(x, weights[1])
        torch.testing.assert_close(found, expected)
        if function is attack:
            assert found[0].is_leaf and torch.equal(found[0].grad, expected[0].grad)
            assert torch.equal(weights[0].grad, weights[1].grad)


def test_parameters_are_keys():
    graphs, backend = counted()
    first, second, third = parameters_of((2,), (2,), (2,))
    state = defaultdict(dict)

    @torch.no_grad()
    def step(parameters):
        for parameter in parameters:
            kept = state[parameter]
            if "count" not in kept:
                kept["count"] = torch.zeros(())
            kept["count"] += 1
            parameter.add_(kept["count"])

    compiled = torch.compile(step, backend=backend, fullgraph=True)
    for _ in range(3):
        compiled([first, second])
    assert list(state) == [first, second] and [state[p]["count"].item() for p in (first, second)] == [3, 3]
    assert first.tolist() == [6, 7] and len(graphs) == 2  # once with an empty state
    compiled([second, third])
    assert [state[p]["count"].item() for p in (first, second, third)] == [3, 4, 1] and third.tolist() == [1, 2]


def test_other_parameters_under_the_same_names_are_noticed():
    first, second = parameters_of((2,), (2,))
    scales = {first: 2.0, second: 3.0}
    compiled = torch.compile(lambda p: p * scales[p], backend=counted()[1])
    assert torch.equal(compiled(first), first * 2) and torch.equal(compiled(second), second * 3)
    scales.clear()
    scales.update({second: 5.0, first: 7.0})
    assert torch.equal(compiled(first), first * 7) and torch.equal(compiled(second), second * 5)
    members = {first}
    inside = torch.compile(lambda p: p + 1 if p in members else p - 1, backend=counted()[1])
    assert torch.equal(inside(first), first + 1) and torch.equal(inside(second), second - 1)
    members.add(second)
    assert torch.equal(inside(second), second + 1)


def test_keys_are_iterated():
    first, second = parameters_of((2,), (2,))
    scales = {first: 2.0, second: 3.0}
    graphs, backend = counted()
    compiled = torch.compile(lambda: sum(p * scale for p, scale in scales.items()), backend=backend, fullgraph=True)
    assert torch.equal(compiled(), first * 2 + second * 3) and len(graphs) == 1
    assert [*torch.compile(lambda: list(scales), backend=backend)()] == [first, second]


def test_keys_among_tuples():
    (weight,) = parameters_of((2,))
    table = {(weight, 1): 2.0}
    compiled = torch.compile(lambda p: p * table[p, 1], backend=counted()[1])
    assert torch.equal(compiled(weight), weight * 2)


def test_what_is_trained_is_not_kept_alive():
    state, compiled = {}, torch.compile(lambda p: p * state[p] if p.grad is None else p, backend=counted()[1])

    def run():
        (weight,) = parameters_of((2,))
        state[weight] = 2.0
        assert torch.equal(compiled(weight), weight * 2)
        state.clear()
        return weakref.ref(weight)

    gone = [run() for _ in range(3)]
    gc.collect()
    assert [reference() for reference in gone] == [None] * 3
