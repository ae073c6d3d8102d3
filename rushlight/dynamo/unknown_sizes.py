"""Operators whose results depend on values, followed without running the program: for graphs that are written for later.

In: an operator that needs values, as fake tensors meet it. Out: its fake result, with a new symbol for each number that the
values decide. `unknown_values` does the same where there are real inputs, which say what the symbols are.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from rushlight.core.symbolic import Relation, ShapeEnv
from rushlight.dynamo.unknown_values import FAKE_RESULTS
from rushlight.fx.fake_tensor import DataDependentError, FakeTensorMode
from rushlight.ops.dispatcher import OpOverload

_EXAMPLE = 2  # what each unknown number is taken to be where a question has no other answer; such answers are in `supposed`
_MOST_MASKS = 64


class UnknownSizes:
    """Follows operators that need values in one capture. `supposed` is what was taken to hold of their numbers."""

    def __init__(self, environment: ShapeEnv) -> None:
        self.environment = environment
        self.supposed: list[Relation] = []
        self.calls = 0

    @contextmanager
    def following(self, fakes: FakeTensorMode) -> Iterator[None]:
        """A block in which a mode's fake tensors are followed through such operators."""
        fakes.of_values, self.environment.suppose = self._result, self.supposed.append
        try:
            yield
        finally:
            fakes.of_values = self.environment.suppose = None

    def _result(self, op: OpOverload, args: list, kwargs: dict) -> Any:
        rule = FAKE_RESULTS.get(op._opname)
        if rule is None:
            raise DataDependentError(f"{op} needs the values of a tensor, which are not known while a program is captured")
        self.calls += 1
        return rule(self.environment, [_EXAMPLE] * _MOST_MASKS, *op.normalize(args, kwargs))
