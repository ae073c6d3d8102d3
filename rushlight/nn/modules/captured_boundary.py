"""Nodes of captured graphs for a module's backward hooks: the two sides of `backward_hooks.BackwardBoundary`.

In: tensors that enter or leave a module, and its hooks, captured as functions of gradients. Out: the same values, with tape
nodes that call these functions.
"""

from __future__ import annotations

from rushlight.autograd.captured import CapturedBackward, HasCustomBackward
from rushlight.core.tensor import Tensor
from rushlight.nn.modules.backward_hooks import BackwardHookFunction, Gradients

_NOT_ARRIVED = (
    "the inputs of a compiled module with full backward hooks have gradients, and its outputs have none: something else than "
    "its outputs was differentiated"
)


class Crossing:
    """One call of a module: holds the gradients of its outputs until those of its inputs arrive."""

    def __init__(self) -> None:
        self.hooks: CapturedBackward | None = None
        self.kept: tuple = ()
        self.arrived: Gradients | None = None

    def at_inputs(self, gradients: Gradients) -> Gradients:
        """Return the gradients of the inputs, after the hooks."""
        if self.arrived is None:
            raise RuntimeError(_NOT_ARRIVED)
        return tuple(self.hooks(*gradients, *self.arrived, *self.kept))


def enter_module(*tensors: Tensor) -> tuple:
    """Return a Crossing for this call, and the inputs, with nodes on those that have gradients."""
    crossing = Crossing()
    return crossing, *BackwardHookFunction.apply(crossing.at_inputs, *tensors)


class LeaveModule(HasCustomBackward):
    """The exit of a call. `pre_hooks` returns the gradients of all outputs, of which those at `positions` are passed on.
    `hooks`, if not None, returns the gradients of the inputs."""

    __name__ = "leave_module"

    def __init__(self, pre_hooks: CapturedBackward, hooks: CapturedBackward | None, positions: list[int]):
        self.pre_hooks = pre_hooks
        self.hooks = hooks
        self.positions = positions
        self.is_constant = pre_hooks.is_constant or (hooks is not None and hooks.is_constant)

    def __call__(self, crossing: Crossing | None, tensors: tuple, before: tuple, after: tuple) -> tuple:
        """The outputs that have gradients. `before` and `after` are the values that the pre-hooks and the hooks read."""
        if crossing is not None:
            crossing.hooks, crossing.kept = self.hooks, after

        def at_outputs(gradients: Gradients) -> Gradients:
            found = self.pre_hooks(*gradients, *before)
            if crossing is not None:
                crossing.arrived = tuple([gradient for gradient in found if gradient is not None])
            return tuple([found[position] for position in self.positions])

        return BackwardHookFunction.apply(at_outputs, *tensors)
