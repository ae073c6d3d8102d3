"""A chat in the terminal with Gemma 3:

    python -m examples.chat --model gemma-3-270m-it-q4_k_m.gguf --temperature 0.8 --top-p 0.95

/reset begins anew and /quit leaves, as does the end of the input (Ctrl-D). Ctrl-C ends an answer, not the program. Without
--model, the package's model is used. That is a base model: it continues text and was never taught to answer.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Generator, Sequence

from examples import gemma
from examples.generation import LanguageModel, Session, Stream, generate
from examples.gguf_tokens import Tokenizer
from examples.sampling import Sampler, Sampling, add_options, count, sampler_of
from examples.terminal import run

TURN, END = "<start_of_turn>", "<end_of_turn>"
BASE_MODEL = "This is a base model: it continues text, and was not taught to answer questions."


class Chat:
    """A conversation: the tokens of its turns, and a session that has read them.

    Args:
        model: a model that knows Gemma's marks of turns.
        tokenizer: its vocabulary. ValueError where that lacks the marks.
        length: the longest conversation in tokens. The oldest turns are dropped where it would be longer.
        most: the longest answer in tokens.
        choose: takes the next token; by default the likeliest.
    """

    def __init__(
        self, model: LanguageModel, tokenizer: Tokenizer, length: int = 2048, most: int = 512, choose: Sampler | None = None
    ):
        marks = [tokenizer.encode(mark, begin=False) for mark in (TURN, END)]
        if any(len(mark) != 1 for mark in marks):
            raise ValueError(f"this vocabulary has no tokens {TURN} and {END}, which a chat needs")
        self.tokenizer, self.choose, self.most = tokenizer, choose or Sampler(Sampling()), min(most, length // 2)
        self.session = Session(model, length)
        self.stops = [tokenizer.end, marks[1][0]]
        self.turns: list[list[int]] = []

    def reset(self) -> None:
        """Forget what was said."""
        self.turns = []

    def ask(self, question: str) -> Generator[str]:
        """The answer in pieces. What was given out when the caller stops is kept as the answer. ValueError for a question that
        is longer than the conversation may be."""
        self.turns += [self._turn("user", question), self.tokenizer.encode(f"{TURN}model\n", begin=False)]
        answer, shown = self.turns[-1], Stream(self.tokenizer.content)
        try:
            prompt = self._prompt()
            for token in generate(self.session, prompt, self.most, self.stops, self.choose):
                answer.append(token)
                yield shown.push(token)
            yield shown.finish()
        finally:
            answer += self.tokenizer.encode(f"{END}\n", begin=False)

    def _turn(self, role: str, text: str) -> list[int]:
        encode = self.tokenizer.encode
        spoken = encode(text, begin=False, special=False)  # marks in what was typed are only text
        return encode(f"{TURN}{role}\n", begin=False) + spoken + encode(f"{END}\n", begin=False)

    def _prompt(self) -> list[int]:
        """The tokens of all turns that leave room for an answer."""
        begin = [self.tokenizer.begin] if self.tokenizer.adds_begin else []
        while (count := len(begin) + sum(map(len, self.turns))) + self.most > self.session.length:
            if len(self.turns) == 2:
                self.turns = []
                raise ValueError(f"the question has {count} tokens; there is room for {self.session.length - self.most}")
            del self.turns[:2]
        return begin + [token for turn in self.turns for token in turn]


def converse(chat: Chat, read: Callable[[], str], write: Callable[[str], None]) -> None:
    """Read questions until the end of the input, and write answers."""
    while True:
        try:
            question = read().strip()
        except EOFError:
            write("\n")
            return
        except KeyboardInterrupt:
            write("\n(/quit or Ctrl-D leaves)\n")
            continue
        match question:
            case "":
                continue
            case "/quit":
                return
            case "/reset":
                chat.reset()
                write("(forgotten)\n")
            case _ if question.startswith("/"):
                write(f"there is no command {question.split()[0]}; there are /reset and /quit\n")
            case _:
                _answer(chat, question, write)


def _answer(chat: Chat, question: str, write: Callable[[str], None]) -> None:
    pieces = chat.ask(question)
    try:
        for piece in pieces:
            write(piece)
        write("\n")
    except KeyboardInterrupt:
        write(" ...\n")
    except ValueError as error:
        write(f"{error}\n")
    finally:
        pieces.close()


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", metavar="FILE", help="a GGUF file of Gemma 3; by default that of the package")
    parser.add_argument(
        "--length", type=count, default=2048, help="tokens of the whole conversation; the oldest turns are dropped"
    )
    parser.add_argument("--tokens", type=count, default=512, help="how many an answer has at most")
    add_options(parser)
    options = parser.parse_args(arguments)
    if sys.stdin is None:
        print("a chat needs an input: the standard input is closed", file=sys.stderr)
        return 1
    try:
        model, metadata = gemma.load(options.model or gemma.installed_model())
        chat = Chat(model, Tokenizer(metadata), options.length, options.tokens, sampler_of(options))
    except (ImportError, OSError, RuntimeError, ValueError) as error:
        print(error, file=sys.stderr)
        return 1
    if options.model is None:
        print(BASE_MODEL)

    def write(text: str) -> None:
        print(text, end="", flush=True)

    converse(chat, lambda: input("> "), write)
    return 0


if __name__ == "__main__":
    run(main)
