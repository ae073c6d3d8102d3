"""Holds the place of a rank for a process that mpirun did not start: run by mpirun as a file of its own.

    agent.py FOLDER

Writes what mpirun told it, its environment variables, to the file RANK of the folder, where the process takes it over. Watches
that process, whose id stands in RANK.pid: ends with status 0 when it leaves RANK.done, with 1 when it dies before, and ends it
when mpirun ends the ranks.
"""

import json
import os
import signal
import sys
import time

_NAMES = ("OMPI_", "PMIX_", "PRTE_", "OPAL_")
_PAUSE = 0.05  # seconds between two looks


def main() -> int:
    """Wait for the process to come and go; return the exit status."""
    place = os.path.join(sys.argv[1], os.environ["OMPI_COMM_WORLD_RANK"])
    _write(place, json.dumps({name: value for name, value in os.environ.items() if name.startswith(_NAMES)}))
    launcher = os.getppid()
    while not os.path.exists(place + ".pid"):
        if os.getppid() != launcher:
            return 1
        time.sleep(_PAUSE)
    with open(place + ".pid") as file:
        pid = int(file.read())
    signal.signal(signal.SIGTERM, lambda number, frame: _end(pid))
    while _runs(pid) and not os.path.exists(place + ".done"):
        if os.getppid() != launcher:
            _end(pid)
        time.sleep(_PAUSE)
    return 0 if os.path.exists(place + ".done") else 1


def _write(path: str, text: str) -> None:
    with open(path + ".part", "w") as file:
        file.write(text)
    os.rename(path + ".part", path)


def _runs(pid: int) -> bool:
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rpartition(")")[2].split()[0] not in ("Z", "X")
    except OSError:
        return False


def _end(pid: int) -> None:
    """End the process, by force if it does not end in a second."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        if _runs(pid):
            os.kill(pid, number)
            time.sleep(0.5)
    sys.exit(1)


def _clean(folder: str, rank: str) -> None:
    """Remove the files of this rank, and the folder after the last of them."""
    for ending in ("", ".pid", ".done"):
        if os.path.exists(os.path.join(folder, rank + ending)):
            os.remove(os.path.join(folder, rank + ending))
    if not os.listdir(folder):
        os.rmdir(folder)


if __name__ == "__main__":
    try:
        sys.exit(main())
    finally:
        _clean(sys.argv[1], os.environ["OMPI_COMM_WORLD_RANK"])
