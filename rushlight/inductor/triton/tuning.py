"""Autotuning on a GPU: time the candidates of a program's kernels, for `mode="max-autotune"`.

In: a program and its launcher. Out: the same program with the fastest choice of tiles, warps and stages in each launch of a
product, a convolution, attention or a reduction. Candidates that do not compile or do not fit the device are dropped. Open
sizes count as in the example inputs. The cache folder keeps winners, keyed by the kernel, the sizes and the device.
"""

from __future__ import annotations

import functools
import os
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from rushlight.core.algebra import Var
from rushlight.core.lazy_module import LazyModule
from rushlight.core.storage import StorageImpl
from rushlight.cuda import runtime
from rushlight.cuda.driver import DeviceProperties
from rushlight.inductor.codegen.triton.kernels import STATUS, Choice, Launch, Limits, extent_of
from rushlight.inductor.codegen.triton.program import TritonProgram
from rushlight.inductor.codegen.triton.wrapper import grid_sizes, wrapper_text
from rushlight.inductor.graph import LoweredGraph
from rushlight.inductor.ir import Buffer
from rushlight.inductor.sizes import Size, as_size, evaluate
from rushlight.inductor.triton.launcher import Launcher
from rushlight.utils.native import cache

compiler = LazyModule("rushlight.inductor.triton.compiler")

Observe = Callable[..., None]
TUNED = ("product", "attention", "attention_key_gradients", "attention_query_gradients", "row", "rows_in_loops")
ROUNDS = 20  # each round times every candidate once
BUDGET = 0.5  # seconds for a kernel; no new round starts after this time
ADVANTAGE = 0.98  # another candidate wins only below this fraction of the default's time
MOST_COMPILERS = 8  # processes that compile candidates at the same time
ALIGNMENT = 16
SMALL_FLOAT = 0x3C  # a float of such bytes, of any width, is small and positive


def limits_of(index: int) -> Limits:
    """Return the limits of a device."""
    found = _properties(index)
    return Limits(found.shared_memory_per_block_optin, found.multi_processor_count)


def _properties(index: int) -> DeviceProperties:
    return runtime.device_at(index).driver.properties(index)


def is_interpreting() -> bool:
    """Return whether Triton interprets kernels in this process."""
    return os.environ.get("TRITON_INTERPRET") == "1"


def label_of(choice: Choice) -> str:
    """Return a choice's name."""
    constants = " ".join(f"{name}={value}" for name, value in choice.constants.items())
    return f"{constants}, {choice.warps} warps, {choice.stages} stages"


class Tuner:
    """Sets the fastest choices in programs for one device. `observe` is called with the stage "autotune"."""

    def __init__(self, index: int, observe: Observe):
        self.index = index
        self.observe = observe

    def __call__(self, lowered: LoweredGraph, program: TritonProgram, launcher: Launcher) -> None:
        """Set the choices of a program's launches."""
        buffers = {buffer.name: buffer for buffer in lowered.buffers}
        winners: dict[str, Choice] = {}
        for launch in program.launches:
            if launch.kind not in TUNED or len(launch.candidates) < 2:
                continue
            trial = Trial(self.index, program, launch, launcher, buffers, lowered.symbols.hints)
            key = trial.key()
            if key not in winners:
                winners[key], times = choose(trial, key)
                self.observe("autotune", functools.partial(_report_text, launch, winners[key], times))
            launch.choice = winners[key]
        program.wrapper_source = wrapper_text(lowered, program)


class Trial:
    """A launch to tune, on memory of its own."""

    def __init__(
        self, index: int, program: TritonProgram, launch: Launch, launcher: Launcher, buffers: Mapping[str, Buffer],
        hints: Mapping[Var, int],
    ):  # fmt: skip
        self.index = index
        self.program = program
        self.launch = launch
        self.launcher = launcher
        self.buffers = buffers
        self.hints = hints

    def key(self) -> str:
        """Return a key of all that times depend on."""
        found, launch = _properties(self.index), self.launch
        sizes = [each if isinstance(each, str) else evaluate(each, self.hints) for each in launch.arguments]
        sizes = [size for size in sizes if not isinstance(size, str)]
        extents = [self._bytes_of(each) for each in launch.arguments if isinstance(each, str)]
        device = (found.name, found.major, found.minor, found.multi_processor_count, compiler.version())
        labels = [label_of(choice) for choice in launch.candidates]
        grid = grid_sizes(launch, self.hints)
        return cache.digest(repr((launch.text("@"), launch.parameters, launch.options, sizes, extents, grid, device, labels)))

    def _bytes_of(self, argument: str) -> int:
        if argument == STATUS:
            return 4
        nbytes: Size = self.launch.scratch.get(argument, 0)
        if not nbytes:
            found = self.buffers[argument]
            nbytes = as_size(extent_of(found) * found.layout.dtype.itemsize)
        return evaluate(nbytes, self.hints)

    def memory(self) -> dict[str, StorageImpl]:
        """Allocate the launch's buffers: zeros, and small numbers in those of floats."""
        stream, driver = runtime.current_stream(self.index), runtime.device_at(self.index).driver
        made = {}
        for (_, kind), argument in zip(self.launch.parameters, self.launch.arguments, strict=True):
            if isinstance(argument, str) and argument not in made:
                nbytes = self._bytes_of(argument)
                made[argument] = self.launcher.allocate(nbytes)
                driver.fill(made[argument].data_ptr, SMALL_FLOAT if "f" in kind else 0, nbytes, stream)
        return made

    def run(self, choice: Choice, memory: Mapping[str, StorageImpl]) -> None:
        """Put the kernel with a choice on the current stream."""
        arguments = tuple(
            memory[each].data_ptr if isinstance(each, str) else evaluate(each, self.hints) for each in self.launch.arguments
        )
        grid = grid_sizes(self.launch, self.hints, choice)
        constants = self.launch.constants(self.hints, choice)
        self.launcher.launch(self.launch.kernel, grid, arguments, constants, warps=choice.warps, stages=choice.stages)

    def candidates(self) -> list[Choice]:
        """Return the candidates that compile and fit the device. Kernels of an interpreter are not compiled."""
        candidates = self.launch.candidates
        if is_interpreting():
            return candidates
        found = _properties(self.index)
        results = self._compile(10 * found.major + found.minor)
        return [
            choice for choice, result in zip(candidates, results, strict=True)
            if "error" not in result and result["shared"] <= found.shared_memory_per_block_optin
        ]  # fmt: skip

    def _compile(self, capability: int) -> list[dict]:
        """Compile all candidates in several processes; Triton's cache keeps the cubins for the launches."""
        sizes = [evaluate(each, self.hints) for each in self.launch.arguments if not isinstance(each, str)]
        names = [name for name, kind in self.launch.parameters if kind.startswith("*") or not any(n % ALIGNMENT for n in sizes)]
        specs = [compiler.spec_of(self.launch, choice, tuple(names), self.hints) for choice in self.launch.candidates]
        count = min(MOST_COMPILERS, os.cpu_count() or 1, len(specs))
        with ThreadPoolExecutor(count) as pool:
            found = list(pool.map(lambda first: self._compile_part(specs[first::count], capability), range(count)))
        return [found[number % count][number // count] for number in range(len(specs))]

    def _compile_part(self, specs: list, capability: int) -> list[dict]:
        """Compile some candidates in a process; if that ends early, none of them is tried."""
        try:
            return compiler.compile_apart([(self.program.kernel_source, specs)], (capability,))
        except (RuntimeError, subprocess.SubprocessError) as error:
            return [{"error": str(error)}] * len(specs)


def choose(trial: Trial, key: str) -> tuple[Choice, dict[str, float]]:
    """Return the winner that the cache names. If it names none, measure all candidates and store the fastest one in the cache.
    Also return the measured times, in milliseconds."""
    path, default = _winner_path(key), trial.launch.choice
    known = {label_of(choice): choice for choice in trial.launch.candidates}
    stored = None if path is None else cache.read(path)
    found = known.get(stored.decode(errors="replace")) if stored is not None else None
    if found is not None:
        return found, {}
    times = measure(trial, trial.candidates())
    if not times:
        return default, {}
    first, best = label_of(default), min(times, key=times.get)
    winner = best if times[best] < ADVANTAGE * times.get(first, float("inf")) else first
    if path is not None:
        cache.keep(path, winner.encode())
    return known[winner], times


def _winner_path(key: str) -> Path | None:
    """Return the cache file for a winner; None if the cache folder is unusable."""
    try:
        return cache.open_folder(cache.default_folder()) / f"{key}.choice"
    except OSError:
        return None


def measure(trial: Trial, candidates: Sequence[Choice]) -> dict[str, float]:
    """Return the shortest time of each candidate, in milliseconds, with a cold cache. Candidates alternate, so that noise
    affects all alike. Those that cannot be launched are left out, and all if there is too little memory."""
    driver, stream = runtime.device_at(trial.index).driver, runtime.current_stream(trial.index)
    try:
        memory = trial.memory()
        cold = trial.launcher.allocate(max(_properties(trial.index).L2_cache_size, 1))
    except RuntimeError:  # OutOfMemoryError is one
        return {}
    runs = {}
    for choice in candidates:
        run = functools.partial(trial.run, choice, memory)
        try:
            run()
            driver.wait_for_stream(stream)
        except Exception:  # whatever the compiler or the driver refuses is no candidate
            continue
        runs[label_of(choice)] = run
    best = dict.fromkeys(runs, float("inf"))
    events = driver.create_event(True), driver.create_event(True)
    end = time.perf_counter() + BUDGET
    for _ in range(ROUNDS):
        for label, run in runs.items():
            driver.fill(cold.data_ptr, 0, cold.nbytes, stream)
            driver.record_event(events[0], stream)
            run()
            driver.record_event(events[1], stream)
            driver.wait_for_event(events[1])
            best[label] = min(best[label], driver.milliseconds(*events))
        if time.perf_counter() > end:
            break
    for event in events:
        driver.destroy_event(event)
    return best


def _report_text(launch: Launch, winner: Choice, times: dict[str, float]) -> str:
    measured = "; ".join(f"{label}: {time * 1000:.1f} us" for label, time in times.items()) or "from the cache"
    return f"{launch.kernel}: {label_of(winner)} ({measured})"
