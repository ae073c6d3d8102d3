"""examples/generation.py: batches, kept prompts, both kinds of cache, stop words, what is refused, and how often it compiles."""

from __future__ import annotations

import random

import pytest

import rushlight as torch
from examples.generation import Meter, Session, Stream, generate, generate_batch, texts
from examples.sampling import Sampler, Sampling
from tests.examples.small_gemma import model

MODEL = model()
PROMPTS = [[3, 1, 4, 1, 5, 9, 2, 6], [7], [2, 7, 1]]


def close(found: torch.Tensor, expected: torch.Tensor) -> None:
    assert float((found - expected).abs().max() / expected.abs().max()) < 1e-4


def alone(prompt: list[int], most: int) -> list[int]:
    return list(generate(Session(MODEL, 40, compiled=False), prompt, most))


@pytest.mark.parametrize("options", [{}, {"compiled": False}, {"static": True, "compiled": False}], ids=str)
def test_a_batch_is_as_its_texts_alone(options):
    session = Session(MODEL, 40, batch=3, **options)
    logits = session.prompt(PROMPTS)
    for row, prompt in enumerate(PROMPTS):
        close(logits[row], Session(MODEL, 40, compiled=False).prompt([prompt])[0])
    made = list(generate_batch(session, PROMPTS, 12))
    assert [list(row) for row in zip(*made, strict=True)] == [alone(prompt, 12) for prompt in PROMPTS]


def test_a_static_cache_is_as_a_growing_one():
    session = Session(MODEL, 40, static=True, compiled=False)
    assert list(generate(session, [1, 2, 3], 30)) == alone([1, 2, 3], 30)


def test_texts_of_a_batch_end_by_themselves():
    whole = [alone(prompt, 12) for prompt in PROMPTS]
    stop = next(token for token in whole[0] if token not in whole[1] + whole[2])
    made = list(generate_batch(Session(MODEL, 40, batch=3, compiled=False), PROMPTS, 12, [stop]))
    found = [[token for token in row if token is not None] for row in zip(*made, strict=True)]
    assert found == [whole[0][: whole[0].index(stop)], *whole[1:]]


def test_each_text_has_its_sampler():
    def sampler(seed: int) -> Sampler:
        return Sampler(Sampling(temperature=1.0, seed=seed))

    made = list(generate_batch(Session(MODEL, 40, batch=2, compiled=False), PROMPTS[1:], 9, (), [sampler(1), sampler(2)]))
    for row, prompt in enumerate(PROMPTS[1:]):
        session = Session(MODEL, 40, compiled=False)
        assert [each[row] for each in made] == list(generate(session, prompt, 9, (), sampler(row + 1)))


class Counting:
    """Notes how many tokens each step reads."""

    def __init__(self, session: Session):
        self.counts, self.step = [], session.step
        session.step = self

    def __call__(self, tokens: torch.Tensor, *rest: object) -> torch.Tensor:
        self.counts.append(tokens.shape[1])
        return self.step(tokens, *rest)


def test_what_was_read_is_kept():
    session = Session(MODEL, 40, compiled=False)
    steps = Counting(session)
    first = list(generate(session, [1, 2, 3, 4], 3))
    question = [1, 2, 3, 4, *first[:2], 8, 9]
    assert list(generate(session, question, 5)) == alone(question, 5)
    assert steps.counts[:6] == [4, 1, 1, 1, 2, 1]  # the question's last two tokens only
    steps.counts.clear()
    assert list(generate(session, [1, 2, 7], 5)) == alone([1, 2, 7], 5)
    assert list(generate(session, [1, 2, 7], 5)) == alone([1, 2, 7], 5)
    assert steps.counts == [1, 1, 1, 1, 1, 1] * 2  # of the same prompt the last token is read again


def test_a_batch_keeps_what_all_its_texts_share():
    session = Session(MODEL, 40, batch=2, compiled=False)
    steps = Counting(session)
    list(generate_batch(session, [[1, 2, 3], [4]], 1))
    for prompts, read in (([[1, 2, 3, 7], [4, 8, 9]], 3), ([[1, 2, 3, 8], [4, 8, 9]], 1)):  # other padding, then the same
        steps.counts.clear()
        made = list(generate_batch(session, prompts, 4))
        assert steps.counts[0] == read
        assert [list(row) for row in zip(*made, strict=True)] == [alone(prompt, 4) for prompt in prompts]


def test_an_interrupted_step_leaves_the_session_as_it_was():
    session = Session(MODEL, 40, compiled=False)
    list(generate(session, [1, 2, 3], 2))
    step, seen = session.step, session.seen

    def interrupted(*given: object) -> torch.Tensor:
        step(*given)
        raise KeyboardInterrupt

    session.step = interrupted
    with pytest.raises(KeyboardInterrupt):
        session.feed(torch.tensor([[9, 9]]))
    session.step = step
    assert session.seen == seen
    assert list(generate(session, [1, 2, 3, 5], 6)) == alone([1, 2, 3, 5], 6)


@pytest.mark.parametrize("batch", [1, 3])
@pytest.mark.parametrize("static", [False, True])
def test_two_graphs_serve_all_texts_of_a_batch_size(batch, static):
    torch._dynamo.reset()
    counter = torch._dynamo.testing.CompileCounterWithBackend("eager")
    compiled = torch.compile(model(context=400).forward, backend=counter, dynamic=True)
    for _ in range(2):
        session = Session(model(context=400), 400, batch, compiled=False, static=static)
        session.step = compiled
        for count, most in ((3, 70), (2, 3), (5, 3), (64, 3), (130, 3)):  # the first prompt is as long as a batch is wide
            made = list(generate_batch(session, [[1 + count % 7] * (count - row % 2) for row in range(batch)], most))
            assert len(made) == most
    assert counter.frame_count == 2


def test_what_a_session_refuses():
    session = Session(MODEL, 4, compiled=False)
    for prompt, said in (
        ([], "a prompt has no token"),
        ([1] * 5, "has 5 tokens, but the session was made for 4"),
        ([50], "the token 50 is out of range: this model has the tokens 0 to 49"),
        ([-1], "the token -1 is out of range"),
    ):
        with pytest.raises(ValueError, match=said):
            next(generate(session, prompt, 1))
    with pytest.raises(ValueError, match="expected 1 prompts, got 2"):
        session.prompt([[1], [2]])
    with pytest.raises(ValueError, match=r"expected tokens of the sizes \(1, 1 or more\), got \(1, 0\)"):
        session.feed(torch.zeros(1, 0, dtype=torch.int64))
    session.prompt([[1, 2, 3]])
    with pytest.raises(ValueError, match="has 5 tokens, but the session was made for 4"):
        session.feed(torch.tensor([[1, 2]]))
    with pytest.raises(ValueError, match="has 1 to 40 tokens, got 41"):
        Session(MODEL, 41)
    with pytest.raises(ValueError, match="at least one text, got 0"):
        Session(MODEL, 4, batch=0)
    assert len(list(generate(session, [1, 2], 9))) == 3  # as long as the text may grow


# Text


def content(token: int) -> bytes:
    return bytes([token])


def streamed(text: str, *stop_words: str) -> tuple[list[str], bool]:
    shown = Stream(content, stop_words)
    pieces = [shown.push(byte) for byte in text.encode()]
    return [piece for piece in [*pieces, shown.finish()] if piece], shown.ended


@pytest.mark.parametrize(
    ("text", "stop_words", "shown", "ended"),
    [
        ("abc", (), ["a", "b", "c"], False), ("aé€", (), ["a", "é", "€"], False), ("one END two", ("END",), list("one "), True),
        ("ENE.", ("END",), ["EN", "E."], False), ("EN", ("END",), ["EN"], False), ("aab", ("ab",), ["a"], True),
        ("xabac", ("abc", "bac"), ["x", "a"], True), ("", ("a",), [], False), ("aé!", ("é",), ["a"], True),
    ],
)  # fmt: skip
def test_stop_words_span_tokens(text, stop_words, shown, ended):
    assert streamed(text, *stop_words) == (shown, ended)


def test_random_stop_words():
    chance = random.Random(0)
    for _ in range(300):
        text = "".join(chance.choice("abc") for _ in range(12))
        words = ["".join(chance.choice("abc") for _ in range(chance.randint(1, 3))) for _ in range(2)]
        pieces, ended = streamed(text, *words)
        # The first word that is complete ends the text; of words complete at once, the one that begins first.
        ends = [end for end in range(13) if any(word in text[:end] for word in words)]
        expected = text if not ends else text[: min(text[: ends[0]].find(word) for word in words if word in text[: ends[0]])]
        assert ("".join(pieces), ended) == (expected, bool(ends))


def test_incomplete_characters_at_the_end():
    shown = Stream(content)
    assert [shown.push(byte) for byte in "é€".encode()[:-1]] == ["", "é", "", ""] and shown.finish() == "\ufffd"


def test_a_stop_word_has_a_character():
    with pytest.raises(ValueError, match="at least one character"):
        Stream(content, ("",))


class Letters:
    """A vocabulary of 50 single characters."""

    def encode(self, text: str) -> list[int]:
        return [ord(letter) - ord("A") for letter in text]

    def content(self, token: int) -> bytes:
        return bytes([ord("A") + token])


def test_text_of_a_model():
    letters, meter = Letters(), Meter()
    whole = letters_of(alone([1, 2, 3], 9))
    word = whole[4:6]
    session = Session(MODEL, 40, compiled=False)
    pieces = texts(meter.counted(generate(session, letters.encode("BCD"), 9)), letters, [word])
    assert "".join(pieces) == whole[: whole.find(word)]
    assert str(meter).endswith("tokens a second") == (meter.count > 2)


def letters_of(tokens: list[int]) -> str:
    return b"".join(map(Letters().content, tokens)).decode()
