"""How this process was started: by mpirun, Slurm, torchrun, or alone. It is read off environment variables."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass

# The variables of a rank, the number of ranks, and both on this machine: Open MPI, MPICH and Intel MPI, Slurm.
_LAUNCHERS = {
    "mpirun": ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_SIZE"),
    "mpiexec": ("PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID", "MPI_LOCALNRANKS"),
    "srun": ("SLURM_PROCID", "SLURM_STEP_NUM_TASKS", "SLURM_LOCALID", "SLURM_STEP_TASKS_PER_NODE"),
    "torchrun": ("RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE"),
}


@dataclass(frozen=True)
class Launched:
    """Who started this process, as which rank of how many, and which of how many on this machine."""

    by: str
    rank: int
    size: int
    local_rank: int
    local_size: int


def launched(variables: Mapping[str, str] = os.environ) -> Launched | None:
    """Return how this process was started; None where nothing says so. ValueError for a variable that is no number."""
    for launcher, names in _LAUNCHERS.items():
        if names[0] in variables and names[1] in variables:
            rank, size = (_number(variables, name) for name in names[:2])
            local = _number(variables, names[2], rank)
            # Slurm writes "4(x2),3": the number of tasks on the first machines.
            return Launched(launcher, rank, size, local, _number(variables, names[3], size))
    return None


def _number(variables: Mapping[str, str], name: str, otherwise: int = 0) -> int:
    text = variables.get(name, str(otherwise)).partition("(")[0].partition(",")[0]
    try:
        return int(text)
    except ValueError:
        raise ValueError(f"the environment variable {name} must be a number, got {variables[name]!r}") from None


def set_names_of_torchrun() -> None:
    """Set the variables that torchrun sets and scripts read, such as RANK and LOCAL_RANK, to what mpirun or Slurm said."""
    found = launched()
    if found is None or found.by == "torchrun":
        return
    os.environ.update(
        RANK=str(found.rank), WORLD_SIZE=str(found.size), LOCAL_RANK=str(found.local_rank),
        LOCAL_WORLD_SIZE=str(found.local_size), GROUP_RANK=os.environ.get("SLURM_NODEID", "0"),
    )  # fmt: skip
    os.environ.setdefault("MASTER_ADDR", "127.0.0.1")
    os.environ.setdefault("MASTER_PORT", "29500")
