"""Operators on quantized tensors in captured graphs: scripted code becomes one native program, and its integers are those of the
eager kernels."""

from __future__ import annotations

import io

import pytest

import rushlight as torch
from rushlight import nn
from rushlight.ao import quantization as tq
from rushlight.compiler.scripted.kept_programs import Resumed
from rushlight.jit.runtime.executor import executor_of
from tests.quantized.quantized_models import MODELS, RECURRENT

QUINT8, QINT8 = 13, 12  # as scripts write dtypes
ZERO_POINTS = {QUINT8: 64, QINT8: -9}

BODIES = {
    "dequantize": "q", "relu": "torch.relu(q)", "relu6": "torch.ops.aten.relu6(q)", "hardtanh": "torch.ops.aten.hardtanh(q, -0.5, 0.75)",
    "clamp": "torch.clamp(q, -0.3, 0.4)", "quantized_clamp": "torch.ops.quantized.clamp(q, -0.3, 0.4)",
    "sigmoid": "torch.sigmoid(q)", "tanh": "torch.tanh(q)", "hardsigmoid": "torch.ops.aten.hardsigmoid(q)", "gelu": "torch.ops.aten.gelu(q)",
    "leaky_relu": "torch.ops.aten.leaky_relu(q, 0.1)", "hardswish": "torch.ops.quantized.hardswish(q, 0.02, 7)",
    "quantized_sigmoid": "torch.ops.quantized.sigmoid(q, 0.01, 3)", "elu": "torch.ops.quantized.elu(q, 0.02, 5)",
    "celu": "torch.ops.quantized.celu(q, 0.02, 5)", "quantized_leaky_relu": "torch.ops.quantized.leaky_relu(q, 0.2, False, 0.03, 2)",
    "threshold": "torch.threshold(q, 0.1, 0.2)", "add": "torch.ops.quantized.add(q, p, 0.07, 11)",
    "add_relu": "torch.ops.quantized.add_relu(q, p, 0.07, 11)", "mul": "torch.ops.quantized.mul(q, p, 0.03, 5)",
    "mul_relu": "torch.ops.quantized.mul_relu(q, p, 0.03, 5)", "add_scalar": "torch.ops.quantized.add_scalar(q, 0.3)",
    "mul_scalar": "torch.ops.quantized.mul_scalar(q, 1.5)", "mul_scalar_negative": "torch.ops.quantized.mul_scalar(q, -1.5)",
    "cat": "torch.ops.quantized.cat([q, p], 1, 0.05, 20)", "cat_relu": "torch.ops.quantized.cat_relu([q, p], 1, 0.05, 20)",
    "aten_cat": "torch.cat([q, p], 1)", "max_pool2d": "torch.max_pool2d(q, [3, 2], [2, 2], [1, 0])",
    "avg_pool2d": "torch.ops.aten.avg_pool2d(q, [2, 3])", "avg_pool2d_padded": "torch.ops.aten.avg_pool2d(q, [3, 3], [2, 2], [1, 1])",
    "adaptive_avg_pool2d": "torch.ops.aten.adaptive_avg_pool2d(q, [3, 2])", "adaptive_mean": "torch.ops.aten.adaptive_avg_pool2d(q, [1, 1])",
    "mean": "torch.mean(q, [2, 3])", "nearest": "torch.ops.aten.upsample_nearest2d(q, [9, 5])",
    "views": "torch.permute(torch.reshape(q, [2, 4, -1]), [0, 2, 1])[:, 1:, 2]", "flip": "torch.flip(q, [1])",
    "select": "torch.select(q, 1, 2)", "unsqueeze": "torch.squeeze(torch.unsqueeze(q, 0), 0)",
    "transposed": "torch.transpose(q, 1, 3)", "flatten": "torch.flatten(q, 1)", "chunk": "torch.chunk(q, 2, 1)[1]",
}  # fmt: skip
SOURCE = """
def f(x: Tensor) -> Tuple[Tensor, float, int]:
    q = torch.quantize_per_tensor(x, 0.021, ZERO, KIND)
    p = torch.quantize_per_tensor(torch.flip(x, [0]) * 2.0, 0.043, OTHER, KIND)
    r = BODY
    return torch.dequantize(r), torch.q_scale(r), torch.q_zero_point(r)
"""
CALLS = 3  # the first ones are interpreted


def program(body: str, kind: int, zero_point: int) -> str:
    """A function of a float tensor; `body` is what it does with a quantized one."""
    source = SOURCE.replace("BODY", body).replace("KIND", str(kind))
    return source.replace("ZERO", str(zero_point)).replace("OTHER", str(zero_point + 3))


@pytest.fixture(autouse=True)
def _native_at_once(monkeypatch):
    monkeypatch.setenv("RUSHLIGHT_JIT_NATIVE_AFTER", "0")


def compiled(text):
    return torch.jit.CompilationUnit(text).f


def interpreted(text, *arguments):
    """What a program gives in the interpreter."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RUSHLIGHT_JIT_NATIVE", "0")
        return torch.jit.CompilationUnit(text).f(*arguments)


def assert_whole(function, owners=()):
    """It ran as one native program."""
    natives = executor_of(function).natives(list(owners))
    assert [part.what for native in natives for part in native.parts()] == ["native"], [
        (part.what, part.reason) for native in natives for part in native.parts()
    ]


@pytest.mark.parametrize("kind", [QUINT8, QINT8], ids=["quint8", "qint8"])
@pytest.mark.parametrize("body", BODIES)
def test_functions(body, kind):
    text = program(BODIES[body], kind, ZERO_POINTS[kind])
    torch.manual_seed(0)
    x = torch.randn(2, 4, 6, 7) * 2
    expected, function = interpreted(text, x), compiled(text)
    for _ in range(CALLS):
        found = function(x)
    assert torch.equal(found[0], expected[0]) and found[1:] == expected[1:]
    assert_whole(function._function)


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -float("inf"), 3e38, 0.5 * 0.021])
def test_what_is_not_in_range(value):
    text = program("q", QUINT8, 63)
    x, function = torch.full((3, 17), value), compiled(text)
    for _ in range(CALLS):
        assert torch.equal(function(x)[0], interpreted(text, x)[0])


@pytest.mark.parametrize("name", MODELS)
def test_models(name):
    torch.manual_seed(1)
    model, x = MODELS[name]()
    archive = io.BytesIO()
    with torch.no_grad():
        expected = model(x)
        torch.jit.save(torch.jit.trace(model, x), archive)
        loaded = torch.jit.load(io.BytesIO(archive.getvalue()))
        for _ in range(CALLS):
            found = loaded(x)
    assert torch.equal(found, expected) and found.stride() == expected.stride()
    assert_whole(loaded._c.type.find_method("forward"), [loaded._c])


@pytest.mark.parametrize("is_traced", [False, True])
@pytest.mark.parametrize("name", RECURRENT)
def test_recurrent_layers(name, is_traced):
    torch.manual_seed(1)
    model, x = RECURRENT[name]()
    archive = io.BytesIO()
    torch.jit.save(torch.jit.trace(model, x) if is_traced else torch.jit.script(model), archive)
    loaded = torch.jit.load(io.BytesIO(archive.getvalue()))
    with torch.no_grad():
        expected = model(x)
        for _ in range(CALLS):
            found = loaded(x)
    torch.testing.assert_close(found, expected)
    assert_whole(loaded._c.type.find_method("forward"), [loaded._c])


@pytest.mark.parametrize("values", [
    torch.zeros(3, 33), torch.rand(2, 33), -torch.rand(2, 33), torch.randn(5, 33) * 1e-7, -torch.rand(2, 33) * 1e-8,
    torch.randn(4, 33) * 1e30, torch.full((2, 33), 1e-42), torch.empty(0, 33),
])  # fmt: skip
def test_ranges_of_dynamic_layers(values):
    torch.manual_seed(2)
    model = tq.quantize_dynamic(nn.Sequential(nn.Linear(33, 8), nn.ReLU()).eval(), {nn.Linear})
    scripted = torch.jit.trace(model, torch.randn(4, 33))
    with torch.no_grad():
        for _ in range(CALLS):
            assert torch.equal(scripted(values), model(values))


NORMS = {
    "layer_norm": "torch.ops.quantized.layer_norm(q, [6, 7], w, w, 0.001, 0.03, 9)",
    "group_norm": "torch.ops.quantized.group_norm(q, 2, v, v, 0.001, 0.03, 9)",
    "instance_norm": "torch.ops.quantized.instance_norm(q, v, v, 0.001, 0.03, 9)",
    "batch_norm2d": "torch.ops.quantized.batch_norm2d(q, v, v, v, v, 0.001, 0.03, 9)",
    "batch_norm_relu": "torch.ops.quantized.batch_norm_relu(q, v, None, v, v, 0.001, 0.03, 9)",
}


@pytest.mark.parametrize("name", NORMS)
def test_normalisation(name):
    text = f"""
def f(x: Tensor, w: Tensor, v: Tensor) -> Tensor:
    q = torch.quantize_per_tensor(x, 0.021, 64, 13)
    return torch.int_repr({NORMS[name]})
"""
    torch.manual_seed(0)
    given = torch.randn(2, 4, 6, 7), torch.rand(6, 7) + 0.5, torch.rand(4) + 0.5
    expected, function = interpreted(text, *given), compiled(text)
    for _ in range(CALLS):
        found = function(*given)
    apart = (found.to(torch.int32) - expected.to(torch.int32)).abs()
    assert apart.max() <= 1 and apart.sum() <= 3
    assert_whole(function._function)


class Tables(nn.Module):
    def __init__(self):
        super().__init__()
        self.rows, self.bags = nn.Embedding(50, 12), nn.EmbeddingBag(40, 8, mode="sum")

    def forward(self, x):
        return self.rows(x), self.bags(x)


@pytest.mark.parametrize("kind", [tq.float_qparams_weight_only_qconfig, tq.float_qparams_weight_only_qconfig_4bit])
def test_tables(kind):
    torch.manual_seed(0)
    kinds = {nn.EmbeddingBag: kind, nn.Embedding: tq.float_qparams_weight_only_qconfig}
    model = tq.quantize_dynamic(Tables().eval(), kinds)
    x = torch.randint(0, 40, (5, 7))
    traced = torch.jit.trace(model, x)
    with torch.no_grad():
        expected = model(x)
        for _ in range(CALLS):
            found = traced(x)
        torch.testing.assert_close(found, expected)
        assert_whole(traced._c.type.find_method("forward"), [traced._c])
        with pytest.raises(RuntimeError):
            traced(x + 40)


def test_quantized_results_are_cut_off():
    text = "def f(x: Tensor) -> Tensor:\n    y = torch.relu(x * 2.0) + 1.0\n    return torch.quantize_per_tensor(y, 0.1, 3, 13)\n"
    x, function = torch.randn(4, 5), compiled(text)
    for _ in range(CALLS):
        found = function(x)
    assert found.q_zero_point() == 3 and torch.equal(found.int_repr(), interpreted(text, x).int_repr())
    parts = [part for native in executor_of(function._function).natives([]) for part in native.parts()]
    assert {part.what for part in parts} == {"native", "interpreted"}


def test_scales_that_are_calculated_are_cut_off():
    text = """
def f(x: Tensor, s: Tensor, z: Tensor) -> Tensor:
    return torch.dequantize(torch.quantize_per_tensor(x * 2.0, s, z, 13))
"""
    x, function = torch.randn(4, 5), compiled(text)
    for scale in (0.1, 0.2, 0.3, 0.1):
        s, z = torch.tensor(scale), torch.tensor(4)
        assert torch.equal(function(x, s, z), interpreted(text, x, s, z))


@pytest.mark.parametrize("name", ["images", "rows", "dynamic"])
def test_another_load_has_the_program_at_once(name, tmp_path, monkeypatch):
    monkeypatch.setenv("RUSHLIGHT_CACHE_DIR", str(tmp_path / "cache"))
    torch.manual_seed(1)
    model, x = MODELS[name]()
    path = str(tmp_path / "model.pt")
    torch.jit.save(torch.jit.trace(model, x), path)
    with torch.no_grad():
        expected, first = model(x), torch.jit.load(path)
        for _ in range(CALLS + 1):
            first(x)
        again = torch.jit.load(path)
        assert torch.equal(again(x), expected)
    (native,) = executor_of(again._c.type.find_method("forward")).natives([again._c])
    assert isinstance(native, Resumed)
