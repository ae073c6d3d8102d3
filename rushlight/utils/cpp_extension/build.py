"""Build an extension's sources into a shared library, through the cache of compiled code.

In: a `Job`. Out: the library's path. The name of a library is a hash of the sources, of the headers of the user's that they
include, of our headers, the flags, the compiler and the Python version.
"""

from __future__ import annotations

import contextlib
import functools
import json
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from rushlight.core import openmp
from rushlight.utils.native import cache, toolchain
from rushlight.utils.native.toolchain import BuildError, Command

INCLUDE = Path(__file__).parent / "include"
FLAGS = ("-std=c++17", "-O2", "-fPIC", "-fopenmp", "-fvisibility=hidden", "-Wno-psabi")


@dataclass(frozen=True)
class Job:
    """A build job: source texts by file name (a path for the user's files), and options."""

    name: str
    sources: tuple[tuple[str, str], ...]
    cflags: tuple[str, ...] = ()
    ldflags: tuple[str, ...] = ()
    include_paths: tuple[str, ...] = ()
    verbose: bool = False

    def compile_flags(self) -> list[str]:
        """Return the compiler's arguments besides the files."""
        given = [f"-I{path}" for path in (*self.include_paths, *include_paths())]
        return [*FLAGS, f"-DTORCH_EXTENSION_NAME={self.name}", "-DTORCH_API_INCLUDE_EXTENSION_H", *given, *self.cflags]

    def text(self) -> str:
        """Return all sources as text; a single one verbatim, because it is compiled from that file."""
        if len(self.sources) == 1:
            return self.sources[0][1]
        return "\n".join(f"// {path}\n{text}" for path, text in self.sources)


def include_paths(device_type: str = "cpu") -> list[str]:
    """Return the folders in which sources of extensions find their headers: ours, and Python's."""
    return [str(INCLUDE), sysconfig.get_paths()["include"]]


@functools.cache
def _headers_digest() -> str:
    files = sorted(INCLUDE.rglob("*.h"))
    return cache.digest(*(file.read_text() for file in files))


def library_of(job: Job, load: Callable[[Path], object]) -> tuple[object, Path]:
    """Return the result of `load` for the job's library, and the library's path. BuildError with the compiler's output."""
    compiler = toolchain.compiler()
    _require_python_headers()
    flags = (flag for flag in job.compile_flags() if flag != f"-I{INCLUDE}")  # the key covers this folder's content
    parts = [job.name, *(part for source in job.sources for part in source), *flags, *job.ldflags]
    first = cache.digest(*parts, _headers_digest(), toolchain.identity(compiler), sys.implementation.cache_tag)
    make = functools.partial(_compile, job, compiler)
    loaded, path, from_cache = cache.obtain((_complete_key(first, job, compiler),), job.text(), make, load)
    if job.verbose:
        print(f"{'Loaded' if from_cache else 'Built'} extension module {job.name}: {path}", file=sys.stderr)
    return loaded, path


def _require_python_headers() -> None:
    header = Path(sysconfig.get_paths()["include"]) / "Python.h"
    if not header.exists():
        raise BuildError(f"extensions need Python's headers, and there is no {header}; install them, e.g. 'apt-get install "
                         f"python{sys.version_info.major}.{sys.version_info.minor}-dev'")  # fmt: skip


# Only the compiler knows the headers that sources include. A manifest remembers them by the key of the sources: while those
# files are unchanged, the library is found without running the compiler.


def _complete_key(first: str, job: Job, compiler: Command) -> str:
    """Return the key with the content of the user's headers."""
    if not job.include_paths and not any(Path(path).is_absolute() or '#include "' in text for path, text in job.sources):
        return first
    manifest = _manifest_path(first)
    if manifest is not None:
        key = _hash_headers(first, _read_manifest(manifest))
        if cache.is_intact(manifest.parent / f"{key}.so"):
            return key
    headers = _dependencies(job, compiler)
    if manifest is not None:
        with contextlib.suppress(OSError):  # building the library will report that the cache is unusable
            cache.write_atomically(manifest, json.dumps(headers).encode())
    return _hash_headers(first, headers)


def _manifest_path(first: str) -> Path | None:
    try:
        return cache.open_folder(cache.default_folder()) / f"{first}.headers"
    except OSError:
        return None


def _read_manifest(path: Path) -> list[str] | None:
    try:
        found = json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError):
        return None
    return found if isinstance(found, list) and all(isinstance(name, str) for name in found) else None


def _hash_headers(first: str, headers: list[str] | None) -> str:
    contents: list[bytes] = []
    for name in headers or ():
        try:
            contents.append(Path(name).read_bytes())
        except OSError:
            contents.append(b"\0missing")
    return cache.digest(first, "" if headers is None else "known", *contents)


def _dependencies(job: Job, compiler: Command) -> list[str]:
    """Return the files that the sources include, except the system's and ours."""
    folder = cache.process_folder()
    found: set[str] = set()
    for path, text in job.sources:
        command = [*compiler, *job.compile_flags(), "-MM", "-MT", "x", "-x", "c++", _write_source(folder, path, text)]
        try:
            done = subprocess.run(command, capture_output=True, text=True, errors="replace", timeout=toolchain.time_limit())
        except (OSError, subprocess.TimeoutExpired) as error:
            raise BuildError(f"the C++ compiler could not read {path}: {error}") from error
        if done.returncode:
            raise BuildError(f"the C++ compiler failed on {path}\n{done.stderr.strip()[-4000:]}")
        words = done.stdout.replace("\\\n", " ").replace("\\ ", "\0").split()[1:]
        found.update(word.replace("\0", " ") for word in words)
    ours = (str(INCLUDE), str(folder), sysconfig.get_paths()["include"])
    return sorted(name for name in found if not name.startswith(ours))


def _write_source(folder: Path, path: str, text: str) -> str:
    """Return the path of a source; a text that is not the user's file is written to `folder`."""
    if Path(path).is_absolute():
        return path
    written = folder / path
    written.write_text(text)
    return str(written)


def _compile(job: Job, compiler: Command, source: Path, folder: Path, output: Path) -> None:
    """Compile the sources in parallel, and link them."""
    commands, objects = [], []
    for number, (path, _) in enumerate(job.sources):
        objects.append(str(folder / f"{number}.o"))
        file = path if Path(path).is_absolute() else str(source)
        commands.append([*compiler, *job.compile_flags(), "-c", file, "-o", objects[-1]])
    if job.verbose:
        print("\n".join(" ".join(command) for command in commands), file=sys.stderr)
    toolchain.run(commands, f"the extension {job.name} ({source})", folder)
    link = [*compiler, "-shared", *objects, *openmp.link_flags(), *job.ldflags, "-o", str(output)]
    toolchain.run([link], f"the extension {job.name} ({source})", folder)


def copy_to(folder: str, name: str, library: Path) -> None:
    """Copy the sources and the library to a folder of the user's."""
    place = Path(folder)
    place.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(library, place / f"{name}.so")
    shutil.copyfile(library.with_suffix(".cpp"), place / "main.cpp")
