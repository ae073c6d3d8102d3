"""Nodes in captured graphs for backwards that the program defines itself: a Function's backward, or a hook on a tensor.

In: tensors that the graph has computed, the backward, captured as a function of gradients and of values of the graph, and those
values. Out: the same tensors, with the history that the program's own call would have given them.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from rushlight.autograd.anomaly import note_origin
from rushlight.autograd.function import Function, FunctionCtx, record, refuse_second_derivative
from rushlight.autograd.grad_mode import no_grad
from rushlight.core.tensor import Tensor
from rushlight.core.thread_state import state

Gradients = Sequence[Tensor | None]


class CapturedBackward:
    """A captured backward: `run` takes gradients, then the values that it reads, and returns gradients.

    `once` is the error for differentiating the results again, where the capture did not record their history; else "".
    `is_constant` says that a result does not depend on the gradients, though it is only returned where a gradient arrives.
    """

    def __init__(self, run: Callable[..., Gradients], once: str, is_constant: bool):
        self.run = run
        self.once = once
        self.is_constant = is_constant

    def __call__(self, *values: Tensor | int) -> Gradients:
        if not (self.once and state.grad_enabled and any(map(_requires_grad, values))):
            return self.run(*values)
        with no_grad():
            results = self.run(*values)
        return tuple([refuse_second_derivative(result, self.once) for result in results])


@dataclass(frozen=True)
class ContextMarks:
    """The marks that a Function set on its ctx, as positions: of the values that are saved tensors, of the outputs that are
    inputs written in place, and of the outputs without a gradient."""

    saved: frozenset[int]
    dirty: tuple[int, ...]
    non_differentiable: tuple[int, ...]
    materialize_grads: bool


class HasCustomBackward:
    """A function in a graph with a user-defined backward, whose gradients may be non-linear in the incoming ones. `is_constant`
    says the same as for CapturedBackward."""

    is_constant: bool


class CapturedFunction(HasCustomBackward):
    """The end of a Function call in the graph: the graph has run its forward, and this gives the outputs their history.

    `backwards` holds one backward for each combination of gradients that may arrive, with the positions of the kept values that
    it reads.
    """

    def __init__(
        self,
        function: type[Function],
        backwards: dict[tuple[bool, ...], tuple[CapturedBackward, list[int]]],
        marks: ContextMarks,
    ):
        self.__name__ = function.__name__
        self.function = function
        self.backwards = backwards
        self.marks = marks
        self.is_constant = any(run.is_constant for run, _ in backwards.values())
        self._is_impure = bool(marks.dirty)

    def __call__(self, inputs: tuple, outputs: tuple, kept: tuple) -> tuple:
        """Return the outputs, with history; an output that is an input passed on becomes another tensor. Records nothing in
        no_grad mode."""
        if not state.grad_enabled or not any(map(_requires_grad, inputs)):
            return outputs
        ctx, marks = FunctionCtx(), self.marks
        node = self.function._node_type(self, ctx, inputs)
        if state.anomaly is not None:
            note_origin(node)
        ctx._node = weakref.ref(node)
        ctx.materialize_grads = marks.materialize_grads
        ctx.kept = [None if position in marks.saved else value for position, value in enumerate(kept)]
        ctx.save_for_backward(*[kept[position] for position in sorted(marks.saved)])
        ctx.mark_dirty(*[outputs[position] for position in marks.dirty])
        ctx.mark_non_differentiable(*[outputs[position] for position in marks.non_differentiable])
        return record(ctx, node, inputs, outputs)

    def backward(self, ctx: FunctionCtx, *grads: Tensor | None) -> Gradients:
        """Return the gradients of the inputs."""
        run, reads = self.backwards[tuple([grad is not None for grad in grads])]
        kept = list(ctx.kept)
        for position, tensor in zip(sorted(self.marks.saved), ctx.saved_tensors, strict=True):
            kept[position] = tensor
        return run(*[grad for grad in grads if grad is not None], *[kept[position] for position in reads])


class CapturedHook(HasCustomBackward):
    """A call of `register_hook` in a graph: gradients of the tensor go through `backward`."""

    __name__ = "register_hook"
    _is_impure = True

    def __init__(self, backward: CapturedBackward):
        self.backward = backward
        self.is_constant = backward.is_constant

    def __call__(self, tensor: Tensor, kept: tuple) -> None:
        """Register the hook, which reads the values `kept`."""
        tensor.register_hook(lambda grad: self.backward(grad, *kept)[0])


def _requires_grad(value: object) -> bool:
    return isinstance(value, Tensor) and value.requires_grad
