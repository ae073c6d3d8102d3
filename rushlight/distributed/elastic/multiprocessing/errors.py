"""`torch.distributed.elastic.multiprocessing.errors`: a decorator of programs' main functions."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from rushlight.core.absent import absent_class

ChildFailedError = absent_class("torch.distributed.elastic.multiprocessing.errors.ChildFailedError")
_Function = TypeVar("_Function", bound=Callable)


def record(fn: _Function) -> _Function:
    """Return `fn` as it is: an error of a rank is printed with its number, and ends all ranks, without it too."""
    return fn
