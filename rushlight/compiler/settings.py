"""All settings, in one frozen record. Each has a `RUSHLIGHT_...` variable, read when the package is imported."""

from __future__ import annotations

import os
from dataclasses import dataclass


@dataclass(frozen=True)
class Settings:
    """What the compiler does beside its arguments."""

    logs: frozenset[str] = frozenset()
    """RUSHLIGHT_LOGS: stages to print, comma-separated, from: graph, guards, graph_breaks, recompiles, bytecode, joint,
    partition, autotune, loops, fusion, memory, code, library, module."""

    dump: str = ""
    """RUSHLIGHT_DUMP: a folder for numbered files of every stage of every graph."""

    debug_cpp: bool = False
    """RUSHLIGHT_DEBUG_CPP: build generated C++ without optimisation and with debug information."""

    threads: int = 0
    """RUSHLIGHT_THREADS: threads of compiled code; 0 for `get_num_threads()` at the time of compilation."""

    max_autotune: bool = False
    """RUSHLIGHT_MAX_AUTOTUNE: time several ways to run products and convolutions, and keep the fastest one in the cache."""

    recompile_limit: int = 16
    """RUSHLIGHT_RECOMPILE_LIMIT: how often one function is captured; calls that no guard fits then run in eager."""

    partitioner: str = "min_cut"
    """RUSHLIGHT_PARTITIONER: what compiled training keeps for the backward: "min_cut", the fewest bytes, or "default", all that
    it reads."""

    memory_budget: float = 1.0
    """RUSHLIGHT_MEMORY_BUDGET: which share of those fewest bytes is kept, from 0 to 1; the rest is calculated again."""

    fallback_random: bool = False
    """RUSHLIGHT_FALLBACK_RANDOM: compiled code draws the random numbers that eager would draw, by eager's kernels."""

    verify: bool = False
    """RUSHLIGHT_VERIFY: run the interpreter beside native code at each call, and name the first node that differs."""


STAGES = frozenset((
    "graph", "guards", "graph_breaks", "recompiles", "bytecode", "joint", "partition", "autotune", "loops", "fusion", "memory",
    "code", "library", "module",
))  # fmt: skip


def from_environment() -> Settings:
    """The settings that the process's environment gives; ValueError for a log that does not exist."""
    logs = frozenset(name.strip() for name in os.environ.get("RUSHLIGHT_LOGS", "").split(",") if name.strip())
    unknown = logs - STAGES
    if unknown:
        raise ValueError(f"RUSHLIGHT_LOGS names {', '.join(sorted(unknown))}; logs are {', '.join(sorted(STAGES))}")
    return Settings(
        logs=logs,
        dump=os.environ.get("RUSHLIGHT_DUMP", ""),
        debug_cpp=_flag("RUSHLIGHT_DEBUG_CPP"),
        threads=int(os.environ.get("RUSHLIGHT_THREADS") or 0),
        max_autotune=_flag("RUSHLIGHT_MAX_AUTOTUNE"),
        recompile_limit=int(os.environ.get("RUSHLIGHT_RECOMPILE_LIMIT") or 16),
        partitioner=os.environ.get("RUSHLIGHT_PARTITIONER") or "min_cut",
        memory_budget=float(os.environ.get("RUSHLIGHT_MEMORY_BUDGET") or 1.0),
        fallback_random=_flag("RUSHLIGHT_FALLBACK_RANDOM"),
        verify=_flag("RUSHLIGHT_VERIFY"),
    )


def _flag(name: str) -> bool:
    return os.environ.get(name, "0") not in ("", "0")
