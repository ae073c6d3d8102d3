"""The command line of mpirun for some options."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Mapping
from pathlib import Path

from rushlight.distributed.engine.mpi import HOW_TO_GET
from rushlight.distributed.launcher.options import Options, cores


def find_mpirun(given: str | None) -> str:
    """Return the path of mpirun: the given one, the wheel's, or the system's. FileNotFoundError: there is none."""
    if given:
        if not shutil.which(given):
            raise FileNotFoundError(f"there is no mpirun at {given!r}")
        return given
    wheel = Path(sys.prefix) / "bin" / "mpirun"
    found = str(wheel) if wheel.exists() else shutil.which("mpirun")
    if found is None:
        raise FileNotFoundError(f"there is no mpirun. {HOW_TO_GET}")
    return found


def threads_of(options: Options) -> int:
    """Return how many threads each rank gets."""
    return options.threads or max(cores() // options.ranks, 1)


def command(options: Options) -> list[str]:
    """Return the command that starts all ranks."""
    total = options.ranks * options.machines
    words = [find_mpirun(options.mpirun), "-n", str(total), "--output", "tag", "--bind-to", "none"]
    words += ["--map-by", f"ppr:{options.ranks}:node:OVERSUBSCRIBE"]
    if os.geteuid() == 0:
        words.append("--allow-run-as-root")
    if options.hosts:
        words += ["--host", ",".join(f"{host}:{options.ranks}" for host in options.hosts)]
    for name in sorted(variables(options)):
        words += ["-x", name]
    start = str(Path(__file__).parent / "start_rank.py")
    return [*words, sys.executable, "-u", start, "1" if options.pin and options.ranks > 1 else "0", *_program(options)]


def _program(options: Options) -> list[str]:
    if options.kind == "command":
        return list(options.program)
    flag = ["-m"] if options.kind == "module" else []
    return [sys.executable, "-u", "-m", "rushlight", "exec", *flag, *options.program]


def variables(options: Options) -> Mapping[str, str]:
    """Return the environment variables that ranks get besides those of the launcher."""
    threads, (host, port) = str(threads_of(options)), options.master
    found = {"OMP_NUM_THREADS": threads, "MASTER_ADDR": host, "MASTER_PORT": port}
    if options.machines == 1 and not options.hosts:
        found["OMPI_MCA_btl"] = os.environ.get("OMPI_MCA_btl", "^uct,ofi")
    return found
