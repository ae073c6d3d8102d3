"""The autograd kernels: they run an operator below autograd and record a node when an input requires grad.

The kernels are C objects (`csrc/autograd_kernel.c`). They pass on calls that need no node, and record plain ones themselves
(`csrc/record.c`). The Python code here, called `slow`, records all others: lists of tensors, in-place writes, dispatch modes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from rushlight._C import AutogradKernel, ViewOrWriteKernel
from rushlight.autograd.derivative_table import DERIVATIVES, NON_DIFFERENTIABLE, OVERWRITTEN
from rushlight.autograd.inplace import check_inplace, rebase_history
from rushlight.autograd.node import Node, info_of, set_history
from rushlight.autograd.operator_node import NotImplementedBackward, OperatorBackward, Recipe
from rushlight.autograd.view_history import INFERENCE_VIEW, NO_GRAD_VIEW
from rushlight.core.dispatch_key import AUTOGRAD_BITS, DispatchKey
from rushlight.core.tensor import Tensor
from rushlight.core.thread_state import ExcludeKeys
from rushlight.ops.dispatcher import Kernel, OpOverload, register_fallback
from rushlight.ops.registry import INPLACE_OF


def _any_requires_grad(values: Iterable) -> bool:
    for value in values:
        if isinstance(value, Tensor):
            if value._impl.requires_grad:
                return True
        elif isinstance(value, list | tuple) and _any_requires_grad(value):
            return True
    return False


def _link_autograd(op: OpOverload, below: int) -> Callable:
    lower = op.resolve(below)
    plain = INPLACE_OF.get(op, op)
    derivative = DERIVATIVES.get(plain)
    if derivative is None and op.writes_self and plain in NON_DIFFERENTIABLE:
        derivative = OVERWRITTEN
    recipe = None if derivative is None else Recipe(op, derivative)
    if op.writes_self:
        return _make_inplace_kernel(op, recipe, lower)
    if op in NON_DIFFERENTIABLE:
        return lower

    def slow(*args, **kwargs):
        if recipe is None:
            return _record_unknown(op, lower, args, kwargs)
        return _record(recipe, lower, args, kwargs)

    return AutogradKernel(lower, slow, None if recipe is None else recipe.plan)


def _record(recipe: Recipe, lower: Callable, args: tuple, kwargs: dict):
    stack = recipe.op.normalize(args, kwargs)
    node = recipe.node_type(recipe, stack)
    if not node.is_wanted and not _records(recipe, stack):
        return lower(*args, **kwargs)
    node.save_inputs(stack)
    with ExcludeKeys(AUTOGRAD_BITS):
        result = lower(*args, **kwargs)
    outputs = result if isinstance(result, tuple) else (result,)
    _attach(node, outputs, recipe.derivative.non_differentiable_outputs)
    node.save_outputs(outputs)
    return result


def _attach(node: Node, outputs: tuple, skipped: tuple[int, ...] = ()) -> None:
    for index, output in enumerate(outputs):
        if not isinstance(output, Tensor):
            node.output_info.append(((), None, None))
            continue
        impl = output._impl
        node.output_info.append(info_of(impl))
        if index not in skipped and (impl.dtype.is_floating_point or impl.dtype.is_complex):
            set_history(impl, node, index)


def _record_unknown(op: OpOverload, lower: Callable, args: tuple, kwargs: dict):
    inputs = [value for value in (*args, *kwargs.values()) if isinstance(value, Tensor)]
    node = NotImplementedBackward(op, inputs)
    with ExcludeKeys(AUTOGRAD_BITS):
        result = lower(*args, **kwargs)
    _attach(node, result if isinstance(result, tuple) else (result,))
    return result


def _make_inplace_kernel(op: OpOverload, recipe: Recipe | None, lower: Callable) -> Callable:
    def slow(self, *args, **kwargs):
        check_inplace(self)
        if recipe is None and op not in NON_DIFFERENTIABLE:
            raise NotImplementedError(f"derivative for {op.name} is not implemented")
        stack = op.normalize((self, *args), kwargs)
        node = None if recipe is None else _make_inplace_node(recipe, stack)
        with ExcludeKeys(AUTOGRAD_BITS):
            lower(self, *args, **kwargs)
        takes_gradients = self._impl.dtype.is_floating_point or self._impl.dtype.is_complex
        if node is not None and takes_gradients and (node.is_wanted or _records(recipe, stack)):
            node.output_info = [info_of(self._impl)]
            rebase_history(self, node)
            node.save_outputs((self,))
        return self

    return AutogradKernel(lower, slow)


def _records(recipe: Recipe, stack: list) -> bool:
    """Return whether a differentiable input requires grad although no gradient may reach it (a view made without recording)."""
    return any(_any_requires_grad(stack[position] for position in positions) for positions in recipe.inputs)


def _make_inplace_node(recipe: Recipe, stack: list) -> OperatorBackward:
    node = recipe.node_type(recipe, stack)
    node.save_inputs(stack, written=0)
    return node


def _link_inplace_or_view(op: OpOverload, below: int) -> Callable:
    lower = op.resolve(below)
    if op.name in ("aten::detach", "aten::lift_fresh", "aten::view.dtype"):
        return lower
    if op.is_view:
        return ViewOrWriteKernel(lower, False, NO_GRAD_VIEW, INFERENCE_VIEW)
    # As in torch, running statistics that an operator updates as a side effect are not versioned.
    return ViewOrWriteKernel(lower, True, NO_GRAD_VIEW, INFERENCE_VIEW) if op.writes_self else lower


register_fallback(DispatchKey.Autograd, Kernel(_link_autograd, linked=True))
register_fallback(DispatchKey.ADInplaceOrView, Kernel(_link_inplace_or_view, linked=True))
