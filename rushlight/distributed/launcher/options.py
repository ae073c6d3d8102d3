"""The options of `rushlight launch`: those of torchrun that mean something under MPI, and some of its own."""

from __future__ import annotations

import argparse
import os
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Options:
    """What to start: `program` is a file, a module or a command, with its arguments."""

    program: tuple[str, ...]
    kind: str
    """"script", "module" or "command"."""
    ranks: int
    """Ranks on each machine."""
    machines: int
    hosts: tuple[str, ...]
    threads: int | None
    pin: bool
    master: tuple[str, str]
    log_dir: str | None
    mpirun: str | None


def cores() -> int:
    """Return how many cores this process may use."""
    return len(os.sched_getaffinity(0))


class _Parser(argparse.ArgumentParser):
    """Takes options with dashes and with underscores, as torchrun does."""

    def add(self, *names: str, **keywords: object) -> None:
        more = [name.replace("-", "_").replace("__", "--", 1) for name in names if name.startswith("--") and "-" in name[2:]]
        self.add_argument(*names, *more, **keywords)  # type: ignore[arg-type]


def parser() -> argparse.ArgumentParser:
    """Return the parser of the command line."""
    made = _Parser("rushlight launch", description="Start a program as several ranks that work together, by MPI.")
    made.add("-n", "--nproc-per-node", default="auto", metavar="N", help="ranks on each machine; auto: one for each core")
    made.add("--nnodes", default="1", metavar="M", help="machines; more than one with --hosts, or in a Slurm allocation")
    made.add("--hosts", default="", metavar="A,B", help="the names of the machines")
    made.add("--threads", type=int, metavar="T", help="threads of each rank; cores / ranks unless given")
    made.add("--no-pin", action="store_true", help="let ranks move between cores")
    made.add("--log-dir", metavar="DIR", help="write the output of each rank to a file in DIR, too")
    made.add("--mpirun", metavar="PATH", help="the mpirun to start ranks with")
    made.add("-m", "--module", action="store_true", help="the program is a module, as for python -m")
    made.add("--no-python", action="store_true", help="the program is a command of its own, not a Python script")
    made.add("--standalone", action="store_true", help="one machine, which is what --nnodes 1 means")
    made.add("--master-addr", default="127.0.0.1", metavar="HOST", help="MASTER_ADDR for programs that read it")
    made.add("--master-port", default="29500", metavar="PORT", help="MASTER_PORT for programs that read it")
    made.add("--rdzv-backend", default="static", help="taken, not needed: MPI's ranks meet by mpirun")
    made.add("--rdzv-endpoint", default="", metavar="HOST:PORT", help="MASTER_ADDR and MASTER_PORT in one")
    made.add("--rdzv-id", default="", help="taken, not needed")
    made.add("--node-rank", type=int, default=0, help="0 only: rushlight launch is started once for all machines")
    made.add("--max-restarts", type=int, default=0, help="0 only: ranks that died are not started again")
    made.add_argument("program", help="a Python file; a module with -m")
    made.add_argument("arguments", nargs=argparse.REMAINDER, help="of the program")
    return made


def parse(words: Sequence[str]) -> Options:
    """Return the options of a command line. SystemExit, after a message, for options that are wrong or not supported."""
    reader = parser()
    found = reader.parse_args(list(words))
    if found.standalone and _machines(reader, found.nnodes) > 1:
        reader.error("--standalone means one machine, and --nnodes says another number")
    if found.max_restarts:
        reader.error("--max-restarts: ranks that died are not started again; continue from a checkpoint")
    if found.node_rank:
        reader.error("--node-rank: rushlight launch is started once, on one machine, for all; name them by --hosts")
    if found.module and found.no_python:
        reader.error("--module and --no-python exclude each other")
    kind = "module" if found.module else "command" if found.no_python else "script"
    host, _, port = found.rdzv_endpoint.partition(":")
    return Options(
        (found.program, *found.arguments), kind, _ranks(reader, found.nproc_per_node), _machines(reader, found.nnodes),
        tuple(host for host in found.hosts.split(",") if host), found.threads, not found.no_pin,
        (host or found.master_addr, port or found.master_port), found.log_dir, found.mpirun,
    )  # fmt: skip


def _ranks(reader: argparse.ArgumentParser, text: str) -> int:
    if text in ("auto", "cpu"):
        return cores()
    if text == "gpu":
        reader.error("--nproc-per-node gpu: ranks work on CPUs; give a number, or auto for one on each core")
    if not text.isdigit() or text == "0":
        reader.error(f"--nproc-per-node must be a positive number or auto, got {text!r}")
    return int(text)


def _machines(reader: argparse.ArgumentParser, text: str) -> int:
    least, _, most = text.partition(":")
    if not least.isdigit() or (most and most != least):
        reader.error(f"--nnodes must be one number, got {text!r}: the number of machines cannot change while a program runs")
    return int(least)
