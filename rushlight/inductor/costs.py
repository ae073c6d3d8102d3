"""Cost model: estimates the time of each way to run a template on one core, for lowering to choose among them.

In: sizes; open sizes by their hint. Out: nanoseconds; only ratios matter. The rates were fitted to times of convolutions and
products on one core with AVX-512 (AMD Zen 5) and one with AVX2 (AMD Zen 3). Of 52 convolutions of 3 x 3 on the first, the model
ranked the fastest way first, or one at most a tenth slower, in all but one (1024 channels on 7 x 7 pixels); of 20 on the
second, in all. `mode="max-autotune"` measures instead (`autotune.py`).
"""

from __future__ import annotations

import functools
from dataclasses import dataclass, replace

import rushlight._C as _C
from rushlight.core.symbolic import SymInt
from rushlight.inductor.processor import instructions
from rushlight.inductor.sizes import Size, hint

MAX_TRANSPOSED_DEPTH = 4096  # deeper products are computed in several parts: `depth_block` of gemm.h
THIN_OUTPUTS, THIN_DEPTH = 4, 4096  # bounds of thin convolutions: `max_thin_outputs` and `max_thin_depth` of image.h
MIN_BLOCKS, MIN_OUTPUTS, MAX_WEIGHT = 32, 16, 1 << 19  # bounds for weight gradients by Winograd's algorithm
MANY_CHANNELS = 32  # direct convolutions with at least this many channels are slower in channels-first memory
CHANNELS_FIRST = 0.3  # the fraction of its time by which such a convolution is slower
MAX_TRAFFIC_RATIO = 0.7  # rows are processed in several passes only if that reduces memory traffic to below this fraction


@dataclass(frozen=True)
class Core:
    """Throughput of one core per nanosecond, in operations or bytes, and its capacities, in floats, bytes or columns."""

    panel: int  # columns in a panel of a product: `tile_columns` of pack.h
    flops: float  # floating-point operations of a product
    cached: float  # bytes to or from the L2 cache
    near: float  # bytes of weights read from the L3 cache
    streamed: float  # bytes of weights read from memory
    transposed: float  # bytes of a copy that permutes dimensions
    turned: float  # bytes packed with transposition, cache to cache
    transformed: float  # bytes of weights transformed for Winograd's algorithm
    second_level: int  # floats in the L2 cache
    nearby: int  # bytes of weights that stay in the L3 cache between calls
    strip: int  # a direct convolution takes as long as if each row's width were rounded up to a multiple of this many pixels
    large_result: int = 1 << 16  # floats of a result from which a column-major left operand is packed
    stays: int = 1 << 24  # bytes of a result that is too large to stay in the caches

    @property
    def kept(self) -> int:
        """Floats of a product's rows that stay in the L2 cache while panels stream through."""
        return self.second_level // 2


AVX512 = Core(
    panel=32, flops=225.0, cached=40.0, near=60.0, streamed=30.0, transposed=10.0, turned=50.0, transformed=4.0,
    second_level=1 << 18, nearby=1 << 22, strip=1,
)  # fmt: skip
AVX2 = Core(
    panel=16, flops=92.0, cached=20.0, near=30.0, streamed=15.0, transposed=5.0, turned=20.0, transformed=2.0,
    second_level=1 << 17, nearby=1 << 20, strip=6,
)  # fmt: skip
NARROW = replace(AVX2, panel=8, flops=46.0)  # 4-float vectors; not measured


@functools.cache
def core() -> Core:
    """Return the kind of core that code is compiled for."""
    features = _C.cpu_features()
    return AVX512 if "avx512f" in features else AVX2 if "avx2" in features else NARROW


def multiplies_pairs() -> bool:
    """Return whether the processor has bfloat16 dot products of pairs (AVX-512 BF16), which halve a product's instructions."""
    return {"avx512f", "avx512_bf16"} <= set(_C.cpu_features())


def multiplies_in_tiles() -> bool:
    """Return whether the processor has tile registers for bfloat16 (AMX)."""
    return multiplies_pairs() and {"amx_tile", "amx_bf16"} <= set(instructions())


def passes(rows: Size | SymInt, columns: Size | SymInt, depth: Size | SymInt) -> dict[str, int]:
    """Return `rows_at_once`, the number of rows that pass over all panels together, if that should not be all rows.

    In a single pass, panels are read once, and rows beyond the cache's capacity once per panel. In several passes, rows are
    read once and panels once per pass.
    """
    rows, columns, depth = hint(rows), hint(columns), hint(depth)
    if (rows + 2 * core().panel) * depth <= core().second_level or depth > core().kept:
        return {}
    panels, times = -(-columns // core().panel), -(-rows // (core().kept // depth))
    together = panels * rows * depth + columns * depth
    apart = rows * depth + times * columns * depth
    return {"rows_at_once": -(-rows // times)} if apart < MAX_TRAFFIC_RATIO * together else {}


def turned(rows: Size, columns: Size, depth: Size) -> bool:
    """Return whether a product with a column-major right operand is faster as its transpose.

    The transpose packs rows and transposes results instead of packing columns, but pads rows to whole panels.
    """
    if not (isinstance(rows, int) and isinstance(columns, int) and isinstance(depth, int)) or depth > MAX_TRANSPOSED_DEPTH:
        return False
    idle = 2 * (_round_up_to_panels(rows) - rows) * columns * depth
    turned = core().turned
    return 2 * (4 * rows * (depth + columns) / turned + idle / core().flops) < 4 * columns * depth / turned


def packs_columns(rows: Size, columns: Size) -> bool:
    """Return whether a product with a column-major left operand should pack its rows, as `gemm_columns` does.

    Unpacked, each element of a row is on its own cache line, which every panel loads again. Of 75 products of gradients with
    192 to 1024 rows and 32 to 512 columns on AVX2, packing took 0.57 to 0.97 of the time in nearly all above this bound, and up
    to 1.3 times as long below it.
    """
    return isinstance(rows, int) and isinstance(columns, int) and rows * columns >= core().large_result


def direct_convolution(rows: int, width: int, taps: int, channels: int, outputs: int) -> float:
    """Estimate a convolution as one product of `rows` rows of `width` pixels. With few output channels (`is_thin` in image.h)
    its vector lanes go along the input channels."""
    thin = outputs <= THIN_OUTPUTS and channels % (core().panel // 2) == 0 and taps * channels <= THIN_DEPTH
    pixels = rows * (width if thin else -(-width // core().strip) * core().strip)
    work = 2 * pixels * taps * channels * (2 * outputs if thin else _round_up_to_panels(outputs))
    return max(work / core().flops, _time_to_read(4 * taps * channels * outputs))


def winograd(blocks: int, channels: int, outputs: int) -> float:
    """Estimate Winograd's F(4 x 4, 3 x 3): 36 products with a row per block, plus the transforms of blocks and weights."""
    work = 36 * 2 * blocks * channels * _round_up_to_panels(outputs)
    moved, weights = 36 * 4 * 2 * blocks * (channels + outputs), 36 * 4 * channels * outputs
    return max(work / core().flops, _time_to_read(weights)) + moved / core().cached


def winograd_packing(channels: int, outputs: int) -> float:
    """Estimate the additional time to transform weights for Winograd's algorithm, compared to packing them for a direct
    convolution."""
    return 36 * 4 * channels * _round_up_to_panels(outputs) / core().transformed


def winograd_weight(images: int, height: int, width: int, channels: int, outputs: int) -> bool:
    """Return whether Winograd's F(3 x 3, 4 x 4) computes a weight's gradient faster than the plain sum over pixels.

    Its 36 products have fixed costs in time and memory, so it needs many blocks, which should not overlap the images' borders
    much. Of 22 shapes on AVX2 it took 0.32 to 0.82 of the time in all 17 accepted here, and up to 2.5 times as long in others.
    """
    blocks = images * -(-height // 4) * -(-width // 4)
    known = channels >= core().panel and outputs >= MIN_OUTPUTS and channels * outputs <= MAX_WEIGHT
    return known and blocks >= MIN_BLOCKS and 8 * blocks <= images * height * width


def reordering(elements: int) -> float:
    """Estimate the time to permute this many floats."""
    return 2 * 4 * elements / core().transposed


def _time_to_read(weights: int) -> float:
    return weights / (core().near if weights <= core().nearby else core().streamed)


def interleaves(outputs: int, positions: int) -> bool:
    """Return whether a transposed convolution of few channels should compute its `positions` between two inputs interleaved.

    Alone, each place fills its panels badly. Interleaved they share panels, but the result must be reordered.
    """
    return 2 * _round_up_to_panels(outputs * positions) < positions * _round_up_to_panels(outputs)


def _round_up_to_panels(columns: int) -> int:
    panel = core().panel
    return -(-columns // panel) * panel
