"""The native kernels against NumPy, over many layouts, dtypes and numbers of threads; they refuse what they do not take."""

from __future__ import annotations

import os
import subprocess
import sys
import threading

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import rushlight as torch
from rushlight.core import parallel
from rushlight.core.dtype import ALL
from rushlight.ops.cpu import convolution, native, native_reductions
from rushlight.ops.meta.convolution import make_geometry

kernels = native.kernels
pytestmark = pytest.mark.skipif(kernels is None, reason="rushlight._kernels was not built")

CODE_OF = {kind.numpy: code for code, kind in enumerate(ALL[:10])}
FLOATS = [np.dtype(kind) for kind in (np.float32, np.float64)]
NUMBERS = [*FLOATS, *(np.dtype(kind) for kind in (np.int64, np.int32, np.int16, np.uint8))]
EVERY = [kind.numpy for kind in ALL[:10]]
SPECIAL = [0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, np.nan, 1e-40, 3.4e38, -87.5, 0.5]

UNARY = {
    "exp": np.exp, "expm1": np.expm1, "log": np.log, "log1p": np.log1p, "log2": np.log2, "sqrt": np.sqrt, "sin": np.sin,
    "cos": np.cos, "tanh": np.tanh, "floor": np.floor, "ceil": np.ceil, "round": np.rint, "trunc": np.trunc, "abs": np.abs,
    "neg": np.negative, "square": np.square, "reciprocal": np.reciprocal, "positive": np.positive,
}  # fmt: skip
BINARY = {
    "add": np.add, "sub": np.subtract, "mul": np.multiply, "maximum": np.maximum, "minimum": np.minimum,
}  # fmt: skip
FLOAT_BINARY = {
    "div": np.divide, "floor_divide": np.floor_divide, "remainder": np.remainder, "fmod": np.fmod, "pow": np.power,
}  # fmt: skip
PREDICATES = {
    "eq": np.equal, "ne": np.not_equal, "lt": np.less, "le": np.less_equal, "gt": np.greater, "ge": np.greater_equal,
    "logical_and": np.logical_and, "logical_or": np.logical_or, "logical_xor": np.logical_xor,
}  # fmt: skip


@pytest.fixture(autouse=True)
def usual_threads():
    yield
    kernels.set_threads(parallel.get_num_threads())


def values(shape, kind: np.dtype, seed: int) -> np.ndarray:
    """Numbers of a dtype, with the special ones among floats."""
    generator = np.random.default_rng(seed)
    if kind.kind in "iub":
        return generator.integers(0 if kind.kind != "i" else -50, 50, shape).astype(kind)
    made = generator.standard_normal(shape) * 3
    flat = made.reshape(-1)
    flat[:: max(len(flat) // 7, 3)] = SPECIAL[seed % len(SPECIAL)]
    return made.astype(kind)


def laid_out(array: np.ndarray, how: int) -> np.ndarray:
    """The same elements, lying otherwise in memory."""
    if how == 1:
        return np.asfortranarray(array)
    if how == 2:
        wide = np.repeat(array, 2, axis=-1)
        return wide[..., ::2]
    if how == 3 and array.ndim > 1:
        return np.ascontiguousarray(array.swapaxes(0, -1)).swapaxes(0, -1)
    if how == 4:
        return np.ascontiguousarray(array[::-1])[::-1]
    return array


def assert_close(found: np.ndarray, wanted: np.ndarray, units: float = 2) -> None:
    assert found.dtype == wanted.dtype
    if found.dtype.kind in "iub":
        np.testing.assert_array_equal(found, wanted)
        return
    epsilon = float(ml_dtypes.finfo(found.dtype).eps)
    np.testing.assert_allclose(
        found.astype(np.float64), wanted.astype(np.float64), rtol=units * epsilon, atol=1e-44, equal_nan=True
    )


shapes = st.lists(st.sampled_from([1, 2, 3, 7, 16, 33, 70]), min_size=1, max_size=4).filter(lambda s: np.prod(s) < 40000)
layouts, threads, seeds = st.integers(0, 4), st.sampled_from([1, 2, 3]), st.integers(0, 1000)


def pointwise(name: str, kind: np.dtype, out: np.ndarray, *operands: object) -> bool:
    return kernels.pointwise(kernels.codes[name], CODE_OF[kind], out, *operands)


@settings(max_examples=150, deadline=None)
@given(st.sampled_from(sorted(UNARY)), st.sampled_from(FLOATS), shapes, layouts, layouts, threads, seeds)
def test_unary_operators(name, kind, shape, layout, out_layout, count, seed):
    kernels.set_threads(count)
    x = values(shape, kind, seed)
    out = laid_out(np.zeros(shape, kind), out_layout)
    if pointwise(name, kind, out, laid_out(x, layout)):
        with np.errstate(all="ignore"):
            wanted = UNARY[name](x.astype(np.float64)).astype(kind) if kind == np.float32 else UNARY[name](x)
        assert_close(out, wanted)
    else:
        assert kind == np.float64  # NumPy has these functions in vectors


@settings(max_examples=200, deadline=None)
@given(st.sampled_from(sorted(BINARY)), st.sampled_from(NUMBERS), shapes, st.integers(0, 15), layouts, layouts, threads, seeds)
def test_binary_operators_broadcast(name, kind, shape, squeezed, layout, other_layout, count, seed):
    kernels.set_threads(count)
    a = values(shape, kind, seed)
    b = values([1 if squeezed >> axis & 1 else size for axis, size in enumerate(shape)], kind, seed + 1)
    out = np.zeros(shape, kind)
    assert pointwise(name, kind, out, laid_out(a, layout), laid_out(b, other_layout))
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(out, BINARY[name](a, b))


@settings(max_examples=100, deadline=None)
@given(st.sampled_from(sorted(FLOAT_BINARY)), shapes, layouts, seeds)
def test_division_and_power(name, shape, layout, seed):
    kind = np.dtype(np.float32)
    a, b, out = values(shape, kind, seed), values(shape, kind, seed + 1), np.zeros(shape, kind)
    assert pointwise(name, kind, out, laid_out(a, layout), b)
    with np.errstate(all="ignore"):
        wanted = np.power(a.astype(np.float64), b).astype(kind) if name == "pow" else FLOAT_BINARY[name](a, b)
    if name in ("floor_divide", "remainder"):  # with infinite operands NumPy and torch differ
        finite = np.isfinite(a) & np.isfinite(b)
        out, wanted = out[finite], wanted[finite]
    assert_close(out, wanted)


@settings(max_examples=150, deadline=None)
@given(st.sampled_from(sorted(PREDICATES)), st.sampled_from(NUMBERS), shapes, layouts, threads, seeds)
def test_predicates(name, kind, shape, layout, count, seed):
    kernels.set_threads(count)
    a, b = values(shape, kind, seed), values(shape, kind, seed + 1)
    b[..., 0] = a[..., 0]
    out = np.zeros(shape, np.bool_)
    assert pointwise(name, kind, out, laid_out(a, layout), b)
    np.testing.assert_array_equal(out, PREDICATES[name](a, b))


@settings(max_examples=100, deadline=None)
@given(st.sampled_from(EVERY), st.sampled_from(EVERY), shapes, layouts, layouts, threads, seeds)
def test_copies_convert(source, target, shape, layout, out_layout, count, seed):
    kernels.set_threads(count)
    x = np.abs(np.random.default_rng(seed).standard_normal(shape) * 30).astype(source)
    out = laid_out(np.zeros(shape, target), out_layout)
    assert kernels.copy(out, laid_out(x, layout))
    between = np.float32 if source.itemsize == 2 or target.itemsize == 2 else source
    np.testing.assert_array_equal(out, x.astype(between).astype(target))


@pytest.mark.parametrize("shape", [(3, 1000, 70), (300, 301), (40, 50, 60)])
@pytest.mark.parametrize("kind", [np.float32, np.float64, np.float16, np.int8])
def test_turned_operands_are_read_in_tiles(shape, kind):
    x = values(shape, np.dtype(kind), 3)
    for axes in ((0, *range(len(shape) - 1, 0, -1)), tuple(reversed(range(len(shape))))):
        turned = x.transpose(axes)
        out = np.zeros(turned.shape, kind)
        assert kernels.copy(out, turned)
        np.testing.assert_array_equal(out, turned)


@pytest.mark.parametrize("inner", [1000, 4096, 7])
def test_large_results_go_past_the_caches(inner):
    rows = (7 << 20) // inner
    a, b = np.ones((rows, inner), np.float32), np.arange(inner, dtype=np.float32)
    out = native.scratch((rows, inner), a.dtype)
    assert pointwise("add", a.dtype, out, a, b)
    np.testing.assert_array_equal(out[[0, 1, rows // 2, -1]], np.broadcast_to(b + 1, (4, inner)))
    assert out.sum(dtype=np.float64) == pytest.approx((b.sum(dtype=np.float64) + inner) * rows)


def test_an_operand_may_be_the_result_but_not_overlap_it_otherwise():
    x = np.arange(100, dtype=np.float32)
    assert pointwise("mul", x.dtype, x, x, 2.0)
    np.testing.assert_array_equal(x, np.arange(100) * 2)
    assert not pointwise("add", x.dtype, x[1:], x[:-1], 1.0)
    assert not kernels.copy(x[:50], x[49:99])
    assert not kernels.copy(np.broadcast_to(np.float32(0), (3, 3)), np.ones((3, 3), np.float32))


REDUCTIONS = [
    (native_reductions.SUM, np.sum), (native_reductions.MAX, np.max), (native_reductions.MIN, np.min),
    (native_reductions.ANY, np.any), (native_reductions.ALL, np.all),
]  # fmt: skip


@settings(max_examples=200, deadline=None)
@given(st.sampled_from(REDUCTIONS), st.sampled_from(NUMBERS), shapes, layouts, st.integers(1, 15), threads, seeds)
def test_reductions(operation, kind, shape, layout, chosen, count, seed):
    kernels.set_threads(count)
    code, function = operation
    axes = tuple(axis for axis in range(len(shape)) if chosen >> axis & 1) or (0,)
    x = values(shape, kind, seed)
    wide = x.astype(np.float64) if kind == np.float32 and function is np.sum else x
    with np.errstate(all="ignore"):
        wanted = np.asarray(function(wide, axis=axes))
    wanted = wanted.astype(np.int64 if function is np.sum and kind.kind in "iu" else wanted.dtype)
    out = np.zeros(wanted.shape, kind if wide is not x else wanted.dtype)
    assert native_reductions.reduce(code, laid_out(x, layout), axes, out)
    if function is np.sum and kind.kind == "f":
        scale = np.abs(np.where(np.isfinite(x), x, 0)).sum(axis=axes, dtype=np.float64)
        with np.errstate(invalid="ignore"):
            same = np.isclose(out, wanted, rtol=1e-5, atol=0, equal_nan=True) | (np.abs(out - wanted) <= 4e-7 * scale)
        assert same.all()
    else:
        np.testing.assert_array_equal(out, wanted)


@settings(max_examples=80, deadline=None)
@given(st.booleans(), st.sampled_from([np.float32, np.float64, np.int64, np.int32]), shapes, layouts, threads, seeds)
def test_extrema_are_found_at_their_first_place(largest, kind, shape, layout, count, seed):
    kernels.set_threads(count)
    x = np.round(values(shape, np.dtype(kind), seed))
    axis = seed % len(shape)
    function, code = (np.argmax, native_reductions.ARGMAX) if largest else (np.argmin, native_reductions.ARGMIN)
    wanted = np.asarray(function(x, axis=axis))
    out = np.zeros(wanted.shape, np.int64)
    assert native_reductions.reduce(code, laid_out(x, layout), (axis,), out)
    np.testing.assert_array_equal(out, wanted)


def test_one_long_row_is_shared_among_threads():
    kernels.set_threads(3)
    x = np.random.default_rng(0).standard_normal(1_000_003).astype(np.float32)
    x[[400_000, 900_000]] = 9.0
    total, place = np.zeros((), np.float32), np.zeros((), np.int64)
    assert native_reductions.reduce(native_reductions.SUM, x, (0,), total)
    assert native_reductions.reduce(native_reductions.ARGMAX, x, (0,), place)
    assert total == pytest.approx(x.sum(dtype=np.float64), abs=1e-2)
    assert place == 400_000
    x[700_000] = np.nan
    assert native_reductions.reduce(native_reductions.ARGMIN, x, (0,), place)
    assert place == 700_000


@settings(max_examples=60, deadline=None)
@given(shapes, threads, seeds)
def test_softmax_and_its_gradient(shape, count, seed):
    kernels.set_threads(count)
    generator = np.random.default_rng(seed)
    x, grad = (generator.standard_normal(shape).astype(np.float32) * 4 for _ in range(2))
    axis = seed % len(shape)
    powers = np.exp(x.astype(np.float64) - x.max(axis, keepdims=True))
    wanted = powers / powers.sum(axis, keepdims=True)
    out, logs, back = (np.zeros(shape, np.float32) for _ in range(3))
    assert kernels.softmax(0, axis, out, x)
    assert kernels.softmax(1, axis, logs, x)
    np.testing.assert_allclose(out, wanted, rtol=1e-5, atol=1e-9)
    np.testing.assert_allclose(logs, np.log(wanted), rtol=1e-5, atol=1e-5)
    assert kernels.softmax(2, axis, back, grad, out)
    np.testing.assert_allclose(back, (grad - (grad * wanted).sum(axis, keepdims=True)) * wanted, rtol=1e-3, atol=1e-5)
    assert kernels.softmax(3, axis, back, grad, logs)
    np.testing.assert_allclose(back, grad - wanted * grad.sum(axis, keepdims=True), rtol=1e-3, atol=1e-4)


@settings(max_examples=120, deadline=None)
@given(
    st.integers(1, 3), st.integers(1, 70), st.integers(1, 70), st.integers(1, 150), layouts, layouts, st.integers(0, 4), threads
)  # fmt: skip
def test_products(batches, rows, columns, depth, a_layout, b_layout, addend, count):
    kernels.set_threads(count)
    generator = np.random.default_rng(rows * columns)
    lead = () if batches == 1 else (batches,)
    a = generator.standard_normal((*lead, rows, depth)).astype(np.float32)
    b = generator.standard_normal((*lead, depth, columns)).astype(np.float32)
    out = np.zeros((*lead, rows, columns), np.float32)
    added = [None, (1, columns), (rows, 1), (rows, columns), (1, 1)][addend]
    extra = None if added is None else generator.standard_normal(added).astype(np.float32)
    assert kernels.matmul(out, laid_out(a, a_layout), laid_out(b, b_layout), extra, 1.5, 0.5)
    wanted = 1.5 * (a.astype(np.float64) @ b) + (0 if extra is None else 0.5 * extra)
    np.testing.assert_allclose(out, wanted, rtol=1e-4, atol=1e-3)


def test_long_sums_of_products_are_cut_into_parts():
    generator = np.random.default_rng(0)
    a, b = generator.standard_normal((30, 5000)).astype(np.float32), generator.standard_normal((5000, 40)).astype(np.float32)
    out = np.zeros((30, 40), np.float32)
    assert kernels.matmul(out, a, b, None, 1.0, 0.0)
    np.testing.assert_allclose(out, a.astype(np.float64) @ b, rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize(("shape", "columns", "is_copied"), [((110, 100), 130, True), ((110, 100), 100, False),
                                                              ((80, 100), 130, False)])  # fmt: skip
def test_many_rows_by_columns_are_copied_first(monkeypatch, shape, columns, is_copied):
    copied, contiguous = [], native.contiguous

    def noted(array):
        copied.append(array.shape)
        return contiguous(array)

    monkeypatch.setattr(native, "contiguous", noted)
    generator = np.random.default_rng(0)
    a = generator.standard_normal(shape[::-1]).astype(np.float32).T
    b, bias = (generator.standard_normal(size).astype(np.float32) for size in ((shape[1], columns), columns))
    left, right = torch.from_numpy(a), torch.from_numpy(b)
    wanted = a.astype(np.float64) @ b
    for result, expected in ((left @ right, wanted), (torch.addmm(torch.from_numpy(bias), left, right), wanted + bias)):
        np.testing.assert_allclose(result.numpy(), expected, rtol=1e-3, atol=1e-3)
    assert copied == [shape] * (2 if is_copied else 0)


CONVOLUTIONS = [
    # input, kernel, stride, padding, dilation, groups
    ((2, 3, 9, 40), (5, 3, 3, 3), (1, 1), (1, 1), (1, 1), 1),
    ((2, 4, 12, 11), (6, 2, 3, 2), (2, 3), (1, 2), (2, 1), 2),
    ((1, 8, 7, 70), (8, 1, 3, 3), (1, 1), (1, 1), (1, 1), 8),
    ((2, 8, 9, 9), (16, 1, 3, 3), (2, 2), (1, 1), (1, 1), 8),
    ((3, 16, 5, 6), (20, 16, 1, 1), (1, 1), (0, 0), (1, 1), 1),
    ((2, 3, 30), (4, 3, 5), (2,), (4,), (1,), 1),
    ((1, 2, 6, 6), (3, 2, 2, 2), (1, 1), (3, 3), (1, 1), 1),
    ((3, 6, 20, 33), (24, 3, 3, 3), (1, 1), (1, 1), (1, 1), 2),
    ((2, 5, 14, 40), (17, 5, 3, 5), (1, 1), (2, 0), (2, 1), 1),
    ((2, 300, 8, 9), (16, 300, 3, 3), (1, 1), (1, 1), (1, 1), 1),
    ((4, 8, 9, 9), (40, 8, 1, 1), (1, 1), (0, 0), (1, 1), 1),
    ((2, 6, 30), (4, 6, 7), (3,), (9,), (2,), 1),
    ((2, 4, 5, 6, 20), (9, 4, 3, 3, 3), (1, 1, 1), (1, 1, 1), (1, 1, 1), 1),
    ((1, 6, 7, 9, 35), (10, 3, 2, 3, 4), (2, 1, 3), (0, 4, 2), (2, 1, 1), 2),
    ((2, 5, 4, 4, 4), (5, 1, 3, 3, 3), (1, 1, 1), (1, 1, 1), (1, 1, 1), 5),
    ((1, 16, 2, 3, 2), (12, 16, 3, 3, 3), (1, 1, 1), (1, 1, 1), (1, 1, 1), 1),
    ((1, 3, 4, 5, 18), (8, 3, 1, 1, 1), (1, 1, 1), (0, 0, 0), (1, 1, 1), 1),
    ((1, 2, 4, 4, 40), (3, 2, 1, 2, 2), (2, 2, 18), (0, 0, 0), (1, 1, 1), 1),
]


@pytest.mark.parametrize("sizes, kernel, stride, padding, dilation, groups", CONVOLUTIONS)
@pytest.mark.parametrize("count", [1, 2])
def test_convolution_and_its_adjoints(monkeypatch, sizes, kernel, stride, padding, dilation, groups, count):
    kernels.set_threads(count)
    generator = np.random.default_rng(1)
    x, w = (generator.standard_normal(shape).astype(np.float32) for shape in (sizes, kernel))
    geometry = make_geometry(len(stride), stride, padding, dilation, False, (0,) * len(stride), groups)
    spatial = tuple(
        (n + 2 * p - d * (k - 1) - 1) // s + 1
        for n, k, s, p, d in zip(sizes[2:], kernel[2:], stride, padding, dilation, strict=True)
    )
    y = generator.standard_normal((sizes[0], kernel[0], *spatial)).astype(np.float32)
    to_outputs, to_inputs = (generator.standard_normal(channels).astype(np.float32) for channels in (kernel[0], sizes[1]))

    def all_three():
        return (
            convolution._forward(x, w, to_outputs, spatial, geometry),
            convolution._adjoint(y, w, to_inputs, sizes[2:], geometry),
            convolution._kernel_gradient(x, y, kernel, geometry),
        )

    found = all_three()
    monkeypatch.setattr(native, "kernels", None)
    for got, want in zip(found, all_three(), strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-3, atol=1e-3)


@settings(max_examples=80, deadline=None)
@given(st.sampled_from([np.float32, np.float64, np.int64, np.int32]), st.integers(1, 5), st.integers(1, 400), st.booleans(), seeds)
def test_sorting_is_stable(kind, rows, count, descending, seed):
    x = np.round(values((rows, count), np.dtype(kind), seed))
    out, places = np.zeros_like(x), np.zeros(x.shape, np.int64)
    assert kernels.sort(out, places, x, descending)
    wanted = np.argsort(x, axis=1, kind="stable")
    if descending:
        wanted = count - 1 - np.argsort(x[:, ::-1], axis=1, kind="stable")[:, ::-1]
    np.testing.assert_array_equal(places, wanted)
    np.testing.assert_array_equal(out, np.take_along_axis(x, wanted, 1))
    few = max(1, count // 20)
    first, first_places = np.zeros((rows, few), kind), np.zeros((rows, few), np.int64)
    assert kernels.sort(first, first_places, x, descending)
    np.testing.assert_array_equal(first_places, wanted[:, :few])


@settings(max_examples=50, deadline=None)
@given(st.sampled_from([np.float32, np.float64, np.int64]), shapes, seeds)
def test_running_sums(kind, shape, seed):
    x = np.random.default_rng(seed).integers(-9, 9, shape).astype(kind)
    out = np.zeros_like(x)
    assert kernels.cumsum(out, x, seed % len(shape))
    np.testing.assert_array_equal(out, np.cumsum(x, axis=seed % len(shape)))


@settings(max_examples=80, deadline=None)
@given(st.sampled_from(EVERY), shapes, st.integers(1, 9), seeds)
def test_taking_and_gathering(kind, shape, count, seed):
    generator = np.random.default_rng(seed)
    axis, x = seed % len(shape), values(shape, kind, seed)
    index = generator.integers(0, shape[axis], count)
    out = np.zeros([count if dim == axis else size for dim, size in enumerate(shape)], kind)
    assert kernels.take(out, x, index, axis)
    assert out.tobytes() == np.take(x, index, axis).tobytes()
    assert not kernels.take(out, x, np.full(count, shape[axis]), axis)
    assert not kernels.take(out, x, np.full(count, -1), axis)
    places = generator.integers(0, shape[axis], out.shape)
    assert kernels.along(0, laid_out(x, seed % 5), places, out, axis)
    assert out.tobytes() == np.take_along_axis(x, places, axis).tobytes()
    places.reshape(-1)[-1] = shape[axis]
    assert not kernels.along(0, x, places, out, axis)


def test_adding_at_repeated_places():
    kernels.set_threads(2)
    generator = np.random.default_rng(0)
    index, rows = generator.integers(0, 50, 3000), generator.integers(0, 9, (3000, 40)).astype(np.float32)
    total, wanted = np.zeros((50, 40), np.float32), np.zeros((50, 40), np.float32)
    assert kernels.add_at(total, index, rows)
    np.add.at(wanted, index, rows)
    np.testing.assert_array_equal(total, wanted)
    target, wanted = np.zeros((3000, 60), np.float32), np.zeros((3000, 60), np.float32)
    places = generator.integers(0, 60, rows.shape)
    assert kernels.along(2, target, places, rows, 1)
    np.add.at(wanted, (np.arange(3000)[:, None], places), rows)
    np.testing.assert_array_equal(target, wanted)


def test_likelihoods_of_labels_that_exist():
    x = np.random.default_rng(0).standard_normal((6, 4)).astype(np.float32)
    labels, weights = np.array([0, 3, 1, -7, 2, 2]), np.array([1, 2, 3, 4], np.float32)
    counted = labels != -7
    wanted = np.where(counted, -x[np.arange(6), labels * counted] * weights[labels * counted], 0)
    losses = np.zeros(6, np.float32)
    sums = kernels.nll_loss(x, labels, weights, -7, losses)
    np.testing.assert_allclose(losses, wanted, rtol=1e-6)
    assert sums == (pytest.approx(wanted.sum(), rel=1e-5), weights[labels[counted]].sum())
    back = np.ones_like(x)
    assert kernels.nll_loss_backward(back, labels, weights, -7, np.array([2], np.float32), 4.0)
    np.testing.assert_allclose(back.sum(1), np.where(counted, -weights[labels * counted] / 2, 0))
    assert kernels.nll_loss(x, labels, None, -100, None) is None
    assert not kernels.nll_loss_backward(back, labels, None, -100, np.array([2], np.float32), 4.0)


def test_the_table_of_operators_is_what_numpy_functions_stand_for():
    assert {"add", "exp", "gelu", "where"} <= set(kernels.codes)
    assert native.STANDS_FOR[np.add] == kernels.codes["add"]


JUNK = [None, 1, -1, 2.5, "x", (), (1, 2), np.zeros(3), np.zeros((2, 3), np.complex64), np.zeros(0, np.float32),
        np.zeros((2, 2, 2, 2), np.float32), np.zeros(4, ">f4"), np.zeros((2, 3), np.int64), np.zeros((2, 2, 2, 2, 2), np.float32), (1,) * 10, object(),
        1 << 80]  # fmt: skip
FUNCTIONS = ["pointwise", "copy", "matmul", "reduce", "softmax", "layer_norm", "layer_norm_backward", "convolution",
             "convolution_input", "convolution_weight", "sort", "cumsum", "take", "add_at", "along", "max_pool",
             "max_pool_backward", "adaptive_pool", "channel_moments", "channel_products", "channel_affine", "attention",
             "attention_backward", "nll_loss", "nll_loss_backward", "recurrent", "recurrent_backward"]  # fmt: skip


@settings(max_examples=400, deadline=None)
@given(st.sampled_from(FUNCTIONS), st.lists(st.sampled_from(range(len(JUNK))), max_size=12))
def test_wrong_arguments_are_refused(name, chosen):
    try:
        assert getattr(kernels, name)(*[JUNK[index] for index in chosen]) in (True, False, None)
    except (TypeError, ValueError, OverflowError):
        pass


def attention_arrays(generator, shape=(2, 3, 21, 37), width=32):
    batches, heads, rows, keys = shape
    q, k, v, grad = (
        generator.standard_normal((batches, length, heads, width)).astype(np.float32).swapaxes(1, 2)
        for length in (rows, keys, keys, rows)
    )
    return q, k, v, grad


@pytest.mark.parametrize("mask", [None, "causal", "bool", "float"])
@pytest.mark.parametrize("width", [16, 32, 64, 128])
def test_gradients_of_attention(width, mask):
    generator = np.random.default_rng(0)
    q, k, v, grad = attention_arrays(generator, width=width)
    hidden = {None: np.zeros((21, 37), bool), "causal": np.arange(37) > np.arange(21)[:, None]}.get(mask)
    if hidden is None:
        hidden = generator.random((21, 37)) > 0.7
        hidden[3] = True  # a row that looks at nothing
    given = {"bool": ~hidden, "float": np.where(hidden, -np.inf, 0).astype(np.float32)}.get(mask)
    options = given, mask == "causal", 0.3
    out, sums = np.empty((2, 3, 21, width), np.float32), np.empty((2, 3, 21), np.float32)
    assert kernels.attention(out, sums, q, k, v, *options)
    found = [np.empty_like(x, order="C") for x in (q, k, v)]
    assert kernels.attention_backward(*found, grad, out, sums, q, k, v, *options)

    q, k, v, grad = (x.astype(np.float64) for x in (q, k, v, grad))
    weights = np.where(hidden, 0.0, np.exp(0.3 * q @ k.swapaxes(-1, -2)))
    weights /= np.maximum(weights.sum(-1, keepdims=True), 1e-300)
    inner = grad @ v.swapaxes(-1, -2)
    scores = 0.3 * weights * (inner - (weights * inner).sum(-1, keepdims=True))
    expected = scores @ k, scores.swapaxes(-1, -2) @ q, weights.swapaxes(-1, -2) @ grad
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(one, other, atol=2e-4, rtol=1e-4)


def test_gradients_of_attention_refuse_what_does_not_fit():
    q, k, v, grad = attention_arrays(np.random.default_rng(0))
    out, sums = np.zeros(q.shape, np.float32), np.zeros(q.shape[:3], np.float32)
    to_q, to_k, to_v = (np.zeros(x.shape, np.float32) for x in (q, k, v))
    arguments = [to_q, to_k, to_v, grad, out, sums, q, k, v, None, False, 0.3]
    assert kernels.attention_backward(*arguments)
    for place in range(9):
        for value in [*JUNK, np.zeros((2, 3, 22, 32), np.float32), np.zeros((2, 3, 37, 48), np.float32)]:
            assert kernels.attention_backward(*arguments[:place], value, *arguments[place + 1 :]) is False, (place, value)
    for place, value in ((0, grad), (1, k), (2, to_k), (0, out)):  # which lie where others do
        assert kernels.attention_backward(*arguments[:place], value, *arguments[place + 1 :]) is False
    with pytest.raises(TypeError):
        kernels.attention_backward(*arguments[:11], "x")


@pytest.mark.parametrize("kind", range(4))
def test_recurrent_layers_refuse_what_does_not_fit(kind):
    (gates, saved), sizes = ((1, 0), (1, 0), (4, 5), (3, 4))[kind], {"steps": 3, "batch": 2, "hidden": 4}
    steps, batch, hidden = sizes.values()

    def array(*shape):
        return np.zeros(shape, np.float32)

    width = gates * hidden
    cells = [array(batch, hidden) if kind == 2 else None for _ in range(3)]
    workspace = array(steps, batch, saved * hidden) if saved else None
    forward = [kind, array(steps, batch, hidden), cells[0], workspace, array(steps, batch, width), array(width, hidden),
               array(batch, hidden), cells[1], array(width) if kind == 3 else None, False]  # fmt: skip
    back = [kind, array(steps, batch, width), array(steps, batch, width) if kind == 3 else None, array(batch, hidden),
            array(batch, hidden) if kind >= 2 else None, workspace, array(width, hidden), array(batch, hidden), cells[2],
            array(steps, batch, hidden), array(steps, batch, hidden), True]  # fmt: skip
    wrong = [*JUNK, array(steps, batch, hidden + 1), array(batch + 1, hidden), array(steps + 1, batch, width), array(2 * width)]
    for function, arguments in ((kernels.recurrent, forward), (kernels.recurrent_backward, back)):
        assert function(*arguments)
        for place in range(1, len(arguments) - 1):
            if arguments[place] is not None:
                # What may be missing is the workspace of a layer that is not differentiated, and a gradient that is zero.
                optional = (arguments is forward and place == 3) or (arguments is back and place == 10)
                for value in wrong[optional:]:
                    assert function(*arguments[:place], value, *arguments[place + 1 :]) is False, (place, value)
        same = 6 if arguments is forward else 7  # the state, where the output lies
        assert function(*arguments[:same], arguments[1 if arguments is forward else 3].reshape(-1, hidden)[:batch], *arguments[same + 1 :]) is False
        for value in (4, -1, None, 2.5, 1 << 80):
            assert function(value, *arguments[1:]) is False


def test_calls_from_several_threads_at_once():
    kernels.set_threads(2)
    x = np.random.default_rng(0).standard_normal((400, 400)).astype(np.float32)
    wanted, problems = x @ x, []

    def work():
        out = np.zeros_like(x)
        for _ in range(10):
            if not kernels.matmul(out, x, x, None, 1.0, 0.0) or not np.allclose(out, wanted, atol=1e-2):
                problems.append("differs")

    workers = [threading.Thread(target=work) for _ in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert not problems


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_forked_child_computes_on_one_thread():
    program = (
        "import os, numpy as np, rushlight as torch\n"
        "x = torch.ones(1 << 20)\n"
        "assert (x + x).sum().item() == 1 << 21\n"
        "child = os.fork()\n"
        "if child == 0:\n"
        "    os._exit(0 if (x + x).sum().item() == 1 << 21 else 1)\n"
        "assert os.waitpid(child, 0)[1] == 0\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True, timeout=60)


@pytest.mark.parametrize("instructions", ["baseline", "avx2", "avx512", "numpy"])
def test_every_set_of_instructions(instructions):
    program = (
        "import numpy as np, rushlight as torch\n"
        "from rushlight.ops.cpu import native\n"
        f"assert (native.kernels.instructions if native.kernels else 'numpy') == {instructions!r}\n"
        "generator = np.random.default_rng(0)\n"
        "x = generator.standard_normal((37, 53)).astype(np.float32)\n"
        "t = torch.from_numpy(x)\n"
        "for name in 'exp tanh sin sqrt floor'.split():\n"
        "    np.testing.assert_allclose(getattr(torch, name)(t.abs()).numpy(), getattr(np, name)(abs(x)), rtol=1e-5, atol=1e-6)\n"
        "np.testing.assert_allclose((t @ t.t()).numpy(), x @ x.T, rtol=1e-4, atol=1e-4)\n"
        "np.testing.assert_allclose(t.sum(0).numpy(), x.sum(0), rtol=1e-4, atol=1e-4)\n"
        "np.testing.assert_array_equal(t.argmax(1).numpy(), x.argmax(1))\n"
        "np.testing.assert_allclose(torch.softmax(t, 0).sum(0).numpy(), np.ones(53), rtol=1e-5)\n"
        "np.testing.assert_array_equal(t.to(torch.bfloat16).float().round().numpy().shape, x.shape)\n"
        "image, weight = torch.randn(2, 4, 9, 40), torch.randn(6, 4, 3, 3)\n"
        "wide = torch.nn.functional.conv2d(image.double(), weight.double(), padding=1)\n"
        "assert (torch.nn.functional.conv2d(image, weight, padding=1) - wide).abs().max() < 1e-4\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], env={**os.environ, "RUSHLIGHT_KERNELS": instructions}, capture_output=True, text=True,
        timeout=120,
    )  # fmt: skip
    if "as far as this processor has them" in done.stderr:
        pytest.skip(f"no {instructions} here")
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("b_by_columns", [False, True])
@pytest.mark.parametrize("a_by_columns", [False, True])
@pytest.mark.parametrize(("rows", "depth", "columns"), [(8, 64, 40), (40, 300, 200), (200, 90, 130), (33, 260, 1000)])
def test_products_of_every_layout(rows, depth, columns, a_by_columns, b_by_columns):
    a, b = torch.randn(rows, depth), torch.randn(depth, columns)
    expected = a.double() @ b.double()
    a, b = (x.t().contiguous().t() if turned else x for x, turned in ((a, a_by_columns), (b, b_by_columns)))
    torch.testing.assert_close((a @ b).double(), expected, atol=1e-4, rtol=1e-5)
    bias = torch.randn(columns)
    torch.testing.assert_close(torch.addmm(bias, a, b, alpha=2).double(), bias + 2 * expected, atol=2e-4, rtol=1e-5)
