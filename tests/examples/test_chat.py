"""examples/chat.py: turns, commands, what is kept, and how it ends."""

from __future__ import annotations

import pytest

from examples.chat import Chat, converse
from examples.generation import Session, generate
from examples.gguf_tokens import Tokenizer
from tests.examples.small_gemma import model

MODEL = model(context=200)
PIECES = [
    "<pad>",
    "<eos>",
    "<bos>",
    "<start_of_turn>",
    "<end_of_turn>",
    "\n",
    *"abcdefghijklmnopqrstuvwxyz",
    "<",
    ">",
    "_",
    "\u2581",
]
VOCABULARY = {
    "tokenizer.ggml.model": "llama", "tokenizer.ggml.bos_token_id": 2, "tokenizer.ggml.eos_token_id": 1,
    "tokenizer.ggml.add_space_prefix": False, "tokenizer.ggml.tokens": PIECES + [f"<unused{n}>" for n in range(50 - len(PIECES))],
    "tokenizer.ggml.scores": [0.0] * 50, "tokenizer.ggml.token_type": [3] * 5 + [1] * 45,
}  # fmt: skip
TOKENIZER = Tokenizer(VOCABULARY)


def chat(**options: int) -> Chat:
    made = Chat(MODEL, TOKENIZER, **{"length": 200, "most": 6, **options})
    made.session = Session(MODEL, made.session.length, compiled=False)
    return made


def answer(text: str, most: int = 6) -> list[int]:
    """The tokens after a text, by themselves."""
    return list(generate(Session(MODEL, 200, compiled=False), TOKENIZER.encode(text), most, [1, 4]))


def said(made: Chat, *lines: str | type[BaseException]) -> str:
    """What a conversation writes."""
    waiting, written = iter([*lines, EOFError]), []

    def read() -> str:
        line = next(waiting)
        if isinstance(line, str):
            return line
        raise line

    converse(made, read, written.append)
    return "".join(written)


FIRST = "<start_of_turn>user\nabc<end_of_turn>\n<start_of_turn>model\n"


def test_turns_follow_one_another():
    one = answer(FIRST)
    assert one
    two = answer(FIRST + TOKENIZER.decode(one) + "<end_of_turn>\n" + FIRST)
    assert said(chat(), "abc", " abc ") == f"{TOKENIZER.decode(one)}\n{TOKENIZER.decode(two)}\n\n"


def test_commands():
    one = TOKENIZER.decode(answer(FIRST))
    assert said(chat(), "abc", "/reset", "abc") == f"{one}\n(forgotten)\n{one}\n\n"
    assert said(chat(), "", "/quit", "abc") == ""
    assert said(chat(), "/why abc") == "there is no command /why; there are /reset and /quit\n\n"
    assert said(chat(), KeyboardInterrupt, "abc").endswith(f"{one}\n\n")


def test_marks_in_a_question_are_text():
    made = chat()
    said(made, "a<end_of_turn>b")
    assert made.turns[0].count(4) == 1


def test_an_interrupted_answer_is_kept():
    made, whole = chat(), answer(FIRST)
    pieces = made.ask("abc")
    shown = [next(pieces), next(pieces)]
    pieces.close()
    assert "".join(shown) == TOKENIZER.decode(whole[:2])
    two = answer(FIRST + TOKENIZER.decode(whole[:2]) + "<end_of_turn>\n" + FIRST)
    assert "".join(made.ask("abc")) == TOKENIZER.decode(two)


def test_ctrl_c_ends_an_answer():
    made, step = chat(), 0

    def write(text: str) -> None:
        nonlocal step
        step += 1
        if step == 2:
            raise KeyboardInterrupt
        written.append(text)

    written, lines = [], iter(["abc", "/reset", "abc"])
    with pytest.raises(StopIteration):  # the program goes on until the lines are over
        converse(made, lambda: next(lines), write)
    assert " ...\n" in written and "".join(written).endswith(TOKENIZER.decode(answer(FIRST)) + "\n")


def test_the_oldest_turns_are_dropped():
    made = chat(length=60)
    for _ in range(4):
        said(made, "abc")
        assert sum(map(len, made.turns)) <= 60
    assert len(made.turns) == 4
    assert said(made, "a" * 60).startswith("the question has ") and made.turns == []
    assert said(made, "abc") == TOKENIZER.decode(answer(FIRST)) + "\n\n"


def test_a_vocabulary_without_marks():
    names = [f"<{number}>" for number in range(50)]
    with pytest.raises(ValueError, match="has no tokens <start_of_turn> and <end_of_turn>"):
        Chat(MODEL, Tokenizer({**VOCABULARY, "tokenizer.ggml.tokens": names}))
