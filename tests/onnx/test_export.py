"""`torch.onnx.export`: models pass ONNX's checker and give eager's values in ONNX Runtime."""

from __future__ import annotations

import io

import pytest

import rushlight
from rushlight import nn
from rushlight.core.pytree import tree_flatten
from rushlight.export import Dim
from rushlight.nn import functional as F

onnx = pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")


def _check(module, args, others=(), **options):
    """Export, check, run in ONNX Runtime, and compare with eager, for the arguments and for others."""
    module.eval()
    program = rushlight.onnx.export(module, args, **options)
    onnx.checker.check_model(program.model_proto, full_check=True)
    for each in (args, *others):
        wanted = [leaf for leaf in tree_flatten(module(*each))[0] if isinstance(leaf, rushlight.Tensor)]
        for found, other in zip(program(*each), wanted, strict=True):
            assert found.dtype is other.dtype
            rushlight.testing.assert_close(found, other.detach(), rtol=1e-4, atol=1e-5)
    return program


class _Function(nn.Module):
    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, *inputs):
        return self.function(*inputs)


class _Block(nn.Module):
    def __init__(self, inside, outside, stride):
        super().__init__()
        self.conv1 = nn.Conv2d(inside, outside, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(outside)
        self.conv2 = nn.Conv2d(outside, outside, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(outside)
        self.down = nn.Sequential(nn.Conv2d(inside, outside, 1, stride, bias=False), nn.BatchNorm2d(outside))

    def forward(self, x):
        y = F.relu(self.bn1(self.conv1(x)), inplace=True)
        return F.relu(self.bn2(self.conv2(y)) + self.down(x))


class _ResNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(3, 8, 7, 2, 3), nn.BatchNorm2d(8), nn.ReLU(), nn.MaxPool2d(3, 2, 1))
        self.layers = nn.Sequential(_Block(8, 8, 1), _Block(8, 16, 2))
        self.pool = nn.AdaptiveAvgPool2d(1)
        self.head = nn.Linear(16, 5)

    def forward(self, x):
        return self.head(rushlight.flatten(self.pool(self.layers(self.stem(x))), 1))


class _Encoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.tokens = nn.Embedding(20, 16)
        self.places = nn.Embedding(32, 16)
        layer = nn.TransformerEncoderLayer(16, 4, 32, batch_first=True, activation="gelu")
        self.layers = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.norm = nn.LayerNorm(16)

    def forward(self, ids, mask):
        x = self.tokens(ids) + self.places(rushlight.arange(ids.shape[1]))
        return self.norm(self.layers(x, src_key_padding_mask=mask)).mean(1)


def test_mlp():
    module = nn.Sequential(nn.Linear(4, 8), nn.GELU(), nn.LayerNorm(8), nn.Dropout(), nn.Linear(8, 3), nn.Softmax(-1))
    others = [(rushlight.randn(5, 4),)]
    program = _check(module, (rushlight.randn(2, 4),), others, dynamic_shapes={"input": {0: Dim("batch")}},
                     input_names=["features"], output_names=["scores"])  # fmt: skip
    graph = program.model_proto.graph
    assert [each.name for each in graph.input] == ["features"] and [each.name for each in graph.output] == ["scores"]
    assert graph.input[0].type.tensor_type.shape.dim[0].dim_param == "batch"
    assert graph.output[0].type.tensor_type.shape.dim[0].dim_param == "batch"
    assert {each.name for each in graph.initializer} >= {"0.weight", "0.bias", "2.weight"}


def test_resnet():
    x = rushlight.randn(2, 3, 32, 32)
    axes = {"image": {0: "batch"}, "scores": {0: "batch"}}
    _check(_ResNet(), (x,), [(rushlight.randn(3, 3, 32, 32),)], input_names=["image"], output_names=["scores"], dynamic_axes=axes)


@pytest.mark.parametrize("masked", [True, False])
def test_transformer_encoder(masked):
    def inputs(batch, length):
        ids = rushlight.randint(0, 20, (batch, length))
        return ids, rushlight.arange(length).expand(batch, length) >= length - 1 if masked else None

    shapes = {"ids": {0: "batch", 1: "length"}, "mask": {0: "batch", 1: "length"} if masked else None}
    _check(_Encoder(), inputs(2, 6), [inputs(3, 9)], dynamic_shapes=shapes)


@pytest.mark.parametrize("opset", [13, 16, 17, 18, 20, 22])
def test_versions_of_the_operators(opset):
    module = nn.Sequential(nn.Conv1d(2, 4, 3), nn.BatchNorm1d(4), nn.SiLU(), nn.AdaptiveAvgPool1d(1), nn.Flatten(), nn.LayerNorm(4))
    program = _check(module, (rushlight.randn(2, 2, 8),), opset_version=opset)
    assert program.model_proto.opset_import[0].version == opset


_X = rushlight.randn(2, 4, 8, 8)
_PLACES = rushlight.tensor([[0, 1], [2, 1]])
FUNCTIONS = {
    "arithmetic": lambda x: (x + 1, 2 - x, x * x, x / 3, -x, x**2, x.abs().sqrt(), x.exp(), (x.abs() + 1).log(), x.rsqrt().isnan()),
    "integers": lambda x: ((x * 5).long() // 3, (x * 5).long() % 3, (x * 5).long() / 2, x.long() + 1.5, x % 2),
    "rounding": lambda x: (x.floor(), x.ceil(), x.round(), x.trunc(), x.sign(), (x * 5).div(2, rounding_mode="floor")),
    "functions": lambda x: (x.sin(), x.cos(), x.tanh(), x.erf(), x.expm1(), x.abs().log1p(), x.sigmoid(), rushlight.atan(x)),
    "comparisons": lambda x: (x > 0, x >= x, x != 0, (x > 0) & (x < 1) | ~(x > -1), (x > 0).logical_xor(x < 1), x == x),
    "activations": lambda x: tuple(
        f(x) for f in (F.relu6, F.hardswish, F.elu, F.leaky_relu, F.softplus, F.mish, F.selu, F.silu, F.hardtanh, F.logsigmoid)
    ),
    "gelus": lambda x: (F.gelu(x), F.gelu(x, approximate="tanh"), F.glu(x, 1)),
    "limits": lambda x: (x.clamp(-1, 1), x.clamp(min=0), rushlight.maximum(x, -x), rushlight.minimum(x, -x)),
    "reductions": lambda x: (x.sum(), x.sum(1), x.mean((2, 3), keepdim=True), x.amax(1), x.max(1), x.min(-1), x.prod(1), x.var(1)),
    "more reductions": lambda x: (x.std((1, 2)), x.argmax(1), x.argmin(-1, keepdim=True), x.logsumexp(1), x.norm(dim=1), x.argmax()),
    "truth": lambda x: ((x > 0).any(1), (x > -9).all(), (x > 0).sum(1)),
    "softmax": lambda x: (x.softmax(1), x.log_softmax(-1)),
    "scans": lambda x: (x.cumsum(1), x.topk(2), x.sort(descending=True)),
    "views": lambda x: (x.flatten(1), x.transpose(1, 3), x.permute(3, 0, 1, 2), x[:, :1].squeeze(1), x[:, None], x.T.reshape(-1, 8)),
    "slices": lambda x: (x[:, 1:3], x[..., ::2], x[:, -1], x.chunk(2, 1), x.split(3, 3), x.unbind(0), x[1, 2], x.narrow(1, 1, 2)),
    "joins": lambda x: (rushlight.cat([x, x], 1), rushlight.stack([x, x], -1), x.repeat(1, 2, 1, 1), x.roll(1, 1), x.flip(2)),
    "expands": lambda x: (x[:, :1].expand(-1, 3, -1, -1), rushlight.zeros_like(x), rushlight.ones(2, 3), rushlight.full((2,), 3)),
    "indices": lambda x: (x[:, _PLACES], x[_PLACES % 2, _PLACES], x[:, _PLACES, _PLACES], x.index_select(1, _PLACES[0])),
    "gathers": lambda x: (x.gather(1, (x > 0).long()), x.scatter(1, (x > 0).long(), x), x.masked_fill(x > 0, 7.0), F.pad(x, (1, 2))),
    "choices": lambda x: (rushlight.where(x > 0, x, 0.0), x.tril(), x.triu(1)),
    "types": lambda x: (x.double(), x.long(), x.bool(), x.half().float()),
    "pooling": lambda x: (F.max_pool2d(x, 3, 2, 1), F.avg_pool2d(x, 3, 2, 1), F.adaptive_avg_pool2d(x, 2), F.adaptive_max_pool2d(x, 1)),
    "pooling rows": lambda x: (F.max_pool1d(x[0], 2), F.avg_pool1d(x[0], 2), F.max_pool2d(x[0], 2), F.avg_pool2d(x, 2, count_include_pad=False)),
    "norms": lambda x: (F.group_norm(x, 2), F.instance_norm(x), F.layer_norm(x, (8,)), F.rms_norm(x, (8,)), F.normalize(x)),
    "products": lambda x: (x @ x, x[0] @ x[1, 0], rushlight.einsum("abcd,abed->abce", x, x), rushlight.baddbmm(x[0], x[0], x[1])),
    "attention": lambda x: (F.scaled_dot_product_attention(x, x, x, is_causal=True), F.scaled_dot_product_attention(x, x, x, x > 0)),
    "convolutions": lambda x: (
        F.conv2d(x, rushlight.ones(4, 2, 3, 3), padding=1, groups=2), F.conv_transpose2d(x, rushlight.ones(4, 3, 2, 2), stride=2)
    ),
    "resizing": lambda x: (F.interpolate(x, scale_factor=2), F.interpolate(x, size=(5, 5), mode="bilinear"), F.pixel_shuffle(x, 2)),
    "writes": lambda x: (_written(x), F.one_hot(_PLACES, 3), x.clone().fill_(2).add_(x)),
}  # fmt: skip


def _written(x):
    y = x.clone()
    y[:, 0] = 0
    y[:, -1] += 1
    y[..., 2:6:2] = 5
    return y


@pytest.mark.parametrize("name", FUNCTIONS)
def test_operators(name):
    _check(_Function(FUNCTIONS[name]), (_X,))


def test_sizes_as_values():
    module = _Function(lambda x: (x.reshape(x.shape[0] * 2, -1), x / x.shape[0], rushlight.arange(x.shape[0]), x.shape[0]))
    program = rushlight.onnx.export(module, (rushlight.ones(4, 6),), dynamic_shapes=(({0: "n"},),))
    found = program(rushlight.ones(8, 6))
    assert [tuple(each.shape) for each in found] == [(16, 3), (8, 6), (8,), ()]
    assert found[3].item() == 8


def test_unknown_operators_are_all_named():
    module = _Function(lambda x: (rushlight.linalg.det(x), rushlight.lgamma(x)))
    with pytest.raises(rushlight.onnx.OnnxExporterError, match="aten::lgamma, aten::linalg_det"):
        rushlight.onnx.export(module, (rushlight.eye(3),))


def test_files(tmp_path):
    module, x = nn.Linear(3, 2), rushlight.ones(1, 3)
    rushlight.onnx.export(module, x, tmp_path / "model.onnx")
    onnx.checker.check_model(str(tmp_path / "model.onnx"))
    program = rushlight.onnx.export(module, (x,), tmp_path / "apart.onnx", external_data=True)
    program.save(tmp_path / "apart.onnx", external_data=True)
    assert (tmp_path / "apart.onnx.data").stat().st_size < 1000
    onnx.checker.check_model(str(tmp_path / "apart.onnx"))
    stream = io.BytesIO()
    program.save(stream)
    assert onnx.load_from_string(stream.getvalue()) == program.model_proto


def test_the_mode_comes_back_and_dicts_are_keyword_arguments():
    seen = []

    class Asks(nn.Module):
        def forward(self, x, scale=None):
            seen.append((self.training, rushlight.onnx.is_in_onnx_export()))
            return x * scale

    module = Asks()
    rushlight.onnx.export(module, (rushlight.ones(2), {"scale": rushlight.ones(2)}))
    assert seen == [(False, True)] and module.training
    with pytest.raises(rushlight.onnx.OnnxExporterError, match="opset_version 5"):
        rushlight.onnx.export(module, (rushlight.ones(2),), opset_version=5)
