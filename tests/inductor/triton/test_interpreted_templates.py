"""Triton kernels of products, convolutions, attention and whole models in Triton's interpreter."""

from __future__ import annotations

import pytest

import rushlight as torch
from tests.inductor.triton.interpreted import check

F = torch.nn.functional
CLOSE = {"rtol": 1e-4, "atol": 1e-4}
HALF = {"rtol": 3e-2, "atol": 8e-2}
attention = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu
attention_backward = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu_backward
convolution_backward = torch.ops.aten.convolution_backward


def test_products_with_epilogues():
    a, b, bias = torch.randn(33, 40), torch.randn(40, 50), torch.randn(50)
    check(lambda a, b, c: (F.gelu(a @ b + c), torch.relu(F.linear(b.t(), a, None))), a, b, bias, **CLOSE)
    check(lambda a, b: (a.t().contiguous().t() @ b, a @ b[:, ::2], a @ b[:, 0], a[0] @ b[:, 1]), a, b, **CLOSE)
    check(lambda a, b: torch.matmul(a, b.transpose(-1, -2)), torch.randn(2, 3, 17, 20), torch.randn(2, 3, 18, 20), **CLOSE)


@pytest.mark.parametrize("kind", [torch.bfloat16, torch.float16])
def test_products_of_halves_stay_halves(kind):
    a, b, bias = torch.randn(33, 40).to(kind), torch.randn(40, 50).to(kind), torch.randn(50).to(kind)
    pieces = check(lambda a, b, c: F.gelu(a @ b + c), a, b, bias, **HALF)
    assert "left_0 = tl.load(in_ptr0 + (k_across + 40*x), x_mask & k_across_mask, other=0)\n" in pieces.source


def test_programs_share_the_depth_of_products_with_few_results():
    a, b, bias = torch.randn(20, 9000), torch.randn(9000, 40), torch.randn(40)
    pieces = check(lambda a, b, c: F.gelu(a @ b + c), a, b, bias, rtol=1e-3, atol=1e-2)
    ((_, program),) = pieces.programs
    assert [launch.kind for launch in program.launches] == ["product", "sums"]
    check(lambda a, b: a @ b, torch.randn(3, 5, 9000), torch.randn(3, 9000, 4), rtol=1e-3, atol=1e-2)
    check(lambda a, b: a @ b, a.bfloat16(), b.bfloat16(), rtol=3e-2, atol=0.5)


@pytest.mark.parametrize("kind", [torch.float64, torch.int64])
def test_products_summed_in_their_own_type(kind):
    check(lambda a, b: a @ b, (torch.randn(9, 7) * 5).to(kind), (torch.randn(7, 5) * 5).to(kind))


def test_products_of_bytes():
    a, b = (torch.randint(-100, 100, size).to(torch.int8) for size in ((20, 40), (40, 24)))
    check(lambda a, b: torch._int_mm(a, b), a, b)
    check(lambda x, w, s: torch.ops.aten._weight_int8pack_mm(x, w, s), torch.randn(20, 40), b.t().contiguous(), torch.rand(24),
          rtol=1e-3, atol=1e-2)  # fmt: skip


CONVOLUTIONS = {
    "plain": ((6, 4, 3, 3), {"padding": 1}), "pointwise": ((6, 4, 1, 1), {}), "strided": ((6, 4, 3, 3), {"padding": 1, "stride": 2}),
    "dilated": ((6, 4, 3, 3), {"padding": 2, "dilation": 2}), "grouped": ((6, 2, 3, 3), {"padding": 1, "groups": 2}),
    "depthwise": ((4, 1, 3, 3), {"padding": 1, "groups": 4, "stride": 2}),
}  # fmt: skip


@pytest.mark.parametrize("memory_format", [torch.contiguous_format, torch.channels_last])
@pytest.mark.parametrize("name", CONVOLUTIONS)
def test_convolutions_and_their_gradients(name, memory_format):
    size, options = CONVOLUTIONS[name]
    x, w = torch.randn(2, 4, 7, 6).contiguous(memory_format=memory_format), torch.randn(*size)
    check(lambda x, w: torch.relu(F.conv2d(x, w, **options)), x, w, **CLOSE)
    grad = torch.randn(*F.conv2d(x, w, **options).shape).contiguous(memory_format=memory_format)
    steps = [[options.get(key, default)] * 2 for key, default in (("stride", 1), ("padding", 0), ("dilation", 1))]
    check(lambda g, x, w: convolution_backward(g, x, w, [w.shape[0]], *steps, False, [0, 0], options.get("groups", 1), [True] * 3),
          grad, x, w, rtol=1e-3, atol=1e-3)  # fmt: skip


def test_convolutions_of_other_ranks():
    check(lambda x, w: F.conv1d(x, w, stride=2, padding=1), torch.randn(2, 3, 20), torch.randn(5, 3, 4), **CLOSE)
    check(lambda x, w: F.conv3d(x, w, padding=1), torch.randn(1, 3, 4, 5, 6), torch.randn(4, 3, 3, 3, 3), **CLOSE)
    check(lambda x, w: F.conv_transpose2d(x, w, stride=2, padding=1), torch.randn(2, 4, 5, 6), torch.randn(4, 3, 3, 3), **CLOSE)
    check(lambda x, w: F.conv2d(x, w), torch.randn(1, 8, 6, 6).half(), torch.randn(16, 8, 3, 3).half(), **HALF)


def test_products_of_depth_one():
    """Blocks are deeper than that: what lies past the depth counts as 0, even where no element depends on the step."""
    check(lambda g, x, w: convolution_backward(g, x, w, [2], [2, 2], [0, 0], [1, 1], False, [0, 0], 1, [True] * 3),
          torch.randn(1, 2, 1, 1), torch.randn(1, 3, 4, 4), torch.randn(2, 3, 4, 4), **CLOSE)  # fmt: skip
    check(lambda q, k, v: F.scaled_dot_product_attention(q, k, v), *(torch.randn(1, 2, 5, 1) for _ in range(3)), **CLOSE)
    check(lambda q, k, v: F.scaled_dot_product_attention(q, k, v), *(torch.randn(1, 2, n, 3) for n in (1, 4, 4)), **CLOSE)


def test_pooling():
    check(lambda x: (F.avg_pool2d(x, 2), F.max_pool2d(x, 2), F.adaptive_avg_pool2d(x, 3)), torch.randn(2, 3, 8, 8))


def heads(*lengths: int, kind=torch.float32) -> list:
    return [torch.randn(2, 3, length, 16).to(kind) for length in lengths]


def test_attention():
    scaled = F.scaled_dot_product_attention
    check(lambda q, k, v: scaled(q, k, v), *heads(20, 37, 37), **CLOSE)
    check(lambda q, k, v: scaled(q, k, v, is_causal=True), *heads(40, 40, 40), **CLOSE)
    mask = torch.rand(20, 37) > 0.3
    mask[3] = False
    check(lambda q, k, v, m: scaled(q, k, v, attn_mask=m), *heads(20, 37, 37), mask, **CLOSE)
    check(lambda q, k, v, m: scaled(q, k, v, attn_mask=m, scale=0.3), *heads(20, 37, 37), torch.randn(2, 1, 20, 37), **CLOSE)
    check(lambda q, k, v: scaled(q, k, v), *heads(20, 37, 37, kind=torch.bfloat16), **HALF)


@pytest.mark.parametrize("causal, with_mask", [(False, False), (True, False), (False, True)])
def test_gradients_of_attention(causal, with_mask):
    q, k, v, grad = heads(40, 40, 40, 40)
    mask = torch.randn(40, 40) if with_mask else None
    masks = [mask] if with_mask else []
    out, sums = attention(q, k, v, 0.0, causal, attn_mask=mask)
    check(lambda q, k, v, *m: attention(q, k, v, 0.0, causal, attn_mask=m[0] if m else None), q, k, v, *masks, **CLOSE)
    check(lambda g, q, k, v, o, s, *m: attention_backward(g, q, k, v, o, s, 0.0, causal, attn_mask=m[0] if m else None),
          grad, q, k, v, out, sums, *masks, **CLOSE)  # fmt: skip


@pytest.mark.parametrize("queries, keys", [(64, 64), (32, 96), (96, 32)])
@pytest.mark.parametrize("causal", [False, True])
def test_attention_whose_tiles_divide_its_lengths(queries, keys, causal):
    q, k, v, grad = heads(queries, keys, keys, queries)
    out, sums = attention(q, k, v, 0.0, causal)
    pieces = check(lambda q, k, v: attention(q, k, v, 0.0, causal), q, k, v, **CLOSE)
    assert "q_mask" not in pieces.source and pieces.source.count("k <= q") == causal
    check(lambda g, q, k, v, o, s: attention_backward(g, q, k, v, o, s, 0.0, causal), grad, q, k, v, out, sums, **CLOSE)


def test_gradients_of_attention_of_halves():
    q, k, v, grad = heads(128, 128, 128, 128, kind=torch.bfloat16)
    out, sums = attention(q, k, v, 0.0, True)
    check(lambda g, q, k, v, o, s: attention_backward(g, q, k, v, o, s, 0.0, True), grad, q, k, v, out, sums, **HALF)


def capped(q, k, v):
    return (20 * torch.tanh(q @ k.transpose(-1, -2) / 80)).softmax(-1) @ v


def windowed(q, k, v):
    scores = q @ k.transpose(-1, -2) / 4
    query, key = torch.arange(scores.shape[-2])[:, None], torch.arange(scores.shape[-1])
    return torch.where(key > query + 40, float("-inf"), scores).softmax(-1) @ v


@pytest.mark.parametrize("function", [capped, windowed])
def test_attention_with_a_function_of_its_scores(function):
    pieces = check(function, *(torch.randn(1, 2, 260, 16) for _ in range(3)), **CLOSE)
    ((_, program),) = pieces.programs
    assert [launch.kind for launch in program.launches] == ["attention"]


class Block(torch.nn.Module):
    """A layer of a transformer with dropout."""

    def __init__(self):
        super().__init__()
        self.norm, self.mixed = torch.nn.LayerNorm(16), torch.nn.Linear(16, 48)
        self.out, self.head = torch.nn.Linear(16, 16), torch.nn.Linear(16, 5)

    def forward(self, x):
        q, k, v = self.mixed(self.norm(x)).view(2, 6, 3, 2, 8).permute(2, 0, 3, 1, 4)
        mixed = F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).reshape(2, 6, 16)
        return self.head(x + F.dropout(F.gelu(self.out(mixed)), 0.1))


def test_a_training_step_with_dropout():
    block, x, y = Block(), torch.randn(2, 6, 16), torch.randint(0, 5, (12,))
    found = []
    for options in ({}, {"target": "triton-interpreter"}):
        torch.manual_seed(3)
        block.zero_grad()
        loss = F.cross_entropy(torch.compile(block, options=options)(x).view(12, 5), y)
        loss.backward()
        found.append([loss.detach(), *(parameter.grad.clone() for parameter in block.parameters())])
    torch.testing.assert_close(*found, **CLOSE)


def test_folded_constants_follow_their_parameters():
    class Scaled(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.weight = torch.nn.Parameter(torch.randn(8, 8))

        def forward(self, x):
            return x @ (self.weight * 2).t()

    model, x = Scaled(), torch.randn(3, 8)
    run = torch.compile(model, options={"target": "triton-interpreter"})
    with torch.no_grad():
        for _ in range(2):
            torch.testing.assert_close(run(x), model(x), **CLOSE)
            model.weight.add_(1)
