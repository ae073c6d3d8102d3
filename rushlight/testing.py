"""`torch.testing`: comparing tensors in tests, and random ones to test with."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from rushlight.core.device import device
from rushlight.core.dtype import bfloat16, bool_, complex64, complex128, dtype, finfo, float16, float32, float64, iinfo
from rushlight.core.layout import memory_format
from rushlight.core.tensor import Tensor
from rushlight.file_check import FileCheck
from rushlight.ops.construct import as_tensor
from rushlight.ops.packet import namespaces
from rushlight.ops.promotion import result_type

__all__ = ["FileCheck", "assert_allclose", "assert_close", "make_tensor"]

aten = namespaces.namespace("aten")
_TOLERANCES = {
    float16: (1e-3, 1e-5), bfloat16: (1.6e-2, 1e-5), float32: (1.3e-6, 1e-5), float64: (1e-7, 1e-7),
    complex64: (1.3e-6, 1e-5), complex128: (1e-7, 1e-7),
}  # fmt: skip


def assert_close(
    actual: Any,
    expected: Any,
    *,
    allow_subclasses: bool = True,
    rtol: float | None = None,
    atol: float | None = None,
    equal_nan: bool = False,
    check_device: bool = True,
    check_dtype: bool = True,
    check_layout: bool = True,
    check_stride: bool = False,
    msg: str | Callable[[str], str] | None = None,
) -> None:
    """AssertionError unless two tensors, numbers, arrays, or nested sequences and mappings of them agree.

    Values agree where |actual - expected| <= atol + rtol * |expected|; by default the tolerances depend on the dtype, and are 0
    for integers. The message says how many elements differ, and where the greatest differences are.
    """
    if (rtol is None) != (atol is None):
        raise ValueError(f"assert_close takes rtol and atol together or neither, got rtol={rtol}, atol={atol}")
    checks = {"device": check_device, "dtype": check_dtype, "layout": check_layout, "stride": check_stride}
    problem = _difference(actual, expected, "", (rtol, atol), equal_nan, checks, allow_subclasses)
    if problem:
        raise AssertionError(msg(problem) if callable(msg) else msg or problem)


def assert_allclose(
    actual: Any, expected: Any, rtol: float | None = None, atol: float | None = None, equal_nan: bool = True, msg: str = ""
) -> None:
    """The older form of `assert_close`, for which dtypes may differ and NaN equals NaN. TypeError for one tolerance alone."""
    if (rtol is None) != (atol is None):
        raise TypeError("rtol and atol must both be specified or both be unspecified")
    assert_close(actual, expected, rtol=rtol, atol=atol, equal_nan=equal_nan, check_dtype=False, msg=msg or None)


def _difference(actual, expected, path: str, tolerance: tuple, equal_nan: bool, checks: dict, subclasses: bool) -> str | None:
    rest = (tolerance, equal_nan, checks, subclasses)
    if isinstance(actual, Mapping) and isinstance(expected, Mapping):
        if set(actual) != set(expected):
            return f"The keys of the mappings do not match{path}: {sorted(map(str, actual))} and {sorted(map(str, expected))}"
        return _first_problem(_difference(actual[key], expected[key], f"{path}[{key!r}]", *rest) for key in expected)
    if _is_sequence(actual) and _is_sequence(expected):
        if len(actual) != len(expected):
            return f"The length of the sequences mismatch{path}: {len(actual)} != {len(expected)}"
        pairs = zip(actual, expected, strict=True)
        return _first_problem(_difference(*pair, f"{path}[{index}]", *rest) for index, pair in enumerate(pairs))
    if isinstance(actual, bool | type(None)) or isinstance(expected, bool | type(None)):
        return None if actual == expected else f"Objects do not match{path}: {actual!r} != {expected!r}"
    if not subclasses and type(actual) is not type(expected):
        return f"The types do not match{path}: {type(actual).__name__} != {type(expected).__name__}"
    numbers = not isinstance(actual, Tensor) and not isinstance(expected, Tensor)
    return _tensor_difference(_as_tensor(actual), _as_tensor(expected), path, tolerance, equal_nan, {} if numbers else checks)


def _first_problem(problems: Any) -> str | None:
    return next((problem for problem in problems if problem), None)


def _is_sequence(value: object) -> bool:
    return isinstance(value, Sequence) and not isinstance(value, str | bytes)


def _as_tensor(value: object) -> Tensor:
    if isinstance(value, Tensor):
        return value.detach()
    if isinstance(value, int | float | complex | np.ndarray | np.generic):
        return as_tensor(value, dtype=float64 if isinstance(value, float) else None)
    raise TypeError(f"assert_close compares tensors, numbers, arrays and nests of them, got {type(value).__name__}")


def _tensor_difference(
    actual: Tensor, expected: Tensor, path: str, tolerance: tuple, equal_nan: bool, checks: dict
) -> str | None:
    if actual.shape != expected.shape:
        return f"The values for attribute 'shape' do not match{path}: {actual.shape} != {expected.shape}."
    if actual.is_quantized != expected.is_quantized:
        return f"The values for attribute 'is_quantized' do not match{path}: {actual.is_quantized} != {expected.is_quantized}."
    for name, checked in checks.items():
        one, other = (getattr(value, name) for value in (actual, expected))
        one, other = (one(), other()) if name == "stride" else (one, other)
        if checked and one != other:
            return f"The values for attribute '{name}' do not match{path}: {one} != {other}."
    if actual.is_quantized:
        actual, expected = actual.dequantize(), expected.dequantize()
    if actual.device != expected.device:
        actual, expected = actual.cpu(), expected.cpu()
    relative, absolute = tolerance if tolerance[0] is not None else _default_tolerance(actual.dtype, expected.dtype)
    common = result_type(actual, expected)
    actual, expected = actual.to(common), expected.to(common)
    close = aten.isclose.default(actual, expected, relative, absolute, equal_nan)
    return None if bool(close.all()) else _report(actual, expected, close, path, relative, absolute)


def _default_tolerance(*kinds: dtype) -> tuple[float, float]:
    pairs = [_TOLERANCES.get(kind, (0.0, 0.0)) for kind in kinds]
    return max(pair[0] for pair in pairs), max(pair[1] for pair in pairs)


def _report(actual: Tensor, expected: Tensor, close: Tensor, path: str, relative: float, absolute: float) -> str:
    if not actual.dim():
        return f"Scalars are not close{path}!\n\nExpected {expected.item()} but got {actual.item()}.\n" + _describe_difference(
            "Absolute", abs(actual.item() - expected.item()), absolute
        )
    wide = actual.dtype.is_complex
    one, other = (value.cpu().to(complex128 if wide else float64).numpy() for value in (actual, expected))
    close = close.cpu()
    with np.errstate(all="ignore"):
        apart = np.where(close.numpy(), 0, np.abs(one - other))
        ratio = np.where(close.numpy(), 0, apart / np.abs(other))
    failed, total = int((~close.numpy()).sum()), actual.numel()
    lines = [
        f"Tensor-likes are not close{path}!", "", f"Mismatched elements: {failed} / {total} ({100 * failed / total:.1f}%)",
        _describe_greatest("absolute", apart, absolute), _describe_greatest("relative", ratio, relative),
    ]  # fmt: skip
    return "\n".join(lines)


def _describe_greatest(kind: str, differences: np.ndarray, allowed: float) -> str:
    flat = np.where(np.isnan(differences), math.inf, differences)
    index = tuple(int(part) for part in np.unravel_index(int(flat.argmax()), flat.shape))
    return f"Greatest {kind} difference: {differences[index]} at index {index} (up to {allowed} allowed)"


def _describe_difference(kind: str, difference: float, allowed: float) -> str:
    return f"{kind} difference: {difference} (up to {allowed} allowed)"


def make_tensor(
    *shape: int | Sequence[int],
    dtype: dtype,
    device: device | str = "cpu",
    low: float | None = None,
    high: float | None = None,
    requires_grad: bool = False,
    noncontiguous: bool = False,
    exclude_zero: bool = False,
    memory_format: memory_format | None = None,
) -> Tensor:
    """Return a tensor of random values in [low, high), evenly distributed.

    Bounds that `dtype` cannot hold are moved to those that it can. By default they are 0 and 2 for booleans, 0 and 10 for
    unsigned integers, -9 and 10 for signed ones, -9 and 9 for floating and complex numbers, whose parts are drawn one by one.
    `noncontiguous` leaves every other element of memory out, and `exclude_zero` replaces zeros by the least positive number
    (1 for integers). ValueError for bounds that hold nothing, and for a memory format beside `noncontiguous`.
    """
    sizes = tuple(shape[0]) if len(shape) == 1 and isinstance(shape[0], Sequence) else shape
    if noncontiguous and memory_format is not None:
        raise ValueError(f"The parameters `noncontiguous` and `memory_format` are mutually exclusive, got {memory_format}")
    if requires_grad and not (dtype.is_floating_point or dtype.is_complex):
        raise ValueError(f"`requires_grad=True` is not supported for boolean and integral dtypes, but got {dtype}")
    low, high = _random_bounds(dtype, low, high)
    spread = noncontiguous and math.prod(sizes) > 1
    stored = (*sizes[:-1], 2 * sizes[-1]) if spread else sizes
    if dtype.is_floating_point or dtype.is_complex:
        made = _draw_uniform(list(stored), dtype, device, low, high)
    else:
        made = aten.randint.low(low, high, list(stored), dtype=dtype, device=device)
    made = made[..., ::2] if spread else made
    if exclude_zero:
        least = 1 if dtype.is_integral else finfo(dtype).tiny
        made.masked_fill_(made == 0, least)
    if memory_format is not None:
        made = made.clone(memory_format=memory_format)
    return made.requires_grad_(True) if requires_grad else made


def _draw_uniform(sizes: list[int], kind: dtype, where: device | str, low: float, high: float) -> Tensor:
    if kind.is_complex:
        made = aten.empty.memory_format(sizes, dtype=kind, device=where)
        aten.view_as_real.default(made).copy_(_draw_uniform([*sizes, 2], kind.to_real(), where, low, high))
        return made
    if kind.itemsize == 1:
        return _draw_uniform(sizes, float32, where, low, high).to(kind)
    return aten.empty.memory_format(sizes, dtype=kind, device=where).uniform_(low, high)


def _random_bounds(kind: dtype, low: float | None, high: float | None) -> tuple[float, float]:
    """Return the bounds of random values as `kind` can hold them; whole numbers for integers."""
    if kind.is_floating_point or kind.is_complex:
        least, greatest = finfo(kind).min, finfo(kind).max
        usual = (-9, 9)
    else:
        least, greatest = (0, 2) if kind is bool_ else (iinfo(kind).min, iinfo(kind).max + 1)
        usual = (0, 2) if kind is bool_ else (-9 if least else 0, 10)
    low, high = usual[0] if low is None else low, usual[1] if high is None else high
    if low != low or high != high:
        raise ValueError(f"`low` and `high` cannot be NaN, but got {low=} and {high=}")
    if low == high and not kind.is_integral:
        return (low, high)
    if low >= high:
        raise ValueError(f"`low` must be less than `high`, but got {low} >= {high}")
    if high < least or low >= greatest:
        raise ValueError(
            f"The value interval specified by `low` and `high` is [{low}, {high}), but {kind} only supports "
            f"[{least}, {greatest})"
        )
    low, high = min(max(low, least), greatest), min(max(high, least), greatest)
    return (math.ceil(low), math.ceil(high)) if kind.is_integral else (low, high)
