"""Attention and its gradients as Triton kernels (FlashAttention, Dao et al. 2022), with masks and functions of the scores.

The forward's programs take a tile of queries of one head and pass over blocks of keys: scores are never written to memory. The
backward is three kernels: the sums over each row of the result times its gradient; the gradients of keys and values, whose
programs take a tile of keys and pass over blocks of queries; and those of queries. Scores are computed again from the
logarithms of their sums. In the texts, b, h, q and k are the batch, head, query and key, d the feature.

If tiles divide the numbers of queries and keys, nothing is masked but the blocks on the diagonal of causal attention, which
have a loop of their own.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import NamedTuple

from rushlight.core.algebra import Expr, Var, as_expr
from rushlight.core.dtype import bool_, float32
from rushlight.inductor.codegen.triton.expressions import StatementWriter, Term
from rushlight.inductor.codegen.triton.kernels import Choice, Launch, Limits, indented, index_text, program_text, range_text
from rushlight.inductor.codegen.triton.loops import next_power
from rushlight.inductor.codegen.triton.products import Epilogue
from rushlight.inductor.codegen.triton.types import HALVES, memory_type, size_text
from rushlight.inductor.ir import Buffer, Load, TemplateBuffer, substitute
from rushlight.inductor.scheduler import Group
from rushlight.inductor.sizes import Size, as_size, evaluate

MIN_SIDE = 16
LOG2_E = math.log2(math.e)  # exp(x) is computed as 2^(x * LOG2_E), for which devices have an instruction


class Tile(NamedTuple):
    """Queries and keys of a tile, warps, and stages of loads ahead."""

    queries: int
    keys: int
    warps: int
    stages: int


# Tiles in order of preference, by the largest number of features that they are for: those of 16-bit features, and of others.
Tiles = dict[int, tuple[Tile, ...]]
WIDE = 1 << 30
FORWARD_16: Tiles = {
    64: (Tile(64, 64, 4, 3), Tile(128, 64, 4, 3), Tile(128, 64, 8, 3), Tile(64, 128, 4, 2), Tile(64, 32, 4, 3)),
    128: (Tile(128, 64, 8, 2), Tile(128, 32, 4, 3), Tile(64, 64, 4, 2), Tile(64, 32, 4, 2)),
    WIDE: (Tile(64, 32, 8, 2), Tile(32, 32, 4, 2)),
}  # fmt: skip
KEY_GRADIENTS_16: Tiles = {
    64: (Tile(64, 64, 4, 3), Tile(128, 64, 4, 2), Tile(64, 128, 8, 2), Tile(32, 64, 4, 2)),
    128: (Tile(64, 64, 8, 2), Tile(32, 64, 4, 2), Tile(32, 128, 8, 2)),
    WIDE: (Tile(32, 32, 8, 1),),
}  # fmt: skip
QUERY_GRADIENTS_16: Tiles = {
    64: (Tile(64, 64, 4, 3), Tile(128, 64, 8, 3), Tile(64, 32, 4, 2)),
    128: (Tile(64, 64, 8, 2), Tile(64, 32, 4, 2), Tile(128, 32, 8, 2)),
    WIDE: (Tile(32, 32, 8, 1),),
}  # fmt: skip
TILES_32: Tiles = {
    64: (Tile(32, 32, 4, 2), Tile(16, 32, 4, 2), Tile(32, 16, 4, 2)),
    WIDE: (Tile(32, 32, 8, 2), Tile(16, 32, 8, 2)),
}  # fmt: skip


def attention_launches(
    group: Group, buffers: dict[str, Buffer], hints: Mapping[Var, int], precision: str, limits: Limits
) -> list[Launch]:  # fmt: skip
    """Return the launches of attention or of its gradients."""
    if group.template.kind == "attention":
        return [AttentionKernel(group, buffers, hints, precision, limits).write()]
    return [writer(group, buffers, hints, precision, limits).write() for writer in (RowSums, KeyGradients, QueryGradients)]


class HeadKernel(Epilogue):
    """Base of attention's kernels. A program takes a tile along `along`, and passes over blocks of the other kind."""

    along = "QUERIES"
    tiles_16 = FORWARD_16

    def __init__(
        self, kind: str, group: Group, buffers: dict[str, Buffer], hints: Mapping[Var, int], precision: str, limits: Limits
    ):  # fmt: skip
        super().__init__(kind, group, buffers, hints)
        self.template: TemplateBuffer = group.template
        parameters = self.template.parameters
        self.batch, self.heads, self.rows, self.keys = (
            parameters[name] for name in ("batch", "heads", "rows_each", "keys")
        )  # fmt: skip
        self.depth: int = parameters["depth"]
        self.precision = precision
        self.limits = limits
        self.kind = self.index_type(*self._counts())
        types = {self.element_type(self.template.operands[name].buffer) for name in ("q", "k", "v")}
        only = types.pop() if len(types) == 1 else float32
        self.element = memory_type(only) if only.name in HALVES else "tl.float32"
        self.causal: bool = parameters["causal"]
        self.is_plain = self.template.score is None and "mask" not in self.template.operands and parameters["scale"] > 0
        self.unit: float = parameters["scale"] if self.is_plain else 1.0  # a score is this times what `scores` writes
        self.launch.choice, self.launch.candidates = self._choices()
        self.is_even = self.launch.divides(self.rows, "QUERIES") and self.launch.divides(self.keys, "KEYS")
        self.masks = {axis: "" if self.is_even else f"{axis}_mask" for axis in ("q", "k", "k_down")}
        self.masks["d"] = "" if next_power(self.depth) == self.depth >= MIN_SIDE else "d_mask"

    def _choices(self) -> tuple[Choice, list[Choice]]:
        """Return the default choice of constants, and all candidates."""
        queries, keys = (max(MIN_SIDE, next_power(evaluate(size, self.hints))) for size in (self.rows, self.keys))
        heads = evaluate(as_size(self.batch * self.heads), self.hints)
        tiles = TILES_32 if self.element == "tl.float32" else self.tiles_16
        made = {}
        for tile in next(tiles[most] for most in tiles if self.depth <= most):
            constants = {"QUERIES": min(tile.queries, queries), "KEYS": min(tile.keys, keys)}
            constants["DEPTH"] = max(MIN_SIDE, next_power(self.depth))
            made.setdefault((*constants.values(), tile.warps), Choice(constants, tile.warps, tile.stages))
        found = list(made.values())
        count = queries if self.along == "QUERIES" else keys
        enough = [choice for choice in found if heads * -(-count // choice.constants[self.along]) >= self.limits.processors]
        smallest = min(found, key=lambda choice: choice.constants[self.along])
        return (enough or [smallest])[0], found

    def _counts(self) -> tuple[Size, ...]:
        longer = as_size(self.batch * self.heads * self.rows * self.depth), self.batch * self.heads * self.keys * self.depth
        return longer[0], as_size(longer[1])

    def _variables(self) -> dict[str, Expr]:
        sizes = {"b": self.batch, "h": self.heads, "q": self.rows, "k": self.keys, "k_down": self.keys, "d": self.depth}
        return {name: Var(name, size) for name, size in sizes.items()}

    def matrix(self, name: str, row: str, lines: list[str], label: str, widen: bool = False) -> None:
        """Write the load of a tile of rows by features of an operand, 0 outside."""
        operand, at = self.template.operands[name], self._variables()
        places = (at["b"], at["h"], at[row], at["d"])
        index = sum((place * step for place, step in zip(places, operand.strides, strict=False)), as_expr(operand.offset))
        writer = self.writer({row: self.masks[row], "d": self.masks["d"]}, f"{label}_")
        writer.widens, writer.other = widen or self.element == "tl.float32", "0"
        term = writer.load(operand.buffer, writer.index(index))
        lines += writer.lines
        shape = f"[{'QUERIES' if row == 'q' else 'KEYS'}, DEPTH]"
        text = f"tl.where(d_mask, {term.text}, 0)" if self.masks["d"] and "d" not in term.axes else term.text
        tile = text if term.axes == {row, "d"} else f"tl.broadcast_to({text}, {shape})"
        loaded = "tl.float32" if writer.widens else memory_type(self.element_type(operand.buffer))
        is_other = not widen and loaded != self.element
        lines.append(f"{label} = {f'{tile}.to({self.element})' if is_other else tile}")

    def scores(self, lines: list[str], on_diagonal: bool) -> None:
        """Write the scores of a tile of queries and a block of keys, divided by `unit`, masked by -inf."""
        scale = "" if self.is_plain else f" * {self.template.parameters['scale']!r}"
        lines.append(f"scores = {self.dot('queries', 'tl.trans(keys)')}{scale}")
        writer = self.writer({"q": self.masks["q"], "k": self.masks["k"]}, "score_")
        mask = self.template.operands.get("mask")
        if self.template.score is not None:
            self._apply_function(writer)
        elif mask is not None:
            at = self._variables()
            places = (at["b"], at["h"], at["q"], at["k"])
            index = sum((place * step for place, step in zip(places, mask.strides, strict=True)), as_expr(mask.offset))
            given = writer.write(Load(self.buffers[mask.buffer].layout.dtype, mask.buffer, index))
            is_bool = self.element_type(mask.buffer) is bool_
            chosen = f'tl.where({given.text}, scores, float("-inf"))' if is_bool else f"scores + {given.text}"
            writer.lines.append(f"scores = {chosen}")
        lines += writer.lines
        visible = [*([self.masks["k"]] if self.masks["k"] else []), *(["(k <= q)"] if on_diagonal else [])]
        if visible:
            lines.append(f'scores = tl.where({" & ".join(visible)}, scores, float("-inf"))')

    def _apply_function(self, writer: StatementWriter) -> None:
        score, at = self.template.score, self._variables()
        body = substitute(score.body, dict(zip(score.variables, (at["b"], at["h"], at["q"], at["k"]), strict=True)))
        writer.local[self.template.parameters["scores"]] = Term("scores", frozenset("qk"))
        found = writer.write(body)
        full = found.text if found.axes == set("qk") else f"tl.broadcast_to({found.text}, [QUERIES, KEYS])"
        writer.lines.append(f"scores = {full}")

    def dot(self, left: str, right: str, total: str = "") -> str:
        """Return the text of a product of tiles, added to a total."""
        precision = f', input_precision="{self.precision}"' if self.element == "tl.float32" else ""
        return f"tl.dot({left}, {right}{f', {total}' if total else ''}{precision}, out_dtype=tl.float32)"

    def narrowed(self, text: str) -> str:
        """Return the text of a float32 tile in the features' type."""
        return text if self.element == "tl.float32" else f"{text}.to({self.element})"

    def loops_over_keys(self, body: Callable[[bool], list[str]]) -> list[str]:
        """Return the loops of a tile of queries over blocks of keys. `body` is told whether blocks may lie on the diagonal."""
        end = size_text(self.keys)
        if not self.causal:
            return [f"for start in range(0, {end}, KEYS):", *indented(body(False))]
        end = f"tl.minimum({end}, (tile + 1) * QUERIES)"
        if not self.is_even:
            return [f"for start in range(0, {end}, KEYS):", *indented(body(True))]
        return [
            f"seen = tl.minimum({size_text(self.keys)}, tile * QUERIES // KEYS * KEYS)",
            "for start in range(0, seen, KEYS):", *indented(body(False)),
            f"for start in range(seen, {end}, KEYS):", *indented(body(True)),
        ]  # fmt: skip

    def loops_over_queries(self, body: Callable[[bool], list[str]]) -> list[str]:
        """Return the loops of a tile of keys over blocks of queries."""
        end = size_text(self.rows)
        if not self.causal:
            return [f"for start in range(0, {end}, QUERIES):", *indented(body(False))]
        first = "tile * KEYS // QUERIES * QUERIES"
        if not self.is_even:
            return [f"for start in range({first}, {end}, QUERIES):", *indented(body(True))]
        return [
            f"seen = tl.minimum({end}, tl.cdiv((tile + 1) * KEYS, QUERIES) * QUERIES)",
            f"for start in range({first}, seen, QUERIES):", *indented(body(True)),
            f"for start in range(seen, {end}, QUERIES):", *indented(body(False)),
        ]  # fmt: skip

    def head(self, tiles: str, count: Size, block: str) -> list[str]:
        """Return the lines that find a program's head and tile. The last queries of causal attention, which see most keys, come
        first."""
        heads = size_text(self.heads)
        place = f"program % {tiles}"
        return [
            f"program = {program_text(self.kind)}",
            f"{tiles} = tl.cdiv({size_text(count)}, {block})",
            f"tile = {f'{tiles} - 1 - {place}' if self.causal and block == 'QUERIES' else place}",
            f"h = program // {tiles} % {heads if isinstance(self.heads, int) else f'({heads})'}",
            f"b = program // {tiles} // {heads if isinstance(self.heads, int) else f'({heads})'}",
            f"d = {index_text('tl.arange(0, DEPTH)[None, :]', self.kind)}",
            *([f"d_mask = d < {self.depth}"] if self.masks["d"] else []),
        ]

    def query_lines(self, start: str) -> list[str]:
        """Return the lines that set a block of queries."""
        mask = [f"q_mask = q < {size_text(self.rows)}"] if self.masks["q"] else []
        return [f"q = {range_text(start, 'QUERIES', self.kind, '[:, None]')}", *mask]

    def key_lines(self, start: str) -> list[str]:
        """Return the lines that set a block of keys, along both axes."""
        keys = size_text(self.keys)
        lines = []
        for name, spread in (("k", "[None, :]"), ("k_down", "[:, None]")):
            lines.append(f"{name} = {range_text(start, 'KEYS', self.kind, spread)}")
            if self.masks[name]:
                lines.append(f"{name}_mask = {name} < {keys}")
        return lines

    def finish(self) -> Launch:
        """Add the grid: a program for each tile of each head."""
        count = self.rows if self.along == "QUERIES" else self.keys
        self.launch.grid = (((count, self.along), (as_size(self.batch * self.heads), "")),)
        return super().finish()

    def results(self, label: str, row: str, length: Size, start: Size, lines: list[str]) -> None:
        """Write the store of a tile of rows by features into a [B, L, H, D] part of the result."""
        at = self._variables()
        index = ((at["b"] * length + at[row]) * self.heads + at["h"]) * self.depth + at["d"] + start
        writer = self.writer({row: self.masks[row], "d": self.masks["d"]})
        writer.store(self.pointer(self.template.name, True), index, Term(label, frozenset((row, "d"))))
        lines += writer.lines

    def row_places(self, writer: StatementWriter) -> Term:
        """Return the index of a query's row among those of all heads."""
        at = self._variables()
        return writer.index((at["b"] * self.heads + at["h"]) * self.rows + at["q"])


class AttentionKernel(HeadKernel):
    """Writes attention."""

    def __init__(self, *given: object):
        super().__init__("attention", *given)

    def write(self) -> Launch:
        """Return the launch."""
        parameters = self.template.parameters
        lines = [*self.head("query_tiles", self.rows, "QUERIES"), *self.query_lines("tile * QUERIES")]
        self.matrix("q", "q", lines, "queries")
        lines += [
            "total = tl.zeros([QUERIES, DEPTH], tl.float32)",
            'top = tl.full([QUERIES, 1], float("-inf"), tl.float32)',
            "sums = tl.zeros([QUERIES, 1], tl.float32)",
            *self.loops_over_keys(self._block),
        ]
        empty = "" if parameters.get("empty_is_nan") else "tl.where(sums == 0.0, 0.0, total / sums)"
        lines.append(f"total = {empty or 'total / sums'}")
        self.results("total", "q", self.rows, 0, lines)
        if parameters.get("sums") is not None:
            self._store_sums(lines)
        self.launch.body = lines
        return self.finish()

    def _block(self, on_diagonal: bool) -> list[str]:
        """Return the lines that add a block of keys to the weighted sums of values."""
        lines = self.key_lines("start")
        self.matrix("k", "k_down", lines, "keys")
        self.scores(lines, on_diagonal)
        self.matrix("v", "k_down", lines, "values")
        factor = self.unit * LOG2_E
        base = f"highest * {factor!r}"  # each query sees a key of the first block if only causality masks
        return [
            *lines,
            "highest = tl.maximum(top, tl.max(scores, 1)[:, None])",
            f"base = {base}" if self.is_plain else f'base = tl.where(highest == float("-inf"), 0.0, {base})',
            f"weights = tl.exp2(scores * {factor!r} - base)",
            f"shrink = tl.exp2(top * {factor!r} - base)",
            "sums = sums * shrink + tl.sum(weights, 1)[:, None]",
            f"total = {self.dot(self.narrowed('weights'), 'values', 'total * shrink')}",
            "top = highest",
        ]

    def _store_sums(self, lines: list[str]) -> None:
        writer = self.writer({"q": self.masks["q"]})
        at, start = self._variables(), self.template.parameters["sums"]
        index = (at["b"] * self.heads + at["h"]) * self.rows + at["q"] + start
        writer.store(self.pointer(self.template.name, True), index, Term(f"top * {self.unit!r} + tl.log(sums)", frozenset("q")))
        lines += writer.lines


class Backward(HeadKernel):
    """Base of the gradients' kernels."""

    def row_sums(self) -> str:
        """Return the parameter for the sums over rows of the result times its gradient."""
        nbytes = as_size(self.batch * self.heads * self.rows * 4)
        return self.scratch(f"row_sums_{self.template.name}", "row_sums_ptr", "*fp32", nbytes)

    def load_rows(self, pointer: str, lines: list[str]) -> None:
        """Write the loads of the sums of a block of queries, and of the logarithms of the scores' sums."""
        writer, at = self.writer({"q": self.masks["q"]}, "row_"), self._variables()
        writer.other = "0"
        operand = self.template.operands["sums"]
        places = (at["b"], at["h"], at["q"])
        index = sum((place * step for place, step in zip(places, operand.strides, strict=True)), as_expr(operand.offset))
        logarithm = writer.load(operand.buffer, writer.index(index))
        lines += writer.lines
        lines.append(f"logarithms = {logarithm.text} * {LOG2_E!r}")
        mask = f", {self.masks['q']}, other=0" if self.masks["q"] else ""
        lines.append(f"row_sums = tl.load({writer.place(pointer, self.row_places(writer), 'q')}{mask})")

    def weight_lines(self, lines: list[str], on_diagonal: bool) -> None:
        """Write the weights of a tile, and the gradients of its scores, divided by the scale."""
        self.scores(lines, on_diagonal)
        weights = f"tl.exp2(scores * {self.unit * LOG2_E!r} - logarithms)"
        seen = weights if self.is_plain else f'tl.where(scores == float("-inf"), 0.0, {weights})'
        lines.append(f"weights = {seen}")
        if self.masks["q"]:
            lines.append("weights = tl.where(q_mask, weights, 0.0)")
        lines += [f"moved = {self.dot('grads', 'tl.trans(values)')}", "slopes = weights * (moved - row_sums)"]


class RowSums(Backward):
    """Writes the sums over features of the result times its gradient."""

    def __init__(self, *given: object):
        super().__init__("attention_row_sums", *given)

    def write(self) -> Launch:
        """Return the launch."""
        lines = [*self.head("query_tiles", self.rows, "QUERIES"), *self.query_lines("tile * QUERIES")]
        self.matrix("out", "q", lines, "results", widen=True)
        self.matrix("grad", "q", lines, "grads", widen=True)
        writer = self.writer({"q": self.masks["q"]})
        place = writer.place(self.row_sums(), self.row_places(writer), "q")
        mask = f", {self.masks['q']}" if self.masks["q"] else ""
        lines.append(f"tl.store({place}, tl.sum(results * grads, 1)[:, None]{mask})")
        self.launch.body = lines
        del self.launch.choice.constants["KEYS"]
        self.launch.candidates = [self.launch.choice]
        return self.finish()


class KeyGradients(Backward):
    """Writes the gradients of keys and values."""

    along = "KEYS"
    tiles_16 = KEY_GRADIENTS_16

    def __init__(self, *given: object):
        super().__init__("attention_key_gradients", *given)

    def write(self) -> Launch:
        """Return the launch."""
        pointer = self.row_sums()
        lines = [*self.head("key_tiles", self.keys, "KEYS"), *self.key_lines("tile * KEYS")]
        self.matrix("k", "k_down", lines, "keys")
        self.matrix("v", "k_down", lines, "values")
        lines += [
            "key_total = tl.zeros([KEYS, DEPTH], tl.float32)",
            "value_total = tl.zeros([KEYS, DEPTH], tl.float32)",
            *self.loops_over_queries(lambda on_diagonal: self._block(pointer, on_diagonal)),
            f"key_total *= {self.template.parameters['scale']!r}",
        ]
        start = as_size(self.batch * self.heads * self.rows * self.depth)
        self.results("key_total", "k_down", self.keys, start, lines)
        after = as_size(start + self.batch * self.heads * self.keys * self.depth)
        self.results("value_total", "k_down", self.keys, after, lines)
        self.launch.body = lines
        return self.finish()

    def _block(self, pointer: str, on_diagonal: bool) -> list[str]:
        """Return the lines that add a block of queries to the gradients."""
        lines = self.query_lines("start")
        self.matrix("q", "q", lines, "queries")
        self.matrix("grad", "q", lines, "grads")
        self.load_rows(pointer, lines)
        self.weight_lines(lines, on_diagonal)
        weights, slopes = (f"tl.trans({self.narrowed(name)})" for name in ("weights", "slopes"))
        lines.append(f"value_total = {self.dot(weights, 'grads', 'value_total')}")
        lines.append(f"key_total = {self.dot(slopes, 'queries', 'key_total')}")
        return lines


class QueryGradients(Backward):
    """Writes the gradients of queries."""

    tiles_16 = QUERY_GRADIENTS_16

    def __init__(self, *given: object):
        super().__init__("attention_query_gradients", *given)

    def write(self) -> Launch:
        """Return the launch."""
        pointer = self.row_sums()
        lines = [*self.head("query_tiles", self.rows, "QUERIES"), *self.query_lines("tile * QUERIES")]
        self.matrix("q", "q", lines, "queries")
        self.matrix("grad", "q", lines, "grads")
        self.load_rows(pointer, lines)
        lines += [
            "total = tl.zeros([QUERIES, DEPTH], tl.float32)",
            *self.loops_over_keys(self._block),
            f"total *= {self.template.parameters['scale']!r}",
        ]
        self.results("total", "q", self.rows, 0, lines)
        self.launch.body = lines
        return self.finish()

    def _block(self, on_diagonal: bool) -> list[str]:
        """Return the lines that add a block of keys to the gradients."""
        lines = self.key_lines("start")
        self.matrix("k", "k_down", lines, "keys")
        self.matrix("v", "k_down", lines, "values")
        self.weight_lines(lines, on_diagonal)
        return [*lines, f"total = {self.dot(self.narrowed('slopes'), 'keys', 'total')}"]
