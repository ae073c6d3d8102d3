"""The headers of generated code, precompiled by GCC, which saves small programs a third of their compile time.

In: a compiler, its flags, the cache folder. Out: the file `KEY.h.gch` there, and the arguments with which a unit is compiled
after it. GCC ignores a precompiled header that was made with other flags. After it, `#pragma once` makes the `#include` lines
of a unit do nothing.
"""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

from rushlight.utils.native import cache, toolchain
from rushlight.utils.native.toolchain import BuildError, Command

# Every program includes the first six. grouped.h is left out, because its functions would cost each program time.
HEADERS = (
    "vec", "elementwise", "math", "reduce", "parallel", "checks", "attention_backward", "convolution_input",
    "convolution_weight", "recurrent_backward", "volume", "scan", "sort", "search", "philox",
)  # fmt: skip
WORTHWHILE = 8  # programs in the cache: to precompile takes as long as reading the headers this often
_INCLUDE = "#include <rushlight/{}.h>\n"
_failed: set[Path] = set()


def arguments(compiler: Command, flags: tuple[str, ...], source: Path, folder: Path, digest: str) -> tuple[str, ...]:
    """The arguments for units of `source`, a program in the cache folder; none where precompiled headers don't serve.

    They are made when the cache has WORTHWHILE programs, with temporary files in `folder`. `digest` names the headers' content.
    """
    if not _serve(compiler, source):
        return ()
    header = source.parent / (cache.digest("precompiled", *flags, digest, toolchain.identity(compiler)) + ".h")
    made = header.with_suffix(".h.gch")
    if not (made.exists() or _make([*compiler, *flags], made, folder)):
        return ()
    with contextlib.suppress(OSError):  # a cache that may only be read is as good
        os.utime(made)  # the least recently used entries are the first to go
    return ("-include", str(header))


def discard(given: tuple[str, ...]) -> None:
    """Use the file of these arguments no more in this process, since a unit did not compile after it."""
    _failed.add(made := Path(f"{given[-1]}.gch"))
    made.unlink(missing_ok=True)


def _serve(compiler: Command, source: Path) -> bool:
    """For GCC itself, since a front end such as ccache can't deal with them, and programs that begin by including them."""
    if len(compiler) > 1 or toolchain.is_clang(compiler):
        return False
    with open(source) as text:
        return text.readline() == _INCLUDE.format(HEADERS[0])


def _make(command: list[str], made: Path, folder: Path) -> bool:
    """Whether it was worthwhile to write the file, and succeeded."""
    if made in _failed or len(list(made.parent.glob("*.so"))) < WORTHWHILE:
        return False
    text, partial = folder / "headers.h", folder / "headers.h.gch"
    try:
        text.write_text("".join(map(_INCLUDE.format, HEADERS)))
        toolchain.run([[*command, "-x", "c++-header", str(text), "-o", str(partial)]], "the precompiled headers", folder)
        os.replace(partial, made)
    except (BuildError, OSError):  # programs compile without them
        _failed.add(made)
    return made not in _failed
