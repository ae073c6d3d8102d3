"""Attention with functions of scores: values and block masks are torch's; compiled, it is one graph."""

from __future__ import annotations

import pytest

import rushlight
from rushlight.nn.attention import flex_attention as flex


def numbers(torch, *sizes):
    count = 1
    for size in sizes:
        count *= size
    return (torch.arange(count) % 17 - 8).reshape(sizes) / 8


def theirs():
    torch = pytest.importorskip("torch")
    import torch.nn.attention.flex_attention as other

    return torch, other


def both(program):
    torch, other = theirs()
    found, wanted = program(rushlight, flex), program(torch, other)
    found, wanted = (part if isinstance(part, tuple | list) else (part,) for part in (found, wanted))
    for one, two in zip(found, wanted, strict=True):
        if hasattr(two, "shape") and hasattr(two, "tolist"):
            assert list(one.shape) == list(two.shape) and str(one.dtype) == str(two.dtype)
            assert torch.allclose(torch.tensor(one.tolist()).float(), two.float(), atol=1e-5)
        else:
            assert one == two


def causal(b, h, q, k):
    return q >= k


def window(b, h, q, k):
    return (q - k <= 3) & (k - q <= 3)


def inputs(torch, heads=4, shared=4, length=20, other=20):
    return numbers(torch, 2, heads, length, 8), numbers(torch, 2, shared, other, 8), numbers(torch, 2, shared, other, 6)


def alibi(torch):
    slopes = numbers(torch, 4)
    return lambda score, b, h, q, k: score + slopes[h] * (k - q)


def relative(torch):
    table = numbers(torch, 41)
    return lambda score, b, h, q, k: (score + table[q - k + 20]) / (b + 1)


def capped(torch):
    return lambda score, b, h, q, k: (score / 5).tanh() * 5


@pytest.mark.oracle
@pytest.mark.parametrize("make", [None, alibi, relative, capped])
@pytest.mark.parametrize("mask", [None, causal, window])
def test_scores_and_masks(make, mask):
    def program(torch, flex):
        block_mask = None if mask is None else flex.create_block_mask(mask, None, None, 20, 20, device="cpu")
        score_mod = None if make is None else make(torch)
        plain = flex.flex_attention(*inputs(torch), score_mod=score_mod, block_mask=block_mask)
        return plain, *flex.flex_attention(*inputs(torch), score_mod, block_mask, scale=0.3, return_lse=True)

    both(program)


@pytest.mark.oracle
def test_shared_heads_and_queries_that_meet_no_key():
    def program(torch, flex):
        block_mask = flex.create_block_mask(lambda b, h, q, k: (q > 3) & (k < q), 2, 4, 10, 20, device="cpu")
        return flex.flex_attention(*inputs(torch, 4, 2, 10), block_mask=block_mask, enable_gqa=True, return_lse=True)[0]

    both(program)


@pytest.mark.oracle
@pytest.mark.parametrize("size", [128, (64, 128), 32])
def test_block_masks(size):
    def program(torch, flex):
        joined = flex.and_masks(causal, flex.or_masks(lambda b, h, q, k: q - k < 40, lambda b, h, q, k: h > 0))
        mask = flex.create_block_mask(joined, 2, 2, 200, 300, device="cpu", BLOCK_SIZE=size)
        named = [getattr(mask, name) for name in mask._TENSOR_ATTRS[:8]]
        row, adjusted = mask[0, 1], mask._adjust(100, 100)
        return [
            *named, mask.to_dense(), mask.shape, mask.numel(), mask.sparsity(), mask.BLOCK_SIZE, mask.seq_lengths,
            str(mask), mask.to_string(limit=1), mask.to_string((2, 2)), row.shape, row.kv_indices, adjusted.shape,
            adjusted.to_dense(), flex.create_mask(joined, 2, 2, 10, 12, device="cpu"),
            flex.create_mask(lambda s, b, h, q, k: s.masked_fill(q < k, float("-inf")), None, None, 4, 4, device="cpu"),
        ]  # fmt: skip

    both(program)


def of_error(call):
    try:
        call()
    except Exception as error:
        return type(error), str(error)
    return None


@pytest.mark.oracle
@pytest.mark.parametrize("call", [
    lambda torch, flex, q: flex.flex_attention(q, q[:, :2], q[:, :2]),
    lambda torch, flex, q: flex.flex_attention(q[0], q, q),
    lambda torch, flex, q: flex.flex_attention(q, q[..., :4], q),
    lambda torch, flex, q: flex.flex_attention(q[:, :3], q[:, :2], q[:, :2], enable_gqa=True),
    lambda torch, flex, q: flex.flex_attention(q, q, q, block_mask=flex.create_block_mask(causal, 1, 1, 9, 9, device="cpu")),
    lambda torch, flex, q: flex.flex_attention(q, q, q, block_mask=flex.create_block_mask(causal, 1, 1, 99, 99, device="cpu")),
    lambda torch, flex, q: flex.create_block_mask(lambda x: x, None, None, 9, 9, device="cpu"),
    lambda torch, flex, q: flex.and_masks(3),
])  # fmt: skip
def test_what_is_refused(call):
    torch, other = theirs()
    found, wanted = (of_error(lambda t=t, f=f: call(t, f, numbers(t, 1, 4, 20, 8))) for t, f in ((rushlight, flex), (torch, other)))
    assert found is not None and found[0] is wanted[0] and found[1][:40] == wanted[1][:40]


@pytest.mark.parametrize("backend", ["eager", "inductor"])
def test_compiled_it_is_one_graph(backend):
    from rushlight._dynamo.testing import CompileCounterWithBackend

    score_mod = alibi(rushlight)

    def attend(q, k, v):
        mask = flex.create_block_mask(flex.and_masks(causal, window), 2, None, 20, 20)
        return flex.flex_attention(q, k, v, score_mod, mask), flex.flex_attention(q, k, v, return_lse=True)[1]

    counter = CompileCounterWithBackend(backend)
    compiled = rushlight.compile(attend, backend=counter, fullgraph=True)
    for one, other in zip(compiled(*inputs(rushlight)), attend(*inputs(rushlight)), strict=True):
        assert rushlight.allclose(one, other, atol=1e-5)
    assert counter.frame_count == 1


@pytest.mark.parametrize("is_compiled", [False, True])
def test_gradients(is_compiled):
    block_mask = flex.create_block_mask(causal, None, None, 20, 20)

    def attend(q, k, v):
        return flex.flex_attention(q, k, v, capped(rushlight), block_mask)

    def plainly(q, k, v):
        scores = ((q @ k.mT / 8**0.5) / 5).tanh() * 5
        return scores.masked_fill(rushlight.ones(20, 20).tril() == 0, -float("inf")).softmax(-1) @ v

    found = []
    for function in (rushlight.compile(attend, fullgraph=True) if is_compiled else attend, plainly):
        given = [tensor.clone().requires_grad_() for tensor in inputs(rushlight)]
        function(*given).sin().sum().backward()
        found.append([tensor.grad for tensor in given])
    for one, other in zip(*found, strict=True):
        assert rushlight.allclose(one, other, atol=1e-5)
