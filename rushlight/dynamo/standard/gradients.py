"""Calls that put code of the program into the backward pass: `Function.apply` and `Tensor.register_hook`.

That code is captured right away (`dynamo.gradients`). One node after the forward's attaches it to the autograd tape when the
graph runs.
"""

from __future__ import annotations

import itertools
import operator
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from rushlight.autograd.captured import CapturedFunction, CapturedHook, ContextMarks
from rushlight.autograd.function import Function, FunctionCtx
from rushlight.core.lazy_module import LazyModule
from rushlight.core.tensor import Tensor
from rushlight.core.thread_state import state
from rushlight.dynamo.errors import GraphBreak
from rushlight.dynamo.handlers import HANDLERS
from rushlight.dynamo.values.base import Value, realized
from rushlight.dynamo.values.constant import NONE, ConstantValue, is_none
from rushlight.dynamo.values.function import FunctionValue
from rushlight.dynamo.values.sequences import SequenceValue
from rushlight.dynamo.values.tensor import TensorValue
from rushlight.fx.node import Node

if TYPE_CHECKING:
    from rushlight.dynamo.values.base import Following

# Lazy, because it imports all kinds of values, and these import the handlers.
gradients = LazyModule("rushlight.dynamo.gradients")

_MAX_OPTIONAL = 3  # output gradients that may be None: the backward is captured once for each subset of them


# Handlers of autograd.Function


def _apply(tx: Following, kind: Value, /, *args: Value, **kwargs: Value) -> Value:
    given = _in_order(tx, kind, args, kwargs)
    needs = [_requires_grad(value) for value in given]
    ctx = tx.wrap_class(FunctionCtx).call(tx, [], {})
    ctx.set_attribute(tx, "needs_input_grad", SequenceValue(list(map(ConstantValue, needs)), tuple))
    is_recorded = state.grad_enabled
    tx.set_grad_mode(False)
    output = _forward(tx, kind, ctx, given)
    tx.set_grad_mode(is_recorded)
    is_tuple = isinstance(output, SequenceValue) and issubclass(output.python_type(), tuple)
    outputs = output.items_of(tx) if is_tuple else [output]
    if is_recorded and any(needs) and any(map(_is_differentiable, outputs)):
        outputs = _record(tx, kind.constant(), ctx, given, outputs)
    return SequenceValue(outputs, tuple) if is_tuple else outputs[0]


def _in_order(tx: Following, kind: Value, args: Sequence[Value], kwargs: dict[str, Value]) -> list[Value]:
    """Convert keyword arguments to positional ones."""
    if not kwargs:
        return list(args)
    forward = kind.attribute(tx, "forward")
    if not isinstance(forward, FunctionValue):
        raise GraphBreak(f"keyword arguments of {kind}.apply()")
    first = is_none(kind.attribute(tx, "setup_context"))  # skip the ctx parameter
    names = forward.code.co_varnames[first : forward.code.co_argcount][len(args) :]
    named = list(itertools.takewhile(lambda name: name in kwargs, names))
    if len(named) < len(kwargs):
        raise GraphBreak(f"keyword arguments of {kind}.apply() that leave others out")
    return [*args, *(kwargs[name] for name in named)]


def _forward(tx: Following, kind: Value, ctx: Value, args: list[Value]) -> Value:
    if is_none(kind.attribute(tx, "setup_context")):
        return kind.attribute(tx, "forward").call(tx, [ctx, *args], {})
    output = kind.attribute(tx, "forward").call(tx, list(args), {})
    kind.attribute(tx, "setup_context").call(tx, [ctx, SequenceValue(list(args), tuple), output], {})
    return output


def _record(tx: Following, function: type[Function], ctx: Value, args: list[Value], outputs: list[Value]) -> list[Value]:
    """Attach the Function's backward to the outputs' autograd history."""
    saved, dirty, others = (_tensors_marked(tx, ctx, name) for name in ("_to_save", "_dirty", "_non_differentiable"))
    if any(value.is_from_outside for value in dirty if isinstance(value, TensorValue)):
        raise GraphBreak(f"{function.__name__} writes to a tensor from outside")
    are_tensors = all(is_none(value) or isinstance(value, TensorValue) for value in saved)
    if not are_tensors or not all(any(value is output for output in outputs) for value in dirty):
        raise GraphBreak(f"{function.__name__} saves what is no tensor, or writes to what it does not return: an error")
    materialize = ctx.attribute(tx, "materialize_grads").constant()
    backwards, kept = {}, {}
    for arriving in _gradient_combinations(function, outputs, materialize):
        run, reads = _capture(tx, function, ctx, [*args, *outputs], outputs, arriving)
        backwards[arriving] = run, [kept.setdefault(node, len(kept)) for node in reads]
    saved_nodes = {value.graph_node for value in saved if isinstance(value, TensorValue)}
    marks = ContextMarks(
        frozenset(position for node, position in kept.items() if node in saved_nodes),
        _positions(outputs, dirty), _positions(outputs, others), materialize,
    )  # fmt: skip
    target = CapturedFunction(function, backwards, marks)
    node, results = tx.add_call("call_function", target, (nodes_of(args), nodes_of(outputs), tuple(kept)), {})
    return [
        item_of(tx, node, index, value, result) if isinstance(value, TensorValue) else value
        for index, (value, result) in enumerate(zip(outputs, results, strict=True))
    ]  # fmt: skip


def _tensors_marked(tx: Following, ctx: Value, name: str) -> list[Value]:
    return list(map(realized, ctx.attribute(tx, name).items_of(tx)))


def _gradient_combinations(function: type[Function], outputs: list[Value], materialize: bool) -> list[tuple[bool, ...]]:
    """Return the sets of outputs that may receive gradients: all outputs at once, unless the backward accepts None."""
    tensors = [isinstance(value, TensorValue) for value in outputs]
    if materialize:
        return [tuple(tensors)]
    optional = [_is_differentiable(value) for value in outputs]
    if sum(optional) > _MAX_OPTIONAL:
        raise GraphBreak(f"{function.__name__} has set_materialize_grads(False) and more than {_MAX_OPTIONAL} outputs")
    found = itertools.product(*[(True, False) if is_optional else (False,) for is_optional in optional])
    return [arriving for arriving in found if any(arriving)]


def _capture(
    tx: Following, function: type[Function], ctx: Value, around: list[Value], outputs: list[Value], arriving: tuple[bool, ...]
) -> tuple[Any, list[Node]]:
    """Capture the Function's backward for this set of gradients; also returns the nodes that it reads."""

    def follow(given: list[Value]) -> list[Value]:
        each = iter(given)
        grads = [next(each) if is_given else NONE for is_given in arriving]
        result = tx.wrap_class(function).attribute(tx, "backward").call(tx, [ctx, *grads], {})
        is_several = isinstance(result, SequenceValue) and issubclass(result.python_type(), (tuple, list))
        return result.items_of(tx) if is_several else [result]

    like = [value.fake for value, is_given in zip(outputs, arriving, strict=True) if is_given]
    return gradients.capture_backward(tx, f"the backward of {function.__name__}", like, follow, [ctx, *around])


def item_of(tx: Following, node: Node, index: int, value: TensorValue, result: Tensor) -> TensorValue:
    """Return the tracked value of item `index` of a node's result; `value` itself if the item is the same tensor."""
    item = tx.graph.graph.create_node("call_function", operator.getitem, (node, index))
    item.stack_trace = node.stack_trace
    item.meta["example_value"] = item.meta["val"] = result
    if result is not value.fake:
        return tx.graph.tensor_value(item, result)
    value.graph_node = item
    return value


def nodes_of(values: Sequence[Value]) -> tuple:
    """Return the nodes of tensors; None for other values."""
    return tuple([value.graph_node if isinstance(value, TensorValue) else None for value in values])


def _positions(outputs: list[Value], wanted: list[Value]) -> tuple[int, ...]:
    return tuple([index for index, value in enumerate(outputs) if any(value is other for other in wanted)])


def _requires_grad(value: Value) -> bool:
    return isinstance(value, TensorValue) and value.fake.requires_grad


def _is_differentiable(value: Value) -> bool:
    return isinstance(value, TensorValue) and (value.fake.dtype.is_floating_point or value.fake.dtype.is_complex)


HANDLERS[Function.apply.__func__] = _apply
HANDLERS[FunctionCtx.saved_tensors.fget] = lambda tx, ctx: ctx.attribute(tx, "_to_save")


# Handlers of hooks on tensors


class HookHandleValue(Value):
    """What `register_hook` returns."""

    def __str__(self) -> str:
        return "the handle of a hook on a tensor"


def _register_hook(tx: Following, tensor: Value, hook: Value) -> Value:
    if tensor.is_from_outside or not tensor.fake.requires_grad:
        hint = "call it outside of the compiled part"
        raise GraphBreak("Tensor.register_hook() of a tensor from outside, or of one without a gradient", hint)
    follow = _return_single(lambda grad: hook.call(tx, [grad], {}))
    run, kept = gradients.capture_backward(tx, f"{hook}, a hook on a tensor,", [tensor.fake], follow, [tensor, hook])
    tx.add_call("call_function", CapturedHook(run), (tensor.graph_node, tuple(kept)), {})
    return HookHandleValue()


def _return_single(follow: Callable[[Value], Value]) -> Callable[[list[Value]], list[Value]]:
    return lambda given: [follow(*given)]


HANDLERS[Tensor.register_hook] = _register_hook
