"""The machine code of kernels.

In: a library that was built from C++. Out: for each kernel the instructions of its functions, as `objdump` disassembles them.
"""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

MAX_KERNEL = 40_000  # characters
MAX_LIBRARY = 4 << 20  # bytes: disassembling takes a second for 20 MB
_SECONDS = 20
_FUNCTION = re.compile(r"^(?:[0-9a-f]+ )?<(?P<name>.*)>:$")
_KERNEL = re.compile(r"\b(?:(?P<namespace>region_\d+)::)?(?P<kernel>kernel_\d+)\(")


def assembly_of(library: Path, namespace: str = "") -> dict[str, str]:
    """Instructions by the name of their kernel, for the kernels of a namespace if one is given. None of a kernel that the
    compiler inlined into its caller, and none at all where there is no `objdump` or the library is large."""
    command = shutil.which("objdump")
    if command is None or not library.is_file() or library.stat().st_size > MAX_LIBRARY:
        return {}
    options = ["--disassemble", "--demangle", "--no-show-raw-insn", "--no-addresses"]
    try:
        done = subprocess.run([command, *options, str(library)], capture_output=True, text=True, timeout=_SECONDS, check=True)
    except (subprocess.SubprocessError, OSError):
        return {}
    return _by_kernel(done.stdout, namespace)


def _by_kernel(text: str, namespace: str) -> dict[str, str]:
    """The functions in whose names a kernel of the namespace stands, put together by kernel."""
    found: dict[str, list[str]] = {}
    for block in text.split("\n\n"):
        head, _, body = block.strip("\n").partition("\n")
        match = _FUNCTION.match(head)
        kernel = _KERNEL.search(match["name"]) if match else None
        if kernel is not None and (kernel["namespace"] or "") == namespace:
            lines = "\n".join(line.strip() for line in body.splitlines())
            found.setdefault(kernel["kernel"], []).append(f"# {match['name']}\n{lines}")
    return {name: "\n\n".join(parts)[:MAX_KERNEL] for name, parts in found.items()}
