"""Triton kernels of loops in Triton's interpreter: elementwise, reductions, indexing, scatters, scans, sorts, random numbers."""

from __future__ import annotations

import pytest

import rushlight as torch
from rushlight.inductor.codegen.triton import loops, sorts
from tests.inductor.triton.interpreted import check

F = torch.nn.functional
NAN, INF = float("nan"), float("inf")
NUMBERS = torch.tensor([
    0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 2.5, -2.5, 3.5, 1e-8, -1e-8, 0.3, -0.7, 0.99, 5.0, -5.0, 20.0, -20.0, 100.0, -100.0, INF,
    -INF, NAN, 1e-3,
])  # fmt: skip
UNARY = (
    "neg abs sign floor ceil round trunc relu exp expm1 log log1p log2 sqrt rsqrt reciprocal sin cos tan asin acos atan sinh cosh "
    "tanh asinh acosh atanh erf erfc erfinv lgamma sigmoid isnan isinf"
).split()
BINARY = "add sub mul div maximum minimum fmod remainder floor_divide pow atan2 hypot copysign fmax fmin lt eq xlogy".split()
INTEGER = "add sub mul maximum minimum bitwise_and bitwise_or bitwise_xor bitwise_left_shift bitwise_right_shift".split()


def test_functions_of_one_number():
    check(lambda x: tuple(getattr(torch, name)(x) for name in UNARY), NUMBERS)


def test_functions_of_float64():
    x = torch.cat([NUMBERS, torch.linspace(-2, 30, 65)]).double()
    y = torch.linspace(-1, 1, 65, dtype=torch.float64)
    wide = [name for name in UNARY if name != "erfinv"]
    check(lambda x, y: (*(getattr(torch, name)(x) for name in wide), torch.asin(y), torch.acos(y)), x, y, rtol=1e-12, atol=1e-13)
    check(lambda x, y: torch.atan2(x, y), x.repeat(len(x)), x.repeat_interleave(len(x)), rtol=1e-12, atol=1e-15)


def test_activations():
    names = ("gelu", "silu", "softplus", "elu", "hardtanh", "mish")
    check(lambda x: (*(getattr(F, name)(x) for name in names), F.gelu(x, approximate="tanh")), NUMBERS)


def test_functions_of_two_numbers():
    count = len(NUMBERS)
    check(lambda x, y: tuple(getattr(torch, name)(x, y) for name in BINARY), NUMBERS.repeat(count), NUMBERS.repeat_interleave(count))


@pytest.mark.parametrize("kind", [torch.int64, torch.int32, torch.int8, torch.uint8])
def test_integers(kind):
    given = torch.tensor([0, 1, -1, 2, -2, 3, 7, -7, 100, -100, 2**31 - 1, -(2**31)]).to(kind)
    x, y = given.repeat(12), given.repeat_interleave(12)
    divisor = torch.where(y != 0, y, torch.ones_like(y))
    check(lambda x, y: tuple(getattr(torch, name)(x, y) for name in INTEGER), x, y)
    check(lambda x, y: (torch.fmod(x, y), torch.remainder(x, y), torch.floor_divide(x, y), x / y), x, divisor)
    check(lambda x, y: (-x, ~x, x.abs(), torch.sign(x), torch.pow(x, y), x.to(torch.float32), x.to(torch.bool)), x, y.abs() % 6)


def test_booleans():
    x, y = torch.tensor([True, False, True]), torch.tensor([True, True, False])
    check(lambda x, y: (x & y, x | y, x ^ y, ~x, x + y, x < y, x.to(torch.int64), torch.where(x, 1.0, 0.0)), x, y)


@pytest.mark.parametrize("kind", [torch.float16, torch.bfloat16, torch.float64])
def test_other_floats(kind):
    bounds = {} if kind is torch.float64 else {"rtol": 1e-2, "atol": 1e-2}
    check(lambda x: (x + 1, torch.relu(x) * x, torch.exp(x), (x > 0.3).to(x.dtype), x.to(torch.int32)),
          torch.linspace(-3, 3, 40).to(kind), **bounds)  # fmt: skip


def test_views_and_parts():
    x = torch.randn(5, 7, 6)
    check(lambda x: (
        x.permute(2, 0, 1) + 1, x.transpose(0, 1).contiguous(), x.reshape(7, 30) * 2, x.flip(1), torch.cat([x, x * 2], 1),
        x[:, 1:3] * 2, F.pad(x, (1, 2, 3, 1)), torch.roll(x, 2, 0), torch.tril(x), x.unfold(1, 3, 2) + 0,
    ), x)  # fmt: skip
    check(lambda x: (x * 2, x + 1), x.transpose(0, 2)[::2])


def test_transposes_are_tiled():
    x, y = torch.randn(20, 33), torch.randn(33, 20)
    pieces = check(lambda x, y: (x.t() + y, (x.t() * 2).contiguous().t()), x, y)
    ((_, program),) = pieces.programs
    assert "tiles" in [launch.kind for launch in program.launches]
    check(lambda x: x.permute(2, 0, 1).contiguous() + 1, torch.randn(5, 17, 18))
    check(lambda x: torch.relu(x).contiguous(memory_format=torch.channels_last), torch.randn(2, 17, 4, 5))


@pytest.mark.parametrize("dims", [(-1,), (0,), (1,), (0, 1), (0, 2), (0, 1, 2)])
def test_reductions(dims):
    x = torch.randn(5, 7, 6)
    x[1, 2, 3], x[0, 0, 0] = NAN, INF
    check(lambda x: (x.sum(dims), x.mean(dims), x.amax(dims), x.amin(dims)), x)
    check(lambda x: (x.var(dims), x.std(dims), (x > 1).any(dims[0]), (x > -2).all(dims[0])), torch.randn(5, 7, 6))


@pytest.mark.parametrize("dim", [0, 1, 2])
def test_places_of_extrema_and_products(dim):
    x = torch.randn(5, 7, 6)
    x[1, 2, 3] = NAN
    found = lambda x: (x.argmax(dim), x.argmin(dim), x.prod(dim))  # noqa: E731
    check(found, x)
    check(found, (torch.randn(5, 7, 6) * 3).to(torch.int64))


@pytest.fixture
def short_tiles(monkeypatch):
    """Rows of more than 1024 columns are reduced in loops."""
    monkeypatch.setattr(loops, "MAX_HELD", 1024)
    monkeypatch.setattr(loops, "MAX_PERSISTENT", 1024)


@pytest.mark.usefixtures("short_tiles")
def test_long_rows_are_reduced_in_loops():
    x = torch.randn(3, 9000)
    x[0, 10] = x[0, 20] = 9.0
    pieces = check(lambda x: torch.softmax(x, -1), x)
    assert [launch.kind for _, program in pieces.programs for launch in program.launches] == ["rows_in_loops"]
    check(lambda x, w: F.layer_norm(x, (9000,), w), x, torch.randn(9000))
    x[1, 8999] = x[2, 5] = x[2, 8000] = NAN
    check(lambda x: (x.sum(-1), x.amax(-1), x.amin(-1), x.argmax(-1), x.argmin(-1)), x, rtol=1e-4, atol=1e-3)


@pytest.mark.usefixtures("short_tiles")
def test_variances_far_from_zero():
    x = torch.randn(2, 9000) + 1e6
    check(lambda x: (torch.var(x, -1), *torch.var_mean(x[:, :900], -1), torch.var(x)), x, rtol=1e-4, atol=1e-4)


def test_sums_of_many_columns_are_split():
    pieces = check(lambda x: x.sum(0), torch.randn(4100, 40), rtol=1e-4, atol=1e-3)
    ((_, program),) = pieces.programs
    assert [launch.choice.constants["XBLOCK"] for launch in program.launches] == [32, 32]


def test_reductions_to_few_results_are_split():
    pieces = check(lambda x: (x.sum(), x.amax()), torch.randn(40_000), rtol=1e-4, atol=1e-3)
    ((_, program),) = pieces.programs
    assert len(program.launches) > 2


def test_normalisations():
    x, w = torch.randn(5, 70), torch.randn(70)
    check(lambda x, w: (F.layer_norm(x, (70,), w, w), F.rms_norm(x, (70,), w), torch.log_softmax(x, -1)), x, w)
    check(lambda x: (torch.softmax(x, 0), torch.logsumexp(x, 0)), torch.randn(300, 20))
    check(lambda x: torch.softmax(x, -1), x.to(torch.bfloat16), rtol=1e-2, atol=1e-2)


def test_lookups():
    x, i = torch.randn(5, 7, 6), torch.tensor([4, 0, 2, 2])
    check(lambda x, i: (x[i], x[i - 5], x.index_select(0, i), F.embedding(i, x[:, :, 0]), torch.take(x, i)), x, i)
    check(lambda x, i: torch.gather(x, 0, i), x[:, :, 0].contiguous(), torch.randint(0, 5, (3, 7)))
    row = torch.sort(torch.randn(50))[0]
    check(lambda s, v: (torch.searchsorted(s, v), torch.searchsorted(s, v, right=True)), row, torch.randn(4, 5))


def test_an_index_out_of_range_raises_the_error_of_eager():
    run = torch.compile(lambda x, i: x[i] * 2, options={"target": "triton-interpreter"})
    torch.testing.assert_close(run(torch.arange(4.0), torch.tensor([3])), torch.tensor([6.0]))
    with pytest.raises(IndexError, match="out of bounds"):
        run(torch.arange(4.0), torch.tensor([7]))


def test_scatters():
    x, i, s = torch.randn(5, 7, 6), torch.tensor([4, 0, 2, 2]), torch.randn(4, 7, 6)
    check(lambda x, i, s: (
        x.index_add(0, i, s), x.index_copy(0, i[:3], s[:3]), x.index_put((i,), s, accumulate=True),
        torch.slice_scatter(x, s, 0, 0, 4),
    ), x, i, s)  # fmt: skip
    check(lambda g, i: torch.ops.aten.embedding_dense_backward(g, i, 10, -1, False), torch.randn(4, 6), i)
    check(lambda m, i: m.index_put((i,), ~m[:4], accumulate=True), x[:, :, 0] > 0, i)


@pytest.mark.parametrize("reduce", ["amax", "amin", "mean"])
def test_scattered_extrema_keep_nan(reduce):
    x, i, s = torch.randn(5, 7), torch.tensor([4, 0, 2, 2]), torch.randn(4, 7)
    s[2, 3] = NAN
    check(lambda x, i, s: x.scatter_reduce(0, i[:, None].expand(4, 7), s, reduce), x, i, s)


@pytest.mark.parametrize("kind", [torch.float32, torch.float64, torch.int64, torch.int32, torch.int8, torch.uint8])
@pytest.mark.parametrize("reduce", ["prod", "sum", "amax", "amin"])
def test_scatters_of_all_types(reduce, kind):
    x, i = (torch.randn(5, 7) * 3).to(kind), torch.tensor([4, 0, 2, 2, 2, 4])
    s = (torch.randn(6, 7) * 3).to(kind)
    check(lambda x, i, s: x.scatter_reduce(0, i[:, None].expand(6, 7), s, reduce), x, i, s, rtol=1e-3, atol=1e-3)
    check(lambda x, i, s: x.index_add(0, i, s), x, i, s, rtol=1e-3, atol=1e-2)


def test_scatters_in_place_of_bytes():
    def step(x, i, s):
        return x.index_add_(0, i, s) + 1

    found = []
    for run in (step, torch.compile(step, options={"target": "triton-interpreter"})):
        x = torch.arange(40, dtype=torch.uint8).view(8, 5)
        found.append((run(x, torch.tensor([7, 0, 7]), torch.full((3, 5), 100, dtype=torch.uint8)), x))
    torch.testing.assert_close(*found)


@pytest.mark.parametrize("dim", [0, 1])
def test_scans(dim):
    x = torch.randn(4, 9)
    check(lambda x: (x.cumsum(dim), x.cumprod(dim), torch.logcumsumexp(x, dim), (x * 3).to(torch.int64).cumsum(dim)), x)
    x[1, 2] = NAN
    check(lambda x: (*torch.cummax(x, dim), *torch.cummin(x, dim)), x)


def test_long_scans_carry_from_block_to_block():
    check(lambda x: x.cumsum(1), torch.randn(2, 2500), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("kind", [torch.float32, torch.int64, torch.int32, torch.float16])
def test_sorts(kind):
    x = (torch.randn(4, 21) * 3).to(kind)
    if kind is torch.float32:
        x[1, 2] = NAN
    check(lambda x: (*torch.sort(x, stable=True, dim=-1), *torch.sort(x, stable=True, dim=-1, descending=True)), x)
    check(lambda x: (*torch.topk(x, 3, 0), *torch.kthvalue(x, 2, 1)), torch.randn(4, 21).to(kind) if kind.is_floating_point else
          torch.randperm(84).view(4, 21).to(kind))  # fmt: skip


@pytest.mark.parametrize("kind", [torch.float32, torch.int64, torch.float64, torch.int16])
@pytest.mark.parametrize("descending", [False, True])
def test_long_rows_are_sorted_in_runs_that_are_merged(kind, descending, monkeypatch):
    for name, value in {"MAX_SORTED": 32, "MAX_RANKED": 32, "CHUNK": 16, "RANKED_CHUNK": 16}.items():
        monkeypatch.setattr(sorts, name, value)
    x = (torch.randn(3, 150) * 9).to(kind).round()
    if kind.is_floating_point:
        x[1, 2], x[0, 70], x[0, 3], x[2, 5], x[2, 6] = NAN, INF, -INF, -0.0, 0.0
    pieces = check(lambda x: torch.sort(x, stable=True, dim=-1, descending=descending), x)
    ((_, program),) = pieces.programs
    assert [launch.kind for launch in program.launches] == ["sorted_chunks", *["merged_runs"] * 4, "sorted_values"]
    check(lambda x: torch.sort(x + 1, stable=True, dim=0, descending=descending), x.t().contiguous())
    check(lambda x: torch.topk(x, 40, largest=descending)[0], torch.randn(2, 64).to(torch.float32))


def test_random_numbers_are_those_of_native_code():
    def draw(x):
        return F.dropout(x, 0.3), torch.rand(70), torch.randn(5)

    found = []
    for options in ({}, {"target": "triton-interpreter"}):
        torch.manual_seed(5)
        found.append(torch.compile(draw, options=options)(torch.ones(300)))
    torch.testing.assert_close(*found)
    assert 0.5 < (found[0][0] != 0).float().mean() < 0.9


def test_open_sizes():
    softmax = torch.compile(lambda x: torch.softmax(x * 2, -1), dynamic=True, options={"target": "triton-interpreter"})
    layer = torch.compile(lambda x, w: F.gelu(x @ w), dynamic=True, options={"target": "triton-interpreter"})
    for rows in (5, 9, 17):
        x, w = torch.randn(rows, rows + 3), torch.randn(rows + 3, 6)
        torch.testing.assert_close(softmax(x), torch.softmax(x * 2, -1))
        torch.testing.assert_close(layer(x, w), F.gelu(x @ w), rtol=1e-4, atol=1e-4)


def test_open_sizes_of_places_and_masks():
    def store(cache, x, start):
        cache[start : start + x.shape[0]] = x
        return F.pad(cache, (1, x.shape[0])).cumsum(0)

    run = torch.compile(store, dynamic=True, options={"target": "triton-interpreter"})
    for rows in (3, 5, 4):
        x, ours, theirs = torch.randn(rows, 6), torch.zeros(20, 6), torch.zeros(20, 6)
        torch.testing.assert_close(run(ours, x, 2), store(theirs, x, 2))
        torch.testing.assert_close(ours, theirs)


@pytest.mark.parametrize("dynamic", [False, True])
def test_elements_past_32_bits(dynamic):
    """The last of 2^31 + 70 bytes; the pages of the others are never touched."""
    x = torch.empty(2**31 + 70, dtype=torch.uint8)
    x[-60:] = 0
    x[-5:] = 7
    run = torch.compile(lambda x, y: x[-60:] + y, dynamic=dynamic, options={"target": "triton-interpreter"})
    assert run(x, torch.ones(60, dtype=torch.uint8)).tolist() == [1] * 55 + [8] * 5


def test_numbers_past_32_bits_made_of_small_indices():
    check(lambda x: (torch.arange(0, 2**40, 2**34) + x, torch.linspace(0, 2**40, 64)), torch.zeros(64, dtype=torch.int64))


def test_a_graph_without_inputs():
    assert torch.compile(lambda: torch.arange(5) * 2, options={"target": "triton-interpreter"})().tolist() == [0, 2, 4, 6, 8]


def test_mutated_inputs():
    def step(x, y):
        x.mul_(2).add_(y)
        y[1:3] = 7.0
        return x.sum()

    found = []
    for run in (step, torch.compile(step, options={"target": "triton-interpreter"})):
        x, y = torch.arange(6.0), torch.ones(6)
        found.append((run(x, y), x, y))
    torch.testing.assert_close(*found)
