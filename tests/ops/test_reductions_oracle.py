"""Reductions, orders, searches and scans give PyTorch's values, dtypes, shapes and kinds of errors for all dtypes and shapes."""

from __future__ import annotations

import warnings
from collections.abc import Callable

import numpy as np
import pytest

import rushlight

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.oracle

SHAPES = ((), (1,), (5,), (3, 4), (2, 3, 4), (0,), (3, 0), (0, 3))
DTYPES = ("float32", "float64", "int64", "int16", "uint8", "bool")
WHOLE = (
    "max", "min", "argmax", "argmin", "amax", "amin", "sum", "prod", "mean", "std", "var", "any", "all", "nansum", "nanmean",
    "count_nonzero", "msort", "unique", "unique_consecutive", "argwhere", "aminmax", "nonzero",
)  # fmt: skip
ALONG = (
    "max", "min", "argmax", "argmin", "amax", "amin", "sum", "prod", "mean", "any", "all", "nansum", "logsumexp", "median",
    "nanmedian",
)  # fmt: skip
SCANS = ("cumsum", "cumprod", "logcumsumexp", "count_nonzero", "unique_dim", "sort", "argsort", "diff", "trapezoid")


def values(shape: tuple[int, ...], kind: str, missing: bool) -> np.ndarray:
    random = np.random.default_rng(len(shape))
    if kind == "bool":
        return random.integers(0, 2, shape).astype(bool)
    array = np.asarray(random.integers(0 if kind == "uint8" else -3, 4, shape)).astype(kind)
    if missing and kind.startswith("float"):
        array = np.where(random.random(shape) < 0.2, np.nan, array).astype(kind)
    return array


def outcome(package, call: Callable, array: np.ndarray) -> object:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            result = call(package, package.from_numpy(array.copy()))
    except Exception as error:
        return type(error)
    return result if isinstance(result, tuple | list) else (result,)


def compare(call: Callable, name: str) -> None:
    """`call(package, tensor)` has the same outcome in both packages over all shapes and dtypes."""
    for shape in SHAPES:
        for kind in DTYPES:
            for missing in (False, True) if kind.startswith("float") else (False,):
                array = values(shape, kind, missing)
                want, got = outcome(torch, call, array), outcome(rushlight, call, array)
                where = f"{name} of {kind} {shape}: {got}, PyTorch gives {want}"
                if isinstance(want, type) or isinstance(got, type):
                    assert got is want, where
                    continue
                for one, other in zip(got, want, strict=True):
                    assert (tuple(one.shape), one.dtype.name) == (tuple(other.shape), str(other.dtype)[6:]), where
                    np.testing.assert_allclose(one.numpy(), other.numpy(), rtol=1e-5, atol=1e-6, err_msg=where)


@pytest.mark.parametrize("name", WHOLE)
def test_over_everything(name):
    compare(lambda package, x: getattr(package, name)(x), name)


@pytest.mark.parametrize("keepdim", (False, True))
@pytest.mark.parametrize("name", ALONG)
def test_along_a_dimension(name, keepdim):
    for dim in (0, -1, 1):
        compare(lambda package, x, dim=dim: getattr(package, name)(x, dim, keepdim), f"{name} along {dim}")


@pytest.mark.parametrize("correction", (0, 1, 2))
@pytest.mark.parametrize("name", ("std", "var"))
def test_corrections(name, correction):
    for dim in (0, 1, None):
        compare(lambda package, x, dim=dim: getattr(package, name)(x, dim, correction=correction), name)


@pytest.mark.parametrize("name", SCANS)
def test_scans(name):
    def call(package, x, dim):
        if name == "unique_dim":
            return package.unique(x.nan_to_num(9), dim=dim, return_inverse=True, return_counts=True)
        if name in ("sort", "argsort"):
            return getattr(package, name)(x, stable=True, dim=dim)
        if name in ("diff", "trapezoid"):
            return getattr(package, name)(x if x.dim() else x.reshape(1), dim=dim)
        return getattr(package, name)(x, dim)

    for dim in (0, -1):
        compare(lambda package, x, dim=dim: call(package, x, dim), f"{name} along {dim}")


@pytest.mark.parametrize("name", ("cummax", "cummin"))
def test_running_extrema(name):
    for dim in (0, -1):
        compare(lambda package, x, dim=dim: getattr(package, name)(x, dim), f"{name} along {dim}")


@pytest.mark.parametrize("name", ("quantile", "nanquantile"))
def test_quantiles(name):
    for interpolation in ("linear", "nearest", "lower"):
        for dim in (0, None):
            compare(lambda package, x, d=dim, i=interpolation: getattr(package, name)(x, 0.3, d, interpolation=i), name)


def test_searches():
    compare(lambda package, x: package.isin(x, x.flatten()[:2]), "isin")

    def found(package, x):
        bounds = package.tensor([-2, 0, 1, 1, 3]).to(x.dtype)
        return package.searchsorted(bounds, x), package.bucketize(x, bounds, right=True)

    compare(found, "searchsorted")
