"""Outcomes become a bar chart, one panel per workload."""

from __future__ import annotations

from pathlib import Path

import matplotlib

matplotlib.use("Agg")

from matplotlib import pyplot
from matplotlib.axes import Axes

from benchmarks.report import duration
from benchmarks.rounds import Outcome

COLUMNS = 2
OWN_COLOR, PEER_COLOR = "#c8501e", "#9aa5b1"


def draw_panel(axes: Axes, outcomes: list[Outcome]) -> None:
    """Horizontal bars, the first contender on top."""
    measured = [outcome for outcome in outcomes if outcome.measurements][::-1]
    colors = [OWN_COLOR if outcome.contender.packages == ("rushlight",) else PEER_COLOR for outcome in measured]
    bars = axes.barh([outcome.contender.title for outcome in measured], [o.median for o in measured], color=colors)
    axes.bar_label(bars, [duration(outcome.median) for outcome in measured], padding=3, fontsize=8)
    axes.set_title(outcomes[0].workload.title, fontsize=10)
    axes.margins(x=0.2)
    axes.set_xticks([])
    axes.tick_params(axis="y", labelsize=8, length=0)
    for side in ("top", "right", "bottom"):
        axes.spines[side].set_visible(False)


def draw(results: list[list[Outcome]], path: Path) -> None:
    """Write the chart as PNG; shorter bars are faster."""
    rows = -(-len(results) // COLUMNS)
    figure, panels = pyplot.subplots(rows, COLUMNS, figsize=(11, 2.4 * rows), squeeze=False)
    for axes in panels.flat:
        axes.set_visible(False)
    for axes, outcomes in zip(panels.flat, results, strict=False):
        axes.set_visible(True)
        draw_panel(axes, outcomes)
    figure.suptitle("Time of one call, shorter is faster", fontsize=11)
    figure.tight_layout()
    figure.savefig(path, dpi=120)
