"""Recurrent layers run natively: which of them at the same time, and that they agree with eager."""

from __future__ import annotations

import functools

import pytest

import rushlight as torch
from rushlight import nn
from tests.inductor.native_nodes import check, source_of, writer_of

KINDS = [nn.LSTM, nn.GRU, nn.RNN, functools.partial(nn.RNN, nonlinearity="relu")]
# Features, hidden units, layers, biases, both directions, sequences, steps.
SIZES = [
    (3, 5, 1, True, False, 1, 4), (12, 33, 2, True, True, 7, 9), (16, 64, 1, False, True, 4, 11), (20, 130, 2, True, False, 13, 3),
    (4, 16, 3, True, True, 1, 1),
]  # fmt: skip


@pytest.fixture
def threads():
    before = torch.get_num_threads()
    yield torch.set_num_threads
    torch.set_num_threads(before)


@pytest.mark.parametrize("sizes", SIZES)
@pytest.mark.parametrize("kind", KINDS)
def test_layers(kind, sizes):
    features, hidden, layers, bias, both, batch, steps = sizes
    model = kind(features, hidden, layers, bias=bias, bidirectional=both, batch_first=True).eval()
    x = torch.randn(batch, steps, features)
    state = torch.randn(layers * (1 + both), batch, hidden)
    state = (state, torch.randn_like(state)) if kind is nn.LSTM else state
    compiled = torch.compile(model, fullgraph=True)
    with torch.no_grad():
        for inputs in ((x,), (x, state), (x.mT.contiguous().mT, state)):
            want = model(*inputs)
            for _ in range(3):  # the first calls pack weights as they go
                torch.testing.assert_close(compiled(*inputs), want, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("kind", KINDS)
def test_no_node_is_left_to_eager(kind):
    model = kind(6, 8, 2, bidirectional=True).eval()
    with torch.no_grad():
        check(lambda x: model(x)[0], torch.randn(5, 3, 6))


@pytest.mark.parametrize("count", [1, 2, 5])
def test_numbers_of_threads(threads, count):
    threads(count)
    for kind, hidden, batch in ((nn.LSTM, 48, 3), (nn.GRU, 100, 17)):
        model, x = kind(9, hidden, bidirectional=True).eval(), torch.randn(6, batch, 9)
        with torch.no_grad():
            torch.testing.assert_close(torch.compile(model, fullgraph=True)(x), model(x), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("kind", KINDS)
def test_open_sizes(kind):
    model = kind(6, 20, 2, bidirectional=True).eval()
    compiled = torch.compile(model, fullgraph=True, dynamic=True)
    sizes = (5, 3), (9, 2), (40, 12), (1, 4)
    with torch.no_grad():
        for steps, batch in sizes:
            x = torch.randn(steps, batch, 6)
            torch.testing.assert_close(compiled(x), model(x), rtol=1e-5, atol=1e-5)
    for steps, batch in sizes:
        x, found = torch.randn(steps, batch, 6, requires_grad=True), []
        for run in (compiled, model):
            found.append(torch.autograd.grad(run(x)[0].square().sum(), [x, *model.parameters()]))
        torch.testing.assert_close(*found, rtol=1e-4, atol=1e-5)


def test_changed_parameters():
    model, x = nn.LSTM(6, 20, bidirectional=True).eval(), torch.randn(5, 3, 6)
    compiled = torch.compile(model, fullgraph=True)
    with torch.no_grad():
        compiled(x), compiled(x)
        for parameter in model.parameters():
            parameter.mul_(0.5)
        torch.testing.assert_close(compiled(x), model(x), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("both", [True, False])
@pytest.mark.parametrize("kind", KINDS)
def test_gradients(kind, both):
    model = kind(6, 20, 2, bidirectional=both)
    x, state = torch.randn(5, 3, 6), tuple(torch.randn(2 * (1 + both), 3, 20) for _ in range(2))
    found = []
    for run in (torch.compile(model, fullgraph=True), model):
        leaves = [value.clone().requires_grad_() for value in (x, *state)]
        output, final = run(leaves[0], tuple(leaves[1:])) if kind is nn.LSTM else run(*leaves[:2])
        final = final if kind is nn.LSTM else (final,)
        loss = output.square().sum() + sum(value.sin().sum() for value in final)
        wanted = leaves[: 1 + len(final)]
        found.append((output, *final, *torch.autograd.grad(loss, [*wanted, *model.parameters()])))
    torch.testing.assert_close(*found, rtol=1e-4, atol=1e-5)


def test_results_may_be_written_to():
    model, x = nn.LSTM(6, 20).eval(), torch.randn(1, 3, 6)
    with torch.no_grad():
        output, (hidden, cell) = torch.compile(model, fullgraph=True)(x)
        wanted = output.clone(), cell.clone()
        hidden.zero_()
        torch.testing.assert_close((output, cell), wanted)


def together(function, *inputs) -> list[int]:
    """How many passes each call makes at the same time."""
    groups = writer_of(function, *inputs).write().groups
    return [len(group.members) for group in groups if group.template is not None and group.template.kind == "recurrent"]


def test_text_of_two_directions():
    text = source_of(nn.LSTM(6, 8, bidirectional=True), torch.zeros(5, 3, 6))
    assert "{5L, 3L, 8L, false, in0, panels, in1, in2, nullptr, out0, out0 + 120L, nullptr}," in text
    assert "{5L, 3L, 8L, true, in3, panels1, in1 + 24L, in2 + 24L, nullptr, out1, out1 + 120L, nullptr}," in text
    assert "rl::recurrent_steps<rl::lstm_step>(passes, 2);" in text


def test_both_ways_back():
    model, x = nn.GRU(6, 8, bidirectional=True), torch.randn(5, 3, 6)

    def gradients(x):
        leaf = x.detach().requires_grad_()
        with torch.enable_grad():
            return torch.autograd.grad(model(leaf)[0].square().sum(), [leaf, *model.parameters()])

    groups = writer_of(gradients, x).write().groups
    templates = [group for group in groups if group.template is not None and group.template.kind.startswith("recurrent")]
    assert [(group.template.kind, len(group.members)) for group in templates] == [("recurrent", 2), ("recurrent_backward", 2)]


def test_layers_that_need_one_another():
    assert together(nn.LSTM(6, 8, 3, bidirectional=True), torch.zeros(5, 3, 6)) == [2, 2, 2]
    assert together(nn.LSTM(8, 8, 2), torch.zeros(5, 3, 8)) == [1, 1]
    first, second = nn.LSTM(8, 8), nn.LSTM(8, 8)
    x, y = torch.zeros(5, 3, 8), torch.zeros(5, 3, 8)
    assert together(lambda x, y: second(y + first(x)[0].sin())[0], x, y) == [1, 1]


def test_layers_of_their_own():
    first, second, third = nn.LSTM(8, 8), nn.LSTM(6, 8), nn.LSTM(6, 8)
    x, y = torch.zeros(5, 3, 8), torch.zeros(5, 3, 6)
    assert together(lambda x, y: (first(x)[0], second(y)[0]), x, y) == [2]
    assert together(lambda x, y: (first(x)[0], second(y)[0], third(y)[0]), x, y) == [2, 1]
    assert together(lambda x, y: (first(x)[0].sum(), second(y)[0].sum()), x, y) == [2]  # what reads the first comes later
    other = nn.GRU(6, 8)
    assert together(lambda x, y: (first(x)[0], other(y)[0]), x, y) == [1, 1]
    assert together(lambda x, y: (first(x)[0], second(torch.cat([y, y]))[0]), x, y) == [1, 1]


def test_one_layer_for_two_inputs():
    model, other = nn.LSTM(6, 8).eval(), nn.LSTM(6, 8).eval()
    x, y = torch.randn(5, 3, 6), torch.randn(5, 3, 6)

    def function(x, y):
        return model(x)[0], model(y)[0], other(model(x + y)[0][..., :6])[0], other(y)[0]

    compiled = torch.compile(function, fullgraph=True)
    with torch.no_grad():
        for _ in range(3):
            torch.testing.assert_close(compiled(x, y), function(x, y), rtol=1e-5, atol=1e-5)


def test_other_types_and_empty_inputs_run_in_eager():
    model = nn.LSTM(6, 8).eval()
    with torch.no_grad():
        x = torch.randn(5, 0, 6)
        torch.testing.assert_close(torch.compile(model, fullgraph=True)(x), model(x))
        double, x = nn.LSTM(6, 8).double().eval(), torch.randn(5, 2, 6, dtype=torch.float64)
        torch.testing.assert_close(torch.compile(double, fullgraph=True)(x), double(x))


def test_outputs_that_nobody_needs():
    model, x = nn.LSTM(6, 8, bidirectional=True).eval(), torch.randn(5, 3, 6)
    with torch.no_grad():
        for pick in (lambda x: model(x)[1][1], lambda x: model(x)[1][0][1], lambda x: model(x)[0][-1, :, :8]):
            torch.testing.assert_close(torch.compile(pick, fullgraph=True)(x), pick(x), rtol=1e-5, atol=1e-5)
