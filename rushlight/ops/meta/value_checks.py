"""Meta rule of the check of values."""

from __future__ import annotations

from rushlight.ops.meta.common import pointwise
from rushlight.ops.registry import meta


@meta("_checked")
def checked(self, holds, error, message):
    return pointwise(self.dtype, self)
