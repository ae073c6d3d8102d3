"""PassManager: runs passes, once or several times, in an order that satisfies constraints."""

from __future__ import annotations

import inspect
import itertools
import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import wraps

from rushlight.fx.graph_module import GraphModule
from rushlight.fx.passes.infra.pass_base import PassResult
from rushlight.nn.modules.module import Module

__all__ = ["PassManager", "pass_result_wrapper", "this_before_that_pass_constraint"]
_log = logging.getLogger(__name__)


def pass_result_wrapper(fn: Callable) -> Callable:
    """Wrap `fn`, which changes a module in place or returns a new one, as a pass that returns a PassResult."""
    if fn is None:
        return None

    @wraps(fn)
    def wrapped(gm: GraphModule) -> PassResult:
        result = fn(gm)
        if result is None:
            return PassResult(gm, True)
        if isinstance(result, PassResult):
            return result
        if isinstance(result, Module):
            return PassResult(result, True)
        raise TypeError(f"the pass {_name(fn)} returned a {type(result).__name__}, not a module, a PassResult or None")

    if not inspect.isfunction(fn):
        wrapped.__name__ = type(fn).__name__
    return wrapped


def this_before_that_pass_constraint(this: Callable, that: Callable) -> Callable[[Callable, Callable], bool]:
    """Return the constraint that pass `this` comes before pass `that`, as a function of two passes in their order."""

    def holds(a: Callable, b: Callable) -> bool:
        return not (a == that and b == this)

    return holds


def violations(passes: Sequence[Callable], constraints: Iterable[Callable]) -> Iterator[str]:
    """Return an error message for each pair of passes that breaks a constraint."""
    for constraint in constraints:
        for one, other in itertools.combinations(passes, 2):
            if not constraint(one, other):
                yield f"pass schedule constraint violated. Expected {_name(other)} before {_name(one)}"


class PassManager:
    """Runs `passes` in turn, `steps` times or until none changes the module.

    `constraints` are functions of two passes that return False if the first must not come before the second. With
    `run_checks_after_each_pass`, `check` runs after each pass; with `suppress_check_failures`, a wrong order raises no error.
    """

    def __init__(
        self, passes: list[Callable] | None = None, constraints: list[Callable] | None = None, steps: int | None = None,
        run_checks_after_each_pass: bool = False, suppress_check_failures: bool = False,
    ) -> None:  # fmt: skip
        self.passes = list(passes or [])
        self.constraints = list(constraints or [])
        self.steps = steps or 1
        self.run_checks_after_each_pass = run_checks_after_each_pass
        self.suppress_check_failures = suppress_check_failures
        self._validated = False

    def add_pass(self, _pass: Callable) -> None:
        """Append a pass."""
        self.passes.append(_pass)
        self._validated = False

    def add_constraint(self, constraint: Callable[[Callable, Callable], bool]) -> None:
        """Add a constraint on the order of passes."""
        self.constraints.append(constraint)
        self._validated = False

    def validate_constraints(self) -> None:
        """Raise RuntimeError if the order of the passes breaks a constraint."""
        if self._validated:
            return
        for violation in violations(self.passes, self.constraints):
            self._refuse(violation)
        self._validated = True

    def _refuse(self, message: str) -> None:
        if not self.suppress_check_failures:
            raise RuntimeError(message)
        _log.warning(message)

    def solve_constraints(self) -> None:
        """Reorder the passes so that the constraints hold; RuntimeError if they contradict each other."""
        remaining, ordered = list(self.passes), []
        while remaining:
            first = next((one for one in remaining if self._may_come_first(one, remaining)), None)
            if first is None:
                self._refuse(f"the constraints on the passes {', '.join(map(_name, remaining))} form a circle")
                ordered += remaining
                break
            remaining.remove(first)
            ordered.append(first)
        self.passes = ordered
        self._validated = True

    def _may_come_first(self, one: Callable, others: Iterable[Callable]) -> bool:
        return all(constraint(one, other) for constraint in self.constraints for other in others if other is not one)

    def add_checks(self, check: Callable) -> None:
        """Run `check(module)` after the passes (after each, with `run_checks_after_each_pass`)."""
        parameters = list(inspect.signature(check).parameters)
        if len(parameters) != 1:
            raise TypeError("PassManager check function should only take in one variable, a module")
        self.check = check

    def check(self, module: Module) -> None:
        """Do nothing; `add_checks` replaces this by the check that runs after passes."""

    def __call__(self, module: Module) -> PassResult:
        if not self._validated:
            self.solve_constraints()
        self.check(module)
        changed = False
        for _ in range(self.steps):
            module, modified = self._run_once(module)
            changed = changed or modified
            if not modified:
                break
        return PassResult(module, changed)

    def _run_once(self, module: Module) -> tuple[Module, bool]:
        changed, done = False, []
        for one in self.passes:
            try:
                result = one(module)
            except Exception as error:
                ran = ", ".join(done) or "none"
                raise Exception(f"An error occurred when running the '{_name(one)}' pass after the passes: {ran}") from error
            if not isinstance(result, PassResult):
                raise TypeError(
                    f"The result of the pass {_name(one)} should be type PassResult (passes before it: "
                    f"{', '.join(done) or 'none'}). Please wrap it with pass_result_wrapper()"
                )
            module, changed = result.graph_module, changed or result.modified
            if isinstance(module, GraphModule):
                module.recompile()
            if self.run_checks_after_each_pass:
                self.check(module)
            done.append(_name(one))
        if not self.run_checks_after_each_pass:
            self.check(module)
        return module, changed


def _name(one: Callable) -> str:
    return getattr(one, "__name__", type(one).__name__)
