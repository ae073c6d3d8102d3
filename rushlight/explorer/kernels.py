"""The kernels of a graph and its memory, as the page shows them.

In: a piece that inductor compiled, and what its kernels took. Out: a row for each kernel, blocks of memory, and which
lines of C++ are each kernel's.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from rushlight.compiler.kernel_profile import Peaks, share_of
from rushlight.explorer import places
from rushlight.explorer.assembly import assembly_of
from rushlight.explorer.places import Files
from rushlight.explorer.units import Piece
from rushlight.inductor.memory import ArenaPlan, SlotPlan
from rushlight.inductor.profiling import KernelTimes
from rushlight.inductor.sizes import evaluate


def kernels_of(piece: Piece, times: Sequence[KernelTimes], peaks: Peaks | None, files: Files, prefix: str) -> list[dict]:
    """A row for each call of a kernel, in order. `prefix` makes the names differ from those of other graphs of a unit."""
    calls = piece.program.calls
    code = piece.stages.get("code")
    lines = places.kernel_lines(code.text, piece.namespace) if code is not None else {}
    assembly = assembly_of(Path(piece.library.path), piece.namespace) if piece.library is not None else {}
    rows = []
    for number, (name, (group, called, _)) in enumerate(zip(_names(piece, prefix), calls, strict=True)):
        spent = times[number] if number < len(times) else KernelTimes(called, (), ())
        share = share_of(spent, peaks) if peaks is not None else 0.0
        rows.append({
            "name": name, "operators": list(group.origins()), "graph": prefix or "graph",
            "places": places.places_of_lines(group.lines(), files),
            "calls": spent.calls, "seconds": spent.nanoseconds * 1e-9, "bytes": spent.bytes, "flops": spent.flops,
            "share": share,
            "code": [code.id, *lines[called]] if called in lines else None,
            "buffers": [member.name for member in group.members], "apart": [group.apart] if group.apart else [],
            "assembly": assembly.get(called, ""),
        })  # fmt: skip
    return rows


def kernels_of_nodes(piece: Piece, prefix: str) -> dict[str, str]:
    """The kernel that calculates each node of a piece's graph, by the node's name."""
    found: dict[str, str] = {}
    for name, (group, _, _) in zip(_names(piece, prefix), piece.program.calls, strict=True):
        for node in group.origins():
            found.setdefault(node, name)
    return found


def _names(piece: Piece, prefix: str) -> Iterator[str]:
    """The names of a piece's calls: that of the kernel, which may be called several times."""
    met: Counter[str] = Counter()
    for _, called, _ in piece.program.calls:
        met[called] += 1
        text = called if met[called] == 1 else f"{called} #{met[called]}"
        yield f"{prefix} {text}".strip()


def note_code(piece: Piece, files: Files) -> None:
    """Tell the stages of a piece where their lines come from, as far as the program knows more than the texts."""
    named = {
        member.name: places.places_of_lines(member.lines, files) for group in piece.program.groups for member in group.members
    }
    if "code" in piece.stages and not piece.namespace:
        calls = [(called, places.places_of_lines(group.lines(), files)) for group, called, _ in piece.program.calls]
        piece.stages["code"].places = places.blocks_of_code(piece.stages["code"].text, calls)
    if "memory" in piece.stages:
        piece.stages["memory"].places = places.blocks_of_names(piece.stages["memory"].text, named)


def memory_of(piece: Piece, graph: str) -> dict[str, Any] | None:
    """The blocks of a piece's arena; None where nothing lives between kernels. Sizes that differ from call to call are those of
    the first call."""
    arena, hints = piece.program.arena, piece.lowered.symbols.hints
    blocks: list[list] = []
    end = 0
    if isinstance(arena, ArenaPlan):
        blocks = [[b.name, b.nbytes, arena.offsets[b.name], b.first, b.last] for b in arena.lifetimes]
        end = arena.nbytes
    elif isinstance(arena, SlotPlan):
        for slot in arena.slots:
            sizes = {block.name: evaluate(block.nbytes, hints) for block in slot.blocks}
            blocks += [[block.name, sizes[block.name], end, block.first, block.last] for block in slot.blocks]
            end += max(sizes.values())
    if not blocks:
        return None
    return {"graph": graph, "arena": end, "unshared": sum(block[1] for block in blocks), "blocks": blocks}
