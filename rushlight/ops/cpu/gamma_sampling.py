"""CPU kernels that draw gamma and Dirichlet numbers, one after the other as torch's CPU kernels draw them.

Definition: G. Marsaglia and W. W. Tsang, "A simple method for generating gamma variables" (2000).
"""

from __future__ import annotations

import math

import numpy as np

from rushlight.core.generator import Generator, cpu_generator
from rushlight.core.tensor import Tensor
from rushlight.ops.cpu.common import operand
from rushlight.ops.cpu.implicit_slopes import beta_slope, gamma_slope
from rushlight.ops.cpu.results import contiguous
from rushlight.ops.meta.gamma_sampling import check_floating
from rushlight.ops.registry import cpu

_AHEAD = 512


class _Numbers:
    """Uniform and normal float64 numbers one by one. The generator gets back what was prefetched but not used."""

    def __init__(self, source: Generator):
        self._source = source

    def __enter__(self) -> _Numbers:
        self._source.lock.acquire()
        self._before, self._used, self._kept = self._source.get_state(), 0, self._source.kept_normal
        return self

    def uniform(self) -> float:
        position = self._used % _AHEAD
        if not position:
            self._block = self._source.uniform64(_AHEAD).tolist()
        self._used += 1
        return self._block[position]

    def normal(self) -> float:
        if self._kept is not None:
            number, self._kept = self._kept, None
            return number
        turn = 2 * math.pi * self.uniform()
        radius = math.sqrt(-2 * math.log1p(-self.uniform()))
        self._kept = radius * math.sin(turn)
        return radius * math.cos(turn)

    def __exit__(self, *exception: object) -> None:
        self._source.set_state(self._before)
        self._source.draw64(self._used)
        self._source.kept_normal = self._kept
        self._source.lock.release()


def _gamma(alpha: float, numbers: _Numbers) -> float:
    if not alpha > 0:
        return 0.0 if alpha == 0 else math.nan
    scale = 1.0
    if alpha < 1:
        scale = (1 - numbers.uniform()) ** (1 / alpha)
        alpha += 1
    d = alpha - 1 / 3
    c = 1 / math.sqrt(9 * d)
    while True:
        x = numbers.normal()
        root = 1 + c * x
        while root <= 0:
            x = numbers.normal()
            root = 1 + c * x
        v, u, square = root**3, 1 - numbers.uniform(), x * x
        if u < 1 - 0.0331 * square * square or math.log(u) < 0.5 * square + d * (1 - v + math.log(v)):
            return scale * d * v


def _draw(self: Tensor, generator: Generator | None) -> np.ndarray:
    alphas = operand(self, self.dtype)
    with _Numbers(cpu_generator(generator)) as numbers:
        drawn = [_gamma(alpha, numbers) for alpha in alphas.reshape(-1).tolist()]
    # Clamp away from 0, whose logarithm would be infinite.
    return np.maximum(np.array(drawn, np.float64).reshape(alphas.shape), _least(self))


def _least(self: Tensor) -> float:
    return 6.103515625e-05 if self.dtype.name == "float16" else float(np.finfo(self.dtype.compute).tiny)


@cpu("_standard_gamma")
def standard_gamma(self, generator=None):
    check_floating("gamma", self)
    return contiguous(_draw(self, generator), self.dtype)


@cpu("_sample_dirichlet")
def sample_dirichlet(self, generator=None):
    check_floating("dirichlet", self)
    drawn = _draw(self, generator)
    shares = drawn / drawn.sum(-1, keepdims=True)
    return contiguous(np.clip(shares, _least(self), 1 - np.finfo(self.dtype.compute).eps / 2), self.dtype)


def _wide(*tensors: Tensor) -> list[np.ndarray]:
    return [operand(tensor, tensor.dtype).astype(np.float64) for tensor in tensors]


@cpu("_standard_gamma_grad")
def standard_gamma_grad(self, output):
    check_floating("_standard_gamma_grad", self, output)
    return contiguous(gamma_slope(*_wide(self, output)), self.dtype)


@cpu("_dirichlet_grad")
def dirichlet_grad(x, alpha, total):
    check_floating("_dirichlet_grad", x, alpha, total)
    return contiguous(beta_slope(*_wide(x, alpha, total)), x.dtype)
