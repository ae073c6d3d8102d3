"""Attention and its gradients as native code agree with eager's."""

from __future__ import annotations

import warnings

import pytest

import rushlight as torch
from rushlight.nn import functional as F
from tests.inductor.differences import difference

MASKS = {
    "none": lambda batch, rows, keys: None,
    "bool": lambda batch, rows, keys: torch.rand(rows, keys) > 0.3,
    "without keys": lambda batch, rows, keys: torch.arange(rows)[:, None] > torch.arange(keys) % 3,
    "added": lambda batch, rows, keys: torch.randn(batch, 1, rows, keys),
    "of keys": lambda batch, rows, keys: torch.randn(batch, 1, 1, keys),
}


def gradients(function, mask, causal):
    def run(query, key, value, weight):
        leaves = [tensor.detach().requires_grad_() for tensor in (query, key, value)]
        result = function(*leaves, mask, causal)
        return (result.detach(), *torch.autograd.grad((result * weight).sum(), leaves))

    return run


def attend(query, key, value, mask, causal):
    return F.scaled_dot_product_attention(query, key, value, attn_mask=mask, is_causal=causal)


def check(batch, heads, rows, keys, depth, mask="none", causal=False, apart=False, dynamic=None):
    torch.manual_seed(rows)
    chosen = MASKS[mask](batch, rows, keys)

    def heads_of(length):
        if apart:
            return torch.randn(batch, length, 3, heads, depth)[:, :, 1].transpose(1, 2)
        return torch.randn(batch, heads, length, depth)

    inputs = [heads_of(rows), heads_of(keys), heads_of(keys), torch.randn(batch, heads, rows, depth)]
    compiled = torch.compile(attend, fullgraph=True, dynamic=dynamic)
    with warnings.catch_warnings():
        warnings.filterwarnings("error", message="compile")
        problem = difference(
            gradients(attend, chosen, causal), gradients(compiled, chosen, causal), lambda: [item.clone() for item in inputs]
        )
    assert not problem


@pytest.mark.parametrize("mask", MASKS)
@pytest.mark.parametrize("shape", [(2, 3, 40, 17, 16), (1, 2, 5, 7, 8)], ids=str)
def test_masks(mask, shape):
    check(*shape, mask=mask)


@pytest.mark.parametrize("shape", [(2, 2, 40, 40, 16), (1, 3, 150, 150, 64), (2, 1, 33, 5, 4), (1, 1, 5, 33, 4)], ids=str)
def test_causal(shape):
    check(*shape, causal=True)


@pytest.mark.parametrize("depth", [1, 3, 20, 129, 256])
def test_depths(depth):
    check(1, 2, 35, 34, depth, apart=True)


@pytest.mark.parametrize("mask", ["none", "bool", "added"])
def test_open_sizes(mask):
    check(2, 2, 40, 17, 16, mask=mask, dynamic=True)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_small_types(dtype):
    leaves = [torch.randn(2, 2, 20, 16).to(dtype).requires_grad_() for _ in range(3)]
    weight = torch.randn(2, 2, 20, 16)
    found = []
    for function in (attend, torch.compile(attend, fullgraph=True)):
        result = function(*leaves, None, True)
        found.append([result, *torch.autograd.grad((result.float() * weight).sum(), leaves)])
    for ours, theirs in zip(found[1], found[0], strict=True):
        assert ours.dtype is dtype
        torch.testing.assert_close(ours.float(), theirs.float(), rtol=5e-2, atol=5e-2)


def test_gradients_do_not_share_memory():
    leaves = [torch.randn(1, 2, 8, 4).requires_grad_() for _ in range(3)]
    found = torch.autograd.grad(torch.compile(attend)(*leaves, None, False).sum(), leaves)
    assert len({value.untyped_storage().data_ptr() for value in found}) == 3


def test_no_eager_kernel_is_left(capsys):
    leaves = [torch.randn(1, 2, 8, 4).requires_grad_() for _ in range(3)]
    torch.compile(attend, options={"logs": frozenset({"graph_breaks"})})(*leaves, None, False).sum().backward()
    assert "eager kernels" not in "".join(capsys.readouterr())
