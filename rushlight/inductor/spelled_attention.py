"""Attention fusion: attention with any function of its scores becomes one kernel (flash attention).

In: a lowered graph. Out: the same graph with "attention" templates that contain the function of the scores, which are never
written to memory. The kernel skips blocks of keys that the function masks with -inf. There are two sources:
- Attention spelled out in the graph: batched products of queries and keys, a function of the scores, a softmax over the keys,
batched products with values. The template replaces the second product; the scheduler drops the rest, which nothing reads any
more. It is not fused if something else, such as the backward, needs the scores or the weights.
- A template whose mask is cheap to compute: the kernel recomputes it for each block of scores instead of reading it.
Attention with few enough scores for the caches stays as it is.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from rushlight.core.algebra import Expr, Var, as_expr, unflatten_index
from rushlight.core.dtype import bool_, float32
from rushlight.inductor.codegen.cpp.expressions import needs_branches
from rushlight.inductor.graph import LoweredGraph
from rushlight.inductor.ir import (
    Buffer,
    Call,
    ComputedBuffer,
    Constant,
    Load,
    Pointwise,
    RandomWord,
    Reduction,
    Search,
    TemplateBuffer,
    Value,
    substitute,
    walk,
)
from rushlight.inductor.origins import joined
from rushlight.inductor.scheduler import body_in_domain, element_index, row_variables
from rushlight.inductor.sizes import Size, as_size, evaluate, row_major

MAX_DEPTH = 256  # the kernel supports heads of at most this many features
MIN_SCORES = 1 << 16  # with fewer scores per head, all scores stay in the caches
UNWRITTEN = "<scores>"  # the buffer name of a template's own scores
MAX_BODY, MAX_MASK = 8, 24  # loops of at most this many IR nodes are recomputed rather than read from memory


@dataclass(slots=True)
class Spelled:
    """The buffers of attention that is spelled out in the graph. Nothing else may read the buffers `inner`. With
    `empty_is_nan`, queries without keys give NaN."""

    scores: TemplateBuffer
    modified: Buffer
    inner: set[str]
    empty_is_nan: bool


def fuse_attention(lowered: LoweredGraph) -> LoweredGraph:
    """Replace attention in the graph by templates."""
    named = {buffer.name: buffer for buffer in lowered.buffers}
    wanted = {view.buffer for view in lowered.outputs} | {write.buffer for write in lowered.writes}
    readers: dict[str, set[str]] = {}
    for buffer in lowered.buffers:
        for name in buffer.reads():
            readers.setdefault(name, set()).add(buffer.name)

    def fused(buffer: Buffer) -> Buffer:
        kind = buffer.kind if isinstance(buffer, TemplateBuffer) else None
        if kind not in ("attention", "bgemm"):
            return buffer
        keys = buffer.parameters["keys" if kind == "attention" else "depth"]
        if not _has_many_scores(buffer.parameters["rows_each"], keys, lowered.symbols.hints):
            return buffer
        if kind == "attention":
            return (_inline_mask(buffer, named) if "mask" in buffer.operands else None) or buffer
        found = _match_attention(buffer, named)
        if found is None or wanted & found.inner:
            return buffer
        others = set().union(*(readers[name] for name in found.inner)) - found.inner
        return (_attention_template(found, buffer, named) if others == {buffer.name} else None) or buffer

    return replace(lowered, buffers=list(map(fused, lowered.buffers)))


def _has_many_scores(rows: Size, keys: Size, hints: dict[Var, int]) -> bool:
    return evaluate(as_size(rows * keys), hints) >= MIN_SCORES


class _Rows:
    """Matches buffers' bodies over the matrix of scores, in terms of its row x and column r."""

    def __init__(self, named: dict[str, Buffer], domain: tuple[Size, Size]):
        self.named = named
        self.domain = domain
        self.row, self.element = row_variables(domain)[0], element_index(domain)

    def body(self, name: str, kind: type, reduction: str = "") -> Value | None:
        """Return the body of a loop of that kind over all scores, or None."""
        member = self.named[name]
        loop = member.data if isinstance(member, ComputedBuffer) else None
        if type(loop) is not kind or kind is Reduction and loop.reduction_type != reduction:
            return None
        extent = (loop.numel, loop.reduction_numel) if kind is Reduction else loop.numel
        fits = extent == (self.domain if kind is Reduction else as_size(self.domain[0] * self.domain[1]))
        return body_in_domain(member, self.domain) if fits else None

    def loaded(self, value: Value | None, index: Expr) -> str | None:
        """Return the buffer that a value loads at that index, or None."""
        return value.buffer if isinstance(value, Load) and value.index == index else None

    def exponentials(self, name: str) -> str | None:
        """Return the buffer x if `name` = exp(x - rowmax(x)), else None."""
        body = self.body(name, Pointwise)
        difference = body.arguments[0] if _is_call(body, "exp_nonpositive") else None
        if not _is_call(difference, "sub"):
            return None
        values, highest = difference.arguments
        source, top = self.loaded(values, self.element), self.loaded(highest, self.row)
        if source is None or top is None or self.loaded(self.body(top, Reduction, "max"), self.element) != source:
            return None
        return source


def _is_call(value: Value | None, name: str) -> bool:
    return isinstance(value, Call) and value.name == name


def _is_number(value: Value, number: float) -> bool:
    return isinstance(value, Constant) and value.number == number


def _match_attention(product: TemplateBuffer, named: dict[str, Buffer]) -> Spelled | None:
    """Match a product of attention weights and values; None if it is not attention."""
    weights, rows, keys = product.operands["a"], product.parameters["rows_each"], product.parameters["depth"]
    whole = weights.offset == 0 and weights.strides == row_major((product.parameters["batch"], rows, keys))
    if not whole or not isinstance(product.columns, int):
        return None
    at = _Rows(named, (product.rows, keys))
    inner = {weights.buffer}
    body = at.body(weights.buffer, Pointwise)
    empty = None
    if _is_call(body, "where") and _is_number(body.arguments[1], 0.0):
        empty, body = at.loaded(body.arguments[0], at.row), body.arguments[2]
        if empty is None:
            return None
    if not _is_call(body, "div"):
        return None
    grown, total = at.loaded(body.arguments[0], at.element), at.loaded(body.arguments[1], at.row)
    if grown is None or total is None or at.loaded(at.body(total, Reduction, "sum"), at.element) != grown:
        return None
    modified = at.exponentials(grown)
    if modified is None:
        return None
    inner |= {grown, total, modified, at.loaded(at.body(grown, Pointwise).arguments[0].arguments[1], at.row)}
    if empty is not None:
        modified = _source_of_filled(at, modified, empty)
        if modified is None:
            return None
        inner |= {empty, modified}
    scores = _find_scores(at, modified)
    if scores is None or not _is_supported_size(scores, product):
        return None
    return Spelled(scores, named[modified], inner | {scores.name}, empty is None)


def _source_of_filled(at: _Rows, filled: str, empty: str) -> str | None:
    """Return the scores from which `filled` was made by filling rows of only -inf with 0; `empty` marks these rows."""
    body = at.body(filled, Pointwise)
    if not _is_call(body, "where") or at.loaded(body.arguments[0], at.row) != empty or not _is_number(body.arguments[1], 0.0):
        return None
    source, test = at.loaded(body.arguments[2], at.element), at.body(empty, Reduction, "all")
    if source is None or not _is_call(test, "eq") or not _is_number(test.arguments[1], -math.inf):
        return None
    return source if at.loaded(test.arguments[0], at.element) == source else None


def _find_scores(at: _Rows, modified: str) -> TemplateBuffer | None:
    """Return the batched product whose results the scores are made from elementwise; the first one, if there are several."""
    buffer = at.named[modified]
    if isinstance(buffer, TemplateBuffer):
        return buffer if buffer.kind == "bgemm" else None
    body = at.body(modified, Pointwise)
    if body is None or body.dtype is not float32:
        return None
    positions: dict[str, list[bool]] = {}
    for node in walk(body):
        if isinstance(node, Load):
            positions.setdefault(node.buffer, []).append(node.index == at.element)
    for name, in_place in positions.items():
        source = at.named[name]
        if isinstance(source, TemplateBuffer) and source.kind == "bgemm" and all(in_place):
            return source
    return None


def _is_supported_size(scores: TemplateBuffer, product: TemplateBuffer) -> bool:
    """Return whether the kernel supports products of these sizes."""
    given, wanted = scores.parameters, product.parameters
    same = all(given[name] == wanted[name] for name in ("batch", "rows_each")) and scores.columns == wanted["depth"]
    return same and given["depth"] == product.columns <= MAX_DEPTH and product.layout.dtype is scores.layout.dtype is float32


def _attention_template(found: Spelled, product: TemplateBuffer, named: dict[str, Buffer]) -> TemplateBuffer | None:
    """Return the attention template; None if the score's function cannot be vectorized over queries."""
    batch, rows, keys = product.parameters["batch"], product.parameters["rows_each"], product.parameters["depth"]
    sizes = (batch, 1, rows, keys)
    variables = _variables(sizes)
    score = _score_function(found, variables, named)
    if not _runs_along_queries(score, variables):
        return None
    left, right, values = found.scores.operands["a"], found.scores.operands["b"], product.operands["b"]
    operands = {
        "q": replace(left, strides=(left.strides[0], 0, *left.strides[1:])),
        "k": replace(right, strides=(right.strides[0], 0, *right.strides[:0:-1])),
        "v": replace(values, strides=(values.strides[0], 0, *values.strides[1:])),
    }
    inner = [buffer for buffer in named.values() if buffer.name in found.inner]
    return replace(
        product, **joined(product, inner), kind="attention", operands=operands,
        score=Pointwise(float32, sizes, variables, score, found.scores.origin),
        parameters={
            "batch": batch, "heads": 1, "rows_each": rows, "keys": keys, "depth": product.columns, "causal": False,
            "scale": 1.0, "scores": found.scores.name, "empty_is_nan": found.empty_is_nan,
        },
    )  # fmt: skip


def _variables(sizes: tuple[Size, ...]) -> tuple[Var, ...]:
    """Return the variables of a score's function: batch, head, query and key."""
    return tuple(Var(name, size) for name, size in zip("bhqk", sizes, strict=True))


def _runs_along_queries(score: Value, variables: tuple[Var, ...]) -> bool:
    if needs_branches(score, variables[2]):
        return False
    return not any(isinstance(node, Search | RandomWord) for node in walk(score))


def _score_function(found: Spelled, variables: tuple[Var, ...], named: dict[str, Buffer]) -> Value:
    """Return the score's function in terms of batch, query and key; the raw score is a load from the first product."""
    batch, _, query, key = variables
    element = (batch * query.extent + query) * key.extent + key
    if found.modified is found.scores:
        return Load(float32, found.scores.name, element)
    loop = found.modified.data
    body = substitute(loop.body, dict(zip(loop.variables, unflatten_index(element, loop.ranges), strict=True)))
    return _inline_small_bodies(body, named)


def _inline_mask(attention: TemplateBuffer, named: dict[str, Buffer]) -> TemplateBuffer | None:
    """Return an attention template that computes its mask; None if the mask is expensive or cannot be vectorized over
    queries."""
    operands = dict(attention.operands)
    mask = operands.pop("mask")
    buffer = named[mask.buffer]
    loop = buffer.data if isinstance(buffer, ComputedBuffer) else None
    if type(loop) is not Pointwise or len(list(walk(loop.body))) > MAX_MASK:
        return None
    sizes = tuple(attention.parameters[name] for name in ("batch", "heads", "rows_each", "keys"))
    variables = _variables(sizes)
    position = sum((variable * stride for variable, stride in zip(variables, mask.strides, strict=True)), as_expr(mask.offset))
    body = substitute(loop.body, dict(zip(loop.variables, unflatten_index(position, loop.ranges), strict=True)))
    body = _inline_small_bodies(body, named)
    score = Load(float32, UNWRITTEN, as_expr(0))
    changed = _apply_mask(score, body)
    if loop.dtype not in (bool_, float32) or not _runs_along_queries(changed, variables):
        return None
    return replace(
        attention, **joined(attention, [buffer]), operands=operands,
        score=Pointwise(float32, sizes, variables, changed, attention.origin),
        parameters={**attention.parameters, "scores": UNWRITTEN, "empty_is_nan": False},
    )  # fmt: skip


def _apply_mask(score: Value, mask: Value) -> Value:
    """Apply a mask to a score: a bool selects it, a number is added to it."""
    lowest = Constant(float32, -math.inf)
    if mask.dtype is bool_:
        return Call(float32, "where", (mask, score, lowest))
    # The mask's condition can be tested before the score is known.
    if _is_call(mask, "where") and _is_number(mask.arguments[2], -math.inf):
        return Call(float32, "where", (mask.arguments[0], _apply_mask(score, mask.arguments[1]), lowest))
    return score if _is_number(mask, 0.0) else Call(float32, "add", (score, mask))


def _inline_small_bodies(value: Value, named: dict[str, Buffer]) -> Value:
    """Replace loads of cheap loops that read no memory by their bodies."""
    if isinstance(value, Load):
        return _find_small_body(value, named) or value
    if isinstance(value, Call):
        return replace(value, arguments=tuple(_inline_small_bodies(part, named) for part in value.arguments))
    return value


def _find_small_body(load: Load, named: dict[str, Buffer]) -> Value | None:
    buffer = named[load.buffer]
    loop = buffer.data if isinstance(buffer, ComputedBuffer) else None
    if type(loop) is not Pointwise or buffer.reads():
        return None
    nodes = list(walk(loop.body))
    if len(nodes) > MAX_BODY:
        return None
    return substitute(loop.body, dict(zip(loop.variables, unflatten_index(load.index, loop.ranges), strict=True)))
