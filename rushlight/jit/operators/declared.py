"""Operators of torch that the library lacks: their schemas, so that code with them compiles, and an error when they run.
Archives contain many such operators in branches that are never taken.

In: `declared.txt`, read when an unknown operator is first looked up. Out: overloads that raise.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import cache

_FILE = os.path.join(os.path.dirname(__file__), "declared.txt")


@cache
def _schemas() -> dict[str, tuple[str, ...]]:
    with open(_FILE, encoding="utf-8") as file:
        text = file.read()
    found: dict[str, tuple[str, ...]] = {}
    for line in text.splitlines():
        name = line.partition("(")[0].partition(".")[0]
        found[name] = (*found.get(name, ()), line)
    return found


def declared_schemas(name: str) -> tuple[str, ...]:
    """Return the schemas of an operator of torch that is missing here; none for a name unknown to torch."""
    return _schemas().get(name, ())


def refusal(name: str) -> Callable:
    """Return the function of a missing operator: it raises RuntimeError."""

    def refuse(*args: object) -> None:
        raise RuntimeError(f"{name} is an operator of torch that rushlight does not have, and the scripted code calls it")

    return refuse
