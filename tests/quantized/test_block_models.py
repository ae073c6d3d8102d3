"""Models whose weights are in blocks: scripted, traced and exported ones keep them, and so do their files and libraries."""

from __future__ import annotations

import io

import pytest

import rushlight as torch
from rushlight import nn
from rushlight.fx.experimental.proxy_tensor import make_fx
from rushlight.nn import functional as F
from rushlight.quantized.blocks import BlockTensor
from rushlight.quantized.weights import IntegerWeight
from tests.deploy.built import arrays, built
from tests.quantized.test_blocks import distance, normal


class Classes(nn.Module):
    """Tokens to scores, through layers of three layouts."""

    def __init__(self) -> None:
        super().__init__()
        self.tokens, self.first, self.last = nn.Embedding(50, 256), nn.Linear(256, 64), nn.Linear(64, 30, bias=False)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        return self.last(torch.relu(self.first(self.tokens(tokens))))


@pytest.fixture(scope="module")
def model():
    made = Classes().eval().requires_grad_(False)
    for layer, layout in ((made.tokens, "q8_0"), (made.first, "q4_k"), (made.last, "q5_0")):
        layer.weight = nn.Parameter(BlockTensor.quantize(normal(*layer.weight.shape), layout), requires_grad=False)
    return made


TOKENS = torch.arange(21).view(3, 7) * 7 % 50
DENSE = (50 * 256 + 256 * 64 + 64 * 30) * 4


@pytest.mark.parametrize("made", [torch.jit.script, lambda model: torch.jit.trace(model, TOKENS)], ids=["script", "trace"])
def test_archives_keep_blocks(made, model):
    file = io.BytesIO()
    torch.jit.save(made(model), file)
    assert file.tell() < DENSE / 2
    file.seek(0)
    loaded = torch.jit.load(file)
    for _ in range(3):  # profiled, compiled, and again
        assert distance(loaded(TOKENS), model(TOKENS)) < 0.01


def test_exported_programs_keep_blocks(model):
    program = torch.export.export(model, (TOKENS,))
    assert list(program.state_dict) == ["first.bias"]
    file = io.BytesIO()
    torch.export.save(program, file)
    assert file.tell() < DENSE / 2
    file.seek(0)
    assert torch.equal(torch.export.load(file).module()(TOKENS), model(TOKENS))


def test_libraries_keep_blocks(model, tmp_path):
    shapes = {"tokens": {1: torch.export.Dim("n", max=40)}}
    library = built(model, (TOKENS,), tmp_path, dynamic_shapes=shapes)
    assert (tmp_path / "model.weights").stat().st_size < DENSE / 4
    for length in (1, 2, 7, 40):
        tokens = torch.arange(3 * length).view(3, length) % 50
        found = library.forward(*arrays(tokens))
        assert distance(torch.from_numpy(found), model(tokens)) < 0.01


def test_every_form_of_a_function_reads_blocks():
    weight = BlockTensor.quantize(normal(40, 64), "q8_0")
    dense, x, bias = weight.dequantize(), normal(2, 3, 64), normal(40)

    def function(x, weight=weight):
        return x @ weight.t() + torch.addmm(bias, x[0], weight.t(), beta=0.5, alpha=2) + weight.t().sum() + (weight + 1).mean()

    expected = function(x, dense)
    module = nn.Module()
    module.forward = lambda x: function(x)
    forms = [
        function, torch.compile(function, fullgraph=True), torch.compile(function, dynamic=True, backend="aot_eager"),
        torch.jit.trace(function, x), torch.export.export(module, (x,)).module(), make_fx(function)(x),
    ]  # fmt: skip
    for form in forms:
        assert distance(form(x), expected) < 0.01
    assert torch.equal(torch.compile(lambda: weight.t(), fullgraph=True)(), dense.t())
    given = x.clone().requires_grad_()
    torch.compile(lambda x: (x @ weight.t()).square().sum())(given).backward()
    assert distance(given.grad, 2 * x @ dense.t() @ dense) < 0.01


@pytest.mark.parametrize(
    "quantize", [lambda weight: BlockTensor.quantize(weight, "q8_0"), lambda weight: IntegerWeight.quantize(weight, "int8")]
)
def test_what_was_kept_of_floats_is_not_for_them(quantize):
    x, layer = normal(3, 64), nn.Linear(64, 24).requires_grad_(False)
    assert distance(torch.compile(nn.Sequential(layer))(x), layer(x)) < 1e-5
    layer.weight = nn.Parameter(quantize(layer.weight), requires_grad=False)
    assert distance(torch.compile(nn.Sequential(layer))(x), layer(x)) < 1e-5


@pytest.mark.parametrize("quantize", [lambda x: BlockTensor.quantize(x, "q4_0"), lambda x: IntegerWeight.quantize(x, "int8")])
def test_only_whole_weights_are_written(quantize):
    x, layer = normal(3, 64), nn.Linear(64, 24)
    layer.weight = nn.Parameter(quantize(layer.weight), requires_grad=False)
    compiled, before = torch.compile(layer), layer(x)
    assert distance(compiled(x), before) < 1e-5
    layer.weight.data = quantize(normal(24, 64))
    assert distance(layer(x), before) > 0.1
    assert distance(compiled(x), layer(x)) < 1e-5
    for write in (lambda w: w.mul_(0), lambda w: w.__setitem__(0, 1.0), lambda w: w.data.fill_(2.0), nn.init.zeros_):
        with pytest.raises(RuntimeError, match="not written to in parts"):
            write(layer.weight)
    with pytest.raises(RuntimeError, match="data: expected another"):
        layer.weight.data = torch.zeros(24, 64)


def test_autocast_decides_the_dtype():
    weight, x = BlockTensor.quantize(normal(24, 64), "q8_0"), normal(3, 64)
    with torch.autocast("cpu", torch.bfloat16):
        assert F.linear(x, weight, torch.zeros(24)).dtype is torch.compile(F.linear)(x, weight).dtype is torch.bfloat16
