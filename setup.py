"""Builds the extension module rushlight._C; everything else about the package is in pyproject.toml."""

from glob import glob

from setuptools import Extension, setup

setup(
    ext_modules=[
        Extension(
            "rushlight._C",
            sources=sorted(glob("rushlight/csrc/*.c")),
            depends=sorted(glob("rushlight/csrc/*.h")),
            extra_compile_args=["-std=c11", "-O2", "-Wall", "-Wextra", "-fvisibility=hidden", "-pthread"],
            extra_link_args=["-pthread"],
        )
    ]
)
