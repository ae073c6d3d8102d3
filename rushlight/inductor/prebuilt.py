"""Kernels that are the same for every graph, compiled when Rushlight was built: an archive for each set of instructions.

In: what the processor can do. Out: the archive that generated code is to be linked with, if there is one. Archives are named
after the headers that they were compiled from, so that an edited header leaves them behind. The build reads this file too, so
that it imports nothing of Rushlight.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection
from pathlib import Path

FOLDER = "archives"  # beside this file
DEFINE = "-DRL_PREBUILT"  # for units that will be linked with an archive

# GCC 12 tuned for Intel's processors turns a branch that sets several values into conditional moves, of which the later ones
# read flags that an addition between them has changed. Branches that set one value still become moves.
RIGHT_MOVES = "--param=max-rtl-if-conversion-insns=1"

# The names of features as Linux writes them, and GCC's flags for them.
_AVX2 = {"avx2": "-mavx2", "fma": "-mfma", "f16c": "-mf16c", "bmi1": "-mbmi", "bmi2": "-mbmi2"}
_AVX512 = _AVX2 | {name: f"-m{name}" for name in ("avx512f", "avx512bw", "avx512vl", "avx512dq")}
_NEEDED = {"avx2": _AVX2.keys(), "avx512": _AVX512.keys()}
INSTRUCTIONS = {"avx2": [*_AVX2.values()], "avx512": [*_AVX512.values(), "-mprefer-vector-width=512"]}


def digest_of_headers(folder: Path) -> str:
    """A name for the content of the native headers in a folder."""
    content = hashlib.blake2b(digest_size=20)
    for file in sorted(folder.glob("rushlight/*.h")):
        content.update(file.read_bytes())
    return content.hexdigest()


def archive_name(instructions: str, digest: str) -> str:
    """The file of an archive that is compiled from headers of this digest."""
    return f"{instructions}-{digest}.a"


def archive(features: Collection[str], digest: str) -> Path | None:
    """The archive for code that uses all that the processor can, its `features`.

    None where it was not built, or not from the present headers. Code for 16 floats at a time needs the archive of these.
    """
    instructions = "avx512" if "avx512f" in features else "avx2"
    if not _NEEDED[instructions] <= set(features):
        return None
    found = Path(__file__).parent / FOLDER / archive_name(instructions, digest)
    return found if found.exists() else None
