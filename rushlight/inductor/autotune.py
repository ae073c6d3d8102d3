"""Autotuning: time several ways to run a template on this machine, for `mode="max-autotune"`.

In: a lowered graph of known sizes. Out: the same graph with the fastest kind and parameters in each template. The cache folder
keeps winners, keyed by the template's shape, the number of threads and the processor.
"""

from __future__ import annotations

import ctypes
import functools
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from rushlight.core.device import CPU
from rushlight.core.dispatch_key import CPU_KEYS
from rushlight.core.storage import allocate
from rushlight.core.tensor import Tensor, wrap
from rushlight.core.tensor_impl import TensorImpl
from rushlight.inductor import costs
from rushlight.inductor.build import FLAGS, build, headers_digest
from rushlight.inductor.codegen.cpp.program import ProgramWriter
from rushlight.inductor.compiled import CompiledGraph
from rushlight.inductor.graph import LoweredGraph, OutputView
from rushlight.inductor.ir import Buffer, ConstantBuffer, FixedLayout, InputBuffer, TemplateBuffer
from rushlight.inductor.lowering.convolutions import can_be_winograd
from rushlight.inductor.planning import plan_of
from rushlight.inductor.processor import instructions
from rushlight.utils.native import cache

if TYPE_CHECKING:
    from rushlight.inductor.compile_fx import Observer

ROUNDS = 30  # each round times every candidate once
BUDGET = 1.0  # seconds; no new round starts after this time
ADVANTAGE = 0.98  # another candidate wins only below this fraction of the first one's time


@dataclass(frozen=True)
class Candidate:
    """A way to run a template: its kind, and additional parameters."""

    label: str
    kind: str
    parameters: tuple[tuple[str, int], ...] = ()

    def apply(self, template: TemplateBuffer) -> None:
        """Make the template run this way."""
        template.kind = self.kind
        template.parameters = {**template.parameters, **dict(self.parameters)}


def tune(lowered: LoweredGraph, threads: int, observe: Observer) -> None:
    """Set the fastest candidate in each template, if all sizes are known."""
    if lowered.symbols:
        return
    buffers = {buffer.name: buffer for buffer in lowered.buffers}
    for template in [buffer for buffer in lowered.buffers if isinstance(buffer, TemplateBuffer)]:
        candidates = candidates_of(template)
        if len(candidates) > 1:
            chosen = choose(template, candidates, buffers, threads)
            observe("autotune", functools.partial(_report_text, template, *chosen))
            chosen[0].apply(template)


def candidates_of(template: TemplateBuffer) -> list[Candidate]:
    """Return the ways to run a template; the first one is what lowering chose."""
    if template.kind == "gemm" and template.operands["a"].strides[1] == 1:
        return _candidates_by_row_passes(template)
    if template.kind in ("direct_convolution", "winograd"):
        other = "winograd" if template.kind == "direct_convolution" else "direct_convolution"
        possible = template.parameters["packed_once"] and can_be_winograd(template.parameters["shape"])
        possible = possible and template.operands["input"].strides[1] == 1
        return [Candidate(kind, kind) for kind in (template.kind, other)[: 2 if possible else 1]]
    return [Candidate(template.kind, template.kind)]


def _candidates_by_row_passes(template: TemplateBuffer) -> list[Candidate]:
    chosen, depth = template.parameters.get("rows_at_once", 0), template.parameters["depth"]
    counts = [chosen or costs.core().kept // depth, costs.core().kept // 2 // depth]
    passes = dict.fromkeys([chosen, 0, *(rows for rows in counts if 0 < 2 * rows < template.rows)])
    return [Candidate(f"{rows or 'all'} rows at once", "gemm", (("rows_at_once", rows),)) for rows in passes]


def choose(
    template: TemplateBuffer, candidates: list[Candidate], buffers: dict[str, Buffer], threads: int
) -> tuple[Candidate, dict[str, float]]:
    """Return the winner that the cache names. If it names none, measure all candidates and store the fastest one in the cache.
    Also return the measured times."""
    path = _winner_path(template, buffers, threads)
    known = {candidate.label: candidate for candidate in candidates}
    stored = None if path is None else cache.read(path)
    found = known.get(stored.decode(errors="replace")) if stored is not None else None
    if found is not None:
        return found, {}
    times = measure(template, candidates, buffers, threads)
    first, best = candidates[0].label, min(times, key=times.get)
    winner = known[best if times[best] < ADVANTAGE * times[first] else first]
    if path is not None:
        cache.keep(path, winner.label.encode())
    return winner, times


def _winner_path(template: TemplateBuffer, buffers: dict[str, Buffer], threads: int) -> Path | None:
    """Return the cache file for a template's winner; None if the cache folder is unusable."""
    operands = [
        (name, buffers[operand.buffer].layout.dtype.name, operand.strides) for name, operand in template.operands.items()
    ]
    shape = (template.kind, template.layout.dtype.name, template.rows, template.columns, template.parameters, operands)
    key = cache.digest(repr(shape), str(threads), " ".join(FLAGS), headers_digest(), " ".join(instructions()))
    try:
        return cache.open_folder(cache.default_folder()) / f"{key}.choice"
    except OSError:
        return None


def measure(
    template: TemplateBuffer, candidates: list[Candidate], buffers: dict[str, Buffer], threads: int
) -> dict[str, float]:
    """Return the shortest time of each candidate's calls, in seconds. Candidates alternate, so that noise affects all alike."""
    trials = {candidate.label: _make_trial(template, candidate, buffers, threads) for candidate in candidates}
    for run in [*trials.values(), *trials.values()]:  # packing of constants happens in the second call
        run()
    best = dict.fromkeys(trials, float("inf"))
    end = time.perf_counter() + BUDGET
    for _ in range(ROUNDS):
        for label, run in trials.items():
            start = time.perf_counter()
            run()
            best[label] = min(best[label], time.perf_counter() - start)
        if time.perf_counter() > end:
            break
    return best


def _make_trial(
    template: TemplateBuffer, candidate: Candidate, buffers: dict[str, Buffer], threads: int
) -> Callable[[], tuple]:
    """Return a function that calls a program with only this template, on zeros."""
    alone = TemplateBuffer(
        template.name, template.layout, kind=template.kind, operands=template.operands, parameters=template.parameters,
        rows=template.rows, columns=template.columns, origin=template.origin,
    )  # fmt: skip
    candidate.apply(alone)
    fixed = ("b", "weight") if template.parameters.get("packed_once") else ()
    inputs, constants = [], []
    for name, operand in template.operands.items():
        layout = buffers[operand.buffer].layout
        if name in fixed:
            constants.append(ConstantBuffer(operand.buffer, layout, target=operand.buffer))
        elif operand.buffer not in [buffer.name for buffer in inputs]:
            inputs.append(InputBuffer(operand.buffer, layout))
    view = OutputView(alone.name, alone.layout.size, alone.layout.stride, 0)
    lowered = LoweredGraph([*inputs, *constants, alone], inputs, constants, [view])
    program = ProgramWriter(lowered, threads).write()
    values = {buffer.target: _zeros_like(buffer.layout) for buffer in constants}
    graph = CompiledGraph(
        plan_of(lowered, program), build(program.source), values, lambda *tensors: (), lambda: (lowered, program)
    )
    tensors = [_zeros_like(buffer.layout) for buffer in inputs]
    return lambda: graph(*tensors)


def _zeros_like(layout: FixedLayout) -> Tensor:
    length = 1 + sum((size - 1) * stride for size, stride in zip(layout.size, layout.stride, strict=True))
    storage = allocate(length * layout.dtype.itemsize)
    ctypes.memset(storage.data_ptr, 0, length * layout.dtype.itemsize)
    return wrap(TensorImpl(storage, layout.size, layout.stride, 0, layout.dtype, CPU, CPU_KEYS))


def _report_text(template: TemplateBuffer, winner: Candidate, times: dict[str, float]) -> str:
    measured = ", ".join(f"{label}: {seconds * 1e6:.1f} us" for label, seconds in times.items()) or "from the cache"
    return f"{template.name}, {template.kind} {template.rows} x {template.columns}: {winner.label} ({measured})"
