"""Markers for functions that the tracer of compiled functions calls instead of following, and `is_compiling`."""

from __future__ import annotations

from collections.abc import Callable

from rushlight._C import skip_code


def is_compiling() -> bool:
    """Return False when run eagerly; True inside a compiled function."""
    return False


def answers_when_followed(answer: object) -> Callable[[Callable], Callable]:
    """Return a decorator for functions without arguments that return `answer` inside a compiled function."""

    def decorate(function: Callable) -> Callable:
        function._rushlight_answer = answer
        return function

    return decorate


def runs_as_it_is(reason: str, with_callees: bool = False) -> Callable[[Callable], Callable]:
    """Return a decorator for functions that the tracer calls without following them; `reason` goes to the logs. `with_callees`
    says that nothing they call is worth capturing either."""

    def decorate(function: Callable) -> Callable:
        function._rushlight_disabled = reason
        if with_callees:
            skip_code(function.__code__, True)
        return function

    return decorate
