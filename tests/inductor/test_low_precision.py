"""Compiled products, attention and convolutions of bfloat16 and float16, summed in float32: about as near to float64 as eager is."""

from __future__ import annotations

import copy

import pytest

import rushlight as torch
from rushlight.inductor import build, costs
from rushlight.nn import functional as F
from tests.inductor.native_nodes import source_of

KINDS = (torch.bfloat16, torch.float16)
SHAPES = ((5, 7, 9), (1, 64, 33), (13, 128, 1), (40, 31, 70), (1, 1, 1))


def _error(result, exact) -> float:
    return float((result.double() - exact).abs().max())


def _check(function, *tensors) -> None:
    """The compiled function is compiled as a whole, keeps the dtype, and is about as exact as eager."""
    exact = function(*(tensor.double() for tensor in tensors))
    with torch.no_grad():
        eager, got = function(*tensors), torch.compile(function, fullgraph=True)(*tensors)
    assert got.dtype is eager.dtype and got.shape == eager.shape
    assert _error(got, exact) <= 1.5 * _error(eager, exact) + 1e-6


def _matrices(rows: int, depth: int, columns: int, kind):
    torch.manual_seed(depth)
    return torch.randn(rows, depth).to(kind), torch.randn(depth, columns).to(kind)


@pytest.mark.parametrize("kind", KINDS, ids=str)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_products(kind, shape):
    a, b = _matrices(*shape, kind)
    _check(lambda a, b: a @ b, a, b)
    _check(lambda a, b: (a @ b).t() + 1, a, b)
    _check(lambda a, b: torch.relu(torch.addmm(b[0], a, b)), a, b)


@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_strided_and_batched_products(kind):
    a, b = _matrices(24, 31, 40, kind)
    _check(lambda a, b: a @ b, a.t().contiguous().t(), b.t().contiguous().t())
    _check(lambda a, b: a[::2, 1:] @ b[1:, ::3], a, b)
    _check(lambda a, b: a[:, :30:2] @ b[:30:2], a, b)
    _check(lambda a, b: torch.bmm(a.expand(3, -1, -1), b.expand(3, -1, -1)), a, b)
    _check(lambda a, b: torch.bmm(a.view(4, 6, 31), b.view(31, 4, 10).transpose(0, 1)), a, b)


@pytest.mark.parametrize("kind", KINDS, ids=str)
@pytest.mark.parametrize("shape", SHAPES[:2], ids=str)
def test_models_keep_their_weights_small(kind, shape):
    rows, depth, columns = shape
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(depth, columns), torch.nn.GELU(), torch.nn.Linear(columns, 17)).to(kind)
    x = torch.randn(rows, depth).to(kind)
    compiled = torch.compile(model, fullgraph=True)
    with torch.no_grad():
        for _ in range(2):  # weights are packed at the first call, and again once they have changed
            exact = torch.nn.functional.linear(
                F.gelu(F.linear(x.double(), model[0].weight.double(), model[0].bias.double())),
                model[2].weight.double(), model[2].bias.double(),
            )  # fmt: skip
            assert _error(compiled(x), exact) <= 2 * _error(model(x), exact) + 1e-6
            model[0].weight.mul_(0.5)


@pytest.mark.parametrize("shape", [(5, 7, 9), (1, 64, 33), (13, 128, 5), (40, 31, 70), (1, 2, 2), (30, 66, 40)], ids=str)
def test_pairs(shape, monkeypatch, tmp_path):
    """What processors run that multiply bfloat16 in pairs, in the same words of C++ on this one."""
    monkeypatch.setenv("RUSHLIGHT_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(costs, "multiplies_pairs", lambda: True)
    rows, depth, columns = shape
    torch.manual_seed(0)
    parts = torch.nn.Linear(depth, columns), torch.nn.SiLU(), torch.nn.LayerNorm(columns), torch.nn.Linear(columns, 17)
    model = torch.nn.Sequential(*parts).to(torch.bfloat16)
    compiled = torch.compile(model, fullgraph=True)
    assert source_of(model, torch.randn(rows, depth).to(torch.bfloat16)).count("rl::word_gemm(") == 2
    with torch.no_grad():
        for count in (rows, rows, rows + 1, 2 * rows + 3):
            x = torch.randn(count, depth).to(torch.bfloat16)
            exact = copy.deepcopy(model).double()(x.double())
            assert _error(compiled(x), exact) <= 2 * _error(model(x), exact) + 1e-6
            assert _error(compiled(x.t().contiguous().t()), exact) <= 2 * _error(model(x), exact) + 1e-6
            model[0].weight.mul_(0.5)


@pytest.mark.parametrize("shape", [(5, 7, 9), (2, 128, 64), (40, 31, 70), (13, 2, 96), (30, 66, 40)], ids=str)
def test_pairs_of_what_changes(shape, monkeypatch, tmp_path):
    """The same of two factors of which none is constant, in each order of memory."""
    monkeypatch.setenv("RUSHLIGHT_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(costs, "multiplies_pairs", lambda: True)
    a, b = _matrices(*shape, torch.bfloat16)
    assert "rl::word_gemm(" in source_of(lambda a, b: a @ b, a, b)
    for left in (a, a.t().contiguous().t()):
        for right in (b, b.t().contiguous().t()):
            _check(lambda a, b: a @ b, left, right)
            _check(lambda a, b: torch.relu(torch.addmm(b[0], a[:, 1:], b[1:])), left, right)


@pytest.mark.parametrize("kind", KINDS, ids=str)
@pytest.mark.parametrize("causal", [False, True])
def test_attention(kind, causal):
    torch.manual_seed(0)
    query, key, value = (torch.randn(2, 3, rows, 16).to(kind) for rows in (21, 37, 37))
    _check(lambda q, k, v: F.scaled_dot_product_attention(q, k, v, is_causal=causal), query, key, value)
    if not causal:
        mask = torch.randn(21, 37).to(kind)
        _check(lambda q, k, v, m: F.scaled_dot_product_attention(q, k, v, attn_mask=m), query, key, value, mask)


@pytest.mark.parametrize("kind", KINDS, ids=str)
@pytest.mark.parametrize("groups", [1, 4, 8])
def test_convolutions(kind, groups):
    torch.manual_seed(0)
    image, weight, bias = torch.randn(2, 8, 9, 7), torch.randn(16, 8 // groups, 3, 3), torch.randn(16)
    operands = (operand.to(kind) for operand in (image, weight, bias))
    _check(lambda x, w, b: torch.relu(F.conv2d(x, w, b, padding=1, groups=groups)), *operands)


WORDS = {
    "image": ((2, 32, 9, 7), (24, 32, 3, 3), {"padding": 1}),
    "odd": ((1, 5, 12, 11), (17, 5, 3, 3), {}),
    "strided": ((2, 34, 11, 12), (18, 34, 5, 3), {"stride": (3, 2), "padding": (2, 0)}),
    "dilated": ((1, 48, 15, 12), (16, 48, 3, 3), {"dilation": 2, "padding": 2}),
    "deep": ((1, 700, 6, 5), (16, 700, 1, 1), {"stride": 2}),
    "pixels": ((2, 64, 7, 7), (48, 64, 1, 1), {}),
    "cut": ((1, 64, 50, 70), (16, 64, 3, 3), {"padding": 1}),
    "few": ((1, 32, 3, 3), (16, 32, 3, 3), {}),
    "signal": ((2, 32, 40), (16, 32, 5), {"stride": 2, "padding": 2}),
}


@pytest.mark.parametrize("tiled", [True, False])
@pytest.mark.parametrize("name", WORDS)
def test_convolutions_by_words(name, tiled, monkeypatch, tmp_path):
    """What processors with tile registers for bfloat16 run; in vector registers where this one has none, or without `tiled`."""
    monkeypatch.setenv("RUSHLIGHT_CACHE_DIR", str(tmp_path))
    if not tiled:
        monkeypatch.setattr(build, "FLAGS", (*build.FLAGS, "-DRL_NO_TILES"))
        monkeypatch.setattr(build, "_archive", lambda compiler: None)
    monkeypatch.setattr(costs, "multiplies_in_tiles", lambda: True)
    size, weight, settings = WORDS[name]
    torch.manual_seed(0)
    operands = [torch.randn(*sizes).bfloat16() for sizes in (size, weight, weight[:1])]
    convolve = F.conv2d if len(size) == 4 else F.conv1d
    assert "rl::word_convolution(" in source_of(lambda x, w, b: convolve(x, w, b, **settings), *operands)
    _check(lambda x, w, b: torch.relu(convolve(x, w, b, **settings)), *operands)
    if len(size) == 4:
        operands[0] = operands[0].contiguous(memory_format=torch.channels_last)
        _check(lambda x, w, b: convolve(x, w, b, **settings), *operands)


NORMALISATIONS = {
    "layer": lambda x, weight, bias: F.layer_norm(x, (32,), weight, bias),
    "batch": lambda x, weight, bias: F.batch_norm(x, bias * 4, weight.abs() + 1, weight, bias),
    "group": lambda x, weight, bias: F.group_norm(x, 4, weight, bias),
}


@pytest.mark.parametrize("kind", KINDS, ids=str)
@pytest.mark.parametrize("weight_kind", [None, torch.float32], ids=["same", "float32"])
@pytest.mark.parametrize("name", NORMALISATIONS)
def test_normalisations_round_their_results_only(name, weight_kind, kind):
    """Means are far from zero: rounded ones would show."""
    torch.manual_seed(2)
    x = (torch.randn(16, 32) + 9.3).to(kind)
    weight, bias = (torch.randn(32).to(weight_kind or kind) for _ in range(2))
    _check(NORMALISATIONS[name], x, weight, bias)


@pytest.mark.parametrize("kind", KINDS, ids=str)
@pytest.mark.parametrize("name", ["softmax", "log_softmax"])
def test_softmax_rounds_its_results_only(name, kind):
    torch.manual_seed(0)
    x = (torch.randn(64, 37) * 30).to(kind)

    def run(x):
        return getattr(torch, name)(x, -1)

    with torch.no_grad():
        torch.testing.assert_close(torch.compile(run, fullgraph=True)(x), run(x), rtol=torch.finfo(kind).eps, atol=0)


def test_statistics_of_a_normalisation_have_their_own_type():
    x, weight = torch.randn(4, 8).bfloat16(), torch.randn(8)
    results = torch.compile(lambda x, weight: torch.native_layer_norm(x, [8], weight, None, 1e-5), fullgraph=True)(x, weight)
    assert [result.dtype for result in results] == [torch.bfloat16, torch.float32, torch.float32]
    torch.testing.assert_close(results, torch.native_layer_norm(x, [8], weight, None, 1e-5))


@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_extrema_are_found_again_among_values_that_are_calculated_again(kind):
    """What is kept is rounded, what is calculated again in the backward is compared with it as if it was."""
    given = (torch.arange(45).reshape(9, 5) % 7 / 3).to(kind)

    def function(x):
        return torch.sinh(x).amax(1), torch.cosh(x).amin(0)

    found = []
    for call in (function, torch.compile(function)):
        leaf = given.clone().requires_grad_()
        first, second = call(leaf)
        (first.sum() + second.sum()).backward()
        found.append((first.detach(), second.detach(), leaf.grad))
    for wanted, got in zip(*found, strict=True):
        torch.testing.assert_close(got, wanted, rtol=2e-2, atol=1e-2)


@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_variances_far_from_zero(kind):
    """Neither the mean nor the sum of which it is made is rounded: the one moves the result, the other may overflow."""
    torch.manual_seed(0)
    x = (torch.randn(3, 2000) + 100).to(kind)
    _check(lambda x: x.var(1), x)
    _check(lambda x: torch.var_mean(x, 0, correction=0)[0], x)
