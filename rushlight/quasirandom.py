"""`torch.quasirandom`: numbers that fill the unit cube evenly. SciPy has their direction numbers."""

from __future__ import annotations

import warnings
from typing import Any

from rushlight.core.dtype import dtype as element_type
from rushlight.core.dtype import get_default_dtype
from rushlight.core.lazy_module import LazyModule
from rushlight.core.tensor import Tensor, from_numpy

_qmc = LazyModule("scipy.stats.qmc", used_by="SobolEngine")


class SobolEngine:
    """Sobol's sequence (by Joe and Kuo's direction numbers, 2008) in up to 21201 dimensions, scrambled on wish.

    The same `seed` gives the same scrambled points, which are others than PyTorch's. ValueError for other dimensions;
    ImportError without SciPy.
    """

    MAXBIT = 30
    MAXDIM = 21201

    def __init__(self, dimension: int, scramble: bool = False, seed: int | None = None):
        if not 1 <= dimension <= self.MAXDIM:
            raise ValueError(f"Supported range of dimensionality for SobolEngine is [1, {self.MAXDIM}], got {dimension}")
        self.dimension, self.scramble, self.seed = dimension, scramble, seed
        self.num_generated = 0
        self._engine: Any = _qmc.Sobol(dimension, scramble=scramble, bits=self.MAXBIT, seed=seed)

    def draw(self, n: int = 1, out: Tensor | None = None, dtype: element_type | None = None) -> Tensor:
        """Return the next `n` points, (n, dimension), in the default dtype or `dtype`, or written to `out`."""
        with warnings.catch_warnings():  # SciPy warns of counts that are no powers of two
            warnings.simplefilter("ignore", UserWarning)
            points = from_numpy(self._engine.random(n)).to(dtype or get_default_dtype())
        self.num_generated += n
        return points if out is None else out.resize_(points.shape).copy_(points)

    def draw_base2(self, m: int, out: Tensor | None = None, dtype: element_type | None = None) -> Tensor:
        """Return the next 2**m points. ValueError where the number of points drawn would be no power of two then."""
        n = 2**m
        total = self.num_generated + n
        if total & (total - 1):
            raise ValueError(
                "The balance properties of Sobol' points require their number to be a power of 2, and it would be "
                f"{self.num_generated} + 2**{m} = {total}: use SobolEngine.draw() if that is what you want"
            )
        return self.draw(n, out, dtype)

    def reset(self) -> SobolEngine:
        """Begin again."""
        self._engine.reset()
        self.num_generated = 0
        return self

    def fast_forward(self, n: int) -> SobolEngine:
        """Leave out `n` points."""
        self._engine.fast_forward(n)
        self.num_generated += n
        return self

    def __repr__(self) -> str:
        parts = [f"dimension={self.dimension}"]
        if self.scramble:
            parts.append("scramble=True")
        if self.seed is not None:
            parts.append(f"seed={self.seed}")
        return f"{type(self).__name__}({', '.join(parts)})"
