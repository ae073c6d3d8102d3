"""einops: its functions, its layers and a network made of them."""

from __future__ import annotations

import einops
import torch
from einops.layers.torch import EinMix, Rearrange, Reduce

from tests.clients.networks import Network, compile_by, ramp
from tests.clients.stages import Client, stage


class Functions(Client):
    name = "functions"

    @stage
    def rearrange(self):
        return einops.rearrange(ramp(2, 4, 6), "b (h w) c -> b c h w", h=2)

    @stage
    def reduce(self):
        return [einops.reduce(ramp(2, 4, 6), "b (h 2) c -> b h c", kind) for kind in ("mean", "max", "sum")]

    @stage
    def repeat(self):
        return einops.repeat(ramp(2, 3), "a b -> a (b copies)", copies=3)

    @stage
    def einsum(self):
        return einops.einsum(ramp(2, 3, 4), ramp(4, 5), "batch row inner, inner column -> batch row column")

    @stage
    def pack(self):
        packed, shapes = einops.pack([ramp(2, 3), ramp(2, 4, 3)], "b * c")
        return [packed, *einops.unpack(packed, shapes, "b * c")]

    @stage
    def asnumpy(self):
        return einops.asnumpy(ramp(2, 3))

    @stage
    def backward(self):
        value = ramp(2, 4, 6).requires_grad_()
        (einops.reduce(value, "b (h 2) c -> b c", "max") ** 2).sum().backward()
        return value.grad

    @stage
    def compile(self):
        return compile_by(lambda value: einops.rearrange(value, "b (h w) c -> b c h w", h=2).exp())(ramp(2, 4, 6))


class Layers(Network):
    name = "layers"

    def make(self):
        return torch.nn.Sequential(
            Rearrange("b c (h p) (w q) -> b (h w) (p q c)", p=4, q=4),
            EinMix("b t c -> b t d", weight_shape="c d", bias_shape="d", c=48, d=16),
            torch.nn.GELU(),
            Reduce("b t d -> b d", "mean"),
            torch.nn.Linear(16, 3),
        )

    def call(self, module):
        return [module(ramp(2, 3, 16, 16))]

    @stage
    def script(self):
        with torch.no_grad():
            return torch.jit.script(self.module[0])(ramp(2, 3, 16, 16))
