"""CPU kernel of the check of values."""

from __future__ import annotations

import numpy as np

from rushlight.ops.packet import namespaces
from rushlight.ops.registry import cpu

aten = namespaces.namespace("aten")

_ERRORS = {kind.__name__: kind for kind in (RuntimeError, IndexError, ValueError)}


@cpu("_checked")
def checked(self, holds, error, message):
    """A copy of the values. Where `holds` is False, the error, whose message has the first such value in the place of `{}`."""
    wrong = ~np.broadcast_to(holds._impl.array, self.shape)
    if wrong.any():
        raise _ERRORS[error](message.format(self._impl.array[wrong][0]))
    return aten.clone.default(self)
