"""How native code that is built at run time is linked with OpenMP, whose runtime is to be one for the whole process."""

from __future__ import annotations

from pathlib import Path


def link_flags() -> tuple[str, ...]:
    """The compiler's flags: for the runtime that a wheel brings beside the package, else for the compiler's own."""
    folder = Path(__file__).parents[2] / "rushlight.libs"
    found = sorted(folder.glob("libgomp*.so*"))
    return (str(found[0]), f"-Wl,-rpath,{folder}") if found else ("-fopenmp",)
