"""Which functions of the library compiled functions call and do not follow; what tells others that they are followed."""

from __future__ import annotations

from collections.abc import Callable

from rushlight._C import skip_code


def is_compiling() -> bool:
    """False; in a compiled function, True."""
    return False


def answers_when_followed(answer: object) -> Callable[[Callable], Callable]:
    """A decorator of functions without arguments that give `answer` in a compiled function."""

    def decorate(function: Callable) -> Callable:
        function._rushlight_answer = answer
        return function

    return decorate


def runs_as_it_is(reason: str, with_callees: bool = False) -> Callable[[Callable], Callable]:
    """A decorator of functions that compiled functions call and do not follow; `reason` is what logs say then. `with_callees`
    says that nothing which they call is worth being captured either."""

    def decorate(function: Callable) -> Callable:
        function._rushlight_disabled = reason
        if with_callees:
            skip_code(function.__code__, True)
        return function

    return decorate
