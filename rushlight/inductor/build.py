"""Build C++ text to a loaded library, through the cache.

In: a program's text. Out: a `Library`. The text is compiled as one translation unit, or as several in parallel.
"""

from __future__ import annotations

import ctypes
import functools
import os
import re
import threading
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import rushlight._C as _C
from rushlight.core import openmp
from rushlight.core.lazy_module import LazyModule
from rushlight.inductor.processor import instructions
from rushlight.utils.native import cache, toolchain
from rushlight.utils.native.toolchain import BuildError, Command, CompilerMissing

prebuilt, precompiled, units = (LazyModule(f"rushlight.inductor.{name}") for name in ("prebuilt", "precompiled", "units"))

__all__ = ["BuildError", "CompilerMissing", "Library", "build"]

INCLUDE = Path(__file__).parent / "include"
FLAGS = (
    "-std=c++17", "-O2", "-march=native", "-fopenmp", "-fPIC", "-fno-math-errno", "-fno-trapping-math",
    "-ffp-contract=fast", "-fno-plt", "-Wno-psabi", "-fno-exceptions", "-fno-rtti",
)  # fmt: skip
DEBUG_FLAGS = ("-std=c++17", "-g", "-O0", "-march=native", "-fopenmp", "-fPIC", "-Wno-psabi", "-fno-exceptions", "-fno-rtti")
# Generated code needs only these libraries. Without libstdc++ the linker takes a tenth of the time.
LEAN_LINK = ("-nostdlib", "-Wl,-z,defs", "-lgomp", "-lm", "-lgcc", "-lc")
MAX_UNITS = 4
_COMMENT = r"(?m)^[ \t]*//.*\n|[ \t]*//.*"


class Library(NamedTuple):
    """A loaded program: the addresses of its functions, and the arena's size in bytes.

    If the arena depends on size symbols, `arena_bytes_for` computes its size from an array of their values, and `arena_bytes`
    is 0. `times` is the address of the kernels' nanosecond counters, in a program written to measure itself.
    """

    path: Path
    entry: int
    fold: int | None
    pack: int | None
    arena_bytes: int
    arena_bytes_for: Callable[[ctypes.Array], int] | None
    times: int | None
    from_cache: bool


_used: dict[str, Path] = {}
_lock = threading.Lock()


def used_libraries() -> dict[str, Path]:
    """Return the libraries that this process built or loaded, by portable key."""
    with _lock:
        return dict(_used)


@functools.cache
def headers_digest() -> str:
    """Return a digest of the native headers."""
    return prebuilt.digest_of_headers(INCLUDE)


def portable_key(source: str, flags: tuple[str, ...]) -> str:
    """Return the cache key of a program, independent of compiler and processor. Comments are ignored: they name the user's
    source lines, which move when code above them is edited."""
    return cache.digest(re.sub(_COMMENT, "", source), " ".join(flags), headers_digest())


def local_key(portable: str, compiler: str = "") -> str:
    """Return the cache key of a program's library for this processor and this compiler. Libraries that were loaded from
    artifacts have a key without a compiler."""
    return cache.digest(portable, compiler, " ".join(instructions()))


def build(source: str, debug: bool = False) -> Library:
    """Return the library of a program: load it from the cache, or compile it now.

    CompilerMissing if there is no compiler, BuildError with the compiler's output. If the cache folder is unusable, a warning
    says so, and a temporary folder of the process replaces it.
    """
    portable = portable_key(source, flags_for(debug))
    compiler, keys = _keys(portable)
    return _remember_use(portable, cache.obtain(keys, source, functools.partial(_compile, compiler, debug), _load))


def find(portable: str) -> Library | None:
    """Return the cached library of the program with this `portable_key`, if there is one."""
    found = cache.find(_keys(portable)[1], _load)
    return None if found is None else _remember_use(portable, found)


def _keys(portable: str) -> tuple[Command | CompilerMissing, tuple[str, ...]]:
    """Return the compiler, or the exception that says why there is none, and the cache keys under which the library may be
    found."""
    try:
        compiler = toolchain.compiler()
        return compiler, (local_key(portable, toolchain.identity(compiler)), local_key(portable))
    # libraries from artifacts need no compiler, so the exception is only raised if no library is found
    except CompilerMissing as error:
        return error, (local_key(portable),)


def _remember_use(portable: str, found: tuple) -> Library:
    loaded, path, from_cache = found
    with _lock:
        _used[portable] = path
    return Library(path, *loaded, from_cache)


def flags_for(debug: bool = False) -> tuple[str, ...]:
    """Return the compiler's flags."""
    return DEBUG_FLAGS if debug else (*FLAGS, prebuilt.CONDITIONAL_MOVE_WORKAROUND, *_vector_width())


def _vector_width() -> tuple[str, ...]:
    return ("-mprefer-vector-width=512",) if "avx512f" in _C.cpu_features() else ()


def _units() -> int:
    """Return the number of translation units to compile in parallel: one more than processors, because units take unequal
    time."""
    processors = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return min(MAX_UNITS, processors + 1) if processors > 1 else 1


def _archive(compiler: Command) -> Path | None:
    """Return the archive of prebuilt kernels, which GCC compiled."""
    return None if toolchain.is_clang(compiler) else prebuilt.archive(instructions(), headers_digest())


def _compile(compiler: Command | CompilerMissing, debug: bool, source: Path, folder: Path, output: Path) -> None:
    """Compile `source`, as one unit or several, into the library `output`, and link prebuilt kernels from the archive."""
    if isinstance(compiler, CompilerMissing):
        raise compiler
    flags, archive = _select_accepted_flags(flags_for(debug), compiler), None if debug else _archive(compiler)
    texts = units.split(source.read_text(), 1 if debug else _units(), str(source))
    if archive is not None:
        objects = _objects(compiler, (*flags, prebuilt.DEFINE), texts, source, folder)
        try:
            return _link(compiler, [*objects, str(archive), "-Wl,--gc-sections,-z,defs"], source, folder, output)
        except BuildError:  # the archive is damaged: compile its kernels from source
            pass
    _link(compiler, _objects(compiler, flags, texts, source, folder), source, folder, output)


def _select_accepted_flags(flags: tuple[str, ...], compiler: Command) -> tuple[str, ...]:
    """Return the flags that a compiler accepts: without OpenMP, kernels run on one thread."""
    if not toolchain.has_openmp(compiler):
        flags = tuple(flag for flag in flags if flag != "-fopenmp")
    return (*flags, *toolchain.ZIG_FLAGS) if toolchain.is_zig(compiler) else flags


def _objects(compiler: Command, flags: tuple[str, ...], texts: list[str], source: Path, folder: Path) -> list[str]:
    """Compile the units of `source` in parallel, with precompiled headers if possible."""
    flags = (*flags, f"-I{INCLUDE}")
    headers = precompiled.arguments(compiler, flags, source, folder, headers_digest()) if "-g" not in flags else ()
    files = [folder / f"{number}.cpp" for number in range(len(texts))]
    for file, text in zip(files, texts, strict=True):
        file.write_text(text)

    def compile_all(*more: str) -> list[str]:
        objects = [str(file.with_suffix(".o")) for file in files]
        commands = [[*compiler, *flags, *more, "-c", str(file), "-o", made] for file, made in zip(files, objects, strict=True)]
        toolchain.run(commands, str(source), folder)
        return objects

    try:
        return compile_all(*headers)
    except BuildError:
        if not headers:
            raise
    precompiled.discard(headers)
    return compile_all()


def _link(compiler: Command, inputs: list[str], source: Path, folder: Path, output: Path) -> None:
    threads = openmp.link_flags() if toolchain.has_openmp(compiler) else ()
    link = [*compiler, "-shared", *inputs, *threads, "-o", str(output)]
    if not threads:
        lean = toolchain.ZIG_LINK_FLAGS if toolchain.is_zig(compiler) else ()
        return toolchain.run([[*link, *lean, "-lm"]], str(source), folder)
    try:
        toolchain.run([[*link, *LEAN_LINK, *toolchain.fast_linker(compiler)]], str(source), folder)
    except BuildError:  # other compilers may need more libraries
        toolchain.run([link], str(source), folder)


def _load(path: Path) -> tuple[int, int | None, int | None, int, Callable | None, int | None]:
    """Load a library; returns the fields of `Library` from `entry` to `times`. OSError if it cannot be loaded."""
    try:
        loaded = ctypes.CDLL(str(path))
    except OSError as error:
        if not path.exists():
            raise FileNotFoundError(str(path)) from error
        raise
    try:
        symbolic = getattr(loaded, "rushlight_arena_bytes_for", None)
        size = symbolic or loaded.rushlight_arena_bytes
        size.restype = ctypes.c_long
        fold, pack, times = (_address(getattr(loaded, f"rushlight_{name}", None)) for name in ("fold", "pack", "times"))
        return _address(loaded.rushlight_entry), fold, pack, 0 if symbolic else size(), symbolic, times
    except AttributeError as error:
        raise BuildError(f"{path} is no compiled program: {error}") from error


def _address(function) -> int | None:
    return None if function is None else ctypes.cast(function, ctypes.c_void_p).value
