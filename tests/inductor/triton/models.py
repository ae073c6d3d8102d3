"""Small models, with inputs, for tests of Triton kernels: BERT, ViT, ResNet, GPT."""

from __future__ import annotations

from unittest import mock

import examples.resnet
import rushlight as torch
from examples.bert import BertConfig, BertModel
from examples.vit import VisionTransformer, ViTConfig
from rushlight import nn

F = nn.functional


class Layer(nn.Module):
    """A layer of a decoder: causal attention and a feed-forward part, each on normalised input."""

    def __init__(self, width: int, heads: int, dropout: float):
        super().__init__()
        self.heads, self.dropout = heads, dropout
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.mixed, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.grown, self.shrunk = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x):
        batch, length, width = x.shape
        parts = self.mixed(self.norm1(x)).view(batch, length, 3, self.heads, width // self.heads).permute(2, 0, 3, 1, 4)
        mixed = F.scaled_dot_product_attention(*parts, is_causal=True).transpose(1, 2).reshape(x.shape)
        x = x + F.dropout(self.out(mixed), self.dropout, self.training)
        return x + self.shrunk(F.gelu(self.grown(self.norm2(x))))


class GPT(nn.Module):
    """A decoder of tokens; with targets it returns the loss."""

    def __init__(self, tokens: int = 50, width: int = 32, heads: int = 2, layers: int = 2, dropout: float = 0.1):
        super().__init__()
        self.tokens, self.places = nn.Embedding(tokens, width), nn.Embedding(64, width)
        self.layers = nn.Sequential(*(Layer(width, heads, dropout) for _ in range(layers)))
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, tokens, bias=False)

    def forward(self, x, targets=None):
        hidden = self.tokens(x) + self.places(torch.arange(x.shape[1]))
        scores = self.head(self.norm(self.layers(hidden)))
        return scores if targets is None else F.cross_entropy(scores.flatten(0, 1), targets.flatten())


def bert() -> tuple:
    config = BertConfig(vocab_size=60, hidden_size=32, num_hidden_layers=2, num_attention_heads=2, intermediate_size=64,
                        max_position_embeddings=32)  # fmt: skip
    ids, mask = torch.randint(0, 60, (2, 12)), torch.ones(2, 12, dtype=torch.int64)
    mask[1, 8:] = 0
    return BertModel(config).eval(), (ids, None, None, mask)


def vit() -> tuple:
    config = ViTConfig(image_size=16, patch_size=4, hidden_size=32, layers=2, heads=2, mlp_size=64, classes=10)
    return VisionTransformer(config).eval(), (torch.randn(2, 3, 16, 16),)


def resnet() -> tuple:
    with mock.patch.object(examples.resnet, "STAGES", (8, 16, 16, 32)):
        return examples.resnet.ResNet(10).eval(), (torch.randn(2, 3, 32, 32),)


def gpt() -> tuple:
    return GPT().eval(), (torch.randint(0, 50, (2, 20)),)


MODELS = {"bert": bert, "vit": vit, "resnet": resnet, "gpt": gpt}
