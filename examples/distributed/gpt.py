"""A small GPT on the letters of a book, and batches of it: each rank takes its part of a batch that all agree on."""

from __future__ import annotations

from pathlib import Path

import torch
from torch.nn import functional as F

TEXT = Path(__file__).parents[1] / "data" / "alice.txt"
CONTEXT, BATCH = 64, 8  # letters of a sequence, sequences of a step on all ranks together


class Attention(torch.nn.Module):
    """Causal attention over heads; each rank may have some of the heads."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.query, self.key, self.value = (torch.nn.Linear(width, width) for _ in range(3))
        self.output = torch.nn.Linear(width, width)
        self.head_width = width // heads

    def forward(self, x):
        """Return as many positions as there are in `x`, of shape (batch, positions, width)."""
        batch, positions, _ = x.shape
        parts = (layer(x).view(batch, positions, -1, self.head_width) for layer in (self.query, self.key, self.value))
        attended = F.scaled_dot_product_attention(*(part.transpose(1, 2) for part in parts), is_causal=True)
        return self.output(attended.transpose(1, 2).reshape(batch, positions, -1))


class Block(torch.nn.Module):
    """Attention and a feed-forward network, each after a normalization and around a residual."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.before_attention, self.before_network = torch.nn.LayerNorm(width), torch.nn.LayerNorm(width)
        self.attention = Attention(width, heads)
        self.up, self.down = torch.nn.Linear(width, 4 * width), torch.nn.Linear(4 * width, width)

    def forward(self, x):
        """Return a tensor of the shape of `x`."""
        x = x + self.attention(self.before_attention(x))
        return x + self.down(F.gelu(self.up(self.before_network(x))))


class GPT(torch.nn.Module):
    """Predicts the next letter at each position."""

    def __init__(self, letters: int, width: int = 64, heads: int = 4, layers: int = 2) -> None:
        super().__init__()
        self.letters, self.positions = torch.nn.Embedding(letters, width), torch.nn.Embedding(CONTEXT, width)
        self.blocks = torch.nn.ModuleList(Block(width, heads) for _ in range(layers))
        self.norm, self.head = torch.nn.LayerNorm(width), torch.nn.Linear(width, letters)

    def forward(self, letters):
        """Return scores (batch, positions, letters) for letters (batch, positions)."""
        x = self.letters(letters) + self.positions(torch.arange(letters.shape[1]))
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x))


class Batches:
    """The book as numbers of letters, cut into batches at places that depend on the step alone."""

    def __init__(self) -> None:
        text = TEXT.read_text()
        self.alphabet = sorted(set(text))
        numbers = {letter: number for number, letter in enumerate(self.alphabet)}
        self.text = torch.tensor([numbers[letter] for letter in text])

    def part(self, step: int, rank: int, ranks: int):
        """Return letters and the letters that follow, (batch / ranks, positions) each: a rank's part of a step's batch."""
        generator = torch.Generator().manual_seed(step)
        places = torch.randint(len(self.text) - CONTEXT - 1, (BATCH,), generator=generator).tolist()
        rows = torch.stack([self.text[place : place + CONTEXT + 1] for place in places])
        mine = rows[rank * BATCH // ranks : (rank + 1) * BATCH // ranks]
        return mine[:, :-1], mine[:, 1:]


def loss_of(model, letters, following):
    """Return the mean cross entropy of the predictions."""
    return F.cross_entropy(model(letters).flatten(0, 1), following.flatten())
