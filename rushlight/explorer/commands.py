"""The command `rushlight explore`: a program or a TorchScript archive is run and recorded, and the page of that written.

In: the words of a command line. Out: a page, and an exit status: that of the program, 1 where it raised, 2 for words that make
no sense.
"""

from __future__ import annotations

import argparse
import io
import os
import sys
import traceback
from collections.abc import Callable, Sequence
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any, TextIO

from rushlight.as_torch.program import run_program
from rushlight.autograd.grad_mode import no_grad
from rushlight.explorer.page import recordings_of, write_page
from rushlight.explorer.recorder import MAX_OUTPUT, Recorder
from rushlight.explorer.serving import serve
from rushlight.jit.commands import arguments_of
from rushlight.jit.measuring import method_of
from rushlight.jit.serialization.loading import load

ARCHIVES = (".pt", ".pth", ".ptl", ".ts", ".jit")
_CALLS = 10


def main(words: Sequence[str], before_program: Callable[[], None] = lambda: None) -> int:
    """Run the command; `before_program` is called before a program runs, in which `torch` is to be this library."""
    options = _options(words)
    target = options.program[0]
    if target != "-m" and not Path(target).exists():
        print(f"rushlight explore: there is no file {target!r}", file=sys.stderr)
        return 2
    if options.serve is not None:
        return serve(options.program, options.serve, options.title)
    try:
        earlier = recordings_of(Path(options.against).read_text())[-1:] if options.against else []
    except (OSError, ValueError) as error:
        print(f"rushlight explore: --against: {error}", file=sys.stderr)
        return 2
    is_archive = target.endswith(ARCHIVES)
    recorder = Recorder(with_eager=not is_archive)
    if is_archive:
        status, output, error = _run_archive(recorder, options.program)
    else:
        before_program()
        status, output, error = _run_program(recorder, options.program)
    title = options.title or Path(options.program[1] if target == "-m" else target).name
    recording = recorder.as_dict(title, " ".join(["rushlight", "explore", *options.program]), output, error)
    try:
        write_page(options.output, [*earlier, recording])
    except OSError as failure:
        print(f"rushlight explore: {failure}", file=sys.stderr)
        return 1
    print(f"{options.output}: open it in a browser", file=sys.stderr)
    return status


def _options(words: Sequence[str]) -> argparse.Namespace:
    """The words of the command line; `program` has at least one word, two after `-m`."""
    parser = argparse.ArgumentParser(
        prog="rushlight explore", description="Run a program or a TorchScript archive, and write a page with every stage of "
        "the compiler, from bytecode to C++, and the time of each kernel.",
    )  # fmt: skip
    parser.add_argument("-o", "--output", default="explore.html", metavar="PAGE", help="the page (default: explore.html)")
    parser.add_argument("--title", help="the page's title (default: the program's name)")
    parser.add_argument("--against", metavar="PAGE", help="an earlier page to compare with")
    port = "serve the page on this port of localhost (default: 8200), and make it anew whenever the program's files change"
    parser.add_argument("--serve", nargs="?", type=int, const=8200, metavar="PORT", help=port)
    parser.add_argument("-m", dest="module", nargs=argparse.REMAINDER, metavar="MODULE", help="a module, and its arguments")
    text = "a Python file or an archive, and its arguments: --input X ..., --method NAME, --calls N for an archive"
    parser.add_argument("program", nargs=argparse.REMAINDER, metavar="PROGRAM ...", help=text)
    options = parser.parse_args(words)
    if not (options.program or options.module):
        parser.error("which program? Name a Python file, `-m MODULE` or an archive")
    options.program = ["-m", *options.module] if options.module else options.program
    return options


class _Tail(io.TextIOBase):
    """Passes text on to a stream, and keeps its end in `kept`, which two streams may share."""

    def __init__(self, stream: TextIO, kept: list[str]):
        self._stream = stream
        self._kept = kept

    def write(self, text: str) -> int:
        """Write text."""
        self._kept.append(text)
        if sum(map(len, self._kept[-64:])) > 4 * MAX_OUTPUT or len(self._kept) > 10_000:
            self._kept[:] = ["".join(self._kept)[-MAX_OUTPUT:]]
        return self._stream.write(text)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def flush(self) -> None:
        """Flush the stream."""
        self._stream.flush()

    def isatty(self) -> bool:
        """Whether the stream is a terminal."""
        return self._stream.isatty()

    def fileno(self) -> int:
        """The stream's descriptor."""
        return self._stream.fileno()


@contextmanager
def _recorded(recorder: Recorder):
    """A block that is recorded; gives the list of what it printed."""
    kept: list[str] = []
    recorder.start()
    try:
        with redirect_stdout(_Tail(sys.stdout, kept)), redirect_stderr(_Tail(sys.stderr, kept)):
            yield kept
    finally:
        recorder.stop()


def _run_program(recorder: Recorder, words: Sequence[str]) -> tuple[int, str, str | None]:
    """Run a program; its exit status, what it printed, and the traceback if it raised."""
    with _recorded(recorder) as printed:
        status, error = 0, None
        try:
            run_program(words)
        except SystemExit as end:
            status = end.code if isinstance(end.code, int) else int(end.code is not None)
        except BaseException as raised:  # also when the user stops it: the page shows what was recorded up to then
            status, error = 1, "".join(traceback.format_exception(raised))
            print(error, file=sys.stderr)
    return status, "".join(printed), error


def _run_archive(recorder: Recorder, words: Sequence[str]) -> tuple[int, str, str | None]:
    """Call a method of an archive several times, natively as soon as possible, and show one run of it by the stack machine."""
    os.environ.setdefault("RUSHLIGHT_JIT_NATIVE_AFTER", "0")
    parser = argparse.ArgumentParser(prog="rushlight explore ARCHIVE")
    parser.add_argument("archive")
    parser.add_argument("--input", nargs="*", default=[], metavar="X", help="as `rushlight run` takes it: float32[1,3,224,224]")
    parser.add_argument("--method", default="forward")
    parser.add_argument("--calls", type=int, default=_CALLS, help=f"how often it is called (default: {_CALLS})")
    options = parser.parse_args(words)
    with _recorded(recorder) as printed:
        status, error = 0, None
        try:
            module = load(options.archive, map_location="cpu")
            arguments = arguments_of(options.input)
            method = method_of(module, options.method)
            with no_grad():
                for _ in range(options.calls):
                    method(*arguments)
                recorder.show_steps(module._c.type.find_method(options.method), [module._c, *arguments])
        except (RuntimeError, OSError, ValueError, TypeError) as raised:
            status, error = 1, "".join(traceback.format_exception(raised))
            print(f"rushlight explore: {raised}", file=sys.stderr)
    return status, "".join(printed), error
