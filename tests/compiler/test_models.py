"""Models in plain `nn` style: one graph each without a break, the same results, and one more capture for other sizes."""

from __future__ import annotations

import math

import pytest

import rushlight as torch
from examples.bert import BertConfig, BertModel
from rushlight import nn
from rushlight.nn import functional as F
from rushlight.nn.utils import parametrizations
from rushlight.nn.utils import parametrize as parametrized


class Residual(nn.Module):
    def __init__(self, inputs, outputs, stride):
        super().__init__()
        self.conv1 = nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(outputs)
        self.conv2 = nn.Conv2d(outputs, outputs, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(outputs)
        self.relu = nn.ReLU(inplace=True)
        self.downsample = None
        if stride != 1 or inputs != outputs:
            self.downsample = nn.Sequential(nn.Conv2d(inputs, outputs, 1, stride, bias=False), nn.BatchNorm2d(outputs))

    def forward(self, x):
        identity = x if self.downsample is None else self.downsample(x)
        out = self.relu(self.bn1(self.conv1(x)))
        out = self.bn2(self.conv2(out))
        out += identity
        return self.relu(out)


class ResNet(nn.Module):
    def __init__(self, widths=(8, 16), blocks=2, classes=5):
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(3, 8, 3, 2, 1), nn.BatchNorm2d(8), nn.ReLU(), nn.MaxPool2d(3, 2, 1))
        stages, inputs = [], 8
        for number, width in enumerate(widths):
            for block in range(blocks):
                stages.append(Residual(inputs, width, 2 if number and not block else 1))
                inputs = width
        self.layers = nn.Sequential(*stages)
        self.pool = nn.AdaptiveAvgPool2d((1, 1))
        self.fc = nn.Linear(inputs, classes)

    def forward(self, x):
        return self.fc(torch.flatten(self.pool(self.layers(self.stem(x))), 1))


class CausalAttention(nn.Module):
    def __init__(self, width, heads, longest):
        super().__init__()
        self.heads = heads
        self.qkv = nn.Linear(width, 3 * width)
        self.proj = nn.Linear(width, width)
        self.register_buffer("mask", torch.tril(torch.ones(longest, longest)).view(1, 1, longest, longest))

    def forward(self, x):
        batch, tokens, width = x.size()
        q, k, v = self.qkv(x).split(width, dim=2)
        q, k, v = (t.view(batch, tokens, self.heads, width // self.heads).transpose(1, 2) for t in (q, k, v))
        scores = (q @ k.transpose(-2, -1)) * (1.0 / math.sqrt(k.size(-1)))
        scores = scores.masked_fill(self.mask[:, :, :tokens, :tokens] == 0, float("-inf"))
        y = F.softmax(scores, dim=-1) @ v
        return self.proj(y.transpose(1, 2).contiguous().view(batch, tokens, width))


class GPTBlock(nn.Module):
    def __init__(self, width, heads, longest):
        super().__init__()
        self.ln_1, self.ln_2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.attn = CausalAttention(width, heads, longest)
        self.mlp = nn.ModuleDict({"fc": nn.Linear(width, 4 * width), "act": nn.GELU(approximate="tanh"),
                                  "proj": nn.Linear(4 * width, width), "drop": nn.Dropout(0.1)})  # fmt: skip

    def forward(self, x):
        x = x + self.attn(self.ln_1(x))
        m = self.mlp
        return x + m.drop(m.proj(m.act(m.fc(self.ln_2(x))))) if hasattr(m, "drop") else x


class GPT(nn.Module):
    def __init__(self, words=50, width=16, heads=4, layers=3, longest=12):
        super().__init__()
        self.longest = longest
        self.transformer = nn.ModuleDict(
            {
                "wte": nn.Embedding(words, width), "wpe": nn.Embedding(longest, width), "drop": nn.Dropout(0.1),
                "h": nn.ModuleList([GPTBlock(width, heads, longest) for _ in range(layers)]), "ln_f": nn.LayerNorm(width),
            }
        )  # fmt: skip
        self.head = nn.Linear(width, words, bias=False)
        self.head.weight = self.transformer["wte"].weight

    def forward(self, ids, targets=None):
        batch, tokens = ids.size()
        assert tokens <= self.longest, f"{tokens} tokens are more than {self.longest}"
        position = torch.arange(0, tokens, dtype=torch.long, device=ids.device)
        x = self.transformer["drop"](self.transformer["wte"](ids) + self.transformer["wpe"](position))
        for block in self.transformer["h"]:
            x = block(x)
        logits = self.head(self.transformer["ln_f"](x))
        loss = None
        if targets is not None:
            loss = F.cross_entropy(logits.view(-1, logits.size(-1)), targets.view(-1), ignore_index=-1)
        return logits, loss


class ViT(nn.Module):
    def __init__(self, size=16, patch=4, width=16, layers=2, classes=5):
        super().__init__()
        self.patch = nn.Conv2d(3, width, patch, patch)
        self.token = nn.Parameter(torch.zeros(1, 1, width))
        self.position = nn.Parameter(torch.randn(1, (size // patch) ** 2 + 1, width) * 0.02)
        layer = nn.TransformerEncoderLayer(width, 4, 32, 0.1, "gelu", batch_first=True, norm_first=True)
        self.encoder = nn.TransformerEncoder(layer, layers, enable_nested_tensor=False)
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, classes)

    def forward(self, images):
        x = self.patch(images).flatten(2).transpose(1, 2)
        x = torch.cat([self.token.expand(x.shape[0], -1, -1), x], dim=1) + self.position
        return self.head(self.norm(self.encoder(x))[:, 0])


class Tagger(nn.Module):
    def __init__(self, words=30, width=8, hidden=12, tags=4):
        super().__init__()
        self.embedding = nn.Embedding(words, width)
        self.lstm = nn.LSTM(width, hidden, num_layers=2, batch_first=True, bidirectional=True)
        self.out = nn.Linear(2 * hidden, tags)

    def forward(self, ids):
        states, (last, cell) = self.lstm(self.embedding(ids))
        return F.log_softmax(self.out(states), dim=-1), last


class Translation(nn.Module):
    """The decoder's mask is the causal one, and a square one of its own is not."""

    def __init__(self, count=30, width=16):
        super().__init__()
        self.embedding = nn.Embedding(count, width)
        self.transformer = nn.Transformer(width, 2, 1, 2, 32, 0.0, batch_first=True)
        self.out = nn.Linear(width, count)

    def forward(self, ids):
        x, causal = self.embedding(ids), nn.Transformer.generate_square_subsequent_mask(ids.size(1))
        other = torch.zeros(ids.size(1), ids.size(1)).masked_fill(torch.eye(ids.size(1)).bool().roll(1, 0), float("-inf"))
        return self.out(self.transformer(x, x, src_mask=other, tgt_mask=causal))


def bert():
    sizes = dict(vocab_size=60, hidden_size=16, num_hidden_layers=2, num_attention_heads=4, intermediate_size=32)
    return BertModel(BertConfig(**sizes, max_position_embeddings=20))


def words(count):
    return lambda batch: torch.randint(0, count, (batch, 7))


def images(size):
    return lambda batch: torch.randn(batch, 3, size, size)


MODELS = [
    pytest.param(bert, words(60), id="bert"), pytest.param(ResNet, images(32), id="resnet"),
    pytest.param(GPT, words(50), id="gpt"), pytest.param(ViT, images(16), id="vit"), pytest.param(Tagger, words(30), id="lstm"),
    pytest.param(Translation, words(30), id="translation"),
]  # fmt: skip


def same(one, other) -> bool:
    if isinstance(one, tuple):
        return len(one) == len(other) and all(map(same, one, other))
    return one is other is None or torch.allclose(one, other, atol=1e-4)


@pytest.mark.parametrize("make, inputs", MODELS)
def test_a_model_is_one_graph(make, inputs):
    model = make().eval()
    found = torch._dynamo.explain(model)(inputs(2))
    assert (found.graph_count, found.graph_break_count) == (1, 0), str(found)


@pytest.mark.parametrize("backend", ["eager", "inductor"])
@pytest.mark.parametrize("make, inputs", MODELS)
def test_a_compiled_model_computes_the_same(make, inputs, backend):
    model = make().eval()
    compiled = torch.compile(model, backend=backend, fullgraph=True)
    with torch.no_grad():
        for batch in (2, 3, 2):
            x = inputs(batch)
            assert same(compiled(x), model(x))
    assert len(torch._dynamo.eval_frame._debug_get_cache_entry_list(compiled)) == 2


@pytest.mark.parametrize("make, inputs", MODELS)
def test_a_model_in_training_has_the_gradients_of_eager(make, inputs):
    model = make().train()
    for module in model.modules():
        if isinstance(module, nn.Dropout | nn.TransformerEncoderLayer):
            module.p = 0.0
    if make is ViT or make is bert:
        model.eval()  # attention has its dropout inside
    x, gradients = inputs(2), []
    for run in (model, torch.compile(model, fullgraph=True)):
        model.zero_grad()
        result = run(x)
        (result[0] if isinstance(result, tuple) else result).square().mean().backward()
        gradients.append([p.grad.clone() for p in model.parameters() if p.grad is not None])
    assert gradients[0] and same(tuple(gradients[0]), tuple(gradients[1]))


@pytest.mark.parametrize("mode", [torch.no_grad, torch.inference_mode, torch.enable_grad])
def test_bert_with_a_mask_is_one_graph_in_every_mode(mode):
    model, ids = bert().eval(), torch.randint(0, 60, (2, 7))
    with mode():
        found = torch._dynamo.explain(model)(ids, attention_mask=torch.ones_like(ids))
    assert (found.graph_count, found.graph_break_count) == (1, 0), str(found)


@pytest.mark.parametrize("parametrize", [
    lambda layer: parametrizations.weight_norm(layer), lambda layer: parametrizations.spectral_norm(layer),
    lambda layer: parametrizations.orthogonal(layer, orthogonal_map="householder"),
])  # fmt: skip
def test_parametrized_layers_are_one_graph(parametrize):
    torch.manual_seed(0)
    model = nn.Sequential(parametrize(nn.Linear(6, 6)), nn.Tanh(), parametrize(nn.Linear(6, 6))).eval()
    compiled = torch.compile(model, fullgraph=True)
    with torch.no_grad():
        for x in (torch.randn(2, 6), torch.randn(3, 6)):
            torch.testing.assert_close(compiled(x), model(x))
        next(model.parameters()).mul_(2)
        torch.testing.assert_close(compiled(x), model(x))
        with parametrized.cached():
            assert model[0].weight is model[0].weight
        assert model[0].weight is not model[0].weight
