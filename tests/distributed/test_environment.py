"""How a process says that it was started, and what is said without MPI or a launcher."""

from __future__ import annotations

import os
import socket
import subprocess
import sys

import pytest

import rushlight.distributed as dist
from rushlight.distributed.environment import Launched, launched
from tests.distributed.ranks import ROOT, needs_mpi


def test_launchers_are_told_by_their_variables():
    assert launched({}) is None
    slurm = {"SLURM_PROCID": "3", "SLURM_STEP_NUM_TASKS": "6", "SLURM_LOCALID": "1", "SLURM_STEP_TASKS_PER_NODE": "3(x2)"}
    assert launched(slurm) == Launched("srun", 3, 6, 1, 3)
    assert launched({"RANK": "0", "WORLD_SIZE": "1"}) == Launched("torchrun", 0, 1, 0, 1)
    with pytest.raises(ValueError, match="must be a number, got 'x'"):
        launched({"RANK": "x", "WORLD_SIZE": "1"})


def test_before_initialization():
    assert not dist.is_initialized() and dist.group.WORLD is None
    with pytest.raises(ValueError, match="has not been initialized"):
        dist.get_rank()
    with pytest.raises(ValueError, match="has not been initialized"):
        dist.barrier()


def test_without_mpi4py_a_sentence_says_how_to_get_it():
    program = (
        "import sys; sys.modules['mpi4py'] = None\n"
        "import importlib.util; importlib.util.find_spec = lambda name: None\n"
        "import rushlight.distributed as dist\n"
        "assert not dist.is_available()\n"
        "dist.init_process_group()"
    )
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True)
    assert "pip install 'rushlight[mpi]'" in done.stderr.splitlines()[-1]


CALLS = {
    "dist.init_process_group('nccl')": "is for GPUs, of which none is here",
    "dist.init_process_group('carrier-pigeon')": "no backend 'carrier-pigeon'",
    "dist.init_process_group(init_method='udp://x')": "No rendezvous handler for udp://",
    "dist.init_process_group(timeout=3)": "datetime.timedelta",
    "dist.init_process_group(world_size=2, rank=0)": "MASTER_ADDR expected, but not set",
    "os.environ.update(RANK='0', WORLD_SIZE='2'); dist.init_process_group()": "rushlight launch -n N",
    "os.environ.update(SLURM_PROCID='0', SLURM_STEP_NUM_TASKS='2'); dist.init_process_group()": "srun --mpi=pmix",
}


@needs_mpi
def test_what_cannot_be_initialized_says_why():
    program = f"""
import os, rushlight.distributed as dist
for call in {list(CALLS)!r}:
    try:
        exec(call)
    except (RuntimeError, ValueError, TypeError) as error:
        print(str(error))
"""
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    for said, line in zip(CALLS.values(), done.stdout.splitlines(), strict=True):
        assert said in line


@needs_mpi
def test_program_without_a_launcher_is_a_world_of_one():
    program = (
        "import rushlight as torch, rushlight.distributed as dist\n"
        "dist.init_process_group('gloo', init_method='tcp://127.0.0.1:2345', rank=0, world_size=1)\n"
        "x = torch.ones(2); dist.all_reduce(x); dist.barrier(); print(x.tolist(), dist.get_world_size())\n"
        "dist.destroy_process_group(); dist.init_process_group(); print(dist.get_rank())"
    )
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("RANK", "WORLD"))}
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, env=environment, capture_output=True, text=True)
    assert done.stdout == "[1.0, 1.0] 1\n0\n" and done.stderr.count("is MPI here") == 1


@needs_mpi
@pytest.mark.parametrize("method", ["env", "file", "tcp"])
def test_processes_that_a_program_spawns_become_ranks(method, tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = str(server.getsockname()[1])
    address = {"env": "env://", "file": f"file://{tmp_path}/meeting", "tcp": f"tcp://127.0.0.1:{port}"}[method]
    program = tmp_path / "program.py"
    program.write_text(SPAWNING)
    environment = {**os.environ, "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port, "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-m", "rushlight", "exec", str(program), address]
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    assert sorted(done.stdout.splitlines()) == ["0 [3.0]", "1 [3.0]", "joined"]


SPAWNING = """
import sys
import torch, torch.distributed as dist, torch.multiprocessing as mp

def run(rank, address):
    dist.init_process_group("mpi", init_method=address, rank=rank, world_size=2)
    x = torch.ones(1) * (rank + 1)
    dist.all_reduce(x)
    sys.stdout.write(f"{rank} {x.tolist()}\\n")
    dist.destroy_process_group()

if __name__ == "__main__":
    mp.spawn(run, args=(sys.argv[1],), nprocs=2)
    print("joined")
"""
