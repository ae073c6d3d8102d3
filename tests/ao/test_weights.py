"""Weights of few bits in place of floats: close results, the same integers as torch's formulas, and they survive what models go
through."""

from __future__ import annotations

import copy
import io

import numpy as np
import pytest

import rushlight as torch
from rushlight.ao.quantization.quantize_fx import convert_fx, prepare_fx
from rushlight.quantized.blocks import BlockTensor
from rushlight.quantized.weights import IntegerWeight
from tests.quantized.conversions import to_rushlight

nn, tq = torch.nn, torch.ao.quantization
CONFIGS = {
    "int8": (tq.int8_weight_only(), 0.01),
    "int8_dynamic": (tq.int8_dynamic_activation_int8_weight(), 0.02),
    "int4": (tq.int4_weight_only(group_size=32), 0.15),
    "blocks": (tq.BlockWeightOnlyConfig("q8_0"), 0.02),
}


def model():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(64, 48), nn.GELU(), nn.Linear(48, 64, bias=False), nn.Linear(64, 16)).eval()


@pytest.mark.parametrize("name", CONFIGS)
def test_models_stay_close_and_whole(name):
    config, bound = CONFIGS[name]
    made, x = model(), torch.randn(5, 3, 64)
    with torch.no_grad():
        expected = made(x)
        tq.quantize_(made, config)
        found = made(x)
        assert 0 < (found - expected).abs().max() < bound
        compiled = torch.compile(made)(x)
        np.testing.assert_allclose(compiled.numpy(), found.numpy(), atol=1e-2 if name != "int8" else 1e-5)
        file = io.BytesIO()
        torch.save(made.state_dict(), file)
        file.seek(0)
        other = model()
        tq.quantize_(other, config)
        other.load_state_dict(torch.load(file))
        assert torch.equal(copy.deepcopy(other)(x), found)
        exported = torch.export.export(made, (x,)).module()
        np.testing.assert_allclose(exported(x).numpy(), found.numpy(), atol=1e-5)
        for scripted in (torch.jit.script(made), torch.jit.trace(made, x)):
            archive = io.BytesIO()
            torch.jit.save(scripted, archive)
            archive.seek(0)
            np.testing.assert_allclose(torch.jit.load(archive)(x).numpy(), found.numpy(), atol=1e-2)
    assert type(made[0].weight).__name__ in repr(made[0].weight)
    assert (made[0].weight.dequantize() - model()[0].weight).abs().max() < bound
    assert len(file.getvalue()) < 4 * sum(each.numel() for each in model().parameters())
    inputs = x.clone().requires_grad_()
    made(inputs).sum().backward()
    assert inputs.grad.shape == x.shape


@pytest.mark.parametrize("kind", ["int8", "int8_dynamic", "int4_32"])
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16], ids=str)
def test_half_precision(kind, dtype):
    torch.manual_seed(1)
    weight, x = torch.randn(32, 64).to(dtype), torch.randn(4, 64).to(dtype)
    made = (BlockTensor if kind == "int4_32" else IntegerWeight).quantize(weight, kind)
    found = nn.functional.linear(x, made)
    assert found.dtype is dtype and made.dequantize().dtype is dtype
    np.testing.assert_allclose(found.float().numpy(), (x.float() @ made.dequantize().float().t()).numpy(), atol=0.6)


def test_chosen_and_shared_modules():
    made = nn.ModuleDict({"table": nn.Embedding(8, 32), "head": nn.Linear(32, 8, bias=False), "odd": nn.Linear(5, 3)})
    made["head"].weight = made["table"].weight
    tq.quantize_(made, tq.BlockWeightOnlyConfig("q8_0"), lambda module, name: name in ("table", "head", "odd"))
    assert made["head"].weight is made["table"].weight and type(made["odd"].weight) is nn.Parameter
    with pytest.raises(TypeError, match="linear layers and embeddings"):
        tq.quantize_(nn.Sequential(nn.LayerNorm(4)), tq.Int8WeightOnlyConfig(), lambda module, name: name == "0")
    with pytest.raises(TypeError, match="expected a config"):
        tq.quantize_(made, "int8")
    with pytest.raises(ValueError, match="group_size"):
        tq.Int4WeightOnlyConfig(group_size=48)


def test_errors():
    scales = torch.ones(4)
    with pytest.raises(RuntimeError, match="matrix of torch.int8"):
        IntegerWeight(torch.zeros(4, 4), scales, "int8")
    with pytest.raises(RuntimeError, match="scales"):
        IntegerWeight(torch.zeros(4, 4, dtype=torch.int8), torch.ones(3), "int8")
    with pytest.raises(ValueError, match="kind"):
        IntegerWeight(torch.zeros(4, 4, dtype=torch.int8), scales, "int2")
    with pytest.raises(RuntimeError, match="matrix"):
        IntegerWeight.quantize(torch.zeros(40), "int8")


@pytest.mark.oracle
@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_products_of_4_bits_are_torchs(dtype):
    theirs = pytest.importorskip("torch")
    theirs.manual_seed(0)
    integers, scales = theirs.randint(0, 16, (64, 128), dtype=theirs.int32), theirs.rand(4, 64, 2)
    x = theirs.randn(3, 128)
    found, expected = (
        library._weight_int4pack_mm_for_cpu(
            convert(x).to(getattr(library, dtype)),
            library._convert_weight_to_int4pack_for_cpu(convert(integers), 1),
            32,
            convert(scales).to(getattr(library, dtype)),
        )
        for library, convert in ((torch, to_rushlight), (theirs, lambda value: value))
    )
    bound = 1e-4 if dtype == "float32" else 1.0
    np.testing.assert_allclose(found.float().numpy(), expected.float().numpy(), atol=bound, rtol=1e-2)


def test_quantized_networks_compile_and_load():
    x = torch.randn(1, 1, 6, 6)
    for layer in (nn.MaxPool2d(2), nn.AdaptiveAvgPool2d(1), nn.Hardtanh(-0.1, 0.1)):
        made = nn.Sequential(nn.Conv2d(1, 2, 3), layer).eval()
        prepared = prepare_fx(made, tq.get_default_qconfig_mapping("x86"), (x,))
        prepared(x)
        converted = convert_fx(prepared)
        assert torch.equal(torch.compile(converted)(x), converted(x))
    file = io.BytesIO()
    torch.save(torch.quantize_per_tensor(torch.ones(3), 0.1, 2, torch.quint8), file)
    file.seek(0)
    assert torch.load(file, weights_only=False).int_repr().tolist() == [12, 12, 12]


def test_other_dtypes_and_recurrent_layers_stay():
    double = nn.Linear(32, 16).double()
    tq.quantize_(double, tq.Int8WeightOnlyConfig())
    assert double(torch.ones(1, 32, dtype=torch.float64)).dtype is torch.float64
    recurrent = nn.Sequential(nn.LSTM(4, 4))
    assert "0" in dict(
        prepare_fx(recurrent.eval(), tq.get_default_qconfig_mapping("x86"), (torch.ones(2, 1, 4),)).named_modules()
    )


class WithSizes(nn.Module):
    """Sums and products with numbers that are calculated from sizes."""

    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(4, 2)

    def forward(self, x):
        rows, columns = x.shape
        return (self.layer(x) + x.size(1)).view(rows, -1) * (columns // 2)


def test_numbers_beside_tensors_are_not_observed():
    made, x = WithSizes().eval(), torch.ones(2, 4)
    prepared = prepare_fx(made, tq.get_default_qconfig_mapping("x86"), (x,))
    prepared(x)
    assert (convert_fx(prepared)(x) - made(x)).abs().max() < 0.1


def test_networks_without_annotations_are_scripted():
    made, x = nn.Sequential(nn.Conv2d(1, 4, 3)).eval(), torch.randn(2, 1, 8, 8)
    prepared = prepare_fx(made, tq.get_default_qconfig_mapping("x86"), (x,))
    prepared(x)
    converted = convert_fx(prepared)
    assert torch.equal(torch.jit.script(converted)(x), converted(x))


@pytest.mark.parametrize("kind", [nn.LSTM, nn.GRU])
def test_recurrent_layers_of_no_sequences(kind):
    layer = tq.quantize_dynamic(nn.Sequential(kind(10, 16)).eval())[0]
    assert layer(torch.ones(5, 0, 10))[0].shape == (5, 0, 16)
    with pytest.raises(RuntimeError, match="larger than 0"):
        layer(torch.ones(0, 3, 10))
