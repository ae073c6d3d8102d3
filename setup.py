"""Builds the extension modules rushlight._C and rushlight._kernels, and the archives that generated code is linked with;
everything else about the package is in pyproject.toml.

The kernels' sources `*_kernels.cpp` are compiled once for each set of processor instructions that the compiler knows; which
one runs is decided when the module is imported.
"""

import functools
import hashlib
import importlib.util
import itertools
import os
import platform
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from glob import glob
from pathlib import Path

import numpy
from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext

_spec = importlib.util.spec_from_file_location("prebuilt", "rushlight/inductor/prebuilt.py")
prebuilt = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(prebuilt)

KERNELS, PREBUILT, HEADERS = "rushlight/csrc/kernels", "rushlight/csrc/prebuilt", "rushlight/inductor/include"
COMMON_FLAGS = ["-std=c++17", "-O2", "-Wall", "-Wextra", "-Wno-psabi", "-fvisibility=hidden", "-pthread", "-fopenmp",
                "-fno-exceptions", "-fno-rtti", "-g0", "-fno-threadsafe-statics", "-fno-plt"]  # fmt: skip
KERNEL_FLAGS = ["-fno-math-errno", "-fno-trapping-math", "-ffp-contract=fast", prebuilt.CONDITIONAL_MOVE_WORKAROUND]
INSTRUCTIONS = {"baseline": ["-msse4.2", "-mpopcnt"], **prebuilt.INSTRUCTIONS}
OBJECTS = Path(os.environ.get("RUSHLIGHT_OBJECTS") or "build/objects")  # kept for other builds, by other versions of Python too


class BuildKernels(build_ext):
    """build_ext that compiles the sources of rushlight._kernels per instruction set, all of them in parallel, and then those of
    the archives."""

    def build_extension(self, extension: Extension) -> None:
        self.compiler._compile = functools.partial(self._compile_unless_kept, type(self.compiler)._compile)
        if extension.name != "rushlight._kernels":
            return self._build_side_by_side(extension)
        sets = self._instruction_sets()
        try:
            self._build_kernels(extension, sets)
        except Exception as error:  # whatever this compiler class raises
            print(f"rushlight._kernels was not built, so eager operators will run on NumPy: {error}", file=sys.stderr)
        try:
            self._build_archives(extension, {name: flags for name, flags in sets.items() if name in prebuilt.INSTRUCTIONS})
        except Exception as error:
            print(f"The kernels of generated code were not built, so each graph compiles its own: {error}", file=sys.stderr)

    def _build_side_by_side(self, extension: Extension) -> None:
        compile_all = self.compiler.compile

        def compile_each(sources: list[str], **options: object) -> list[str]:
            with ThreadPoolExecutor(os.cpu_count()) as pool:
                return sum(pool.map(lambda source: compile_all([source], **options), sources), [])

        self.compiler.compile = compile_each
        try:
            super().build_extension(extension)
        finally:
            self.compiler.compile = compile_all

    def _build_kernels(self, extension: Extension, sets: dict[str, list[str]]) -> None:
        jobs = [("engine", source, [f"-DRUSHLIGHT_HAVE_{name}" for name in sets]) for source in extension.sources]
        for name, flags in sets.items():
            names = [f"-Drl=rl_{name}", f"-DRL_VARIANT={name}"]
            jobs += [(name, source, [*KERNEL_FLAGS, *flags, *names]) for source in sorted(glob(f"{KERNELS}/*_kernels.cpp"))]
        self.compiler.link_shared_object(
            self._compile_all(extension, jobs), self.get_ext_fullpath(extension.name), build_temp=self.build_temp,
            extra_postargs=["-fopenmp", "-pthread"],
        )  # fmt: skip

    def _build_archives(self, extension: Extension, sets: dict[str, list[str]]) -> None:
        sources = sorted(glob(f"{PREBUILT}/*.cpp"))
        jobs = [
            (f"prebuilt/{name}", source, [*KERNEL_FLAGS, *flags, "-mtune=native", "-ffunction-sections"])
            for name, flags in sets.items() for source in sources
        ]  # fmt: skip
        objects = self._compile_all(extension, jobs)
        folder = self._archives(self.get_ext_fullpath(extension.name))
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        digest = prebuilt.digest_of_headers(Path(HEADERS))
        for number, name in enumerate(sets):
            made = objects[number * len(sources) : (number + 1) * len(sources)]
            self.compiler.create_static_lib(made, name, output_dir=self.build_temp)
            built = Path(self.build_temp) / self.compiler.library_filename(name)
            built.replace(folder / prebuilt.archive_name(name, digest))

    def copy_extensions_to_source(self) -> None:
        """For a build in place, or an editable install."""
        super().copy_extensions_to_source()
        made = self._archives(os.path.join(self.build_lib, "rushlight", "_kernels"))
        if made.is_dir():
            shutil.rmtree(target := self._archives("rushlight/_kernels"), ignore_errors=True)
            shutil.copytree(made, target)

    @staticmethod
    def _archives(module: str) -> Path:
        """Where archives are that belong to a module rushlight._kernels."""
        return Path(module).parent / "inductor" / prebuilt.FOLDER

    def _compile_all(self, extension: Extension, jobs: list[tuple[str, str, list[str]]]) -> list[str]:
        """Compile (folder, source, flags) side by side; the objects in the same order."""
        with ThreadPoolExecutor(os.cpu_count()) as pool:
            return sum(pool.map(lambda job: self._compile(extension, *job), jobs), [])

    def _compile(self, extension: Extension, folder: str, source: str, flags: list[str]) -> list[str]:
        if folder != "engine":
            return [self._compile_kernel(source, flags, os.path.join(self.build_temp, folder))]
        return self.compiler.compile(
            [source], output_dir=os.path.join(self.build_temp, folder), include_dirs=extension.include_dirs,
            extra_postargs=[*COMMON_FLAGS, *flags], depends=extension.depends,
        )  # fmt: skip

    def _compile_kernel(self, source: str, flags: list[str], folder: str) -> str:
        """The object of a source that knows nothing of Python."""
        named = getattr(self.compiler, "compiler_so_cxx", None) or self.compiler.compiler_so
        compiler = list(itertools.takewhile(lambda part: not part.startswith("-"), named))
        command = [*compiler, *COMMON_FLAGS, *flags, "-DNDEBUG", "-fwrapv", "-fPIC", f"-I{HEADERS}", f"-I{KERNELS}"]
        kept = _kept_object(command, source)
        if not kept.exists():
            os.makedirs(folder, exist_ok=True)
            made = Path(folder, kept.name)
            self.compiler.spawn([*command, "-c", source, "-o", str(made)])
            _keep(made, kept)
        return str(kept)

    def _compile_unless_kept(
        self, compile_now: Callable, made: str, source: str, ext: str, cc_args: list[str], extra: list[str], pp_opts: list[str]
    ) -> None:
        """The compiler class's own step, for a source that includes Python's headers, too."""
        is_cpp = self.compiler.detect_language(source) == "c++"
        named = (getattr(self.compiler, "compiler_so_cxx", None) if is_cpp else None) or self.compiler.compiler_so
        kept = _kept_object([*named, *cc_args, *extra], source)
        if kept.exists():
            shutil.copy(kept, made)
        else:
            compile_now(self.compiler, made, source, ext, cc_args, extra, pp_opts)
            _keep(Path(made), kept)

    def _instruction_sets(self) -> dict[str, list[str]]:
        if platform.machine().lower() not in ("x86_64", "amd64"):
            return {"baseline": []}
        return {name: flags for name, flags in INSTRUCTIONS.items() if self._compiles_with(flags)}

    def _compiles_with(self, flags: list[str]) -> bool:
        with tempfile.TemporaryDirectory() as folder:
            source = os.path.join(folder, "empty.cpp")
            with open(source, "w") as file:
                file.write("int nothing;\n")
            try:
                self.compiler.compile([source], output_dir=folder, extra_postargs=flags)
            except Exception:  # whatever this compiler class raises: the set is left out
                return False
        return True


def _kept_object(command: list[str], source: str) -> Path:
    """Where the object of a source is kept: under a name made of its text after preprocessing, the flags, and what the compiler
    says of itself and of this processor. A source that can't be preprocessed doesn't compile either, so it is never there."""
    flags = " ".join(part for part in command if not part.startswith("-I"))  # folders, which only preprocessing looks at
    questions = (("-E", "-P", source), ("--version",), ("-Q", "--help=target"))
    content = b"".join([*(_answer((*command, *question)) for question in questions), flags.encode()])
    return OBJECTS / (hashlib.blake2b(content, digest_size=20).hexdigest() + ".o")


@functools.cache
def _answer(command: tuple[str, ...]) -> bytes:
    return subprocess.run(command, capture_output=True, check=False).stdout


def _keep(made: Path, kept: Path) -> None:
    kept.parent.mkdir(parents=True, exist_ok=True)
    shutil.copy(made, partial := kept.with_suffix(f".{os.getpid()}"))
    partial.replace(kept)


setup(
    cmdclass={"build_ext": BuildKernels},
    ext_modules=[
        Extension(
            "rushlight._C",
            sources=sorted(glob("rushlight/csrc/*.c")),
            depends=sorted(glob("rushlight/csrc/*.h")) + sorted(glob(f"{KERNELS}/*.h")),
            extra_compile_args=["-std=c11", "-O2", "-Wall", "-Wextra", "-fvisibility=hidden", "-pthread"],
            extra_link_args=["-pthread"],
        ),
        Extension(
            "rushlight._kernels",
            sources=sorted(set(glob(f"{KERNELS}/*.cpp")) - set(glob(f"{KERNELS}/*_kernels.cpp"))),
            depends=sorted(glob(f"{KERNELS}/*_kernels.cpp") + glob(f"{KERNELS}/*.h"))
            + sorted(glob(f"{PREBUILT}/*")) + sorted(glob(f"{HEADERS}/rushlight/*.h")),
            include_dirs=[numpy.get_include(), HEADERS, KERNELS],
            language="c++",
            optional=True,
        ),
    ],
)
