"""Modules that torch quantizes, for archive tests: functions that return a scripted or traced module, and arguments."""

from __future__ import annotations

import torch
from torch import nn
from torch.ao import quantization as tq
from torch.ao.nn.quantized import FloatFunctional
from torch.ao.quantization.quantize_fx import convert_fx, prepare_fx
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence


def _quantized(module: nn.Module, *inputs: torch.Tensor, engine: str = "fbgemm", fused: list | None = None) -> nn.Module:
    """A module quantized statically, calibrated with inputs."""
    module = module.eval()
    if fused:
        module = tq.fuse_modules(module, fused)
    module.qconfig = tq.get_default_qconfig(engine)
    tq.prepare(module, inplace=True)
    for _ in range(3):
        module(*(each + 0.3 * torch.randn_like(each) for each in inputs))
    return tq.convert(module, inplace=True)


class Wrapped(nn.Module):
    """Quantizes the input and dequantizes the output."""

    def __init__(self, body: nn.Module):
        super().__init__()
        self.quant, self.body, self.dequant = tq.QuantStub(), body, tq.DeQuantStub()

    def forward(self, x):
        return self.dequant(self.body(self.quant(x)))


# Dynamic


def dynamic_mlp():
    made = nn.Sequential(nn.Linear(20, 30), nn.ReLU(), nn.Linear(30, 5, bias=False))
    return torch.jit.script(tq.quantize_dynamic(made.eval(), {nn.Linear})), (torch.randn(7, 20),)


def dynamic_mlp_per_channel():
    made = nn.Sequential(nn.Linear(20, 30), nn.Tanh(), nn.Linear(30, 5)).eval()
    made.qconfig = tq.per_channel_dynamic_qconfig
    return torch.jit.trace(tq.quantize_dynamic(made, {nn.Linear: tq.per_channel_dynamic_qconfig}), torch.randn(2, 3, 20)), (
        torch.randn(2, 3, 20),
    )


def dynamic_float16():
    made = nn.Sequential(nn.Linear(20, 30), nn.ReLU(), nn.Linear(30, 5))
    return torch.jit.script(tq.quantize_dynamic(made.eval(), {nn.Linear}, dtype=torch.float16)), (torch.randn(7, 20),)


class Recurrent(nn.Module):
    """A recurrent layer and a linear one."""

    def __init__(self, layer: nn.Module, width: int):
        super().__init__()
        self.layer, self.out = layer, nn.Linear(width, 4)

    def forward(self, x):
        y, state = self.layer(x)
        return self.out(y), state


def _recurrent(layer: nn.Module, width: int, kind=torch.qint8):
    made = tq.quantize_dynamic(Recurrent(layer, width).eval(), {nn.Linear, nn.LSTM, nn.GRU}, dtype=kind)
    return torch.jit.script(made), (torch.randn(6, 3, 10),)


def dynamic_lstm():
    return _recurrent(nn.LSTM(10, 12), 12)


def dynamic_lstm_deep():
    return _recurrent(nn.LSTM(10, 12, num_layers=2, bidirectional=True, batch_first=True), 24)


def dynamic_lstm_float16():
    return _recurrent(nn.LSTM(10, 12, num_layers=2), 12, torch.float16)


def dynamic_gru():
    return _recurrent(nn.GRU(10, 12, num_layers=2, bidirectional=True), 24)


class Packed(nn.Module):
    """An LSTM over sequences of several lengths."""

    def __init__(self):
        super().__init__()
        self.layer = nn.LSTM(10, 8, batch_first=True, bidirectional=True)

    def forward(self, x, lengths):
        packed = pack_padded_sequence(x, lengths, batch_first=True, enforce_sorted=False)
        output, state = self.layer(packed)
        return pad_packed_sequence(output, batch_first=True)[0], state[0], state[1]


def dynamic_lstm_of_packed_sequences():
    made = tq.quantize_dynamic(Packed().eval(), {nn.LSTM})
    return torch.jit.script(made), (torch.randn(4, 7, 10), torch.tensor([3, 7, 1, 5]))


class Cells(nn.Module):
    """One step of each kind of cell."""

    def __init__(self):
        super().__init__()
        self.lstm, self.gru = nn.LSTMCell(10, 8), nn.GRUCell(8, 6)
        self.tanh, self.relu = nn.RNNCell(6, 5), nn.RNNCell(5, 4, nonlinearity="relu")

    def forward(self, x):
        hidden, _ = self.lstm(x)
        return self.relu(self.tanh(self.gru(hidden)))


def dynamic_cells():
    kinds = {nn.LSTMCell, nn.GRUCell, nn.RNNCell}
    return torch.jit.script(tq.quantize_dynamic(Cells().eval(), kinds)), (torch.randn(3, 10),)


def dynamic_transformer_layer():
    made = nn.TransformerEncoderLayer(16, 4, 32, dropout=0.0, batch_first=True).eval()
    made.linear1.weight.requires_grad_(True)
    made = tq.quantize_dynamic(made, {nn.Linear: tq.default_dynamic_qconfig})
    return torch.jit.trace(Feed(made), torch.randn(2, 5, 16)), (torch.randn(2, 5, 16),)


class Feed(nn.Module):
    """The part of a transformer's layer after attention."""

    def __init__(self, layer: nn.TransformerEncoderLayer):
        super().__init__()
        self.linear1, self.linear2, self.norm = layer.linear1, layer.linear2, layer.norm1

    def forward(self, x):
        return self.norm(x + self.linear2(torch.relu(self.linear1(x))))


class Tables(nn.Module):
    """An embedding and a bag."""

    def __init__(self):
        super().__init__()
        self.one, self.bag = nn.Embedding(20, 8), nn.EmbeddingBag(20, 8, mode="sum", include_last_offset=True)

    def forward(self, x, offsets):
        return self.one(x), self.bag(x, offsets)


def embeddings():
    made = Tables().eval()
    made.qconfig = tq.float_qparams_weight_only_qconfig
    tq.convert(tq.prepare(made, inplace=True), inplace=True)
    return torch.jit.script(made), (torch.randint(0, 20, (9,)), torch.tensor([0, 2, 2, 9]))


# Static


class Residual(nn.Module):
    """Convolutions with batch norm, a residual sum, pooling and a linear layer."""

    def __init__(self):
        super().__init__()
        self.quant, self.dequant = tq.QuantStub(), tq.DeQuantStub()
        self.conv1, self.bn1, self.relu1 = nn.Conv2d(3, 8, 3, padding=1, bias=False), nn.BatchNorm2d(8), nn.ReLU()
        self.conv2, self.bn2 = nn.Conv2d(8, 8, 3, padding=1, bias=False), nn.BatchNorm2d(8)
        self.add, self.pool = FloatFunctional(), nn.MaxPool2d(2)
        self.average, self.linear = nn.AdaptiveAvgPool2d(1), nn.Linear(8, 5)

    def forward(self, x):
        x = self.relu1(self.bn1(self.conv1(self.quant(x))))
        x = self.pool(self.add.add_relu(x, self.bn2(self.conv2(x))))
        return self.dequant(self.linear(torch.flatten(self.average(x), 1)))


def _residual(engine: str):
    x = torch.randn(2, 3, 12, 12)
    return _quantized(Residual(), x, engine=engine, fused=[["conv1", "bn1", "relu1"], ["conv2", "bn2"]]), x


def static_residual():
    made, x = _residual("fbgemm")
    return torch.jit.script(made), (x,)


def static_residual_traced():
    made, x = _residual("x86")
    return torch.jit.trace(made, x), (x,)


def static_residual_qnnpack():
    made, x = _residual("qnnpack")
    return torch.jit.script(made), (x,)


class Inverted(nn.Module):
    """A MobileNetV2 block: expansion, depthwise convolution, projection, and a residual sum."""

    def __init__(self, channels: int):
        super().__init__()
        wide = 6 * channels
        self.widen = nn.Sequential(nn.Conv2d(channels, wide, 1, bias=False), nn.BatchNorm2d(wide), nn.ReLU())
        self.depth = nn.Sequential(nn.Conv2d(wide, wide, 3, padding=1, groups=wide, bias=False), nn.BatchNorm2d(wide), nn.ReLU())
        self.narrow = nn.Sequential(nn.Conv2d(wide, channels, 1, bias=False), nn.BatchNorm2d(channels))
        self.add = FloatFunctional()

    def forward(self, x):
        return self.add.add(x, self.narrow(self.depth(self.widen(x))))


class MobileNet(nn.Module):
    """The first layers of MobileNetV2."""

    def __init__(self):
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(3, 8, 3, stride=2, padding=1, bias=False), nn.BatchNorm2d(8), nn.ReLU())
        self.blocks = nn.Sequential(Inverted(8), Inverted(8))
        self.head = nn.Linear(8, 10)

    def forward(self, x):
        return self.head(self.blocks(self.stem(x)).mean([2, 3]))


def static_mobilenet():
    made, x = Wrapped(MobileNet()).eval(), torch.randn(2, 3, 16, 16)
    parts = [["body.stem.0", "body.stem.1", "body.stem.2"]]
    for block in range(2):
        base = f"body.blocks.{block}"
        parts += [[f"{base}.{part}.{index}" for index in range(3)] for part in ("widen", "depth")]
        parts.append([f"{base}.narrow.0", f"{base}.narrow.1"])
    return torch.jit.script(_quantized(made, x, fused=parts)), (x,)


def static_activations():
    body = nn.Sequential(nn.Linear(12, 12), nn.Hardswish(), nn.Linear(12, 12), nn.Sigmoid(), nn.Linear(12, 12), nn.LeakyReLU(0.2),
                         nn.Linear(12, 12), nn.ELU(), nn.Linear(12, 12), nn.ReLU6(), nn.Linear(12, 12), nn.Tanh(),
                         nn.Linear(12, 12), nn.Hardtanh(-0.5, 0.5))  # fmt: skip
    x = torch.randn(5, 12)
    return torch.jit.script(_quantized(Wrapped(body), x)), (x,)


def static_norms():
    body = nn.Sequential(nn.Conv2d(3, 8, 1), nn.GroupNorm(2, 8), nn.BatchNorm2d(8), nn.InstanceNorm2d(8, affine=True), nn.ReLU(),
                         nn.AvgPool2d(2), nn.LayerNorm([8, 4, 4]))  # fmt: skip
    x = torch.randn(2, 3, 8, 8)
    return torch.jit.trace(_quantized(Wrapped(body), x), x), (x,)


def static_conv1d():
    body = nn.Sequential(nn.Conv1d(4, 8, 3, padding=1), nn.ReLU(), nn.Conv1d(8, 6, 5, stride=2, groups=2), nn.Flatten())
    x = torch.randn(2, 4, 16)
    return torch.jit.script(_quantized(Wrapped(body), x, fused=[["body.0", "body.1"]])), (x,)


def static_conv3d():
    body = nn.Sequential(nn.Conv3d(2, 4, 3, padding=1), nn.ReLU(), nn.Conv3d(4, 3, 2, stride=2))
    x = torch.randn(1, 2, 6, 6, 6)
    return torch.jit.script(_quantized(Wrapped(body), x, fused=[["body.0", "body.1"]])), (x,)


def static_transposed():
    body = nn.Sequential(nn.ConvTranspose2d(4, 6, 3, stride=2, output_padding=1), nn.ReLU(), nn.ConvTranspose1d(6, 6, 1))
    body = nn.Sequential(body[0], body[1])
    x = torch.randn(2, 4, 5, 5)
    made = Wrapped(body).eval()
    made.qconfig = tq.get_default_qconfig("qnnpack")  # the per-channel config does not quantize transposed convolutions
    tq.prepare(made, inplace=True)
    made(x)
    return torch.jit.script(tq.convert(made, inplace=True)), (x,)


def static_reflected():
    body = nn.Sequential(nn.Conv2d(3, 6, 3, padding=1, padding_mode="reflect"), nn.Upsample(scale_factor=2, mode="nearest"),
                         nn.Conv2d(6, 4, 3, padding=2, dilation=2), nn.PixelShuffle(2))  # fmt: skip
    x = torch.randn(2, 3, 7, 7)
    return torch.jit.script(_quantized(Wrapped(body), x)), (x,)


class Arithmetic(nn.Module):
    """Sums, products and concatenations."""

    def __init__(self):
        super().__init__()
        self.quant, self.dequant = tq.QuantStub(), tq.DeQuantStub()
        self.add, self.mul, self.cat, self.scaled, self.matmul = (FloatFunctional() for _ in range(5))
        self.left, self.right = nn.Linear(6, 6), nn.Linear(6, 6)

    def forward(self, x):
        x = self.quant(x)
        a, b = self.left(x), self.right(x)
        both = self.cat.cat([self.add.add(a, b), self.mul.mul(a, b)], dim=1)
        return self.dequant(self.scaled.add_scalar(self.scaled.mul_scalar(both, 0.5), 1.5))


def static_arithmetic():
    x = torch.randn(5, 6)
    return torch.jit.script(_quantized(Arithmetic(), x)), (x,)


class Views(nn.Module):
    """A quantized tensor reshaped, sliced, permuted, joined and compared."""

    def __init__(self):
        super().__init__()
        self.quant, self.dequant, self.conv = tq.QuantStub(), tq.DeQuantStub(), nn.Conv2d(4, 8, 1)

    def forward(self, x):
        y = self.conv(self.quant(x))
        first, second = y.chunk(2, 1)
        joined = torch.cat([second, first], 1).permute(0, 2, 3, 1).contiguous()
        best = torch.max(joined, 3)[0]
        parts = joined.reshape(-1, 8)[:5].transpose(0, 1)
        return self.dequant(parts), self.dequant(best), self.dequant(y.mean([2, 3])), y.size(1)


def static_views():
    x = torch.randn(2, 4, 5, 5)
    return torch.jit.script(_quantized(Views(), x)), (x,)


class Graph(nn.Module):
    """Plain functions, which torch's graph mode quantizes."""

    def __init__(self):
        super().__init__()
        self.conv1, self.norm1, self.conv2 = nn.Conv2d(3, 8, 3, padding=1), nn.BatchNorm2d(8), nn.Conv2d(8, 8, 3, padding=1)
        self.gate, self.swish, self.linear = nn.Conv2d(8, 8, 1), nn.Hardswish(), nn.Linear(8, 5)

    def forward(self, x):
        x = torch.relu(self.norm1(self.conv1(x)))
        x = self.swish(nn.functional.max_pool2d(torch.relu(x + self.conv2(x)), 2))
        x = x * torch.sigmoid(self.gate(nn.functional.adaptive_avg_pool2d(x, 1)))
        x = nn.functional.interpolate(torch.cat([x, x], 1)[:, :8], scale_factor=2.0, mode="nearest")
        return nn.functional.softmax(self.linear(nn.functional.avg_pool2d(x, 2).mean([2, 3])) * 2.0 + 1, 1)


def static_graph_mode():
    x = torch.randn(2, 3, 12, 12)
    made = prepare_fx(Graph().eval(), tq.get_default_qconfig_mapping("fbgemm"), (x,))
    made(x)
    return torch.jit.script(convert_fx(made)), (x,)


def dynamic_encoder():
    made = nn.TransformerEncoder(nn.TransformerEncoderLayer(16, 4, 32, batch_first=True), 2, enable_nested_tensor=False).eval()
    made = tq.quantize_dynamic(made, {nn.Linear})
    x = torch.randn(2, 5, 16)
    torch.backends.mha.set_fastpath_enabled(False)  # the fast path reads the weights of its linear layers as tensors
    try:
        return torch.jit.trace(made, x), (x,)
    finally:
        torch.backends.mha.set_fastpath_enabled(True)


class Functions(nn.Module):
    """Quantizes in its own code, without modules."""

    def __init__(self):
        super().__init__()
        self.register_buffer("weight", torch.quantize_per_tensor(torch.randn(6, 4), 0.02, 0, torch.qint8))

    def forward(self, x):
        q = torch.quantize_per_tensor(x, 0.05, 64, torch.quint8)
        packed = torch.ops.quantized.linear_prepack(self.weight, None)
        y = torch.ops.quantized.linear(q, packed, 0.1, 30)
        d = torch.quantize_per_tensor_dynamic(x, torch.qint8, False)
        return y.dequantize(), y.int_repr(), y.q_scale(), y.q_zero_point(), d.dequantize(), y.is_quantized


def functions():
    return torch.jit.script(Functions()), (torch.randn(3, 4),)


def frozen_mlp():
    made, arguments = dynamic_mlp()
    return torch.jit.freeze(made.eval()), arguments


def frozen_residual():
    made, arguments = static_residual()
    return torch.jit.freeze(made.eval()), arguments


ZOO = {
    each.__name__: each
    for each in (
        dynamic_mlp, dynamic_mlp_per_channel, dynamic_float16, dynamic_lstm, dynamic_lstm_deep, dynamic_lstm_float16, dynamic_gru,
        dynamic_lstm_of_packed_sequences, dynamic_cells, dynamic_transformer_layer, dynamic_encoder, embeddings, static_residual,
        static_residual_traced, static_residual_qnnpack, static_mobilenet, static_activations, static_norms, static_conv1d,
        static_conv3d, static_transposed, static_reflected, static_arithmetic, static_graph_mode, static_views, functions, frozen_mlp,
        frozen_residual,
    )
}  # fmt: skip
