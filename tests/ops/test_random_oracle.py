"""The same seed gives the numbers that PyTorch's CPU generator gives, draw by draw."""

from __future__ import annotations

import numpy as np
import pytest

import rushlight

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.oracle

FLOATS = ("float32", "float64", "float16", "bfloat16")
SIZES = (*range(1, 41), 257)


def on_intel() -> bool:
    """Whether PyTorch takes the numbers of these kernels from Intel's vector library, which is not followed."""
    torch.manual_seed(3)
    drawn = torch.empty(8).exponential_()
    rushlight.manual_seed(3)
    return not np.allclose(drawn.numpy(), rushlight.empty(8).exponential_().numpy(), rtol=1e-5)


def values(tensor) -> np.ndarray:
    wide = tensor.double() if tensor.is_floating_point() else tensor
    return np.asarray(wide.numpy())


def agree(draw, exact: bool = True) -> None:
    """`draw(package)` gives the same numbers in both packages, and leaves the generators in the same state."""
    results = []
    for package in (torch, rushlight):
        package.manual_seed(17)
        results.append((values(draw(package)), package.rand(3).numpy()))
    (want, want_after), (got, got_after) = results
    if exact:
        np.testing.assert_array_equal(got, want)
    else:
        np.testing.assert_allclose(got, want, rtol=3e-3 if want.dtype != np.float64 else 1e-2)
    np.testing.assert_array_equal(got_after, want_after)


def filled(name: str, size: int, kind: str, *args):
    return lambda package: getattr(package.empty(size, dtype=getattr(package, kind)), name)(*args)


@pytest.mark.parametrize("kind", FLOATS)
@pytest.mark.parametrize(
    "name, args", [("uniform_", (-2, 3)), ("normal_", (1, 2)), ("cauchy_", (1, 2)), ("log_normal_", (0, 1))]
)
def test_continuous(name, args, kind):
    for size in SIZES:
        agree(filled(name, size, kind, *args), exact=False)


@pytest.mark.parametrize("kind", FLOATS)
def test_exponential(kind):
    if on_intel():
        pytest.skip("Intel's vector library draws these numbers")
    for size in SIZES:
        agree(filled("exponential_", size, kind, 1.5), exact=False)


@pytest.mark.parametrize("kind", (*FLOATS, "int64", "int32", "uint8"))
def test_geometric(kind):
    for size in SIZES:
        agree(filled("geometric_", size, kind, 0.3))


@pytest.mark.parametrize("kind", (*FLOATS, "int64", "int32", "int16", "int8", "uint8", "bool"))
def test_random(kind):
    for size in SIZES:
        agree(filled("random_", size, kind))
        agree(filled("random_", size, kind, 1 if kind == "bool" else 100))
        if kind not in ("bool", "uint8"):
            agree(filled("random_", size, kind, -5, 90))


@pytest.mark.parametrize("kind", ("int64", "int32", "float32"))
def test_randint_and_randperm(kind):
    for size in SIZES:
        agree(lambda package, size=size: package.randint(3, 50, (size,), dtype=getattr(package, kind)))
        agree(lambda package, size=size: package.randperm(size, dtype=getattr(package, kind)))


@pytest.mark.parametrize("kind", FLOATS)
def test_bernoulli_of_probabilities(kind):
    for size in SIZES:
        chances = np.linspace(0, 1, size)
        agree(lambda package, chances=chances: package.bernoulli(package.tensor(chances).to(getattr(package, kind))))


@pytest.mark.parametrize("kind", ("float32", "float64"))
@pytest.mark.parametrize("form", ("tensor, number", "number, tensor", "tensor, tensor", "numbers"))
def test_normal(form, kind):
    for size in SIZES:

        def draw(package, size=size):
            mean = package.arange(size).to(getattr(package, kind))
            if form == "numbers":
                return package.normal(1.0, 2.0, (size,), dtype=getattr(package, kind))
            deviation = mean / 7 + 0.5
            return package.normal(mean if "tensor," in form else 2.0, 3.0 if "number" in form[6:] else deviation)

        agree(draw, exact=False)


@pytest.mark.parametrize("kind", ("float32", "float64"))
def test_poisson(kind):
    for size in SIZES:
        rates = np.linspace(0, 40, size)
        agree(lambda package, rates=rates: package.poisson(package.tensor(rates).to(getattr(package, kind))))


@pytest.mark.parametrize("kind", ("float32", "float64"))
def test_binomial(kind):
    for size in SIZES:
        counts, chances = np.floor(np.linspace(0, 90, size)), np.linspace(0, 1, size)[::-1].copy()

        def draw(package, counts=counts, chances=chances):
            dtype = getattr(package, kind)
            return package.binomial(package.tensor(counts).to(dtype), package.tensor(chances).to(dtype))

        agree(draw)


@pytest.mark.parametrize("kind", ("float32", "float64"))
def test_multinomial_with_replacement(kind):
    for size in SIZES:
        weights = np.linspace(0.1, 1, size)
        agree(lambda package, w=weights: package.multinomial(package.tensor(w).to(getattr(package, kind)), 9, True))


@pytest.mark.parametrize("kind", ("float32", "float64"))
def test_multinomial_without_replacement(kind):
    if on_intel():
        pytest.skip("Intel's vector library draws these numbers")
    for size in SIZES:
        weights = np.linspace(0.1, 1, 2 * size).reshape(2, size)
        for count in {1, size // 2 or 1, size}:

            def draw(package, weights=weights, count=count):
                return package.multinomial(package.tensor(weights).to(getattr(package, kind)), count)

            agree(draw)
