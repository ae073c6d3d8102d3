"""Function: operations with a derivative that the user writes."""

from __future__ import annotations

import functools
from collections.abc import Callable

from rushlight.autograd.grad_mode import no_grad
from rushlight.autograd.node import NO_EDGE, Node, SavedTensor, gradient_edge, info_of, set_history
from rushlight.autograd.variable import check_inplace, rebase_history, requires_grad
from rushlight.core.tensor import Tensor, wrap
from rushlight.core.thread_state import state
from rushlight.ops.packet import namespaces


class FunctionCtx:
    """What `forward` hands to `backward`: saved tensors, marks, and any attribute set on it."""

    def __init__(self):
        self._to_save: tuple = ()
        self._saved: list | None = []
        self._dirty: tuple = ()
        self._non_differentiable: tuple = ()
        self._materialize = True
        self.needs_input_grad: tuple[bool, ...] = ()

    def save_for_backward(self, *tensors: Tensor | None) -> None:
        """Keep inputs or outputs for `backward`, where `ctx.saved_tensors` returns them after a version check."""
        self._to_save = tensors

    def mark_dirty(self, *tensors: Tensor) -> None:
        """Say that `forward` wrote to these inputs in place; they must be returned."""
        self._dirty = tensors

    def mark_non_differentiable(self, *tensors: Tensor) -> None:
        """Say that these outputs have no gradient."""
        self._non_differentiable = tensors

    def set_materialize_grads(self, value: bool) -> None:
        """Whether `backward` gets zeros (the default) or None for outputs without a gradient."""
        self._materialize = value

    @property
    def saved_tensors(self) -> tuple[Tensor | None, ...]:
        """The tensors of `save_for_backward`."""
        if self._saved is None:
            raise RuntimeError(
                "Trying to backward through the graph a second time (or directly access saved tensors after they have "
                "already been freed). Specify retain_graph=True if you need to backward through the graph a second time."
            )
        return tuple(None if item is None else item.unpack(self._node) for item in self._saved)


class FunctionBackward(Node):
    """The node of a Function call; printed under the Function's own name."""

    def __init__(self, function: type, ctx: FunctionCtx, inputs: tuple):
        super().__init__()
        self.function = function
        self.ctx = ctx
        self.is_tensor = tuple(isinstance(value, Tensor) for value in inputs)
        self.next_functions = tuple(gradient_edge(v) if isinstance(v, Tensor) else NO_EDGE for v in inputs)

    def name(self) -> str:
        return f"{self.function.__name__}Backward"

    def apply(self, grads):
        if self.ctx._materialize:
            grads = tuple(
                _zeros(info) if grad is None else grad for grad, info in zip(grads, self.output_info, strict=True)
            )
        results = self.function.backward(self.ctx, *grads)
        results = results if isinstance(results, tuple | list) else (results,)
        results = list(results)
        if len(results) > len(self.is_tensor) and all(value is None for value in results[len(self.is_tensor) :]):
            results = results[: len(self.is_tensor)]
        if len(results) != len(self.is_tensor):
            raise RuntimeError(
                f"function {self.name()} returned an incorrect number of gradients (expected {len(self.is_tensor)}, got "
                f"{len(results)})"
            )
        return tuple(results)

    def release(self) -> None:
        self.ctx._saved = None if self.ctx._saved else self.ctx._saved


def _zeros(info: tuple) -> Tensor | None:
    sizes, kind, device = info
    return None if kind is None else namespaces.aten.full.default(sizes, 0, dtype=kind, device=device)


class Function:
    """Base of user-defined operations: static methods `forward(ctx, *args)` and `backward(ctx, *grads)`; call `apply`.

    `forward` may instead leave out `ctx`, with `setup_context(ctx, inputs, output)` defined beside it.
    """

    @staticmethod
    def forward(*args, **kwargs):
        """Compute the outputs; autograd does not record inside."""
        raise NotImplementedError("You must implement the forward function for custom autograd.Function.")

    @staticmethod
    def backward(ctx: FunctionCtx, *grad_outputs):
        """One gradient (or None) per argument of `forward`."""
        raise NotImplementedError("You must implement the backward function to use your custom autograd.Function.")

    setup_context: Callable | None = None

    @classmethod
    def apply(cls, *args, **kwargs):
        """Run `forward`, and record a node when an input requires grad."""
        ctx = FunctionCtx()
        needs = tuple(isinstance(value, Tensor) and requires_grad(value._impl) for value in args)
        ctx.needs_input_grad = needs
        node = FunctionBackward(cls, ctx, args) if state.grad_enabled and any(needs) else None
        ctx._node = node
        with no_grad():
            output = cls._forward(ctx, args, kwargs)
        outputs = output if isinstance(output, tuple) else (output,)
        if node is not None:
            outputs = _record(ctx, node, args, outputs)
        return outputs if isinstance(output, tuple) else outputs[0]

    @classmethod
    def _forward(cls, ctx: FunctionCtx, args: tuple, kwargs: dict):
        if cls.setup_context is None:
            return cls.forward(ctx, *args, **kwargs)
        output = cls.forward(*args, **kwargs)
        cls.setup_context(ctx, args, output)
        return output


def _record(ctx: FunctionCtx, node: FunctionBackward, args: tuple, outputs: tuple) -> tuple:
    dirty = {id(tensor) for tensor in ctx._dirty}
    skipped = {id(tensor) for tensor in ctx._non_differentiable}
    inputs = {id(value) for value in args if isinstance(value, Tensor)}
    made = []
    for index, output in enumerate(outputs):
        if not isinstance(output, Tensor):
            node.output_info.append(((), None, None))
            made.append(output)
            continue
        if id(output) in inputs and id(output) not in dirty:
            impl = output._impl
            output = wrap(impl.alias(impl.sizes, impl.strides, impl.storage_offset))
        node.output_info.append(info_of(output._impl))
        if id(output) in dirty:
            check_inplace(output)
            rebase_history(output, node)
        elif id(output) not in skipped and (output.is_floating_point() or output.is_complex()):
            set_history(output, node, index)
        made.append(output)
    positions = {id(output): index for index, output in enumerate(made)}
    ctx._saved = [_save(tensor, node, positions) for tensor in ctx._to_save]
    return tuple(made)


def _save(tensor: Tensor | None, node: Node, outputs: dict[int, int]) -> SavedTensor | None:
    if tensor is None:
        return None
    if not isinstance(tensor, Tensor):
        raise TypeError(f"save_for_backward can only save variables, but got {type(tensor).__name__}")
    index = outputs.get(id(tensor))
    return SavedTensor(tensor) if index is None else SavedTensor(tensor, node, index)


def once_differentiable(function: Callable) -> Callable:
    """Decorate a `backward` that is not itself differentiable: its results carry no history."""

    @functools.wraps(function)
    def once(ctx, *grads):
        with no_grad():
            return function(ctx, *grads)

    return once
