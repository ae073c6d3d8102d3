"""A recording of all that is compiled and run meanwhile.

In: stages of compilations and runs of compiled graphs, from their beginning to their end. Out: a dict that the page shows; its
fields are described in `page/src/recording.ts`.
"""

from __future__ import annotations

import datetime
import platform
import statistics
import threading
import time
import warnings
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from types import CodeType
from typing import Any

from rushlight.compiler import logs
from rushlight.compiler.kernel_profile import Peaks, measured_peaks
from rushlight.compiler.logs import StageLog, StageRecord
from rushlight.core.parallel import get_num_threads
from rushlight.core.thread_state import state
from rushlight.explorer.clock import GraphClock, InterpretedRuns
from rushlight.explorer.eager import MAX_CALLS, EagerRecording
from rushlight.explorer.kernels import kernels_of, kernels_of_nodes, memory_of, note_code
from rushlight.explorer.page import VERSION
from rushlight.explorer.places import Files, functions_of_lines
from rushlight.explorer.scripts import note_sources, stages_of
from rushlight.explorer.stepping import steps_of
from rushlight.explorer.units import Unit
from rushlight.inductor.pieces import text_of
from rushlight.jit.function import Function
from rushlight.jit.ir.graph import Graph
from rushlight.jit.runtime.executor import ExecutionPlan, executor_of, unwatch, watch
from rushlight.version import __version__

MAX_TEXT = 48_000_000  # characters of all stages together; later ones are named, but not shown
MAX_OUTPUT = 20_000  # characters of what the program printed, from its end


class Recorder:
    """Listens to compilations and to runs of compiled graphs between `start` and `stop`; `with_eager` also to eager operators
    of the thread that starts it."""

    def __init__(self, with_eager: bool = True) -> None:
        self.files = Files()
        self.clock = GraphClock()
        self.interpreted = InterpretedRuns(self.clock)
        self.units: list[Unit] = []
        self._by_log: dict[int, Unit] = {}
        self._logs: list[StageLog] = []  # alive, so that no other log gets the identity of one
        self._scripts: dict[int, Unit] = {}  # by the identity of the graph that is run
        self.origin = 0.0
        self._texts = 0
        self._stages = 0
        self._left_out = 0
        self._is_timed = False
        self._problems: list[str] = []
        self.eager = EagerRecording(self.files)
        self._with_eager = with_eager
        self._lock = threading.RLock()

    def start(self) -> None:
        """Begin. Kernels are not timed while somebody else measures them."""
        self.origin = time.perf_counter()
        logs.listen(self)
        watch(self)
        try:
            self.clock.start()
            self._is_timed = True
        except RuntimeError as error:
            warnings.warn(f"explorer: kernels are not timed: {error}", stacklevel=3)
        if self._with_eager and state.recording is None:
            self.eager.start()

    def stop(self) -> None:
        """End."""
        logs.leave(self)
        unwatch(self)
        if self._is_timed:
            self.clock.stop()
        self.eager.end()

    def heard(self, log: StageLog, record: StageRecord) -> None:
        """Take a stage of a compilation."""
        with self._lock:
            unit = self._unit_of(log)
            unit.heard(record, self._next_stage(), self._keeps(record.text))

    def planned(self, function: Function, plan: ExecutionPlan) -> None:
        """Take a TorchScript function that is about to run for the first time."""
        with self._lock:
            unit = self._scripts[id(plan.graph)] = self._new_unit(function.short_name, plan.graph, time.perf_counter())
            try:
                note_sources(plan.graph, self.files)
                for stage in stages_of(function, plan.code):
                    unit.add_script_stage(stage, self._next_stage(), self._keeps(stage.text))
            except Exception as error:  # the program goes on, whatever is wrong with the recording
                self._problems.append(f"Stages of {function.name} are missing: {type(error).__name__}: {error}")

    def interpreting(self, source: StageLog | Function) -> AbstractContextManager:
        """Return a context in which a captured graph or a TorchScript function runs without native code."""
        if isinstance(source, Function):
            unit, name = self._unit_of_script(source), source.short_name
        else:
            unit, name = self._by_log.get(id(source)), source.name
        return self.interpreted.run(name, unit and unit.number)

    def _unit_of_script(self, function: Function) -> Unit | None:
        return self._scripts.get(id(executor_of(function).plan().graph))

    def show_steps(self, function: Function, arguments: Sequence[object]) -> None:
        """Have the unit of a function show a run of it for arguments."""
        unit = self._unit_of_script(function)
        if unit is not None:
            unit.steps = steps_of(executor_of(function).plan().code, arguments, self.files)

    def _unit_of(self, log: StageLog) -> Unit:
        """The unit of a log; logs of one TorchScript function share theirs."""
        unit = self._by_log.get(id(log)) or self._scripts.get(id(log.source))
        if unit is None:
            unit = self._new_unit(log.name, log.source, log.began)
        if id(log) not in self._by_log:
            self._by_log[id(log)] = unit
            self._logs.append(log)
            unit.ended = max(unit.ended, log.began)
        return unit

    def _new_unit(self, name: str, source: CodeType | Graph | None, began: float) -> Unit:
        unit = Unit(len(self.units), name, source, began, self.files, self.origin)
        self.units.append(unit)
        return unit

    def _next_stage(self) -> int:
        self._stages += 1
        return self._stages

    def _keeps(self, text: str) -> bool:
        """Whether there is room for a text."""
        keeps = self._texts + len(text) <= MAX_TEXT
        self._texts += len(text) if keeps else 0
        self._left_out += not keeps
        return keeps

    def as_dict(self, title: str, command: str, output: str = "", error: str | None = None) -> dict[str, Any]:
        """The recording."""
        peaks = measured_peaks() if any(self.clock.kernels) else None
        self._add_earlier_graphs()
        units = self.units
        failed: dict[int, list[str]] = {}  # by the identity of a function's code: others may have guards with the same text
        for unit in units:
            failed.setdefault(id(unit.source), []).extend(unit.failed_guards)
        graphs = self._graphs_by_program()
        described = [self._described(unit, failed[id(unit.source)], graphs, peaks) for unit in units]
        self._link_recompiles(units, described)
        owners = _owners(units, graphs)
        _settle_untouched(described)
        return {
            "version": VERSION, "title": title, "command": command,
            "made": datetime.datetime.now().isoformat(timespec="seconds"),
            "machine": self._machine(peaks), "notes": self._notes(), "output": output[-MAX_OUTPUT:], "error": error,
            "units": described, "calls": self._calls(described, owners), "runs": list(self._runs(owners)),
            "interpreted": [vars(total) for total in self.interpreted.totals.values()],
            "eager": list(self.eager.calls.values()), "tapes": self.eager.tapes,
            "files": self.files.described(),
        }  # fmt: skip

    def _add_earlier_graphs(self) -> None:
        """Add a unit for each graph that ran and was compiled before the recording: what inductor made of it is known still."""
        known = {id(piece.program) for unit in self.units for piece in unit.pieces}
        for lowered, program in (part for parts in self.clock.parts.values() for part in parts):
            if id(program) in known:
                continue
            lines = [line for group in program.groups for line in group.lines()]
            unit = self._new_unit(_function_of(lines), None, self.origin)
            unit.is_earlier = True
            for stage in ("loops", "fusion", "memory", "code"):
                text, subject = text_of(stage, lowered, program), lowered if stage == "loops" else program
                unit.heard(StageRecord(stage, "", text, subject, self.origin), self._next_stage(), self._keeps(text))
            unit.ended = unit.began

    def _graphs_by_program(self) -> dict[int, tuple[int, int]]:
        """The number of the graph that ran each program, and of its part, by the program's identity."""
        return {
            id(program): (number, part)
            for number, parts in self.clock.parts.items() for part, (_, program) in enumerate(parts)
        }  # fmt: skip

    def _described(
        self, unit: Unit, failed: Sequence[str], graphs: dict[int, tuple[int, int]], peaks: Peaks | None
    ) -> dict[str, Any]:
        compiled = unit.compiled_pieces()
        for _, piece in compiled:
            note_code(piece, self.files)
        unit.add_own_bytecode(self._next_stage())
        made = unit.as_dict(failed)
        for prefix, piece in compiled:
            times = self.clock.kernels_of(*graphs.get(id(piece.program), (-1, 0)))
            made["kernels"] += kernels_of(piece, times, peaks, self.files, prefix)
            memory = memory_of(piece, prefix or "graph")
            made["memory"] += [memory] if memory else []
            _note_kernels(made["stages"], kernels_of_nodes(piece, prefix), piece.part)
        return made

    def _link_recompiles(self, units: Sequence[Unit], described: list[dict]) -> None:
        """Say of each capture anew which unit it did not fit: the one before of the same function."""
        last: dict[int, int] = {}
        for unit, made in zip(units, described, strict=True):
            if made["recompile"] is not None:
                made["recompile"]["of"] = last.get(id(unit.code))
            if unit.code is not None:
                last[id(unit.code)] = unit.number

    def _runs(self, owners: Mapping[int, tuple[Unit, str]]) -> Iterator[dict]:
        """Yield the sums over all runs of each graph, and the median of the runs that are shown singly."""
        seconds: dict[int, list[float]] = {}
        for run in self.clock.runs:
            seconds.setdefault(run.graph, []).append(run.ended - run.began)
        for number, total in self.clock.totals.items():
            unit, prefix = owners.get(number, (None, ""))
            parts = range(len(self.clock.parts.get(number, ())))
            kernels = [kernel for part in parts for kernel in self.clock.kernels_of(number, part)]
            yield {
                "unit": None if unit is None else unit.number, "name": _name_of_run(unit, prefix), "calls": total.calls,
                "seconds": total.seconds, "kernels": sum(kernel.nanoseconds for kernel in kernels) / 1e9,
                "median": statistics.median(seconds[number]) if number in seconds else total.seconds / max(total.calls, 1),
                "preparing": total.preparing,
            }  # fmt: skip

    def _calls(self, described: Sequence[dict], owners: Mapping[int, tuple[Unit, str]]) -> list[dict]:
        calls = [
            {"unit": made["id"], "name": made["name"], "at": made["began"], "seconds": made["seconds"], "timed": False,
             "graph": "",
             "kind": "recompile" if made["recompile"] else "compile",
             "stages": [[stage["title"], stage["seconds"]] for stage in made["stages"]]}
            for made in described if made["stages"] and made["status"] != "kept"
        ]  # fmt: skip
        for run, kind in (*((each, "hit") for each in self.clock.runs), *((each, "pack") for each in self.clock.preparations)):
            unit, prefix = owners.get(run.graph, (None, ""))
            calls.append({
                "unit": None if unit is None else unit.number, "name": _name_of_run(unit, prefix),
                "at": run.began - self.origin, "seconds": run.ended - run.began, "kind": kind, "stages": [],
                "timed": kind == "hit", "graph": prefix or "graph",
            })  # fmt: skip
        return sorted(calls, key=lambda call: call["at"])

    def _machine(self, peaks: Peaks | None) -> dict[str, Any]:
        return {
            "processor": _processor(), "threads": get_num_threads(), "python": platform.python_version(),
            "rushlight": __version__, "bandwidth": peaks and peaks.bandwidth, "flops": peaks and peaks.flops,
        }  # fmt: skip

    def _notes(self) -> list[str]:
        notes = list(self._problems)
        if self._left_out:
            notes.append(f"The texts of {self._left_out} stages are left out: all texts together exceed {MAX_TEXT} characters.")
        if self.clock.left_out:
            notes.append(f"{self.clock.left_out} later runs of graphs are counted in all sums, but not shown singly.")
        if self.eager.left_out:
            notes.append(f"Only the first {MAX_CALLS} different eager calls are shown; there were more.")
        if not self._is_timed:
            notes.append("Kernels were not timed: another profile measured them meanwhile.")
        return notes


def _owners(units: Sequence[Unit], graphs: Mapping[int, tuple[int, int]]) -> dict[int, tuple[Unit, str]]:
    """The unit of each graph that ran, and the prefix of the graph within it, by the graph's number."""
    owners = {
        graphs[id(piece.program)][0]: (unit, prefix)
        for unit in units for prefix, piece in unit.compiled_pieces() if id(piece.program) in graphs
    }  # fmt: skip
    return owners | {number: (unit, "") for unit in units for number in unit.structured}


def _name_of_run(unit: Unit | None, prefix: str) -> str:
    return "a graph" if unit is None else f"{unit.name} {prefix}".strip()


def _settle_untouched(described: Sequence[dict]) -> None:
    """Lines that another unit captured, or broke at, are not untouched: a function goes on as another unit after a break."""
    touched = {place for made in described for place in (*made["captured"], *made["broken"])}
    for made in described:
        made["untouched"] = [place for place in made["untouched"] if place not in touched]


def _note_kernels(stages: Sequence[dict], kernels: dict[str, str], part: str) -> None:
    """Tell the nodes of the graph that a piece was made of which kernel calculates them."""
    source = "partition" if part else "graph"
    for stage in stages:
        if stage["graph"] is not None and stage["stage"] == source and (not part or stage["title"].endswith(part)):
            for node in stage["graph"]["nodes"]:
                node["kernel"] = node["kernel"] or kernels.get(node["name"])


def _function_of(lines: Sequence[str]) -> str:
    """The function from which most lines, as `path:line in function: code`, come."""
    functions = Counter(functions_of_lines(lines))
    return functions.most_common(1)[0][0] if functions else "a graph"


def _processor() -> str:
    """The processor's name, as far as the system says it."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        lines = []
    named = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(named, platform.processor() or platform.machine())
