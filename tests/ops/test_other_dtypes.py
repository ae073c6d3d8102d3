"""What operators give for integers, bytes, booleans and halves, against torch."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import rushlight

torch = pytest.importorskip("torch")

pytestmark = pytest.mark.oracle


def numbers(library, *shape: int, kind: str = "int32"):
    """Small whole numbers, negative ones among them."""
    count = int(np.prod(shape))
    return library.from_numpy(((np.arange(count) * 7) % 11 - 4).reshape(shape)).to(getattr(library, kind))


PRODUCTS = {
    "dot": lambda lib, x: lib.dot(x(3), x(3)),
    "vdot": lambda lib, x: lib.vdot(x(3), x(3)),
    "matmul of vectors": lambda lib, x: lib.matmul(x(3), x(3)),
    "tensordot": lambda lib, x: lib.tensordot(x(2, 3, 4), x(4, 3), dims=([1, 2], [1, 0])),
    "tensordot over ones": lambda lib, x: lib.tensordot(x(2, 3), x(1, 2), dims=([1], [0])),
    "addmv": lambda lib, x: lib.addmv(x(2), x(2, 3), x(3), alpha=2.5, beta=3.0),
    "addbmm": lambda lib, x: lib.addbmm(x(2, 4), x(3, 2, 5), x(3, 5, 4), beta=2, alpha=2.9),
    "baddbmm": lambda lib, x: lib.baddbmm(x(3, 2, 4), x(3, 2, 5), x(3, 5, 4), beta=2, alpha=2.9),
    "bilinear": lambda lib, x: lib.nn.functional.bilinear(x(2, 3), x(2, 4), x(5, 3, 4)),
    "sum_to_size": lambda lib, x: (x(2, 3).sum_to_size(3), x(2, 3).sum_to_size(2, 3), x().sum_to_size(())),
}
OTHERS = {
    "addr of booleans": lambda lib: lib.addr(numbers(lib, 2, 2) > 0, numbers(lib, 2) > 0, numbers(lib, 2) > 0, beta=2),
    "avg_pool1d": lambda lib: lib.nn.functional.avg_pool1d(numbers(lib, 1, 2, 9, kind="int64"), 2),
    "avg_pool2d": lambda lib: lib.nn.functional.avg_pool2d(numbers(lib, 1, 2, 9, 7, kind="int64"), 3, 2, 1, divisor_override=-4),
    "avg_pool3d": lambda lib: lib.nn.functional.avg_pool3d(numbers(lib, 1, 2, 5, 5, 5, kind="int64"), 2, 2, 1, False, False),
    "max_pool3d": lambda lib: lib.nn.functional.max_pool3d(numbers(lib, 1, 2, 5, 5, 5, kind="int8"), 2, 2, 1),
    "local_response_norm": lambda lib: lib.nn.functional.local_response_norm(numbers(lib, 1, 4, 3, 3, kind="int64"), 2),
    "unravel_index": lambda lib: lib.unravel_index(numbers(lib, 3, kind="int8") + 4, (300, 7)),
    "gradient": lambda lib: lib.gradient(numbers(lib, 9, kind="int8")),
    "arange": lambda lib: [lib.arange(*given, dtype=lib.int64) for given in ((1.0, 5.000001, 2.0), (0.0, -8.000001, -4.0))],
    "linspace": lambda lib: [lib.linspace(4.3, -3, 15, dtype=kind) for kind in (lib.int64, lib.int16)],
    "logspace": lambda lib: [lib.logspace(0, 1.9, steps, base, dtype=lib.int64) for steps in (1, 2, 4) for base in (10.0, 5.0)],
    "masked.var": lambda lib: lib.masked.var(numbers(lib, 8).half(), mask=numbers(lib, 8) > 0),
    "norms": lambda lib: [lib.linalg.vector_norm(numbers(lib, 9999).half(), order) for order in (0, 1, 2, 3, 6)],
}  # fmt: skip


def same(ours: object, theirs: object) -> None:
    if isinstance(theirs, tuple | list):
        for mine, other in zip(ours, theirs, strict=True):
            same(mine, other)
        return
    assert str(ours.dtype).split(".")[1] == str(theirs.dtype).split(".")[1]
    np.testing.assert_allclose(ours.numpy(), theirs.numpy(), rtol=2e-3)


@pytest.mark.parametrize("kind", ["uint8", "int8", "int32", "int64"])
@pytest.mark.parametrize("name", PRODUCTS)
def test_products_of_integers(name, kind):
    ours, theirs = (PRODUCTS[name](lib, lambda *shape, lib=lib: numbers(lib, *shape, kind=kind)) for lib in (rushlight, torch))
    same(ours, theirs)


@pytest.mark.parametrize("name", OTHERS)
def test_other_operators(name):
    same(OTHERS[name](rushlight), OTHERS[name](torch))


@pytest.mark.parametrize("name", ["avg_pool2d", "avg_pool3d"])
@pytest.mark.parametrize("kind", ["int32", "uint8"])
def test_means_that_are_not_defined(name, kind):
    with pytest.raises(NotImplementedError, match="not implemented for"):
        getattr(rushlight.nn.functional, name)(numbers(rushlight, 1, 1, 4, 4, 4, kind=kind)[0, ..., : 4], 2)


def test_triangles():
    for rows, columns, offset in itertools.product(range(5), range(5), range(-6, 7)):
        for name in ("tril_indices", "triu_indices"):
            same(getattr(rushlight, name)(rows, columns, offset), getattr(torch, name)(rows, columns, offset))


@pytest.mark.parametrize("shape", [(), (7,), (3, 4), (2, 0, 3), (2, 3, 2)])
@pytest.mark.parametrize("size", [0, 2, 12])
def test_places_of_what_is_not_zero(shape, size):
    for kind in ("bool", "int64", "float32"):
        ours, theirs = (lib.nonzero_static(numbers(lib, *shape, kind="int32").clamp(0).to(getattr(lib, kind)), size=size, fill_value=9)
                        for lib in (rushlight, torch))  # fmt: skip
        same(ours, theirs)


@pytest.mark.parametrize("antialias", [False, True])
@pytest.mark.parametrize("mode", ["bilinear", "bicubic"])
@pytest.mark.parametrize("size", [(9, 31), (40, 17), (20, 50), (31, 20)])
def test_images_of_bytes(mode, antialias, size):
    """As torch does: columns first, weights of 16 bits, bytes between. Weights whose last bit torch rounds otherwise may make a
    byte one more or less."""
    image = np.random.default_rng(0).integers(0, 256, (2, 3, 20, 31), dtype=np.uint8)
    ours, theirs = (lib.nn.functional.interpolate(lib.from_numpy(image), size, mode=mode, antialias=antialias).numpy()
                    for lib in (rushlight, torch))  # fmt: skip
    apart = np.abs(ours.astype(int) - theirs.astype(int))
    assert apart.max() <= 1 and (apart > 0).mean() < 0.02


def test_integers_that_have_no_weighted_sums():
    for mode, shape in {"linear": (1, 1, 4), "bilinear": (1, 1, 4, 4), "trilinear": (1, 1, 4, 4, 4)}.items():
        with pytest.raises(NotImplementedError, match="interpolate.*not implemented for"):
            rushlight.nn.functional.interpolate(numbers(rushlight, *shape), scale_factor=2, mode=mode)
