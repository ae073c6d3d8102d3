"""Data-dependent operators, followed without running the program: for exported graphs.

In: an operator that needs a fake tensor's values. Out: its fake result, with a new symbol for each number that the values
decide. `unknown_values` does the same where real inputs provide example values of the symbols.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from rushlight.core.symbolic import Relation, ShapeEnv, SymFloat, unknown_float
from rushlight.dynamo.unknown_values import FAKE_RESULTS
from rushlight.fx.fake_tensor import DataDependentError, FakeTensorMode
from rushlight.ops.dispatcher import OpOverload

_SIZE_HINT = 2  # example value of unknown numbers, used if nothing proves an answer; `supposed` records such answers
_MAX_MASKS = 64  # boolean masks in one index: there is at most one for each dimension


class UnknownSizes:
    """Follows data-dependent operators in one capture. `supposed` records the assumptions about their numbers."""

    def __init__(self, environment: ShapeEnv) -> None:
        self.environment = environment
        self.supposed: list[Relation] = []
        self.calls = 0

    @contextmanager
    def following(self, fakes: FakeTensorMode) -> Iterator[None]:
        """Context manager: in the block, fake tensors of a mode go through data-dependent operators."""
        fakes.of_values = self._result
        try:
            with self.supposing():
                yield
        finally:
            fakes.of_values = None

    @contextmanager
    def supposing(self) -> Iterator[None]:
        """Context manager: in the block, what is asked about data-dependent sizes is supposed, and recorded."""
        self.environment.suppose = self.supposed.append
        try:
            yield
        finally:
            self.environment.suppose = None

    def _result(self, op: OpOverload, args: list, kwargs: dict) -> Any:
        """Return the fake result of a data-dependent operator: its sizes are new symbols."""
        rule = FAKE_RESULTS.get(op._opname)
        if rule is None:
            raise DataDependentError(f"{op} needs the values of a tensor, which are not known while a program is captured")
        self.calls += 1
        if op._opname == "_local_scalar_dense" and args[0].is_floating_point() and self.environment.keeps_floats:
            return SymFloat(unknown_float)
        return rule(self.environment, [_SIZE_HINT] * _MAX_MASKS, *op.normalize(args, kwargs))
