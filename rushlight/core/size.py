"""Size: the tuple of ints that `Tensor.shape` returns, and checks of sizes."""

from __future__ import annotations

import math
import operator
from collections.abc import Iterable


def whole_number(value: object) -> int:
    """Return `int(value)`; a symbolic integer stays as it is, since it counts as an instance of int."""
    return value if isinstance(value, int) and not isinstance(value, bool) else int(value)


# Floats with at most this numerator and denominator have so few digits that their products with sizes are exact.
_MAX_NUMERATOR, _MAX_DENOMINATOR = 2**20, 2**10


def short_fraction(number: float) -> tuple[int, int] | None:
    """Return a finite float as numerator and denominator if its product with any size is exact, else None."""
    numerator, denominator = number.as_integer_ratio()
    is_short = abs(numerator) <= _MAX_NUMERATOR and denominator <= _MAX_DENOMINATOR
    return (numerator, denominator) if is_short else None


class Size(tuple):
    """A tensor's sizes. A tuple with `numel()` that stays a Size under slicing and concatenation."""

    __slots__ = ()

    def __new__(cls, sizes: Iterable[int] = ()) -> Size:
        """Raise TypeError where an item is no integer."""
        made = super().__new__(cls, sizes)
        for index, item in enumerate(made):
            if type(item) is not int and not isinstance(item, int):
                try:
                    operator.index(item)
                except TypeError:
                    kind = type(item).__name__
                    raise TypeError(f"torch.Size() takes an iterable of 'int' (item {index} is '{kind}')") from None
        return made

    def numel(self) -> int:
        """Return the number of elements of a tensor of this size."""
        return math.prod(self)

    def __getitem__(self, key):
        item = tuple.__getitem__(self, key)
        return Size(item) if isinstance(key, slice) else item

    def __add__(self, other):
        return Size(tuple.__add__(self, tuple(other)))

    def __radd__(self, other):
        return Size(tuple(other) + tuple(self))

    def __mul__(self, count):
        return Size(tuple.__mul__(self, count))

    __rmul__ = __mul__

    def __repr__(self) -> str:
        return f"torch.Size([{', '.join(map(repr, self))}])"

    def __reduce__(self):
        return (Size, (tuple(self),))
