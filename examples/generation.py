"""Text by a language model: the cache of what was read, the loop that makes tokens, and streaming with stop words.

The model is any `LanguageModel` (examples/gemma.py is one), the vocabulary any `Vocabulary` (examples/gguf_tokens.py). Several
texts are read as one batch, padded on the left, so that their last tokens lie side by side.
"""

from __future__ import annotations

import codecs
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Protocol

import rushlight as torch
from examples.sampling import Sampler, Sampling

STEP = 64  # the visible part of a growing cache is extended by this many tokens
Row = list[int | None]  # the tokens of a text; None is padding


class LanguageModel(Protocol):
    """A decoder that keeps keys and values in caches given by its caller."""

    vocabulary: int  # number of tokens
    context: int  # longest text
    windows: Sequence[int | None]  # for each layer, how many tokens back it sees; None for all
    cache_sizes: tuple[int, int]  # heads and width of a key

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
        """The logits (batch, 1 or count, vocabulary) after tokens (batch, count).

        Args:
            tokens: int64 (batch, count).
            places: (count,), where the tokens lie in the cache.
            pads: (batch,), how many tokens of padding each text begins with; None for none.
            begins: (1,), the place of the first token in the caches of layers with a window.
            keys: per layer (batch, length, heads, width): what was read before. Written at `places`.
            values: likewise.
            last: whether only the logits after the last token are wanted.
        """
        ...


class Vocabulary(Protocol):
    """Text to tokens and back."""

    def encode(self, text: str) -> list[int]: ...

    def content(self, token: int) -> bytes: ...


class Session:
    """A batch of texts that grow: their tokens, keys and values, and the compiled model.

    Args:
        model: what comes after tokens.
        length: the longest text, padding included; caches of this length are made. ValueError beyond the model's context.
        batch: the number of texts.
        compiled: whether the model is compiled: one graph reads prompts, another makes tokens.
        static: whether each step attends over the whole cache, masked, instead of over the part that is filled.
    """

    def __init__(self, model: LanguageModel, length: int = 2048, batch: int = 1, compiled: bool = True, static: bool = False):
        if not 0 < length <= model.context:
            raise ValueError(f"a text of this model has 1 to {model.context} tokens, got {length}")
        if batch < 1:
            raise ValueError(f"a batch has at least one text, got {batch}")
        self.model, self.length, self.batch, self.static = model, length, batch, static
        heads, width = model.cache_sizes
        layers, sizes = len(model.windows), (batch, length + 2 * STEP, heads, width)
        self.keys, self.values = ([torch.zeros(sizes) for _ in range(layers)] for _ in range(2))
        self.step: Callable[..., torch.Tensor] = torch.compile(model.forward, dynamic=True) if compiled else model.forward
        self.rewind()

    @property
    def seen(self) -> int:
        """How many tokens were read, padding included."""
        return len(self.rows[0])

    def rewind(self, count: int = 0) -> None:
        """Forget all but the first `count` tokens. They stay in the cache and are not read again."""
        self.rows: list[Row] = [row[:count] for row in self.rows] if count else [[] for _ in range(self.batch)]
        self._visible: tuple = ()

    def prompt(self, prompts: Sequence[Sequence[int]]) -> torch.Tensor:
        """The logits (batch, 1, vocabulary) after one prompt per text, instead of what was read before.

        The beginning that the prompts share with what was read before is not read again. ValueError for an empty prompt, for
        one longer than the session, and for a token that the model does not have.
        """
        if len(prompts) != self.batch:
            raise ValueError(f"expected {self.batch} prompts, got {len(prompts)}")
        if not all(prompts):
            raise ValueError("a prompt has no token: begin with the vocabulary's token for the beginning of a text")
        count = max(map(len, prompts))
        rows: list[Row] = [[None] * (count - len(prompt)) + list(prompt) for prompt in prompts]
        self._check(rows, 0)
        kept = min(_common(old, new) for old, new in zip(self.rows, rows, strict=True))
        self.rewind(min(kept, count - 1))
        return self._read([row[self.seen :] for row in rows], last=True)

    def feed(self, tokens: torch.Tensor, last: bool = True) -> torch.Tensor:
        """The logits after further tokens (batch, count), of the last one or of each. ValueError as for `prompt`."""
        rows: list[Row] = tokens.tolist()
        if len(rows) != self.batch or not rows[0]:
            raise ValueError(f"expected tokens of the sizes ({self.batch}, 1 or more), got {tuple(tokens.shape)}")
        self._check(rows, self.seen)
        return self._read(rows, last)

    def _check(self, rows: Sequence[Row], seen: int) -> None:
        """ValueError where tokens are out of range, or too many after `seen` others."""
        count = len(rows[0])
        if seen + count > self.length:
            raise ValueError(f"the text has {seen + count} tokens, but the session was made for {self.length}")
        for token in (token for row in rows for token in row if token is not None):
            if not 0 <= token < self.model.vocabulary:
                raise ValueError(
                    f"the token {token} is out of range: this model has the tokens 0 to {self.model.vocabulary - 1}"
                )

    @torch.no_grad()
    def _read(self, rows: Sequence[Row], last: bool) -> torch.Tensor:
        count = len(rows[0])
        tokens = _fixed(torch.tensor([[token or 0 for token in row] for row in rows]), 0)
        places = torch.arange(self.seen, self.seen + count)
        texts = [old + new for old, new in zip(self.rows, rows, strict=True)]
        pads = _fixed(torch.tensor([text.count(None) for text in texts]), 0) if self.batch > 1 else None
        logits = self.step(tokens, places, pads, *self._caches(count), last)
        # Only now: an interrupted step leaves the session as it was.
        self.rows = texts
        return logits

    def _caches(self, count: int) -> tuple:
        """Where windows begin, and the parts of the caches that `count` further tokens see.

        Their lengths differ from one another and from `count`: sizes that are equal at the first call become one symbol of the
        compiled graph, which then holds only where they are equal.
        """
        windows = [window for window in self.model.windows if window is not None]
        begin = 0 if self.static or not windows else max(self.seen - max(windows) + 1, 0) // STEP * STEP
        end = self.length + STEP if self.static else (self.seen + count) // STEP * STEP + STEP
        if (begin, end) != self._visible[:2]:
            whole, near = slice(0, end), slice(begin, end + STEP // 2)
            parts = [whole if window is None else near for window in self.model.windows]
            dims = (0, 1, 2, 3) if self.static else (0, 2, 3)
            views = (
                [_fixed(each[:, part], *dims) for each, part in zip(held, parts, strict=True)]
                for held in (self.keys, self.values)
            )
            self._visible = (begin, end, torch.tensor([begin]), *views)
        return self._visible[2:]


def _fixed(tensor: torch.Tensor, *dims: int) -> torch.Tensor:
    """A tensor some of whose sizes are constants of the compiled graph."""
    torch._dynamo.mark_static(tensor, dims)
    return tensor


def _common(one: Row, other: Row) -> int:
    """The length of the beginning that two rows share."""
    pairs = enumerate(zip(one, other, strict=False))
    return next((place for place, (left, right) in pairs if left != right), min(len(one), len(other)))


def generate_batch(
    session: Session,
    prompts: Sequence[Sequence[int]],
    most: int,
    stops: Sequence[int] = (),
    choose: Sequence[Sampler] | None = None,
) -> Iterator[list[int | None]]:
    """The next token of each text, step by step; None for a text that has ended.

    A text ends at one of `stops`, which is left out, or after `most` tokens; all end when the session is full.

    Args:
        session: for as many texts as there are prompts. What it read before is forgotten, but for a common beginning.
        prompts: tokens of each text, at least one.
        most: how many tokens are made at most.
        stops: tokens that end a text.
        choose: a sampler for each text; by default the likeliest token is taken.

    ValueError as for `Session.prompt`.
    """
    samplers = choose or [Sampler(Sampling()) for _ in prompts]
    texts, running = [list(prompt) for prompt in prompts], [True] * len(prompts)
    logits = session.prompt(prompts)
    for _ in range(most):
        made: list[int | None] = []
        for row, text in enumerate(texts):
            token = samplers[row](logits[row, -1], text) if running[row] else None
            running[row] = token is not None and token not in stops
            made.append(token if running[row] else None)
            text += [token] if running[row] else []
        if not any(running):
            return
        yield made
        if session.seen == session.length:
            return
        logits = session.feed(torch.tensor([[token or 0] for token in made]))


def generate(
    session: Session, prompt: Sequence[int], most: int, stops: Sequence[int] = (), choose: Sampler | None = None
) -> Iterator[int]:
    """The tokens after one prompt; see `generate_batch`."""
    for (token,) in generate_batch(session, [prompt], most, stops, None if choose is None else [choose]):
        yield token


class Stream:
    """Turns tokens into text that can be shown at once, up to a stop word.

    Held back are bytes of characters that are not complete, and what a stop word may begin with. `ended` says that a stop word
    was found; nothing of it, nor of what follows, is given out.

    Args:
        content: the bytes that a token stands for.
        stop_words: texts that end the stream. ValueError for an empty one.
    """

    def __init__(self, content: Callable[[int], bytes], stop_words: Sequence[str] = ()):
        if not all(stop_words):
            raise ValueError("a stop word must have at least one character")
        self.content, self.stop_words = content, tuple(stop_words)
        self.ended, self._held = False, ""
        self._decoder: Any = codecs.getincrementaldecoder("utf-8")("replace")

    def push(self, token: int) -> str:
        """The text that can be shown after one more token, often empty."""
        return self._release(self._decoder.decode(self.content(token)))

    def finish(self) -> str:
        """The rest, when no token follows."""
        shown = self._release(self._decoder.decode(b"", True))
        rest, self._held = self._held, ""
        return shown + rest

    def _release(self, text: str) -> str:
        if self.ended:
            return ""
        self._held += text
        found = [place for word in self.stop_words if (place := self._held.find(word)) >= 0]
        if found:
            self.ended, shown, self._held = True, self._held[: min(found)], ""
            return shown
        kept = max((_overlap(self._held, word) for word in self.stop_words), default=0)
        cut = len(self._held) - kept
        shown, self._held = self._held[:cut], self._held[cut:]
        return shown


def _overlap(text: str, word: str) -> int:
    """How many characters at the end of a text may begin a word."""
    lengths = range(min(len(text), len(word) - 1), 0, -1)
    return next((length for length in lengths if text.endswith(word[:length])), 0)


def texts(tokens: Iterable[int], vocabulary: Vocabulary, stop_words: Sequence[str] = ()) -> Iterator[str]:
    """The text of tokens in pieces, as they are made, until a stop word; see `Stream`."""
    shown = Stream(vocabulary.content, stop_words)
    for token in tokens:
        yield shown.push(token)
        if shown.ended:
            return
    yield shown.finish()


class Meter:
    """Counts tokens, and the time from the second one on: the first two wait for the compiler."""

    def __init__(self) -> None:
        self.count, self.began, self.last = 0, 0.0, 0.0

    def counted(self, tokens: Iterable[int]) -> Iterator[int]:
        """The same tokens."""
        for token in tokens:
            self.count, self.last = self.count + 1, time.perf_counter()
            self.began = self.last if self.count == 2 else self.began
            yield token

    def __str__(self) -> str:
        if self.count < 3:
            return f"{self.count} tokens"
        return f"{(self.count - 2) / (self.last - self.began):.1f} tokens a second"
