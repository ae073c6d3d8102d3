"""The rows of `benchmarks.archives` as a document: `python -m benchmarks.archives_report ROWS.json > archives.md`."""

from __future__ import annotations

import datetime
import json
import statistics
import sys
from pathlib import Path

from benchmarks.machine import processor


def report(rows: list[dict]) -> str:
    """Counts, the table, and what failed."""
    measured = [row for row in rows if "ratio" in row]
    lines = [
        "# TorchScript archives beside torch.jit", "",
        f"{processor()}, {datetime.date.today()}.",
        "Archives that PyTorch wrote (`python -m benchmarks.make_archives`), random weights, float32, batch 1, no gradients.",
        "Each package runs in a process of its own: medians of calls after a warm-up (`python -m benchmarks.archives`).", "",
    ]  # fmt: skip
    for threads in sorted({row["threads"] for row in measured}):
        lines += [*_summary([row for row in measured if row["threads"] == threads], threads), ""]
    lines += ["| archive | threads | Rushlight | torch.jit | ratio |", "|---|---|---|---|---|"]
    for row in sorted(measured, key=lambda row: (row["name"], row["threads"])):
        ours, theirs = row["ours"]["median"] * 1e3, row["torch"]["median"] * 1e3
        note = "" if row["agrees"] else " (results differ)"
        lines.append(f"| {row['name']} | {row['threads']} | {ours:.3f} ms | {theirs:.3f} ms | {row['ratio']:.2f}{note} |")
    failed = [row for row in rows if "ratio" not in row]
    errors = [(row, row["ours"].get("error") or row["torch"].get("error")) for row in failed]
    lines += [f"- {row['name']}, {row['threads']} threads: {error}" for row, error in errors]
    return "\n".join(lines) + "\n"


def _summary(rows: list[dict], threads: int) -> list[str]:
    ratios = [row["ratio"] for row in rows]
    above = [row for row in rows if row["ratio"] > 0.9]
    text = f"{threads} threads: {len(rows)} archives, median {statistics.median(ratios):.2f} of torch.jit's time, "
    slow = ", ".join(f"{row['name']} {row['ratio']:.2f}" for row in sorted(above, key=lambda row: -row["ratio"]))
    return [text + f"{len(above)} above 0.9{': ' + slow if slow else ''}."]


if __name__ == "__main__":
    print(report(json.loads(Path(sys.argv[1]).read_text())), end="")
