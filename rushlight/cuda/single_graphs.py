"""Graphs of single operators, as kernels of a device ask for them. The compiler, a layer above, provides them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from rushlight._C import LaunchPlan
from rushlight.core.providers import import_provider
from rushlight.core.tensor import Tensor
from rushlight.cuda import plans
from rushlight.ops.dispatcher import OpOverload

GRAPHS = "graphs of single operators"


class TakesPlans(Protocol):
    """What gets the launch plan of a call: `PlannedCalls` keep it for later calls."""

    def remember(self, args: tuple, kwargs: dict, plan: LaunchPlan, structure: object, draw: Callable | None) -> bool:
        """Take a plan; see `PlannedCalls`."""


Run = Callable[[OpOverload, tuple, dict, int, TakesPlans | None], object]


class Graphs:
    """What runs an operator as a graph of one node. The provider sets `run`, which returns NotImplemented for operators that
    have no kernel on a device; `copy`, which gives the step of a plan that copies a tensor to another one of its sizes, dtype
    and device; and `opens`, which tells whether an operator's graph takes floats as tensors."""

    def __init__(self) -> None:
        self.run: Run | None = None
        self.copy: Callable[[Tensor, Tensor, plans.Value, plans.Value], plans.Step] | None = None
        self.opens: Callable[[OpOverload], bool] | None = None

    def call(self, op: OpOverload, args: tuple, kwargs: dict, index: int, calls: TakesPlans | None = None) -> object:
        """Run an operator on a device, or return NotImplemented. `calls` get a launch plan for later calls like this one."""
        self._load()
        return NotImplemented if self.run is None else self.run(op, args, kwargs, index, calls)

    def opens_numbers(self, op: OpOverload) -> bool:
        """Return whether floats are inputs of an operator's graph."""
        self._load()
        return self.opens is not None and self.opens(op)

    def strided_step(self, target: Tensor, source: Tensor, to: plans.Value, at: plans.Value) -> plans.Step:
        """Return the step that copies a tensor to another one; `to` and `at` say where the two begin when the plan runs."""
        self._load()
        return self.copy(target, source, to, at)

    def _load(self) -> None:
        if self.run is None:
            import_provider(GRAPHS)


graphs = Graphs()
