"""Backward hooks of modules: `register_full_backward_hook` and `register_full_backward_pre_hook`.

The module's call is followed as written (`nn/modules/backward_hooks.py`), but tensors cross its boundary by two nodes, one at
the inputs and one at the outputs. The hooks are captured at the outputs, when the sizes of all gradients are known.
"""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING

from rushlight.core.lazy_module import LazyModule
from rushlight.core.tensor import Tensor
from rushlight.core.thread_state import state
from rushlight.dynamo.handlers import HANDLERS
from rushlight.dynamo.standard.gradients import item_of, nodes_of
from rushlight.dynamo.values.base import Value
from rushlight.dynamo.values.constant import is_none
from rushlight.dynamo.values.objects import ObjectValue
from rushlight.dynamo.values.sequences import SequenceValue
from rushlight.dynamo.values.tensor import TensorValue
from rushlight.fx.node import Node
from rushlight.nn.modules.backward_hooks import BackwardBoundary, _pass_through
from rushlight.nn.modules.captured_boundary import LeaveModule, enter_module

if TYPE_CHECKING:
    from rushlight.autograd.captured import CapturedBackward
    from rushlight.dynamo.values.base import Following

# Lazy, because it imports all kinds of values, and these import the handlers.
gradients = LazyModule("rushlight.dynamo.gradients")


class CrossingValue(Value):
    """Links the input and output side of a module's call; `fakes` are the fake inputs that have gradients."""

    def __init__(self, node: Node, fakes: list[Tensor]) -> None:
        self.graph_node = node
        self.fakes = fakes


def _pass_boundary(tx: Following, values: Value, positions: Value, on_gradients: Value) -> Value:
    """Follow `_pass_through` of a BackwardBoundary: the tensors at `positions` pass into a module, or out of it."""
    places = [value.constant() for value in positions.items_of(tx)]
    if not places or not state.grad_enabled:
        return values
    items = values.items_of(tx)
    side = _enter if on_gradients.function.constant() is BackwardBoundary._at_inputs else _leave
    passed = dict(zip(places, side(tx, on_gradients.owner, [items[place] for place in places], places), strict=True))
    return SequenceValue([passed.get(place, value) for place, value in enumerate(items)], tuple)


def _enter(tx: Following, boundary: ObjectValue, tensors: list[TensorValue], places: list[int]) -> list[Value]:
    node, (crossing, *results) = tx.add_call("call_function", enter_module, nodes_of(tensors), {})
    entry = tx.graph.graph.create_node("call_function", operator.getitem, (node, 0))
    entry.meta["example_value"] = crossing
    boundary.written["crossing"] = CrossingValue(entry, [value.fake for value in tensors])
    return [item_of(tx, node, index, *pair) for index, pair in enumerate(zip(tensors, results, strict=True), 1)]


def _leave(tx: Following, boundary: ObjectValue, tensors: list[TensorValue], places: list[int]) -> list[Value]:
    crossing = boundary.written.get("crossing")
    pre_hooks, before, arrived = _follow_outputs(tx, boundary, tensors)
    hooks, after = (None, []) if crossing is None else _follow_inputs(tx, boundary, crossing, arrived)
    passed = None if crossing is None else crossing.graph_node
    arguments = passed, nodes_of(tensors), tuple(before), tuple(after)
    node, results = tx.add_call("call_function", LeaveModule(pre_hooks, hooks, places), arguments, {})
    return [item_of(tx, node, index, *pair) for index, pair in enumerate(zip(tensors, results, strict=True))]


def _follow_outputs(
    tx: Following, boundary: ObjectValue, tensors: list[TensorValue]
) -> tuple[CapturedBackward, list[Node], list[Value]]:
    """Capture the pre-hooks; returns them, the nodes that they read, and the gradients of all outputs after them."""
    arrived: list[Value] = []

    def follow(given: list[Value]) -> list[Value]:
        boundary.method(tx, "_at_outputs", [SequenceValue(given, tuple)], {})
        arrived.extend(boundary.attribute(tx, "grad_outputs").items_of(tx))
        return arrived

    like = [value.fake for value in tensors]
    run, reads = gradients.capture_backward(tx, _name(tx, boundary), like, follow, own=boundary)
    return run, reads, arrived


def _follow_inputs(
    tx: Following, boundary: ObjectValue, crossing: CrossingValue, arrived: list[Value]
) -> tuple[CapturedBackward, list[Node]]:
    """Capture the hooks, which get the gradients of the inputs, then the arrived ones of the outputs; also returns the nodes
    that they read."""
    count = len(crossing.fakes)

    def follow(given: list[Value]) -> list[Value]:
        each = iter(given[count:])
        outputs = [value if is_none(value) else next(each) for value in arrived]
        boundary.written["grad_outputs"] = SequenceValue(outputs, tuple)
        return boundary.method(tx, "_at_inputs", [SequenceValue(given[:count], tuple)], {}).items_of(tx)

    like = [*crossing.fakes, *(value.fake for value in arrived if not is_none(value))]
    return gradients.capture_backward(tx, _name(tx, boundary), like, follow, own=boundary)


def _name(tx: Following, boundary: ObjectValue) -> str:
    return f"the backward hooks of {boundary.attribute(tx, 'module').python_type().__name__}"


HANDLERS[_pass_through] = _pass_boundary
