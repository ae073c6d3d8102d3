"""Builds the extension modules rushlight._C and rushlight._kernels; everything else about the package is in pyproject.toml.

The kernels' sources `*_kernels.cpp` are compiled once for each set of processor instructions that the compiler knows; which
one runs is decided when the module is imported.
"""

import os
import platform
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from glob import glob

import numpy
from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext

KERNELS = "rushlight/csrc/kernels"
COMMON_FLAGS = ["-std=c++17", "-O2", "-Wall", "-Wextra", "-Wno-psabi", "-fvisibility=hidden", "-pthread", "-fopenmp",
                "-fno-exceptions", "-fno-rtti", "-g0", "-fno-threadsafe-statics", "-fno-plt"]  # fmt: skip
KERNEL_FLAGS = ["-fno-math-errno", "-fno-trapping-math", "-ffp-contract=fast"]
INSTRUCTIONS = {
    "baseline": ["-msse4.2", "-mpopcnt"],
    "avx2": ["-mavx2", "-mfma", "-mf16c", "-mbmi", "-mbmi2"],
    "avx512": ["-mavx512f", "-mavx512bw", "-mavx512vl", "-mavx512dq", "-mavx2", "-mfma", "-mf16c", "-mbmi", "-mbmi2",
               "-mprefer-vector-width=512"],
}  # fmt: skip


class BuildKernels(build_ext):
    """build_ext that compiles the sources of rushlight._kernels per instruction set, all of them in parallel."""

    def build_extension(self, extension: Extension) -> None:
        if extension.name != "rushlight._kernels":
            return super().build_extension(extension)
        try:
            self._build_kernels(extension)
        except Exception as error:  # whatever this compiler class raises
            print(f"rushlight._kernels was not built, so eager operators will run on NumPy: {error}", file=sys.stderr)

    def _build_kernels(self, extension: Extension) -> None:
        sets = self._instruction_sets()
        jobs = [("engine", source, [f"-DRUSHLIGHT_HAVE_{name}" for name in sets]) for source in extension.sources]
        for name, flags in sets.items():
            names = [f"-Drl=rl_{name}", f"-DRL_VARIANT={name}"]
            jobs += [(name, source, [*KERNEL_FLAGS, *flags, *names]) for source in sorted(glob(f"{KERNELS}/*_kernels.cpp"))]
        with ThreadPoolExecutor(os.cpu_count()) as pool:
            objects = sum(pool.map(lambda job: self._compile(extension, *job), jobs), [])
        self.compiler.link_shared_object(
            objects, self.get_ext_fullpath(extension.name), build_temp=self.build_temp,
            extra_postargs=["-fopenmp", "-pthread"],
        )  # fmt: skip

    def _compile(self, extension: Extension, folder: str, source: str, flags: list[str]) -> list[str]:
        return self.compiler.compile(
            [source], output_dir=os.path.join(self.build_temp, folder), include_dirs=extension.include_dirs,
            extra_postargs=[*COMMON_FLAGS, *flags], depends=extension.depends,
        )  # fmt: skip

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
            + sorted(glob("rushlight/inductor/include/rushlight/*.h")),
            include_dirs=[numpy.get_include(), "rushlight/inductor/include", KERNELS],
            language="c++",
            optional=True,
        ),
    ],
)
