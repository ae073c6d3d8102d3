"""All settings, in one frozen record. Each has a `RUSHLIGHT_...` variable, read when the package is imported."""

from __future__ import annotations

import os
from collections.abc import Container
from dataclasses import dataclass, fields, replace
from typing import Any

from rushlight.core.parallel import MAX_THREADS


@dataclass(frozen=True)
class Settings:
    """The compiler's settings besides its arguments."""

    logs: frozenset[str] = frozenset()
    """RUSHLIGHT_LOGS: stages to print, comma-separated, from: captured, passes, graph, guards, graph_breaks, recompiles,
    bytecode, joint, partition, autotune, loops, fusion, memory, code, library, module."""

    dump: str = ""
    """RUSHLIGHT_DUMP: a folder for numbered files of every stage of every graph."""

    debug_cpp: bool = False
    """RUSHLIGHT_DEBUG_CPP: build generated C++ without optimisation and with debug information."""

    threads: int = 0
    """RUSHLIGHT_THREADS: threads of compiled code; 0 for `get_num_threads()` at the time of compilation."""

    max_autotune: bool = False
    """RUSHLIGHT_MAX_AUTOTUNE: time several ways to run products and convolutions, and keep the fastest one in the cache."""

    recompile_limit: int = 16
    """RUSHLIGHT_RECOMPILE_LIMIT: the number of captures per function; afterwards, calls that no guard fits run in eager."""

    partitioner: str = "min_cut"
    """RUSHLIGHT_PARTITIONER: the tensors that compiled training saves for the backward: "min_cut", the fewest bytes, or
    "default", all that it reads."""

    memory_budget: float = 1.0
    """RUSHLIGHT_MEMORY_BUDGET: the share of those fewest bytes to save, from 0 to 1; the rest is recomputed."""

    fallback_random: bool = False
    """RUSHLIGHT_FALLBACK_RANDOM: compiled code draws the random numbers that eager would draw, by eager's kernels."""

    keep_captures: bool = True
    """RUSHLIGHT_KEEP_CAPTURES: store captures in the cache folder and reuse those of other processes; 0 for neither."""

    verify: bool = False
    """RUSHLIGHT_VERIFY: run the interpreter beside native code at each call, and name the first node that differs."""

    cuda_graphs: bool = False
    """RUSHLIGHT_CUDA_GRAPHS: capture compiled calls on a GPU as CUDA graphs, as `mode="reduce-overhead"` does."""

    target: str = "cpp"
    """RUSHLIGHT_TARGET: what graphs are compiled to: "cpp"; "triton-interpreter", Triton kernels that Triton's interpreter runs
    on the CPU; "triton-sanitizer", the same with a check of each memory access; or "triton-text", Triton kernels that are only
    written, beside the interpreter of graphs."""

    def __post_init__(self) -> None:
        """Check all settings: ValueError or TypeError."""
        if isinstance(self.logs, set | list | tuple):
            object.__setattr__(self, "logs", frozenset(self.logs))
        for field in fields(self):
            _check_type(field.name, getattr(self, field.name), type(field.default))
        unknown = self.logs - STAGES
        if unknown:
            raise ValueError(f"no logs are named {', '.join(map(str, unknown))}; logs are {', '.join(sorted(STAGES))}")
        if not 0 <= self.threads <= MAX_THREADS:
            raise ValueError(f"threads must be between 0 and {MAX_THREADS}, got {self.threads}")
        if self.recompile_limit < 0:
            raise ValueError(f"recompile_limit must not be negative, got {self.recompile_limit}")
        if self.partitioner not in PARTITIONERS:
            raise ValueError(f"partitioner must be one of {', '.join(PARTITIONERS)}, got {self.partitioner!r}")
        if self.target not in TARGETS:
            raise ValueError(f"target must be one of {', '.join(TARGETS)}, got {self.target!r}")
        if not 0 <= self.memory_budget <= 1:
            raise ValueError(f"memory_budget must be between 0 and 1, got {self.memory_budget}")


STAGES = frozenset((
    "captured", "passes", "graph", "guards", "graph_breaks", "recompiles", "bytecode", "joint", "partition", "autotune",
    "loops", "fusion", "memory", "code", "library", "module",
))  # fmt: skip
PARTITIONERS = ("min_cut", "default")
TARGETS = ("cpp", "triton-interpreter", "triton-sanitizer", "triton-text")


def _check_type(name: str, value: object, kind: type) -> None:
    """Raise TypeError for a value of another type; an int may stand for a float, but not a bool for a number."""
    fits = isinstance(value, kind) or (kind is float and isinstance(value, int))
    if not fits or (isinstance(value, bool) and kind is not bool):
        raise TypeError(f"the setting {name} expects {kind.__name__}, got {value!r}")


def from_environment() -> Settings:
    """Return the settings from the environment; ValueError for invalid ones."""
    return Settings(
        logs=frozenset(name.strip() for name in os.environ.get("RUSHLIGHT_LOGS", "").split(",") if name.strip()),
        dump=os.environ.get("RUSHLIGHT_DUMP", ""),
        debug_cpp=_read_flag("RUSHLIGHT_DEBUG_CPP"),
        threads=_read_number("RUSHLIGHT_THREADS", int, 0),
        max_autotune=_read_flag("RUSHLIGHT_MAX_AUTOTUNE"),
        recompile_limit=_read_number("RUSHLIGHT_RECOMPILE_LIMIT", int, 16),
        partitioner=os.environ.get("RUSHLIGHT_PARTITIONER") or "min_cut",
        memory_budget=_read_number("RUSHLIGHT_MEMORY_BUDGET", float, 1.0),
        fallback_random=_read_flag("RUSHLIGHT_FALLBACK_RANDOM"),
        keep_captures=_read_flag("RUSHLIGHT_KEEP_CAPTURES", "1"),
        verify=_read_flag("RUSHLIGHT_VERIFY"),
        cuda_graphs=_read_flag("RUSHLIGHT_CUDA_GRAPHS"),
        target=os.environ.get("RUSHLIGHT_TARGET") or "cpp",
    )


_configured: dict[str, Any] = {}


def configure(name: str, value: Any) -> None:
    """Set one setting for the process; TypeError or ValueError for invalid values."""
    _configured[name] = getattr(Settings(**{name: value}), name)


def configured(settings: Settings, chosen: Container[str] = ()) -> Settings:
    """Return `settings`, overridden by `configure`, except for settings chosen by name."""
    told = {name: value for name, value in _configured.items() if name not in chosen}
    return replace(settings, **told) if told else settings


def _read_number(name: str, kind: type, default: float) -> float:
    """Read a number from an environment variable."""
    given = os.environ.get(name)
    try:
        return kind(given) if given else default
    except ValueError:
        raise ValueError(f"{name} must be {'a whole number' if kind is int else 'a number'}, got {given!r}") from None


def _read_flag(name: str, default: str = "0") -> bool:
    return os.environ.get(name, default) not in ("", "0")
