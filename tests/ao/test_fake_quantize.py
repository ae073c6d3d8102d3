"""Fake quantization: values, gradients and what it observes are torch's; compiled code agrees with eager."""

from __future__ import annotations

import numpy as np
import pytest

import rushlight
from tests.quantized.conversions import to_rushlight

torch = pytest.importorskip("torch")
pytestmark = [pytest.mark.oracle, pytest.mark.filterwarnings("ignore")]


def _int32(*values: int):
    return torch.tensor(values, dtype=torch.int32)


def _cases() -> dict:
    torch.manual_seed(1)
    scales, x = torch.rand(4) * 0.02 + 0.003, torch.randn(4, 6) * 3
    return {
        "per_tensor": (lambda t, x: t.fake_quantize_per_tensor_affine(x, 0.017, 13, 0, 255), (x,), 1),
        "halves": (lambda t, x: t.fake_quantize_per_tensor_affine(x, 0.5, 3, 0, 15), (torch.arange(-8, 8) * 0.25,), 1),
        "tensors": (
            lambda t, x, s, z: t.fake_quantize_per_tensor_affine(x, s, z, 0, 127), (x, scales[:1], _int32(13)), 1,
        ),
        "per_channel": (
            lambda t, x, s, z: t.fake_quantize_per_channel_affine(x, s, z, 0, -128, 127), (x, scales, _int32(0, 3, -4, 7)), 1,
        ),
        "floating_zero_points": (
            lambda t, x, s, z: t.fake_quantize_per_channel_affine(x, s, z, 0, 0, 255), (x, scales, torch.rand(4) * 50), 1,
        ),
        "learnable": (
            lambda t, x, s, z: t._fake_quantize_learnable_per_tensor_affine(x, s, z, 0, 255, 0.5),
            (x, scales[:1], torch.tensor([13.4])), 3,
        ),
        "learnable_channels": (
            lambda t, x, s, z: t._fake_quantize_learnable_per_channel_affine(x, s, z, 0, -128, 127, 0.25),
            (x, scales, torch.tensor([0.0, 3.4, -4.6, 7.5])), 3,
        ),
    }  # fmt: skip


CASES = _cases()


def _run(library, function, inputs, count: int) -> list:
    """The result, and the gradients of the first `count` inputs."""
    for each in inputs[:count]:
        each.requires_grad_()
    result = function(library, *inputs)
    (result * library.arange(float(result.numel())).reshape(result.shape)).sum().backward()
    return [result.detach().numpy(), *(each.grad.numpy() for each in inputs[:count])]


@pytest.mark.parametrize("name", CASES)
def test_agrees_with_torch(name):
    function, inputs, count = CASES[name]
    expected = _run(torch, function, [each.clone().detach() for each in inputs], count)
    found = _run(rushlight, function, to_rushlight(list(inputs)), count)
    for got, want in zip(found, expected, strict=True):
        assert got.shape == want.shape and got.dtype == want.dtype
        np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-5)
    np.testing.assert_array_equal(found[0], expected[0])


@pytest.mark.parametrize("name", ["tensors", "per_channel", "learnable_channels"])
def test_compiled_agrees_with_eager(name):
    function, inputs, count = CASES[name]
    eager = _run(rushlight, function, to_rushlight(list(inputs)), count)
    compiled = rushlight.compile(lambda *values: function(rushlight, *values))
    found = _run(rushlight, lambda library, *values: compiled(*values), to_rushlight(list(inputs)), count)
    for got, want in zip(found, eager, strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("per_row", [False, True])
@pytest.mark.parametrize("symmetric", [False, True])
def test_observing_on_the_way(per_row, symmetric):
    def state(library):
        start = [library.tensor([])] * 2 if per_row else [library.tensor(float("inf")), library.tensor(-float("inf"))]
        on = [library.ones(1, dtype=library.int64) for _ in range(2)]
        return [*on, *(each.clone() for each in start), library.tensor([1.0]), library.tensor([0], dtype=library.int32)]

    theirs, ours = state(torch), state(rushlight)
    torch.manual_seed(0)
    for step in range(4):
        x = torch.randn(4, 6, 2)
        if step == 3:
            theirs[0][0] = ours[0][0] = 0  # the ranges stay
        settings = (0.01, -128, 127, 0, per_row, symmetric)
        expected = torch.fused_moving_avg_obs_fake_quant(x, *theirs, *settings)
        found = rushlight.fused_moving_avg_obs_fake_quant(to_rushlight(x), *ours, *settings)
        np.testing.assert_array_equal(found.numpy(), expected.numpy())
        for got, want in zip(ours, theirs, strict=True):
            np.testing.assert_array_equal(got.numpy(), want.numpy())


MODULES = {
    "default": lambda q: q.default_fake_quant(),
    "weight": lambda q: q.default_weight_fake_quant(),
    "channels": lambda q: q.default_per_channel_weight_fake_quant(),
    "fused": lambda q: q.default_fused_act_fake_quant(),
    "fused_channels": lambda q: q.fused_per_channel_wt_fake_quant_range_neg_127_to_127(),
    "embedding": lambda q: q.default_embedding_fake_quant(),
    "fixed": lambda q: q.default_fixed_qparams_range_0to1_fake_quant(),
    "histogram": lambda q: q.default_histogram_fake_quant(),
}


@pytest.mark.parametrize("name", MODULES)
def test_modules_agree_with_torch(name):
    theirs, ours = (MODULES[name](library.ao.quantization) for library in (torch, rushlight))
    torch.manual_seed(2)
    switches = [("apply", "disable_observer"), ("apply", "disable_fake_quant"), ("apply", "enable_observer"), None]
    for switch in switches:
        x = torch.randn(4, 6)
        np.testing.assert_array_equal(ours(to_rushlight(x)).numpy(), theirs(x).numpy())
        if switch is not None:
            for library, module in ((torch, theirs), (rushlight, ours)):
                module.apply(getattr(library.ao.quantization, switch[1]))
    found, expected = ours.state_dict(), theirs.state_dict()
    assert list(found) == list(expected)
    for key, value in expected.items():
        np.testing.assert_array_equal(found[key].numpy(), value.numpy())
    assert repr(ours) == repr(theirs)


def observed(t, running: int = 1, switches: int = 1, per_row: bool = False):
    """Observe and round a matrix of two rows, with `running` ranges and switches of `switches` elements."""
    on, offsets = t.ones(switches, dtype=t.int64), t.zeros(running, dtype=t.int32)
    ranges = [t.zeros(running), t.ones(running), t.ones(running)]
    return t.fused_moving_avg_obs_fake_quant(t.ones(2, 4), on, on, *ranges, offsets, 0.01, 0, 255, 0, per_row)


@pytest.mark.parametrize(
    "call",
    [
        lambda t: t.fake_quantize_per_tensor_affine(t.zeros(2), 0.1, 3, 5, 2),
        lambda t: t.fake_quantize_per_tensor_affine(t.zeros(2), 0.1, 300, 0, 255),
        lambda t: t.fake_quantize_per_channel_affine(t.zeros(2, 2), t.ones(3), t.zeros(3, dtype=t.int32), 0, 0, 255),
        lambda t: t.fake_quantize_per_channel_affine(t.zeros(2, 2), t.ones(2), t.zeros(2, dtype=t.int32), 2, 0, 255),
        lambda t: t.fake_quantize_per_channel_affine(t.zeros(2, 2), t.ones(2), t.zeros(2, dtype=t.int32) - 1, 0, 0, 255),
        lambda t: observed(t, running=2),
        lambda t: observed(t, switches=2),
        lambda t: observed(t, per_row=True, running=3),
    ],
)
def test_errors_are_torchs(call):
    for library in (torch, rushlight):
        with pytest.raises((RuntimeError, IndexError)):
            call(library)
