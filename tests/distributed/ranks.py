"""Runs programs as several ranks: Rushlight's by `rushlight launch`, PyTorch's, on gloo, by processes of our own."""

from __future__ import annotations

import importlib.util
import os
import pickle
import socket
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

needs_mpi = pytest.mark.skipif(
    importlib.util.find_spec("mpi4py") is None or not (Path(sys.prefix) / "bin" / "mpirun").exists(),
    reason="needs MPI: pip install rushlight[mpi]",
)


def launch(
    ranks: int, *words: str, timeout: float = 60, options: tuple[str, ...] = (), **variables: str
) -> subprocess.CompletedProcess:
    """Run a program, with its words, as several ranks."""
    command = [sys.executable, "-m", "rushlight", "launch", "-n", str(ranks), *options, *words]
    environment = {**os.environ, "PYTHONPATH": str(ROOT), **variables}
    return subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=timeout)


def results(ranks: int, module: str, folder: Path) -> list:
    """Return what `main` of a module of tests returns on each rank, with Rushlight."""
    done = launch(ranks, str(Path(__file__).parent / "run_module.py"), module, str(folder))
    assert done.returncode == 0, done.stdout + done.stderr
    return _read(folder, ranks)


def results_of_torch(ranks: int, module: str, folder: Path) -> list:
    """Return what `main` of a module of tests returns on each rank, with PyTorch on gloo."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    variables = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port), "WORLD_SIZE": str(ranks), "OMP_NUM_THREADS": "1"}
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "TORCH_CPP_LOG_LEVEL": "ERROR", **variables}
    command = [sys.executable, str(Path(__file__).parent / "run_module.py"), module, str(folder), "fork"]
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return _read(folder, ranks)


def _read(folder: Path, ranks: int) -> list:
    return [pickle.loads((folder / f"{rank}.pickle").read_bytes()) for rank in range(ranks)]
