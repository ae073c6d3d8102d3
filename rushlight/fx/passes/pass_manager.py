"""The older PassManager: passes are functions from module to module."""

from __future__ import annotations

import logging
from collections.abc import Callable
from functools import wraps

from rushlight.fx.passes.infra.pass_manager import this_before_that_pass_constraint, violations
from rushlight.nn.modules.module import Module

__all__ = [
    "PassManager", "inplace_wrapper", "log_hook", "loop_pass", "these_before_those_pass_constraint",
    "this_before_that_pass_constraint",
]  # fmt: skip
_log = logging.getLogger(__name__)


def inplace_wrapper(fn: Callable) -> Callable:
    """Wrap `fn`, which changes its argument in place, as a function that returns the argument."""

    @wraps(fn)
    def wrapped(gm: Module) -> Module:
        fn(gm)
        return gm

    return wrapped


def log_hook(fn: Callable, level: int = logging.INFO) -> Callable:
    """Wrap `fn` so that its argument is logged before it runs."""

    @wraps(fn)
    def wrapped(gm: Module) -> object:
        _log.log(level, "Ran pass %s\n Input Graph:\n%s", fn, getattr(gm, "graph", gm))
        return fn(gm)

    return wrapped


def loop_pass(base_pass: Callable, n_iter: int | None = None, predicate: Callable | None = None) -> Callable:
    """Make a pass that runs `base_pass` `n_iter` times, or while `predicate(result)` holds; ValueError unless one is given."""
    if (n_iter is None) == (predicate is None):
        raise ValueError("Exactly one of `n_iter` or `predicate` must be specified.")

    @wraps(base_pass)
    def wrapped(source: object) -> object:
        output = source
        if n_iter is not None:
            for _ in range(n_iter):
                output = base_pass(output)
        else:
            while predicate(output):
                output = base_pass(output)
        return output

    return wrapped


def these_before_those_pass_constraint(these: Callable, those: Callable) -> Callable[[Callable, Callable], bool]:
    """Like `this_before_that_pass_constraint`, for passes that `loop_pass` or another wrapper made."""

    def holds(a: Callable, b: Callable) -> bool:
        return not (getattr(a, "__wrapped__", a) == those and getattr(b, "__wrapped__", b) == these)

    return holds


class PassManager:
    """Passes, run in turn on a module, in an order that `constraints` allow."""

    def __init__(self, passes: list[Callable] | None = None, constraints: list[Callable] | None = None) -> None:
        self.passes = list(passes or [])
        self.constraints = list(constraints or [])
        self._validated = False

    @classmethod
    def build_from_passlist(cls, passes: list[Callable]) -> PassManager:
        """Make a manager of these passes without constraints."""
        return cls(passes)

    def add_pass(self, _pass: Callable) -> None:
        """Append a pass."""
        self.passes.append(_pass)
        self._validated = False

    def add_constraint(self, constraint: Callable[[Callable, Callable], bool]) -> None:
        """Add a constraint on the order of passes."""
        self.constraints.append(constraint)
        self._validated = False

    def remove_pass(self, _passes: list[str]) -> None:
        """Remove the passes of these names."""
        self.passes = [each for each in self.passes if each.__name__ not in _passes]

    def replace_pass(self, _target: Callable, _replacement: Callable) -> None:
        """Replace the pass with the name of `_target` by `_replacement`."""
        self.passes = [_replacement if each.__name__ == _target.__name__ else each for each in self.passes]

    def validate(self) -> None:
        """Raise RuntimeError if the order of the passes breaks a constraint."""
        for violation in () if self._validated else violations(self.passes, self.constraints):
            raise RuntimeError(violation)
        self._validated = True

    def __call__(self, source: object) -> object:
        self.validate()
        for one in self.passes:
            source = one(source)
        return source
