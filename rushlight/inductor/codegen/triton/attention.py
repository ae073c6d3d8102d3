"""Attention and its gradients as Triton kernels (FlashAttention, Dao et al. 2022), with masks and functions of the scores.

The forward's programs take a tile of queries of one head and pass over blocks of keys: scores are never written to memory. The
backward is three kernels: the sums over each row of the result times its gradient; the gradients of keys and values, whose
programs take a tile of keys and pass over blocks of queries; and those of queries. Scores are computed again from the
logarithms of their sums. In the texts, b, h, q and k are the batch, head, query and key, d the feature.
"""

from __future__ import annotations

from collections.abc import Mapping

from rushlight.core.algebra import Expr, Var, as_expr
from rushlight.core.dtype import bool_, float32
from rushlight.inductor.codegen.triton.expressions import StatementWriter, Term
from rushlight.inductor.codegen.triton.kernels import Choice, Launch, indented, program_text, range_text
from rushlight.inductor.codegen.triton.loops import next_power
from rushlight.inductor.codegen.triton.products import Epilogue
from rushlight.inductor.codegen.triton.types import HALVES, memory_type, size_text
from rushlight.inductor.ir import Buffer, Load, TemplateBuffer, substitute
from rushlight.inductor.scheduler import Group
from rushlight.inductor.sizes import Size, as_size, evaluate

MIN_SIDE = 16
QUERIES_16, QUERIES_32 = 64, 32  # queries of a tile, for 16-bit and 32-bit features
MANY_FEATURES = 64


def attention_launches(
    group: Group, buffers: dict[str, Buffer], hints: Mapping[Var, int], precision: str
) -> list[Launch]:  # fmt: skip
    """Return the launches of attention or of its gradients."""
    if group.template.kind == "attention":
        return [AttentionKernel(group, buffers, hints, precision).write()]
    return [writer(group, buffers, hints, precision).write() for writer in (RowSums, KeyGradients, QueryGradients)]


class HeadKernel(Epilogue):
    """Base of attention's kernels."""

    def __init__(
        self, kind: str, group: Group, buffers: dict[str, Buffer], hints: Mapping[Var, int], precision: str
    ):  # fmt: skip
        super().__init__(kind, group, buffers, hints)
        self.template: TemplateBuffer = group.template
        parameters = self.template.parameters
        self.batch, self.heads, self.rows, self.keys = (
            parameters[name] for name in ("batch", "heads", "rows_each", "keys")
        )  # fmt: skip
        self.depth: int = parameters["depth"]
        self.precision = precision
        self.kind = self.index_type(*self._counts())
        self.masks = {"q": "q_mask", "k": "k_mask", "k_down": "k_down_mask"}
        self.masks["d"] = "" if next_power(self.depth) == self.depth >= MIN_SIDE else "d_mask"
        types = {self.element_type(self.template.operands[name].buffer) for name in ("q", "k", "v")}
        only = types.pop() if len(types) == 1 else float32
        self.element = memory_type(only) if only.name in HALVES else "tl.float32"

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

    def scores(self, lines: list[str]) -> None:
        """Write the scores of a tile of queries and a block of keys, masked by -inf."""
        parameters = self.template.parameters
        lines.append(f"scores = {self.dot('queries', 'tl.trans(keys)')} * {parameters['scale']!r}")
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
        visible = " & ".join([self.masks["k"], *(["(k <= q)"] if parameters["causal"] else [])])
        lines.append(f'scores = tl.where({visible}, scores, float("-inf"))')

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

    def head(self, tiles: str, count: Size, block: str) -> list[str]:
        """Return the lines that find a program's head and tile."""
        heads = size_text(self.heads)
        return [
            f"program = {program_text(self.kind)}",
            f"{tiles} = tl.cdiv({size_text(count)}, {block})",
            f"tile = program % {tiles}",
            f"h = program // {tiles} % {heads if isinstance(self.heads, int) else f'({heads})'}",
            f"b = program // {tiles} // {heads if isinstance(self.heads, int) else f'({heads})'}",
            "d = tl.arange(0, DEPTH)[None, :]" + ("" if self.kind == "tl.int32" else ".to(tl.int64)"),
            *([f"d_mask = d < {self.depth}"] if self.masks["d"] else []),
        ]

    def query_lines(self, start: str) -> list[str]:
        """Return the lines that set a block of queries."""
        return [f"q = {range_text(start, 'QUERIES', self.kind, '[:, None]')}", f"q_mask = q < {size_text(self.rows)}"]

    def key_lines(self, start: str) -> list[str]:
        """Return the lines that set a block of keys, along both axes."""
        keys = size_text(self.keys)
        return [
            f"k = {range_text(start, 'KEYS', self.kind, '[None, :]')}", f"k_mask = k < {keys}",
            f"k_down = {range_text(start, 'KEYS', self.kind, '[:, None]')}", f"k_down_mask = k_down < {keys}",
        ]  # fmt: skip

    def choose(self, count: Size, block: str) -> None:
        """Set the choice of constants, and the grid: a program for each tile of each head."""
        side = QUERIES_16 if self.element != "tl.float32" else QUERIES_32
        queries, keys = (
            max(MIN_SIDE, min(side, next_power(evaluate(size, self.hints)))) for size in (self.rows, self.keys)
        )  # fmt: skip
        depth = max(MIN_SIDE, next_power(self.depth))
        sides = [(queries, keys), (max(MIN_SIDE, queries // 2), keys), (queries, max(MIN_SIDE, keys // 2))]
        warps = 8 if depth > MANY_FEATURES else 4
        made = [
            Choice({"QUERIES": rows, "KEYS": columns, "DEPTH": depth}, warps, 2) for rows, columns in dict.fromkeys(sides)
        ]
        self.launch.choice, self.launch.candidates = made[0], made
        self.launch.grid = (((count, block), (as_size(self.batch * self.heads), "")),)

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
        end = size_text(self.keys)
        end = f"tl.minimum({end}, (tile + 1) * QUERIES)" if parameters["causal"] else end
        lines += [
            "total = tl.zeros([QUERIES, DEPTH], tl.float32)",
            'top = tl.full([QUERIES, 1], float("-inf"), tl.float32)',
            "sums = tl.zeros([QUERIES, 1], tl.float32)",
            f"for start in range(0, {end}, KEYS):",
        ]
        loop = self.key_lines("start")
        self.matrix("k", "k_down", loop, "keys")
        self.scores(loop)
        self.matrix("v", "k_down", loop, "values")
        loop += [
            "highest = tl.maximum(top, tl.max(scores, 1)[:, None])",
            'base = tl.where(highest == float("-inf"), 0.0, highest)',
            "weights = tl.exp(scores - base)",
            "shrink = tl.exp(top - base)",
            "sums = sums * shrink + tl.sum(weights, 1)[:, None]",
            f"total = {self.dot(self.narrowed('weights'), 'values', 'total * shrink')}",
            "top = highest",
        ]
        empty = "" if parameters.get("empty_is_nan") else "tl.where(sums == 0.0, 0.0, total / sums)"
        lines += [*indented(loop), f"total = {empty or 'total / sums'}"]
        self.results("total", "q", self.rows, 0, lines)
        if parameters.get("sums") is not None:
            self._store_sums(lines)
        self.launch.body = lines
        self.choose(self.rows, "QUERIES")
        return self.finish()

    def _store_sums(self, lines: list[str]) -> None:
        writer = self.writer({"q": self.masks["q"]})
        at, start = self._variables(), self.template.parameters["sums"]
        index = (at["b"] * self.heads + at["h"]) * self.rows + at["q"] + start
        writer.store(self.pointer(self.template.name, True), index, Term("top + tl.log(sums)", frozenset("q")))
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
        lines.append(f"logarithms = {logarithm.text}")
        lines.append(f"row_sums = tl.load({writer.place(pointer, self.row_places(writer), 'q')}, q_mask, other=0)")

    def weight_lines(self, lines: list[str]) -> None:
        """Write the weights of a tile, and the gradients of its scores."""
        self.scores(lines)
        lines += [
            'weights = tl.where(scores == float("-inf"), 0.0, tl.exp(scores - logarithms))',
            "weights = tl.where(q_mask, weights, 0.0)",
            f"moved = {self.dot('grads', 'tl.trans(values)')}",
            f"slopes = weights * (moved - row_sums) * {self.template.parameters['scale']!r}",
        ]


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
        lines.append(f"tl.store({place}, tl.sum(results * grads, 1)[:, None], q_mask)")
        self.launch.body = lines
        self.choose(self.rows, "QUERIES")
        del self.launch.choice.constants["KEYS"]
        self.launch.candidates = [self.launch.choice]
        return self.finish()


class KeyGradients(Backward):
    """Writes the gradients of keys and values."""

    def __init__(self, *given: object):
        super().__init__("attention_key_gradients", *given)

    def write(self) -> Launch:
        """Return the launch."""
        pointer = self.row_sums()
        lines = [*self.head("key_tiles", self.keys, "KEYS"), *self.key_lines("tile * KEYS")]
        self.matrix("k", "k_down", lines, "keys")
        self.matrix("v", "k_down", lines, "values")
        first = "tile * KEYS // QUERIES * QUERIES" if self.template.parameters["causal"] else "0"
        lines += [
            "key_total = tl.zeros([KEYS, DEPTH], tl.float32)",
            "value_total = tl.zeros([KEYS, DEPTH], tl.float32)",
            f"for start in range({first}, {size_text(self.rows)}, QUERIES):",
        ]
        loop = self.query_lines("start")
        self.matrix("q", "q", loop, "queries")
        self.matrix("grad", "q", loop, "grads")
        self.load_rows(pointer, loop)
        self.weight_lines(loop)
        weights, slopes = (f"tl.trans({self.narrowed(name)})" for name in ("weights", "slopes"))
        loop.append(f"value_total = {self.dot(weights, 'grads', 'value_total')}")
        loop.append(f"key_total = {self.dot(slopes, 'queries', 'key_total')}")
        lines += indented(loop)
        start = as_size(self.batch * self.heads * self.rows * self.depth)
        self.results("key_total", "k_down", self.keys, start, lines)
        after = as_size(start + self.batch * self.heads * self.keys * self.depth)
        self.results("value_total", "k_down", self.keys, after, lines)
        self.launch.body = lines
        self.choose(self.keys, "KEYS")
        return self.finish()


class QueryGradients(Backward):
    """Writes the gradients of queries."""

    def __init__(self, *given: object):
        super().__init__("attention_query_gradients", *given)

    def write(self) -> Launch:
        """Return the launch."""
        pointer = self.row_sums()
        lines = [*self.head("query_tiles", self.rows, "QUERIES"), *self.query_lines("tile * QUERIES")]
        self.matrix("q", "q", lines, "queries")
        self.matrix("grad", "q", lines, "grads")
        self.load_rows(pointer, lines)
        end = size_text(self.keys)
        end = f"tl.minimum({end}, (tile + 1) * QUERIES)" if self.template.parameters["causal"] else end
        lines += ["total = tl.zeros([QUERIES, DEPTH], tl.float32)", f"for start in range(0, {end}, KEYS):"]
        loop = self.key_lines("start")
        self.matrix("k", "k_down", loop, "keys")
        self.matrix("v", "k_down", loop, "values")
        self.weight_lines(loop)
        loop.append(f"total = {self.dot(self.narrowed('slopes'), 'keys', 'total')}")
        lines += indented(loop)
        self.results("total", "q", self.rows, 0, lines)
        self.launch.body = lines
        self.choose(self.rows, "QUERIES")
        return self.finish()
