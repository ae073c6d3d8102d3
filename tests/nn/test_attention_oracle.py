"""Attention, functional and as modules, against PyTorch."""

from __future__ import annotations

import numpy as np
import pytest

import rushlight
from rushlight import nn
from tests.nn.oracle import agree, arrays, run

pytestmark = pytest.mark.oracle


def attend(torch, q, k, v, mask=None, **options):
    return torch.nn.functional.scaled_dot_product_attention(q, k, v, mask, **options)


@pytest.mark.parametrize("shapes", [
    ((2, 3, 4, 8), (2, 3, 5, 8), (2, 3, 5, 8)),
    ((2, 3, 4, 8), (2, 3, 5, 8), (2, 3, 5, 6)),
    ((3, 4, 8), (3, 5, 8), (3, 5, 8)),
    ((4, 8), (5, 8), (5, 8)),
    ((2, 3, 4, 0), (2, 3, 5, 0), (2, 3, 5, 6)),
    ((2, 3, 4, 0), (2, 3, 5, 0), (2, 3, 5, 0)),
])  # fmt: skip
def test_scaled_dot_product_attention(shapes):
    q, k, v = arrays(*shapes)
    (mask,) = arrays((4, 5), seed=5)
    agree(attend, q, k, v)
    agree(lambda *t: attend(*t, scale=0.3), q, k, v)
    agree(lambda *t: attend(*t, is_causal=True), q, k, v)
    agree(lambda torch, *t: attend(torch, *t, torch.from_numpy(mask)), q, k, v)
    agree(lambda torch, *t: attend(torch, *t, torch.from_numpy(mask > 0)), q, k, v)
    agree(attend, q, k, v, mask)


def test_heads_of_size_zero_compiled():
    q, v = rushlight.ones(2, 3, 4, 0, requires_grad=True), rushlight.randn(2, 3, 4, 5, requires_grad=True)
    found = rushlight.compile(attend)(rushlight, q, q, v)
    rushlight.testing.assert_close(found, attend(rushlight, q, q, v))
    found.sum().backward()
    assert q.grad.shape == q.shape and rushlight.allclose(v.grad, rushlight.ones(2, 3, 4, 5))


def test_masked_out_rows_give_zeros():
    q, k, v = arrays((2, 3, 4, 8), (2, 3, 5, 8), (2, 3, 5, 8))
    mask = np.ones((4, 5), bool)
    mask[1] = False
    agree(lambda torch, *t: attend(torch, *t, torch.from_numpy(mask)), q, k, v)
    agree(lambda torch, *t: attend(torch, *t, torch.from_numpy(mask)), q[0], k[0], v[0])
    full = np.broadcast_to(mask, (2, 3, 4, 5)).copy()
    agree(lambda torch, *t: attend(torch, *t, torch.from_numpy(full)), q, k, v)


def test_grouped_queries():
    agree(lambda *t: attend(*t, enable_gqa=True), *arrays((2, 6, 4, 8), (2, 2, 5, 8), (2, 2, 5, 8)))


def copied(torch, build, **options):
    """The module that `build` makes, for both libraries, with the same float64 weights."""
    theirs = build(torch, **options).double()
    mine = build(rushlight, **options).double()
    mine.load_state_dict({name: rushlight.from_numpy(value.numpy()) for name, value in theirs.state_dict().items()})
    return mine, theirs


def same(mine, theirs, call, *inputs, rtol=1e-8, atol=1e-9):
    """Assert equal results, input gradients and parameter gradients."""
    torch = pytest.importorskip("torch")
    expected = run(torch, lambda library, *t: call(theirs, library, *t), inputs, True)
    actual = run(rushlight, lambda library, *t: call(mine, library, *t), inputs, True)
    gradients = {name: p.grad for name, p in theirs.named_parameters()}
    for name, parameter in mine.named_parameters():
        assert (parameter.grad is None) == (gradients[name] is None), name
        if parameter.grad is not None:
            actual.append(parameter.grad.numpy())
            expected.append(gradients[name].numpy())
    for a, b in zip(actual, expected, strict=True):
        np.testing.assert_allclose(a, b, rtol=rtol, atol=atol)


HEADS = [
    {},
    {"bias": False},
    {"batch_first": True},
    {"add_bias_kv": True},
    {"add_zero_attn": True},
    {"kdim": 8, "vdim": 8},
    {"kdim": 5, "vdim": 7},
]


@pytest.mark.parametrize("need_weights", [True, False])
@pytest.mark.parametrize("options", HEADS)
def test_multihead_attention(options, need_weights):
    torch = pytest.importorskip("torch")
    mine, theirs = copied(torch, lambda library, **o: library.nn.MultiheadAttention(8, 2, **o), **options)
    assert repr(mine) == repr(theirs)
    q, k, v = arrays((4, 3, 8), (5, 3, options.get("kdim", 8)), (5, 3, options.get("vdim", 8)))
    if options.get("batch_first"):
        q, k, v = (x.swapaxes(0, 1).copy() for x in (q, k, v))
    padding = np.array([[False, False, True, False, True], [False] * 5, [False, True, True, True, True]])
    mask = np.triu(np.ones((4, 5), bool), 2)

    def call(module, library, q, k, v, **extra):
        masks = {name: library.from_numpy(value) for name, value in extra.items()}
        return module(q, k, v, need_weights=need_weights, average_attn_weights="attn_mask" in masks, **masks)

    same(mine, theirs, call, q, k, v)
    same(mine, theirs, lambda *t: call(*t, key_padding_mask=padding), q, k, v)
    same(mine, theirs, lambda *t: call(*t, attn_mask=mask), q, k, v)
    same(mine, theirs, lambda *t: call(*t, attn_mask=arrays((6, 4, 5))[0], key_padding_mask=padding * -2.0), q, k, v)
    if not options:
        same(mine, theirs, lambda m, library, q: m(q, q, q, need_weights=need_weights), q)
        same(mine, theirs, lambda m, library, q, k: m(q, k, k, need_weights=need_weights), q, k)
        same(mine, theirs, lambda m, library, q: m(q, q, q, need_weights=need_weights), q[:, 0].copy())


def test_transformer_layers():
    torch = pytest.importorskip("torch")
    source, target = arrays((4, 3, 8), (5, 3, 8))
    for options in ({}, {"norm_first": True, "activation": "gelu"}, {"bias": False}):

        def encoder(library, **o):
            return library.nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0, **o)

        mine, theirs = copied(torch, encoder, **options)
        assert repr(mine) == repr(theirs)
        same(mine, theirs, lambda m, library, x: m(x), source)

        def decoder(library, **o):
            return library.nn.TransformerDecoderLayer(8, 2, 16, dropout=0.0, **o)

        mine, theirs = copied(torch, decoder, **options)
        assert repr(mine) == repr(theirs)
        same(mine, theirs, lambda m, library, x, y: m(x, y), target, source)


@pytest.mark.filterwarnings("ignore:enable_nested_tensor")
def test_transformer():
    torch = pytest.importorskip("torch")
    source, target = arrays((4, 3, 8), (5, 3, 8))
    mine, theirs = copied(torch, lambda library: library.nn.Transformer(8, 2, 2, 2, 16, dropout=0.0))
    assert repr(mine) == repr(theirs)
    assert sum(p.numel() for p in mine.parameters()) == sum(p.numel() for p in theirs.parameters())

    def call(module, library, x, y):
        mask = library.nn.Transformer.generate_square_subsequent_mask(5, dtype=library.float64)
        return module(x, y, tgt_mask=mask)

    same(mine, theirs, call, source, target)
    padding = np.array([[False, False, True, True], [False] * 4, [False, True, True, True]])
    same(
        mine, theirs, lambda m, library, x, y: m(x, y, src_key_padding_mask=library.from_numpy(padding)), source, target
    )


def test_errors_of_multihead_attention():
    attention = nn.MultiheadAttention(8, 2)
    x = rushlight.zeros(4, 3, 6)
    with pytest.raises(AssertionError, match="was expecting embedding dimension of 8, but got 6"):
        attention(x, x, x)
    with pytest.raises(AssertionError, match="embed_dim must be divisible by num_heads"):
        nn.MultiheadAttention(8, 3)
    y = rushlight.zeros(4, 3, 8)
    with pytest.raises(RuntimeError, match="Need attn_mask if specifying the is_causal hint"):
        attention(y, y, y, is_causal=True)
