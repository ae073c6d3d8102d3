"""Why an operation does not end: which ranks have not joined it, and what they do instead.

A wait looks here at intervals, and asks the other ranks when its time is up.
"""

from __future__ import annotations

from collections.abc import Sequence

from rushlight.distributed.engine.errors import DistBackendError
from rushlight.distributed.engine.operation import Operation, Report
from rushlight.distributed.engine.world import World

ANSWERING = 3.0  # seconds in which the background thread of a rank that runs has answered


def missing_for_good(world: World, operation: Operation, ranks: Sequence[int], collective: bool) -> DistBackendError | None:
    """Return an error if a rank can no longer join an operation: its process has ended, or it left the program before."""
    reasons = [f"rank {rank}: its process ({world.peers[rank].pid}) has ended" for rank in world.ended(ranks)]
    for rank in ranks:
        if rank in world.notes.left and collective and world.notes.left[rank].get(operation.group, 0) < operation.number:
            reasons.append(f"rank {rank} has left the program")
    if not reasons:
        return None
    return _error(world, f"rank {world.rank} waits in {operation} for ranks that will not join it", reasons)


def timed_out(world: World, operation: Operation, ranks: Sequence[int], seconds: float) -> DistBackendError:
    """Return the error of an operation that did not end in `seconds`, after asking the others what they do."""
    others = [rank for rank in ranks if rank != world.rank]
    answers = world.notes.ask(others, ANSWERING)
    reasons = [_state(world, operation, rank, answers.get(rank)) for rank in others]
    return _error(world, f"rank {world.rank} waited {seconds:g} s in {operation}, which timed out", reasons)


def _error(world: World, what: str, reasons: list[str]) -> DistBackendError:
    world.failed = True
    return DistBackendError("\n  ".join([f"{what}:", *reasons]))


def _state(world: World, operation: Operation, rank: int, report: Report | None) -> str:
    name, peer = f"rank {rank}", world.peers[rank]
    if report is None:
        if world.ended([rank]):
            return f"{name}: its process ({peer.pid}) has ended"
        if rank in world.notes.left:
            return f"{name} has left the program"
        return f"{name} does not answer: process {peer.pid} on {peer.host} is stopped, or computes without a pause"
    place = f", at {report.place}" if report.place else ""
    if not report.waits:
        last = f"; the last it began was {report.last}" if report.last else ""
        return f"{name} is not waiting in an operation{last}{place}"
    same = any(text.partition(" (")[0] == operation.label for text in report.waits)
    return f"{name} waits in {'the same' if same else '; '.join(report.waits)}{place}"
