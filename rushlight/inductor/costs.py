"""What the ways to run a template cost: a small model of one core, by which lowering chooses among them.

In: sizes; of an open size its example. Out: nanoseconds, of which only the ratios matter. The rates were fitted to times
of convolutions and products on one core with AVX-512: of 52 convolutions of 3 x 3 they put the faster way first, or one that
takes a tenth longer at most, in all but one (1024 channels on 7 x 7 pixels). `mode="max-autotune"` asks the machine itself
instead (`autotune.py`).
"""

from __future__ import annotations

from rushlight.core.symbolic import SymInt
from rushlight.inductor.sizes import Size, hint

FLOPS = 225.0  # floating-point operations of a product, per nanosecond
CACHED = 40.0  # bytes that move to or from the second-level cache, per nanosecond
NEAR = 60.0  # bytes of weights that come from the third-level cache, per nanosecond
STREAMED = 30.0  # bytes of weights that come from further away, per nanosecond
NEARBY = 1 << 22  # bytes of weights that other layers' may leave in the third-level cache
TRANSPOSED = 10.0  # bytes of a copy that changes the order of the elements, per nanosecond
TURNED = 50.0  # bytes that are packed with their columns as rows, per nanosecond, out of a cache into another
LONGEST_TURNED = 4096  # depth of a product that is calculated in one part: `depth_block` of gemm.h
TRANSFORMED = 4.0  # bytes of weights that are transformed for Winograd's algorithm, per nanosecond
PANEL = 32  # columns of a product are calculated this many at a time
SECOND_LEVEL = 1 << 18  # floats in a core's cache
KEPT = 1 << 17  # floats of a product's rows that stay there while many panels pass
FEWER = 0.7  # the part of the traffic that passes of rows must stay below to be preferred to all rows at once


def passes(rows: Size | SymInt, columns: Size | SymInt, depth: Size | SymInt) -> dict[str, int]:
    """`rows_at_once`, the number of rows of a product that pass over all panels together, where that should not be all.

    All at once, the panels are read once and rows that don't fit into the cache once per panel. In passes, the rows are read
    once and the panels once per pass.
    """
    rows, columns, depth = hint(rows), hint(columns), hint(depth)
    if (rows + 2 * PANEL) * depth <= SECOND_LEVEL or depth > KEPT:
        return {}
    panels, times = -(-columns // PANEL), -(-rows // (KEPT // depth))
    together = panels * rows * depth + columns * depth
    apart = rows * depth + times * columns * depth
    return {"rows_at_once": -(-rows // times)} if apart < FEWER * together else {}


def turned(rows: Size, columns: Size, depth: Size) -> bool:
    """Whether a product whose right operand lies by columns had better be calculated as its own transposed.

    Then the rows are packed and the results turned, instead of packing the columns; but rows fill whole panels.
    """
    if not (isinstance(rows, int) and isinstance(columns, int) and isinstance(depth, int)) or depth > LONGEST_TURNED:
        return False
    idle = 2 * (_whole_panels(rows) - rows) * columns * depth
    return 2 * (4 * rows * (depth + columns) / TURNED + idle / FLOPS) < 4 * columns * depth / TURNED


def direct_convolution(pixels: int, taps: int, channels: int, outputs: int) -> float:
    """The convolution as one product of its pixels."""
    work = 2 * pixels * taps * channels * _whole_panels(outputs)
    return max(work / FLOPS, _reading(4 * taps * channels * outputs))


def winograd(blocks: int, channels: int, outputs: int) -> float:
    """Winograd's F(4 x 4, 3 x 3): 36 products with a row per block, on transformed blocks and weights."""
    work = 36 * 2 * blocks * channels * _whole_panels(outputs)
    moved, weights = 36 * 4 * 2 * blocks * (channels + outputs), 36 * 4 * channels * outputs
    return max(work / FLOPS, _reading(weights)) + moved / CACHED


def winograd_packing(channels: int, outputs: int) -> float:
    """Transforming weights for it, beyond what a direct convolution takes to bring its own into panels."""
    return 36 * 4 * channels * _whole_panels(outputs) / TRANSFORMED


def reordering(elements: int) -> float:
    """A copy of so many floats into another order."""
    return 2 * 4 * elements / TRANSPOSED


def _reading(weights: int) -> float:
    return weights / (NEAR if weights <= NEARBY else STREAMED)


def interleaves(outputs: int, places: int) -> bool:
    """Whether a transposed convolution of few channels had better calculate its `places` between two inputs side by side.

    By itself each of them fills its panels badly; side by side they share them, but have to be brought into order after."""
    return 2 * _whole_panels(outputs * places) < places * _whole_panels(outputs)


def _whole_panels(columns: int) -> int:
    return -(-columns // PANEL) * PANEL
