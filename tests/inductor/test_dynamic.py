"""One compilation for many sizes: native code for graphs with open sizes against eager, at sizes other than the captured ones."""

from __future__ import annotations

import pytest

import rushlight as torch
from rushlight.core.symbolic import ShapeEnv
from rushlight.fx.fake_tensor import FakeTensorMode
from rushlight.fx.proxy_tensor import capture
from rushlight.inductor.graph import GraphLowering
from rushlight.inductor.size_checks import make_binder
from rushlight.inductor.size_symbols import SizeSymbols
from rushlight.inductor.sizes import UnsupportedSize
from tests.inductor.differences import difference
from tests.inductor.open_graphs import compile_open

F = torch.nn.functional
SIZES = [(8, 12), (2, 2), (3, 5), (100, 77), (17, 33), (2, 64)]


def randn(*shape: int) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(sum(shape)))


def integers(high: int, *shape: int) -> torch.Tensor:
    return torch.randint(0, high, shape, generator=torch.Generator().manual_seed(high))


LINEAR, BIAS, SCALE = randn(32, 16), randn(32), randn(16)
DOWN = randn(16, 32)
CONVOLUTION, CHANNELS, DEPTHWISE = randn(8, 3, 3, 3), randn(8), randn(8, 1, 3, 3)


def several_reductions(x):
    return x.sum(0), x.sum(1), x.sum(), x.mean((0, 1)), x.amax(0), x.var(0), x.std(), x.argmax(1), x.argmin(), (x > 0).any(0)


def causal_softmax(x):
    mask = torch.tril(torch.ones(x.shape[0], x.shape[0], dtype=torch.bool))
    return x.masked_fill(~mask, -1e9).softmax(-1)


def writes(x):
    y = x * 2
    y[:, 1] = 3
    y.add_(1)
    x.mul_(0.5)
    return y


def shared_results(x):
    y = x + 1
    return y, y.t(), y[0], y[:, :2], y.view(-1), x.shape[0] * x.shape[1], x


def multi_head(x):
    split = F.linear(x, LINEAR).view(x.shape[0], x.shape[1], 4, 8).transpose(1, 2)
    return F.scaled_dot_product_attention(split, split, split).transpose(1, 2).reshape(x.shape[0], x.shape[1], 32)


def masked_attention(q, mask):
    return F.scaled_dot_product_attention(q, q, q, attn_mask=mask[:, None, None, :])


def gelu_mlp(x):
    return x + F.linear(F.gelu(F.linear(F.layer_norm(x, (16,), SCALE), LINEAR, BIAS)), DOWN)


def image_features(x):
    hidden = F.max_pool2d(F.relu(F.conv2d(x, CONVOLUTION, CHANNELS, padding=1)), 2)
    return F.conv2d(hidden, DEPTHWISE, None, groups=8, padding=1).mean((2, 3)), F.avg_pool2d(hidden, 3, stride=2, padding=1)


def strided_convolution(x):
    return F.conv2d(x, CONVOLUTION, CHANNELS, stride=2, padding=1), F.max_pool2d(x, 3, stride=2, padding=1, ceil_mode=True)


def positions(x):
    steps = torch.arange(x.shape[0])
    return steps, x + steps.unsqueeze(1) * x.shape[1], torch.arange(2, x.shape[0] + 5, 2), torch.full((x.shape[1], 3), x.shape[0])


def cut_around_an_eager_kernel(x):
    return torch.cumsum(x * 2, 0)[: x.shape[1] // 2 + 1] * x.shape[0], x.shape[0] + 1


ROWS, BOTH, ALL = (0,), (0, 1), (0, 1, 2)
CASES = {
    "pointwise": (lambda x, y: (x + y).tanh() * x.shape[0], BOTH, (1,), lambda a, b: (randn(a, b), randn(1, b))),
    "outer_product": (lambda x, y: (x[:, None] * y).sin() + x.sum(), ROWS, ROWS, lambda a, b: (randn(a), randn(b))),
    "reductions": (several_reductions, BOTH, lambda a, b: (randn(a, b),)),
    "large_reductions": (lambda x: (x.sum(), x.sum((0, 2)), x.mean(1), x.amax((0, 1))), BOTH, lambda a, b: (randn(a, b, 96),)),
    "softmax": (lambda x: (x.softmax(-1), (x + 1).log_softmax(0)), BOTH, lambda a, b: (randn(a, b),)),
    "layer_norm": (lambda x: (F.layer_norm(x, (16,), SCALE, SCALE), F.layer_norm(x, x.shape[1:])), BOTH, lambda a, b: (randn(a, b, 16),)),
    "normalisations": (lambda x: (F.batch_norm(x, SCALE[:4], SCALE[4:8].abs()), F.group_norm(x, 2)), (0, 2), lambda a, b: (randn(a, 4, b),)),
    "linear": (lambda x: F.gelu(F.linear(x, LINEAR, BIAS)), BOTH, lambda a, b: (randn(a, b, 16),)),
    "gelu_mlp": (gelu_mlp, BOTH, lambda a, b: (randn(a, b, 16),)),
    "product": (lambda x, y: x @ y + x.shape[0], BOTH, BOTH, lambda a, b: (randn(a, b), randn(b, a))),
    "product_of_transposes": (lambda x, y: x.t() @ y.t(), BOTH, BOTH, lambda a, b: (randn(b, a), randn(a, b))),
    "batched_product": (torch.bmm, BOTH, (0, 2), lambda a, b: (randn(a, b, 16), randn(a, 16, b))),
    "attention": (multi_head, BOTH, lambda a, b: (randn(a, b, 16),)),
    "causal_attention": (lambda q: F.scaled_dot_product_attention(q, q, q, is_causal=True), (0, 2), lambda a, b: (randn(a, 2, b, 8),)),
    "masked_attention": (masked_attention, (0, 2), BOTH, lambda a, b: (randn(a, 2, b, 8), integers(3, a, b) > 0)),
    "convolutions": (image_features, (0, 2, 3), lambda a, b: (randn(min(a, 5), 3, b + 6, a + 7),)),
    "strided_convolution": (strided_convolution, (0, 2, 3), lambda a, b: (randn(min(a, 5), 3, b + 6, a + 7),)),
    "upsampling": (lambda x: F.interpolate(x, scale_factor=2), (0, 2, 3), lambda a, b: (randn(2, 3, a, b),)),
    "embedding": (lambda t, i: F.embedding(i, t) + 1, ROWS, BOTH, lambda a, b: (randn(a, 16), integers(a, b, a))),
    "indexing": (lambda x, i: (x.gather(1, i), x.index_select(1, i[0]), x[:, i[0] - 1]), BOTH, BOTH,
                 lambda a, b: (randn(a, b), integers(b, a, b))),
    "concatenation": (lambda x, y: torch.cat([x, y, x], 1), BOTH, ROWS, lambda a, b: (randn(a, b), randn(a, 7))),
    "stack_and_pad": (lambda x: (torch.stack([x, x + 1], 1), F.pad(x, (1, 2, 0, 1), value=1.5)), BOTH, lambda a, b: (randn(a, b),)),
    "slices": (lambda x: (x[:, 1:] * 2, x[::2] + 1, x[-2:].exp(), x[-1] + x[0], x.flip(0), x.roll(1, 1)), BOTH,
               lambda a, b: (randn(a + 1, b + 1),)),
    "views": (lambda x: (x.view(-1, 8).t() * 2, x.transpose(0, 1).reshape(x.shape[1], -1) + 1, x.permute(2, 0, 1) + 1), BOTH,
              lambda a, b: (randn(a, b, 8),)),
    "heads": (lambda x: x.view(x.shape[0], x.shape[1], 4, 4).permute(0, 2, 1, 3).contiguous(), BOTH, lambda a, b: (randn(a, b, 16),)),
    "expanded": (lambda x: (x.unsqueeze(1).expand(-1, 3, -1) + 1, x.repeat(2, 2)), BOTH, lambda a, b: (randn(a, b),)),
    "positions": (positions, BOTH, lambda a, b: (randn(a, b),)),
    "causal_mask": (causal_softmax, BOTH, lambda a, b: (randn(a, a),)),
    "writes": (writes, BOTH, lambda a, b: (randn(a, b),)),
    "shared_results": (shared_results, BOTH, lambda a, b: (randn(a, b),)),
    "other_types": (lambda x: ((x.to(torch.bfloat16) * 2).sum(0), (x > 0).sum(), x.to(torch.int64) // 3), BOTH, lambda a, b: (randn(a, b) * 5,)),
    "einsum": (lambda x, y: torch.einsum("bij,bjk->bik", x, y), BOTH, (0, 2), lambda a, b: (randn(a, b, 6), randn(a, 6, b))),
    "transposed_input": (lambda x: x.softmax(0) * 2, BOTH, lambda a, b: (randn(b, a).t(),)),
    "cut": (cut_around_an_eager_kernel, BOTH, lambda a, b: (randn(a + b, b),)),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_one_compilation_serves_all_sizes(name):
    function, *dims, make = CASES[name]
    compiled = compile_open(function, make(*SIZES[0]), dims)
    for sizes in SIZES:
        problem = difference(lambda *inputs: as_tuple(function(*inputs)), compiled, lambda sizes=sizes: list(make(*sizes)))
        assert not problem, f"{sizes}: {problem}"


def as_tuple(value: object) -> tuple:
    return value if isinstance(value, tuple) else (value,)


def test_integers_among_the_inputs_are_sizes():
    compiled = compile_open(lambda x, n: (x[:n] * n, torch.arange(n), n + 1), (randn(9, 3), 5), ((0,), True))
    for size, count in ((9, 5), (2, 2), (40, 7), (7, 7)):
        x = randn(size, 3)
        rows, steps, more = compiled(x, count)
        assert (rows == x[:count] * count).all() and steps.tolist() == list(range(count)) and more == count + 1
    with pytest.raises(RuntimeError, match="sizes with s0 >= s1, got s0 = 3, s1 = 4"):
        compiled(randn(3, 3), 4)
    with pytest.raises(RuntimeError, match="input 1 of the compiled graph must be the integer s1, got 2.0"):
        compiled(randn(3, 3), 2.0)


@pytest.mark.parametrize("inputs, message", [
    ((randn(3, 4), randn(5)), r"input 1 .* of size \[s1\] and stride \[1\] with s0 = 3, s1 = 4, got torch.float32 of size \[5\]"),
    ((randn(4, 3).t(), randn(4)), r"input 0 .* stride \[s1, 1\] with s0 = 3, s1 = 4, got .* and stride \[1, 3\]"),
    ((randn(3, 4, 1), randn(4)), "input 0 of the compiled graph must be"),
    ((randn(3, 4).double(), randn(4)), "must be a torch.float32 CPU tensor .* got torch.float64"),
    ((randn(3, 4), 4), "must be a torch.float32 CPU tensor .* got 4"),
    ((randn(3, 4),), "takes 2 inputs, got 1"),
    ((randn(1, 4), randn(4)), "sizes with s0 >= 2, got s0 = 1, s1 = 4"),
    ((randn(0, 4), randn(4)), "sizes with s0 >= 2"),
])  # fmt: skip
def test_inputs_that_do_not_fit_are_rejected(inputs, message):
    compiled = compile_open(lambda x, y: x + y, (randn(8, 12), randn(12)), (BOTH, ROWS))
    with pytest.raises(RuntimeError, match=message):
        compiled(*inputs)


def test_what_the_program_asked_of_sizes_is_checked():
    def halve(x):
        return x[: x.shape[0] // 2] if x.shape[0] > 6 else x * 2

    environment = ShapeEnv()
    compiled = compile_open(halve, (randn(8, 3),), (ROWS,), environment=environment)
    assert str(environment.guards[0].relation) == "s0 >= 7"
    assert compiled(randn(20, 3))[0].shape == (10, 3)
    with pytest.raises(RuntimeError, match="sizes with s0 >= 7, got s0 = 4"):
        compiled(randn(4, 3))


def opened(sizes: tuple, strides: tuple, example: torch.Tensor) -> torch.Tensor:
    return FakeTensorMode().from_tensor(example, (sizes, strides))


def test_a_symbol_is_solved_for_where_no_input_has_it_as_a_size():
    environment = ShapeEnv()
    count = environment.create_symbol(5, "count")
    fakes = [opened((3 * count + 1,), (1,), randn(16)), opened((count, 2), (2, 1), randn(5, 2)), opened((2 * count,), (1,), randn(10))]
    for fake, divisor, offset in ((fakes[0], 3, 1), (fakes[2], 2, 0)):
        symbols = SizeSymbols([fake])
        bind = make_binder(symbols)
        assert bind((randn(7 * divisor + offset),)) == (7,)
        with pytest.raises(RuntimeError, match="with s0 = 7, got"):
            bind((randn(7 * divisor + offset + 1),))
    assert str(SizeSymbols(fakes).definitions[count.expr]) == "i1.sizes[0]"


def test_a_symbol_that_no_input_tells_is_refused():
    environment = ShapeEnv()
    count, other = environment.create_symbol(5, "count"), environment.create_symbol(7, "other")
    with pytest.raises(UnsupportedSize, match="value of s0, s1"):
        SizeSymbols([opened((count * other,), (1,), randn(35))])
    with torch.no_grad():
        module = capture(lambda x: x * 2, (randn(5, 3),), open_leaves=[((count, 3), (3, 1))]).module
    (node,) = [node for node in module.graph.nodes if node.op == "call_function"]
    node.meta["val"] = opened((other, 3), (3, 1), randn(7, 3))
    with pytest.raises(UnsupportedSize):
        GraphLowering(module).run()


def test_index_out_of_range_is_eagers_error():
    compiled = compile_open(lambda table, index: table[index] * table.shape[0], (randn(6, 3), integers(6, 4)), (ROWS, ROWS))
    table = randn(5, 3)
    assert (compiled(table, torch.tensor([-5, 4, 0]))[0] == table[torch.tensor([-5, 4, 0])] * 5).all()
    with pytest.raises(IndexError):
        compiled(table, torch.tensor([0, 5]))


def test_an_integer_divided_by_a_size_is_compiled():
    stages: dict[str, str] = {}
    compiled = compile_open(lambda x: (x // x.shape[0], x % x.shape[0]), (integers(9, 7),), (ROWS,), stages)
    assert "graph_breaks" not in stages
    x = integers(50, 5) - 20
    assert [result.tolist() for result in compiled(x)] == [(x // 5).tolist(), (x % 5).tolist()]
