"""CPU kernel of the run-time check of values."""

from __future__ import annotations

import numpy as np

from rushlight.ops.meta.value_checks import ERRORS, check_condition
from rushlight.ops.packet import namespaces
from rushlight.ops.registry import cpu

aten = namespaces.namespace("aten")


@cpu("_checked")
def checked(self, holds, error, message):
    """Return a copy of the values. Raises where `holds` is False; in the message, `{}` stands for the first offending value."""
    check_condition(self, holds, error)
    wrong = ~np.broadcast_to(holds._impl.array, self.shape)
    if wrong.any():
        raise ERRORS[error](message.replace("{}", str(self._impl.array[wrong][0])))
    return aten.clone.default(self)
