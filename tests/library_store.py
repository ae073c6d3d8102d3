"""A store of compiled libraries between runs of the tests, in the folder that $RUSHLIGHT_TEST_STORE names.

A library's name hashes the program's text, the flags, the native headers, the compiler and the processor: the one that is kept
is the one that the compiler would write. The rest that decides how a text becomes a library is hashed into the name of a folder
in the store. Tests of the compiler's calls and of the cache have cache folders of their own, which start empty.
"""

from __future__ import annotations

import contextlib
import os
import shutil
from pathlib import Path

import rushlight
from rushlight.utils.native import cache

ROOT = Path(rushlight.__file__).parent
BUILDERS = (
    "inductor/build.py", "inductor/units.py", "inductor/prebuilt.py", "inductor/precompiled.py", "inductor/archives/*.a",
    "utils/native/*.py", "utils/cpp_extension/build.py", "core/openmp.py",
)  # fmt: skip
GENERATIONS = 4  # folders of other builders to keep
SUFFIXES = (".cpp", ".so")  # not files that depend on the library's version or on timings: plans, captures, choices


def store() -> Path | None:
    """The folder for the present builders' output; None if there is no store."""
    chosen = os.environ.get("RUSHLIGHT_TEST_STORE")
    if not chosen:
        return None
    files = [file for pattern in BUILDERS for file in sorted(ROOT.glob(pattern))]
    folder = Path(chosen).absolute() / cache.digest(*(file.read_bytes() for file in files))
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    os.utime(folder)
    return folder


def copy_entries(source: Path, target: Path) -> None:
    """Links the entries of one cache folder into another, which may have some of them already."""
    for library in source.glob("[!.]*.so"):
        for suffix in SUFFIXES:
            with contextlib.suppress(FileExistsError, FileNotFoundError):
                _link(library.with_suffix(suffix), target / f"{library.stem}{suffix}")


def _link(source: Path, target: Path) -> None:
    try:
        os.link(source, target)
    except FileExistsError:
        raise
    except OSError:  # another file system
        cache.write_atomically(target, source.read_bytes())
        shutil.copymode(source, target)


def trim(folder: Path) -> None:
    """Keeps the store within the cache's limit, with the output of only a few other builders."""
    cache.trim(folder, cache.size_limit())
    others = sorted((other for other in folder.parent.iterdir() if other != folder), key=lambda other: other.stat().st_mtime)
    for old in others[:-GENERATIONS]:
        shutil.rmtree(old, ignore_errors=True)
