"""`torch.masked`: reductions and normalisations over the elements that a mask chooses.

Every function takes a bool `mask` that broadcasts to the input; False leaves an element out, None takes all. A row without
any element gives the reduction's value of nothing: 0 for sum, 1 for prod, -inf for amax, NaN for mean. A `MaskedTensor` carries
its mask along.
"""

from __future__ import annotations

from rushlight.masked.maskedtensor import MaskedTensor, as_masked_tensor, is_masked_tensor, masked_tensor
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
    "MaskedTensor", "amax", "amin", "argmax", "argmin", "as_masked_tensor", "cumprod", "cumsum", "is_masked_tensor",
    "log_softmax", "logaddexp", "logsumexp", "masked_tensor", "mean", "median", "norm", "normalize", "prod", "softmax",
    "softmin", "std", "sum", "var",
]  # fmt: skip
