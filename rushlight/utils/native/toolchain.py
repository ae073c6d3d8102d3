"""The C++ compiler on this machine: find it, and run it so that any failure is handled.

In: command lines. Out: the files that they write, or a `BuildError` with the compiler's output. The compiler is `$CXX`, which
may have arguments or a wrapper ("ccache g++"), or g++, or clang++, or that of Zig from the package ziglang.
"""

from __future__ import annotations

import contextlib
import errno
import functools
import importlib.util
import math
import os
import threading
import time
from collections.abc import Sequence
from typing import IO

from rushlight.core.lazy_module import LazyModule
from rushlight.utils.native.cache import warn_once

shlex, signal, subprocess, tempfile = map(LazyModule, ("shlex", "signal", "subprocess", "tempfile"))

Command = tuple[str, ...]
"""The start of a compiler's command line: a program's path, and perhaps arguments."""

ZIG_FLAGS = ("-fno-sanitize=all", "-Wno-unused-command-line-argument")
# Otherwise Zig spends minutes on building the C++ library, which generated code does not need.
ZIG_LINK_FLAGS = ("-nostdlib++",)
DEFAULT_TIME_LIMIT = 300.0  # seconds
_MESSAGE_LENGTH = 4000  # the number of last characters kept of a compiler's output
_DISK_FULL = {"No space left on device": errno.ENOSPC, "Disk quota exceeded": errno.EDQUOT}  # the messages with LC_ALL=C
_hung: set[str] = set()
_lock = threading.Lock()


class CompilerMissing(RuntimeError):
    """No C++ compiler was found, or it does not work."""


class BuildError(RuntimeError):
    """The C++ compiler failed; the message holds its output and the source's path."""


def compiler() -> Command:
    """Return the C++ compiler; CompilerMissing says what to install."""
    chosen = os.environ.get("CXX")
    for text in (chosen,) if chosen else ("g++", "clang++"):
        command = _command(text)
        if command and command[0] in _hung:
            raise CompilerMissing(
                f"the C++ compiler {command[0]} did not finish before, and is not tried again in this process"
            )
        if command:
            return command
    zig = None if chosen else zig_command()
    if zig is not None:
        return (*zig, "c++")
    raise CompilerMissing(
        f"no C++ compiler found ({chosen or 'g++ or clang++'}). Install one, e.g. 'apt-get install g++' or "
        "pip install 'rushlight[compiler]', or set CXX."
    )


def zig_command() -> Command | None:
    """Zig: the program `zig`, or that of the package ziglang."""
    found = _find("zig")
    if found is None:
        package = importlib.util.find_spec("ziglang")
        folders = package.submodule_search_locations if package is not None else None
        found = next((path for folder in folders or () if (path := _find(os.path.join(folder, "zig")))), None)
    return None if found is None else (found,)


def _command(text: str) -> Command:
    """Return the program of that name, which may contain spaces, or else the text split like a shell command; empty if there is
    no such program."""
    found = _find(text)
    if found is not None:
        return (found,)
    try:
        name, *arguments = shlex.split(text)
    except ValueError:  # an unclosed quote, or only spaces
        return ()
    found = _find(name)
    return () if found is None else (found, *arguments)


def _find(name: str) -> str | None:
    """Return the path of a program on PATH; None if there is none."""
    folders = [""] if os.path.dirname(name) else os.get_exec_path()
    paths = (os.path.join(folder, name) for folder in folders)
    return next((path for path in paths if os.path.isfile(path) and os.access(path, os.X_OK)), None)


@functools.cache
def _file_identity(path: str, size: int, modified: int) -> str:
    return f"{os.path.realpath(path)} {size} {modified}"


def identity(command: Command) -> str:
    """Return a fingerprint of the compiler and its arguments."""
    return " ".join(map(_program_identity, command))


def _program_identity(word: str) -> str:
    path = _find(word)
    if path is None:
        return word
    status = os.stat(path)
    return _file_identity(path, status.st_size, status.st_mtime_ns)


def is_clang(command: Command) -> bool:
    """Return whether a compiler is Clang, by its name; Zig's is."""
    return is_zig(command) or any("clang" in os.path.realpath(_find(word) or "") for word in command)


def is_zig(command: Command) -> bool:
    """Return whether a compiler is Zig's."""
    return len(command) > 1 and command[-1] == "c++"


@functools.cache
def has_openmp(command: Command) -> bool:
    """Return whether a compiler has OpenMP: GCC does, Zig's does not, and for Clang it is a separate package."""
    if not is_clang(command) or is_zig(command):
        return not is_zig(command)
    asked = [*command, "-fopenmp", "-E", "-x", "c++", "-"]
    try:
        found = subprocess.run(asked, input=b"#include <omp.h>\n", capture_output=True, timeout=time_limit(), check=False)
    except (OSError, subprocess.TimeoutExpired):
        return False
    return found.returncode == 0


def fast_linker(command: Command) -> tuple[str, ...]:
    """Return GCC's flag for the linker gold, if installed, which takes half the time of the default one."""
    return ("-fuse-ld=gold",) if not is_clang(command) and _find("ld.gold") else ()


def time_limit() -> float:
    """Return `$RUSHLIGHT_COMPILER_TIMEOUT`, or DEFAULT_TIME_LIMIT: the compiler's time limit in seconds. Warns about an invalid
    value."""
    given = os.environ.get("RUSHLIGHT_COMPILER_TIMEOUT", "").strip()
    try:
        seconds = float(given) if given else DEFAULT_TIME_LIMIT
    except ValueError:
        seconds = math.nan
    if seconds > 0:
        return seconds
    warn_once(f"RUSHLIGHT_COMPILER_TIMEOUT={given} is no number of seconds: it is taken for {DEFAULT_TIME_LIMIT:g}")
    return DEFAULT_TIME_LIMIT


def run(commands: Sequence[Sequence[str]], what: str, folder: str | os.PathLike) -> None:
    """Run compiler commands in parallel, with their temporary files in `folder`.

    BuildError for `what` when one fails or exceeds `time_limit()`; then all of them and their child processes are killed.
    OSError when the disk is full.
    """
    deadline = time.monotonic() + time_limit()
    with contextlib.ExitStack() as stack:
        running = [stack.enter_context(_Running(command, what, folder)) for command in commands]
        for process in running:
            process.finish(deadline)


def _scratch_file(folder: str | os.PathLike) -> IO[bytes]:
    """Return an anonymous file for a compiler's output, in memory if possible, since the disk may be full."""
    if hasattr(os, "memfd_create"):
        return os.fdopen(os.memfd_create("compiler output"), "w+b")
    return tempfile.TemporaryFile(dir=folder)


class _Running:
    """A running compiler, in its own process group."""

    def __init__(self, command: Sequence[str], what: str, folder: str | os.PathLike):
        self.command = list(command)
        self.what = what
        self.said = _scratch_file(folder)
        environment = {**os.environ, "TMPDIR": os.fspath(folder), "LC_ALL": "C"}
        try:
            self.process = subprocess.Popen(
                self.command, stdin=subprocess.DEVNULL, stdout=self.said, stderr=subprocess.STDOUT, env=environment,
                start_new_session=True,
            )  # fmt: skip
        except OSError as error:
            self.said.close()
            raise BuildError(f"the C++ compiler could not build {what}: {error}") from error

    def __enter__(self) -> _Running:
        return self

    def __exit__(self, *_: object) -> None:
        if self.process.poll() is None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()
        self.said.close()

    def finish(self, deadline: float) -> None:
        """Wait for the end; BuildError for a failure, OSError for a full disk."""
        try:
            status = self.process.wait(max(0.0, deadline - time.monotonic()))
        except subprocess.TimeoutExpired:
            with _lock:
                _hung.add(self.command[0])
            raise BuildError(
                f"the C++ compiler {self.command[0]} did not finish {self.what} in {time_limit():g} seconds"
            ) from None
        if status:
            said = self._error_message() or f"(no message; exit status {status})"
            for reason, number in _DISK_FULL.items():
                if reason in said:
                    raise OSError(number, reason, str(self.what))
            raise BuildError(f"the C++ compiler failed on {self.what}\n$ {' '.join(self.command)}\n{said}")

    def _error_message(self) -> str:
        size = self.said.seek(0, os.SEEK_END)
        self.said.seek(max(0, size - _MESSAGE_LENGTH))
        return self.said.read().decode(errors="replace").strip()
