"""Starts one rank: run by mpirun as a file of its own, so that nothing is imported before threads and cores are set.

    start_rank.py PIN COMMAND...

Sets the variables that torchrun sets, pins the process to its share of the cores where PIN is 1, and becomes the command.
"""

import ctypes
import os
import signal
import sys

_PR_SET_PDEATHSIG = 1


def main() -> None:
    """Become the command."""
    pin, command = sys.argv[1] == "1", sys.argv[2:]
    variables = os.environ
    rank, size = variables["OMPI_COMM_WORLD_RANK"], variables["OMPI_COMM_WORLD_SIZE"]
    local, local_size = variables["OMPI_COMM_WORLD_LOCAL_RANK"], variables["OMPI_COMM_WORLD_LOCAL_SIZE"]
    variables.update(RANK=rank, WORLD_SIZE=size, LOCAL_RANK=local, LOCAL_WORLD_SIZE=local_size)
    variables["GROUP_RANK"] = str(int(rank) // int(local_size))
    # The kernel kills this rank if mpirun dies without doing so.
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if pin:
        os.sched_setaffinity(0, share(sorted(os.sched_getaffinity(0)), int(local), int(local_size)))
    os.execvp(command[0], command)


def share(cores: list, place: int, count: int) -> list:
    """Return the cores of one of `count` ranks: consecutive ones, equally many for each; one in turn if there are too few."""
    width = len(cores) // count
    return cores[place * width : (place + 1) * width] if width else [cores[place % len(cores)]]


if __name__ == "__main__":
    main()
