"""Marks for functions of the library that compiled functions call and do not follow."""

from __future__ import annotations

from collections.abc import Callable


def runs_as_it_is(reason: str) -> Callable[[Callable], Callable]:
    """A decorator of methods that compiled functions call and do not follow; `reason` is what logs say then."""

    def decorate(function: Callable) -> Callable:
        function._rushlight_disabled = reason
        return function

    return decorate
