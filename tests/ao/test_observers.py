"""Observers: their state, scale and zero point are torch's, bit for bit."""

from __future__ import annotations

import numpy as np
import pytest

import rushlight
from tests.quantized.conversions import to_rushlight

torch = pytest.importorskip("torch")
pytestmark = [pytest.mark.oracle, pytest.mark.filterwarnings("ignore")]

OBSERVERS = {
    "min_max": lambda t, q: q.MinMaxObserver(),
    "min_max_signed": lambda t, q: q.MinMaxObserver(dtype=t.qint8, qscheme=t.per_tensor_symmetric),
    "symmetric_unsigned": lambda t, q: q.MinMaxObserver(dtype=t.quint8, qscheme=t.per_tensor_symmetric),
    "reduced": lambda t, q: q.MinMaxObserver(reduce_range=True),
    "own_range": lambda t, q: q.MinMaxObserver(dtype=t.qint8, quant_min=-20, quant_max=35),
    "own_range_reduced": lambda t, q: q.MinMaxObserver(quant_min=0, quant_max=201, reduce_range=True),
    "int32": lambda t, q: q.MinMaxObserver(dtype=t.qint32),
    "average": lambda t, q: q.MovingAverageMinMaxObserver(averaging_constant=0.1),
    "channels": lambda t, q: q.PerChannelMinMaxObserver(ch_axis=1),
    "channels_signed": lambda t, q: q.PerChannelMinMaxObserver(dtype=t.qint8, qscheme=t.per_channel_symmetric),
    "channels_floating": lambda t, q: q.default_float_qparams_observer(),
    "channels_4bit": lambda t, q: q.default_float_qparams_observer_4bit(),
    "channels_average": lambda t, q: q.MovingAveragePerChannelMinMaxObserver(averaging_constant=0.3, ch_axis=0),
    "histogram": lambda t, q: q.HistogramObserver(bins=256),
    "small_histogram": lambda t, q: q.HistogramObserver(bins=16),
    "histogram_reduced": lambda t, q: q.HistogramObserver(reduce_range=True),
    "histogram_signed": lambda t, q: q.HistogramObserver(bins=128, dtype=t.qint8, qscheme=t.per_tensor_symmetric),
    "default_weight": lambda t, q: q.weight_observer_range_neg_127_to_127(),
    "fixed": lambda t, q: q.default_fixed_qparams_range_neg1to1_observer(),
}  # fmt: skip


def both(name: str):
    make = OBSERVERS[name]
    return make(torch, torch.ao.quantization), make(rushlight, rushlight.ao.quantization)


def inputs():
    torch.manual_seed(3)
    return [torch.randn(4, 6, 5) * scale + shift for scale, shift in ((1, 0), (0.5, 0.25), (3, -1), (0.01, 0))]


@pytest.mark.parametrize("name", OBSERVERS)
def test_scales_are_torchs(name):
    theirs, ours = both(name)
    for x in inputs():
        assert ours(to_rushlight(x)).shape == theirs(x).shape
        for found, expected in zip(ours.calculate_qparams(), theirs.calculate_qparams(), strict=True):
            assert str(found.dtype) == str(expected.dtype)
            np.testing.assert_array_equal(found.numpy(), expected.numpy())
    found, expected = ours.state_dict(), theirs.state_dict()
    assert list(found) == list(expected)
    for key, value in expected.items():
        np.testing.assert_array_equal(found[key].numpy(), value.numpy())
    assert repr(ours) == repr(theirs)


@pytest.mark.parametrize("name", ["min_max", "channels_average", "histogram"])
def test_states_are_exchanged(name):
    theirs, _ = both(name)
    for x in inputs():
        theirs(x)
    ours = both(name)[1]
    ours.load_state_dict({key: to_rushlight(value) for key, value in theirs.state_dict().items()})
    for found, expected in zip(ours.calculate_qparams(), theirs.calculate_qparams(), strict=True):
        np.testing.assert_array_equal(found.numpy(), expected.numpy())


@pytest.mark.parametrize("values", [[0.0, 0.0], [3.0, 3.0], [-2.0, -1.0], [1e-9, 2e-9], [-1e30, 1e30]], ids=str)
@pytest.mark.parametrize("name", ["min_max", "min_max_signed"])
def test_unusual_ranges(name, values):
    theirs, ours = both(name)
    x = torch.tensor(values)
    theirs(x), ours(to_rushlight(x))
    for found, expected in zip(ours.calculate_qparams(), theirs.calculate_qparams(), strict=True):
        np.testing.assert_array_equal(found.numpy(), expected.numpy())


@pytest.mark.parametrize("value", [0.0, 3.0])
def test_histogram_of_one_value(value):
    theirs, ours = both("small_histogram")
    for x in (torch.full((5,), value), torch.tensor([value, value + 1, value + 1.1])):
        theirs(x), ours(to_rushlight(x))
    np.testing.assert_array_equal(ours.histogram.numpy(), theirs.histogram.numpy())
    for found, expected in zip(ours.calculate_qparams(), theirs.calculate_qparams(), strict=True):
        np.testing.assert_array_equal(found.numpy(), expected.numpy())


def test_arguments_are_given_in_advance():
    for library in (torch, rushlight):
        made = []
        wrapped = library.ao.quantization.MinMaxObserver.with_args(dtype=library.qint8).with_args(quant_min=-8, quant_max=7)
        wrapped = wrapped.with_callable_args(eps=lambda made=made: made.append(1) or 0.5)
        first, second = wrapped(), wrapped(quant_max=5)
        assert len(made) == 2 and first is not second
        assert (first.quant_min, first.quant_max, second.quant_max, first.eps.item()) == (-8, 7, 5, 0.5)


@pytest.mark.parametrize(
    "make",
    [
        lambda t, q: q.MinMaxObserver(qscheme=t.per_channel_affine),
        lambda t, q: q.PerChannelMinMaxObserver(qscheme=t.per_tensor_affine),
        lambda t, q: q.MinMaxObserver(dtype=t.float32),
        lambda t, q: q.MinMaxObserver(quant_min=1, quant_max=7),
        lambda t, q: q.MinMaxObserver(dtype=t.qint8, quant_min=-200, quant_max=200),
        lambda t, q: q.HistogramObserver(is_dynamic=True),
        lambda t, q: q.MovingAverageMinMaxObserver(is_dynamic=True),
        lambda t, q: q.QConfig(q.MinMaxObserver(), q.MinMaxObserver),
        lambda t, q: q.get_default_qconfig("cuda"),
        lambda t, q: q.FakeQuantize(quant_min=0, quant_max=300),
    ],
)
def test_errors_are_torchs(make):
    with pytest.raises(Exception) as theirs:  # noqa: B017
        make(torch, torch.ao.quantization)
    with pytest.raises(type(theirs.value)):
        make(rushlight, rushlight.ao.quantization)
