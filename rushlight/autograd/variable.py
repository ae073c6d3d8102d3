"""The autograd kernels: they run an operator below autograd and record a node when an input requires grad."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from rushlight.autograd.derivative_table import DERIVATIVES, NON_DIFFERENTIABLE
from rushlight.autograd.inplace import check_inplace, rebase_history
from rushlight.autograd.node import Node, info_of, set_history
from rushlight.autograd.operator_node import NotImplementedBackward, OperatorBackward, Recipe
from rushlight.autograd.view_history import INFERENCE_VIEW, NO_GRAD_VIEW
from rushlight.core.dispatch_key import AUTOGRAD_BITS, DispatchKey
from rushlight.core.tensor import Tensor
from rushlight.core.tensor_impl import TensorImpl, ViewMeta
from rushlight.core.thread_state import ExcludeKeys, state
from rushlight.ops.dispatcher import Kernel, OpOverload, register_fallback
from rushlight.ops.registry import INPLACE_OF


def _any_requires_grad(values: Iterable) -> bool:
    for value in values:
        if isinstance(value, Tensor):
            impl = value._impl
            if (impl.autograd is not None or impl.view is not None) and impl.requires_grad:
                return True
        elif isinstance(value, list | tuple) and value and _any_requires_grad(value):
            return True
    return False


def _link_autograd(op: OpOverload, below: int) -> Callable:
    lower = op.resolve(below)
    derivative = DERIVATIVES.get(INPLACE_OF.get(op, op))
    recipe = None if derivative is None else Recipe(op, derivative)
    if op.writes_self:
        return _inplace_kernel(op, recipe, lower)
    if op in NON_DIFFERENTIABLE:
        return lower

    def run(*args, **kwargs):
        if not state.grad_enabled or not (_any_requires_grad(args) or (kwargs and _any_requires_grad(kwargs.values()))):
            return lower(*args, **kwargs)
        if recipe is None:
            return _record_unknown(op, lower, args, kwargs)
        return _record(recipe, lower, args, kwargs)

    return run


def _record(recipe: Recipe, lower: Callable, args: tuple, kwargs: dict):
    stack = recipe.op.normalize(args, kwargs)
    node = OperatorBackward(recipe, stack)
    if not node.is_wanted:
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


def _inplace_kernel(op: OpOverload, recipe: Recipe | None, lower: Callable) -> Callable:
    def run(self, *args, **kwargs):
        recorded = state.grad_enabled and (
            _any_requires_grad((self,)) or _any_requires_grad(args) or (kwargs and _any_requires_grad(kwargs.values()))
        )
        if not recorded:
            return lower(self, *args, **kwargs)
        check_inplace(self)
        if recipe is None and op not in NON_DIFFERENTIABLE:
            raise RuntimeError(f"derivative for {op.name} is not implemented")
        node = None if recipe is None else _inplace_node(recipe, (self, *args), kwargs)
        with ExcludeKeys(AUTOGRAD_BITS):
            lower(self, *args, **kwargs)
        if node is not None and node.is_wanted:
            node.output_info = [info_of(self._impl)]
            rebase_history(self, node)
            node.save_outputs((self,))
        return self

    return run


def _inplace_node(recipe: Recipe, args: tuple, kwargs: dict) -> OperatorBackward:
    stack = recipe.op.normalize(args, kwargs)
    node = OperatorBackward(recipe, stack)
    node.save_inputs(stack, written=0)
    return node


def _link_inplace_or_view(op: OpOverload, below: int) -> Callable:
    lower = op.resolve(below)
    if op._schema.name in ("detach", "lift_fresh"):
        return lower
    if op.is_view:
        return _view_kernel(lower)
    # As in torch, running statistics that an operator updates on the side are not versioned.
    return _write_kernel(lower) if op.writes_self else lower


def _view_kernel(lower: Callable) -> Callable:
    def run(self, *args, **kwargs):
        result = lower(self, *args, **kwargs)
        impl, made = self._impl, result._impl
        if made is not impl and not impl.inference:
            made.view = _view_meta(self, impl, made)
        return result

    return run


def _view_meta(source: Tensor, impl: TensorImpl, made: TensorImpl) -> ViewMeta:
    origin = INFERENCE_VIEW if state.inference else "" if state.grad_enabled else NO_GRAD_VIEW
    if impl.view is None:
        return ViewMeta(source, made.version.value, origin)
    return ViewMeta(impl.view.base, made.version.value, origin or impl.view.origin)


def _write_kernel(lower: Callable) -> Callable:
    def run(self, *args, **kwargs):
        result = lower(self, *args, **kwargs)
        _count_write(self._impl)
        return result

    return run


def _count_write(impl: TensorImpl) -> None:
    if impl.inference and not state.inference:
        raise RuntimeError(
            "Inplace update to inference tensor outside InferenceMode is not allowed. You can make a clone to get a normal "
            "tensor before doing inplace update."
        )
    impl.version.value += 1


register_fallback(DispatchKey.Autograd, Kernel(_link_autograd, linked=True))
register_fallback(DispatchKey.ADInplaceOrView, Kernel(_link_inplace_or_view, linked=True))
