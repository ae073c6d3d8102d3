"""Attention that a graph spells out is one kernel, whatever is done to its scores, and gives what eager gives."""

from __future__ import annotations

import math

import pytest

import rushlight as torch
from rushlight.aot.functionalize import functionalize
from rushlight.fx.proxy_tensor import capture
from rushlight.inductor.graph import GraphLowering
from rushlight.inductor.ir import TemplateBuffer
from rushlight.inductor.spelled_attention import fuse_attention
from rushlight.nn.attention.flex_attention import AuxRequest, create_block_mask, flex_attention
from tests.inductor.differences import difference

BIAS = torch.randn(2, 3, 300, 300)
SLOPES = torch.rand(3)
DOCUMENTS = torch.arange(300) // 37
TABLE = torch.randn(599, 3)
OFFSETS = torch.randn(3, 300)


def spelled(change):
    """Attention by hand, with a function of all scores."""
    return lambda q, k, v: change(q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])).softmax(-1) @ v


def by_places(score_mod=None, mask_mod=None):
    def attend(q, k, v):
        mask = None
        if mask_mod is not None:
            mask = create_block_mask(mask_mod, None, None, q.shape[2], k.shape[2], device="cpu")
        return flex_attention(q, k, v, score_mod or (lambda score, b, h, i, j: score), mask)

    return attend


def places(scores):
    return torch.arange(scores.shape[-2])[:, None], torch.arange(scores.shape[-1])


SPELLED = {
    "plain": spelled(lambda scores: scores),
    "bias": spelled(lambda scores: scores + BIAS[: len(scores), :, : scores.shape[2], : scores.shape[3]]),
    "capped": spelled(lambda scores: 20 * torch.tanh(scores / 20)),
    "causal": spelled(lambda scores: scores.masked_fill(torch.ones(scores.shape[-2:]).triu(1).bool(), -math.inf)),
    "queries without keys": spelled(
        lambda scores: scores.masked_fill(places(scores)[0] % 50 == places(scores)[1] * 0, -math.inf)
    ),
    "NaN": spelled(lambda scores: torch.where(places(scores)[0] == 3 + places(scores)[1], math.nan, scores)),
    "infinite": spelled(lambda scores: torch.where(places(scores)[0] == 3 + places(scores)[1], math.inf, scores)),
    "slopes": by_places(lambda score, b, h, i, j: score - SLOPES[h] * (i - j).abs()),
    "table": by_places(lambda score, b, h, i, j: score + TABLE[i - j + 299, h]),
    "offsets of queries": by_places(lambda score, b, h, i, j: score * OFFSETS[h, i]),
    "offsets of keys": by_places(lambda score, b, h, i, j: score + OFFSETS[h, j]),
    "window": by_places(None, lambda b, h, i, j: (i >= j) & (i - j < 60)),
    "documents": by_places(None, lambda b, h, i, j: DOCUMENTS[i] == DOCUMENTS[j]),
    "seldom": by_places(None, lambda b, h, i, j: (i % 50 > 0) & (j >= 150)),
    "of heads": by_places(lambda score, b, h, i, j: score / (1 + h), lambda b, h, i, j: (h > 0) | (i < j)),
}


def tensors(batch, heads, rows, keys, depth, apart=False):
    torch.manual_seed(rows)
    if apart:
        return [torch.randn(batch, n, heads, depth).transpose(1, 2) for n in (rows, keys, keys)]
    return [torch.randn(batch, heads, n, depth) for n in (rows, keys, keys)]


def lowered(function, inputs):
    with torch.no_grad():
        module = capture(function, tuple(inputs)).module
    functionalize(module)
    return fuse_attention(GraphLowering(module).run())


def templates(function, inputs):
    """The kinds of templates into which a function is lowered."""
    return [buffer.kind for buffer in lowered(function, inputs).buffers if isinstance(buffer, TemplateBuffer)]


def check(function, inputs, dynamic=False):
    compiled = torch.compile(function, fullgraph=True, dynamic=dynamic)
    with torch.no_grad():
        assert not difference(function, compiled, lambda: [tensor.clone() for tensor in inputs])
    return compiled


@pytest.mark.parametrize("name", SPELLED)
def test_functions_of_scores(name):
    check(SPELLED[name], tensors(2, 3, 260, 260, 32))


@pytest.mark.parametrize("name", ["bias", "window", "slopes", "seldom"])
@pytest.mark.parametrize("sizes", [(1, 3, 250, 290, 64), (2, 3, 290, 230, 8), (1, 3, 281, 260, 20), (1, 3, 260, 260, 160)], ids=str)
def test_sizes(name, sizes):
    check(SPELLED[name], tensors(*sizes))


def test_heads_that_lie_apart():
    check(SPELLED["capped"], tensors(2, 3, 300, 250, 32, apart=True))


@pytest.mark.parametrize("name", ["plain", "slopes", "window"])
def test_open_sizes(name):
    compiled = check(SPELLED[name], tensors(1, 3, 280, 270, 32), dynamic=True)
    for rows, keys in ((300, 290), (40, 3), (2, 300)):
        inputs = tensors(1, 3, rows, keys, 32)
        with torch.no_grad():
            assert not difference(SPELLED[name], compiled, lambda inputs=inputs: inputs)


def test_heads_that_share_keys():
    def attend(q, k, v):
        return flex_attention(q, k, v, lambda score, b, h, i, j: score + h, enable_gqa=True)

    q, _, _ = tensors(1, 4, 250, 300, 32)
    _, k, v = tensors(1, 2, 250, 300, 32)
    check(attend, [q, k, v])


def test_one_kernel_does_it_all():
    inputs = tensors(2, 3, 260, 260, 32)
    for name in ("plain", "bias", "capped", "table", "window", "documents"):
        assert templates(SPELLED[name], inputs) == ["bgemm", "attention"], name  # the first is dropped, as nothing reads it


def test_what_else_is_read_stays():
    inputs = tensors(2, 3, 260, 260, 32)

    def with_weights(q, k, v):
        weights = (q @ k.transpose(-2, -1)).softmax(-1)
        return weights @ v, weights

    def with_highest(q, k, v):
        return flex_attention(q, k, v, return_aux=AuxRequest(max_scores=True))

    for function in (with_weights, with_highest):
        assert "attention" not in templates(function, inputs)
        check(function, inputs)


MASKED = {
    "causal": lambda q, i, j: i >= j,
    "lengths": lambda q, i, j: (i >= j) & (j < LENGTHS[: len(q), None, None, None]),
    "added": lambda q, i, j: torch.where(i - j < 50, 0.0, -math.inf) * (1 + i / 100),
    "of heads": lambda q, i, j: (i - j).abs() * SLOPES[None, :, None, None] * -0.01,
    "queries without keys": lambda q, i, j: (i % 7 > 0) & (i >= j),
}
LENGTHS = torch.tensor([220, 33])


def with_mask(name):
    def attend(q, k, v):
        i, j = torch.arange(q.shape[2])[:, None], torch.arange(k.shape[2])
        return torch.nn.functional.scaled_dot_product_attention(q, k, v, MASKED[name](q, i, j))

    return attend


@pytest.mark.parametrize("sizes", [(2, 3, 270, 260, 32), (1, 3, 33, 2100, 40), (2, 3, 2, 33_000, 64)], ids=str)
@pytest.mark.parametrize("name", MASKED)
def test_calculated_masks(name, sizes):
    inputs = tensors(*sizes)
    check(with_mask(name), inputs)
    found = [buffer for buffer in lowered(with_mask(name), inputs).buffers if isinstance(buffer, TemplateBuffer)]
    assert len(found) == 1 and found[0].score.body.name == ("add" if name in ("added", "of heads") else "where")


def test_calculated_masks_with_gradients():
    def gradients(function):
        def run(q, k, v):
            leaves = [tensor.detach().requires_grad_() for tensor in (q, k, v)]
            return torch.autograd.grad(function(*leaves).sin().sum(), leaves)

        return run

    function = with_mask("lengths")
    inputs = tensors(2, 3, 270, 260, 32)
    compiled = torch.compile(function, fullgraph=True)
    assert not difference(gradients(function), gradients(compiled), lambda: [tensor.clone() for tensor in inputs])


def test_few_scores_stay_in_the_caches():
    assert "attention" not in templates(SPELLED["plain"], tensors(9, 9, 60, 60, 32))


def test_an_index_out_of_range_is_an_error():
    short = torch.randn(100)
    compiled = torch.compile(by_places(lambda score, b, h, i, j: score + short[i]), fullgraph=True)
    with pytest.raises(IndexError):
        compiled(*tensors(2, 3, 260, 260, 32))


def test_gradients():
    def gradients(function):
        def run(q, k, v):
            leaves = [tensor.detach().requires_grad_() for tensor in (q, k, v)]
            return torch.autograd.grad(function(*leaves).sin().sum(), leaves)

        return run

    function = SPELLED["slopes"]
    compiled = torch.compile(function, fullgraph=True)
    inputs = tensors(1, 3, 260, 260, 32)
    assert not difference(gradients(function), gradients(compiled), lambda: [tensor.clone() for tensor in inputs])


def test_prints():
    text = str(lowered(SPELLED["window"], tensors(2, 3, 260, 260, 32)))
    attention = text[text.index("template='attention'") :]
    assert "score=Pointwise(" in attention and "b, h, q, k = index" in attention and "ops.where(" in attention
