"""Precompiled headers for generated code, by GCC; they save small programs a third of their compile time.

In: a compiler, its flags, the cache folder. Out: the file `KEY.h.gch` there, and the arguments that make a unit use it. GCC
ignores a precompiled header made with other flags. After it, `#pragma once` turns a unit's `#include` lines into no-ops.
"""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

from rushlight.utils.native import cache, toolchain
from rushlight.utils.native.toolchain import BuildError, Command

# Every program includes the first six. grouped.h is left out, because its functions would slow down every compilation.
HEADERS = (
    "vec", "elementwise", "math", "reduce", "parallel", "checks", "attention_backward", "convolution_input",
    "convolution_weight", "recurrent_backward", "volume", "scan", "sort", "search", "philox",
)  # fmt: skip
# precompile once the cache has this many programs: precompiling takes as long as parsing the headers this often
MIN_PROGRAMS = 8
_INCLUDE = "#include <rushlight/{}.h>\n"
_failed: set[Path] = set()


def arguments(compiler: Command, flags: tuple[str, ...], source: Path, folder: Path, digest: str) -> tuple[str, ...]:
    """Return the arguments for units of `source`, a program in the cache folder; empty if precompiled headers cannot be used.

    The header is precompiled when the cache has MIN_PROGRAMS programs, with temporary files in `folder`. `digest` identifies
    the headers' content.
    """
    if not _serve(compiler, source):
        return ()
    header = source.parent / (cache.digest("precompiled", *flags, digest, toolchain.identity(compiler)) + ".h")
    made = header.with_suffix(".h.gch")
    if not (made.exists() or _make([*compiler, *flags], made, folder)):
        return ()
    with contextlib.suppress(OSError):  # ignored: the file can be used from a read-only cache, too
        os.utime(made)  # mark as recently used for eviction
    return ("-include", str(header))


def discard(given: tuple[str, ...]) -> None:
    """Stop using a precompiled header in this process, because a unit failed to compile with it."""
    _failed.add(made := Path(f"{given[-1]}.gch"))
    made.unlink(missing_ok=True)


def _serve(compiler: Command, source: Path) -> bool:
    """Return whether precompiled headers work: only with GCC itself (not ccache), and for programs that include them first."""
    if len(compiler) > 1 or toolchain.is_clang(compiler):
        return False
    with open(source) as text:
        return text.readline() == _INCLUDE.format(HEADERS[0])


def _make(command: list[str], made: Path, folder: Path) -> bool:
    """Precompile the headers if the cache has enough programs; returns whether the file exists then."""
    if made in _failed or len(list(made.parent.glob("*.so"))) < MIN_PROGRAMS:
        return False
    text, partial = folder / "headers.h", folder / "headers.h.gch"
    try:
        text.write_text("".join(map(_INCLUDE.format, HEADERS)))
        toolchain.run([[*command, "-x", "c++-header", str(text), "-o", str(partial)]], "the precompiled headers", folder)
        os.replace(partial, made)
    except (BuildError, OSError):  # ignored: programs compile without it
        _failed.add(made)
    return made not in _failed
