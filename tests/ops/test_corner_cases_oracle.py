"""Corner cases in which eager operators give what torch gives: values, dtypes, strides, gradients, and kinds of errors."""

from __future__ import annotations

import math
import warnings

import numpy as np
import pytest

import rushlight

torch = pytest.importorskip("torch")

pytestmark = pytest.mark.oracle
INF, NAN = math.inf, math.nan


def gradients(function, *inputs):
    leaves = [value.clone().requires_grad_() for value in inputs]
    function(*leaves).sum().backward()
    return [leaf.grad for leaf in leaves]


def found(library, function):
    """What a function of a library gives, as plain data, or the kind of its error."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return plain(function(library))
        except Exception as error:  # whatever torch raises
            return type(error).__name__


def plain(value):
    if isinstance(value, rushlight.Tensor | torch.Tensor):
        kind = str(value.dtype).rpartition(".")[2]
        shown = value.detach().double() if kind in ("bfloat16", "float16") else value.detach()
        return kind, tuple(value.shape), shown.numpy()
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    return value


def agree(ours, theirs) -> bool:
    if isinstance(ours, list) and isinstance(theirs, list):
        return len(ours) == len(theirs) and all(map(agree, ours, theirs))
    if isinstance(ours, tuple) and isinstance(theirs, tuple) and len(ours) == 3:
        close = 1e-9 if ours[0] in ("float64", "complex128") else 1e-5
        return ours[:2] == theirs[:2] and np.allclose(ours[2], theirs[2], rtol=close, atol=1e-7, equal_nan=True)
    return ours == theirs


def check(function):
    ours, theirs = found(rushlight, function), found(torch, function)
    assert agree(ours, theirs), f"{ours} instead of {theirs}"


# Halves beside numbers

NUMBERS_BESIDE_HALVES = {
    **{name: lambda lib, x, name=name: (getattr(lib, name)(x, 0.1), getattr(x.clone(), f"{name}_")(0.1))
       for name in ("eq", "ne", "lt", "le", "gt", "ge", "fmod", "remainder")},
    "hardshrink": lambda lib, x: lib.nn.functional.hardshrink(x, 0.1),
    "softshrink": lambda lib, x: lib.nn.functional.softshrink(x, 0.1),
    "threshold": lambda lib, x: lib.nn.functional.threshold(x, 0.1, 9.0),
    "celu": lambda lib, x: lib.nn.functional.celu(-x, 0.1),
    "pow": lambda lib, x: (x.pow(0.3), x.pow(2), 0.3**x),
    "arithmetic": lambda lib, x: (x + 0.1, x - 0.1, 0.1 - x, x * 0.1, x / 0.1, 0.1 / x, x // 0.1),
    "lerp": lambda lib, x: lib.lerp(x * 20000, x * -20000, 0.1),
    "a tensor without dimensions": lambda lib, x: (x == lib.tensor(0.1, dtype=lib.float64), x * lib.tensor(0.1)),
}  # fmt: skip


@pytest.mark.parametrize("name", NUMBERS_BESIDE_HALVES)
@pytest.mark.parametrize("kind", ["bfloat16", "float16"])
def test_halves_beside_numbers(name, kind):
    check(lambda lib: NUMBERS_BESIDE_HALVES[name](lib, lib.tensor([0.1, 0.3, 0.7, 0.0999, 2.6], dtype=getattr(lib, kind))))


@pytest.mark.parametrize("name", ["eq", "lt", "ge", "fmod", "remainder", "pow", "add", "sub", "mul"])
@pytest.mark.parametrize("kind", ["bfloat16", "float16"])
def test_halves_beside_numbers_compiled(name, kind):
    function = rushlight.compile(lambda x: getattr(rushlight, name)(x, 0.1))
    x = rushlight.tensor([0.1, 0.3, 0.7, 0.0999, 2.6], dtype=getattr(rushlight, kind))
    expected = getattr(rushlight, name)(x, 0.1)
    assert rushlight.equal(function(x), expected)


# Numbers that an element does not hold

WRITES = {
    "fill_": lambda lib, x, value: x.fill_(value),
    "full": lambda lib, x, value: lib.full((2,), value, dtype=x.dtype),
    "full_like": lambda lib, x, value: lib.full_like(x, value),
    "new_full": lambda lib, x, value: x.new_full((2,), value),
    "masked_fill": lambda lib, x, value: x.masked_fill(lib.tensor([True, False]), value),
    "masked_fill by a tensor": lambda lib, x, value: x.masked_fill(lib.tensor([True, False]), lib.tensor(value)),
    "assignment": lambda lib, x, value: x.__setitem__(0, value),
    "tensor": lambda lib, x, value: lib.tensor([value], dtype=x.dtype),
    "where": lambda lib, x, value: lib.where(lib.tensor([True, False]), x, value),
    "alpha": lambda lib, x, value: x.add(x, alpha=value),
    "clamp": lambda lib, x, value: (x.clamp(max=value), x.clamp(min=value)),
    "index_fill": lambda lib, x, value: x.index_fill(0, lib.tensor([0]), value),
    "scatter": lambda lib, x, value: x.scatter(0, lib.tensor([0]), value),
    "fill_diagonal_": lambda lib, x, value: x[:, None].expand(2, 2).clone().fill_diagonal_(value),
    "scalar_tensor": lambda lib, x, value: lib.scalar_tensor(value, dtype=x.dtype),
    "arithmetic": lambda lib, x, value: (x + value, x * value, x == value, value - x),
}  # fmt: skip


@pytest.mark.parametrize("name", WRITES)
@pytest.mark.parametrize("kind", ["int8", "uint8", "int16", "int32", "int64", "float16", "bfloat16", "float32", "bool"])
def test_numbers_that_do_not_fit(name, kind):
    for value in (300, -1, -300, 70000, 2**40, 1e6, 1e39, NAN, INF, -INF, 2.7, -0.5):
        if kind == "bool" and name in ("alpha", "clamp", "arithmetic"):
            continue
        ours, theirs = (found(lib, lambda lib, v=value: WRITES[name](lib, lib.ones(2, dtype=getattr(lib, kind)), v))
                        for lib in (rushlight, torch))  # fmt: skip
        assert agree(ours, theirs), f"{value}: {ours} instead of {theirs}"


@pytest.mark.parametrize("value", [2**70, 2**64, -(2**64)])
def test_ints_beyond_64_bits(value):
    for function in (
        lambda lib: lib.tensor([1]) + value, lambda lib: lib.tensor([1]) == value, lambda lib: lib.tensor([1.0]) * value,
        lambda lib: lib.tensor([1]).clamp(max=value), lambda lib: lib.full((2,), value),
    ):  # fmt: skip
        check(function)


# Resizing


@pytest.mark.parametrize("mode, sizes, scale", [
    ("linear", (1, 2, 3), 1.3), ("bilinear", (1, 2, 3, 4), (1.3, 2)), ("bilinear", (1, 2, 3, 4), (2.5, 1.2)),
    ("trilinear", (1, 1, 2, 3, 4), (1.3, 1.2, 1.1)), ("bicubic", (1, 2, 3, 4), (1.3, 1.2)), ("nearest", (1, 2, 3), 2.2),
    ("nearest", (1, 2, 3, 4), (2.2, 2.1)), ("nearest", (1, 2, 2, 3, 4), (2.4, 2.2, 2.1)), ("nearest-exact", (1, 2, 3, 4), 2.2),
])  # fmt: skip
def test_scale_factors_that_keep_or_double_a_size(mode, sizes, scale):
    count = math.prod(sizes)
    check(lambda lib: lib.nn.functional.interpolate(lib.arange(float(count)).view(sizes), scale_factor=scale, mode=mode))


@pytest.mark.parametrize("mode", ["nearest", "bilinear", "bicubic", "nearest-exact", "area"])
def test_channels_last_stays_when_resized(mode):
    def resized(lib):
        x = lib.arange(48.0).view(1, 4, 3, 4).contiguous(memory_format=lib.channels_last)
        made = lib.nn.functional.interpolate(x, size=(5, 6), mode=mode)
        return tuple(made.stride())

    check(resized)


# Gradients at corners and of NaN

GRADIENTS = {
    "cross entropy of 0 and 1": lambda lib: gradients(
        lambda x: lib.nn.functional.binary_cross_entropy(x, lib.tensor([0.0, 0, 1, 1, 0, 1])), lib.tensor([0.0, 1, 1, 0, 0.5, 0.5])),
    "clamp": lambda lib: gradients(lambda x: x.clamp(0, 1), lib.tensor([NAN, 0.5, 2])),
    "clamp by tensors": lambda lib: gradients(
        lambda x, a, b: x.clamp(a, b), lib.tensor([NAN, 0.5, 2, 0.3]), lib.tensor([0, NAN, 0, 0.0]), lib.tensor([1, 1, NAN, 0.2])),
    "hardtanh": lambda lib: gradients(lib.nn.functional.hardtanh, lib.tensor([NAN, 0.5, 2, 1, -1])),
    "max": lambda lib: gradients(lambda x: x.max(), lib.tensor([NAN, 0.5, NAN])),
    "min": lambda lib: gradients(lambda x: x.min(), lib.tensor([NAN, 0.5, NAN])),
    "max along a dimension": lambda lib: gradients(lambda x: x.max(1)[0], lib.tensor([[NAN, 0.5, NAN], [1, 1, 0]])),
    "the points of a nearest sample": lambda lib: gradients(
        lambda x, grid: lib.nn.functional.grid_sample(x, grid, mode="nearest", align_corners=False),
        lib.arange(9.0).view(1, 1, 3, 3), lib.zeros(1, 1, 2, 2)),
}  # fmt: skip


@pytest.mark.parametrize("name", GRADIENTS)
def test_gradients(name):
    check(GRADIENTS[name])


# Infinities and NaN

COMPLEX = [0j, 1j, -1 + 0j, complex(INF, 0), complex(0, INF), 1e-20 + 1e-20j, complex(-0.0, -0.0), 3 - 4j]
SPECIAL = {
    "gradient": lambda lib: list(lib.gradient(lib.tensor([1.0, INF, 3, -INF, 5, 6]))),
    "gradient at places": lambda lib: list(
        lib.gradient(lib.tensor([1.0, INF, 3, 4, 5]), spacing=(lib.tensor([0.0, 1, 3, 4, 7]),))),
    "log10": lambda lib: lib.log10(lib.tensor(COMPLEX)),
    "exp2": lambda lib: lib.exp2(lib.tensor(COMPLEX)),
    "reciprocal": lambda lib: lib.reciprocal(lib.tensor(COMPLEX)),
    "log1p near 0": lambda lib: lib.log1p(lib.tensor([1e-8 + 1e-9j, -1e-10 + 1e-10j, 1e-20j])),
    "nan_to_num": lambda lib: lib.nan_to_num(lib.tensor([complex(NAN, INF), complex(-INF, 2)]), 9.0, 7.0, -7.0),
    "logaddexp": lambda lib: lib.logaddexp(lib.tensor([INF, -INF, INF, 1.0]), lib.tensor([INF, -INF, -INF, NAN])),
    "logaddexp of complex": lambda lib: lib.logaddexp(
        lib.tensor([complex(-INF, 0), complex(INF, 0), 1j]), lib.tensor([complex(-INF, 0), complex(INF, 0), 2 + 1j])),
    "norms of infinite order": lambda lib: lib.nn.functional.lp_pool1d(lib.tensor([[[-5.0, 1, 2, -3]]]), INF, 2),
}  # fmt: skip


@pytest.mark.parametrize("name", SPECIAL)
def test_infinities(name):
    check(SPECIAL[name])


@pytest.mark.parametrize("padding", ["zeros", "border", "reflection"])
@pytest.mark.parametrize("mode", ["bilinear", "nearest", "bicubic"])
def test_samples_at_nan(mode, padding):
    def sampled(lib):
        grid = lib.tensor([[[[NAN, 0.0], [0.0, NAN], [INF, 0.0], [-INF, 0.1], [0.2, 0.3]]]])
        image = lib.arange(9.0).view(1, 1, 3, 3) + 1
        return lib.nn.functional.grid_sample(image, grid, mode=mode, padding_mode=padding, align_corners=False)

    check(sampled)


# What is refused, and what is not

OTHERS = {
    "None assigned": lambda lib: lib.ones(3).__setitem__(0, None),
    "text assigned": lambda lib: lib.ones(3).__setitem__(0, "a"),
    "a dtype of Tensor": lambda lib: lib.Tensor([1], dtype=lib.int),
    "slices by floats": lambda lib: lib.arange(3)[0.9:2.7],
    "a list in itself": lambda lib: lib.tensor((lambda a: a.append(a) or a)([])),
    "too many repeats": lambda lib: lib.arange(2).repeat_interleave(2, output_size=-4),
    "other repeats": lambda lib: lib.arange(2).repeat_interleave(lib.tensor([1, 2]), output_size=2),
    "bags beyond the input": lambda lib: lib.nn.functional.embedding_bag(
        lib.tensor([0, 1, 2]), lib.ones(3, 2), lib.tensor([0, 5])),
    "bags that begin late": lambda lib: lib.nn.functional.embedding_bag(
        lib.tensor([0, 1, 2]), lib.ones(3, 2), lib.tensor([1, 2])),
    "lerp between dtypes": lambda lib: lib.lerp(lib.ones(2), lib.ones(2, dtype=lib.double), 0.5),
    "lerp of integers": lambda lib: lib.lerp(lib.ones(2, dtype=lib.int), lib.ones(2, dtype=lib.int), 0.5),
    "cross entropy between dtypes": lambda lib: lib.nn.functional.binary_cross_entropy(lib.ones(2), lib.ones(2).double()),
    "groups of another dtype": lambda lib: lib.nn.functional.group_norm(lib.ones(2, 2, 3), 1, lib.ones(2).double()),
    "groups of halves": lambda lib: lib.nn.functional.group_norm(lib.rand(2, 2, 3).bfloat16() * 0, 1, lib.ones(2), lib.ones(2)),
    "ldexp": lambda lib: (lib.ldexp(lib.ones(2).half(), lib.tensor([1, 2])), lib.ldexp(lib.tensor([1, 2]), lib.tensor([1, 2]))),
    "whole numbers divided in place": lambda lib: lib.tensor([5, 7]).floor_divide_(2.0),
    "equal across dtypes": lambda lib: (lib.equal(lib.tensor([1, 2]), lib.tensor([1.0, 2])), lib.equal(lib.ones(2), lib.ones(3))),
    "searchsorted across dtypes": lambda lib: (
        lib.searchsorted(lib.tensor([1.0, 2, 3]), lib.tensor([2, 3])), lib.searchsorted(lib.tensor([1, 2, 3]), 1.5)),
    "where by bytes": lambda lib: lib.where(lib.tensor([2, 0], dtype=lib.uint8), lib.ones(2), lib.zeros(2)),
    "logaddexp of booleans": lambda lib: lib.logaddexp(lib.tensor([True]), lib.tensor([False])),
    "sums of booleans": lambda lib: lib.tensor([1, -1]).cumsum(0, dtype=lib.bool),
    "integers divided by addcdiv": lambda lib: lib.addcdiv(*[lib.ones(2, dtype=lib.int)] * 3),
    "addcmul by a fraction": lambda lib: lib.addcmul(*[lib.ones(2, dtype=lib.int)] * 3, value=2.7),
    "numbers alone": lambda lib: (lib.add(3, 4), lib.mul(3, 4.5), lib.sub(3, lib.ones(2)), lib.div(3, 4), lib.floor_divide(7, 2)),
    "several dimensions squeezed": lambda lib: lib.ones(1, 2, 1).squeeze(0, 2),
    "reversed": lambda lib: (reversed(lib.arange(6).view(2, 3)), reversed(lib.tensor(3))),
    "lengths as floats": lambda lib: lib.nn.utils.rnn.pack_padded_sequence(lib.ones(3, 2, 1), lib.tensor([3.0, 2])).batch_sizes,
    "unary operators of COO": lambda lib: [
        getattr(lib, name)(lib.eye(2).to_sparse()).to_dense() for name in ("sin", "square", "isnan", "isinf", "floor")],
    "a mask and causal": lambda lib: lib.nn.functional.scaled_dot_product_attention(
        *[lib.arange(24.0).view(1, 2, 3, 4) / 24] * 3, attn_mask=lib.tensor([[True, False, True]] * 3), is_causal=True),
}  # fmt: skip


@pytest.mark.parametrize("name", OTHERS)
def test_others(name):
    check(OTHERS[name])


# Strides

BASE = {"dense": lambda lib: lib.arange(12.0).view(3, 4).t(), "plain": lambda lib: lib.arange(12.0).view(4, 3)}
STRIDES = {
    "empty_like of views": lambda lib, x: [
        lib.empty_like(view) for view in (
            lib.empty(4, 6)[::2, ::3], lib.empty(2, 3, 4).permute(2, 0, 1)[::2], lib.empty(4, 1).expand(4, 5),
            lib.empty(2, 3, 4, 5).permute(0, 2, 3, 1)[:, :2], lib.empty(6, 4).t()[:, ::2], lib.empty(0, 3, 2).transpose(0, 2))],
    "like views": lambda lib, x: [
        getattr(lib, name)(lib.ones(2, 3, 4).permute(2, 0, 1)[::2]) for name in ("zeros_like", "ones_like", "rand_like", "exp")],
    "put": lambda lib, x: [x.put(lib.tensor([0, 1]), lib.tensor([2.0, 3]))],
    "index_fill": lambda lib, x: [x.index_fill(0, lib.tensor([0]), 2.0)],
    "unique": lambda lib, x: [lib.unique(x, dim=0), lib.unique(x, dim=1)],
    "einsum": lambda lib, x: [
        lib.einsum("ij,jk->ki", lib.ones(2, 3), lib.ones(3, 4)), lib.einsum("bij,bjk->bki", lib.ones(5, 2, 3), lib.ones(5, 3, 4)),
        lib.einsum("i,j->ji", lib.ones(2), lib.ones(3)), lib.einsum("ij->ji", x),
        lib.einsum("bhqd,bhkd->bqhk", lib.ones(2, 3, 4, 5), lib.ones(2, 3, 6, 5))],
    "baddbmm": lambda lib, x: [lib.baddbmm(lib.ones(2, 3, 4).transpose(1, 2), lib.ones(2, 4, 5), lib.ones(2, 5, 3))],
    "transforms": lambda lib, x: [
        *(getattr(lib.fft, name)(lib.ones(4, 6, 8, dtype=lib.cfloat).transpose(0, 2)) for name in ("fft", "ifft", "fft2", "fftn")),
        lib.fft.rfft(lib.ones(4, 6, 8).transpose(0, 1), dim=0),
        lib.fft.irfft(lib.ones(4, 6, 8, dtype=lib.cfloat).transpose(0, 1), dim=1)],
    "normalized groups": lambda lib, x: [
        lib.nn.functional.group_norm(lib.ones(2, 4, 3, 3).contiguous(memory_format=lib.channels_last), 2)],
}  # fmt: skip


@pytest.mark.parametrize("name", STRIDES)
@pytest.mark.parametrize("base", BASE)
def test_strides(name, base):
    check(lambda lib: [[*made.stride()] for made in STRIDES[name](lib, BASE[base](lib))])


OUT = {
    "arange": lambda lib, out: lib.arange(0, 8, out=out),
    "linspace": lambda lib, out: lib.linspace(0, 4, 8, out=out),
    "logspace": lambda lib, out: lib.logspace(0, 1, 8, out=out),
    "add": lambda lib, out: lib.add(lib.ones(4, 2), 1, out=out),
    "mm": lambda lib, out: lib.mm(lib.ones(4, 3), lib.ones(3, 2), out=out),
    "cat": lambda lib, out: lib.cat([lib.ones(4, 1), lib.zeros(4, 1)], 1, out=out),
    "cumsum": lambda lib, out: lib.cumsum(lib.ones(4, 2), 0, out=out),
}  # fmt: skip


@pytest.mark.parametrize("name", OUT)
def test_results_written_between_others(name):
    def written(lib):
        whole = lib.full((4, 4), -1.0)
        OUT[name](lib, whole.narrow(1, 1, 2))
        return whole

    check(written)


# What random calls found (tests/fuzz_eager.py)

RANDOM_FINDINGS = {
    "xlogy of a number beyond the dtype": lambda t: t.xlogy(-1, t.tensor([1, 2], dtype=t.uint8)),
    "xlog1py beside a number beyond the dtype": lambda t: t.special.xlog1py(t.tensor([2], dtype=t.uint8), 300),
    "zeta of a negative number": lambda t: t.special.zeta(-2, t.tensor([1], dtype=t.uint8)),
    "addcmul in the common dtype": lambda t: t.addcmul(
        t.ones(1, dtype=t.float64), t.tensor([2**31 - 1], dtype=t.int32), t.ones(1, dtype=t.float64), value=2),
    "addcdiv in the common dtype": lambda t: t.addcdiv(
        t.ones(1), t.tensor([1], dtype=t.int32), t.tensor([3.0], dtype=t.float16)),
    "hardtanh between turned bounds": lambda t: t.nn.functional.hardtanh(t.tensor([-1.0, 2.0, 9.0]), 5.0, 3.0),
    "hardtanh of whole numbers": lambda t: t.nn.functional.hardtanh(t.tensor([0, 1, 5]), 0.5, 3.7),
    "hardtanh of bools": lambda t: t.nn.functional.hardtanh(t.tensor([True])),
    "hardtanh of bytes": lambda t: t.nn.functional.hardtanh(t.tensor([1], dtype=t.uint8)),
    "logit with a large eps": lambda t: t.logit(t.tensor([-0.4, 0.5, 2.0]), 1.0),
    "lcm beyond the dtype": lambda t: t.lcm(t.tensor([-3, 3], dtype=t.int8), t.tensor([127, 127], dtype=t.int8)),
    "trapezoid of bytes": lambda t: t.trapezoid(t.tensor([[1, 3], [5, 7]], dtype=t.uint8), dx=-2),
    "trapezoid with a complex width": lambda t: t.trapezoid(t.ones(3), dx=1j),
    "cumulative_trapezoid of bytes": lambda t: t.cumulative_trapezoid(t.tensor([1, 3, 9], dtype=t.uint8), dx=-2),
    "where of a number": lambda t: t.where(t.tensor(True)),
    "a bool as the factor of a difference": lambda t: t.sub(t.ones(2), t.ones(2), alpha=True),
    "lerp by a bool": lambda t: t.lerp(t.zeros(2), t.ones(2), True),
    "cumsum_ into another dtype": lambda t: t.ones(2, dtype=t.float64).cumsum_(0, dtype=t.float32),
    "cumsum_ of small ints": lambda t: t.ones(2, dtype=t.int32).cumsum_(0),
    "masked_fill by bytes": lambda t: t.ones(2).masked_fill(t.tensor([1, 0], dtype=t.uint8), t.tensor(2.0)),
    "repeats below 0": lambda t: t.ones(2).repeat_interleave(-1),
    "slice_scatter of one element": lambda t: t.slice_scatter(t.zeros(4), t.ones(1), 0, 0, 2),
    "nanmean in ints": lambda t: t.nanmean(t.ones(2), dtype=t.int64),
    "tolerances that are NaN": lambda t: t.isclose(t.ones(2), t.ones(2), rtol=NAN),
    "an eps below 0": lambda t: t.nn.functional.cosine_similarity(t.ones(2), t.ones(2), 0, -1.0),
    "rrelu without an end": lambda t: t.rrelu(t.ones(2), 0.1, INF),
    "uniform_ beyond the dtype": lambda t: t.ones(2, dtype=t.float16).uniform_(0, 1e6),
    "polygamma_ of ints": lambda t: t.tensor([1]).polygamma_(1),
    "the least exponent": lambda t: t.pow(
        t.tensor([-1, 1, 2], dtype=t.int8), t.tensor([-128, -128, -128], dtype=t.int8)),
    "hardtanh with NaN as a bound": lambda t: t.nn.functional.hardtanh(t.tensor([-2.0, 0.5]), -1.0, NAN),
    "repeat below 0": lambda t: t.ones(3).repeat(-1, 2),
    "tile below 0": lambda t: t.ones(3).tile(-1),
    "expand of one element to less than nothing": lambda t: t.ones(1).expand(1, -5),
    "pads that cut more than there is": lambda t: t.nn.functional.pad(t.ones(1), (-2, 1)),
    "isfinite of ints": lambda t: t.isfinite(t.ones(2, 3, dtype=t.int32).t()).stride(),
    "tril of permuted halfs": lambda t: t.tril(t.ones(4, 2, 2, 3).permute(3, 2, 1, 0)).stride(),
    "renorm to NaN": lambda t: t.renorm(t.ones(2, 2), 1, 0, NAN),
    "softshrink by NaN": lambda t: t.nn.functional.softshrink(t.ones(2), NAN),
    "targets of multi_margin_loss in a column": lambda t: t.nn.functional.multi_margin_loss(t.ones(2, 2), t.zeros(2, 1).long()),
    "small labels": lambda t: t.nn.functional.multilabel_margin_loss(t.ones(2, 2), t.zeros(2, 2, dtype=t.int32)),
    "cumulative_trapezoid of great ints": lambda t: t.cumulative_trapezoid(
        t.tensor([1, 4, 2, 8], dtype=t.int16), t.tensor([2**62, 3, 5, 2**61])),
    "cross of two dtypes": lambda t: t.linalg.cross(t.ones(3), t.ones(3, dtype=t.float64)),
    "vander of bools": lambda t: t.linalg.vander(t.tensor([True, False])),
    "powers of bools": lambda t: t.vander(t.tensor([True, False])),
    "a bias that does not fit": lambda t: t.nn.functional.linear(t.ones(4), t.ones(4), t.ones(4)),
    "isin of a bool": lambda t: t.isin(t.ones(2), True),
    "cholesky of a diagonal that is not real": lambda t: t.linalg.cholesky_ex(t.tensor([[[2.0 - 1j]], [[4.0 + 1j]], [[-1.0 + 0j]]]))[0][:2],
    "mse_loss of a mask": lambda t: t.nn.functional.mse_loss(t.tensor([0.5, 2.0]), t.tensor([True, False])),
    "smooth_l1_loss of a mask": lambda t: t.nn.functional.smooth_l1_loss(t.tensor([0.5, 2.0]), t.tensor([True, False])),
    "huber_loss of a mask": lambda t: t.nn.functional.huber_loss(t.tensor([0.5, 2.0]), t.tensor([True, False])),
    "huber_loss of halfs and floats": lambda t: t.nn.functional.huber_loss(t.ones(2, dtype=t.bfloat16), t.zeros(2)),
    "huber_loss of ints and floats": lambda t: t.nn.functional.huber_loss(t.ones(2, dtype=t.int32), t.zeros(2)),
    "soft_margin_loss of halfs and floats": lambda t: t.nn.functional.soft_margin_loss(t.ones(2, dtype=t.float16), t.ones(2)),
    "soft_margin_loss of ints": lambda t: t.nn.functional.soft_margin_loss(t.ones(2, dtype=t.int32), t.ones(2)),
    "soft_margin_loss of a larger target": lambda t: t.nn.functional.soft_margin_loss(t.ones(2, 1), t.ones(2, 3)),
    "index_add of ints by a fraction": lambda t: t.tensor([1, 2, 0]).index_add(0, t.tensor([0, 2]), t.tensor([1, 3]), alpha=-1.5),
    "index_add of floats by a complex number": lambda t: t.ones(2).index_add(0, t.tensor([0]), t.ones(1), alpha=1 + 2j),
    "add of bools by a complex number": lambda t: t.tensor([True]).add_(t.tensor([True]), alpha=1 + 2j),
    "median of no small ints": lambda t: t.tensor([], dtype=t.int8).median(),
    "cosine_similarity of complex numbers": lambda t: t.cosine_similarity(t.ones(2, 3) * 1j, t.ones(2, 3) * 1j),
    "histogram between one edge": lambda t: t.histogram(t.ones(3), t.ones(1)),
    "frequencies in ints": lambda t: t.fft.fftfreq(3, dtype=t.int64),
    "half the frequencies in ints": lambda t: t.fft.rfftfreq(3, dtype=t.int64),
    "addr of ints by a fraction": lambda t: t.addr(t.ones(2, 2, dtype=t.int64), t.ones(2).long(), t.ones(2).long(), alpha=2.0),
    "addr by a bool": lambda t: t.addr(t.ones(2, 2), t.ones(2), t.ones(2), beta=False),
    "trapezoid at places of more dimensions": lambda t: t.trapezoid(t.tensor([1, 3, 4]), t.tensor([[0, 1], [2, 5], [3, 3]])),
    "cumulative_trapezoid at places of more dimensions": lambda t: t.cumulative_trapezoid(
        t.tensor([1.0, 3.0, 4.0]), t.arange(9.0).view(3, 3) ** 2),
    "trapezoid at places that don't fit": lambda t: t.trapezoid(t.ones(4, 2, 1), t.ones(2, 4, 1, 2)),
    "trapezoid at one place": lambda t: t.trapezoid(t.ones(1), t.tensor(2.0)),
    "hinge_embedding_loss of ints": lambda t: t.nn.functional.hinge_embedding_loss(
        t.tensor([0, 1, 5]), t.tensor([-1, -1, 1]), margin=2.7, reduction="none"),
    "hinge_embedding_loss of ints by NaN": lambda t: t.nn.functional.hinge_embedding_loss(
        t.tensor([0, 1]), t.tensor([-1, 1]), margin=NAN, reduction="sum"),
    "alpha_dropout of ints": lambda t: t.nn.functional.alpha_dropout(t.ones(3, dtype=t.int32), 0.5, True),
    "feature_alpha_dropout of bools": lambda t: t.nn.functional.feature_alpha_dropout(t.ones(3, 2, dtype=t.bool), 0.5, True),
    "tensorinv over more dimensions than there are": lambda t: t.linalg.tensorinv(t.ones(1), 5),
    "repeat_interleave once is a copy": lambda t: (lambda x: (x.repeat_interleave(1).fill_(2.0), x))(t.ones(3)),
    "channel_shuffle of one group is a copy": lambda t: (lambda x: (t.channel_shuffle(x, 1).fill_(2.0), x))(t.ones(1, 2, 3)),
    "poisson_nll_loss in full": lambda t: t.nn.functional.poisson_nll_loss(
        t.tensor([0.5, 1.5], dtype=t.float16), t.tensor([1, 2]), log_input=False, full=True, reduction="none"),
}  # fmt: skip


@pytest.mark.parametrize("name", ["sum", "prod", "nansum"])
@pytest.mark.parametrize("kind", ["float32", "float64", "float16", "bfloat16", "int32"])
def test_fractions_are_true_in_sums_of_bools(name, kind):
    check(lambda t: getattr(t.tensor([0.5, 0.25]).to(getattr(t, kind)), name)(dtype=t.bool))
    check(lambda t: getattr(t.tensor([[0.5, 0.0], [0.25, 0.0]]).to(getattr(t, kind)), name)(0, dtype=t.bool))


@pytest.mark.parametrize("name", RANDOM_FINDINGS)
def test_random_findings(name):
    check(RANDOM_FINDINGS[name])


STRIDED_RESULTS = {
    "masked_fill": lambda lib, x: lib.masked_fill(x.t(), x.t() > 0, 0.0),
    "masked_fill by a mask in another order": lambda lib, x: lib.masked_fill(x, lib.ones(3, 2).t() > 0, 1.0),
    "masked_fill of a tensor": lambda lib, x: x.t().masked_fill(x.t() > 0, lib.tensor(2.0)),
    "hardshrink": lambda lib, x: lib.nn.functional.hardshrink(x.t()),
    "softshrink": lambda lib, x: lib.nn.functional.softshrink(x.t()),
    "hardtanh": lambda lib, x: lib.nn.functional.hardtanh(x.t()),
    "elu": lambda lib, x: lib.nn.functional.elu(x.t()),
    "softplus": lambda lib, x: lib.nn.functional.softplus(x.t()),
    "nan_to_num": lambda lib, x: lib.nan_to_num(x.t()),
    "complex": lambda lib, x: lib.complex(x.t(), lib.ones(3, 2)),
    "polar": lambda lib, x: lib.polar(x.t(), lib.ones(3, 2)),
    "matrix_power 0": lambda lib, x: lib.matrix_power(x[:, :2].t(), 0),
    "matrix_power 1": lambda lib, x: lib.matrix_power(x[:, :2].t(), 1),
    "irfft2": lambda lib, x: lib.fft.irfft2(x.t()),
    "irfftn": lambda lib, x: lib.fft.irfftn(lib.ones(2, 3, 4).permute(2, 0, 1)),
}


@pytest.mark.parametrize("name", STRIDED_RESULTS)
def test_results_have_the_strides_of_pytorch(name):
    call = STRIDED_RESULTS[name]
    ours, theirs = (call(lib, lib.tensor([[1.0, -2.0, 0.5], [3.0, 0.25, -1.0]])) for lib in (rushlight, torch))
    assert tuple(ours.shape) == tuple(theirs.shape) and ours.stride() == theirs.stride()
