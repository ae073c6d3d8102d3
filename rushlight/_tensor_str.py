"""`torch._tensor_str`: how tensors are printed, for a while."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from rushlight.core.printing import elements_text, get_printoptions, restore_printoptions, set_printoptions
from rushlight.core.tensor import Tensor

__all__ = ["PRINT_OPTS", "get_printoptions", "printoptions", "set_printoptions"]


class _Options:
    """The options in force, which can be read and set as attributes."""

    def __getattr__(self, name: str) -> Any:
        return getattr(get_printoptions(), name)

    def __setattr__(self, name: str, value: Any) -> None:
        if name not in get_printoptions()._fields:
            raise AttributeError(f"print options are {', '.join(get_printoptions()._fields)}, got {name!r}")
        restore_printoptions(get_printoptions()._replace(**{name: value}))

    def __repr__(self) -> str:
        return repr(get_printoptions())


PRINT_OPTS = _Options()


def _tensor_str(self: Tensor, indent: int) -> str:
    """Return the elements of a tensor as text, as they stand behind a prefix of `indent` characters."""
    return elements_text(self.numpy(force=True), self.dtype, indent)


@contextmanager
def printoptions(**options: Any) -> Iterator[None]:
    """Return a context in which tensors are printed with other options of `set_printoptions`."""
    before = get_printoptions()
    set_printoptions(**options)
    try:
        yield
    finally:
        restore_printoptions(before)
