"""Static quantization and quantization-aware training, module by module: integers, states and archives are torch's."""

from __future__ import annotations

import numpy as np
import pytest

import rushlight
from tests.ao.pairs import assert_same_state, built_in_both, saved_by, scripted_by
from tests.quantized.conversions import assert_same, to_rushlight

torch = pytest.importorskip("torch")
pytestmark = [pytest.mark.oracle, pytest.mark.filterwarnings("ignore")]


def residual(t):
    """Convolutions with batch norm, a residual sum, pooling and a linear layer."""
    nn, tq = t.nn, t.ao.quantization

    class Residual(nn.Module):
        def __init__(self):
            super().__init__()
            self.quant, self.dequant = tq.QuantStub(), tq.DeQuantStub()
            self.conv1, self.bn1, self.relu1 = nn.Conv2d(3, 8, 3, padding=1, bias=False), nn.BatchNorm2d(8), nn.ReLU()
            self.conv2, self.bn2 = nn.Conv2d(8, 8, 3, padding=1), nn.BatchNorm2d(8)
            self.add, self.pool = t.ao.nn.quantized.FloatFunctional(), nn.MaxPool2d(2)
            self.average, self.linear, self.relu2 = nn.AdaptiveAvgPool2d(1), nn.Linear(8, 5), nn.ReLU()

        def forward(self, x):
            x = self.relu1(self.bn1(self.conv1(self.quant(x))))
            x = self.pool(self.add.add_relu(x, self.bn2(self.conv2(x))))
            return self.dequant(self.relu2(self.linear(t.flatten(self.average(x), 1))))

    return Residual()


def sequence(*layers):
    """A model of layers, between stubs."""

    def build(t):
        return t.nn.Sequential(t.ao.quantization.QuantStub(), *(each(t) for each in layers), t.ao.quantization.DeQuantStub())

    return build


RESIDUAL_FUSED = [["conv1", "bn1", "relu1"], ["conv2", "bn2"], ["linear", "relu2"]]
MODELS = {
    "residual": (residual, (2, 3, 12, 12), RESIDUAL_FUSED),
    "not_fused": (residual, (2, 3, 12, 12), None),
    "activations": (
        sequence(
            lambda t: t.nn.Linear(12, 12), lambda t: t.nn.Hardswish(), lambda t: t.nn.LeakyReLU(0.2), lambda t: t.nn.ELU(),
            lambda t: t.nn.ReLU6(), lambda t: t.nn.Dropout(0.3), lambda t: t.nn.Linear(12, 3), lambda t: t.nn.Sigmoid(),
        ), (5, 12), None,
    ),
    "norms": (
        sequence(
            lambda t: t.nn.Conv2d(3, 8, 1), lambda t: t.nn.GroupNorm(2, 8), lambda t: t.nn.BatchNorm2d(8),
            lambda t: t.nn.InstanceNorm2d(8, affine=True), lambda t: t.nn.ReLU(), lambda t: t.nn.LayerNorm([8, 6, 6]),
        ), (2, 3, 6, 6), None,
    ),
    "lines": (
        sequence(
            lambda t: t.nn.Conv1d(4, 8, 3, padding=1), lambda t: t.nn.ReLU(), lambda t: t.nn.Conv1d(8, 6, 5, stride=2, groups=2)
        ), (2, 4, 16), [["1", "2"]],
    ),
    "volumes": (
        sequence(
            lambda t: t.nn.Conv3d(2, 4, 3, padding=1), lambda t: t.nn.BatchNorm3d(4), lambda t: t.nn.ReLU(),
            lambda t: t.nn.Conv3d(4, 3, 2, stride=2),
        ), (1, 2, 6, 6, 6), [["1", "2", "3"]],
    ),
    "reflected": (
        sequence(
            lambda t: t.nn.Conv2d(3, 4, 3, padding=1, padding_mode="reflect"), lambda t: t.nn.Conv2d(4, 4, 3, 2, 1, 1, 2, False)
        ), (2, 3, 7, 7), None,
    ),
}  # fmt: skip


def quantized(t, model, inputs: list, fused: list | None, qconfig: str = "default_per_channel_qconfig"):
    """The prepared and the quantized model."""
    tq, model = t.ao.quantization, model.eval()
    if fused:
        model = tq.fuse_modules(model, fused)
    model.qconfig = getattr(tq, qconfig)
    prepared = tq.prepare(model)
    for each in inputs:
        prepared(each)
    return prepared, tq.convert(prepared)


def calibration(shape: tuple) -> list:
    torch.manual_seed(1)
    return [torch.randn(shape) * scale for scale in (1, 0.5, 2)]


@pytest.mark.parametrize("name", MODELS)
def test_static_quantization(name):
    build, shape, fused = MODELS[name]
    theirs, ours = built_in_both(build, torch)
    inputs = calibration(shape)
    theirs = quantized(torch, theirs, inputs, fused)
    ours = quantized(rushlight, ours, to_rushlight(inputs), fused)
    assert_same_state(ours[0], theirs[0])
    assert_same_state(ours[1], theirs[1])
    granted = {"activations": 0.05, "norms": 0.07}.get(name, 1e-5)  # one quantum where float32 values differ in the last bit
    for x in inputs:
        np.testing.assert_allclose(ours[1](to_rushlight(x)).numpy(), theirs[1](x).numpy(), atol=granted)
    kinds = [[type(each).__name__ for each in model.modules()] for model in (ours[1], theirs[1])]
    assert kinds[0] == kinds[1]


def test_default_configuration():
    theirs, ours = built_in_both(residual, torch)
    inputs = calibration((2, 3, 12, 12))
    models = []
    for library, model, values in ((torch, theirs, inputs), (rushlight, ours, to_rushlight(inputs))):
        model = library.ao.quantization.fuse_modules(model.eval(), RESIDUAL_FUSED)
        model.qconfig = library.ao.quantization.get_default_qconfig("x86")
        models.append(library.ao.quantization.quantize(model, lambda model, data: [model(x) for x in data], (values,)))
    assert_same_state(models[1], models[0])
    assert_same(models[1](to_rushlight(inputs[0])), models[0](inputs[0]))


@pytest.mark.parametrize("name", ["residual", "lines", "volumes"])
def test_states_and_archives_are_exchanged(name):
    build, shape, fused = MODELS[name]
    inputs = calibration(shape)
    first = torch.manual_seed(0) and quantized(torch, build(torch), inputs, fused)[1]
    ours = quantized(rushlight, build(rushlight), to_rushlight(inputs[:1]), fused)[1]
    assert not ours.load_state_dict(rushlight.load(saved_by(torch, first.state_dict()))).missing_keys
    assert_same(ours(to_rushlight(inputs[1])), first(inputs[1]))
    other = quantized(torch, build(torch), inputs[:1], fused)[1]
    other.load_state_dict(torch.load(saved_by(rushlight, ours.state_dict())))
    assert_same(ours(to_rushlight(inputs[2])), other(inputs[2]))
    for made in (rushlight.jit.script(ours), rushlight.jit.trace(ours, to_rushlight(inputs[0]))):
        file = scripted_by(rushlight, made)
        assert_same(rushlight.jit.load(file)(to_rushlight(inputs[1])), first(inputs[1]))
        file.seek(0)
        assert_same(to_rushlight(torch.jit.load(file)(inputs[1])), first(inputs[1]))


# Quantization-aware training


def train(t, model, inputs: list, qconfig) -> list:
    """Losses of some steps with batch statistics, then of some with frozen ones, and the model."""
    tq = t.ao.quantization
    model = tq.fuse_modules_qat(model.train(), [["conv1", "bn1", "relu1"], ["conv2", "bn2"], ["linear", "relu2"]])
    model.qconfig = qconfig(tq)
    model = tq.prepare_qat(model)
    optimizer, losses = t.optim.SGD(model.parameters(), 0.05), []
    for step, x in enumerate(inputs):
        if step == 2:
            model.apply(tq.disable_observer)
            model.apply(t.ao.nn.intrinsic.qat.freeze_bn_stats)
        loss = (model(x) ** 2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return [losses, model, tq.convert(model.eval())]


QAT = {
    "fused": lambda tq: tq.get_default_qat_qconfig("x86"),
    "plain": lambda tq: tq.get_default_qat_qconfig("x86", version=0),
    "one_scale": lambda tq: tq.default_qat_qconfig,
}


@pytest.mark.parametrize("name", QAT)
def test_training(name):
    theirs, ours = built_in_both(residual, torch)
    inputs = calibration((4, 3, 8, 8))
    expected, found = train(torch, theirs, inputs, QAT[name]), train(rushlight, ours, to_rushlight(inputs), QAT[name])
    np.testing.assert_allclose(found[0], expected[0], rtol=1e-4)
    state, wanted = found[1].state_dict(), expected[1].state_dict()
    assert list(state) == list(wanted)
    for key, value in wanted.items():
        np.testing.assert_allclose(state[key].numpy(), value.numpy(), rtol=1e-3, atol=1e-4)
    assert list(found[2].state_dict()) == list(expected[2].state_dict())
    x = inputs[0]
    scale = expected[2].linear.scale
    np.testing.assert_allclose(found[2](to_rushlight(x)).numpy(), expected[2](x).numpy(), atol=2 * scale + 1e-5)


def test_modules_become_float_again():
    qat, fused, tq = rushlight.ao.nn.intrinsic.qat, rushlight.ao.nn.intrinsic, rushlight.ao.quantization
    conv = fused.ConvBnReLU2d(rushlight.nn.Conv2d(2, 3, 1), rushlight.nn.BatchNorm2d(3), rushlight.nn.ReLU())
    conv.qconfig = tq.default_qat_qconfig
    made = qat.ConvBnReLU2d.from_float(conv).eval()
    x = rushlight.randn(2, 2, 4, 4)
    made.apply(tq.disable_fake_quant)
    np.testing.assert_allclose(made.to_float()(x).detach().numpy(), made(x).detach().numpy(), atol=1e-5)


# What holds without torch, too


def test_wrappers_and_left_out_modules():
    tq, nn = rushlight.ao.quantization, rushlight.nn
    model = nn.Sequential(nn.Linear(4, 4), nn.Sequential(nn.Linear(4, 4), nn.ReLU())).eval()
    model[0].qconfig = tq.default_qconfig
    model = tq.add_quant_dequant(model)
    assert isinstance(model[0], tq.QuantWrapper) and isinstance(model[1][0], nn.Linear)
    prepared = tq.prepare(model)
    x = rushlight.randn(3, 4)
    prepared(x)
    made = tq.convert(prepared)
    assert "QuantizedLinear" in repr(made[0]) and type(made[1][0]) is nn.Linear
    assert (made(x) - model(x)).abs().max() < 0.1
    assert not any(hasattr(each, "qconfig") for each in made.modules())


def test_errors():
    tq, nn = rushlight.ao.quantization, rushlight.nn
    with pytest.raises(AssertionError, match="training mode"):
        tq.prepare_qat(nn.Linear(2, 2).eval())
    with pytest.raises(AssertionError, match="did not find fuser method"):
        tq.fuse_modules(nn.Sequential(nn.ReLU(), nn.Linear(2, 2)), ["0", "1"])
    with pytest.raises(AssertionError, match="same mode"):
        tq.fuse_modules(nn.Sequential(nn.Conv2d(1, 1, 1), nn.BatchNorm2d(1).eval()), ["0", "1"])
    with pytest.raises(NotImplementedError, match="reference"):
        tq.convert(nn.Linear(2, 2), is_reference=True)
    transposed = nn.Sequential(nn.ConvTranspose2d(1, 1, 1))
    transposed.qconfig = tq.default_per_channel_qconfig
    with pytest.raises(AssertionError, match="ConvTranspose"):
        tq.prepare(transposed)
    with pytest.raises(RuntimeError, match="_packed_params"):
        rushlight.ao.nn.quantized.Linear(2, 2).load_state_dict({"scale": rushlight.ones(()), "zero_point": rushlight.ones(())})
