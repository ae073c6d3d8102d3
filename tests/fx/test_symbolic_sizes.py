"""make_fx with symbolic sizes: graphs that serve other sizes, what they assume, and how they print."""

from __future__ import annotations

import operator
import re

import pytest

import rushlight as rl
from rushlight.core.symbolic import ShapeEnv, SymInt
from rushlight.fx import make_fx
from rushlight.fx.fake_tensor import FakeTensorMode
from rushlight.fx.interpreter import Interpreter
from rushlight.fx.symbolic_sizes import open_sizes, symbolic_strides
from rushlight.nn import functional as F


def guards(module) -> list[str]:
    return [str(guard.relation) for guard in module.shape_env.relations()]


def agree(program, inputs, *others):
    """The symbolic module of a program, after checking it on inputs of other sizes, against the program itself."""
    module = make_fx(program, tracing_mode="symbolic")(*inputs)
    module.graph.lint()
    for given in (inputs, *others):
        expected = program(*[copied(value) for value in given])
        for run in (module, Interpreter(module).run):
            got = run(*[copied(value) for value in given])
            same(got, expected)
    return module


def copied(value):
    return value.clone() if isinstance(value, rl.Tensor) else value


def same(got, expected):
    if isinstance(expected, tuple | list):
        assert len(got) == len(expected)
        for one, other in zip(got, expected, strict=True):
            same(one, other)
    elif isinstance(expected, rl.Tensor):
        assert (got.shape, got.stride(), got.dtype) == (expected.shape, expected.stride(), expected.dtype)
        assert rl.allclose(got, expected, atol=1e-5, equal_nan=True)
    else:
        assert got == expected


def test_the_graph_reads_each_size_once_and_prints_symbols():
    module = agree(lambda x: (x.view(x.shape[0], -1) * x.shape[0]).sum(1), [rl.randn(4, 3, 5)], [rl.randn(7, 2, 9)])
    text = module.print_readable(print_output=False)
    assert 'arg0_1: "f32[s0, s1, s2]"' in text and 'view: "f32[s0, s1*s2]"' in text
    assert 'sym_size: "Sym(s0)" = torch.ops.aten.sym_size.int(arg0_1, 0)' in text and text.count("sym_size.int") == 1
    assert guards(module) == []


def test_arithmetic_on_sizes_becomes_nodes_once_each():
    def program(x):
        half = x.shape[0] // 2
        return x[:half], x[half:], rl.zeros(half * 3 + x.shape[1] - 1, x.shape[0] % 3)

    module = agree(program, [rl.randn(8, 3)], [rl.randn(5, 4)], [rl.randn(11, 2)])
    functions = [node.target for node in module.graph.nodes if node.target in (operator.floordiv, operator.mod)]
    assert functions == [operator.floordiv, operator.mod]


def test_ints_become_inputs():
    module = agree(lambda x, n: (x.repeat(n, 1), x * n), [rl.randn(4, 3), 5], [rl.randn(2, 3), 7])
    placeholders = [node for node in module.graph.nodes if node.op == "placeholder"]
    assert [str(node.meta["val"]) for node in placeholders][1] == "s2" and isinstance(placeholders[1].meta["val"], SymInt)


def test_sizes_can_be_results():
    module = agree(lambda x: (x.shape[0] + 1, x.numel(), x.sum()), [rl.randn(4, 3)], [rl.randn(2, 6)])
    assert [str(node) for node in module.graph.output_node().args[0]][2] == "sum_1"


def test_sizes_zero_and_one_are_what_they_are():
    module = make_fx(lambda x: x + 1, tracing_mode="symbolic")(rl.randn(1, 0, 4))
    assert 'arg0_1: "f32[1, 0, s0]"' in module.print_readable(print_output=False)


def test_branches_are_guarded_as_the_example_took_them():
    def program(x):
        return x * 2 if x.shape[0] > 4 else x + 1

    assert guards(make_fx(program, tracing_mode="symbolic")(rl.randn(6))) == ["s0 >= 5"]
    assert guards(make_fx(program, tracing_mode="symbolic")(rl.randn(3))) == ["s0 <= 4"]
    locations = [guard.location for guard in make_fx(program, tracing_mode="symbolic")(rl.randn(6)).shape_env.relations()]
    assert "return x * 2 if x.shape[0] > 4 else x + 1" in locations[0]


def test_what_needs_an_integer_fixes_the_size():
    module = agree(lambda x: sum(x[i] * i for i in range(x.shape[0])), [rl.randn(3, 4)], [rl.randn(3, 5)])
    assert guards(module) == ["s0 == 3"]


def test_sizes_that_must_agree_become_one():
    module = agree(lambda x, y: x + y, [rl.randn(4, 6), rl.randn(6)], [rl.randn(3, 5), rl.randn(5)])
    assert guards(module) == []  # equal examples share a symbol
    environment = ShapeEnv()
    x, y = (environment.create_symbol(4, name, share=False) for name in "xy")
    first, second = rl.randn(4), rl.randn(4)
    with FakeTensorMode() as mode:
        one, other = mode.from_tensor(first, ((x,), (1,))), mode.from_tensor(second, ((y,), (1,)))
        assert str((one + other).shape[0]) == "s0"
    assert [str(guard.relation) for guard in environment.relations()] == ["s1 == s0"]


PROGRAMS = {
    "linear": (lambda x: F.linear(x, rl.ones(7, 6), rl.ones(7)), [(4, 6)], [(9, 6)]),
    "matmul": (lambda x, y: x @ y, [(2, 3, 4), (2, 4, 5)], [(3, 6, 2), (3, 2, 7)]),
    "flatten": (lambda x: x.flatten(1).reshape(-1), [(4, 3, 5)], [(2, 6, 7)]),
    "transposed view": (lambda x: x.transpose(0, 1).contiguous().view(-1, x.shape[0]), [(4, 3, 5)], [(6, 2, 3)]),
    "expand": (lambda x: x.unsqueeze(1).expand(-1, 3, -1) + 1, [(4, 5)], [(7, 2)]),
    "attention": (lambda q: F.scaled_dot_product_attention(q, q, q, is_causal=True), [(2, 3, 6, 8)], [(4, 5, 9, 8)]),
    "layer_norm": (lambda x: F.layer_norm(x, (6,)), [(3, 5, 6)], [(4, 2, 6)]),
    "batch_norm": (lambda x: F.batch_norm(x, rl.zeros(3), rl.ones(3)), [(4, 3, 5, 5)], [(2, 3, 7, 7)]),
    "group_norm": (lambda x: F.group_norm(x, 2), [(3, 4, 5)], [(2, 4, 6)]),
    "conv2d": (lambda x: F.conv2d(x, rl.ones(2, 3, 3, 3), padding=1, stride=2), [(2, 3, 8, 9)], [(5, 3, 6, 7)]),
    "conv1d": (lambda x: F.conv1d(x, rl.ones(4, 3, 3), padding=1), [(2, 3, 9)], [(4, 3, 5)]),
    "conv_transpose": (lambda x: F.conv_transpose2d(x, rl.ones(3, 2, 3, 3), stride=2), [(2, 3, 5, 6)], [(4, 3, 7, 3)]),
    "max_pool": (lambda x: F.max_pool2d(x, 2), [(2, 3, 8, 8)], [(3, 4, 6, 6)]),
    "avg_pool": (lambda x: F.avg_pool2d(x, 3, stride=2, padding=1), [(2, 3, 9, 8)], [(3, 4, 6, 7)]),
    "adaptive_avg_pool": (lambda x: F.adaptive_avg_pool2d(x, 1), [(2, 3, 9, 8)], [(3, 4, 6, 7)]),
    "embedding": (lambda x: F.embedding(x.abs().long() % 5, rl.ones(5, 4)), [(4, 6)], [(3, 2)]),
    "cat": (lambda x, y: rl.cat([x, y, x], 0), [(4, 6), (3, 6)], [(2, 5), (7, 5)]),
    "stack": (lambda x: rl.stack([x, x * 2], 1), [(4, 6)], [(3, 2)]),
    "split": (lambda x: x.split(2, 1), [(4, 6)], [(3, 6)]),
    "chunk": (lambda x: x.chunk(2, -1), [(4, 6)], [(3, 6)]),
    "arange": (lambda x: rl.arange(x.shape[0]) + rl.arange(1, x.shape[0] + 1), [(4,)], [(9,)]),
    "full": (lambda x: rl.full((x.shape[0], 2), 3.0) + rl.ones(x.shape[0], 1), [(4,)], [(9,)]),
    "where": (lambda x: rl.where(x > 0, x, rl.zeros_like(x)), [(4, 6)], [(3, 2)]),
    "mean": (lambda x: (x.mean(0), x.mean(), x.var(1), x.std()), [(4, 6)], [(3, 2)]),
    "reductions": (lambda x: (x.sum(-1), x.amax(0), x.argmax(1), x.prod(), (x > 0).all()), [(4, 6)], [(3, 2)]),
    "softmax": (lambda x: (x.softmax(-1), x.log_softmax(0)), [(4, 6)], [(3, 2)]),
    "select": (lambda x: (x[:, -1], x[0], x[..., 1], x[-2]), [(4, 6)], [(3, 2)]),
    "slices": (lambda x: (x[1:], x[:-1, ::2], x[:, 1:5:2]), [(4, 6)], [(3, 8)]),
    "advanced": (lambda x: (x[:, rl.tensor([0, 1])], x.index_select(0, rl.tensor([1, 0]))), [(4, 6)], [(3, 2)]),
    "gather": (lambda x: x.gather(1, x.argsort(1)), [(4, 6)], [(3, 2)]),
    "causal mask": (lambda x: x.masked_fill(rl.ones(x.shape[0], x.shape[0]).triu(1).bool(), 0.0), [(4, 4)], [(7, 7)]),
    "pad": (lambda x: F.pad(x, (1, 2)), [(4, 6)], [(3, 2)]),
    "interpolate": (lambda x: F.interpolate(x, scale_factor=2), [(2, 3, 4, 5)], [(3, 2, 6, 7)]),
    "interpolate bilinear": (lambda x: F.interpolate(x, size=(6, 7), mode="bilinear"), [(2, 3, 4, 5)], [(3, 2, 5, 4)]),
    "einsum": (lambda x, y: rl.einsum("bij,bjk->bik", x, y), [(2, 3, 4), (2, 4, 5)], [(3, 6, 2), (3, 2, 7)]),
    "cumsum": (lambda x: x.cumsum(1).flip(0), [(4, 6)], [(3, 2)]),
    "roll": (lambda x: rl.roll(x, 1, 0), [(4, 6)], [(3, 2)]),
    "writes": (lambda x: (x.zero_() + 1).add_(x.shape[0]), [(4, 6)], [(3, 2)]),
    "write to a view": (lambda x: (x[1:].mul_(2), x), [(4, 6)], [(3, 2)]),
    "write to half": (lambda x: (x[x.shape[0] // 2 :].fill_(7), x), [(4, 6)], [(5, 2)]),
    "cross_entropy": (lambda x: F.cross_entropy(x, rl.zeros(x.shape[0], dtype=rl.int64)), [(4, 6)], [(3, 2)]),
    "normalize": (lambda x: F.normalize(x, dim=-1), [(4, 6)], [(3, 2)]),
    "topk": (lambda x: x.topk(2, 1), [(4, 6)], [(3, 5)]),
    "sort": (lambda x: x.sort(0).values, [(4, 6)], [(3, 5)]),
    "repeat": (lambda x: x.repeat(2, 3), [(4, 6)], [(3, 5)]),
    "repeat_interleave": (lambda x: x.repeat_interleave(2, 0), [(4, 6)], [(3, 5)]),
    "unfold": (lambda x: x.unfold(1, 2, 1), [(4, 6)], [(3, 5)]),
    "diagonal": (lambda x: x.diagonal() + x.tril().sum(0), [(6, 6)], [(3, 3)]),
    "outer": (lambda x, y: rl.outer(x, y), [(4,), (6,)], [(3,), (2,)]),
    "bmm": (lambda x, y: rl.baddbmm(rl.zeros(1, 1, 1), x, y), [(2, 3, 4), (2, 4, 5)], [(3, 6, 2), (3, 2, 7)]),
    "meshgrid": (lambda x, y: rl.meshgrid(x, y, indexing="ij"), [(4,), (6,)], [(3,), (2,)]),
    "one_hot": (lambda x: F.one_hot(x.abs().long() % 3, 3), [(4, 6)], [(3, 2)]),
    "cosine": (lambda x, y: F.cosine_similarity(x, y), [(4, 6), (4, 6)], [(3, 2), (3, 2)]),
    "cdist": (lambda x, y: ((x[:, None] - y[None]) ** 2).sum(-1), [(4, 6), (5, 6)], [(3, 2), (7, 2)]),
    "new": (lambda x: x.new_zeros(x.shape[0], 2) + x.new_ones(x.size(0), 1), [(4,)], [(9,)]),
    "like": (lambda x: rl.rand_like(x) * 0 + rl.ones_like(x), [(4, 6)], [(3, 2)]),
    "pixel_shuffle": (lambda x: F.pixel_shuffle(x, 2), [(2, 8, 3, 4)], [(3, 8, 5, 2)]),
    "glu": (lambda x: F.glu(x, -1), [(4, 6)], [(3, 6)]),
    "unflatten": (lambda x: x.unflatten(1, (2, -1)).permute(2, 0, 1), [(4, 6)], [(3, 8)]),
    "squeeze": (lambda x: x.unsqueeze(0).squeeze(), [(4, 6)], [(3, 2)]),
    "movedim": (lambda x: x.movedim(0, -1).reshape(x.shape[1], -1), [(4, 6, 5)], [(3, 2, 7)]),
}  # fmt: skip


@pytest.mark.parametrize("name", PROGRAMS)
def test_one_graph_serves_other_sizes(name):
    program, first, second = PROGRAMS[name]
    rl.manual_seed(0)
    module = agree(program, [rl.randn(*shape) for shape in first], [rl.randn(*shape) for shape in second])
    values = {}
    for binding in module.shape_env.bindings:
        number, dim = map(int, re.fullmatch(r"arg(\d+)_1.size\((\d+)\)", binding.source).groups())
        values.setdefault(binding.symbol, second[number][dim])
    assert all(guard.relation.holds(values) for guard in module.shape_env.relations()), guards(module)


def test_an_lstm_is_symbolic_in_batch_and_time():
    lstm = rl.nn.LSTM(4, 6, num_layers=2, batch_first=True, bidirectional=True)
    with rl.no_grad():
        module = agree(lambda x: lstm(x)[0], [rl.randn(3, 5, 4)], [rl.randn(2, 7, 4)])
    assert 'arg0_1: "f32[s0, s1, 4]"' in module.print_readable(print_output=False)


# Inputs


def test_strides_follow_from_sizes():
    environment = ShapeEnv()
    x = rl.randn(4, 3, 5)
    assert str(open_sizes(environment, x._impl, range(3), "x")[1]) == "(s1*s2, s2, 1)"
    assert str(open_sizes(environment, x.permute(2, 0, 1)._impl, range(3), "y")[1]) == "(1, s1*s2, s2)"
    rows = rl.randn(4, 10)[:, :5]
    assert open_sizes(environment, rows._impl, (0, 1), "z")[1] == (10, 1)
    sizes = (environment.create_symbol(4, "w"), 5)
    asked = []
    symbolic_strides(rows._impl, sizes, lambda dim, stride: asked.append((dim, stride)) or stride)
    assert asked == [(0, 10)]


def test_a_symbolic_fake_knows_its_geometry():
    environment = ShapeEnv()
    x = rl.randn(4, 6)
    with FakeTensorMode() as mode:
        fake = mode.from_tensor(x, open_sizes(environment, x._impl, (0,), "x"))
        assert str(fake.numel()) == "6*s0" and fake.is_contiguous() and not fake.t().is_contiguous()
        last = fake[-1]
        assert str(last.storage_offset()) == "6*s0 - 6" and str(last[1:].storage_offset()) == "6*s0 - 5"
        assert str(fake.detach()[-1].detach().storage_offset()) == "6*s0 - 6"
        assert repr(fake) == "FakeTensor(..., size=(s0, 6), dtype=torch.float32)"
    assert list(environment.relations()) == []


def test_symbols_do_not_reach_memory():
    environment = ShapeEnv()
    size = environment.create_symbol(4, "x")
    assert rl.zeros(size, 3).shape == (4, 3)
    assert [str(guard.relation) for guard in environment.relations()] == ["s0 == 4"]


def test_tracing_mode_is_checked():
    with pytest.raises(ValueError, match="Unexpected tracing type: static, expected one of real, fake, symbolic"):
        make_fx(lambda x: x, tracing_mode="static")
