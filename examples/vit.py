"""A vision transformer: an image comes in, one score per class goes out.

The network of Dosovitskiy et al., "An Image is Worth 16x16 Words" (arXiv:2010.11929).
"""

from __future__ import annotations

import dataclasses

import rushlight as torch
from rushlight import nn

F = nn.functional


@dataclasses.dataclass(frozen=True)
class ViTConfig:
    """Sizes of the model; the defaults are ViT-Base with patches of 16 pixels."""

    image_size: int = 224
    patch_size: int = 16
    hidden_size: int = 768
    layers: int = 12
    heads: int = 12
    mlp_size: int = 3072
    classes: int = 1000
    layer_norm_eps: float = 1e-6


class Block(nn.Module):
    """Self-attention and feed-forward, each on normalised input and added to it."""

    def __init__(self, config: ViTConfig) -> None:
        super().__init__()
        self.heads = config.heads
        self.norm1 = nn.LayerNorm(config.hidden_size, eps=config.layer_norm_eps)
        self.qkv = nn.Linear(config.hidden_size, 3 * config.hidden_size)
        self.proj = nn.Linear(config.hidden_size, config.hidden_size)
        self.norm2 = nn.LayerNorm(config.hidden_size, eps=config.layer_norm_eps)
        self.fc1 = nn.Linear(config.hidden_size, config.mlp_size)
        self.fc2 = nn.Linear(config.mlp_size, config.hidden_size)

    def attend(self, x: torch.Tensor) -> torch.Tensor:
        batch, tokens, size = x.shape
        parts = self.qkv(x).reshape(batch, tokens, 3, self.heads, size // self.heads).permute(2, 0, 3, 1, 4)
        context = F.scaled_dot_product_attention(parts[0], parts[1], parts[2])
        return self.proj(context.transpose(1, 2).reshape(batch, tokens, size))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = x + self.attend(self.norm1(x))
        return x + self.fc2(F.gelu(self.fc1(self.norm2(x))))


class VisionTransformer(nn.Module):
    """(N, 3, image_size, image_size) images to (N, classes) scores."""

    def __init__(self, config: ViTConfig) -> None:
        super().__init__()
        patches = (config.image_size // config.patch_size) ** 2
        self.patch_embed = nn.Conv2d(3, config.hidden_size, config.patch_size, config.patch_size)
        self.cls_token = nn.Parameter(torch.zeros(1, 1, config.hidden_size))
        self.pos_embed = nn.Parameter(torch.zeros(1, patches + 1, config.hidden_size))
        self.blocks = nn.ModuleList([Block(config) for _ in range(config.layers)])
        self.norm = nn.LayerNorm(config.hidden_size, eps=config.layer_norm_eps)
        self.head = nn.Linear(config.hidden_size, config.classes)

    def forward(self, image: torch.Tensor) -> torch.Tensor:
        x = self.patch_embed(image).flatten(2).transpose(1, 2)
        x = torch.cat([self.cls_token.expand(x.shape[0], -1, -1), x], 1) + self.pos_embed
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x)[:, 0])
