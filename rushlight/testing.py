"""`torch.testing`: comparing tensors in tests, and random ones to test with."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from rushlight.core.device import device
from rushlight.core.dtype import bfloat16, complex64, complex128, dtype, float16, float32, float64
from rushlight.core.tensor import Tensor
from rushlight.ops.construct import as_tensor
from rushlight.ops.packet import namespaces
from rushlight.ops.promotion import result_type

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


def _difference(actual, expected, path: str, tolerance: tuple, equal_nan: bool, checks: dict, subclasses: bool) -> str | None:
    rest = (tolerance, equal_nan, checks, subclasses)
    if isinstance(actual, Mapping) and isinstance(expected, Mapping):
        if set(actual) != set(expected):
            return f"The keys of the mappings do not match{path}: {sorted(map(str, actual))} and {sorted(map(str, expected))}"
        return _first(_difference(actual[key], expected[key], f"{path}[{key!r}]", *rest) for key in expected)
    if _is_sequence(actual) and _is_sequence(expected):
        if len(actual) != len(expected):
            return f"The length of the sequences mismatch{path}: {len(actual)} != {len(expected)}"
        pairs = zip(actual, expected, strict=True)
        return _first(_difference(*pair, f"{path}[{index}]", *rest) for index, pair in enumerate(pairs))
    if isinstance(actual, bool | type(None)) or isinstance(expected, bool | type(None)):
        return None if actual == expected else f"Objects do not match{path}: {actual!r} != {expected!r}"
    if not subclasses and type(actual) is not type(expected):
        return f"The types do not match{path}: {type(actual).__name__} != {type(expected).__name__}"
    numbers = not isinstance(actual, Tensor) and not isinstance(expected, Tensor)
    return _tensor_difference(_as_tensor(actual), _as_tensor(expected), path, tolerance, equal_nan, {} if numbers else checks)


def _first(problems: Any) -> str | None:
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
        return f"Scalars are not close{path}!\n\nExpected {expected.item()} but got {actual.item()}.\n" + _allowed(
            "Absolute", abs(actual.item() - expected.item()), absolute
        )
    wide = actual.dtype.is_complex
    one, other = (value.to(complex128 if wide else float64).numpy() for value in (actual, expected))
    with np.errstate(all="ignore"):
        apart = np.where(close.numpy(), 0, np.abs(one - other))
        ratio = np.where(close.numpy(), 0, apart / np.abs(other))
    failed, total = int((~close.numpy()).sum()), actual.numel()
    lines = [
        f"Tensor-likes are not close{path}!", "", f"Mismatched elements: {failed} / {total} ({100 * failed / total:.1f}%)",
        _greatest("absolute", apart, absolute), _greatest("relative", ratio, relative),
    ]  # fmt: skip
    return "\n".join(lines)


def _greatest(kind: str, differences: np.ndarray, allowed: float) -> str:
    flat = np.where(np.isnan(differences), math.inf, differences)
    index = tuple(int(part) for part in np.unravel_index(int(flat.argmax()), flat.shape))
    return f"Greatest {kind} difference: {differences[index]} at index {index} (up to {allowed} allowed)"


def _allowed(kind: str, difference: float, allowed: float) -> str:
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
) -> Tensor:
    """A tensor of random values in [low, high), by default [-9, 9) for signed and [0, 9) for unsigned numbers."""
    sizes = tuple(shape[0]) if len(shape) == 1 and isinstance(shape[0], Sequence) else shape
    signed = dtype.is_signed
    low = (-9 if signed else 0) if low is None else low
    high = (2 if dtype.name == "bool" else 9) if high is None else high
    stored = (*sizes[:-1], 2 * sizes[-1]) if noncontiguous and sizes else sizes
    if dtype.is_floating_point or dtype.is_complex:
        made = aten.empty.memory_format(list(stored), dtype=dtype, device=device).uniform_(low, high)
    else:
        made = aten.randint.low(math.floor(low), math.ceil(high), list(stored), dtype=dtype, device=device)
    made = made[..., ::2] if noncontiguous and sizes else made
    if exclude_zero:
        made = aten.where.self(made == 0, aten.full_like.default(made, 1), made)
    return made.requires_grad_(True) if requires_grad else made
