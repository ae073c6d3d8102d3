"""Sizes and ints that a capture leaves open: which, from when on, what is guarded, and that results are those of eager."""

from __future__ import annotations

import math
import re
import threading

import pytest

import rushlight as torch
from rushlight import nn
from rushlight._dynamo.eval_frame import _debug_get_cache_entry_list
from rushlight._dynamo.exc import ConstraintViolationError
from rushlight.nn import functional as F
from tests.compiler import test_models as models


def counting(function, **options):
    """A compiled function, and the list of graphs that were made for it."""
    graphs = []

    def backend(module, inputs):
        graphs.append(module)
        return module.forward

    return torch.compile(function, backend=backend, **options), graphs


def same(one, other) -> bool:
    if isinstance(one, torch.Tensor):
        return isinstance(other, torch.Tensor) and one.shape == other.shape and one.stride() == other.stride() and (
            torch.allclose(one, other, atol=1e-4)
        )
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(same(one[key], other[key]) for key in one)
    if isinstance(one, list | tuple):
        return type(one) is type(other) and len(one) == len(other) and all(map(same, one, other))
    return type(one) is type(other) and one == other


def copied(value):
    if isinstance(value, torch.Tensor) and 0 in value.stride():
        return value
    if isinstance(value, torch.Tensor):
        return torch.empty_strided(value.shape, value.stride()).copy_(value) if value.is_floating_point() else value.clone()
    return type(value)(map(copied, value)) if isinstance(value, list | tuple) else value


def agree(function, *calls, **options):
    """How many graphs there are after each call, which must give what eager gives."""
    compiled, graphs = counting(function, fullgraph=True, **options)
    counts = []
    for args in calls:
        first, second = copied(list(args)), copied(list(args))
        expected, found = function(*first), compiled(*second)
        assert same(found, expected), (found, expected, args)
        assert same(second, first), "arguments are written to alike"
        counts.append(len(graphs))
    return counts, graphs


def guards(compiled) -> str:
    return _debug_get_cache_entry_list(compiled)[0].guarded_code.guards.text()


def sizes(*shapes):
    torch.manual_seed(0)
    return [(torch.randn(*shape),) for shape in shapes]


# Models


MODELS = [
    pytest.param(models.bert, models.words(60), id="bert"), pytest.param(models.ResNet, models.images(32), id="resnet"),
    pytest.param(models.GPT, models.words(50), id="gpt"), pytest.param(models.ViT, models.images(16), id="vit"),
    pytest.param(models.Tagger, models.words(30), id="lstm"),
]  # fmt: skip
TOKENS = [
    pytest.param(models.bert, 60, id="bert"), pytest.param(models.GPT, 50, id="gpt"), pytest.param(models.Tagger, 30, id="lstm"),
]  # fmt: skip


@pytest.mark.parametrize("make, inputs", MODELS)
def test_a_second_batch_size_compiles_once_more_and_a_third_not(make, inputs):
    with torch.no_grad():
        counts, graphs = agree(make().eval(), *[(inputs(batch),) for batch in (3, 5, 2, 9, 3)])
    assert counts == [1, 2, 2, 2, 2]
    assert "[s0, " in graphs[1].print_readable(print_output=False)


@pytest.mark.parametrize("make, words", TOKENS)
def test_sequence_lengths_compile_once_more(make, words):
    model = make().eval()
    shapes = ((3, 7), (5, 9), (2, 4), (9, 12), (4, 4))
    with torch.no_grad():
        counts, _ = agree(model, *[(torch.randint(0, words, shape),) for shape in shapes])
    assert counts == [1, 2, 2, 2, 2]


@pytest.mark.parametrize("make, words", TOKENS)
def test_a_length_that_changes_after_the_batch_compiles_once_more(make, words):
    model = make().eval()
    shapes = ((3, 7), (5, 7), (2, 7), (4, 9), (6, 5), (5, 12))
    with torch.no_grad():
        counts, _ = agree(model, *[(torch.randint(0, words, shape),) for shape in shapes])
    assert counts == [1, 2, 2, 3, 3, 3]


@pytest.mark.parametrize("make, inputs", MODELS)
def test_dynamic_models_compile_once(make, inputs):
    with torch.no_grad():
        counts, _ = agree(make().eval(), *[(inputs(batch),) for batch in (5, 4, 2)], dynamic=True)
    assert counts == [1, 1, 1]


@pytest.mark.parametrize("backend", ["eager", "aot_eager", "inductor"])
@pytest.mark.parametrize("make, inputs", MODELS)
def test_backends_serve_many_sizes(make, inputs, backend):
    model = make().eval()
    compiled = torch.compile(model, backend=backend, fullgraph=True)
    with torch.no_grad():
        for batch in (2, 5, 3, 4):
            x = inputs(batch)
            assert models.same(compiled(x), model(x))
    if backend != "inductor":
        assert len(_debug_get_cache_entry_list(compiled)) == 2


# Small programs: each called with four shapes, the second of which opens what differs


class Wrapped:
    def __init__(self, scale):
        self.scale = scale


PROGRAMS = {
    "view": lambda x: x.view(x.shape[0], -1),
    "flattened": lambda x: x.view(-1).view(x.size(0), x.size(1) * x.size(-1)),
    "zeros": lambda x: torch.zeros(x.shape) + x,
    "full of a size": lambda x: torch.full((x.shape[0], 2), 1.0) * x.shape[0],
    "sizes of the front and others": lambda x: (x.view(x.size()[:-1] + (2, -1)), x.reshape((x.shape[0] * 3,) + x.shape[2:])),
    "sizes behind others": lambda x: (x.expand((2,) + x.shape), (2, 1) + x.shape, x.shape + x.shape[:1] * 2),
    "rounded quotients": lambda x: (
        x.new_zeros(int(x.shape[0] / 2)), x.new_ones(math.ceil((x.shape[0] + 8) / 3)), int(x.shape[0]), math.ceil(x.shape[0]),
        x.new_ones(math.floor(float(x.shape[0]) * 1.5)), F.pad(x, (0, math.ceil(0.25 * x.shape[0]) * 4 - x.shape[0] + 8)),
    ),
    "windows": lambda x: x.view(int(x.shape[0] / (6 * 4 / 4 / 6)), 3, -1) + int(x.shape[0] * 3 / 3),
    "a quotient of sizes as a result": lambda x: (x + 1, x.shape[0] / 7, float(x.shape[0]), x.shape[0] / (x.shape[0] + x.shape[1])),
    "length": lambda x: x * len(x),
    "numel": lambda x: (x / x.numel(), x.shape.numel(), x.shape[1:].numel()),
    "half": lambda x: (x[: x.shape[0] // 2], x[x.shape[0] // 2 :]),
    "sizes as results": lambda x: (x + 1, x.shape, x.shape[0] * 2 + 1, x.size(), [x.size(0), -x.size(0)]),
    "a dict of sizes": lambda x: {"rows": x.shape[0], "sum": x.sum()},
    "expand": lambda x: x[:1].expand(x.shape[0], -1, -1) + x,
    "cat": lambda x: torch.cat([x, x[1:], torch.ones(2, *x.shape[1:])]),
    "arange": lambda x: x + torch.arange(x.shape[0])[:, None, None],
    "mask": lambda x: x.masked_fill(torch.arange(x.shape[0])[:, None, None] < x.shape[0] // 2, 0.0),
    "writes": lambda x: x.mul_(2).add_(x.shape[0]),
    "write to a view": lambda x: (x[1:].zero_(), x.transpose(0, 1).add_(1)),
    "transposed": lambda x: x.transpose(0, 1).contiguous().view(-1, x.shape[0]),
    "permuted": lambda x: x.permute(2, 0, 1).reshape(-1),
    "last": lambda x: x[-1] + x[:, -1].sum(),
    "strided": lambda x: x[::2] * 2,
    "split": lambda x: x.split(1, 1),
    "chunk": lambda x: x.chunk(2, 2),
    "unflatten": lambda x: x.flatten().unflatten(0, (x.shape[0], -1)),
    "mean": lambda x: x.mean(0) + x.var(0) + x.sum() / x.shape[0],
    "softmax": lambda x: x.softmax(0) @ x.transpose(1, 2),
    "attention": lambda x: F.scaled_dot_product_attention(x, x, x),
    "linear": lambda x: F.linear(x, torch.ones(5, 4)),
    "norm": lambda x: F.layer_norm(x, x.shape[1:]),
    "stack": lambda x: torch.stack([x[:-1], x[1:]]),
    "where": lambda x: torch.where(x > 0, x, x.new_zeros(x.shape[0], 1, 1)),
    "minimum of sizes": lambda x: x[: min(x.shape[0], 100)] * max(x.shape[0], 1) * abs(x.shape[0]),
    "product of sizes": lambda x: x.reshape(x.shape[0] * x.shape[1], x.shape[2]),
    "padding": lambda x: F.pad(x, (0, 0, 0, 0, 0, x.shape[0])),
    "repeat": lambda x: x.repeat(2, 1, 1) + torch.ones(x.shape[0] * 2, 1, 1),
    "index": lambda x: x[torch.arange(x.shape[0] - 1, -1, -1)],
    "comprehension": lambda x: sum(part.sum() for part in [x, x * 2]) + len([n for n in x.shape]),
    "closure": lambda x: (lambda n: x * n)(x.shape[0]),
    "equal sizes": lambda x: x + 1 if x.shape == (x + 1).shape else x,
    "format of another size": lambda x: (x * 2, f"{x.shape[1]}"),
    "divided": lambda x: x.view(x.shape[0], 2, -1).sum(1) + x.shape[0] % 1,
    "attributes": lambda x: Wrapped(x.shape[0]).scale * x,
    "random": lambda x: torch.rand_like(x) * 0 + torch.zeros(x.shape[0], 1, 1),
    "conditional": lambda x: x * 2 if x.shape[0] > 1 else x,
    "conv": lambda x: F.conv1d(x, torch.ones(3, 3, 3), padding=1),
    "einsum": lambda x: torch.einsum("bij,bkj->bik", x, x),
    "loss": lambda x: F.mse_loss(x, torch.zeros_like(x)),
    "embedding": lambda x: F.embedding((x * 0).long(), torch.ones(3, 2)),
    "tensor methods": lambda x: x.new_ones(x.size()).mul(x.dim()).expand_as(x) + x.stride(0) * 0,
}  # fmt: skip


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program_compiles_twice_for_all_sizes(name):
    counts, _ = agree(PROGRAMS[name], *sizes((4, 3, 4), (6, 3, 4), (9, 3, 4), (5, 3, 4), (4, 3, 4)))
    assert counts == [1, 2, 2, 2, 2]


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program_compiles_once_where_everything_is_dynamic(name):
    counts, _ = agree(PROGRAMS[name], *sizes((5, 3, 4), (7, 3, 4), (4, 3, 4)), dynamic=True)
    assert counts == [1, 1, 1]


@pytest.mark.parametrize("name", PROGRAMS)
def test_aot_eager_computes_the_same_for_all_sizes(name):
    compiled = torch.compile(PROGRAMS[name], backend="aot_eager", fullgraph=True)
    for (x,) in sizes((4, 3, 4), (6, 3, 4), (9, 3, 4), (5, 3, 4)):
        assert same(compiled(x.clone()), PROGRAMS[name](x.clone()))
    assert len(_debug_get_cache_entry_list(compiled)) == 2


@pytest.mark.parametrize("name", PROGRAMS)
def test_inductor_computes_the_same_for_all_sizes(name):
    compiled = torch.compile(PROGRAMS[name], fullgraph=True)
    for (x,) in sizes((4, 3, 4), (6, 3, 4), (5, 3, 4)):
        assert same(compiled(x.clone()), PROGRAMS[name](x.clone()))


SPLIT = {
    "two chunks": (lambda x: x.chunk(2)[0] + x.chunk(2)[1], (6, 8, 20, 4, 10)),
    "three chunks, and what is left": (lambda x: torch.cat(x.chunk(3)[::-1]), (7, 11, 17, 8, 20)),
    "chunks of zero": (lambda x: [part + 1 for part in x.chunk(3)], (6, 9, 12, 15, 0)),
    "halves": (lambda x: torch.mul(*x.split(x.shape[0] // 2)), (6, 8, 20, 4, 10)),
    "parts of five": (lambda x: [part.sum(0) for part in x.split(5)], (12, 13, 14, 12, 13)),
    "the rest of a split": (lambda x: x.split([3, x.shape[0] - 3])[1] * 2, (6, 9, 20, 5, 10)),
    "nearly equal parts": (lambda x: torch.cat(x.tensor_split(3)[::-1]), (7, 10, 13, 19, 7)),
    "a gated unit": (lambda x: F.glu(x, 0), (6, 8, 20, 4, 10)),
    "smoothed labels": (lambda x: F.cross_entropy(x.t(), torch.arange(3), label_smoothing=0.1), (6, 8, 20, 5, 10)),
    "smoothed probabilities": (lambda x: F.cross_entropy(x.t(), x.t().softmax(1), label_smoothing=0.2), (6, 8, 20, 5, 10)),
}  # fmt: skip


@pytest.mark.parametrize("name", SPLIT)
def test_parts_of_an_open_size_stay_open(name):
    program, rows = SPLIT[name]
    calls = sizes(*((count, 3) for count in rows))
    counts, _ = agree(program, *calls)
    assert counts[1:4] == [2, 2, 2] and counts[4] == (2 if rows[4] else 3)
    compiled = torch.compile(program, dynamic=True, fullgraph=True)
    for (x,) in calls:
        expected, found = program(x), compiled(x)
        assert same(found, expected) and type(found) is type(expected)
    assert len(_debug_get_cache_entry_list(compiled)) == (1 if rows[4] else 2)


# What fixes a size


def test_a_branch_on_a_size_is_guarded_both_ways():
    def program(x):
        return x * 2 if x.shape[0] > 4 else x - 1

    counts, _ = agree(program, *sizes((8,), (6,), (5,), (3,), (4,), (2,), (100,)))
    assert counts == [1, 2, 2, 3, 3, 3, 3]
    compiled, _ = counting(program)
    for (x,) in sizes((8,), (6,)):
        compiled(x)
    assert "x.size(0) >= 2" in guards(compiled) and "x.size(0) >= 5" in guards(compiled)


def test_sizes_zero_and_one_are_captured_apart():
    counts, _ = agree(lambda x: x.sum(0) + x.shape[0], *sizes((4, 2), (6, 2), (1, 2), (0, 2), (9, 2), (1, 2), (0, 2)))
    assert counts == [1, 2, 3, 4, 4, 4, 4]


def test_a_range_over_a_size_holds_for_this_size():
    counts, _ = agree(lambda x: sum(x[i] * i for i in range(x.size(0))), *sizes((2, 2), (3, 2), (4, 2), (3, 2), (2, 2)))
    assert counts == [1, 2, 3, 3, 3]


@pytest.mark.parametrize(
    "program",
    [
        lambda x: (x * 2, f"{x.shape[0]}"),
        lambda x: (x * 2, str(x.shape[0]), repr(x.shape), f"{x.shape[0]:d}"),
        lambda x: x * {3: 1, 4: 2, 5: 3, 6: 4}[x.shape[0]],
        lambda x: x * [1, 2, 3, 4, 5, 6, 7][x.shape[0]],
        lambda x: x * (x.shape[0] / 2) * float(x.shape[0]),
        lambda x: x * int(x.shape[0] * 0.7) + int(x.shape[0] / 7 * 3) + math.ceil(x.shape[0] / 3 / 5) + int(49 / (49 / x.shape[0])),
        lambda x: x * round(x.shape[0] / 2) + int(-x.shape[0] / 2) + x.shape[0] / 2 // 1 - abs(x.shape[0] / 2 - 3),
        lambda x: x / (x.shape[0] / 4) if x.shape[0] / 4 > 1 and x.shape[0] / 2 == 2 else x * (x.shape[0] / 3).is_integer(),
        lambda x: x * (1 << x.shape[0]),
        lambda x: x * (x.shape[0] in (3, 5)),
        lambda x: x * len("ab" * x.shape[0]),
        lambda x: x * len({x.shape[0], 3, 4}),
        lambda x: (x * 2, (x.shape[0] + 3).bit_length()),
        lambda x: (x * 2, x.shape[0] is not None, hash(x.shape[0])),
        lambda x: x * sorted([x.shape[0], 4, 5])[0],
        lambda x: x * int("1" * x.shape[0]),
        lambda x: (x + 1, list(range(x.shape[0]))[-1]),
        lambda x: (x + 1, x.shape[0] ** 2, 2 ** x.shape[0], x.shape[0] ** 0.5, divmod(x.shape[0], 2), -x.shape[0] // 2),
        lambda x: (x + 1, x.shape == (3,), x.shape[0] == 4, x.shape[0] != 5, x.shape > (4,)),
    ],
)  # fmt: skip
def test_what_needs_the_number_is_right_for_each(program):
    agree(program, *sizes((3,), (4,), (5,), (6,), (3,)))
    agree(program, *sizes((3,), (4,), (5,), (6,), (3,)), dynamic=True)


# Several inputs


def test_two_open_inputs_that_broadcast():
    shapes = [((4, 3), (4, 3)), ((6, 3), (6, 3)), ((9, 3), (9, 3)), ((5, 3), (1, 3)), ((7, 3), (1, 3)), ((8, 3), (8, 3))]
    calls = [(torch.randn(*one), torch.randn(*other)) for one, other in shapes]
    counts, _ = agree(lambda x, y: x + y, *calls)
    assert counts == [1, 2, 2, 3, 3, 3]


def test_sizes_that_were_equal_may_differ_later():
    calls = [(torch.randn(one), torch.randn(other)) for one, other in ((4, 4), (6, 6), (5, 5), (7, 3), (2, 9))]
    counts, _ = agree(lambda x, y: torch.cat([x, y]), *calls)
    assert counts == [1, 2, 2, 2, 2]
    counts, _ = agree(lambda x, y: torch.cat([x, y]), *calls, dynamic=True)
    assert counts == [1, 1, 1, 2, 2]


def test_lists_of_tensors():
    calls = [([torch.randn(n, 2), torch.randn(n + 1, 2)],) for n in (3, 5, 7, 4)]
    counts, _ = agree(lambda xs: (torch.cat(xs), [x * 2 for x in xs], sum(x.shape[0] for x in xs)), *calls)
    assert counts == [1, 2, 2, 2]


def test_strides_of_open_inputs():
    base = torch.randn(40, 40)
    transposed = [(torch.randn(3, n).t(),) for n in (4, 6, 5, 9)]
    counts, _ = agree(lambda x: x * 2 + x.shape[0], *transposed)
    assert counts == [1, 2, 2, 2]
    windows = [(base[:n, :3],) for n in (4, 6, 5, 9)]
    counts, _ = agree(lambda x: x.contiguous().view(-1), *windows)
    assert counts == [1, 2, 2, 2]
    rows = [(torch.randn(n, 20)[:, :3],) for n in (4, 6, 5)] + [(torch.randn(4, n)[:, :3],) for n in (30, 35, 32)]
    counts, _ = agree(lambda x: x.sum(1), *rows)
    assert counts == [1, 2, 2, 3, 3, 3]
    mixed = [(torch.randn(4, 6),), (torch.randn(5, 7).t(),), (torch.randn(6, 8),), (torch.randn(8, 6).t(),), (torch.randn(3, 5),)]
    agree(lambda x: (x + 1, x.reshape(-1)), *mixed)


@pytest.mark.parametrize("strides", [(9, 1), (7, 1), (1, 1), (1, 5)])
def test_rows_that_are_apart_or_overlap_after_rows_that_are_not(strides):
    """That a stride is the size of the next dimension is an assumption as any other."""
    calls = [(torch.randn(4, 8),), (torch.randn(5, 9),), (torch.randn(100).as_strided((4, 8), strides),), (torch.randn(3, 7),)]
    counts, _ = agree(lambda x: x * 2, *calls, dynamic=True)
    assert counts == [1, 1, 2, 2]
    compiled = torch.compile(lambda x: (x * 2).sum(0), dynamic=True)
    for (x,) in calls:
        assert torch.allclose(compiled(x), (x * 2).sum(0), atol=1e-5)


def test_expanded_and_sliced_inputs():
    agree(lambda x: x + 1, *[(torch.randn(1, 3).expand(n, 3),) for n in (4, 6, 5)])
    agree(lambda x: x.reshape(-1) + 1, *[(torch.randn(20, 3)[2 : 2 + n],) for n in (4, 6, 5)])


# Integers


def test_int_arguments_stay_open_once_they_changed():
    counts, graphs = agree(lambda x, n: (x * n).repeat(n, 1), *[(torch.ones(2), n) for n in (2, 3, 4, 7)])
    assert counts == [1, 2, 2, 2]
    assert 'L_n_: "Sym(s0)"' in graphs[1].print_readable(print_output=False)


def test_ints_zero_and_one_and_negative():
    counts, _ = agree(lambda x, n: x + n, *[(torch.ones(2), n) for n in (5, 7, 0, 1, -3, 100)])
    assert counts == [1, 2, 2, 2, 2, 2]
    agree(lambda x, n: x * 2 if n > 3 else x // (n + 1), *[(torch.ones(2), n) for n in (5, 7, 0, 1, 3, 100)])


def test_an_int_that_needs_its_value():
    agree(lambda x, n: sum(x * i for i in range(n)), *[(torch.ones(2), n) for n in (2, 3, 4, 2)])
    agree(lambda x, n: x.view(n, -1), *[(torch.ones(12), n) for n in (2, 3, 4, 6)])
    agree(lambda x, n: x.flatten(n), *[(torch.ones(2, 2, 2), n) for n in (0, 1, 2)])
    agree(lambda x, n: x.sum(n), *[(torch.ones(2, 3, 4, 5), n) for n in (2, 3, 1, 0, -1)])


def test_bools_stay_fixed():
    counts, _ = agree(lambda x, flag: x * 2 if flag else x * 3, *[(torch.ones(2), flag) for flag in (True, False, True)])
    assert counts == [1, 2, 2]


# Floats

FACTORS = (2.5, 3.5, -0.0, 4.5, float("inf"), 1e-3, 2.5)


@pytest.mark.parametrize("function", [
    lambda x, factor: (x * x).sum() + factor * x.abs().sum(),
    lambda x, factor: x * (1 - factor) + factor * 2 / 3,
    lambda x, factor: x.mul(factor).add_(1).sub(-factor),
    lambda x, factor: torch.mul(torch.div(x, factor + 2), abs(factor)) - +factor,
    lambda x, factor: (x * 2, factor * 3, -factor),
    lambda x, factor: x.double() * factor,
], ids=["loss", "mix", "methods", "functions", "results", "double"])  # fmt: skip
def test_floats_stay_open_once_they_changed(function):
    counts, _ = agree(function, *[(torch.arange(1.0, 4.0), factor) for factor in FACTORS if factor < 10])
    assert counts == [1, 2, 2, 2, 2, 2]


OF_SIZES = {
    "root": lambda x: x / math.sqrt(x.shape[-1]) + x * x.shape[0] ** -0.5,
    "share": lambda x: x * (1.0 / x.shape[0]) - x.shape[0] / x.shape[1],
    "dividend": lambda x: (x.shape[0] / x, math.sqrt(x.shape[1]) / x, x.shape[0] ** x),
    "mean": lambda x: x.square().sum() / (x.numel() * 1.5) + x.sum(0) / float(x.shape[0]),
    "functions": lambda x: x * math.log(x.shape[0] / x.shape[1] + 1) * math.exp(-x.shape[0]) * math.cos(math.pi / x.shape[1]),
    "filled": lambda x: (torch.full((2,), x.shape[0] * 0.5), torch.full_like(x, 1 / x.shape[0]), x.new_full((2,), x.shape[1] / 3)),
    "chosen": lambda x: (torch.where(x > 0, x, 1.0 / x.shape[0]), x.masked_fill(x > 0, -x.shape[0] / 2), x.clamp(0, x.shape[0] / 9)),
    "compared": lambda x: (x > 1.0 / x.shape[0], x <= x.shape[1] * 0.1),
    "in place": lambda x: torch.zeros_like(x).fill_(1.0 / x.shape[0]).mul_(x.shape[0] * 0.3),
    "multiple": lambda x: torch.add(x, x, alpha=1.0 / x.shape[0]) + torch.lerp(x, x * 2, 1.0 / x.shape[0]),
    "tensors": lambda x: x[:, :2] * torch.tensor([1.0 / x.shape[0], x.shape[1]]) * torch.tensor(x.shape[0]),
    "positions": lambda x: x + torch.arange(x.shape[1]) * (2 * math.pi / x.shape[1]),
    "results": lambda x: (x * 2, x.shape[0] * 0.1, math.sqrt(x.shape[1]), round(x.shape[0] / 3, 2)),
    "extremes": lambda x: x * min(1.0, x.shape[0] / 6) * max(0.1, 1 - 0.1 * x.shape[0]) % (x.shape[1] * 0.5),
    "branch": lambda x: x * 2 if x.shape[0] / x.shape[1] > 0.5 else x * 3,
    "double": lambda x: x.double() / math.sqrt(x.shape[0]),
    "half": lambda x: (x.half() * (1.0 / x.shape[0]), x.bfloat16() / math.sqrt(x.shape[0]), 0.3 * x.shape[0] - x.bfloat16()),
    "integers": lambda x: ((x > 0).long() / math.sqrt(x.shape[0]), (x > 0) * (x.shape[0] * 0.5)),
    "complex": lambda x: torch.complex(x, x) / math.sqrt(x.shape[0]),
}


@pytest.mark.parametrize("function", OF_SIZES.values(), ids=OF_SIZES)
def test_floats_of_sizes_stay_open(function):
    counts, _ = agree(function, *sizes((3, 4), (5, 6), (7, 9), (8, 11)))
    assert counts == [1, 2, 2, 2]


@pytest.mark.parametrize("name", ["root", "mean", "filled", "positions", "tensors"])
def test_native_code_takes_floats_of_sizes(name):
    compiled = torch.compile(OF_SIZES[name])
    for (x,) in sizes((3, 4), (5, 6), (7, 9)):
        assert same(compiled(x), OF_SIZES[name](x))


def test_gradients_beside_floats_of_sizes():
    def attend(q):
        return (torch.softmax(q @ q.mT * q.size(-1) ** -0.5, -1) @ q).square().sum() / q.shape[1]

    compiled, graphs = counting(attend)
    for shape in ((2, 3, 4), (2, 5, 6), (2, 7, 8)):
        q = torch.randn(*shape, requires_grad=True)
        found, expected = (torch.autograd.grad(call(q), q)[0] for call in (compiled, attend))
        torch.testing.assert_close(found, expected)
    assert len(graphs) == 2


def test_floats_of_steps_stay_open():
    def step(x, count, total):
        decay = 1 - 0.9 ** count
        angle = math.cos((count / total + 0.008) / 1.008 * math.pi / 2) ** 2
        return x * angle / decay + max(0.1, 1 - count * 0.01)

    counts, _ = agree(step, *[(torch.ones(3), count, 10) for count in range(2, 9)])
    assert counts == [1, 2, 2, 2, 2, 2, 2]


def test_what_rounding_gives_is_guarded_and_not_the_size():
    def program(x):
        return x + math.ceil(math.log2(x.shape[0])) + int(math.sqrt(x.shape[0])) + round(x.shape[0] / 100)

    counts, _ = agree(program, *sizes((9,), (10,), (12,), (15,), (14,), (40,)))
    assert counts == [1, 2, 2, 2, 2, 3]


def test_a_size_that_may_be_zero_is_no_divisor_of_open_floats():
    calls = [(torch.ones(2), count) for count in (3, 5, 7, -2, 4)]
    counts, _ = agree(lambda x, count: x * (1.5 / count), *calls)
    assert counts == [1, 2, 2, 3, 3]
    compiled = torch.compile(lambda x, count: x * (1.5 / count))
    compiled(torch.ones(2), 3), compiled(torch.ones(2), 5)
    with pytest.raises(ZeroDivisionError):
        compiled(torch.ones(2), 0)


FILLED = {
    "full": lambda x, value: torch.full((2, 3), value),
    "dtype": lambda x, value: torch.full((2, 3), fill_value=value, dtype=torch.float64),
    "new": lambda x, value: x.new_full((2, 3), value),
    "like": lambda x, value: torch.full_like(x, value) + x,
    "computed": lambda x, value: torch.full((x.shape[0],), x.sum()),
    "bounds": lambda x, value: (x.clamp(0.5, value), torch.clamp(x, min=value, max=2)),
}


@pytest.mark.parametrize("function", FILLED.values(), ids=FILLED)
def test_numbers_in_tensors_are_not_read(function):
    for value in (1.5, 3, True):
        agree(function, (torch.randn(3), torch.tensor(value)), (torch.randn(4), torch.tensor(value)))


def test_an_open_float_is_an_input():
    compiled, graphs = counting(lambda x, rate: x * (1 - rate))
    for rate in FACTORS:
        assert torch.equal(compiled(torch.ones(2), rate), torch.ones(2) * (1 - rate))
    assert len(graphs) == 2
    assert 'L_1_rate_: "f32[]"' in graphs[1].print_readable(print_output=False)
    assert compiled(torch.ones(2), 3).tolist() == [-2.0, -2.0] and len(graphs) == 3


@pytest.mark.parametrize("function", [
    lambda x, factor: x * 2 if factor > 3 else x - 1,
    lambda x, factor: x.clamp(max=factor),
    lambda x, factor: x.add(x, alpha=factor),
    lambda x, factor: x.half() * factor,
    lambda x, factor: x.int() * factor,
    lambda x, factor: x * (1 / factor) ** 2,
    lambda x, factor: x * int(factor) + len(f"{factor}"),
], ids=["branch", "clamp", "alpha", "half", "integers", "quotient", "text"])  # fmt: skip
def test_a_float_that_needs_its_value(function):
    agree(function, *[(torch.arange(3.0), factor) for factor in (2.5, 3.5, 4.5, 2.5, 3.5)])


def test_an_open_float_divides_by_zero():
    compiled = torch.compile(lambda x, scale: x * (1.0 / scale))
    for scale in (2.0, 4.0, 5.0):
        compiled(torch.ones(2), scale)
    with pytest.raises(ZeroDivisionError):
        compiled(torch.ones(2), 0.0)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_gradients_beside_an_open_float(dtype):
    def step(weight, beta):
        return (weight * beta).square().sum() + beta * weight.sum()

    compiled, weight = torch.compile(step), torch.arange(4.0).to(dtype).requires_grad_()
    for beta in FACTORS[:4]:
        found, expected = (torch.autograd.grad(call(weight, beta), weight)[0] for call in (compiled, step))
        torch.testing.assert_close(found, expected)


def test_floats_that_objects_hold():
    class Mixer:
        def __init__(self):
            self.rate, self.other = 1.0, 2.0

        def __call__(self, x):
            self.rate, self.other = self.other * 0.5, self.rate + 0.25
            return x.mul_(self.rate).add_(self.other * x)

    plain, mixer = Mixer(), Mixer()
    compiled, graphs = counting(mixer.__call__)
    for _ in range(10):
        found, expected = torch.ones(3), torch.ones(3)
        assert torch.equal(compiled(found), plain(expected)) and torch.equal(found, expected)
        assert (mixer.rate, mixer.other) == (plain.rate, plain.other)
    assert len(graphs) < 6


def test_floats_stay_fixed_on_demand():
    compiled, graphs = counting(lambda x, factor: x * factor, dynamic=False)
    for factor in (2.5, 3.5, 4.5):
        assert torch.equal(compiled(torch.ones(2), factor), torch.ones(2) * factor)
    assert len(graphs) == 3


def test_an_attribute_that_counts():
    class Counter:
        steps = 0

        def step(self, x):
            self.steps += 1
            return x * self.steps

    counter = Counter()
    compiled, graphs = counting(counter.step)
    assert [compiled(torch.ones(1)).item() for _ in range(6)] == [1, 2, 3, 4, 5, 6] and counter.steps == 6
    assert len(graphs) == 3


# Settings and marks


def test_dynamic_false_never_opens_a_size():
    counts, _ = agree(lambda x: x * 2, *sizes((3,), (4,), (5,)), dynamic=False)
    assert counts == [1, 2, 3]
    x = torch.ones(3)
    torch._dynamo.mark_dynamic(x, 0)
    assert agree(lambda x: x * 2, (x,), dynamic=False)[0] == [1]


def test_mark_dynamic_opens_a_size_at_once():
    compiled, graphs = counting(lambda x: x * 2 + x.shape[0])
    x = torch.ones(3, 4)
    torch._dynamo.mark_dynamic(x, 0)
    for rows in (x, torch.ones(5, 4), torch.ones(9, 4)):
        assert same(compiled(rows), rows * 2 + rows.shape[0])
    assert len(graphs) == 1 and 'L_x_: "f32[s0, 4]"' in graphs[0].print_readable(print_output=False)


def test_mark_dynamic_with_limits():
    compiled, graphs = counting(lambda x: x * 2)
    x = torch.ones(8)
    torch._dynamo.mark_dynamic(x, 0, min=4, max=16)
    for size in (8, 4, 16, 17, 3):
        assert compiled(x if size == 8 else torch.ones(size)).shape == (size,)
    assert len(graphs) > 1
    y = torch.ones(8)
    torch._dynamo.mark_dynamic(y, 0, min=10)
    with pytest.raises(ConstraintViolationError, match="marked dynamic with min=10 and max=None, but it is 8"):
        counting(lambda x: x * 2)[0](y)


@pytest.mark.parametrize(
    "program, shape", [(lambda x: x.view(3, 4), (3, 4)), (lambda x: sum(x[i] for i in range(len(x))), (3, 4)), (lambda x: x + 1, (1, 4))]
)
def test_a_marked_size_that_is_fixed_is_an_error(program, shape):
    x = torch.ones(*shape)
    torch._dynamo.mark_dynamic(x, 0)
    with pytest.raises(ConstraintViolationError, match=r"x\.size\(0\)"):
        counting(program)[0](x)
    x = torch.ones(*shape)
    torch._dynamo.maybe_mark_dynamic(x, 0)
    assert same(counting(program)[0](x), program(x))


def test_a_marked_size_that_a_branch_narrows():
    x = torch.ones(8)
    torch._dynamo.mark_dynamic(x, 0, min=2, max=20)
    with pytest.raises(ConstraintViolationError, match=r"holds only where s0 >= 6"):
        counting(lambda x: x * 2 if x.shape[0] > 5 else x)[0](x)


def test_mark_static_fixes_a_size():
    compiled, graphs = counting(lambda x: x * 2)
    for size in (3, 4, 5):
        x = torch.ones(size)
        torch._dynamo.mark_static(x)
        compiled(x)
    assert len(graphs) == 3


@pytest.mark.parametrize("mark", [torch._dynamo.mark_dynamic, torch._dynamo.maybe_mark_dynamic, torch._dynamo.mark_static])
def test_marks_check_the_dimension(mark):
    with pytest.raises(IndexError, match="got dimension 2 of a tensor with 2 dimensions"):
        mark(torch.ones(2, 3), 2)


def test_parameters_stay_fixed():
    layer = nn.Linear(4, 3)
    compiled, graphs = counting(layer, dynamic=True)
    with torch.no_grad():
        compiled(torch.ones(5, 4))
    assert "f32[s0, 4]" in graphs[0].print_readable(print_output=False)


# Breaks, errors, reports


def test_functions_with_graph_breaks():
    def program(x):
        y = x * x.shape[0]
        n = y.shape[0] + 1
        torch._dynamo.graph_break()
        return y.view(-1) * n, n

    compiled, graphs = counting(program)
    counts = []
    for (x,) in sizes((4, 3), (6, 3), (5, 3), (9, 3)):
        assert same(compiled(x), program(x))
        counts.append(len(graphs))
    assert counts == [2, 4, 4, 4]


def test_an_error_of_the_program_comes_as_in_eager():
    compiled, _ = counting(lambda x, y: x @ y)
    compiled(torch.ones(2, 3), torch.ones(3, 2))
    with pytest.raises(RuntimeError, match=re.escape("mat1 and mat2 shapes cannot be multiplied (4x5 and 6x2)")):
        compiled(torch.ones(4, 5), torch.ones(6, 2))

    def handled(x):
        try:
            return x.view(3, -1)
        except RuntimeError as error:
            return x * 2, str(error)

    agree(handled, *sizes((3,), (4,), (6,), (5,)))


def test_a_backend_that_fails_with_open_sizes_gets_fixed_ones():
    seen = []

    def backend(module, inputs):
        text = module.print_readable(print_output=False)
        seen.append("s0" in text)
        if "s0" in text:
            raise RuntimeError("no symbols, please")
        return module.forward

    compiled = torch.compile(lambda x: x * 2, backend=backend)
    for (x,) in sizes((3,), (4,), (5,)):
        assert same(compiled(x), x * 2)
    assert seen == [False, True, False, True, False]


def test_guards_of_a_backend_count():
    def backend(module, inputs):
        size = next(node for node in module.graph.nodes if node.op == "placeholder").meta["example_value"].shape[0]
        return (lambda *args: (args[0] * 100,)) if size % 2 == 0 else module.forward

    compiled = torch.compile(lambda x: x * 2, backend=backend, dynamic=True)
    assert [compiled(torch.ones(size))[0].item() for size in (4, 6, 5, 7, 8)] == [100, 100, 2, 2, 100]


def test_the_recompile_log_names_the_size_that_changed(capfd):
    compiled = torch.compile(lambda x: x * 2 if x.shape[0] > 4 else x, backend="eager", options={"logs": frozenset(["recompiles", "guards"])})
    for (x,) in sizes((8,), (6,), (3,)):
        compiled(x)
    text = "".join(capfd.readouterr())
    assert re.search(r"size=\[8\].*found a tensor of shape \[6\]", text)
    assert re.search(r"x\.size\(0\) >= 5 \(size, for .*test_dynamic\.py:\d+ in <lambda>.*\), found 3", text)


def test_explain_shows_the_guards_on_sizes():
    x = torch.ones(8)
    torch._dynamo.mark_dynamic(x, 0)
    found = torch._dynamo.explain(lambda x: x * 2 if x.shape[0] > 4 else x)(x)
    assert found.graph_count == 1 and "x.size(0) >= 5" in str(found)


def test_resized_inputs_are_read_before_they_change():
    def program(x):
        before = x.shape[0]
        x.t_()
        return x * 2, before, x.shape[0]

    agree(program, *sizes((4, 3), (6, 3), (5, 3)))


def test_several_threads_share_what_was_captured():
    compiled, graphs = counting(lambda x, y: (x @ y).softmax(-1) * x.shape[0], fullgraph=True)
    wrong = []

    def work(seed):
        for size in range(2, 12):
            rows = 2 + (size * seed) % 9
            x, y = torch.randn(rows, 4), torch.randn(4, size)
            if not same(compiled(x, y), (x @ y).softmax(-1) * x.shape[0]):
                wrong.append((rows, size))

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(1, 7)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong and len(graphs) <= 6


def test_each_compiled_function_has_a_history_of_its_own():
    def program(x):
        return x * 2

    for _ in range(3):
        compiled, graphs = counting(program)
        compiled(torch.ones(4))
        assert 'L_x_: "f32[4]"' in graphs[0].print_readable(print_output=False)


class Repeating(nn.Module):
    def __init__(self):
        super().__init__()
        self.count, self.sizes = 5, (3, 4)

    def forward(self, x):
        return x.repeat(self.count, 1) * self.sizes[0]


@pytest.mark.parametrize("made", [Repeating, lambda: nn.Sequential(Repeating())])
def test_what_a_module_holds_is_a_setting(made):
    model = made()
    counts, graphs = agree(model, *sizes((5, 2), (3, 2), (7, 2)), dynamic=True)
    assert counts == [1, 1, 1] and "repeat(5, 1)" in graphs[0].code
