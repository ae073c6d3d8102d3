"""What the ways to run a template cost: a small model of one core, by which lowering chooses among them.

In: sizes; of an open size its example. Out: nanoseconds, of which only the ratios matter. The rates were fitted to times
of convolutions and products on one core with AVX-512 (AMD Zen 5) and one with AVX2 (AMD Zen 3): of 52 convolutions of 3 x 3
on the first they put the faster way first, or one that takes a tenth longer at most, in all but one (1024 channels on 7 x 7
pixels); of 20 on the second in all. `mode="max-autotune"` asks the machine itself instead (`autotune.py`).
"""

from __future__ import annotations

import functools
from dataclasses import dataclass, replace

import rushlight._C as _C
from rushlight.core.symbolic import SymInt
from rushlight.inductor.sizes import Size, hint

LONGEST_TURNED = 4096  # depth of a product that is calculated in one part: `depth_block` of gemm.h
THIN_OUTPUTS, THIN_DEPTH = 4, 4096  # of convolutions: `thin_outputs` and `thin_depth` of image.h
FEWEST_BLOCKS, FEWEST_OUTPUTS, LARGEST_WEIGHT = 32, 16, 1 << 19  # of gradients of weights by Winograd's algorithm
MANY_CHANNELS = 32  # from which on a direct convolution is slower where they do not lie side by side,
CHANNELS_FIRST = 0.3  # by this part of its time, at least
FEWER = 0.7  # the part of the traffic that passes of rows must stay below to be preferred to all rows at once


@dataclass(frozen=True)
class Core:
    """What one core does in a nanosecond, in operations or bytes, and how much it holds, in floats, bytes or columns."""

    panel: int  # columns of a product are calculated this many at a time: `tile_columns` of pack.h
    flops: float  # floating-point operations of a product
    cached: float  # bytes that move to or from the second-level cache
    near: float  # bytes of weights that come from the third-level cache
    streamed: float  # bytes of weights that come from further away
    transposed: float  # bytes of a copy that changes the order of the elements
    turned: float  # bytes that are packed with their columns as rows, out of a cache into another
    transformed: float  # bytes of weights that are transformed for Winograd's algorithm
    second_level: int  # floats in a core's cache
    nearby: int  # bytes of weights that other layers' may leave in the third-level cache
    strip: int  # pixels of a row that a direct convolution calculates in the time that fewer take
    large_result: int = 1 << 16  # floats of a product, from which on a left operand by columns is packed
    stays: int = 1 << 24  # bytes of a result from which on it does not stay in the caches until it is read

    @property
    def kept(self) -> int:
        """Floats of a product's rows that stay in its cache while many panels pass."""
        return self.second_level // 2


AVX512 = Core(
    panel=32, flops=225.0, cached=40.0, near=60.0, streamed=30.0, transposed=10.0, turned=50.0, transformed=4.0,
    second_level=1 << 18, nearby=1 << 22, strip=1,
)  # fmt: skip
AVX2 = Core(
    panel=16, flops=92.0, cached=20.0, near=30.0, streamed=15.0, transposed=5.0, turned=20.0, transformed=2.0,
    second_level=1 << 17, nearby=1 << 20, strip=6,
)  # fmt: skip
NARROW = replace(AVX2, panel=8, flops=46.0)  # vectors of four floats; not measured


@functools.cache
def core() -> Core:
    """The kind of core that code is compiled for."""
    features = _C.cpu_features()
    return AVX512 if "avx512f" in features else AVX2 if "avx2" in features else NARROW


def multiplies_pairs() -> bool:
    """Whether the processor multiplies bfloat16 in pairs (AVX-512 BF16), so that a product takes half of the instructions."""
    return {"avx512f", "avx512_bf16"} <= set(_C.cpu_features())


def passes(rows: Size | SymInt, columns: Size | SymInt, depth: Size | SymInt) -> dict[str, int]:
    """`rows_at_once`, the number of rows of a product that pass over all panels together, where that should not be all.

    All at once, the panels are read once and rows that don't fit into the cache once per panel. In passes, the rows are read
    once and the panels once per pass.
    """
    rows, columns, depth = hint(rows), hint(columns), hint(depth)
    if (rows + 2 * core().panel) * depth <= core().second_level or depth > core().kept:
        return {}
    panels, times = -(-columns // core().panel), -(-rows // (core().kept // depth))
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
    turned = core().turned
    return 2 * (4 * rows * (depth + columns) / turned + idle / core().flops) < 4 * columns * depth / turned


def packs_columns(rows: Size, columns: Size) -> bool:
    """Whether a product whose left operand lies by columns had better pack its rows, too, as `gemm_columns` does.

    Where they lie, elements of a row are a cache line each, which come anew with every panel. Of 75 products of gradients,
    192 to 1024 rows and 32 to 512 columns on AVX2, packing took 0.57 to 0.97 of the time in nearly all larger than this, and
    up to 1.3 times as long in smaller ones.
    """
    return isinstance(rows, int) and isinstance(columns, int) and rows * columns >= core().large_result


def direct_convolution(rows: int, width: int, taps: int, channels: int, outputs: int) -> float:
    """The convolution as one product of its pixels, which are `rows` rows of `width`; to a few output channels, `is_thin` in
    image.h, its lanes go along the channels of the input."""
    thin = outputs <= THIN_OUTPUTS and channels % (core().panel // 2) == 0 and taps * channels <= THIN_DEPTH
    pixels = rows * (width if thin else -(-width // core().strip) * core().strip)
    work = 2 * pixels * taps * channels * (2 * outputs if thin else _whole_panels(outputs))
    return max(work / core().flops, _reading(4 * taps * channels * outputs))


def winograd(blocks: int, channels: int, outputs: int) -> float:
    """Winograd's F(4 x 4, 3 x 3): 36 products with a row per block, on transformed blocks and weights."""
    work = 36 * 2 * blocks * channels * _whole_panels(outputs)
    moved, weights = 36 * 4 * 2 * blocks * (channels + outputs), 36 * 4 * channels * outputs
    return max(work / core().flops, _reading(weights)) + moved / core().cached


def winograd_packing(channels: int, outputs: int) -> float:
    """Transforming weights for it, beyond what a direct convolution takes to bring its own into panels."""
    return 36 * 4 * channels * _whole_panels(outputs) / core().transformed


def winograd_weight(images: int, height: int, width: int, channels: int, outputs: int) -> bool:
    """Whether Winograd's F(3 x 3, 4 x 4) gives the gradient of a weight sooner than the plain sum over so many pixels.

    The sums of its 36 products take time of their own, for which there have to be blocks enough, and memory; blocks should
    cover few pixels beyond the images. Of 22 shapes on AVX2 it took 0.32 to 0.82 of the time in all 17 that this takes, and
    up to 2.5 times as long in others.
    """
    blocks = images * -(-height // 4) * -(-width // 4)
    known = channels >= core().panel and outputs >= FEWEST_OUTPUTS and channels * outputs <= LARGEST_WEIGHT
    return known and blocks >= FEWEST_BLOCKS and 8 * blocks <= images * height * width


def reordering(elements: int) -> float:
    """A copy of so many floats into another order."""
    return 2 * 4 * elements / core().transposed


def _reading(weights: int) -> float:
    return weights / (core().near if weights <= core().nearby else core().streamed)


def interleaves(outputs: int, places: int) -> bool:
    """Whether a transposed convolution of few channels had better calculate its `places` between two inputs side by side.

    By itself each of them fills its panels badly; side by side they share them, but have to be brought into order after."""
    return 2 * _whole_panels(outputs * places) < places * _whole_panels(outputs)


def _whole_panels(columns: int) -> int:
    panel = core().panel
    return -(-columns // panel) * panel
