"""Adaptive pooling: values, places, gradients and memory formats are PyTorch's; NumPy and native kernels agree."""

from __future__ import annotations

import numpy as np
import pytest

import rushlight as rl
from rushlight.ops.cpu import adaptive_pooling
from rushlight.ops.meta.adaptive_pooling import longest_window

# Sizes of the input without its channels, and of the output.
GEOMETRIES = [
    ((10,), 7), ((5,), 12), ((300,), 1), ((4,), 4), ((10, 10), 7), ((32, 32), 7), ((8, 6), (4, 3)), ((5, 170), (9, 1)),
    ((1, 13), (3, 5)), ((6, 5), 1), ((5, 6, 7), 3), ((4, 9, 3), (7, 2, 5)), ((6, 4, 8), (3, 2, 1)), ((3, 4, 5), 1),
]  # fmt: skip


def numbers(shape, kind, special):
    """Small integers, which tie often, for maxima; with NaN and infinities where `special`."""
    random = np.random.default_rng(0)
    made = random.integers(-2, 3, shape) if kind == "max" else random.standard_normal(shape)
    made = made.astype(np.float32)
    if special:
        for value in (np.nan, np.nan, np.inf, -np.inf):
            made.reshape(-1)[random.integers(0, made.size, 1 + made.size // 70)] = value
        made[0, 0] = -np.inf
    return made


def pooled(library, kind, array, output_size, dtype="float32", last=False):
    """The results, and the gradient of their sum with weights."""
    x = library.from_numpy(array).to(getattr(library, dtype))
    if last:
        x = x.contiguous(memory_format=library.channels_last)
    x.requires_grad_()
    function = getattr(library.nn.functional, f"adaptive_{kind}_pool{array.ndim - 2}d")
    found = function(x, output_size, True) if kind == "max" else (function(x, output_size),)
    weights = (library.arange(found[0].numel()) % 7 - 2.5).reshape(found[0].shape).to(x.dtype)
    return *found, *library.autograd.grad((found[0] * weights).sum(), x)


def assert_same(want, got, **tolerance):
    for expected, found in zip(want, got, strict=True):
        assert str(found.dtype) == str(expected.dtype)
        expected, found = (tensor.detach().double().numpy() for tensor in (expected, found))
        np.testing.assert_allclose(found, expected, **(tolerance or {"rtol": 1e-5, "atol": 1e-5}))


@pytest.mark.oracle
@pytest.mark.parametrize("special", [False, True], ids=["finite", "special"])
@pytest.mark.parametrize("size, output_size", GEOMETRIES, ids=str)
@pytest.mark.parametrize("kind", ["avg", "max"])
def test_like_torch(kind, size, output_size, special):
    torch = pytest.importorskip("torch")
    array = numbers((2, 3, *size), kind, special)
    for dtype in ("float32", "float64"):
        assert_same(*(pooled(library, kind, array, output_size, dtype) for library in (torch, rl)))


@pytest.mark.oracle
@pytest.mark.parametrize("special", [False, True], ids=["finite", "special"])
@pytest.mark.parametrize("kind", ["avg", "max"])
def test_channels_last_like_torch(kind, special):
    torch = pytest.importorskip("torch")
    for channels, size, output_size in ((3, (10, 10), 7), (37, (9, 12), (4, 5)), (16, (3, 2), (5, 5)), (8, (6, 6), 1)):
        want, got = (
            pooled(library, kind, numbers((2, channels, *size), kind, special), output_size, last=True)
            for library in (torch, rl)
        )
        assert_same(want, got)
        assert got[0].stride() == want[0].stride()


@pytest.mark.oracle
@pytest.mark.parametrize("kind", ["avg", "max"])
def test_half_precision_like_torch(kind):
    torch = pytest.importorskip("torch")
    for last in (False, True):
        array = numbers((2, 5, 11, 9), kind, False)
        found = (pooled(library, kind, array, (4, 7), "bfloat16", last) for library in (torch, rl))
        assert_same(*found, rtol=1e-2, atol=5e-2)


@pytest.mark.parametrize("kind", ["avg", "max"])
def test_without_native_kernels(kind, monkeypatch):
    for size, output_size in GEOMETRIES:
        for last in (False, True) if len(size) == 2 else (False,):
            array = numbers((2, 3, *size), kind, True)
            have = pooled(rl, kind, array, output_size, last=last)
            with monkeypatch.context() as without:
                for name in ("_run_native", "_scatter_native"):
                    without.setattr(adaptive_pooling, name, lambda *arguments: False)
                assert_same(have, pooled(rl, kind, array, output_size, last=last))


def test_empty_batches_and_results():
    functional = rl.nn.functional
    for shape, output_size in (((0, 3, 5, 6), (2, 4)), ((0, 5, 6), (2, 4)), ((2, 3, 5, 6), (0, 2))):
        x = rl.zeros(*shape, requires_grad=True)
        for found in (functional.adaptive_avg_pool2d(x, output_size), functional.adaptive_max_pool2d(x, output_size)):
            assert tuple(found.shape) == (*shape[:-2], *output_size)
            assert rl.autograd.grad(found.sum(), x)[0].shape == x.shape


def test_integers_are_refused():
    for name in ("avg_pool1d", "avg_pool2d", "avg_pool3d", "max_pool1d", "max_pool2d", "max_pool3d"):
        x = rl.ones([2, *[5] * int(name[-2])], dtype=rl.int64)
        with pytest.raises(NotImplementedError, match="not implemented for 'Long'"):
            getattr(rl.nn.functional, f"adaptive_{name}")(x, 2)


def test_the_longest_window():
    for inputs in range(1, 40):
        for outputs in range(1, 60):
            lengths = [-(-(i + 1) * inputs // outputs) - i * inputs // outputs for i in range(outputs)]
            assert longest_window(inputs, outputs) == max(lengths) <= min(lengths) + 1
