"""How far compiled code's elementary functions are from the exact results, in units in the last place.

    python -m tests.yardsticks.functions --step 257 --write

Every `step`-th float32 from the lowest bit pattern to the highest is tried, so all exponents, subnormal numbers, infinities and
NaN; and of float64 numbers of all magnitudes. Exact results are those of the next wider type (float64 for float32, extended
precision or mpmath for float64). `--write` writes docs/functions.md.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import scipy.special

import rushlight as torch

try:
    import mpmath
except ImportError:  # PyTorch installs it
    mpmath = None

PAGE = Path(__file__).parents[2] / "docs" / "functions.md"
CHUNK = 1 << 21
VANISHING = ("sigmoid", "silu", "gelu")  # their definitions lose the last bits as they vanish, in torch as well
FAR = 40.0  # beyond this, erf and erfc are 0, 1, -1 or 2
PROMISED = {"exp": 2.0, "log": 2.0, "sin": 2.0, "cos": 2.0, "tanh": 2.0, "erf": 2.0}  # units in the last place, in float32
# torch's tolerances for its own results: absolute, relative.
TOLERANCES = {np.dtype(np.float32): (1e-5, 1.3e-6), np.dtype(np.float64): (1e-7, 1e-7)}


def _by_mpmath(name: str) -> Callable | None:
    if mpmath is None:
        return None
    exact, rough = getattr(mpmath, name), getattr(math, name)

    def one(value: float) -> np.longdouble:
        if not abs(value) < FAR:
            return np.longdouble(rough(value))
        with mpmath.workprec(200):
            made = exact(value)
            high = float(made)
            return np.longdouble(high) + np.longdouble(float(made - high))

    return lambda x: np.array([one(float(value)) for value in x], np.longdouble)


def _gelu(x: np.ndarray) -> np.ndarray:
    return np.where(x == -np.inf, x * 0, x * scipy.special.ndtr(x))  # inf * 0, as defined


@dataclass(frozen=True)
class Case:
    """A function: its compiled form, exact results for float32 and float64 arguments, and its domain."""

    ours: Callable
    exact: Callable
    wide: Callable | None = None
    low: float = -math.inf
    high: float = math.inf


CASES = {
    "exp": Case(torch.exp, np.exp, np.exp),
    "expm1": Case(torch.expm1, np.expm1, np.expm1),
    "log": Case(torch.log, np.log, np.log),
    "log1p": Case(torch.log1p, np.log1p, np.log1p),
    "log2": Case(torch.log2, np.log2, np.log2),
    "sqrt": Case(torch.sqrt, np.sqrt, np.sqrt),
    "rsqrt": Case(torch.rsqrt, lambda x: 1 / np.sqrt(x), lambda x: 1 / np.sqrt(x), 0.0),
    "reciprocal": Case(torch.reciprocal, lambda x: 1 / x, lambda x: 1 / x),
    "sin": Case(torch.sin, np.sin, np.sin),
    "cos": Case(torch.cos, np.cos, np.cos),
    "tan": Case(torch.tan, np.tan, np.tan),
    "asin": Case(torch.asin, np.arcsin, np.arcsin),
    "acos": Case(torch.acos, np.arccos, np.arccos),
    "atan": Case(torch.atan, np.arctan, np.arctan),
    "sinh": Case(torch.sinh, np.sinh, np.sinh),
    "cosh": Case(torch.cosh, np.cosh, np.cosh),
    "tanh": Case(torch.tanh, np.tanh, np.tanh),
    "asinh": Case(torch.asinh, np.arcsinh, np.arcsinh),
    "acosh": Case(torch.acosh, np.arccosh, np.arccosh),
    "atanh": Case(torch.atanh, np.arctanh, np.arctanh),
    "erf": Case(torch.erf, scipy.special.erf, _by_mpmath("erf")),
    "erfc": Case(torch.erfc, scipy.special.erfc, _by_mpmath("erfc")),
    "lgamma": Case(torch.lgamma, scipy.special.gammaln, None),
    "sigmoid": Case(torch.sigmoid, scipy.special.expit, None),
    "silu": Case(torch.nn.functional.silu, lambda x: x * scipy.special.expit(x), None),
    "gelu": Case(torch.nn.functional.gelu, _gelu, None),
}


@dataclass
class Accuracy:
    """The largest error found, where, and how many results are outside of torch's tolerance, or wrongly NaN or infinite.

    `mixed` is the largest error relative to the result, or to 1 where that is less.
    """

    ulps: float = 0.0
    argument: float = math.nan
    mixed: float = 0.0
    outside: int = 0
    special: int = 0


def float32_arguments(step: int) -> Iterator[np.ndarray]:
    """Every `step`-th float32, and those around zero, one and infinity."""
    edges = np.array([0.0, 1.0, 2.0, np.inf, 88.72284, 103.972, 0.625, 0.92, 2.0**18, 2.0**-126, 2.0**-25], np.float32)
    bits = edges.view(np.uint32)[:, None].astype(np.int64) + np.arange(-200, 201)
    bits = np.concatenate([bits, bits + (1 << 31)]).reshape(-1) % (1 << 32)
    yield bits.astype(np.uint32).view(np.float32)
    for begin in range(0, 1 << 32, CHUNK * step):
        yield np.arange(begin, min(begin + CHUNK * step, 1 << 32), step, dtype=np.uint64).astype(np.uint32).view(np.float32)


def float64_arguments(count: int) -> np.ndarray:
    """Numbers of all magnitudes, more of them near 1, and the special values."""
    chosen = np.random.default_rng(0)
    signs = chosen.choice([-1.0, 1.0], 2 * count)
    magnitudes = np.concatenate([chosen.uniform(-300, 300, count), chosen.uniform(-4, 3, count)])
    return np.concatenate([signs * 10.0**magnitudes, [0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, np.nan, 5e-324, 1e-310]])


def errors(got: np.ndarray, exact: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Errors in units in the last place of finite results, and which results are NaN or infinite where they should not be, or
    the other way round."""
    with np.errstate(all="ignore"):
        rounded = exact.astype(got.dtype)
        finite = np.isfinite(rounded) & np.isfinite(got)
        special = ~finite & ~((rounded == got) | (np.isnan(rounded) & np.isnan(got)))
        largest = np.finfo(got.dtype).max
        special &= ~(np.isinf(got) & (np.abs(exact) > largest * (1 - 2.0**-22)))  # rounded up to infinity
        unit = np.spacing(np.abs(np.where(finite, rounded, 1)))
        return np.where(finite, np.abs(got.astype(exact.dtype) - exact) / unit, 0).astype(np.float64), special


def measure(name: str, arguments: Iterator[np.ndarray], wide: bool = False) -> Accuracy:
    """The accuracy of a function on these arguments."""
    case, found = CASES[name], Accuracy()
    ours = torch.compile(lambda x: case.ours(x), dynamic=True)
    for x in arguments:
        x = x[~((x < case.low) | (x > case.high))]
        with np.errstate(all="ignore"):
            exact = case.wide(x.astype(np.longdouble)) if wide else case.exact(x.astype(np.float64))
        got = ours(torch.from_numpy(x.copy())).numpy()
        ulps, special = errors(got, exact)
        absolute, relative = TOLERANCES[x.dtype]
        with np.errstate(all="ignore"):
            off = np.abs(got.astype(exact.dtype) - exact) > absolute + relative * np.abs(exact)
        found.outside += int(np.sum(off & np.isfinite(got) & np.isfinite(exact)))
        found.special += int(np.sum(special))
        with np.errstate(all="ignore"):
            mixed = np.abs(got.astype(exact.dtype) - exact) / np.maximum(1, np.abs(exact))
        found.mixed = max(found.mixed, float(np.max(mixed[np.isfinite(mixed)], initial=0.0)))
        worst = int(np.argmax(ulps))
        if ulps[worst] > found.ulps:
            found.ulps, found.argument = float(ulps[worst]), float(x[worst])
    return found


def table(step: int, count: int) -> str:
    """The page's text."""
    lines = [
        "# Accuracy of compiled functions", "",
        "Written by `python -m tests.yardsticks.functions --write`. The largest error of compiled code over its whole range, in units",
        f"in the last place: of every {step}th float32 (all exponents, subnormal numbers, infinities, NaN), against float64; and of",
        f"{2 * count} float64 numbers of all magnitudes, against extended precision. 0.5 is a correctly rounded result. No result is",
        "outside of torch's tolerances (1e-5 + 1.3e-6 |x| for float32), and NaN and infinities are where they should be. exp, log,",
        "sin, cos, tanh and erf stay within 2 units.", "",
        "| function | float32 | at | float64 |", "|---|---|---|---|",
    ]  # fmt: skip
    for name, case in CASES.items():
        narrow = measure(name, float32_arguments(step))
        wide = measure(name, iter([float64_arguments(count)]), wide=True) if case.wide else None
        for accuracy in filter(None, (narrow, wide)):
            if accuracy.outside or accuracy.special:
                print(f"{name}: {accuracy}")
        if name in VANISHING:
            lines.append(f"| `{name}` | {narrow.mixed:.1e} of max(1, result) | | |")
        else:
            lines.append(f"| `{name}` | {narrow.ulps:.2f} | {narrow.argument:.7g} | {f'{wide.ulps:.2f}' if wide else ''} |")
        print(lines[-1], flush=True)
    return "\n".join(lines) + "\n"


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--step", type=int, default=4099)
    parser.add_argument("--count", type=int, default=2000)
    parser.add_argument("--write", action="store_true")
    options = parser.parse_args()
    text = table(options.step, options.count)
    if options.write:
        PAGE.write_text(text)


if __name__ == "__main__":
    main()
