"""Quantizing by the graph: the same layers, scales and results as torch, and what stays float."""

from __future__ import annotations

import numpy as np
import pytest

import rushlight
from tests.ao.pairs import built_in_both, scripted_by
from tests.quantized.conversions import assert_same, to_rushlight

torch = pytest.importorskip("torch")
pytest.importorskip("torch.ao.quantization.quantize_fx")
pytestmark = [pytest.mark.oracle, pytest.mark.filterwarnings("ignore")]
quantize_fx = rushlight.ao.quantization.quantize_fx


def convolutions(t):
    nn, F = t.nn, t.nn.functional

    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.conv, self.bn, self.relu = nn.Conv2d(3, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU()
            self.inner = nn.Sequential(nn.Conv2d(8, 8, 1), nn.BatchNorm2d(8))
            self.pool, self.fc, self.drop = nn.AdaptiveAvgPool2d(1), nn.Linear(16, 5), nn.Dropout(0.2)

        def forward(self, x):
            y = self.relu(self.bn(self.conv(x)))
            z = self.inner(y)
            z = F.relu(y + z)
            z = F.max_pool2d(t.cat([z * y, z], 1), 2)
            return self.fc(self.drop(t.flatten(self.pool(z), 1)))

    return Model()


def mixed(t):
    nn = t.nn

    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.first, self.norm, self.last = nn.Linear(6, 8), nn.LayerNorm(8), nn.Linear(8, 3)
            self.act, self.weight = nn.Hardswish(), nn.Parameter(t.randn(8, 8))

        def forward(self, x):
            x = self.act(self.first(x)).reshape(-1, 8)
            x = self.norm(t.nn.functional.linear(x, self.weight))
            x = t.cos(x)  # not quantized
            return t.sigmoid(self.last(x))

    return Model()


MODELS = {"convolutions": (convolutions, (2, 3, 8, 8)), "mixed": (mixed, (4, 6))}


def prepared_in_both(name: str, qat: bool = False) -> tuple:
    build, shape = MODELS[name]
    theirs, ours = built_in_both(build, torch)
    torch.manual_seed(1)
    inputs = [torch.randn(shape) * scale for scale in (1, 0.5, 2)]
    made = []
    for library, model, values in ((torch, theirs, inputs), (rushlight, ours, to_rushlight(inputs))):
        fx, tq = library.ao.quantization.quantize_fx, library.ao.quantization
        if qat:
            model = fx.prepare_qat_fx(model.train(), tq.get_default_qat_qconfig_mapping("x86"), (values[0],))
        else:
            model = fx.prepare_fx(model.eval(), tq.get_default_qconfig_mapping("x86"), (values[0],))
        made.append(model)
    return *made, inputs


@pytest.mark.parametrize("name", MODELS)
def test_layers_and_results_are_torchs(name):
    theirs, ours, inputs = prepared_in_both(name)
    for x in inputs:
        np.testing.assert_allclose(ours(to_rushlight(x)).detach().numpy(), theirs(x).detach().numpy(), atol=1e-5)
    quanta = [library.ao.quantization.quantize_fx.convert_fx(model) for library, model in ((torch, theirs), (rushlight, ours))]
    assert [model._get_name() for model in quanta] == ["GraphModule"] * 2
    kinds = [sorted(type(each).__name__ for each in model.modules() if "Quantized" in str(type(each)) or
                    "quantized" in type(each).__module__) for model in quanta]  # fmt: skip
    if name == "convolutions":  # torch makes linear functions operators, not layers
        assert kinds[0] == kinds[1]
    for x in inputs:
        np.testing.assert_allclose(quanta[1](to_rushlight(x)).numpy(), quanta[0](x).detach().numpy(), atol=0.05)
    state, expected = quanta[1].state_dict(), quanta[0].state_dict()
    for key in expected.keys() & state.keys():
        if hasattr(expected[key], "shape"):
            assert_same(state[key], expected[key], 0)
    assert {key for key in expected if key.startswith(("conv", "fc", "first", "last"))} <= set(state)
    file = scripted_by(rushlight, rushlight.jit.script(quanta[1]))
    np.testing.assert_array_equal(
        rushlight.jit.load(file)(to_rushlight(inputs[0])).numpy(), quanta[1](to_rushlight(inputs[0])).numpy()
    )
    file.seek(0)
    assert_same(to_rushlight(torch.jit.load(file)(inputs[0])), quanta[1](to_rushlight(inputs[0])))


def test_training():
    theirs, ours, inputs = prepared_in_both("convolutions", qat=True)
    losses = []
    for library, model, values in ((torch, theirs, inputs), (rushlight, ours, to_rushlight(inputs))):
        for each in model.modules():
            if type(each).__name__ == "Dropout":
                each.p = 0.0
        optimizer, found = library.optim.SGD(model.parameters(), 0.05), []
        for x in values:
            loss = (model(x) ** 2).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            found.append(loss.item())
        losses.append(found)
    np.testing.assert_allclose(losses[1], losses[0], rtol=1e-3)
    made = quantize_fx.convert_fx(ours.eval())
    assert "QuantizedConvReLU2d" in repr(made) and "QuantizedLinear" in repr(made)
    x = to_rushlight(inputs[0])
    assert (made(x) - ours(x)).abs().max() < 0.1


def test_dynamic_and_chosen_parts():
    nn, tq = rushlight.nn, rushlight.ao.quantization
    model = nn.Sequential(nn.Linear(4, 4), nn.ReLU(), nn.Sequential(nn.Linear(4, 4)), nn.Linear(4, 2)).eval()
    x = rushlight.randn(3, 4)
    mapping = tq.QConfigMapping().set_global(tq.default_dynamic_qconfig).set_module_name("2", None)
    made = quantize_fx.convert_fx(quantize_fx.prepare_fx(model, mapping, (x,)))
    names = {name: type(each).__name__ for name, each in made.named_modules() if name in ("0", "2.0", "3")}
    assert (
        "Dynamic" in repr(made.get_submodule("0")) and names["2.0"] == "Linear" and "Dynamic" in repr(made.get_submodule("3"))
    )
    assert (made(x) - model(x)).abs().max() < 0.1
    regex = tq.QConfigMapping().set_object_type(nn.Linear, tq.default_qconfig).set_module_name_regex("[02].*", None)
    prepared = quantize_fx.prepare_fx(model, regex, (x,))
    prepared(x)
    made = quantize_fx.convert_fx(prepared)
    assert [type(made.get_submodule(name)).__module__.split(".")[1] for name in ("0.0", "2.0", "3")] == ["nn", "nn", "ao"]


def test_tables_and_fusing():
    nn, tq = rushlight.nn, rushlight.ao.quantization
    model = nn.Sequential(nn.Embedding(10, 4)).eval()
    mapping = tq.QConfigMapping().set_object_type(nn.Embedding, tq.float_qparams_weight_only_qconfig)
    places = rushlight.tensor([1, 5])
    made = quantize_fx.convert_fx(quantize_fx.prepare_fx(model, mapping, (places,)))
    assert "QuantizedEmbedding" in repr(made) and (made(places) - model(places)).abs().max() < 0.02
    conv = nn.Sequential(nn.Conv2d(1, 2, 3), nn.BatchNorm2d(2), nn.ReLU()).eval()
    fused = quantize_fx.fuse_fx(conv)
    x = rushlight.randn(1, 1, 5, 5)
    assert "ConvReLU2d" in repr(fused)
    np.testing.assert_allclose(fused(x).detach().numpy(), conv(x).detach().numpy(), atol=1e-5)


def test_errors():
    tq, model = rushlight.ao.quantization, rushlight.nn.Sequential(rushlight.nn.Linear(2, 2))
    mapping, x = tq.get_default_qconfig_mapping(), (rushlight.ones(1, 2),)
    with pytest.raises(AssertionError, match="evaluation mode"):
        quantize_fx.prepare_fx(model.train(), mapping, x)
    with pytest.raises(AssertionError, match="training mode"):
        quantize_fx.prepare_qat_fx(model.eval(), mapping, x)
    with pytest.raises(NotImplementedError, match="backend_config"):
        quantize_fx.prepare_fx(model.eval(), mapping, x, backend_config=object())
    with pytest.raises(NotImplementedError, match="standalone_module_name"):
        quantize_fx.prepare_fx(model.eval(), mapping, x, {"standalone_module_name": ["0"]})
    with pytest.raises(ValueError, match="prepare_fx"):
        quantize_fx.convert_fx(rushlight.fx.symbolic_trace(model))


def test_mappings_print_and_convert():
    tq = rushlight.ao.quantization
    mapping = tq.get_default_qconfig_mapping("qnnpack").set_module_name("a", tq.default_qconfig)
    again = tq.QConfigMapping.from_dict(mapping.to_dict())
    assert repr(again) == repr(mapping) and "module_name_qconfigs\n  a: QConfig" in repr(mapping)
    assert tq.qconfig_equals(tq.get_default_qconfig("x86"), tq.get_default_qconfig("fbgemm"))
    assert not tq.qconfig_equals(tq.get_default_qconfig("x86"), tq.get_default_qconfig("qnnpack"))
