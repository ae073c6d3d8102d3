"""x-transformers: decoders and encoders with their options, and what they generate."""

from __future__ import annotations

import torch
from x_transformers import (
    AutoregressiveWrapper,
    ContinuousTransformerWrapper,
    Decoder,
    Encoder,
    TransformerWrapper,
    ViTransformerWrapper,
    XTransformer,
)

from tests.clients.networks import Network, ramp
from tests.clients.stages import stage

TOKENS = [[5, 6, 7, 8, 9, 10, 11, 12], [13, 14, 15, 16, 17, 18, 19, 20]]


class Language(Network):
    """A decoder with options of the library's."""

    options: dict = {}

    def make(self):
        layers = Decoder(dim=32, depth=2, heads=4, attn_dim_head=8, **self.options)
        return TransformerWrapper(num_tokens=32, max_seq_len=32, attn_layers=layers)

    def call(self, module):
        return [module(torch.tensor(TOKENS))]

    @stage
    def generate_greedy(self):
        return AutoregressiveWrapper(self.module).generate(torch.tensor(TOKENS), 6, temperature=0.0)

    @stage
    def generate_sampled(self):
        return AutoregressiveWrapper(self.module).generate(torch.tensor(TOKENS), 6, temperature=0.7)

    @stage
    def train_loss(self):
        return AutoregressiveWrapper(self.module)(torch.tensor(TOKENS)).detach()


class Plain(Language):
    name = "decoder"


class Rotary(Language):
    name, options = (
        "rotary, RMSNorm, SwiGLU",
        dict(rotary_pos_emb=True, use_rmsnorm=True, ff_swish=True, ff_glu=True, ff_no_bias=True),
    )


class Flash(Language):
    name, options = "flash, grouped queries", dict(attn_flash=True, attn_kv_heads=2, rotary_pos_emb=True)


class Alibi(Language):
    name, options = "ALiBi, sandwich", dict(alibi_pos_bias=True, alibi_num_heads=2, sandwich_norm=True)


class Relative(Language):
    name, options = "T5's bias, query norms", dict(rel_pos_bias=True, attn_qk_norm=True, residual_attn=True)


class Image(Network):
    name = "ViTransformerWrapper"

    def make(self):
        return ViTransformerWrapper(
            image_size=32, patch_size=8, num_classes=10, attn_layers=Encoder(dim=32, depth=2, heads=4, attn_dim_head=8)
        )

    def call(self, module):
        return [module(ramp(2, 3, 32, 32))]


class Continuous(Network):
    name = "ContinuousTransformerWrapper"

    def make(self):
        layers = Encoder(dim=32, depth=2, heads=4, attn_dim_head=8)
        return ContinuousTransformerWrapper(dim_in=8, dim_out=4, max_seq_len=16, attn_layers=layers)

    def call(self, module):
        return [module(ramp(2, 10, 8))]


class EncoderDecoder(Network):
    name = "XTransformer"

    def make(self):
        parts = {
            f"{part}_{key}": value
            for part in ("enc", "dec")
            for key, value in dict(num_tokens=32, depth=1, heads=4, max_seq_len=16, attn_dim_head=8).items()
        }
        return XTransformer(dim=32, **parts)

    def call(self, module):
        return [module(torch.tensor(TOKENS), torch.tensor(TOKENS), mask=torch.ones(2, 8, dtype=torch.bool))]

    @stage
    def generate(self):
        return self.module.generate(torch.tensor(TOKENS), torch.tensor([[1], [1]]), 4, temperature=0.0)
