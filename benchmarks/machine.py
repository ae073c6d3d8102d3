"""What the figures depend on: the kind of machine and the versions, and what importing each library costs."""

from __future__ import annotations

import dataclasses
import datetime
import importlib.metadata
import importlib.util
import os
import platform
import statistics
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
LIBRARIES = ("rushlight", "numpy", "torch", "onnxruntime", "openvino", "jax")
VECTOR_EXTENSIONS = ("avx2", "avx512f", "avx512_vnni", "avx512_bf16", "amx_tile", "asimd", "sve")
IMPORT = """
import time
start = time.perf_counter()
import {library}
seconds = time.perf_counter() - start
from benchmarks.memory import peak_memory
print(seconds, peak_memory())
"""


@dataclasses.dataclass(frozen=True)
class ImportCost:
    """Seconds and the process's peak memory in bytes."""

    library: str
    seconds: float
    memory: int


def processor() -> str:
    """Model name, cores that this process may use, and vector extensions."""
    fields = {}
    if Path("/proc/cpuinfo").exists():
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            name, _, value = line.partition(":")
            fields.setdefault(name.strip(), value.strip())
    model = fields.get("model name") or platform.processor() or platform.machine()
    flags = (fields.get("flags") or fields.get("Features") or "").split()
    extensions = ", ".join(name for name in VECTOR_EXTENSIONS if name in flags)
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return f"{model} ({platform.machine()}), {cores} cores{', ' if extensions else ''}{extensions}"


def installed() -> list[str]:
    """The libraries that can be imported."""
    return [library for library in LIBRARIES if importlib.util.find_spec(library) is not None]


def version(library: str) -> str:
    try:
        return importlib.metadata.version(library)
    except importlib.metadata.PackageNotFoundError:
        return "from source"


def description(threads: int, rounds: int) -> list[tuple[str, str]]:
    """Rows that say where and how the figures came about."""
    versions = ", ".join(f"{library} {version(library)}" for library in installed())
    return [
        ("processor", processor()),
        ("system", f"{platform.system()} {platform.release().split('-')[0]}, Python {platform.python_version()}"),
        ("date", datetime.date.today().isoformat()),
        ("threads", str(threads)),
        ("rounds", str(rounds)),
        ("versions", versions),
    ]


def import_costs(repeats: int) -> list[ImportCost]:
    """Each library's import in new processes: the median time, the largest memory."""
    costs = []
    for library in installed():
        figures = [import_once(library) for _ in range(repeats)]
        seconds, memory = zip(*figures, strict=True)
        costs.append(ImportCost(library, statistics.median(seconds), max(memory)))
    return costs


def import_once(library: str) -> tuple[float, int]:
    command = [sys.executable, "-c", IMPORT.format(library=library)]
    output = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    seconds, memory = output.split()[-2:]
    return float(seconds), int(memory)
