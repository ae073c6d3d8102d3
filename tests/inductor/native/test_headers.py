"""rushlight/vec.h, elementwise.h and reduce.h: conversions, lanes, pointwise helpers and reductions, against NumPy."""

from __future__ import annotations

import ctypes

import ml_dtypes
import numpy as np
import pytest

INTEGERS = [np.int8, np.int16, np.int32, np.int64, np.uint8]
FLOATS = [np.float32, np.float64]
C_NAMES = {
    np.float32: "float",
    np.float64: "double",
    np.bool_: "bool",
    np.float16: "half",
    ml_dtypes.bfloat16: "bfloat16",
}
C_TYPES = {
    np.float32: ctypes.c_float,
    np.float64: ctypes.c_double,
    np.int32: ctypes.c_int32,
    np.int64: ctypes.c_int64,
    np.uint8: ctypes.c_uint8,
    np.int8: ctypes.c_int8,
    np.bool_: ctypes.c_bool,
}
LENGTH = 203  # whole vectors and a rest, for every lane count


def c_name(dtype) -> str:
    return C_NAMES.get(dtype) or np.dtype(dtype).name + "_t"


def sample(dtype, seed: int = 0, low: int = -100) -> np.ndarray:
    generator = np.random.default_rng(seed)
    if dtype is np.bool_:
        return generator.integers(0, 2, LENGTH).astype(np.bool_)
    if dtype in INTEGERS:
        return generator.integers(max(low, 0) if dtype is np.uint8 else low, 100, LENGTH).astype(dtype)
    values = generator.normal(0, 20, LENGTH).astype(np.float32)
    values[:8] = [0.0, -0.0, 0.5, -0.5, 1.5, 2.5, -3.0, 7.0]
    return values.astype(dtype)


# ---- conversions and access ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("to", [*FLOATS, *INTEGERS, np.bool_, np.float16, ml_dtypes.bfloat16])
@pytest.mark.parametrize("source", [*FLOATS, *INTEGERS, np.bool_, np.float16, ml_dtypes.bfloat16])
def test_casts(kernels, source, to):
    values = sample(source)
    if to is np.uint8 and source is not np.bool_:
        values = np.abs(values)
    got = kernels.map(f"cast_{c_name(source)}_{c_name(to)}", values, out=to)
    wide = values.astype(np.float32) if source in (np.float16, ml_dtypes.bfloat16) else values
    np.testing.assert_array_equal(got, wide.astype(to))


@pytest.mark.parametrize("to", [np.float16, ml_dtypes.bfloat16])
def test_rounding_to_short_floats(kernels, to):
    bits = np.random.default_rng(2).integers(0, 2**32, 300_001, dtype=np.uint32)
    special = np.array(
        [np.inf, -np.inf, np.nan, 0.0, -0.0, 65504, 65519.99, 65520, 6e-8, 2.98e-8, 2.99e-8, 6.1e-5], np.float32
    )
    near_half = np.random.default_rng(3).normal(0, 1e-4, 100_000).astype(np.float32)
    values = np.concatenate([bits.view(np.float32), special, near_half])
    got = kernels.map(f"cast_float_{c_name(to)}", values, out=to)
    with np.errstate(over="ignore", invalid="ignore"):
        want = values.astype(to)
    nan = np.isnan(values)
    np.testing.assert_array_equal(got.view(np.uint16)[~nan], want.view(np.uint16)[~nan])
    assert np.isnan(got[nan].astype(np.float32)).all()


@pytest.mark.parametrize("source", [np.float16, ml_dtypes.bfloat16])
def test_every_short_float_widens_exactly(kernels, source):
    values = np.arange(2**16, dtype=np.uint16).view(source)
    got = kernels.map(f"cast_{c_name(source)}_float", values, out=np.float32)
    np.testing.assert_array_equal(got, values.astype(np.float32))


def test_not_a_number_converts_without_a_trap(kernels):
    values = np.array([np.nan, np.inf, -np.inf, 1e30, -1e30] * 9, np.float32)
    for to in (*INTEGERS, np.float64):
        kernels.map(f"cast_float_{c_name(to)}", values, out=to)


def test_strided_and_gathered_access(kernels):
    source, table = np.arange(3 * LENGTH, dtype=np.float32), np.random.default_rng(4).normal(size=50).astype(np.float32)
    index = np.random.default_rng(5).integers(0, 50, LENGTH)
    got = np.full(2 * LENGTH, -1, np.float32)
    kernels.call("accesses", source, table, index, got, LENGTH)
    np.testing.assert_array_equal(got[::2], source[::3] + table[index] + (5 + 7 * np.arange(LENGTH)).astype(np.float32))
    np.testing.assert_array_equal(got[1::2], -1)


# ---- pointwise -----------------------------------------------------------------------------------------------------

ROUNDINGS = {
    "floor": np.floor,
    "ceil": np.ceil,
    "round": np.round,
    "trunc": np.trunc,
    "abs": np.abs,
    "neg": np.negative,
}


@pytest.mark.parametrize("name", ROUNDINGS)
@pytest.mark.parametrize("dtype", FLOATS)
def test_rounding(kernels, name, dtype):
    values = np.concatenate(
        [
            sample(dtype),
            np.arange(-20, 20, 0.25),
            [np.nan, np.inf, -np.inf, 1e30, -1e30, 8388607.5, -8388608.5, 4503599627370495.5, 0.49999997, -0.49999997],
        ]
    ).astype(dtype)
    got, want = kernels.map(f"{name}_{c_name(dtype)}", values), ROUNDINGS[name](values)
    np.testing.assert_array_equal(got, want)
    np.testing.assert_array_equal(np.signbit(got[~np.isnan(got)]), np.signbit(want[~np.isnan(want)]))


def floats_with_specials(dtype, seed: int) -> np.ndarray:
    special = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 3, -3, 0.5], dtype)
    rolled = np.concatenate([np.roll(special, shift) if seed else special for shift in range(8)])
    return np.concatenate([sample(dtype, seed), rolled])


def torch_floor_div(a, b):
    with np.errstate(all="ignore"):
        return np.where(b == 0, a / b, np.floor_divide(a, b))


FLOAT_BINARY = {
    "maximum": np.maximum,
    "minimum": np.minimum,
    "remainder": np.remainder,
    "fmod": np.fmod,
    "div": np.divide,
    "floor_div": torch_floor_div,
    "add": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "copysign": np.copysign,
}


@pytest.mark.parametrize("name", FLOAT_BINARY)
@pytest.mark.parametrize("dtype", FLOATS)
def test_float_arithmetic(kernels, name, dtype):
    a, b = floats_with_specials(dtype, 0), floats_with_specials(dtype, 1)
    with np.errstate(all="ignore"):
        want = FLOAT_BINARY[name](a, b)
    if name == "remainder":  # Python's sign rule adds the infinite divisor, as torch does; NumPy agrees but for NaN
        want = np.where(np.isinf(a) | (b == 0), np.nan, want)
    np.testing.assert_array_equal(kernels.map(f"{name}_{c_name(dtype)}", a, b), want)


def test_power(kernels):
    a, b = floats_with_specials(np.float32, 0), floats_with_specials(np.float32, 1)
    with np.errstate(all="ignore"):
        want = np.power(a.astype(np.float64), b.astype(np.float64)).astype(np.float32)
    np.testing.assert_allclose(kernels.map("pow_float", a, b), want, rtol=2e-7)


def test_powers_of_special_numbers(kernels):
    numbers = [0.0, 1.0, 0.5, 2.0, 3.0, 2.5, 1e-45, 1e-40, 3e38, 1 + 2**-23, 2.0**23 + 1, 2.0**24, 33.0, 126.5, np.inf, np.nan]
    values = np.array([*numbers, *(-number for number in numbers)], np.float32)
    a, b = (side.ravel() for side in np.meshgrid(values, values))
    with np.errstate(all="ignore"):
        want = np.power(a.astype(np.float64), b.astype(np.float64)).astype(np.float32)
    for first in range(0, len(a), LENGTH):
        part = slice(first, first + LENGTH)
        got = kernels.map("pow_float", a[part], b[part])
        np.testing.assert_array_max_ulp(got, want[part], 1)
        np.testing.assert_array_equal(np.signbit(got) & (got == 0), np.signbit(want[part]) & (got == 0))


@pytest.mark.parametrize("dtype", FLOATS)
def test_relu_and_sign(kernels, dtype):
    values = floats_with_specials(dtype, 0)
    got = kernels.map(f"relu_{c_name(dtype)}", values)
    np.testing.assert_array_equal(got, np.where(values < 0, 0, values))
    np.testing.assert_array_equal(
        kernels.map(f"sign_{c_name(dtype)}", values), np.where(np.isnan(values), 0, np.sign(values))
    )


def wrapped(function, a, b, dtype):
    """`function` on Python ints, its results wrapped to dtype; 0 where the divisor is 0."""
    wrap = np.dtype(dtype).itemsize * 8
    raw = [0 if function is None else function(int(x), int(y)) for x, y in zip(a, b, strict=True)]
    return np.array([value % 2**wrap for value in raw], np.uint64).astype(np.dtype(f"u{wrap // 8}")).view(dtype)


def integer_power(x, y):
    return x**y if y >= 0 else {1: 1, -1: 1 - 2 * (y % 2)}.get(x, 0)


INTEGER_BINARY = {
    "add": lambda x, y: x + y,
    "sub": lambda x, y: x - y,
    "mul": lambda x, y: x * y,
    "maximum": max,
    "minimum": min,
    "floor_div": lambda x, y: x // y if y else 0,
    "div": lambda x, y: (abs(x) // abs(y)) * (1 if (x < 0) == (y < 0) else -1) if y else 0,
    "remainder": lambda x, y: x % y if y else x,
    "fmod": lambda x, y: (abs(x) % abs(y)) * (-1 if x < 0 else 1) if y else x,
    "pow": integer_power,
    "bitwise_and": lambda x, y: x & y,
    "bitwise_or": lambda x, y: x | y,
    "bitwise_xor": lambda x, y: x ^ y,
}


@pytest.mark.parametrize("name", INTEGER_BINARY)
@pytest.mark.parametrize("dtype", INTEGERS)
def test_integer_arithmetic(kernels, name, dtype):
    a, b = sample(dtype, 0), sample(dtype, 1)
    b[:5] = [0, 1, 2, 3, 0]
    info = np.iinfo(dtype)
    a[5:9], b[5:9] = [info.min, info.max, info.min, info.min], [1, 2, 0, 3]
    if dtype is not np.uint8:
        b[5] = -1
    if name == "pow":
        b %= 9
    np.testing.assert_array_equal(
        kernels.map(f"{name}_{c_name(dtype)}", a, b), wrapped(INTEGER_BINARY[name], a, b, dtype)
    )


@pytest.mark.parametrize("dtype", INTEGERS)
def test_shifts(kernels, dtype):
    bits = np.dtype(dtype).itemsize * 8
    a, count = sample(dtype, 0), (np.arange(LENGTH) % (bits + 6)).astype(dtype)
    left = wrapped(lambda x, y: x << y if y < bits else 0, a, count, dtype)
    np.testing.assert_array_equal(kernels.map(f"shift_left_{c_name(dtype)}", a, count), left)
    right = wrapped(lambda x, y: x >> y, a, count, dtype)
    np.testing.assert_array_equal(kernels.map(f"shift_right_{c_name(dtype)}", a, count), right)


@pytest.mark.parametrize("name", ["equal", "not_equal", "less", "less_equal", "greater", "greater_equal"])
@pytest.mark.parametrize("dtype", [*FLOATS, *INTEGERS])
def test_comparisons(kernels, name, dtype):
    a, b = sample(dtype, 0), sample(dtype, 1)
    b[::3] = a[::3]
    if dtype in FLOATS:
        a[::7] = np.nan
    short = {
        "equal": "eq",
        "not_equal": "ne",
        "less": "lt",
        "less_equal": "le",
        "greater": "gt",
        "greater_equal": "ge",
    }[name]
    np.testing.assert_array_equal(kernels.map(f"{short}_{c_name(dtype)}", a, b, out=np.bool_), getattr(np, name)(a, b))


def test_logic_and_choice(kernels):
    a, b = sample(np.bool_, 0), sample(np.bool_, 1)
    np.testing.assert_array_equal(kernels.map("logic", a, b), (a & ~b) ^ (a | b))
    for dtype in (np.float64, np.int8):
        x, y, got = sample(dtype, 2), sample(dtype, 3), np.empty(LENGTH, dtype)
        kernels.call(f"where_{c_name(dtype)}", a, x, y, got, LENGTH)
        np.testing.assert_array_equal(got, np.where(a, x, y))


# ---- reductions ----------------------------------------------------------------------------------------------------

REDUCTIONS = {"sum": np.sum, "prod": np.prod, "max": np.max, "min": np.min}


@pytest.mark.parametrize("name", REDUCTIONS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int32, np.int64])
@pytest.mark.parametrize("count", [1, 5, 16, 100, 4099])
def test_reductions(kernels, name, dtype, count):
    values = np.random.default_rng(count).uniform(-2, 2, count).astype(dtype)
    got = kernels.call(f"{name}_{c_name(dtype)}", values, count, result=C_TYPES[dtype])
    exact = REDUCTIONS[name](values.astype(np.float64))
    np.testing.assert_allclose(got, exact, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("name", REDUCTIONS)
@pytest.mark.parametrize("dtype", [np.float32, np.int64])
def test_reductions_across_rows(kernels, name, dtype):
    values = np.random.default_rng(7).uniform(-2, 2, (301, 37)).astype(dtype)
    got = np.empty(37, dtype)
    kernels.call(f"{name}_columns_{c_name(dtype)}", values, got, 301, 37)
    np.testing.assert_allclose(got, REDUCTIONS[name](values.astype(np.float64), axis=0), rtol=1e-5, atol=1e-5)


def test_small_integers_keep_their_bounds(kernels):
    assert kernels.call("max_uint8_t", np.array([3, 200, 7], np.uint8), 3, result=ctypes.c_uint8) == 200
    values = np.full(40, 5, np.int8)
    assert kernels.call("min_int8_t", values, 40, result=ctypes.c_int8) == 5


@pytest.mark.parametrize("place", [0, 9, 38])
def test_extrema_pass_nan_on(kernels, place):
    values = np.arange(39, dtype=np.float32)
    values[place] = np.nan
    assert np.isnan(kernels.call("max_float", values, 39, result=ctypes.c_float))
    assert np.isnan(kernels.call("min_float", values, 39, result=ctypes.c_float))


@pytest.mark.parametrize("count", [1, 16, 77])
def test_any_and_all(kernels, count):
    for place in (None, 0, count // 2, count - 1):
        values = np.zeros(count, np.bool_)
        if place is not None:
            values[place] = True
        assert kernels.call("any_bool", values, count, result=ctypes.c_bool) == values.any()
        assert kernels.call("all_bool", ~values, count, result=ctypes.c_bool) == (~values).all()
    columns, got = np.random.default_rng(8).integers(0, 4, (3, 40)).astype(np.bool_), np.empty(40, np.bool_)
    kernels.call("all_columns_bool", columns, got, 3, 40)
    np.testing.assert_array_equal(got, columns.all(0))


def test_long_sums_stay_accurate(kernels):
    """Ten million values near 1: one running sum would be off by 1e-3."""
    values = np.random.default_rng(9).uniform(0.5, 1.5, 10_000_000).astype(np.float32)
    got = kernels.call("sum_float", values, len(values), result=ctypes.c_float)
    assert abs(got / values.sum(dtype=np.float64) - 1) < 3e-7


@pytest.mark.parametrize(
    "dtype, name",
    [
        (np.float32, "argmax"),
        (np.float32, "argmin"),
        (np.float64, "argmax"),
        (np.int32, "argmin"),
        (np.uint8, "argmax"),
    ],
)
@pytest.mark.parametrize("count", [1, 7, 16, 61, 200])
def test_places_of_extrema(kernels, dtype, name, count):
    values = np.random.default_rng(count).integers(0, 5, count).astype(dtype)  # many ties: the first one counts
    got = kernels.call(f"{name}_{c_name(dtype)}", values, count, result=ctypes.c_int64)
    assert got == getattr(np, name)(values)


@pytest.mark.parametrize("gap", [0, 5, 1 << 33])
@pytest.mark.parametrize("half", [0, 3, 37, 64])
@pytest.mark.parametrize("place", [0, 36, 40, 99])
def test_places_far_along_a_row(kernels, place, half, gap):
    values = np.random.default_rng(place).uniform(size=100).astype(np.float32)
    values[[place, 99]] = 2.0
    got = kernels.call("argmax_far", values, 100, half, gap, result=ctypes.c_int64)
    assert got == place + (gap if place >= half else 0)


@pytest.mark.parametrize("places", [(0,), (3, 40), (33,), (60,)])
def test_first_nan_is_the_extremum(kernels, places):
    values = np.arange(61, dtype=np.float32)
    values[list(places)] = np.nan
    assert kernels.call("argmax_float", values, 61, result=ctypes.c_int64) == places[0]
    assert kernels.call("argmin_float", values, 61, result=ctypes.c_int64) == places[0]


def test_places_among_infinities(kernels):
    values = np.full(40, -np.inf, np.float32)
    assert kernels.call("argmax_float", values, 40, result=ctypes.c_int64) == 0
    assert kernels.call("argmin_float", -values, 40, result=ctypes.c_int64) == 0


@pytest.mark.parametrize("count", [1, 3, 16, 100, 3001])
def test_moments(kernels, count):
    values = np.random.default_rng(count).normal(1000, 1, count).astype(np.float32)
    got = np.empty(3, np.float32)
    kernels.call("moments_float", values, count, got)
    exact = values.astype(np.float64)
    np.testing.assert_allclose(got[0], exact.mean(), rtol=2e-7)
    np.testing.assert_allclose(got[1] / count, exact.var(), rtol=1e-3, atol=1e-6)
    assert got[2] == count
