"""Which operators FX mode quantizes, and by which scales: one at a time, the same as torch."""

from __future__ import annotations

import operator
from collections.abc import Callable

import numpy as np
import pytest

import rushlight
from tests.ao.pairs import built_in_both

torch = pytest.importorskip("torch")
pytest.importorskip("torch.ao.quantization.quantize_fx")
pytestmark = [pytest.mark.oracle, pytest.mark.filterwarnings("ignore")]

# Of the library, two linear layers and an input.
CASES: dict[str, Callable] = {
    "sum": lambda t, a, b, x: a(x) + b(x),
    "sum_by_method": lambda t, a, b, x: a(x).add(b(x)),
    "sum_in_place": lambda t, a, b, x: operator.iadd(a(x), b(x)),
    "product": lambda t, a, b, x: t.mul(a(x), b(x)),
    "product_by_method": lambda t, a, b, x: a(x).mul(b(x)),
    "matmul": lambda t, a, b, x: t.matmul(a(x), b(x)),
    "matmul_by_sign": lambda t, a, b, x: a(x) @ b(x),
    "sum_relu": lambda t, a, b, x: t.relu(a(x) + b(x)),
    "sum_relu_by_method": lambda t, a, b, x: (a(x) + b(x)).relu(),
    "linear_relu": lambda t, a, b, x: t.nn.functional.relu(a(x)),
    "linear_torch_relu": lambda t, a, b, x: t.relu(a(x)),
    "linear_relu_by_method": lambda t, a, b, x: a(x).relu(),
    "number": lambda t, a, b, x: b(a(x) + 1.0),
    "number_first": lambda t, a, b, x: b(2.0 * a(x)),
    "number_relu": lambda t, a, b, x: b(t.relu(a(x) + 1.0)),
    "cat": lambda t, a, b, x: t.cat([a(x), b(x)], -1),
    "stack": lambda t, a, b, x: t.stack([a(x), b(x)]),
    "called_twice": lambda t, a, b, x: a(a(x)),
    "sigmoid": lambda t, a, b, x: b(t.sigmoid(a(x))),
    "sigmoid_by_method": lambda t, a, b, x: a(x).sigmoid(),
    "hardsigmoid": lambda t, a, b, x: b(t.nn.functional.hardsigmoid(a(x))),
    "tanh": lambda t, a, b, x: t.tanh(a(x)),
    "hardswish": lambda t, a, b, x: b(t.nn.functional.hardswish(a(x))),
    "leaky_relu": lambda t, a, b, x: b(t.nn.functional.leaky_relu(a(x), 0.2)),
    "elu": lambda t, a, b, x: b(t.nn.functional.elu(a(x), alpha=0.7)),
    "layer_norm": lambda t, a, b, x: t.nn.functional.layer_norm(a(x), (4,), eps=1e-3),
    "softmax_matmul": lambda t, a, b, x: t.matmul(t.softmax(a(x), -1), b(x)),
    "softmax": lambda t, a, b, x: b(t.softmax(a(x), -1)),
    "softmax_by_method": lambda t, a, b, x: b(a(x).softmax(-1)),
    "gelu": lambda t, a, b, x: b(t.nn.functional.gelu(a(x))),
    "mean": lambda t, a, b, x: b(a(x).mean(0, keepdim=True)),
    "view": lambda t, a, b, x: b(a(x).view(2, 2, 4).transpose(0, 1)),
    "unquantized": lambda t, a, b, x: x + x * x,
}


def model_of(case: Callable) -> Callable:
    def build(library):
        class Model(library.nn.Module):
            def __init__(self):
                super().__init__()
                self.a, self.b = library.nn.Linear(4, 4), library.nn.Linear(4, 4)

            def forward(self, x):
                return case(library, self.a, self.b, x)

        return Model().eval()

    return build


def quantized(library, model, inputs):
    quantization = library.ao.quantization
    mapping = quantization.get_default_qconfig_mapping("fbgemm")
    prepared = quantization.quantize_fx.prepare_fx(model, mapping, (inputs[0],))
    with library.no_grad():
        for each in inputs:
            prepared(each)
    return quantization.quantize_fx.convert_fx(prepared)


def names_of(graph_module) -> list[str]:
    """What the nodes call: the classes of modules, and the names of functions and methods."""
    calls = [node for node in graph_module.graph.nodes if node.op.startswith("call_")]
    return [
        type(graph_module.get_submodule(node.target)).__name__ if node.op == "call_module"
        else str(getattr(node.target, "__name__", node.target)) for node in calls
    ]  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_operator(name):
    theirs, ours = built_in_both(model_of(CASES[name]), torch)
    inputs = [torch.randn(4, 4), torch.randn(4, 4) * 3]
    expected = quantized(torch, theirs, inputs)
    found = quantized(rushlight, ours, [rushlight.from_numpy(each.numpy()) for each in inputs])
    assert names_of(found) == names_of(expected)
    for layer in ("a", "b"):
        one, other = getattr(found, layer, None), getattr(expected, layer, None)
        if hasattr(other, "scale"):
            assert one.scale == pytest.approx(float(other.scale), rel=1e-6) and one.zero_point == int(other.zero_point)
    with torch.no_grad():
        wanted, made = expected(inputs[0]).numpy(), found(rushlight.from_numpy(inputs[0].numpy())).numpy()
    # One integer may be off where a sum lies near a half.
    np.testing.assert_allclose(made, wanted, atol=0.1)


def layered(kinds: str) -> Callable:
    """A model whose layers between two convolutions are given as Python text."""

    def build(library):
        nn = library.nn
        layers = eval(kinds, {"nn": nn})
        return nn.Sequential(nn.Conv2d(2, 4, 3), *layers, nn.Conv2d(4, 2, 1)).eval()

    return build


LAYERS = {
    "softmax": "[nn.Softmax(1)]",
    "transposed_norm_relu": "[nn.ConvTranspose2d(4, 4, 2), nn.BatchNorm2d(4), nn.ReLU()]",
    "transposed_norm": "[nn.ConvTranspose2d(4, 4, 2), nn.BatchNorm2d(4)]",
    "bilinear": "[nn.Upsample(scale_factor=2, mode='bilinear')]",
    "nearest": "[nn.Upsample(scale_factor=2)]",
}


@pytest.mark.parametrize("name", LAYERS)
def test_layers(name):
    theirs, ours = built_in_both(layered(LAYERS[name]), torch)
    inputs = [torch.randn(2, 2, 6, 6), torch.randn(2, 2, 6, 6) * 3]
    expected = quantized(torch, theirs, inputs)
    found = quantized(rushlight, ours, [rushlight.from_numpy(each.numpy()) for each in inputs])
    assert names_of(found) == names_of(expected)
    wanted, made = expected(inputs[0]).numpy(), found(rushlight.from_numpy(inputs[0].numpy())).numpy()
    np.testing.assert_allclose(made, wanted, atol=1e-5)


def test_linear_norm_relu():
    def build(library):
        nn = library.nn
        return nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Linear(8, 4)).eval()

    theirs, ours = built_in_both(build, torch)
    inputs = [torch.randn(4, 4), torch.randn(4, 4) * 3]
    expected = quantized(torch, theirs, inputs)
    found = quantized(rushlight, ours, [rushlight.from_numpy(each.numpy()) for each in inputs])
    wanted, made = expected(inputs[0]).numpy(), found(rushlight.from_numpy(inputs[0].numpy())).numpy()
    np.testing.assert_allclose(made, wanted, atol=1e-5)
