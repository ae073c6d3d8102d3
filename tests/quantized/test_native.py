"""Native quantized layers and functions of bytes give the integers of their definitions, which `exact.py` has, and torch's."""

from __future__ import annotations

import os
import subprocess
import sys

import numpy as np
import pytest

import rushlight as torch
from rushlight.ops.cpu.native import kernels
from rushlight.quantized import convolution, linear
from tests.compiler.native_programs import how
from tests.quantized import exact

pytestmark = pytest.mark.skipif(kernels is None, reason="the native kernels were not built")
F = np.float32


def _refused(*args: object) -> None:
    raise AssertionError("a layer that kernels take was computed with NumPy")


@pytest.fixture
def only_native(monkeypatch):
    """Layers fail where no kernel takes them."""
    monkeypatch.setattr(linear, "_exact_products", _refused)
    monkeypatch.setattr(convolution, "_exact_sums", _refused)


@pytest.mark.parametrize("shape", exact.LINEAR)
@pytest.mark.parametrize("how", ["any", "reduced", "extreme"])
def test_linear(shape, how, only_native):
    for seed in range(3):
        exact.check_linear(seed, *shape, reduced=how == "reduced", extreme=how == "extreme")


@pytest.mark.parametrize("settings", exact.CONVOLUTIONS)
@pytest.mark.parametrize("last", [True, False])
def test_convolution(settings, last, only_native):
    for seed in range(3):
        exact.check_convolution(seed, *settings, last=last)


@pytest.mark.parametrize("share", [0.001, 0.02, 0.5])
def test_few_large_activations(share, only_native):
    """Rows with some large activations, which are multiplied apart, or so many that they are not."""
    random = np.random.default_rng(int(share * 1000))
    x = random.integers(0, 40, (70, 300)).astype(np.uint8)
    x[random.random(x.shape) < share] = 255
    weight = np.clip(np.rint(random.standard_normal((50, 300)) * 35), -128, 127).astype(np.int8)
    packed = torch.ops.quantized.linear_prepack(exact.quantized_weight(weight, 0.01), None)
    made = torch.ops.quantized.linear(exact.quantized(x, 0.1, 7), packed, 3.0, 100).int_repr().numpy()
    sums = (x.astype(np.int64) - 7) @ weight.astype(np.int64).T
    np.testing.assert_array_equal(made, exact.rescaled(sums, 0.1, 0.01, None, 3.0, 100, 0, 255, False))


@pytest.mark.parametrize("rows", [0, 1])
def test_empty_and_single(rows):
    exact.check_linear(5, rows, 9, 4)


def test_weight_with_a_zero_point():
    """Integers less a zero point that need more than a byte are computed with NumPy."""
    draw = exact.Draw(3)
    x, weight = draw.random.integers(0, 256, (4, 20)).astype(np.uint8), draw.random.integers(-128, 128, (6, 20)).astype(np.int8)
    packed = torch.ops.quantized.linear_prepack(exact.quantized_weight(weight, 0.01, -100), None)
    made = torch.ops.quantized.linear(exact.quantized(x, 0.1, 128), packed, 2.0, 30).int_repr().numpy()
    sums = (x.astype(np.int64) - 128) @ (weight.astype(np.int64) + 100).T
    np.testing.assert_array_equal(made, exact.rescaled(sums, 0.1, 0.01, None, 2.0, 30, 0, 255, False))


@pytest.mark.parametrize("instructions", ["baseline", "avx2", "avx512"])
def test_other_instructions(instructions):
    """The same layers with each set of instructions that this processor has."""
    environment = {**os.environ, "RUSHLIGHT_KERNELS": instructions}
    done = subprocess.run([sys.executable, "-m", "tests.quantized.exact"], env=environment, capture_output=True, text=True)
    if "as far as this processor has them" in done.stderr:
        pytest.skip(f"this processor has no {instructions}")
    assert done.returncode == 0, done.stderr[-2000:]


def _pair(seed: int, sizes=(2, 19, 5, 7), last: bool = True) -> tuple:
    draw = exact.Draw(seed)
    kind = draw.kind()
    made = []
    for scale in (0.02, 0.037):
        integers, zero = draw.random.integers(*_ends(kind), sizes, endpoint=True).astype(kind), draw.zero_point(kind)
        tensor = exact.quantized(integers, scale, zero)
        made.append(
            (tensor.contiguous(memory_format=torch.channels_last) if last else tensor, integers.astype(np.int64) - zero)
        )
    return kind, draw.zero_point(kind), *made


def _ends(kind: type) -> tuple[int, int]:
    info = np.iinfo(kind)
    return int(info.min), int(info.max)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("relu", [False, True])
@pytest.mark.parametrize("last", [True, False])
def test_sums_and_products(seed, relu, last):
    kind, zero, (a, x), (b, y) = _pair(seed, last=last)
    low, high = _ends(kind)
    least = 0 if relu else -np.inf
    suffix, scale = "_relu" if relu else "", 0.043
    added = getattr(torch.ops.quantized, f"add{suffix}")(a, b, scale, zero)
    total = np.maximum(x.astype(F) * F(0.02) + y.astype(F) * F(0.037), F(least))
    np.testing.assert_array_equal(added.int_repr(), np.clip(np.rint(total * (F(1) / F(scale))) + zero, low, high))
    assert added.stride() == a.stride()
    product = getattr(torch.ops.quantized, f"mul{suffix}")(a, b, scale, zero)
    values = np.maximum((x * y).astype(F), F(least)) * F(0.02 * 0.037 * (1 / scale))
    np.testing.assert_array_equal(product.int_repr(), np.clip(np.rint(values) + zero, low, high))


@pytest.mark.parametrize("seed", range(4))
def test_quantize_and_back(seed):
    kind, zero, (a, x), _ = _pair(seed)
    np.testing.assert_array_equal(a.dequantize(), x.astype(F) * F(0.02))
    dtype = torch.quint8 if kind is np.uint8 else torch.qint8
    values = np.concatenate([np.arange(-700, 700) * F(0.05), [np.inf, -np.inf, 1e30, -1e30]]).astype(F)  # with many halves
    made = torch.quantize_per_tensor(torch.from_numpy(values), 0.1, zero, dtype).int_repr()
    exactly = (values.astype(np.float64) * np.float64(F(1) / F(0.1)) + zero).astype(F)
    np.testing.assert_array_equal(made, np.clip(np.rint(exactly), *_ends(kind)))


@pytest.mark.parametrize("seed", range(4))
def test_joined_and_mapped(seed):
    kind, zero, (a, x), (b, y) = _pair(seed)
    low, high = _ends(kind)
    made = torch.ops.quantized.cat_relu([a, b], 1, 0.05, zero).int_repr()
    parts = [np.maximum(values.astype(F) * F(scale), 0) for values, scale in ((x, 0.02), (y, 0.037))]
    exactly = np.concatenate(parts, 1).astype(np.float64) * np.float64(F(1) / F(0.05)) + zero
    np.testing.assert_array_equal(made, np.clip(np.rint(exactly.astype(F)), low, high))
    sine = torch.sigmoid(a)
    wanted = torch.quantize_per_tensor(torch.sigmoid(a.dequantize()), sine.q_scale(), sine.q_zero_point(), a.dtype)
    assert (sine.int_repr().int() - wanted.int_repr().int()).abs().max() <= 1
    np.testing.assert_array_equal(torch.relu(a).int_repr(), a.int_repr().clamp(min=a.q_zero_point()))


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("last", [True, False])
def test_pooling(seed, last):
    kind, _, (a, x), _ = _pair(seed, (2, 37, 9, 8), last)
    zero, low, high = a.q_zero_point(), *_ends(kind)
    most = torch.nn.functional.max_pool2d(a, 3, 2, 1)
    wanted = exact.windows(x + zero, (3, 3), (2, 2), (1, 1), (1, 1), low).max(-1).transpose(0, 3, 1, 2)
    np.testing.assert_array_equal(most.int_repr(), wanted)
    assert most.is_contiguous(memory_format=torch.channels_last) == last
    mean = torch.nn.functional.avg_pool2d(a, (2, 3), (2, 1))
    sums = exact.windows(x, (2, 3), (2, 1), (0, 0), (1, 1), 0).sum(-1).transpose(0, 3, 1, 2)
    np.testing.assert_array_equal(mean.int_repr(), np.clip(np.rint(sums.astype(F) / F(6) + F(zero)), low, high))
    whole = torch.nn.functional.adaptive_avg_pool2d(a, 1).int_repr()
    totals = x.sum((2, 3), keepdims=True).astype(F) / F(72)
    np.testing.assert_array_equal(whole, np.clip(np.rint(totals + F(zero)), low, high))


@pytest.mark.oracle
@pytest.mark.parametrize("relu", [False, True])
def test_layers_as_torch(relu):
    """Activations of 7 bits, for which torch's sums do not saturate."""
    oracle = pytest.importorskip("torch")
    random = np.random.default_rng(11)
    x = random.integers(0, 128, (2, 24, 13, 11)).astype(np.uint8)
    weight, scales = random.integers(-127, 128, (40, 24, 3, 3)).astype(np.int8), random.uniform(0.001, 0.01, 40)
    bias, found = random.standard_normal(40).astype(F), []
    for library in (torch, oracle):
        packed = library._make_per_channel_quantized_tensor(
            library.from_numpy(weight), library.from_numpy(scales), library.zeros(40, dtype=library.int64), 0
        )
        images = library._make_per_tensor_quantized_tensor(library.from_numpy(x), 0.03, 50)
        layer = library.ops.quantized.conv2d_prepack(packed, library.from_numpy(bias), [1, 2], [1, 1], [1, 1], 1)
        run = library.ops.quantized.conv2d_relu if relu else library.ops.quantized.conv2d
        made = run(images, layer, 0.4, 60)
        rows = library.nn.functional.max_pool2d(made, 2).permute(0, 2, 3, 1).reshape(-1, 40)
        flat = library._make_per_channel_quantized_tensor(
            library.from_numpy(weight[:, 0, 0, 0].reshape(1, 40).repeat(17, 0)), library.from_numpy(scales[:17]),
            library.zeros(17, dtype=library.int64), 0,
        )  # fmt: skip
        head = library.ops.quantized.linear_prepack(flat, None)
        found.append((made.int_repr().numpy(), library.ops.quantized.linear(rows, head, 0.3, 9).int_repr().numpy()))
    for ours, theirs in zip(*found, strict=True):
        np.testing.assert_array_equal(ours, theirs)


@pytest.mark.oracle
def test_an_encoder_layer_is_one_program(monkeypatch, tmp_path):
    pytest.importorskip("torch")
    from tests.quantized import zoo

    monkeypatch.setenv("RUSHLIGHT_JIT_NATIVE_AFTER", "0")
    model, (x,) = zoo.dynamic_transformer_layer()
    model.save(str(tmp_path / "layer.pt"))
    loaded, given = torch.jit.load(str(tmp_path / "layer.pt")), torch.from_numpy(x.numpy())
    with torch.no_grad():
        for _ in range(3):
            made = loaded(given)
    kind, _ = how(loaded)
    assert kind == "whole"
    np.testing.assert_allclose(made.numpy(), model(x).detach().numpy(), rtol=1e-4, atol=1e-5)
