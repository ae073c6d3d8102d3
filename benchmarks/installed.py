"""What an installation takes on disk and at import: Rushlight and PyTorch, each alone and under transformers.

`python -m benchmarks.installed WHEEL [--torch REQUIREMENT]`: WHEEL is Rushlight's, as `make wheel` builds it. Each column is a
fresh virtual environment; what pip and setuptools take is left out. Import times are medians of nine processes, warm.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import sysconfig
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
IMPORTS = ("torch", "transformers.models.bert.modeling_bert")
_FIRST_CALL = "import torch; print(torch.nn.Linear(8, 4)(torch.ones(2, 8)).sum().item())"


def install(folder: Path, *requirements: str) -> None:
    """Install requirements into the environment at `folder`."""
    subprocess.run([folder / "bin/pip", "install", "-q", *requirements], check=True, stderr=subprocess.DEVNULL)


def megabytes(folder: Path) -> float:
    """The size of everything installed, in MB of 2**20 bytes, without pip and setuptools."""
    version = sysconfig.get_python_version()
    packages = folder / f"lib/python{version}/site-packages"
    left_out = {"pip", "setuptools", "pkg_resources", "_distutils_hack", "wheel"}
    total = 0
    for path in packages.rglob("*"):
        name = path.relative_to(packages).parts[0]
        if name.split("-")[0] not in left_out and path.is_file() and not path.is_symlink():
            total += path.stat().st_size
    return total / 2**20


def seconds(folder: Path, program: str) -> float:
    """The time that a program takes as a process, less that of an empty one."""
    return _median(folder, program) - _median(folder, "pass")


def _median(folder: Path, program: str) -> float:
    times = []
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    for _ in range(10):
        start = time.perf_counter()
        done = subprocess.run([folder / "bin/python", "-c", program], capture_output=True, text=True, env=environment, cwd="/")
        times.append(time.perf_counter() - start)
        if done.returncode:
            raise RuntimeError(f"{program!r} failed in {folder}: {done.stderr.strip().splitlines()[-1]}")
    return statistics.median(times[1:])


def measure(folder: Path, *requirements: str) -> list[float]:
    """Sizes without and with transformers, then seconds of imports and of the first call."""
    subprocess.run([sys.executable, "-m", "venv", folder], check=True)
    install(folder, "setuptools>=77", "wheel")
    for requirement in requirements:
        install(folder, requirement)
    alone = megabytes(folder)
    install(folder, "transformers")
    found = [alone, megabytes(folder), *(seconds(folder, f"import {name}") for name in IMPORTS), seconds(folder, _FIRST_CALL)]
    listed = subprocess.run([folder / "bin/pip", "list"], capture_output=True, text=True, check=True).stdout
    print(next(line for line in listed.splitlines() if line.startswith("torch ")), flush=True)
    return found


def main() -> None:
    """Measure and print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("wheel", type=Path)
    parser.add_argument("--torch", default="torch==2.13.0", help="what pip installs as PyTorch")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / "rushlight-torch"
        subprocess.run(["cp", "-r", ROOT / "packaging/rushlight-torch", copy], check=True)
        ours = measure(Path(folder) / "ours", str(arguments.wheel.resolve()), str(copy))
        theirs = measure(Path(folder) / "theirs", arguments.torch)
    rows = ("installed", "installed with transformers", *(f"import {name}" for name in IMPORTS), "import and first call")
    print("| | Rushlight | PyTorch |\n|---|---|---|")
    for name, one, other in zip(rows, ours, theirs, strict=True):
        unit, digits = ("MB", 0) if name.startswith("installed") else ("s", 2)
        print(f"| {name} | {one:.{digits}f} {unit} | {other:.{digits}f} {unit} |")


if __name__ == "__main__":
    main()
