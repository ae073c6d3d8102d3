"""`rushlight exec script.py [args]` and `rushlight exec -m package.module [args]`: a program in which `torch` is Rushlight.

The processes that the program starts are told by PYTHONPATH, on which lies a package `torch` that turns into Rushlight when
it is imported; workers of a DataLoader and of multiprocessing find it as well.
"""

from __future__ import annotations

import os
import runpy
import sys
from collections.abc import Sequence
from pathlib import Path

from rushlight.as_torch.finder import FOLDER, TABLE
from rushlight.core.lazy_module import fetch

_RANKS = {"OMPI_COMM_WORLD_RANK", "PMI_RANK", "SLURM_PROCID"}  # one is set in processes that a launcher of ranks started

USAGE = "usage: rushlight exec SCRIPT [ARGUMENTS]\n       rushlight exec -m MODULE [ARGUMENTS]"

def main(words: Sequence[str]) -> int:
    """Run a program with the words behind its name as its arguments; its exit status."""
    if not words or words[0] in ("-h", "--help") or (words[0] == "-m" and len(words) < 2):
        print(USAGE + "\n\nRuns a program in which `import torch` gives Rushlight. " + f"{TABLE} lists which names are here.")
        return 0 if words[:1] in (["-h"], ["--help"]) else 2
    if words[0].startswith("-") and words[0] != "-m":
        hint = "options of Python go before: python -W error -m rushlight exec SCRIPT"
        print(f"rushlight exec: {words[0]} is not an option; {hint}\n{USAGE}", file=sys.stderr)
        return 2
    if words[0] != "-m" and not Path(words[0]).exists():
        print(f"rushlight exec: there is no file {words[0]!r}\n{USAGE}", file=sys.stderr)
        return 2
    run_program(words)
    return 0


def run_program(words: Sequence[str]) -> None:
    """Run a program, a file or `-m` and a module; the words behind are its arguments. What it raises goes through.

    A rank that mpirun or Slurm started finds the variables that torchrun sets.
    """
    _tell_children()
    if _RANKS & os.environ.keys():
        fetch("rushlight.distributed.environment").set_names_of_torchrun()
    by_name = words[0] == "-m"
    rest = list(words[1:] if by_name else words)
    sys.argv[:] = rest
    try:
        if by_name:
            sys.path.insert(0, os.getcwd())
            runpy.run_module(rest[0], run_name="__main__", alter_sys=True)
        else:
            sys.path.insert(0, str(Path(rest[0]).resolve().parent))
            runpy.run_path(rest[0], run_name="__main__")
    except (ImportError, AttributeError) as error:
        if _is_about_torch(error):
            error.add_note(f"`torch` is Rushlight here. {TABLE} lists which names of PyTorch it has.")
        raise


def _tell_children() -> None:
    before = os.environ.get("PYTHONPATH", "")
    if FOLDER not in before.split(os.pathsep):
        os.environ["PYTHONPATH"] = FOLDER + (os.pathsep + before if before else "")


def _is_about_torch(error: ImportError | AttributeError) -> bool:
    """Whether a name of the library is missing."""
    words = str(error)
    return "'rushlight" in words or "'torch" in words
