"""NumPy's dtypes and the limits of their numbers: constants of a capture."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from rushlight.dynamo.handlers import HANDLERS
from rushlight.dynamo.values.base import Value
from rushlight.dynamo.values.constant import ConstantValue, raised
from rushlight.dynamo.values.construction import CONSTRUCTORS

if TYPE_CHECKING:
    from rushlight.dynamo.values.base import Following


def _constant_maker(made: Callable) -> Callable:
    """Return the handler of a function or class whose result depends on constants alone, and never changes."""

    def call(tx: Following, *args: Value) -> Value:
        try:
            return ConstantValue(made(*[value.constant() for value in args]))
        except (TypeError, ValueError) as error:
            raise raised(error) from None

    return call


for _maker in (np.finfo, np.iinfo, np.dtype):
    CONSTRUCTORS[_maker] = _constant_maker(_maker)
HANDLERS[np.issubdtype] = _constant_maker(np.issubdtype)
