"""Recurrent layers: values by hand, numerical gradients, packed batches as their sequences, errors."""

from __future__ import annotations

import numpy as np
import pytest

import rushlight as torch
from rushlight import nn
from rushlight.autograd.gradcheck import gradcheck, gradgradcheck
from rushlight.nn.utils.rnn import PackedSequence, pack_sequence, pad_packed_sequence, unpack_sequence


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def test_lstm_follows_its_equations():
    torch.manual_seed(0)
    layer, x = nn.LSTM(3, 2).double(), torch.randn(4, 1, 3).double()
    weight, recurrent, bias, more = (parameter.detach().numpy() for parameter in layer.parameters())
    hidden = cell = np.zeros((1, 2))
    for row in x.numpy():
        admit, forget, candidate, out = np.split(row @ weight.T + bias + hidden @ recurrent.T + more, 4, 1)
        cell = sigmoid(forget) * cell + sigmoid(admit) * np.tanh(candidate)
        hidden = sigmoid(out) * np.tanh(cell)
    output, (last, last_cell) = layer(x)
    np.testing.assert_allclose(output[-1].detach().numpy(), hidden)
    np.testing.assert_allclose(last[0].detach().numpy(), hidden)
    np.testing.assert_allclose(last_cell[0].detach().numpy(), cell)


def test_gru_follows_its_equations():
    torch.manual_seed(0)
    cell, x, state = nn.GRUCell(3, 2).double(), torch.randn(1, 3).double(), torch.randn(1, 2).double()
    weight, recurrent, bias, more = (parameter.detach().numpy() for parameter in cell.parameters())
    given, kept = np.split(x.numpy() @ weight.T + bias, 3, 1), np.split(state.numpy() @ recurrent.T + more, 3, 1)
    reset, update = sigmoid(given[0] + kept[0]), sigmoid(given[1] + kept[1])
    candidate = np.tanh(given[2] + reset * kept[2])
    expected = (1 - update) * candidate + update * state.numpy()
    np.testing.assert_allclose(cell(x, state).detach().numpy(), expected)


@pytest.mark.parametrize("kind", ["RNN", "GRU", "LSTM"])
@pytest.mark.parametrize("bidirectional", [False, True])
def test_gradients(kind, bidirectional):
    torch.manual_seed(0)
    options = {"proj_size": 1} if kind == "LSTM" else {}
    layer = getattr(nn, kind)(2, 2, 2, bidirectional=bidirectional, **options).double()
    x = torch.randn(3, 2, 2, dtype=torch.float64, requires_grad=True)
    assert gradcheck(lambda x: layer(x)[0], (x,))
    if not bidirectional:
        assert gradgradcheck(lambda x: layer(x)[0], (x,))


@pytest.mark.parametrize("kind", ["RNN", "GRU", "LSTM"])
def test_packed_batch_gives_what_its_sequences_give(kind):
    torch.manual_seed(0)
    layer = getattr(nn, kind)(2, 3, bidirectional=True)
    sequences = [torch.randn(length, 2) for length in (2, 4, 1)]
    packed, state = layer(pack_sequence(sequences, enforce_sorted=False))
    state = state[0] if kind == "LSTM" else state
    assert isinstance(packed, PackedSequence)
    for index, (sequence, output) in enumerate(zip(sequences, unpack_sequence(packed), strict=True)):
        alone, last = layer(sequence)
        last = last[0] if kind == "LSTM" else last
        assert torch.allclose(output, alone, atol=1e-6) and torch.allclose(state[:, index], last, atol=1e-6)


def test_batch_first_and_single_sequences_agree():
    torch.manual_seed(0)
    layer = nn.GRU(2, 3, batch_first=True)
    x = torch.randn(2, 5, 2)
    output, state = layer(x)
    single, last = layer(x[0])
    assert output.shape == (2, 5, 3) and torch.allclose(single, output[0]) and torch.allclose(last, state[:, 0])


def test_padding_of_a_packed_batch():
    packed = pack_sequence([torch.ones(3), torch.ones(1)])
    padded, lengths = pad_packed_sequence(packed, batch_first=True, padding_value=-1.0, total_length=4)
    assert padded.tolist() == [[1, 1, 1, -1], [1, -1, -1, -1]] and lengths.tolist() == [3, 1]


@pytest.mark.parametrize(
    ("action", "error", "text"),
    [
        (lambda: nn.LSTM(2, 3, proj_size=3), ValueError, "proj_size must be smaller than hidden_size"),
        (lambda: nn.RNN(2, 3, nonlinearity="elu"), ValueError, "Unknown nonlinearity"),
        (lambda: nn.GRU(2, 3, dropout=2), ValueError, "dropout should be a number in range"),
        (lambda: nn.GRU(2, 3)(torch.ones(2, 2, 3)), RuntimeError, "Expected 2, got 3"),
        (lambda: nn.GRU(2, 3)(torch.ones(0, 2, 2)), RuntimeError, "sequence length to be larger than 0"),
        (lambda: nn.GRU(2, 3)(torch.ones(1, 2, 2), torch.ones(1, 3, 3)), RuntimeError, "Expected hidden size"),
        (lambda: nn.LSTM(2, 3)(torch.ones(1, 2)[0]), ValueError, "Expected input to be 2D or 3D, got 1D"),
        (lambda: torch.lstm(torch.ones(1, 1, 2), [torch.ones(1, 1, 2)], [], True, 1, 0.0, False, False, False),
         RuntimeError, "lstm expects two hidden states"),
        (lambda: torch.gru(torch.ones(1, 1, 2), torch.ones(1, 1, 2), [], True, 1, 0.0, False, False, False),
         RuntimeError, "incorrect number of RNN parameters"),
    ],
)  # fmt: skip
def test_errors(action, error, text):
    with pytest.raises(error, match=text):
        action()


def test_dropout_without_a_second_layer_warns():
    with pytest.warns(UserWarning, match="non-zero dropout expects num_layers greater than 1"):
        nn.GRU(2, 3, dropout=0.5)


@pytest.mark.parametrize("bidirectional", [False, True])
@pytest.mark.parametrize("bias", [False, True])
def test_the_kernel_of_float32_gives_what_the_steps_of_float64_give(bidirectional, bias):
    torch.manual_seed(0)
    layer = nn.LSTM(2, 3, 2, bidirectional=bidirectional, bias=bias)
    x, results = torch.randn(4, 2, 2), []
    for kind in (torch.float32, torch.float64):
        given, layer = x.clone().to(kind).requires_grad_(), layer.to(kind)
        layer.zero_grad()
        output, (state, cell) = layer(given)
        (output.sum() + (state * cell).sum()).backward()
        results.append([output, state, cell, given.grad, *(parameter.grad for parameter in layer.parameters())])
    for kernel, steps in zip(*results, strict=True):
        assert torch.allclose(kernel.double(), steps, rtol=1e-4, atol=1e-5)


def test_compiled_layer_gives_the_same():
    torch.manual_seed(0)
    layer, x = nn.LSTM(2, 3, 2), torch.randn(3, 2, 2)
    with torch.no_grad():
        assert torch.allclose(torch.compile(layer, backend="aot_eager")(x)[0], layer(x)[0])


@pytest.mark.parametrize(("hidden", "batch"), [(1, 1), (16, 13), (37, 5), (64, 30), (100, 3)])
@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("mode", range(4))
def test_native_layers_agree_with_float64(mode, hidden, batch, reverse):
    """In float64 the layer runs on NumPy, so its results and gradients are a check of the native steps."""
    torch.manual_seed(hidden)
    width, found = (1, 1, 4, 3)[mode] * hidden, []
    cell = (batch, hidden) if mode == 2 else (0,)
    sizes = [(7, batch, 6), (width, 6), (width, hidden), (width,), (width,), (batch, hidden), cell]
    exact = [torch.randn(size, dtype=torch.float64) * 0.4 for size in sizes]
    exact[2] *= 1 if mode == 2 else hidden**-0.5  # without gates that forget, larger weights make small differences grow
    weights = [torch.randn(size, dtype=torch.float64) for size in [(7, batch, hidden), (batch, hidden), cell]]
    for kind in (torch.float64, torch.float32):
        leaves = [tensor.to(kind).requires_grad_() for tensor in exact]
        options = (reverse, [], mode, hidden, 1, True, False, False, True)
        results = torch.ops.aten.mkldnn_rnn_layer.default(*leaves, *options)[:3]
        loss = sum((result * weight.to(kind)).sum() for result, weight in zip(results, weights, strict=True))
        found.append([*results, *torch.autograd.grad(loss, leaves)])
    for want, have in zip(*found, strict=True):
        torch.testing.assert_close(have.double(), want, rtol=2e-5, atol=2e-5)


def test_no_sequences():
    for kind in (nn.LSTM, nn.GRU, nn.RNN):
        model = kind(6, 8, bidirectional=True)
        for dtype in (torch.float32, torch.float64):
            output, state = model.to(dtype)(torch.randn(5, 0, 6, dtype=dtype))
            assert output.shape == (5, 0, 16)
            assert (state[1] if kind is nn.LSTM else state).shape == (2, 0, 8)
            model.zero_grad()
            output.sum().backward()
            assert all(torch.equal(value.grad, torch.zeros_like(value)) for value in model.parameters())


@pytest.mark.parametrize("kind", [nn.LSTM, nn.GRU, nn.RNN])
def test_second_derivatives_of_float32(kind):
    """In float64 the layer goes by its steps, each of which can be differentiated twice."""
    torch.manual_seed(0)
    model, x = kind(3, 4, 2, bidirectional=True), torch.randn(5, 2, 3)
    found = []
    for dtype in (torch.float64, torch.float32):
        model.to(dtype)
        leaf = x.to(dtype).requires_grad_()
        (first,) = torch.autograd.grad(model(leaf)[0].square().sum(), leaf, create_graph=True)
        found.append([first, *torch.autograd.grad(first.square().sum(), [leaf, *model.parameters()])])
    for want, have in zip(*found, strict=True):
        torch.testing.assert_close(have.double(), want, rtol=1e-4, atol=1e-5)


def test_bad_layers_are_refused():
    layer = torch.ops.aten.mkldnn_rnn_layer.default
    x, state = torch.randn(5, 2, 3), torch.randn(2, 4)
    weights = [torch.randn(size) for size in ((12, 3), (12, 4), (12,), (12,))]
    rest = (4, 1, True, False, False, True)
    with pytest.raises(RuntimeError, match=r"expected cx_ of shape \[0\], got \[2, 4\]"):
        layer(x, *weights, state, state, False, [], 3, *rest)
    with pytest.raises(RuntimeError, match=r"expected weight0 of shape \[16, 3\]"):
        layer(x, *weights, state, state, False, [], 2, *rest)
    with pytest.raises(RuntimeError, match="mode from 0 to 3"):
        layer(x, *weights, state, state, False, [], 4, *rest)


def test_types_under_autocast():
    x = torch.randn(5, 3, 6)
    for kind, wanted in ((nn.LSTM, torch.bfloat16), (nn.GRU, torch.float32), (nn.RNN, torch.bfloat16)):
        with torch.autocast("cpu", dtype=torch.bfloat16):
            assert kind(6, 8)(x)[0].dtype is wanted
