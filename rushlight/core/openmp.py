"""Link native code that is built at run time with OpenMP. The process must have a single OpenMP runtime."""

from __future__ import annotations

from pathlib import Path


def link_flags() -> tuple[str, ...]:
    """Return the compiler flags: for the runtime that a wheel ships beside the package, else for the compiler's own."""
    folder = Path(__file__).parents[2] / "rushlight.libs"
    found = sorted(folder.glob("libgomp*.so*"))
    return (str(found[0]), f"-Wl,-rpath,{folder}") if found else ("-fopenmp",)
