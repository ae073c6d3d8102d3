"""The interface of a backend library that Rushlight does not use."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager


def is_available() -> bool:
    """Return whether the library is used: it is not."""
    return False


def is_built() -> bool:
    """Return whether the library is part of the build: it is not."""
    return False


def version() -> None:
    """Return the library's version: None, as it is not there."""
    return None


@contextmanager
def flags(**switches: object) -> Iterator[None]:
    """Return a context in which switches of the library are set, which change nothing."""
    yield
