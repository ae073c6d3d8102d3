"""Prebuilt kernels: kernels that are the same for every graph, compiled when Rushlight was built, in one archive per
instruction set.

In: the processor's features. Out: the archive to link generated code with, if there is one. An archive's name contains the
digest of its headers, so that edited headers invalidate it. The build reads this file, too, so it imports nothing of Rushlight.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection
from pathlib import Path

FOLDER = "archives"  # beside this file
DEFINE = "-DRL_PREBUILT"  # defined for units that are linked with an archive

# Works around a bug of GCC 12 with tuning for Intel. It turns a branch that sets several values into conditional moves, but an
# addition in between changes the flags that later moves read. Branches that set one value still become moves.
CONDITIONAL_MOVE_WORKAROUND = "--param=max-rtl-if-conversion-insns=1"

# Linux's names of processor features -> GCC's flags.
_AVX2 = {"avx2": "-mavx2", "fma": "-mfma", "f16c": "-mf16c", "bmi1": "-mbmi", "bmi2": "-mbmi2"}
_AVX512 = _AVX2 | {name: f"-m{name}" for name in ("avx512f", "avx512bw", "avx512vl", "avx512dq")}
_NEEDED = {"avx2": _AVX2.keys(), "avx512": _AVX512.keys()}
INSTRUCTIONS = {"avx2": [*_AVX2.values()], "avx512": [*_AVX512.values(), "-mprefer-vector-width=512"]}


def digest_of_headers(folder: Path) -> str:
    """Return a digest of the native headers in a folder."""
    content = hashlib.blake2b(digest_size=20)
    for file in sorted(folder.glob("rushlight/*.h")):
        content.update(file.read_bytes())
    return content.hexdigest()


def archive_name(instructions: str, digest: str) -> str:
    """Return the file name of an archive built from headers with this digest."""
    return f"{instructions}-{digest}.a"


def archive(features: Collection[str], digest: str) -> Path | None:
    """Return the archive for code that uses all `features` of the processor.

    None if it was not built, or not from the present headers. AVX-512 code needs the AVX-512 archive.
    """
    instructions = "avx512" if "avx512f" in features else "avx2"
    if not _NEEDED[instructions] <= set(features):
        return None
    found = Path(__file__).parent / FOLDER / archive_name(instructions, digest)
    return found if found.exists() else None
