"""Chi2(df)."""

from __future__ import annotations

from rushlight.core.tensor import Tensor
from rushlight.distributions import constraints
from rushlight.distributions.gamma import Gamma


class Chi2(Gamma):
    """The sum of `df` squared standard normal numbers."""

    arg_constraints = {"df": constraints.positive}

    def __init__(self, df: Tensor | float, validate_args: bool | None = None):
        super().__init__(0.5 * df, 0.5, validate_args=validate_args)

    def expand(self, batch_shape, _instance=None):
        return super().expand(batch_shape, self._check_instance(Chi2, _instance))

    df = property(lambda self: self.concentration * 2)
