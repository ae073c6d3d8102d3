"""Weights in blocks of few bits: layouts, tensors, operators, and what is compiled from them."""

from __future__ import annotations

import copy
import io

import numpy as np
import pytest

import rushlight as torch
from rushlight import nn
from rushlight.core.blocks import FORMATS, format_named
from rushlight.nn import functional as F
from rushlight.quantized.blocks import BlockTensor
from rushlight.quantized.weights import IntegerWeight

NAMES = list(FORMATS)
# The root mean square of what is lost of normal numbers, as a part of theirs.
LOST = {
    "q4_0": 0.09, "q4_1": 0.085, "q5_0": 0.045, "q5_1": 0.041, "q8_0": 0.006, "q4_k": 0.085, "q5_k": 0.041, "q6_k": 0.02,
    "int4_32": 0.085, "int4_64": 0.096, "int4_128": 0.105, "int4_256": 0.115,
}  # fmt: skip


def normal(*sizes: int) -> torch.Tensor:
    return torch.from_numpy(np.random.default_rng(sum(sizes)).normal(size=sizes).astype(np.float32))


def distance(found: torch.Tensor, expected: torch.Tensor) -> float:
    """The largest difference, as a part of the largest number."""
    return float((found - expected).abs().max() / expected.abs().max())


@pytest.mark.parametrize("name", NAMES)
def test_numbers_survive(name):
    numbers = normal(4, 512)
    numbers[0] *= 1000
    numbers[1, :256] = 0
    numbers[2] = numbers[2].abs()
    weight = BlockTensor.quantize(numbers, name)
    found = weight.dequantize()
    lost = ((found - numbers) ** 2).mean(1).sqrt() / (numbers**2).mean(1).sqrt()
    assert float(lost.max()) < LOST[name]
    assert not found[1, :256].any()
    again = BlockTensor.quantize(found, name).dequantize()  # what blocks hold already is kept, nearly
    assert distance(again, found) < LOST[name] / 2


def blocks_by_hand() -> dict[str, tuple[bytes, list[float]]]:
    """Blocks written by hand, and their first numbers."""
    half, two, floats = np.float16(0.5).tobytes(), np.float16(2).tobytes(), np.float32([0.5, 2]).tobytes()
    return {
        "q8_0": (half + bytes([255, 3]) + bytes(30), [-0.5, 1.5, 0.0]),
        "q4_0": (half + bytes([0x1F, 0x20]) + bytes([0x88]) * 14, [3.5, -4.0, 0.0]),
        "q4_1": (half + two + bytes([0x1F, 0x20]) + bytes(14), [9.5, 2.0, 2.0]),
        "q5_0": (half + bytes([1, 0, 0, 0]) + bytes([0x10, 0x01]) + bytes(14), [0.0, -7.5, -8.0]),
        "q5_1": (half + two + bytes([2, 0, 0, 0]) + bytes([0x10, 0x01]) + bytes(14), [2.0, 10.5, 2.0]),
        "q4_k": (half + two + bytes([3] + [0] * 3 + [1] + [0] * 7) + bytes([0x21, 0x05]) + bytes(126), [-0.5, 5.5, -2.0]),
        "q5_k": (
            half + two + bytes([3] + [0] * 3 + [1] + [0] * 7) + bytes([1] + [0] * 31) + bytes([0x21, 0x05]) + bytes(126),
            [23.5, 5.5, -2.0],
        ),
        "q6_k": (bytes([0x21, 0x05]) + bytes(126) + bytes([1, 2]) + bytes(62) + bytes([2] + [0] * 15) + half, [-15.0, 5.0, -32.0]),
        **{
            f"int4_{size}": (floats + bytes([0x1F, 0x20]) + bytes(size // 2 - 2), [9.5, 2.0, 2.0]) for size in (32, 64, 128, 256)
        },
    }  # fmt: skip


@pytest.mark.parametrize("name", NAMES)
def test_layouts(name):
    content, expected = blocks_by_hand()[name]
    layout = format_named(name)
    assert len(content) == layout.nbytes and layout.row_bytes(3 * layout.elements) == 3 * layout.nbytes
    blocks = torch.from_numpy(np.frombuffer(content, np.uint8).copy()).view(1, -1)
    assert torch.ops.rushlight.dequantize_blocks(blocks, name)[0, :3].tolist() == expected


@pytest.mark.oracle
@pytest.mark.parametrize("name", [name for name in NAMES if FORMATS[name].in_gguf])
def test_layouts_as_the_gguf_package(name):
    gguf = pytest.importorskip("gguf")
    layout = format_named(name)
    content = np.random.default_rng(0).integers(0, 256, size=(8, layout.row_bytes(1024)), dtype=np.uint8)
    with np.errstate(all="ignore"):  # some scales are infinite or NaN
        expected = gguf.quants.dequantize(content, gguf.GGMLQuantizationType(layout.number))
        np.testing.assert_array_equal(layout.dequantize(content), expected)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(("rows", "columns"), [(1, 37), (3, 8), (13, 64), (70, 33)])
def test_compiled_products(name, rows, columns):
    weight, x = BlockTensor.quantize(normal(columns, 512), name), normal(rows, 512)
    expected = torch.relu(x @ weight.dequantize().t()) + 1
    found = torch.compile(lambda x: torch.relu(F.linear(x, weight)) + 1, fullgraph=True)(x)
    for each in (found, torch.relu(F.linear(x, weight)) + 1):
        assert distance(each, expected) < 0.01  # rows are rounded to bytes
    wide = x.double()
    assert distance(F.linear(wide, weight), wide @ weight.dequantize().double().t()) < 1e-12


@pytest.mark.parametrize("name", NAMES)
def test_products_of_bytes_are_exact(name):
    weight = BlockTensor.quantize(normal(21, 768).sign() * 3 + normal(21, 768), name)
    if name == "q8_0":
        weight.blocks.view(21, 24, 34)[..., 2:] = 128  # -128 in each byte
    product = torch.compile(lambda x: F.linear(x, weight), fullgraph=True, dynamic=True)
    for rows in (1, 2, 3, 6, 130):
        x = torch.randint(-127, 128, (rows, 768)).float()
        x[:, ::32] = x[:, 1::32] = torch.where(normal(rows, 24) > 0, 127.0, -127.0)
        for rounded in (x, x.sign() * 127):
            expected = rounded.double() @ weight.dequantize().double().t()
            assert distance(product(rounded), expected) < 2e-6
            assert distance(F.linear(rounded, weight), expected) < 2e-6


@pytest.mark.parametrize("name", NAMES)
def test_compiled_rows(name):
    weight, places = BlockTensor.quantize(normal(9, 512), name), torch.tensor([[8, 0], [3, 3]])
    expected = weight.dequantize()[places]
    assert torch.equal(F.embedding(places, weight), expected)
    compiled = torch.compile(lambda i: F.embedding(i, weight) * 2, fullgraph=True)
    assert torch.equal(compiled(places), expected * 2)
    with pytest.raises((IndexError, RuntimeError), match="out of range"):
        compiled(torch.tensor([[9, 0], [0, 0]]))
    with pytest.raises(IndexError, match="out of range of the 9 rows"):
        F.embedding(torch.tensor([-1]), weight)


def test_rows_with_what_no_byte_holds():
    weight = BlockTensor.quantize(normal(5, 64), "q8_0")
    product = torch.compile(lambda x: F.linear(x, weight))
    x = torch.zeros(4, 64)
    x[0, 3], x[1, 40] = float("nan"), float("inf")
    x[2] = 1e-42
    found = product(x)
    assert found[0].isnan().all() and not found[1].isfinite().any()
    assert torch.equal(found[3], torch.zeros(5))
    assert float(found[2].abs().max()) < 1e-37


def test_open_sizes_and_bfloat16():
    weight = BlockTensor.quantize(normal(24, 256), "q4_k")
    product = torch.compile(lambda x: F.linear(x, weight), dynamic=True)
    for rows in (3, 1, 9, 40):
        x = normal(2, rows, 256)
        assert distance(product(x), x @ weight.dequantize().t()) < 0.01
    narrow = normal(4, 256).to(torch.bfloat16)
    found = torch.compile(lambda x: F.linear(x, weight))(narrow)
    assert found.dtype is torch.bfloat16
    assert distance(found.float(), narrow.float() @ weight.dequantize().t()) < 0.02


def test_gradients_go_to_the_input():
    weight, bias = BlockTensor.quantize(normal(6, 64), "q5_1"), normal(6).requires_grad_()
    for run in (F.linear, torch.compile(F.linear)):
        x = normal(3, 64).requires_grad_()
        run(x, weight, bias).sum().backward()
        torch.testing.assert_close(x.grad, weight.dequantize().sum(0).expand(3, 64), rtol=1e-4, atol=1e-4)
        torch.testing.assert_close(bias.grad, torch.full((6,), 3.0))
        bias.grad = None


class Tied(nn.Module):
    def __init__(self, weight: BlockTensor):
        super().__init__()
        self.table = nn.Embedding(*weight.shape)
        self.head = nn.Linear(*weight.shape[::-1], bias=False)
        self.table.weight = self.head.weight = nn.Parameter(weight, requires_grad=False)

    def forward(self, places):
        return self.head(torch.relu(self.table(places)))


def test_layers_take_them():
    model, places = Tied(BlockTensor.quantize(normal(7, 256), "q6_k")), torch.tensor([0, 6, 3])
    assert [type(each) for each in model.parameters()] == [BlockTensor]
    dense = torch.relu(model.table.weight.dequantize()[places]) @ model.head.weight.dequantize().t()
    assert distance(model(places), dense) < 0.01
    assert distance(torch.compile(model, fullgraph=True)(places), model(places)) < 1e-5


def test_saved_and_copied():
    model, places = Tied(BlockTensor.quantize(normal(7, 256), "q4_k")), torch.tensor([1, 2])
    expected, stream = model(places), io.BytesIO()
    torch.save(model.state_dict(), stream)
    stream.seek(0)
    state = torch.load(stream)
    assert (
        state["head.weight"].format == "q4_k"
        and state["head.weight"].blocks.data_ptr() == state["table.weight"].blocks.data_ptr()
    )
    other = Tied(BlockTensor.quantize(torch.zeros(7, 256), "q4_k"))
    other.load_state_dict(state)
    assert torch.equal(other(places), expected)
    copied = copy.deepcopy(model)
    copied.head.weight.blocks.zero_()
    assert torch.equal(model(places), expected) and isinstance(copied.head.weight, nn.Parameter)
    halved = copied.to(torch.bfloat16)
    assert (type(halved.head.weight), halved.head.weight.dtype) == (BlockTensor, torch.bfloat16)


def test_a_float_becomes_blocks_where_it_is_copied():
    weight, numbers = BlockTensor.quantize(torch.zeros(2, 32), "q8_0"), normal(2, 32)
    weight.copy_(numbers)
    assert torch.equal(weight.dequantize(), BlockTensor.quantize(numbers, "q8_0").dequantize())
    with pytest.raises(RuntimeError, match="must be the same"):
        weight.copy_(normal(3, 32))


def test_other_functions_get_numbers():
    weight = BlockTensor.quantize(normal(3, 32), "q5_0")
    dense = weight.dequantize()
    assert torch.equal(weight + 1, dense + 1) and torch.equal(weight[1], dense[1]) and torch.equal(weight.t(), dense.t())
    assert type(weight + 1) is torch.Tensor
    assert repr(weight).startswith("BlockTensor([[") and "format='q5_0'" in repr(weight)
    assert repr(BlockTensor.quantize(torch.zeros(99, 32), "q8_0")) == (
        "BlockTensor(..., size=(99, 32), format='q8_0', dtype=torch.float32)"
    )


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: BlockTensor(torch.zeros(2, 33, dtype=torch.uint8), "q8_0"), "are blocks of 34 bytes"),
        (lambda: BlockTensor(torch.zeros(2, 34), "q8_0"), "blocks are bytes"),
        (lambda: BlockTensor(torch.zeros(2, 34, dtype=torch.uint8), "q9"), "there is no block format 'q9'; there are q4_0"),
        (lambda: BlockTensor.quantize(torch.zeros(2, 30), "q8_0"), "blocks of 32 elements, got rows of 30"),
        (lambda: BlockTensor.quantize(torch.full((1, 32), float("inf")), "q4_k"), "got rows of 32|finite"),
        (lambda: BlockTensor.quantize(torch.full((1, 32), float("nan")), "q8_0"), "holds finite numbers only"),
        (lambda: F.linear(torch.zeros(1, 31), BlockTensor.quantize(torch.zeros(2, 32), "q8_0")), r"expected an input \(..., 32\)"),
        (
            lambda: F.embedding(torch.zeros(1), BlockTensor.quantize(torch.zeros(2, 32), "q8_0")),
            "expected indices in int64 or int32",
        ),
    ],
)  # fmt: skip
def test_what_does_not_fit(call, said):
    with pytest.raises((RuntimeError, ValueError), match=said):
        call()


def test_numbers_for_python_and_numpy():
    weight = BlockTensor.quantize(torch.randn(4, 64), "q8_0")
    numbers = weight.dequantize()
    assert weight.tolist() == numbers.tolist()
    np.testing.assert_array_equal(weight.numpy(), numbers.numpy())
    np.testing.assert_array_equal(np.asarray(weight, dtype=np.float64), numbers.double().numpy())
    with pytest.raises(ValueError, match="without a copy"):
        weight.__array__(copy=False)


def test_layers_are_shared_and_emptied():
    layer = nn.Linear(64, 4, bias=False)
    layer.weight = nn.Parameter(BlockTensor.quantize(torch.randn(4, 64), "q8_0"), requires_grad=False)
    x = torch.randn(2, 64)
    expected = layer(x)
    layer.share_memory()
    assert layer.weight.is_shared() and torch.equal(layer(x), expected)
    emptied = layer.to_empty(device="cpu").weight
    assert type(emptied) is BlockTensor and emptied.shape == (4, 64) and emptied.format == "q8_0"


def test_data_has_the_blocks():
    weight = BlockTensor.quantize(normal(3, 32), "q8_0")
    assert isinstance(weight.data, BlockTensor) and weight.data.blocks is weight.blocks
    other = BlockTensor.quantize(normal(3, 32), "q4_0")
    weight.data = other
    assert weight.format == "q4_0" and torch.equal(weight.dequantize(), other.dequantize())
    layer = nn.Linear(32, 3, bias=False)
    layer.weight = nn.Parameter(weight, requires_grad=False)
    assert layer.to(torch.bfloat16).weight.dequantize().dtype is torch.bfloat16
    with pytest.raises(RuntimeError, match="got a Tensor of torch.int32"):
        weight.data = torch.zeros(3, 32, dtype=torch.int32)


@pytest.mark.parametrize("kind", ["q8_0", "int8", "int8_dynamic"])
def test_models_in_float64_keep_few_bits(kind):
    layer, x = nn.Linear(32, 3), normal(2, 32)
    weight = layer.weight.detach()
    few = BlockTensor.quantize(weight, kind) if kind == "q8_0" else IntegerWeight.quantize(weight, kind)
    layer.weight = nn.Parameter(few, requires_grad=False)
    with torch.no_grad():
        near = layer(x)
        made = layer.double()(x.double())
    assert type(layer.weight.data) is type(few) and made.dtype is torch.float64
    torch.testing.assert_close(made.float(), near, atol=0.02, rtol=0)
