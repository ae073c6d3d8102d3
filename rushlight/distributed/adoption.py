"""Ranks that a program started itself, by `multiprocessing.spawn` or one by one, on one machine.

Such processes meet as `init_process_group` says: at MASTER_ADDR and MASTER_PORT, at an address, in a file, or in a store. Rank
0 then starts mpirun with an agent for each rank; each process takes over the place of its agent, and is from then on a rank
that MPI knows.
"""

from __future__ import annotations

import functools
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from datetime import timedelta
from pathlib import Path

from rushlight.distributed.engine import endings
from rushlight.distributed.engine.errors import DistBackendError
from rushlight.distributed.engine.peers import myself
from rushlight.distributed.launcher.command import find_mpirun
from rushlight.distributed.launcher.start_rank import die_with_parent
from rushlight.distributed.stores import PrefixStore, Store

_AGENT = Path(__file__).parent / "launcher" / "agent.py"


def join(store: Store, rank: int, size: int, timeout: timedelta) -> None:
    """Become a rank: take over what mpirun told this rank's agent.

    DistBackendError: the ranks are on several machines, or mpirun failed. FileNotFoundError: there is no mpirun.
    """
    places = PrefixStore("mpi", store)
    places.set_timeout(timeout)
    places.set(f"space{rank}", myself().space)
    if rank == 0:
        places.set("folder", _start_agents(places, size))
    folder = Path(places.get("folder").decode())
    if not folder.parts:
        raise DistBackendError("rank 0 could not start MPI for the ranks; its error says why")
    place = folder / str(rank)
    os.environ.update(json.loads(_content(place, timeout.total_seconds())))
    (folder / f"{rank}.part").write_text(str(os.getpid()))
    (folder / f"{rank}.part").rename(folder / f"{rank}.pid")
    endings.at_exit((folder / f"{rank}.done").touch, after_mpi=True)


def _start_agents(places: Store, size: int) -> str:
    """Start mpirun with an agent for each rank; return the folder of what they were told. The others learn of an error."""
    try:
        mine = myself().space
        if any(places.get(f"space{rank}").decode() != mine for rank in range(size)):
            raise DistBackendError(
                f"the {size} ranks are on several machines, and were not started by MPI: start the program once, by "
                "`rushlight launch --hosts A,B program.py`, or by mpirun"
            )
        return _run_agents(size)
    except BaseException:
        places.set("folder", "")
        raise


def _run_agents(size: int) -> str:
    folder = tempfile.mkdtemp(prefix="rushlight-ranks-")
    line = [find_mpirun(None), "-n", str(size), "--bind-to", "none", "--map-by", f"ppr:{size}:node:OVERSUBSCRIBE"]
    if os.geteuid() == 0:
        line.append("--allow-run-as-root")
    process = subprocess.Popen(
        [*line, sys.executable, str(_AGENT), folder], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL, start_new_session=True, preexec_fn=die_with_parent,
    )  # fmt: skip
    endings.at_exit(functools.partial(_clean, process, folder), after_mpi=True)
    return folder


def _clean(process: subprocess.Popen, folder: str) -> None:
    """Wait for the agents, whose processes have left MPI, and remove the folder."""
    try:
        process.wait(timeout=5)
    except subprocess.TimeoutExpired:
        process.terminate()
    shutil.rmtree(folder, ignore_errors=True)


def _content(path: Path, seconds: float) -> str:
    end = time.monotonic() + seconds
    while not path.exists():
        if time.monotonic() >= end:
            raise DistBackendError(f"mpirun did not start the agents of the ranks in {seconds:g} s")
        time.sleep(0.01)
    return path.read_text()
