"""The machines that exported models can be built for, and the compilers for them.

A target consists of flags and a threading layer: the source is the same for all.
"""

from __future__ import annotations

import os
import platform
import shutil
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from rushlight.core.openmp import link_flags
from rushlight.deploy.javascript import MAX_PAGES, PAGE_BYTES, first_pages
from rushlight.deploy.levels import LEVELS, level_flags
from rushlight.deploy.templates import FLAGS
from rushlight.utils.native import toolchain
from rushlight.utils.native.toolchain import Command, CompilerMissing

X86_LEVELS = tuple(f"x86-64-{level}" for level in LEVELS)
ALL_LEVELS = "x86-64"
WASM, WASM_THREADS = "wasm32", "wasm32-threads"
TARGETS = ("native", ALL_LEVELS, *X86_LEVELS, "aarch64", WASM, WASM_THREADS)


@dataclass(frozen=True)
class Target:
    """A machine: its name, the compiler and its flags, linked libraries, and the suffix of libraries."""

    name: str
    compiler: Command
    flags: tuple[str, ...]
    libraries: tuple[str, ...]
    suffix: str = ".so"


def target_named(name: str) -> Target:
    """Return the target of this name. ValueError if there is none; CompilerMissing, which says what to install, if nothing
    builds for it."""
    if name not in TARGETS:
        raise ValueError(f"there is no target {name!r}; there are {', '.join(TARGETS)}")
    if name in (WASM, WASM_THREADS):
        return _wasm_target(name)
    machine = platform.machine()
    if name == "native":
        return _native_target(name, ("-march=native",))
    if name == "aarch64":
        if machine in ("aarch64", "arm64"):
            return _native_target(name, ("-march=armv8-a",))
        return _cross_target(name, "aarch64-linux-gnu-g++", "aarch64-linux-gnu", ())
    march = () if name == ALL_LEVELS else (f"-march={name}",)
    if machine in ("x86_64", "AMD64"):
        return _native_target(name, march)
    return _cross_target(name, "x86_64-linux-gnu-g++", "x86_64-linux-gnu", march)


def _native_target(name: str, march: tuple[str, ...]) -> Target:
    """Return the target for this machine, with its own compiler, or with Zig if there is none."""
    compiler = toolchain.compiler()
    if toolchain.is_zig(compiler):
        return _zig_target(name, compiler[:-1], f"{platform.machine().replace('AMD64', 'x86_64')}-linux-gnu", march)
    if not toolchain.has_openmp(compiler):
        return Target(name, compiler, (*march, "-pthread", "-Wno-psabi"), ("-pthread", "-lm"))
    return Target(name, compiler, (*march, "-fopenmp", "-Wno-psabi"), (*link_flags(), "-lm"))


def _cross_target(name: str, cross: str, triple: str, march: tuple[str, ...]) -> Target:
    """Return the target for another machine, with a cross compiler or Zig."""
    found = shutil.which(cross)
    if found is not None:
        return Target(name, (found,), (*march, "-fopenmp", "-Wno-psabi"), ("-fopenmp", "-lm"))
    zig = zig_command()
    if zig is None:
        raise CompilerMissing(
            f"no compiler here builds for {name}. Install {cross}, or Zig's: pip install 'rushlight[compiler]'"
        )
    return _zig_target(name, zig, triple, march)


def _zig_target(name: str, zig: Command, triple: str, march: tuple[str, ...]) -> Target:
    cpu = (_zig_cpu(flag) for flag in march if flag != "-march=armv8-a")
    flags = (*cpu, *toolchain.ZIG_FLAGS, "-pthread")
    return Target(name, (*zig, "c++", "-target", triple), flags, (*toolchain.ZIG_LINK_FLAGS, "-s", "-lm"))


def _zig_cpu(march: str) -> str:
    return march.replace("-march=", "-mcpu=").replace("x86-64-", "x86_64_")


def _wasm_target(name: str) -> Target:
    zig = zig_command()
    if zig is None:
        raise CompilerMissing("WebAssembly is built by Zig's compiler: pip install 'rushlight[compiler]'")
    features, exports = "simd128+bulk_memory+nontrapping_fptoint", ["malloc", "free"]
    memory: list[str] = []
    if name == WASM_THREADS:
        features += "+atomics"
        exports += ["__stack_pointer", "__wasm_init_tls", "__tls_size"]
        memory = ["--import-memory", "--shared-memory", f"--max-memory={MAX_PAGES * PAGE_BYTES}"]
    flags = (f"-mcpu=generic+{features}", *toolchain.ZIG_FLAGS)
    links = ",".join(["-Wl", "--export-dynamic", *(f"--export={each}" for each in exports), *memory, "--strip-all"])
    libraries = ("-mexec-model=reactor", links, *toolchain.ZIG_LINK_FLAGS, "-lm")
    return Target(name, (*zig, "c++", "-target", "wasm32-wasi"), flags, libraries, ".wasm")


def zig_command() -> Command | None:
    """Return the command of Zig; None if it is not installed."""
    return toolchain.zig_command()


def build_library(
    folder: str | os.PathLike, name: str, target: str = "native", kind: str = "shared", flags: Sequence[str] = ()
) -> Path:
    """Build the library of an exported folder; its path.

    Args:
        folder: what `export` wrote, of a model called `name`.
        target: one of `TARGETS`.
        kind: "shared" or "static".
        flags: further flags for the compiler.

    BuildError with what the compiler says; CompilerMissing where none builds for the target.
    """
    folder, made = Path(folder).resolve(), target_named(target)  # made absolute, because the compiler runs in that folder
    ending = "" if target == "native" else f"-{target}"
    is_wasm = made.suffix == ".wasm"
    command = [*made.compiler, "-std=c++17", "-O2", *made.flags, *FLAGS, "-fPIC", "-fvisibility=hidden", f"-I{folder}", *flags]
    shared = f"{name}{ending.removeprefix(f'-{WASM}')}.wasm" if is_wasm else f"lib{name}{ending}{made.suffix}"
    library = folder / (shared if kind == "shared" else f"lib{name}{ending}.a")
    scratch = Path(tempfile.mkdtemp(prefix=".build-", dir=folder))
    try:
        parts = _source_files(folder, name, made)
        objects = [str(scratch / f"{position}.o") for position in range(len(parts))]
        steps = [
            [*command, *own, "-c", str(folder / source), "-o", out] for (source, own), out in zip(parts, objects, strict=True)
        ]
        _run(steps, folder, scratch)
        if kind == "static":
            library.unlink(missing_ok=True)
            _run([[*_archiver(made), "rcs", str(library), *objects]], folder, scratch)
        else:
            links = [*command, *_kind_flags(folder, name, made), *objects, *made.libraries]
            _run([[*links, "-o", str(library)]], folder, scratch)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    return library


def _kind_flags(folder: Path, name: str, target: Target) -> list[str]:
    """Return the linker flags for a library; on WebAssembly also the initial memory."""
    if target.name == WASM_THREADS:
        is_embedded = (folder / f"{name}_weights.S").exists()
        pages = first_pages((folder / f"{name}.weights").stat().st_size if is_embedded else 0)
        return [f"-Wl,--initial-memory={pages * PAGE_BYTES}"]
    return [] if target.name == WASM else ["-shared"]


def _source_files(folder: Path, name: str, target: Target) -> list[tuple[str, tuple[str, ...]]]:
    """Return the source files, each with its own flags."""
    model = f"{name}.cpp"
    parts: list[tuple[str, tuple[str, ...]]] = [(model, ())]
    if target.name == ALL_LEVELS:
        parts = [(f"{name}_levels.cpp", ()), *((model, _level_flags(level, _is_zig(target))) for level in LEVELS)]
    weights = f"{name}_weights.S"
    return [*parts, (weights, ())] if (folder / weights).exists() else parts


def _is_zig(target: Target) -> bool:
    return "c++" in target.compiler


def _level_flags(level: str, is_zig: bool) -> tuple[str, ...]:
    march, defined = level_flags(level)
    return (_zig_cpu(march) if is_zig else march, defined)


def _archiver(target: Target) -> Command:
    if _is_zig(target):
        return (*target.compiler[: target.compiler.index("c++")], "ar")
    cross = target.compiler[0].replace("g++", "ar")
    return (cross if "linux-gnu" in target.compiler[0] else "ar",)


def _run(steps: list[list[str]], folder: Path, scratch: Path) -> None:
    for step in steps:  # run in the folder, because the weights' file is included by its name
        toolchain.run([["/usr/bin/env", "-C", str(folder), *step]], str(folder), scratch)
