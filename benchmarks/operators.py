"""Times single eager operators in Rushlight and PyTorch, call by call in turns, and prints a table of ratios, worst first.

    python -m benchmarks.operators [--sizes 8,4096] [--only sum,mean] [--passes 7] [--threads 1]

In: `OPERATORS`, text that both libraries understand, with tensors of `n` elements. Out: for each operator and size the
smallest time of either library in microseconds, and their ratio; at the end their geometric mean and how many are large.
"""

from __future__ import annotations

import argparse
import math
import timeit
from dataclasses import dataclass
from typing import Any

import torch

import rushlight

OPERATORS = """
x + y; x - y; x * y; x / y; x + 2; 2 * x; x ** 2; -x; x // y; x % 3; x > y; x == 0; x.add_(0.5); x.mul_(0.5); m & k; ~m
lib.exp(x); lib.log(p); lib.sqrt(p); lib.rsqrt(p); lib.sin(x); lib.cos(x); lib.tanh(x); lib.sigmoid(x); lib.relu(x)
lib.erf(x); lib.abs(x); lib.sign(x); lib.floor(x); lib.round(x); lib.reciprocal(p); lib.pow(p, 1.5); lib.isnan(x)
lib.isfinite(x); lib.maximum(x, y); lib.minimum(x, y); lib.clamp(x, 0, 1); x.clamp(min=0); lib.where(m, x, y)
lib.where(m, x, 0.0); x.masked_fill(m, 0.0); lib.lerp(x, y, 0.5); lib.addcmul(x, y, y); lib.addcdiv(x, y, p); lib.atan2(x, y)
lib.logical_and(m, k); F.gelu(x); F.silu(x); F.leaky_relu(x); F.elu(x); F.softplus(x); F.hardtanh(x); F.dropout(x, 0.5)
x.sum(); x.mean(); x.max(); x.min(); x.argmax(); x.prod(); x.std(); x.var(); x.norm(); x.any(); x.all(); m.sum(); x.amax()
a.sum(1); a.sum(0); a.mean(1); a.mean(-1, keepdim=True); a.max(1); a.argmax(1); a.amax(1); a.var(1); a.logsumexp(1)
a.cumsum(1); lib.softmax(a, -1); lib.log_softmax(a, -1); F.layer_norm(a, (8,)); F.normalize(a); lib.count_nonzero(x)
lib.median(x); lib.nansum(x); lib.histc(x); lib.bincount(i); lib.unique(i); x[i]; x[m]; a[:, 0]; x[1:]; a[0]; x[None]; a[j]
x.index_select(0, i); x.gather(0, i); x.take(i); lib.nonzero(m); x[0].item(); w.__setitem__(i, y); w.__setitem__(m, 0.0)
w.__setitem__(0, 1.0); w.index_add_(0, i, y); w.scatter_(0, i, y); w.masked_fill_(m, 0.0); lib.sort(x); lib.argsort(x)
lib.topk(x, 2); lib.flip(x, (0,)); lib.roll(x, 1); lib.tril(a); lib.diag(a[:8]); lib.searchsorted(s, x); lib.cat([x, y])
lib.stack([x, y]); lib.split(x, 4); lib.chunk(x, 2); x.repeat(2); lib.zeros(n); lib.ones(n); lib.empty(n); lib.full((n,), 1.5)
lib.arange(n); lib.linspace(0, 1, n); lib.eye(8); lib.tensor([1.0, 2.0]); lib.zeros_like(x); lib.ones_like(x)
lib.empty_like(x); lib.full_like(x, 2.0); x.new_zeros((n,)); lib.rand(n); lib.randn(n); lib.randint(0, 10, (n,))
lib.rand_like(x); lib.randn_like(x); lib.bernoulli(p / 9); w.normal_(); w.uniform_(); w.fill_(1.0); w.zero_(); x.clone()
x.contiguous(); a.t().contiguous(); x.to(lib.float64); x.to(lib.float32); x.long(); x.double(); m.float(); w.copy_(x)
x.tolist() if n < 9 else x; x.numpy(); x.detach(); x.view(-1, 8); x.reshape(-1, 8); a.t(); a.transpose(0, 1); a.permute(1, 0)
x.unsqueeze(0); x.squeeze(); x.flatten(); x.expand(2, n); x.size(0); x.shape; bool(x.sum() == 0); float(x[0]); a @ b
lib.mm(a, b); lib.matmul(a, b[0]); x.dot(y); lib.bmm(a.view(1, -1, 8), b.view(1, 8, 8)); F.linear(a, b)
lib.outer(x[:8], y[:8]); F.linear(a, b, b[0]); lib.einsum('ij,jk->ik', a, b); lib.addmm(b[0], a, b); F.mse_loss(x, y)
F.l1_loss(x, y); F.embedding(i % 8, b); F.cross_entropy(a, j); F.nll_loss(a, j); F.binary_cross_entropy_with_logits(x, y)
F.pad(x, (1, 1)); lib.allclose(x, x); lib.equal(x, x); F.one_hot(i % 8, 8); lib.meshgrid(x[:8], y[:8], indexing='ij')
lib.cdist(a[:8], b)
"""


@dataclass(frozen=True)
class Timing:
    """The best times of one operator at one size, in microseconds."""

    operator: str
    size: int
    ours: float
    theirs: float

    @property
    def ratio(self) -> float:
        return self.ours / self.theirs


def names_for(lib: Any, size: int) -> dict[str, Any]:
    """What the text of an operator may name: the library, and tensors of `size` elements with the same values in each."""
    lib.manual_seed(0)
    ramp = lib.arange(size) % 7
    index = (lib.arange(size) * 7919) % size
    x = ramp.to(lib.float32) - 3.0
    rows = max(size // 8, 1)
    return {
        "lib": lib, "F": lib.nn.functional, "n": size, "x": x, "y": x.flip(0) * 0.5 + 0.25, "w": x.clone(), "p": x.abs() + 0.5,
        "m": ramp > 3, "k": ramp < 5, "i": index, "j": lib.arange(rows) % min(rows, 8), "a": x.view(-1, 8).clone(),
        "b": lib.ones(8, 8), "s": lib.arange(size) * 1.0,
    }  # fmt: skip


def operators(only: str) -> list[str]:
    """The texts of OPERATORS that contain one of the words of `only`; all of them where it is empty."""
    found = [text.strip() for text in OPERATORS.replace("\n", ";").split(";")]
    words = [word for word in only.split(",") if word]
    return [text for text in dict.fromkeys(found) if text and (not words or any(word in text for word in words))]


def best_times(text: str, libraries: list[dict[str, Any]], passes: int) -> list[float]:
    """The least time of a call in each library, in microseconds; they take turns, so that both meet the same machine."""
    timers = [timeit.Timer(text, globals=names) for names in libraries]
    once = max(min(timer.timeit(1) for _ in range(2)) for timer in timers)
    number = max(1, min(300, int(0.002 / max(once, 1e-7))))
    best = [math.inf] * len(timers)
    for _ in range(passes):
        for place, timer in enumerate(timers):
            best[place] = min(best[place], timer.timeit(number) / number * 1e6)
    return best


def measure(libraries: list[Any], sizes: list[int], only: str, passes: int) -> list[Timing]:
    """All timings of [rushlight, torch], worst ratio first. What one of the libraries refuses is reported and left out."""
    found = []
    for size in sizes:
        names = [names_for(lib, size) for lib in libraries]
        for text in operators(only):
            try:
                ours, theirs = best_times(text, names, passes)
            except Exception as error:  # an operator that one of the libraries lacks: whatever it raises
                print(f"{text} at {size}: {type(error).__name__}: {error}")
                continue
            found.append(Timing(text, size, ours, theirs))
    return sorted(found, key=lambda timing: -timing.ratio)


def table(timings: list[Timing]) -> str:
    """The printed form."""
    lines = [f"{'operator':44} {'elements':>9} {'rushlight us':>13} {'torch us':>10} {'ratio':>7}"]
    lines += [f"{t.operator:44} {t.size:9} {t.ours:13.2f} {t.theirs:10.2f} {t.ratio:7.2f}" for t in timings]
    if timings:
        mean = math.exp(sum(math.log(timing.ratio) for timing in timings) / len(timings))
        above = ", ".join(f"{sum(t.ratio > limit for t in timings)} above {limit}" for limit in (1.5, 2, 3))
        lines.append(f"{len(timings)} timings, geometric mean {mean:.2f}: {above}")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sizes", default="8,4096,1048576", help="numbers of elements, multiples of 8")
    parser.add_argument("--only", default="", help="words; only operators whose text has one of them")
    parser.add_argument("--passes", type=int, default=7)
    parser.add_argument("--threads", type=int, default=1)
    chosen = parser.parse_args()
    for lib in (rushlight, torch):
        lib.set_num_threads(chosen.threads)
    sizes = [int(size) for size in chosen.sizes.split(",")]
    print(table(measure([rushlight, torch], sizes, chosen.only, chosen.passes)))


if __name__ == "__main__":
    main()
