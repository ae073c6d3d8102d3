"""A small Gemma with random weights, for tests."""

from __future__ import annotations

import dataclasses

import rushlight as torch
from examples import gemma

CONFIG = gemma.Config(
    layers=3, width=64, inner=96, heads=4, shared_heads=2, head_width=16, vocabulary=50, context=40, window=5, window_every=3
)  # fmt: skip


def model(**changes: int) -> gemma.Gemma:
    """The model, with overridden settings."""
    torch.manual_seed(0)
    made = gemma.Gemma(dataclasses.replace(CONFIG, **changes))
    for parameter in made.parameters():
        torch.nn.init.normal_(parameter, std=0.3)
    return made.eval().requires_grad_(False)
