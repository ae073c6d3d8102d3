"""C++ text to a loaded library, through the cache. The compiler is `$CXX`, or g++, or clang++."""

from __future__ import annotations

import contextlib
import ctypes
import functools
import os
import shutil
import subprocess
import tempfile
import warnings
from dataclasses import dataclass
from pathlib import Path

import rushlight._C as _C
from rushlight.inductor import cache

INCLUDE = Path(__file__).parent / "include"
FLAGS = (
    "-std=c++17", "-O2", "-march=native", "-fopenmp", "-shared", "-fPIC", "-fno-math-errno", "-fno-trapping-math",
    "-ffp-contract=fast", "-fno-plt", "-Wno-psabi",
)  # fmt: skip
DEBUG_FLAGS = ("-std=c++17", "-g", "-O0", "-march=native", "-fopenmp", "-shared", "-fPIC", "-Wno-psabi")
TIME_LIMIT = 300  # seconds


class CompilerMissing(RuntimeError):
    """No C++ compiler was found."""


class BuildError(RuntimeError):
    """The C++ compiler failed; the message holds its output and the source's path."""


@dataclass(frozen=True)
class Library:
    """A loaded program: addresses of its functions, and the arena's size in bytes."""

    path: Path
    entry: int
    prepare: int | None
    arena_bytes: int
    from_cache: bool


def compiler() -> str:
    """The C++ compiler's path; CompilerMissing says what to install."""
    chosen = os.environ.get("CXX")
    for name in (chosen,) if chosen else ("g++", "clang++"):
        found = shutil.which(name)
        if found:
            return found
    raise CompilerMissing(
        f"no C++ compiler found ({chosen or 'g++ or clang++'}). Install one, e.g. 'apt-get install g++', or set CXX."
    )


@functools.cache
def _compiler_identity(path: str) -> str:
    status = os.stat(path)
    return f"{os.path.realpath(path)} {status.st_size} {status.st_mtime_ns}"


@functools.cache
def _headers_digest() -> str:
    files = sorted((INCLUDE / "rushlight").glob("*.h"))
    return cache.digest(*(file.read_text() for file in files))


def build(source: str, debug: bool = False) -> Library:
    """The library of a program's source: from the cache, or compiled now.

    CompilerMissing, or BuildError with what the compiler said. Where the cache folder cannot be used, a warning says so,
    and a folder that lasts as long as the process takes its place.
    """
    try:
        return _build_in(cache.open_folder(cache.default_folder()), source, debug)
    except OSError as error:
        _warn_once(f"compile: compiled code is not kept, because {error}")
    try:
        return _build_in(Path(_process_folder().name), source, debug)
    except OSError as error:
        raise BuildError(f"compiled code can neither be kept nor loaded: {error}") from error


@functools.cache
def _process_folder() -> tempfile.TemporaryDirectory:
    return tempfile.TemporaryDirectory(prefix="rushlight-")


@functools.cache
def _warn_once(message: str) -> None:
    warnings.warn(message, stacklevel=2)


def _build_in(folder: Path, source: str, debug: bool) -> Library:
    """`build` in a given folder; OSError when it cannot be written to, or libraries cannot be loaded from it."""
    flags = DEBUG_FLAGS if debug else (*FLAGS, *_vector_width())
    path_of_compiler = compiler()
    features = " ".join(_C.cpu_features())
    key = cache.digest(source, " ".join(flags), _headers_digest(), _compiler_identity(path_of_compiler), features)
    text, library = folder / f"{key}.cpp", folder / f"{key}.so"
    if cache.is_intact(library):
        with contextlib.suppress(FileNotFoundError):  # another process may have trimmed the cache meanwhile
            return _load(library, True)
    cache.write_atomically(text, source.encode())
    cache.build_into(library, lambda temporary: _compile(path_of_compiler, flags, text, temporary))
    loaded = _load(library, False)
    cache.trim(folder, cache.size_limit())
    return loaded


def _vector_width() -> tuple[str, ...]:
    return ("-mprefer-vector-width=512",) if "avx512f" in _C.cpu_features() else ()


def _compile(path: str, flags: tuple[str, ...], text: Path, output: str) -> None:
    command = [path, *flags, f"-I{INCLUDE}", str(text), "-o", output]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=TIME_LIMIT)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise BuildError(f"the C++ compiler could not build {text}: {error}") from error
    if done.returncode:
        said = done.stderr.strip()[-4000:] or f"(no message; exit status {done.returncode})"
        raise BuildError(f"the C++ compiler failed on {text}\n$ {' '.join(command)}\n{said}")


def _load(path: Path, from_cache: bool) -> Library:
    try:
        loaded = ctypes.CDLL(str(path))
    except OSError as error:
        if not path.exists():
            raise FileNotFoundError(str(path)) from error
        raise
    size = loaded.rushlight_arena_bytes
    size.restype = ctypes.c_long
    prepare = getattr(loaded, "rushlight_prepare", None)
    return Library(path, _address(loaded.rushlight_entry), _address(prepare), size(), from_cache)


def _address(function) -> int | None:
    return None if function is None else ctypes.cast(function, ctypes.c_void_p).value
