"""Layers with weights in few bits: `python -m benchmarks.blocks` writes blocks.md and blocks.png.

A chain of square layers, whose weights together are larger than the caches, runs compiled on 1 to 512 rows; the figure is the
time of one layer. Formats take turns, and each figure is the median of three turns. The limit of few rows is the time in which
the weights' bytes can be read from memory, that of many rows what the processor multiplies.
"""

from __future__ import annotations

import argparse
import datetime
import statistics
import time
from collections.abc import Callable
from pathlib import Path

import rushlight as torch
from benchmarks.machine import processor
from rushlight.nn import functional as F
from rushlight.quantized.blocks import BlockTensor

HERE = Path(__file__).resolve().parent
FORMATS = ("q4_0", "q4_1", "q5_0", "q5_1", "q8_0", "q4_k", "q5_k", "q6_k", "int4_128")
ROWS = (1, 4, 16, 64, 512)
WIDTH = 4096  # a layer has as many inputs and outputs
TOGETHER = 128 << 20  # a chain's weights have at least so many bytes
TURNS, SHORTEST = 3, 0.3  # a turn takes at least so many seconds


def weight_bytes(weight: torch.Tensor) -> int:
    """Bytes that hold it."""
    held = weight.blocks if isinstance(weight, BlockTensor) else weight
    return held.numel() * held.element_size()


def chain(weight: torch.Tensor) -> tuple[Callable[[torch.Tensor], torch.Tensor], int]:
    """Layers with copies of a weight, compiled, and how many."""
    count = -(-TOGETHER // weight_bytes(weight))
    weights = [weight.clone() for _ in range(count)]

    def layers(x: torch.Tensor) -> torch.Tensor:
        for each in weights:
            x = F.linear(x, each)
        return x

    return torch.compile(layers, fullgraph=True), count


def seconds(call: Callable[[], object]) -> float:
    """The least time of a call among those of a turn."""
    found, begin = [], time.perf_counter()
    while not found or time.perf_counter() - begin < SHORTEST:
        start = time.perf_counter()
        call()
        found.append(time.perf_counter() - start)
    return min(found)


def reading() -> float:
    """Bytes a second that all threads read from memory."""
    held = torch.ones(TOGETHER)
    total = torch.compile(lambda x: x.sum())
    total(held)
    return held.numel() * 4 / seconds(lambda: total(held))


@torch.no_grad()
def measure() -> tuple[dict[str, dict[int, float]], dict[str, float], float]:
    """Seconds of a layer by format and rows, bytes of an element by format, bytes read a second."""
    dense = torch.randn(WIDTH, WIDTH) / WIDTH**0.5
    kinds = {"float32": dense} | {name: BlockTensor.quantize(dense, name) for name in FORMATS}
    inputs = {rows: torch.randn(rows, WIDTH) for rows in ROWS}
    times: dict[str, dict[int, list[float]]] = {name: {rows: [] for rows in ROWS} for name in kinds}
    bandwidths = []
    chains = {name: chain(weight) for name, weight in kinds.items()}
    for _ in range(TURNS):
        bandwidths.append(reading())
        for name, (layers, count) in chains.items():
            for rows, x in inputs.items():
                layers(x)
                times[name][rows].append(seconds(lambda layers=layers, x=x: layers(x)) / count)
    medians = {name: {rows: statistics.median(each) for rows, each in found.items()} for name, found in times.items()}
    return medians, {name: weight_bytes(each) / WIDTH**2 for name, each in kinds.items()}, statistics.median(bandwidths)


def table(times: dict[str, dict[int, float]], sizes: dict[str, float], bandwidth: float) -> str:
    """Markdown."""
    lines = [
        f"# A layer of {WIDTH} x {WIDTH} with weights in few bits",
        "",
        f"{processor()}, {torch.get_num_threads()} threads, {datetime.date.today()}.",
        f"Memory is read at {bandwidth / 1e9:.1f} GB/s.",
        "Milliseconds; in brackets the part of float32's time. The last column is what one row reaches of the memory's rate.",
        "",
        "| weights | bits | " + " | ".join(f"{rows} row{'s' * (rows > 1)}" for rows in ROWS) + " | of the memory's rate |",
        "|" + "---|" * (len(ROWS) + 3),
    ]
    for name, found in times.items():
        cells = [f"{found[rows] * 1e3:.2f} ({found[rows] / times['float32'][rows]:.2f})" for rows in ROWS]
        share = sizes[name] * WIDTH**2 / bandwidth / found[1]
        lines.append(f"| {name} | {sizes[name] * 8:.2f} | {' | '.join(cells)} | {share:.0%} |")
    return "\n".join(lines) + "\n"


def draw(times: dict[str, dict[int, float]], sizes: dict[str, float], bandwidth: float, path: Path) -> None:
    """Time over rows, with the time to read the weights as dots at one row."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(figsize=(8, 5))
    for name, found in times.items():
        (line,) = axes.plot(ROWS, [found[rows] * 1e3 for rows in ROWS], marker="o", markersize=3, label=name)
        axes.plot(1, sizes[name] * WIDTH**2 / bandwidth * 1e3, marker="_", markersize=14, color=line.get_color())
    axes.set(xscale="log", yscale="log", xlabel="rows", ylabel="ms", xticks=ROWS)
    axes.set_xticklabels(map(str, ROWS))
    axes.set_title(f"A layer of {WIDTH} x {WIDTH}; bars at one row: reading the weights from memory", fontsize=10)
    axes.legend(fontsize=8)
    figure.tight_layout()
    figure.savefig(path, dpi=120)


def main() -> None:
    """Measure and write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--threads", type=int, default=2)
    torch.set_num_threads(parser.parse_args().threads)
    found = measure()
    text = table(*found)
    (HERE / "blocks.md").write_text(text)
    draw(*found, HERE / "blocks.png")
    print(text)


if __name__ == "__main__":
    main()
