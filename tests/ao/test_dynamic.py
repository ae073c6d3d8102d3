"""Dynamic quantization: layers of float tensors with quantized weights give torch's numbers."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

import rushlight
from tests.ao.pairs import assert_same_state, built_in_both, saved_by, scripted_by
from tests.quantized.conversions import assert_same, to_rushlight

torch = pytest.importorskip("torch")
pytestmark = [pytest.mark.oracle, pytest.mark.filterwarnings("ignore")]


def cells(t):
    class Cells(t.nn.Module):
        def __init__(self):
            super().__init__()
            self.lstm, self.gru = t.nn.LSTMCell(6, 5), t.nn.GRUCell(5, 4)
            self.tanh, self.relu = t.nn.RNNCell(4, 3), t.nn.RNNCell(3, 2, nonlinearity="relu")

        def forward(self, x):
            return self.relu(self.tanh(self.gru(self.lstm(x)[0])))

    return Cells()


def tables(t):
    class Tables(t.nn.Module):
        def __init__(self):
            super().__init__()
            self.one, self.bag = t.nn.Embedding(20, 8), t.nn.EmbeddingBag(20, 8, mode="sum", include_last_offset=True)

        def forward(self, x, offsets):
            return self.one(x), self.bag(x, offsets)

    return Tables()


def _indices():
    return torch.tensor([3, 7, 0, 19, 4, 4]), torch.tensor([0, 2, 2, 6])


MODELS = {
    "linear": (
        lambda t: t.nn.Sequential(t.nn.Linear(20, 30), t.nn.ReLU(), t.nn.Linear(30, 5, bias=False)), "qint8",
        lambda: (torch.randn(7, 20),),
    ),
    "linear_float16": (lambda t: t.nn.Sequential(t.nn.Linear(20, 6)), "float16", lambda: (torch.randn(2, 3, 20),)),
    "lstm": (lambda t: t.nn.Sequential(t.nn.LSTM(6, 5, 2, bidirectional=True)), "qint8", lambda: (torch.randn(4, 3, 6),)),
    "lstm_float16": (lambda t: t.nn.Sequential(t.nn.LSTM(6, 5)), "float16", lambda: (torch.randn(4, 3, 6),)),
    "gru": (lambda t: t.nn.Sequential(t.nn.GRU(6, 5, 2, batch_first=True)), "qint8", lambda: (torch.randn(3, 4, 6),)),
    "cells": (cells, "qint8", lambda: (torch.randn(3, 6),)),
    "tables": (tables, "quint8", _indices),
    "bags_4bit": (
        lambda t: t.nn.Sequential(t.nn.EmbeddingBag(20, 8, mode="sum")), "quint4x2", lambda: (torch.randint(0, 20, (3, 4)),),
    ),
}  # fmt: skip


def in_both(name: str) -> tuple:
    """The model quantized by torch and by rushlight, and arguments for it."""
    build, kind, make = MODELS[name]
    theirs, ours = built_in_both(build, torch)
    made = [
        library.ao.quantization.quantize_dynamic(model, dtype=getattr(library, kind))
        for library, model in ((torch, theirs), (rushlight, ours))
    ]
    torch.manual_seed(5)
    return *made, make()


@pytest.mark.parametrize("name", MODELS)
def test_results_are_torchs(name):
    theirs, ours, inputs = in_both(name)
    assert repr(ours) == repr(theirs)
    expected = theirs(*inputs)
    if name == "bags_4bit":  # torch keeps the scales of such tables in float16
        np.testing.assert_allclose(ours(*to_rushlight(inputs)).numpy(), expected.numpy(), atol=2e-3)
    else:
        assert_same_state(ours, theirs)
        assert_same(ours(*to_rushlight(inputs)), expected)
        file = scripted_by(rushlight, rushlight.jit.script(ours))
        assert_same(rushlight.jit.load(file)(*to_rushlight(inputs)), expected)
        file.seek(0)
        assert_same(to_rushlight(torch.jit.load(file)(*inputs)), expected)


@pytest.mark.parametrize("name", ["linear", "tables"])
def test_states_are_exchanged(name):
    theirs, ours, inputs = in_both(name)
    build, kind, _ = MODELS[name]
    fresh = rushlight.ao.quantization.quantize_dynamic(build(rushlight), dtype=getattr(rushlight, kind))
    fresh.load_state_dict(rushlight.load(saved_by(torch, theirs.state_dict())))
    assert_same(fresh(*to_rushlight(inputs)), theirs(*inputs))
    other = torch.ao.quantization.quantize_dynamic(build(torch), dtype=getattr(torch, kind))
    other.load_state_dict(torch.load(saved_by(rushlight, ours.state_dict())))
    assert_same(to_rushlight(other(*inputs)), theirs(*inputs))


@pytest.mark.parametrize("name", ["lstm", "lstm_float16", "gru", "cells"])
def test_states_with_packed_weights(name):
    theirs, ours, inputs = in_both(name)
    build, kind, _ = MODELS[name]
    expected = theirs(*inputs)
    for file in (saved_by(rushlight, ours.state_dict()), saved_by(torch, theirs.state_dict())):
        fresh = rushlight.ao.quantization.quantize_dynamic(build(rushlight), dtype=getattr(rushlight, kind))
        fresh.load_state_dict(rushlight.load(file))
        assert_same(fresh(*to_rushlight(inputs)), expected)


def test_packed_sequences():
    for kind in ("LSTM", "GRU"):
        theirs, ours = built_in_both(lambda t, kind=kind: t.nn.Sequential(getattr(t.nn, kind)(6, 4)), torch)
        theirs, ours = (
            library.ao.quantization.quantize_dynamic(model)[0] for library, model in ((torch, theirs), (rushlight, ours))
        )
        x, lengths = torch.randn(5, 3, 6), torch.tensor([2, 5, 3])
        found, expected = (
            library.nn.utils.rnn.pad_packed_sequence(
                module(library.nn.utils.rnn.pack_padded_sequence(value, sizes, enforce_sorted=False))[0]
            )
            for library, module, value, sizes in (
                (rushlight, ours, to_rushlight(x), to_rushlight(lengths)),
                (torch, theirs, x, lengths),
            )
        )
        assert_same(found, expected)


def test_chosen_modules():
    nn, tq = rushlight.nn, rushlight.ao.quantization
    model = nn.Sequential(nn.Linear(4, 4), nn.Sequential(nn.Linear(4, 4)), nn.Linear(4, 4))
    made = tq.quantize_dynamic(model, {"1": tq.per_channel_dynamic_qconfig, "2": tq.float16_dynamic_qconfig})
    assert type(made[0]) is nn.Linear and made[1][0].weight().qscheme() is rushlight.per_channel_affine
    assert made[2]._packed_params.dtype is rushlight.float16
    with pytest.raises(ValueError, match="Don't know how to quantize"):
        tq.quantize_dynamic(model, dtype=rushlight.int8)


def test_copies_and_pickles():
    _, ours, inputs = in_both("linear")
    x = to_rushlight(inputs)[0]
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(ours))(x).numpy(), ours(x).numpy())


def test_convolutions():
    """Against floats: torch quantizes the results of these layers by the scale of their input, and clamps them to its range."""
    nn, dynamic = rushlight.nn, rushlight.ao.nn.quantized.dynamic
    for rank in (1, 2, 3):
        kinds = (f"Conv{rank}d", f"ConvTranspose{rank}d")
        for kind in kinds:
            layer = getattr(nn, kind)(4, 6, 3, padding=1)
            layer.qconfig = rushlight.ao.quantization.default_dynamic_qconfig
            made = getattr(dynamic, kind).from_float(layer)
            x = rushlight.randn(2, 4, *[6] * rank)
            assert (made(x) - layer(x)).abs().max() < 0.15
