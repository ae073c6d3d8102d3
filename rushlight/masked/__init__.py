"""`torch.masked`: reductions and normalisations over the elements that a mask chooses.

Every function takes a bool `mask` that broadcasts to the input; False leaves an element out, None takes all. A row without
any element gives the reduction's value of nothing: 0 for sum, 1 for prod, -inf for amax, NaN for mean.
"""

from __future__ import annotations

from rushlight.masked.normalisations import (
    cumprod,
    cumsum,
    log_softmax,
    logaddexp,
    normalize,
    softmax,
    softmin,
)
from rushlight.masked.reductions import amax, amin, argmax, argmin, logsumexp, mean, median, norm, prod, std, sum, var

__all__ = [
    "amax", "amin", "argmax", "argmin", "cumprod", "cumsum", "log_softmax", "logaddexp", "logsumexp", "mean", "median", "norm",
    "normalize", "prod", "softmax", "softmin", "std", "sum", "var",
]  # fmt: skip
