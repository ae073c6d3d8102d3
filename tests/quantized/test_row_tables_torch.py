"""Embedding tables of bytes, slopes of PReLU and scales of tensors against torch."""

from __future__ import annotations

import numpy as np
import pytest

import rushlight
from tests.quantized.conversions import assert_same, to_rushlight

torch = pytest.importorskip("torch")
pytestmark = [pytest.mark.oracle, pytest.mark.filterwarnings("ignore")]
FORMS = ("byte", "4bit", "2bit")


def table() -> np.ndarray:
    """Rows of ordinary numbers, and of equal, small and large ones."""
    draw = np.random.default_rng(0)
    rows = [draw.normal(size=(30, 16)), np.zeros((1, 16)), np.full((1, 16), 3.0), draw.normal(size=(2, 16)) * 1e-3]
    rows += [draw.normal(size=(2, 16)) * 1e-8, draw.normal(size=(2, 16)) * 3e4]
    return np.concatenate(rows).astype(np.float32)


def operator(library: object, form: str, name: str) -> object:
    return getattr(library.ops.quantized, f"embedding_bag_{form}_{name}")


@pytest.mark.parametrize("form", FORMS)
def test_tables(form):
    weight = torch.from_numpy(table())
    ends = torch.stack([weight.amin(1) - 1, weight.amax(1) + 2], 1)
    packed = operator(torch, form, "prepack")(weight)
    assert_same(operator(rushlight, form, "prepack")(to_rushlight(weight)), packed)
    assert_same(operator(rushlight, form, "unpack")(to_rushlight(packed)), operator(torch, form, "unpack")(packed))
    expected = operator(torch, form, "prepack_with_rowwise_min_max")(weight, ends)
    assert_same(operator(rushlight, form, "prepack_with_rowwise_min_max")(*to_rushlight((weight, ends))), expected)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("options", [{}, {"include_last_offset": True}, {"per_sample_weights": torch.rand(12)}])
def test_sums_of_rows(form, options):
    packed = operator(torch, form, "prepack")(torch.from_numpy(table()))
    indices, offsets = torch.arange(12) * 2, torch.tensor([0, 3, 3, 12])
    expected = operator(torch, form, "rowwise_offsets")(packed, indices, offsets, **options)
    own = {name: to_rushlight(value) if isinstance(value, torch.Tensor) else value for name, value in options.items()}
    found = operator(rushlight, form, "rowwise_offsets")(*to_rushlight((packed, indices, offsets)), **own)
    np.testing.assert_allclose(found.numpy(), expected.numpy(), rtol=1e-5, atol=1e-6)


def test_what_is_no_table():
    quantized, floats = rushlight.ops.quantized, rushlight.rand(3, 6)
    with pytest.raises(RuntimeError, match="rows of a multiple of 4 elements, got shape"):
        quantized.embedding_bag_2bit_prepack(floats)
    with pytest.raises(RuntimeError, match="expected a weight of float32 or float16, got"):
        quantized.embedding_bag_byte_prepack(floats.double())
    with pytest.raises(RuntimeError, match="expected a table of uint8 whose rows end with scale and bias"):
        quantized.embedding_bag_byte_unpack(floats)
    with pytest.raises(RuntimeError, match="expected a table of uint8"):
        quantized.embedding_bag_4bit_unpack(rushlight.zeros(3, 3, dtype=rushlight.uint8))
    with pytest.raises(RuntimeError, match=r"byte_prepack: expected rows with elements, got shape \[3, 0\]"):
        quantized.embedding_bag_byte_prepack(floats[:, :0])
    with pytest.raises(RuntimeError, match="must be a 2D tensor with shape"):
        quantized.embedding_bag_byte_prepack_with_rowwise_min_max(floats, rushlight.rand(3, 3))
    packed = quantized.embedding_bag_byte_prepack(floats)
    with pytest.raises(RuntimeError, match="an index is out of range: the table has 3 rows"):
        quantized.embedding_bag_byte_rowwise_offsets(packed, rushlight.tensor([3]), rushlight.tensor([0]))
    with pytest.raises(RuntimeError, match="optimized_qparams=True is not supported"):
        quantized.embedding_bag_4bit_prepack(floats, True)


@pytest.mark.parametrize("kind", ["quint8", "qint8"])
@pytest.mark.parametrize("shape", [(2, 3, 5, 7), (4, 3), (2, 3, 40), (1, 3, 4, 4, 4)])
@pytest.mark.parametrize("slope_scale", [0.01, 0.37, 0.001])  # the integers nearest to 1: 100, 3, and none that a byte holds
def test_slopes(kind, shape, slope_scale):
    x = torch.quantize_per_tensor(torch.randn(*shape), 0.05, 60, getattr(torch, kind))
    for slopes in (torch.tensor([0.3]), torch.tensor([0.1, -0.2, 0.9])):
        slopes = torch.quantize_per_tensor(slopes, slope_scale, 9, getattr(torch, kind))
        for scale, zero_point in ((0.1, 10), (0.013, 3)):
            found = rushlight.ops.quantized.prelu(*to_rushlight((x, slopes)), scale, zero_point)
            assert_same(found, torch.ops.quantized.prelu(x, slopes, scale, zero_point))
    with pytest.raises(RuntimeError, match="expected 1 slope, or 3 for the channels, got 2"):
        rushlight.ops.quantized.prelu(*to_rushlight((x, slopes[:2])), scale, zero_point)


FUNCTIONS = {
    "_choose_qparams_per_tensor": lambda t, x, q: t._choose_qparams_per_tensor(x, True),
    "quantized_max_pool1d": lambda t, x, q: t.quantized_max_pool1d(q[0], 2, 1),
    "quantized_max_pool2d": lambda t, x, q: t.quantized_max_pool2d(q, (2, 2), padding=1),
    "quantized_max_pool3d": lambda t, x, q: t.quantized_max_pool3d(q[None], 2),
    "quantized_batch_norm": lambda t, x, q: t.quantized_batch_norm(
        q, *(each.contiguous() for each in (*x[0, :3, :3, 0].T, x[0, :3, 2, 2].abs())), 1e-5, 0.1, 9
    ),  # torch ignores the strides of parameters
}  # fmt: skip


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions_of_torch(name):
    x = torch.randn(2, 3, 6, 6, generator=torch.Generator().manual_seed(0))
    q = torch.quantize_per_tensor(x, 0.1, 5, torch.quint8)
    assert_same(FUNCTIONS[name](rushlight, *to_rushlight((x, q))), FUNCTIONS[name](torch, x, q))
    with pytest.raises(RuntimeError, match="without elements"):
        rushlight._choose_qparams_per_tensor(rushlight.empty(0))
