"""Outcomes become Markdown: one table of all workloads, then one per workload."""

from __future__ import annotations

from benchmarks.machine import ImportCost
from benchmarks.rounds import Outcome

# Ratios are to the first of these that was measured.
YARDSTICKS = ("torch", "rushlight")
NOTHING = "-"


def duration(seconds: float) -> str:
    """Three digits, in the unit that suits."""
    for unit, name in ((1.0, "s"), (1e-3, "ms"), (1e-6, "us")):
        if seconds >= unit:
            return f"{seconds / unit:.3g} {name}" if seconds / unit < 1000 else f"{seconds / unit:.0f} {name}"
    return f"{seconds * 1e9:.3g} ns"


def yardstick(outcomes: list[Outcome]) -> Outcome | None:
    """The outcome of one workload that its ratios refer to."""
    measured = {outcome.contender.name: outcome for outcome in outcomes if outcome.measurements}
    return next((measured[name] for name in YARDSTICKS if name in measured), None)


def call_time(outcome: Outcome) -> str:
    return duration(outcome.median) + (" disturbed" if outcome.disturbed else "")


def ratio(outcome: Outcome, base: Outcome | None) -> str:
    return f"{outcome.median / base.median:.2f}" if base is not None else NOTHING


def table(header: list[str], rows: list[list[str]]) -> list[str]:
    """A Markdown table, padded so that it reads well as plain text too."""
    widths = [max(len(row[column]) for row in [header, *rows]) for column in range(len(header))]

    def line(cells: list[str]) -> str:
        return "| " + " | ".join(cell.ljust(width) for cell, width in zip(cells, widths, strict=True)) + " |"

    return [line(header), line(["-" * width for width in widths]), *map(line, rows), ""]


def summary(results: list[list[Outcome]]) -> list[str]:
    """Workloads down, contenders across: the time of a call and its ratio to the yardstick."""
    titles = {outcome.contender.name: outcome.contender.title for outcomes in results for outcome in outcomes}
    rows = []
    for outcomes in results:
        base = yardstick(outcomes)
        cells = {
            outcome.contender.name: f"{call_time(outcome)} ({ratio(outcome, base)})"
            for outcome in outcomes
            if outcome.measurements
        }
        rows.append([outcomes[0].workload.title, *(cells.get(name, NOTHING) for name in titles)])
    return table(["workload", *titles.values()], rows)


def details(outcomes: list[Outcome]) -> list[str]:
    """One workload: all that was measured, per contender."""
    base = yardstick(outcomes)
    relative = f"of {base.contender.title}" if base is not None else "ratio"
    header = ["", "median", "best", relative, "first call, empty cache", "warm cache", "difference", "cosine", "memory"]
    rows = [[outcome.contender.title, *figures(outcome, base)] for outcome in outcomes]
    return [f"### {outcomes[0].workload.title}", "", *table(header, rows)]


def figures(outcome: Outcome, base: Outcome | None) -> list[str]:
    if not outcome.measurements:
        return [outcome.problem, *[NOTHING] * 7]
    empty = warm = NOTHING
    if outcome.contender.compiles:
        empty = duration(outcome.first_with_empty_cache)
        warm = duration(outcome.first_with_warm_cache) if outcome.first_with_warm_cache is not None else NOTHING
    return [
        call_time(outcome),
        duration(outcome.best),
        ratio(outcome, base),
        empty,
        warm,
        f"{outcome.difference:.1e}{'' if outcome.agrees else ' DISAGREES'}",
        f"{outcome.cosine:.7f}",
        f"{outcome.memory / 1e6:.0f} MB",
    ]


def report(
    results: list[list[Outcome]],
    machine: list[tuple[str, str]],
    imports: list[ImportCost],
    operators: list[str] | None = None,
) -> str:
    """The whole page; `operators` is the part on eager operators."""
    lines = [
        "# Measured",
        "",
        "Made by `python -m benchmarks`. Every figure comes from processes of its own, one after the other, contenders",
        "taking turns: the time of a call is the median of the medians of those rounds in which no other process was",
        "busy (disturbed: there was no such round). Ratios, in parentheses, are to torch eager where it is installed;",
        "below 1 is faster. Inputs and weights are the same for all, in float32; difference and cosine are against a",
        "float64 reference in NumPy. The first call includes compiling. Absolute figures move with the machine.",
        "",
        *table(["", ""], [list(row) for row in machine]),
        *summary(results),
        "![The same as a chart](results.png)",
        "",
    ]
    for outcomes in results:
        lines += details(outcomes)
    lines += operators or []
    costs = [[cost.library, duration(cost.seconds), f"{cost.memory / 1e6:.0f} MB"] for cost in imports]
    lines += ["### Import in a new process", "", *table(["", "time", "memory"], costs)]
    return "\n".join(lines)
