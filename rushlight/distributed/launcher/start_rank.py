"""Starts one rank: run by mpirun as a file of its own, so that nothing is imported before threads and cores are set.

    start_rank.py PIN COMMAND...

Sets the variables that torchrun sets, pins the rank to its share of the cores where PIN is 1, runs the command, and reports how
it ended in a line of stderr that `rushlight launch` reads.
"""

import contextlib
import ctypes
import os
import signal
import sys
import time

REPORT = "rushlight launch reads:"  # begins a report: process, then "exit" or "signal", then a number
_GRACE = 1.0  # seconds before mpirun learns of a failure and kills the other ranks: they say meanwhile what they waited in
_PR_SET_PDEATHSIG = 1


def main() -> int:
    """Run the command; return its exit status, or 128 and its signal."""
    pin, command = sys.argv[1] == "1", sys.argv[2:]
    variables = os.environ
    rank, size = variables["OMPI_COMM_WORLD_RANK"], variables["OMPI_COMM_WORLD_SIZE"]
    local, local_size = variables["OMPI_COMM_WORLD_LOCAL_RANK"], variables["OMPI_COMM_WORLD_LOCAL_SIZE"]
    variables.update(RANK=rank, WORLD_SIZE=size, LOCAL_RANK=local, LOCAL_WORLD_SIZE=local_size)
    variables["GROUP_RANK"] = str(int(rank) // int(local_size))
    if pin:
        os.sched_setaffinity(0, share(sorted(os.sched_getaffinity(0)), int(local), int(local_size)))
    die_with_parent(signal.SIGKILL)
    child = os.fork()
    if child == 0:
        die_with_parent(signal.SIGKILL)
        os.execvp(command[0], command)
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda number, frame: _pass_on(child, number))
    return _report(child, os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))


def _pass_on(child: int, number: int) -> None:
    with contextlib.suppress(ProcessLookupError):  # it may have ended, and been reported, before
        os.kill(child, number)


def _report(child: int, status: int) -> int:
    how = f"signal {-status}" if status < 0 else f"exit {status}"
    os.write(2, f"{REPORT} {child} {how}\n".encode())
    if status:
        time.sleep(_GRACE)
    return 128 - status if status < 0 else status


def die_with_parent(number: int = signal.SIGTERM) -> None:
    """Have the kernel send this process a signal when the process that started it dies."""
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, int(number), 0, 0, 0)


def share(cores: list, place: int, count: int) -> list:
    """Return the cores of one of `count` ranks: consecutive ones, equally many for each; one in turn if there are too few."""
    width = len(cores) // count
    return cores[place * width : (place + 1) * width] if width else [cores[place % len(cores)]]


if __name__ == "__main__":
    sys.exit(main())
