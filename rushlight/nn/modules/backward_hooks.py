"""Full backward hooks: identity functions at a module's inputs and outputs, through which the gradients pass.

In: the arguments and the result of one call. Out: the same values, with tape nodes that call the module's hooks.
"""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from rushlight._C import skip_code
from rushlight.autograd.function import Function
from rushlight.core.tensor import Tensor
from rushlight.nn.modules import global_hooks

if TYPE_CHECKING:
    from rushlight.nn.modules.module import Module

Gradients = tuple[Tensor | None, ...]


class BackwardHookFunction(Function):
    """The identity on tensors; in the backward pass, gradients go through the function that is its first argument."""

    @staticmethod
    def forward(ctx: Any, on_gradients: Callable[[Gradients], Gradients], *tensors: Tensor) -> tuple[Tensor, ...]:
        ctx.on_gradients = on_gradients
        return tensors

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple:
        return (None, *ctx.on_gradients(gradients))


class BackwardBoundary:
    """The backward hooks of one call of a module, and the gradients seen so far."""

    def __init__(self, module: Module) -> None:
        self.module = module
        own = [] if module._is_full_backward_hook is False else module._backward_hooks.values()
        self.pre_hooks = [*global_hooks.backward_pre_hooks.values(), *module._backward_pre_hooks.values()]
        self.hooks = [*global_hooks.backward_hooks.values(), *own]
        self.input_count = 0
        self.input_positions: list[int] = []
        self.output_count = 0
        self.output_positions: list[int] = []
        self.grad_outputs: Gradients | None = None
        """The gradients of the outputs, between their arrival and that of the inputs' gradients."""

    @staticmethod
    def around(module: Module) -> BackwardBoundary | None:
        """Return the boundary for a call of `module`, or None if it has no backward hooks."""
        boundary = BackwardBoundary(module)
        return boundary if boundary.hooks or boundary.pre_hooks else None

    def enter(self, args: tuple) -> tuple:
        """Return the arguments to call `forward` with."""
        self.input_count = len(args)
        self.input_positions = _differentiable(args)
        return _pass_through(args, self.input_positions, self._at_inputs) if self.hooks else args

    def leave(self, result: Any) -> Any:
        """Return the result to return from the call: a tensor, or a tuple or list whose tensors are hooked."""
        if isinstance(result, Tensor):
            return self.leave((result,))[0]
        if not isinstance(result, (tuple, list)):
            warnings.warn(
                f"backward hooks see outputs that are a Tensor or a tuple of Tensors, not {type(result).__name__}; "
                f"those of {type(self.module).__name__} will not be called",
                stacklevel=5,
            )
            return result
        self.output_count = len(result)
        self.output_positions = _differentiable(result)
        passed = _pass_through(tuple(result), self.output_positions, self._at_outputs)
        if isinstance(result, list):
            return list(passed)
        return type(result)(*passed) if hasattr(result, "_fields") else passed

    def _at_outputs(self, gradients: Gradients) -> Gradients:
        self.grad_outputs = _spread(gradients, self.output_positions, self.output_count)
        for hook in self.pre_hooks:
            changed = hook(self.module, self.grad_outputs)
            if changed is not None:
                self.grad_outputs = _check_gradient_count(changed, self.output_count, "backward pre hook")
        if self.hooks and not self.input_positions:
            # No gradient will reach the inputs, so the hooks must be called here.
            self._call_hooks((None,) * self.input_count)
        return tuple(self.grad_outputs[position] for position in self.output_positions)

    def _at_inputs(self, gradients: Gradients) -> Gradients:
        if self.grad_outputs is None:  # double backward through the module's gradients, not a backward of its outputs
            return gradients
        grad_inputs = self._call_hooks(_spread(gradients, self.input_positions, self.input_count))
        self.grad_outputs = None
        return tuple(grad_inputs[position] for position in self.input_positions)

    def _call_hooks(self, grad_inputs: Gradients) -> Gradients:
        for hook in self.hooks:
            changed = hook(self.module, grad_inputs, self.grad_outputs)
            if changed is not None:
                grad_inputs = _check_gradient_count(changed, self.input_count, "backward hook")
        return grad_inputs


def _differentiable(values: Any) -> list[int]:
    return [position for position, value in enumerate(values) if isinstance(value, Tensor) and value.requires_grad]


def _pass_through(values: tuple, positions: list[int], on_gradients: Callable[[Gradients], Gradients]) -> tuple:
    if not positions:
        return values
    passed = BackwardHookFunction.apply(on_gradients, *(values[position] for position in positions))
    replaced = dict(zip(positions, passed, strict=True))
    return tuple(replaced.get(position, value) for position, value in enumerate(values))


# Don't capture it alone: a capture would read the gradients seen so far at capture time instead of at backward time.
skip_code(_pass_through.__code__)


def _spread(gradients: Gradients, positions: list[int], count: int) -> Gradients:
    """Return gradients of the tensors among `count` values, with None for the other values."""
    by_position = dict(zip(positions, gradients, strict=True))
    return tuple(by_position.get(position) for position in range(count))


def _check_gradient_count(changed: Any, count: int, kind: str) -> Gradients:
    gradients = changed if isinstance(changed, tuple) else (changed,)
    if len(gradients) != count:
        raise RuntimeError(f"{kind} returned {len(gradients)} gradients, expected {count}")
    return gradients


def attach_legacy_hooks(module: Module, result: Any) -> None:
    """Attach the hooks of `register_backward_hook` to the node that made the first tensor of `result`."""
    while not isinstance(result, Tensor) and result:
        result = next(iter(result.values())) if isinstance(result, dict) else result[0]
    if not isinstance(result, Tensor) or result.grad_fn is None:
        return
    for hook in module._backward_hooks.values():
        result.grad_fn.register_hook(functools.partial(hook, module))
