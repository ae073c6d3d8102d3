"""Chooses the tiles of products by a model of a GPU's time.

In: the sizes of a product, the factors' type, what follows each result, and the device's limits. Out: a choice of constants,
warps and stages, in how many parts the depth is split, and all choices that are worth timing.

A multiprocessor takes programs in rounds. A program's time is that of its multiplications, which large tiles do at a higher
rate because they load less for each, or of its loads, and that of its epilogue. If two programs fit on a multiprocessor, one
begins while the other works; but they run in step, so that multiplications and epilogues hardly overlap. Parts of a depth need
a second kernel, which reads their sums. Rates are an H200's; only their ratios count.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

from rushlight.inductor.codegen.triton.kernels import Choice, Limits
from rushlight.inductor.codegen.triton.loops import next_power
from rushlight.inductor.ir import Call, RandomWord, Value, walk

MIN_SIDE = 16  # the least height, width and depth of a tile
FEW_RESULTS = 64 * 64  # tiles of at most this size take four warps
MIN_PART = 512  # the depth of a part that is worth a program
MOST_PARTS = 32
LEAST_STAGES, MOST_STAGES = 3, 5
GAIN = 0.99  # a later tile, or more parts, must take less than this of the time

# What one multiprocessor does in a second.
MULTIPLIES = 2.6e12  # multiplications of 16-bit factors with the largest tile
PLAIN_MULTIPLIES = 1.5e11  # multiplications without matrix instructions
INSTRUCTIONS = 1.3e11  # instructions of an epilogue, counted for each element
BYTES = 3e10  # bytes of memory
CACHED_BYTES = 9e10  # bytes from the cache that all multiprocessors share
# Times in seconds.
START = 2e-6  # time of a program before its first multiplication
LAUNCH = 5e-6  # time of a second kernel's launch
# How the rate of multiplications depends on the tile.
BEST_INTENSITY = 128 * 256 / (128 + 256)  # results for each row and column that a step loads
INTENSITY_POWER = 0.45
LOW_TILE = 64  # matrix instructions of a whole warp group need as many rows
LOW_RATE = 0.5

# Instructions of functions that take more than one or two.
_INSTRUCTIONS = {
    "exp": 4, "exp_nonpositive": 4, "exp2": 2, "expm1": 20, "log": 12, "log1p": 20, "sigmoid": 14, "silu": 14, "tanh": 18,
    "sinh": 25, "cosh": 25, "sin": 30, "cos": 30, "tan": 40, "erf": 28, "erfc": 40, "erfinv": 40, "gelu_erf": 24,
    "gelu_erf_slope": 26, "gelu_tanh": 18, "gelu_tanh_slope": 28, "div": 9, "pow": 60, "atan": 25, "atan2": 40, "lgamma": 100,
}  # fmt: skip
_WORD_INSTRUCTIONS = 60  # instructions for a random number


class Tile(NamedTuple):
    """The height and width of a tile of results, the depth of a block in bytes, and warps."""

    height: int
    width: int
    depth: int
    warps: int


TILES = (
    Tile(128, 256, 128, 8), Tile(256, 128, 128, 8), Tile(128, 128, 128, 4), Tile(128, 128, 128, 8), Tile(64, 256, 128, 4),
    Tile(64, 128, 128, 4), Tile(128, 64, 128, 4), Tile(64, 64, 128, 4), Tile(32, 64, 128, 4), Tile(64, 32, 128, 4),
    Tile(32, 32, 256, 4), Tile(16, 32, 256, 4), Tile(16, 16, 256, 4),
)  # fmt: skip
SMALL_TILES = (Tile(64, 64, 128, 4), Tile(32, 32, 128, 4), Tile(16, 16, 128, 4))  # for 64-bit numbers


@dataclass(frozen=True)
class Work:
    """A batch of products: sizes, the bytes of an element of the factors, whether matrix instructions multiply them, and the
    instructions that follow each result. Without `is_split` the depth is not shared by programs."""

    rows: int
    columns: int
    depth: int
    batch: int
    itemsize: int
    by_matrices: bool
    instructions: int
    is_split: bool


class Plan(NamedTuple):
    """What was chosen: the default choice, the number of parts of the depth, and all choices that are worth timing."""

    choice: Choice
    parts: int
    candidates: list[Choice]


def instructions_of(bodies: Iterable[Value]) -> int:
    """Return about how many instructions the values of an element take."""
    return sum(_instructions(node) for body in bodies for node in walk(body))


def _instructions(node: Value) -> int:
    if isinstance(node, RandomWord):
        return _WORD_INSTRUCTIONS
    return _INSTRUCTIONS.get(node.name, 1) if isinstance(node, Call) else 1


def plan(work: Work, limits: Limits) -> Plan:
    """Return the fastest choice by the model. Earlier tiles and fewer parts win close races."""
    tiles = SMALL_TILES if work.itemsize == 8 else TILES if work.by_matrices else TILES[2:]
    parts = [1 << power for power in range(MOST_PARTS.bit_length())] if work.is_split else [1]
    best: tuple[float, Choice, int] | None = None
    made: dict[tuple, Choice] = {}
    for tile in tiles:
        for count in parts:
            if count > 1 and work.depth < MIN_PART * count:
                break
            choice, taken = _choice(tile, work, limits, count)
            if choice is None:
                continue
            made.setdefault(_key(choice), choice)
            if best is None or taken < GAIN * best[0]:
                best = taken, choice, count
    if best is None:  # even the smallest tile does not fit
        choice = _made(tiles[-1], work, 1)
        return Plan(choice, 1, [choice])
    others = (_made(tile, work, stages) for tile in tiles for stages in (LEAST_STAGES, LEAST_STAGES + 1))
    for choice in others:
        if _shared_bytes(choice, work) <= limits.shared:
            made.setdefault(_key(choice), choice)
    return Plan(best[1], best[2], list(made.values()))


def _key(choice: Choice) -> tuple:
    return (*choice.constants.values(), choice.warps, choice.stages)


def _made(tile: Tile, work: Work, stages: int) -> Choice:
    """Return a tile's choice of constants, cut to the product's sizes."""
    rows, columns, depth = (max(MIN_SIDE, next_power(size)) for size in (work.rows, work.columns, work.depth))
    height, width = min(tile.height, rows), min(tile.width, columns)
    block = min(tile.depth // work.itemsize, max(depth, 32 if work.itemsize == 1 else MIN_SIDE))
    warps = tile.warps if height * width > FEW_RESULTS else 4
    return Choice({"ROWS": height, "COLUMNS": width, "DEPTH": block}, warps, stages)


def _choice(tile: Tile, work: Work, limits: Limits, parts: int) -> tuple[Choice | None, float]:
    """Return a tile's choice and its time; None if it does not fit in shared memory."""
    single = _made(tile, work, 1)
    each, programs = _shared_bytes(single, work), _programs(single, work) * parts
    if programs > limits.processors and 2 * LEAST_STAGES * each <= limits.shared:
        stages, resident = LEAST_STAGES, 2
    else:
        stages, resident = min(MOST_STAGES, limits.shared // each), 1
    if stages < 1:
        return None, math.inf
    choice = _made(tile, work, stages)
    return choice, _time(choice, work, limits, parts, math.ceil(programs / limits.processors), resident)


def _time(choice: Choice, work: Work, limits: Limits, parts: int, rounds: int, resident: int) -> float:
    height, width = choice.constants["ROWS"], choice.constants["COLUMNS"]
    intensity = min(1.0, height * width / (height + width) / BEST_INTENSITY)
    rate = (MULTIPLIES * 2 / work.itemsize if work.by_matrices else PLAIN_MULTIPLIES) * intensity**INTENSITY_POWER
    if work.by_matrices and height < LOW_TILE:
        rate *= LOW_RATE
    depth = math.ceil(work.depth / parts)
    product = max(height * width * depth / rate, (height + width) * depth * work.itemsize / CACHED_BYTES)
    if parts == 1:
        end = height * width * work.instructions / INSTRUCTIONS
    else:
        end = height * width * 4 / BYTES
    taken = rounds * (product + end + (0 if resident > 1 else START))
    if parts > 1:
        results = work.rows * work.columns * work.batch / limits.processors
        taken += LAUNCH + results * (4 * parts / BYTES + work.instructions / INSTRUCTIONS)
    return taken


def _shared_bytes(choice: Choice, work: Work) -> int:
    """Return the bytes of the factors' blocks that are loaded ahead."""
    height, width, depth = (choice.constants[name] for name in ("ROWS", "COLUMNS", "DEPTH"))
    return (height + width) * depth * work.itemsize * choice.stages


def _programs(choice: Choice, work: Work) -> int:
    return -(-work.rows // choice.constants["ROWS"]) * -(-work.columns // choice.constants["COLUMNS"]) * work.batch
