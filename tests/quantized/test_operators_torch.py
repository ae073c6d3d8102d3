"""Operators on quantized tensors against torch: integers equal, unless one quantum is granted."""

from __future__ import annotations

import pytest

import rushlight
from tests.quantized.conversions import adds_in_16_bits, assert_same, to_rushlight

torch = pytest.importorskip("torch")
pytestmark = [pytest.mark.oracle, pytest.mark.filterwarnings("ignore")]
DTYPES = ("quint8", "qint8")


@pytest.fixture(autouse=True)
def engine():
    before = torch.backends.quantized.engine
    torch.backends.quantized.engine = "fbgemm"
    torch.manual_seed(0)
    yield
    torch.backends.quantized.engine = before


def quantized(*shape: int, dtype: str = "quint8", zero_point: int = 37, scale: float = 0.03):
    return torch.quantize_per_tensor(torch.randn(*shape), scale, zero_point, getattr(torch, dtype))


POINTWISE = {
    "relu": lambda t, q: t.relu(q),
    "relu6": lambda t, q: t.nn.functional.relu6(q),
    "clamp": lambda t, q: t.clamp(q, -0.5, 0.7),
    "hardtanh": lambda t, q: t.nn.functional.hardtanh(q, -0.4, 0.4),
    "sigmoid": lambda t, q: t.sigmoid(q),
    "tanh": lambda t, q: t.tanh(q),
    "hardsigmoid": lambda t, q: t.nn.functional.hardsigmoid(q),
    "leaky_relu": lambda t, q: t.nn.functional.leaky_relu(q, 0.13),
    "gelu": lambda t, q: t.nn.functional.gelu(q),
    "threshold": lambda t, q: t.nn.functional.threshold(q, 0.1, 0.4),
    "quantized.sigmoid": lambda t, q: t.ops.quantized.sigmoid(q, 0.01, 3),
    "quantized.hardswish": lambda t, q: t.ops.quantized.hardswish(q, 0.02, 9),
    "quantized.leaky_relu": lambda t, q: t.ops.quantized.leaky_relu(q, 0.2, False, 0.021, 9),
    "quantized.elu": lambda t, q: t.ops.quantized.elu(q, 0.02, 9),
    "quantized.celu": lambda t, q: t.ops.quantized.celu(q, 0.02, 9, 2.0),
    "quantized.relu6": lambda t, q: t.ops.quantized.relu6(q),
    "quantized.clamp": lambda t, q: t.ops.quantized.clamp(q, -0.1, 0.2),
    "quantized.softmax": lambda t, q: t.ops.quantized.softmax(q, 1, 1 / 256, 0),
    "add": lambda t, q: t.ops.quantized.add(q, q.flip(0), 0.05, 7),
    "add_relu": lambda t, q: t.ops.quantized.add_relu(q, q.flip(0), 0.05, 7),
    "mul": lambda t, q: t.ops.quantized.mul(q, q.flip(0), 0.05, 7),
    "mul_relu": lambda t, q: t.ops.quantized.mul_relu(q, q.flip(0), 0.05, 7),
    "add_scalar": lambda t, q: t.ops.quantized.add_scalar(q, 0.4),
    "add_scalar, far": lambda t, q: t.ops.quantized.add_scalar(q, 40.0),
    "add_scalar_relu, far": lambda t, q: t.ops.quantized.add_scalar_relu(q, -40.0),
    "mul_scalar": lambda t, q: t.ops.quantized.mul_scalar(q, 1.7),
    "mul_scalar, negative": lambda t, q: t.ops.quantized.mul_scalar(q, -1.7),
    "mul_scalar_relu": lambda t, q: t.ops.quantized.mul_scalar_relu(q, -2.0),
    "mul_scalar, zero": lambda t, q: t.ops.quantized.mul_scalar(q, 0),
    "cat": lambda t, q: t.ops.quantized.cat([q, q.flip(0)], 1, 0.04, 11),
    "cat_relu": lambda t, q: t.ops.quantized.cat_relu([q, q], 1, 0.04, 11),
    "cat, own scale": lambda t, q: t.ops.quantized.cat([q, q], 1, None, None),
    "matmul": lambda t, q: t.ops.quantized.matmul(q, q, 0.2, 10),
    "aten.cat": lambda t, q: t.cat([q, q], 2),
    "stack": lambda t, q: t.stack([q, q]),
    "max": lambda t, q: q.max(),
    "min": lambda t, q: q.min(),
    "max.dim": lambda t, q: tuple(q.max(1)),
    "sort": lambda t, q: q.sort(2)[0],
    "topk": lambda t, q: t.topk(q, 2)[0],
    "mean": lambda t, q: q.mean([2, 3]),
    "index_select": lambda t, q: q.index_select(1, t.tensor([2, 0])),
    "masked_fill": lambda t, q: q.masked_fill(q > 0, 0.4),
    "flip": lambda t, q: q.flip(1),
    "permute": lambda t, q: q.permute(0, 2, 3, 1).contiguous(),
    "chunk": lambda t, q: q.chunk(2, 1),
    "pad": lambda t, q: t.nn.functional.pad(q, [1, 2, 0, 1], value=0.3),
    "pad, reflect": lambda t, q: t.nn.functional.pad(q, [1, 2, 0, 1], mode="reflect"),
    "max_pool2d": lambda t, q: t.nn.functional.max_pool2d(q, 3, 2, 1),
    "quantized.max_pool2d": lambda t, q: t.ops.quantized.max_pool2d(q, [2, 2], [2, 2], [0, 0], [1, 1], False),
    "max_pool1d": lambda t, q: t.nn.functional.max_pool1d(q[0], 2),
    "avg_pool2d": lambda t, q: t.nn.functional.avg_pool2d(q, 3, 2, 1),
    "avg_pool2d, inside": lambda t, q: t.nn.functional.avg_pool2d(q, 3, 2, 1, True, False),
    "adaptive_avg_pool2d": lambda t, q: t.nn.functional.adaptive_avg_pool2d(q, (2, 3)),
    "adaptive_avg_pool2d, one": lambda t, q: t.nn.functional.adaptive_avg_pool2d(q, 1),
    "upsample, nearest": lambda t, q: t.nn.functional.interpolate(q, size=(9, 11)),
    "upsample, bilinear": lambda t, q: t.nn.functional.interpolate(q, scale_factor=2, mode="bilinear", align_corners=False),
    "pixel_shuffle": lambda t, q: t.pixel_shuffle(q, 2),
    "comparison": lambda t, q: (q == q.flip(0), q > 0.1),
    "out": lambda t, q: t.ops.quantized.add_out(q, q, q.clone()),
}  # fmt: skip


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", POINTWISE)
def test_agrees_with_torch(name, dtype):
    q, within = quantized(2, 8, 6, 6, dtype=dtype), ("elu", "celu", "hardswish", "gelu", "mean")
    granted = int(name.rpartition(".")[2] in within)  # whose float32 values may differ in the last bit
    assert_same(POINTWISE[name](rushlight, to_rushlight(q)), POINTWISE[name](torch, q), granted)


ORDERED = {
    "clone": lambda t, q: q.clone(),
    "clone, preserving": lambda t, q: q.clone(memory_format=t.preserve_format),
    "empty_like": lambda t, q: t.empty_like(q),
    "int_repr": lambda t, q: q.int_repr(),
    "flip": lambda t, q: q.flip(1),
    "sort": lambda t, q: q.sort(2)[0],
    "add_scalar": lambda t, q: t.ops.quantized.add_scalar(q, 0.3),
    "mul_scalar": lambda t, q: t.ops.quantized.mul_scalar(q, 1.5),
    "mul_scalar, zero": lambda t, q: t.ops.quantized.mul_scalar(q, 0.0),
    "instance_norm": lambda t, q: t.ops.quantized.instance_norm(q, None, None, 1e-5, 0.05, 91),
    "relu": lambda t, q: t.relu(q),
    "max_pool2d": lambda t, q: t.nn.functional.max_pool2d(q, 2),
}


@pytest.mark.parametrize("order", ["row-major", "channels-last", "permuted"])
@pytest.mark.parametrize("name", ORDERED)
def test_results_have_torchs_strides(name, order):
    q, strides = quantized(2, 4, 6, 6), []
    for library, given in ((torch, q), (rushlight, to_rushlight(q))):
        given = given.contiguous(memory_format=library.channels_last) if order == "channels-last" else given
        given = given.permute(0, 2, 3, 1) if order == "permuted" else given
        strides.append(ORDERED[name](library, given).stride())
    assert strides[0] == strides[1]


NORMS = {
    "batch_norm2d": lambda t, q, w, b, m, v: t.ops.quantized.batch_norm2d(q, w, b, m, v, 1e-5, 0.05, 91),
    "batch_norm2d_relu": lambda t, q, w, b, m, v: t.ops.quantized.batch_norm2d_relu(q, w, b, m, v, 1e-5, 0.05, 91),
    "batch_norm1d": lambda t, q, w, b, m, v: t.ops.quantized.batch_norm1d(q[:, :, 0], w, b, m, v, 1e-5, 0.05, 91),
    "group_norm": lambda t, q, w, b, m, v: t.ops.quantized.group_norm(q, 2, w, b, 1e-5, 0.05, 91),
    "instance_norm": lambda t, q, w, b, m, v: t.ops.quantized.instance_norm(q, w, b, 1e-5, 0.05, 91),
    "layer_norm": lambda t, q, w, b, m, v: t.ops.quantized.layer_norm(q, [6], None, None, 1e-5, 0.05, 91),
}  # fmt: skip


@pytest.mark.parametrize("name", NORMS)
def test_normalisation_agrees_with_torch(name):
    arguments = (quantized(2, 8, 6, 6), torch.rand(8) + 0.5, torch.randn(8), torch.randn(8), torch.rand(8) + 0.1)
    found = NORMS[name](rushlight, *to_rushlight(arguments))
    assert_same(found, NORMS[name](torch, *arguments), 1)


@pytest.mark.parametrize("zero_point", [0, 3, 4])
@pytest.mark.parametrize("dtype", ("quint8", "qint8", "qint32"))
def test_halves_round_as_in_torch(dtype, zero_point):
    x, scales = torch.arange(40.0).reshape(2, 20) * 0.5 - 4, torch.tensor([1.0, 0.5])
    kinds = (getattr(torch, dtype), getattr(rushlight, dtype))
    expected = torch.quantize_per_tensor(x, 1.0, zero_point, kinds[0])
    assert_same(rushlight.quantize_per_tensor(to_rushlight(x), 1.0, zero_point, kinds[1]), expected)
    zero_points = torch.tensor([zero_point, 1])
    expected = torch.quantize_per_channel(x, scales, zero_points, 0, kinds[0])
    assert_same(rushlight.quantize_per_channel(*to_rushlight((x, scales, zero_points)), 0, kinds[1]), expected)


@pytest.mark.parametrize("reduce_range", [False, True])
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("scale", [1.0, 1e-6, 0.0, -1.0])
def test_dynamic_scales_are_torchs(scale, dtype, reduce_range):
    x = torch.randn(50).abs() * scale
    expected = torch.quantize_per_tensor_dynamic(x, getattr(torch, dtype), reduce_range)
    found = rushlight.quantize_per_tensor_dynamic(to_rushlight(x), getattr(rushlight, dtype), reduce_range)
    assert_same(found, expected)


def weight(channels: int, *shape: int, per_channel: bool):
    values = torch.randn(channels, *shape) * 0.1
    if not per_channel:
        return torch.quantize_per_tensor(values, 0.003, 0, torch.qint8)
    scales, zero_points = torch.rand(channels) * 0.002 + 0.001, torch.zeros(channels, dtype=torch.long)
    return torch.quantize_per_channel(values, scales, zero_points, 0, torch.qint8)


@pytest.mark.parametrize("per_channel", [False, True])
@pytest.mark.parametrize("depth", [5, 64, 768, 5000])  # the last of sums that float32 does not hold
def test_linear_agrees_with_torch(depth, per_channel):
    x, w, b = torch.randn(3, 7, depth), weight(12, depth, per_channel=per_channel), torch.randn(12)
    narrow = adds_in_16_bits(torch)  # which holds the sums of two products of 7 bits, not of 8
    q = torch.quantize_per_tensor(x.clamp(-1, 1) if narrow else x, 0.02, 61 if narrow else 121, torch.quint8)
    packed = torch.ops.quantized.linear_prepack(w, b), rushlight.ops.quantized.linear_prepack(*to_rushlight((w, b)))
    for name in ("linear", "linear_relu"):
        expected = getattr(torch.ops.quantized, name)(q, packed[0], 0.1, 61)
        assert_same(getattr(rushlight.ops.quantized, name)(to_rushlight(q), packed[1], 0.1, 61), expected)
    for name in ("linear_dynamic", "linear_relu_dynamic"):
        for reduced in (True,) if narrow else (False, True):
            expected = getattr(torch.ops.quantized, name)(x, packed[0], reduced)
            assert_same(getattr(rushlight.ops.quantized, name)(to_rushlight(x), packed[1], reduced), expected)
    assert_same(packed[1].unpack()[1], b)


CONVOLUTIONS = [(3, 8, 3, 1, 1, 1, 1), (16, 16, 3, 2, 1, 1, 16), (32, 64, 1, 1, 0, 1, 1), (64, 16, 3, 1, 2, 2, 1),
                (16, 32, 5, 1, 2, 1, 4), (256, 8, 3, 1, 1, 1, 1)]  # fmt: skip


@pytest.mark.parametrize("per_channel", [False, True])
@pytest.mark.parametrize("settings", CONVOLUTIONS)
def test_convolutions_agree_with_torch(settings, per_channel):
    inputs, outputs, kernel, stride, padding, dilation, groups = settings
    # 7 bits: sums of two products of larger ones don't fit the 16 bits in which fbgemm's kernels have them
    q = torch.quantize_per_tensor(torch.randn(2, inputs, 14, 14).clamp(-1, 1), 0.02, 61, torch.quint8)
    w, b = weight(outputs, inputs // groups, kernel, kernel, per_channel=per_channel), torch.randn(outputs)
    more = ([stride] * 2, [padding] * 2, [dilation] * 2, groups)
    packed = torch.ops.quantized.conv2d_prepack(w, b, *more)
    own = rushlight.ops.quantized.conv2d_prepack(*to_rushlight((w, b)), *more)
    for name in ("conv2d", "conv2d_relu"):
        expected = getattr(torch.ops.quantized, name)(q, packed, 0.05, 61)
        assert_same(getattr(rushlight.ops.quantized, name)(to_rushlight(q), own, 0.05, 61), expected)
    assert rushlight.ops.quantized.conv2d_stride(own) == [stride] * 2 and rushlight.ops.quantized.conv2d_groups(own) == groups


def test_channels_shuffle_as_in_torch():
    q = quantized(2, 8, 6, 6)
    assert_same(rushlight.channel_shuffle(to_rushlight(q), 2), torch.channel_shuffle(q, 2))


@pytest.mark.parametrize("rank", [1, 3])
def test_other_ranks_agree_with_torch(rank):
    q = torch.quantize_per_tensor(torch.randn(2, 4, *[8] * rank).clamp(-1, 1), 0.02, 61, torch.quint8)  # 7 bits, as above
    w, b, ones = weight(6, 4, *[3] * rank, per_channel=True), torch.randn(6), [1] * rank
    packed = getattr(torch.ops.quantized, f"conv{rank}d_prepack")(w, b, ones, ones, ones, 1)
    own = getattr(rushlight.ops.quantized, f"conv{rank}d_prepack")(*to_rushlight((w, b)), ones, ones, ones, 1)
    expected = getattr(torch.ops.quantized, f"conv{rank}d")(q, packed, 0.05, 61)
    assert_same(getattr(rushlight.ops.quantized, f"conv{rank}d")(to_rushlight(q), own, 0.05, 61), expected)
    assert_same(getattr(rushlight.ops.quantized, f"conv{rank}d_unpack")(own)[0], w)


PRINTED = {
    "scales": lambda t: t.quantize_per_tensor(t.linspace(-1, 1, 12).reshape(3, 4), 0.1, 10, t.quint8),
    "channels": lambda t: t.quantize_per_channel(
        t.linspace(-1, 1, 12).reshape(3, 4), t.tensor([0.1, 0.2, 0.3]), t.tensor([0, 1, 2]), 0, t.qint8
    ),
    "float_channels": lambda t: t.quantize_per_channel(
        t.linspace(-1, 1, 12).reshape(3, 4), t.tensor([0.1, 0.2, 0.3]), t.tensor([0.5, 1, 2]), 0, t.quint8
    ),
    "number": lambda t: t.quantize_per_tensor(t.tensor(0.3), 0.1, 3, t.qint32),
    "empty": lambda t: t.quantize_per_tensor(t.zeros(0, 3), 0.1, 3, t.qint8),
    "long": lambda t: t.quantize_per_tensor(t.linspace(-1, 1, 2500).reshape(50, 50), 0.1, 3, t.qint8),
}  # fmt: skip


@pytest.mark.parametrize("name", PRINTED)
def test_prints_as_torch(name):
    assert repr(PRINTED[name](rushlight)) == repr(PRINTED[name](torch))


EVERY_ELEMENT = {
    "add": lambda t, q, s: t.ops.quantized.add(q, q, s, 7),
    "add_relu": lambda t, q, s: t.ops.quantized.add_relu(q, q.flip(0), s, 7),
    "mul": lambda t, q, s: t.ops.quantized.mul(q, q.flip(0), s, 7),
    "mul_relu": lambda t, q, s: t.ops.quantized.mul_relu(q, q, s, 7),
    "elu": lambda t, q, s: t.ops.quantized.elu(q, s, 7, 1.0),
    "celu": lambda t, q, s: t.ops.quantized.celu(q, s, 7, 1.5),
    "leaky_relu": lambda t, q, s: t.nn.functional.leaky_relu(q, 0.1),
    "threshold": lambda t, q, s: t.nn.functional.threshold(q, 0.2, 0.1),
    "sigmoid": lambda t, q, s: t.ops.quantized.sigmoid(q, s, 7),
}


@pytest.mark.parametrize("name", EVERY_ELEMENT)
def test_all_elements_at_many_scales_round_as_in_torch(name):
    integers = torch.arange(256, dtype=torch.uint8).repeat(4)  # long enough for vectorized kernels only
    for index in range(40):
        scale, zero_point, target = round(0.01 + index * 0.0047, 3), index * 5, round(0.2 - index * 0.0041, 3)
        theirs = torch._make_per_tensor_quantized_tensor(integers, scale, zero_point)
        expected = EVERY_ELEMENT[name](torch, theirs, target)
        made = EVERY_ELEMENT[name](rushlight, to_rushlight(theirs), target)
        assert made.int_repr().tolist() == expected.int_repr().tolist(), (scale, zero_point, target)


def test_tables_of_4_bits_have_halves_for_scales():
    weight = torch.randn(10, 12)
    results = []
    for library in (torch, rushlight):
        bag = library.nn.EmbeddingBag(10, 12, mode="sum", include_last_offset=True)
        bag.weight.data = library.from_numpy(weight.numpy())
        bag.qconfig = library.ao.quantization.float_qparams_weight_only_qconfig_4bit
        made = library.ao.nn.quantized.EmbeddingBag.from_float(bag)
        results.append(made(library.tensor([1, 2, 3, 9]), library.tensor([0, 1, 4])).numpy())
    assert abs(results[0] - results[1]).max() < 1e-6
