"""What writes where an index says, as native code, agrees with eager."""

from __future__ import annotations

import warnings

import pytest

import rushlight as torch
from rushlight.nn import functional as F
from tests.inductor.native_nodes import check as native


def gradient(function, table, indices):
    leaf = table.detach().requires_grad_()
    result = function(leaf, indices)
    weights = (torch.arange(result.numel()) % 7 - 2.5).view(result.shape)
    return torch.autograd.grad((result * weights).sum(), leaf)[0]


def check(indices, rows=11, columns=20, dynamic=None, **options):
    def function(table, indices):
        return F.embedding(indices, table, **options)

    table = torch.randn(rows, columns)
    with warnings.catch_warnings():
        warnings.filterwarnings("error", message="compile")
        found = gradient(torch.compile(function, fullgraph=True, dynamic=dynamic), table, indices)
    wanted = gradient(function, table, indices)
    assert found.stride() == wanted.stride()
    torch.testing.assert_close(found, wanted)


@pytest.mark.parametrize("columns", [1, 7, 16, 300])
@pytest.mark.parametrize("shape", [(), (1,), (400,), (3, 50)], ids=str)
def test_gradient_of_an_embedding(shape, columns):
    check(torch.randint(0, 11, shape), columns=columns)


@pytest.mark.parametrize("padding", [0, 3, -1])
def test_the_row_of_padding_gets_none(padding):
    check(torch.randint(0, 11, (60,)), padding_idx=padding)


def test_large_tables_and_other_indices():
    check(torch.randint(0, 5000, (300,)), rows=5000, columns=64)
    check(torch.randint(0, 11, (60,)).to(torch.int32))
    check(torch.randint(0, 11, (30, 6)).t()[::2])


def test_scaled_by_frequency_runs_in_eager():
    check(torch.randint(0, 11, (60,)), scale_grad_by_freq=True)


def test_open_sizes():
    check(torch.randint(0, 11, (6, 9)), dynamic=True)


def test_an_index_out_of_range_is_an_error():
    table = torch.randn(4, 3).requires_grad_()
    with pytest.raises(IndexError):
        torch.compile(lambda table, indices: F.embedding(indices, table))(table, torch.tensor([1, 4]))


KINDS = [torch.float32, torch.float64, torch.bfloat16, torch.int64, torch.uint8, torch.bool]


def values(shape, kind=torch.float32):
    made = torch.randn(shape) * 3
    return made > 0 if kind is torch.bool else (made.abs() if kind is torch.uint8 else made).to(kind)


@pytest.mark.parametrize("kind", KINDS, ids=str)
@pytest.mark.parametrize("shape, dim", [((8,), 0), ((4, 30), 0), ((40, 7), 1), ((3, 5, 33), 1), ((2, 9, 4), -1)], ids=str)
def test_along_a_dimension(kind, shape, dim):
    """Places repeat: the last value stays, or all are added up."""
    index = torch.randint(0, shape[dim], tuple(size + 5 if axis == dim % len(shape) else size - 1
                                               for axis, size in enumerate(shape)))  # fmt: skip
    table, source = values(shape, kind), values(tuple(size + 6 for size in shape), kind)

    def function(table, index, source):
        return table.scatter_add(dim, index, source), table.scatter(dim, index, source), table.scatter(dim, index, 3)

    native(function, table, index, source)


@pytest.mark.parametrize("reduce", ["sum", "prod", "mean", "amax", "amin"])
@pytest.mark.parametrize("kind", [torch.float32, torch.float64, torch.int64, torch.uint8], ids=str)
def test_reductions(kind, reduce):
    def function(table, down, across, source):
        return tuple(
            table.scatter_reduce(dim, index, source, reduce, include_self=include)
            for dim, index in ((0, down), (1, across)) for include in (True, False)
        )  # fmt: skip

    down, across = torch.randint(0, 6, (9, 20)), torch.randint(0, 20, (6, 3))
    native(function, values((6, 20), kind), down, across, values((9, 20), kind))


def test_extrema_pass_nan_on():
    source = torch.tensor([1.0, float("nan"), 5.0, 7.0, -float("inf")])
    index = torch.tensor([0, 0, 0, 1, 2])

    def function(t, i, s):
        return tuple(t.scatter_reduce(0, i, s, reduce) for reduce in ("amax", "amin", "sum"))

    native(function, torch.zeros(4), index, source)


@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_rows(kind):
    def function(t, i, r, j, s):
        return t.index_add(0, i, r), t.index_copy(0, i, r), t.index_fill(0, i, 2), t.index_add(1, j, s)

    index, others = torch.randint(0, 7, (11,)), torch.randint(0, 20, (3,))
    native(function, values((7, 20), kind), index, values((11, 20), kind), others, values((7, 3), kind))


@pytest.mark.parametrize("kind", KINDS, ids=str)
@pytest.mark.parametrize("accumulate", [False, True])
def test_by_several_indices(kind, accumulate):
    table = values((5, 6, 18), kind)
    rows, columns = torch.randint(-5, 5, (4, 3)), torch.randint(-6, 6, (3,)).to(torch.int32)

    cases = [
        ((rows,), (4, 3, 6, 18)), ((rows,), (18,)), ((rows, columns), (4, 3, 18)), ((rows, columns), ()),
        ((rows, None, columns), (4, 3, 6)), ((None, columns), (5, 3, 18)), ((None, None, torch.tensor(-1)), (1, 6)),
        ((torch.empty(0, dtype=torch.int64),), (0, 6, 18)), ((table != 0,), ()), ((None, table[0] != 0), (1,)),
    ]  # fmt: skip

    def function(table, *given):
        pairs = zip(cases, given, strict=True)
        return tuple(table.index_put(indices, value, accumulate=accumulate) for (indices, _), value in pairs)

    native(function, table, *(values(shape, kind) for _, shape in cases))


def test_assignments():
    def function(x, index, y):
        x = x.clone()
        x[index] = y
        x[:, 1] += 1
        x[x < 0] = 0
        x[1:, index[:2]] = 7.0
        return x

    native(function, values((6, 9)), torch.tensor([4, 1, 4]), values((3, 9)))


def test_producers_and_other_layouts():
    index = torch.randint(0, 6, (9, 4)).t()[::2]
    native(lambda t, i, s: (t * 2).scatter_add(0, i + 0, s.sin() + 1), values((9, 6)).t(), index, values((9, 4)).t()[::2])
    native(lambda t, i, s: t.index_add(0, i, s.t()), values((4, 6))[:, ::2], torch.tensor([3, 3, 0]), values((3, 3)))
    native(lambda i: torch.zeros(10).index_add(0, i, torch.ones(6)), torch.tensor([1, 1, 2, 9, 9, 9]))


def test_one_element_and_none():
    native(lambda t, i, s: t.scatter_add(0, i, s), torch.tensor(2.0), torch.tensor(0), torch.tensor(3.0))
    native(lambda t, i, s: t.scatter(0, i, s), torch.randn(1), torch.zeros(1, dtype=torch.int64), torch.randn(1))
    native(lambda t, i, s: t.scatter(0, i, s), torch.randn(4), torch.zeros(0, dtype=torch.int64), torch.randn(3))


def test_large_ones_are_shared_among_threads():
    table, index, rows = torch.zeros(300, 65), torch.randint(0, 300, (5000,)), values((5000, 65))
    native(lambda t, i, r: t.index_add(0, i, r), table, index, rows)
    native(lambda i, v: torch.zeros(1000).scatter_add(0, i, v), torch.randint(0, 1000, (60000,)), values((60000,)))
    native(lambda t, i, r: t.scatter(0, i, r), table, torch.randint(0, 300, (400, 65)), values((400, 65)))


def test_gradients_of_reads():
    index = torch.randint(0, 5, (4, 3))
    for function in (
        lambda x: x[index].sin(), lambda x: x.gather(0, index), lambda x: x.index_select(1, index[0]),
        lambda x: x.index_add(0, index[0], x[:3] * 2), lambda x: x.scatter(0, index, x[:4, :3].exp()),
    ):  # fmt: skip
        x = torch.randn(5, 6, dtype=torch.float64)
        results = []
        for run in (function, torch.compile(function, fullgraph=True)):
            leaf = x.clone().requires_grad_()
            made = run(leaf)
            (made * torch.arange(made.numel()).view(made.shape)).sum().backward()
            results.append(leaf.grad)
        torch.testing.assert_close(results[1], results[0])


@pytest.mark.parametrize("kind", [torch.bfloat16, torch.float64], ids=str)
def test_embeddings_of_other_dtypes(kind):
    table, index = torch.randn(9, 20).to(kind), torch.randint(0, 9, (7, 5))
    wanted = gradient(lambda table, index: F.embedding(index, table, padding_idx=2), table, index)
    found = gradient(torch.compile(lambda t, i: F.embedding(i, t, padding_idx=2), fullgraph=True), table, index)
    torch.testing.assert_close(found, wanted)


@pytest.mark.filterwarnings("error")
def test_open_sizes_of_scatters():
    compiled = torch.compile(lambda t, i, r: (t + 1).index_add(0, i, r * 2), fullgraph=True, dynamic=True)
    for rows, count, columns in ((5, 7, 20), (9, 3, 4), (30, 100, 33)):
        table, index, source = values((rows, columns)), torch.randint(0, rows, (count,)), values((count, columns))
        torch.testing.assert_close(compiled(table, index, source), (table + 1).index_add(0, index, source * 2))


@pytest.mark.parametrize("bad", [-1, 4, 1 << 40])
def test_indices_out_of_range_raise_as_in_eager(bad):
    index = torch.tensor([1, bad, 0])
    for function in (
        lambda t: t.scatter_add(0, index, torch.ones(3)), lambda t: t.scatter(0, index, torch.ones(3)),
        lambda t: t.scatter_reduce(0, index, torch.ones(3), "amax"), lambda t: t.index_put((index - (bad < 0) * 4,), t[:3]),
    ):  # fmt: skip
        raised = []
        for run in (function, torch.compile(function)):
            table = torch.zeros(4)
            with pytest.raises((IndexError, RuntimeError)) as caught:
                run(table)
            raised.append((type(caught.value), str(caught.value)))
            assert bool((table == 0).all())
        assert raised[0] == raised[1]


@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_into_views(kind):
    def function(x, rows):
        y = x.clone()
        y.diagonal().fill_(2)
        z = rows.new_zeros(20, 40)
        z.as_strided((20, 3), (40, 10), 5).copy_(rows[:, :3])
        return torch.diag_embed(rows), torch.diag(rows[0]), torch.diag(rows[:, 1], 2), y, z, torch.block_diag(x, rows)

    native(function, values((6, 6), kind), values((20, 7), kind))


def test_memory_that_is_filled_natively():
    def function(x):
        made = torch.empty(4, 6)
        made[:, :3] = x
        made[:, 3:] = x * 2
        return made.sin()

    native(function, values((4, 3)))
    native(lambda t: F.affine_grid(t, (2, 3, 8, 8), align_corners=False), values((2, 2, 3)))
