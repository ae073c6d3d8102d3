"""Which token comes next: by the likeliest, or drawn at random among those that settings leave.

The settings are those of other programs for language models, applied in this order: a penalty for tokens that the text has
already, temperature, the k likeliest, the fewest whose probabilities sum to p, and those that are at least a part of the
likeliest one's.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Sequence
from dataclasses import dataclass

import rushlight as torch


@dataclass(frozen=True)
class Sampling:
    """How tokens are chosen. ValueError for settings out of range.

    Attributes:
        temperature: 0 takes the likeliest; above 0 logits are divided by it, and a token is drawn.
        top_k: how many of the likeliest are left; 0 for all.
        top_p: of (0, 1]: the fewest likeliest ones are left whose probabilities sum to this.
        min_p: of [0, 1): tokens less likely than this part of the likeliest one's probability are left out.
        penalty: above 0: logits of tokens that the text has are divided by it where positive, else multiplied; 1 for none.
        seed: where random numbers begin; the same seed gives the same text.
    """

    temperature: float = 0.0
    top_k: int = 0
    top_p: float = 1.0
    min_p: float = 0.0
    penalty: float = 1.0
    seed: int = 0

    def __post_init__(self) -> None:
        rules = {
            "temperature must be at least 0 and finite": 0 <= self.temperature < math.inf,
            "top_k must be at least 0": self.top_k >= 0,
            "top_p must be above 0 and at most 1": 0 < self.top_p <= 1,
            "min_p must be at least 0 and below 1": 0 <= self.min_p < 1,
            "penalty must be above 0 and finite": 0 < self.penalty < math.inf,
        }
        broken = [f"{rule}, got {getattr(self, rule.split()[0])}" for rule, holds in rules.items() if not holds]
        if broken:
            raise ValueError("; ".join(broken))


class Sampler:
    """Chooses tokens, with random numbers of its own."""

    def __init__(self, sampling: Sampling):
        self.sampling = sampling
        self.generator = torch.Generator().manual_seed(sampling.seed)

    def __call__(self, logits: torch.Tensor, text: Sequence[int]) -> int:
        """The next token after `text`, whose logits are (vocabulary,)."""
        chosen = self.sampling
        logits = penalized(logits, text, chosen.penalty)
        if chosen.temperature == 0:
            return int(logits.argmax())
        probabilities = (logits / chosen.temperature).softmax(0)
        if chosen.top_k or chosen.top_p < 1 or chosen.min_p > 0:
            probabilities = kept(probabilities, chosen)
        return int(torch.multinomial(probabilities, 1, generator=self.generator))


def count(text: str) -> int:
    """A number of tokens as a command line has it: 1 or more."""
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError(f"expected 1 or more, got {value}")
    return value


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add a command-line option for each setting."""
    parser.add_argument("--temperature", type=float, default=0.0, help="0 takes the likeliest token")
    parser.add_argument("--top-k", type=int, default=0, help="only so many of the likeliest; 0 for all")
    parser.add_argument("--top-p", type=float, default=1.0, help="only the likeliest whose probabilities sum to this")
    parser.add_argument("--min-p", type=float, default=0.0, help="none below this part of the likeliest one's probability")
    parser.add_argument("--penalty", type=float, default=1.0, help="for tokens that the text has already")
    parser.add_argument("--seed", type=int, default=0)


def sampler_of(options: argparse.Namespace) -> Sampler:
    """The sampler that a command's options ask for. ValueError for settings out of range."""
    chosen = options.temperature, options.top_k, options.top_p, options.min_p, options.penalty, options.seed
    return Sampler(Sampling(*chosen))


def penalized(logits: torch.Tensor, text: Sequence[int], penalty: float) -> torch.Tensor:
    """Logits of which those of the text's tokens are made smaller."""
    if penalty == 1 or not text:
        return logits
    places = torch.tensor(sorted(set(text)))
    found = logits[places]
    return logits.index_put((places,), torch.where(found > 0, found / penalty, found * penalty))


def kept(probabilities: torch.Tensor, sampling: Sampling) -> torch.Tensor:
    """The probabilities of tokens that settings leave; 0 for the others. The likeliest one is always left."""
    ordered, places = probabilities.sort(descending=True)
    before = ordered.cumsum(0) - ordered
    leaves = (before < sampling.top_p) & (ordered >= sampling.min_p * ordered[0])
    if sampling.top_k:
        leaves &= torch.arange(len(ordered)) < sampling.top_k
    leaves[0] = True
    return torch.zeros_like(probabilities).index_put((places,), ordered * leaves)
