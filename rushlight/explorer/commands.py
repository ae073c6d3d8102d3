"""The command `rushlight explore`: a program or a TorchScript archive is run and recorded, and the page of that written.

In: the words of a command line. Out: a page, and an exit status: that of the program, 1 where it raised, 130 where the user
stopped it, 2 for words that make no sense.
"""

from __future__ import annotations

import argparse
import os
import sys
import threading
import traceback
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures.thread import _threads_queues
from contextlib import contextmanager, redirect_stderr, redirect_stdout, suppress
from pathlib import Path
from typing import Any, TextIO

from rushlight.autograd.grad_mode import no_grad
from rushlight.explorer.page import check_built, comparable_recording, write_page
from rushlight.explorer.recorder import MAX_OUTPUT, Recorder
from rushlight.explorer.serving import serve
from rushlight.fx.annotations import PACKAGE_FOLDER
from rushlight.jit.commands import arguments_of
from rushlight.jit.measuring import method_of
from rushlight.jit.script_function import bind_arguments
from rushlight.jit.serialization.loading import load

ARCHIVES = (".pt", ".pth", ".ptl", ".ts", ".jit")
_CALLS = 10


RunProgram = Callable[[Sequence[str]], None]


def main(words: Sequence[str], load_program_runner: Callable[[], RunProgram]) -> int:
    """Run the command. `load_program_runner` is called before a program is recorded; it gives what runs the program by its
    words, and `torch` in it is this library."""
    options = _options(words)
    target = options.program[0]
    if target != "-m" and not Path(target).exists():
        print(f"rushlight explore: there is no file {target!r}", file=sys.stderr)
        return 2
    try:
        check_built()
    except OSError as error:
        print(f"rushlight explore: {error}", file=sys.stderr)
        return 1
    if options.serve:
        return serve(options.program, options.port, options.title)
    try:
        earlier = comparable_recording(options.against) if options.against else []
    except (OSError, ValueError) as error:
        print(f"rushlight explore: --against: {error}", file=sys.stderr)
        return 2
    page = Path(options.output).absolute()  # the program may change the folder
    if not page.parent.is_dir() or page.is_dir():
        problem = "is a folder, not a file" if page.is_dir() else "is in a folder that does not exist"
        print(f"rushlight explore: the page {str(page)!r} {problem}", file=sys.stderr)
        return 2
    process = os.getpid()
    is_archive = target.endswith(ARCHIVES)
    recorder = Recorder(with_eager=not is_archive)
    if is_archive:
        try:
            status, output, error = _run_archive(recorder, options.program)
        except _NothingRan as failure:
            print(f"rushlight explore: {failure}", file=sys.stderr)
            return 1
    else:
        status, output, error = _run_program(recorder, load_program_runner(), options.program)
    if os.getpid() != process:  # a child that the program forked; its parent writes the page
        return status
    if not is_archive and target != "-m" and not recorder.files.has_any():
        recorder.files.index(target)  # the page shows the source even if nothing was compiled
    title = options.title or Path(options.program[1] if target == "-m" else target).name
    recording = recorder.as_dict(title, " ".join(["rushlight", "explore", *options.program]), output, error)
    try:
        write_page(page, [*earlier, recording])
    except OSError as failure:
        _print_error(f"rushlight explore: {failure}\n")
        return 1
    if not options.quiet:
        _print_error(f"{options.output}: open it in a browser\n")
    return status


def _options(words: Sequence[str]) -> argparse.Namespace:
    """The words of the command line; `program` has at least one word, two after `-m`."""
    parser = argparse.ArgumentParser(
        prog="rushlight explore", description="Run a program or a TorchScript archive, and write a page with every stage of "
        "the compiler, from bytecode to C++, and the time of each kernel.",
    )  # fmt: skip
    parser.add_argument("-o", "--output", default="explore.html", metavar="PAGE", help="the page (default: explore.html)")
    parser.add_argument("--quiet", action="store_true", help="don't say where the page is")
    parser.add_argument("--title", help="the page's title (default: the program's name)")
    parser.add_argument("--against", metavar="PAGE", help="an earlier page to compare with")
    text = "serve the page on localhost, and make it anew whenever the program's files change"
    parser.add_argument("--serve", action="store_true", help=text)
    parser.add_argument("--port", type=port_number, default=8200, help="the port for --serve (default: 8200)")
    parser.add_argument("-m", dest="module", nargs=argparse.REMAINDER, metavar="MODULE", help="a module, and its arguments")
    text = "a Python file or an archive, and its arguments: --input X ..., --method NAME, --calls N for an archive"
    parser.add_argument("program", nargs=argparse.REMAINDER, metavar="PROGRAM ...", help=text)
    options = parser.parse_args(words)
    if not (options.program or options.module):
        parser.error("which program? Name a Python file, `-m MODULE` or an archive")
    options.program = ["-m", *options.module] if options.module else options.program
    return options


def port_number(word: str) -> int:
    return _number_in(range(1 << 16), word)


def call_count(word: str) -> int:
    return _number_in(range(sys.maxsize), word)


def _number_in(allowed: range, word: str) -> int:
    """Return a number of the command line. ValueError, which argparse reports, if it is not allowed."""
    number = int(word)
    if number not in allowed:
        raise ValueError
    return number


class _Tail:
    """Is a stream in all that a program may ask of it, and keeps the end of its text in `kept`, which two streams may share."""

    def __init__(self, stream: TextIO, kept: list[str]):
        self._stream = stream
        self._kept = kept

    def write(self, text: str) -> int:
        """Write text."""
        written = self._stream.write(text)
        self._kept.append(str(text))
        if sum(map(len, self._kept[-64:])) > 4 * MAX_OUTPUT or len(self._kept) > 10_000:
            self._kept[:] = ["".join(self._kept)[-MAX_OUTPUT:]]
        return written

    @property
    def __class__(self) -> type:
        return type(self._stream)  # for isinstance

    def writelines(self, lines: Iterable[str]) -> None:
        """Write texts."""
        for line in lines:
            self.write(line)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def __iter__(self) -> Iterator[str]:
        return iter(self._stream)

    def __enter__(self) -> _Tail:
        self._stream.__enter__()
        return self

    def __exit__(self, *error: Any) -> None:
        self._stream.__exit__(*error)


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


def _run_program(recorder: Recorder, run: RunProgram, words: Sequence[str]) -> tuple[int, str, str | None]:
    """Run a program; its exit status, what it printed, and the traceback if it raised."""
    with _recorded(recorder) as printed:
        status, error = 0, None
        try:
            run(words)
        except SystemExit as end:
            status = end.code if isinstance(end.code, int) else int(end.code is not None)
            if not isinstance(end.code, int | None):
                _print_error(f"{end.code}\n")
        except BaseException as raised:  # also when the user stops it: the page shows what was recorded up to then
            status, error = 130 if isinstance(raised, KeyboardInterrupt) else 1, _traceback_of(raised)
            _print_error(error)
        _wait_for_threads()
    return status, "".join(printed), error


def _traceback_of(raised: BaseException) -> str:
    """Return the traceback as Python prints it for a script: without the frames that run the program. If the program could not
    be compiled or found, no frames remain."""
    frames = raised.__traceback__
    while frames is not None and _runs_programs(frames.tb_frame.f_code.co_filename):
        frames = frames.tb_next
    return "".join(traceback.format_exception(type(raised), raised, frames))


def _runs_programs(path: str) -> bool:
    return path.startswith((PACKAGE_FOLDER, "<frozen runpy>"))


def _print_error(text: str) -> None:
    """Print to the program's stderr, which it may have closed."""
    with suppress(AttributeError, ValueError, OSError):
        sys.stderr.write(text)


def _wait_for_threads() -> None:
    """Wait for the threads that Python would wait for before it exits: what they do belongs to the recording. Idle workers of a
    pool end only when Python does."""
    with suppress(KeyboardInterrupt):
        for thread in threading.enumerate():
            if not (thread.daemon or thread is threading.current_thread() or thread in _threads_queues):
                thread.join()


class _NothingRan(Exception):
    """The archive, its method or its inputs can't be had, so that there is nothing to show."""


def _run_archive(recorder: Recorder, words: Sequence[str]) -> tuple[int, str, str | None]:
    """Call a method of an archive several times, natively as soon as possible, and show one run of it by the stack machine."""
    os.environ.setdefault("RUSHLIGHT_JIT_NATIVE_AFTER", "0")
    parser = argparse.ArgumentParser(prog="rushlight explore ARCHIVE")
    parser.add_argument("archive")
    parser.add_argument("--input", nargs="*", default=[], metavar="X", help="as `rushlight run` takes it: float32[1,3,224,224]")
    parser.add_argument("--method", default="forward")
    parser.add_argument("--calls", type=call_count, default=_CALLS, help=f"how often it is called (default: {_CALLS})")
    options = parser.parse_args(words)
    with _recorded(recorder) as printed:
        try:
            module = load(options.archive, map_location="cpu")
            arguments = arguments_of(options.input)
            method = method_of(module, options.method)
        except (RuntimeError, OSError, ValueError, TypeError) as raised:
            raise _NothingRan(raised) from raised
        status, error = 0, None
        try:
            with no_grad():
                for _ in range(options.calls):
                    method(*arguments)
                function = module._c.type.find_method(options.method)
                recorder.show_steps(function, bind_arguments(function.schema, [module._c, *arguments], {}))
        except (RuntimeError, OSError, ValueError, TypeError) as raised:
            status, error = 1, "".join(traceback.format_exception(raised))
            print(f"rushlight explore: {raised}", file=sys.stderr)
    return status, "".join(printed), error
