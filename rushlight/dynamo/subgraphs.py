"""Subgraphs: functions that the program passes to transforms and control flow, captured into graphs of their own.

In: a tracked function and its arguments. Out: a GraphModule over its own inputs and the outside values that it reads, and its
result as tracked values of that graph. GraphBreak if the function does anything but compute with tensors.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

from rushlight.core.tensor import Tensor
from rushlight.core.thread_state import state
from rushlight.dynamo.errors import GraphBreak
from rushlight.dynamo.graph_apart import GraphApart, check_writes, versions_of
from rushlight.dynamo.translator import Translator
from rushlight.dynamo.values.base import Raised, Value, realized
from rushlight.dynamo.values.constant import ConstantValue
from rushlight.dynamo.values.inheriting import InheritingValue
from rushlight.dynamo.values.mappings import DictValue
from rushlight.dynamo.values.sequences import SequenceValue
from rushlight.dynamo.values.tensor import TensorValue, wrap_result
from rushlight.fx.graph_module import GraphModule
from rushlight.fx.node import Node


class Tree:
    """A pytree of tracked values: flattens a value into its tensors, and rebuilds it with others.

    `skeleton` is the value as plain Python, with fake tensors as leaves.
    """

    def __init__(self, value: Value) -> None:
        self.value = realized(value)
        self.tensors: list[TensorValue] = []
        self.skeleton = self._replace_by_fakes(self.value)

    def _replace_by_fakes(self, value: Value) -> Any:
        """Replace the tensors in a nested value by fake ones, and collect them."""
        value = realized(value)
        if isinstance(value, TensorValue):
            self.tensors.append(value)
            return value.fake
        if isinstance(value, SequenceValue):
            items = [self._replace_by_fakes(item) for item in value.items]
            return value.kind(*items) if hasattr(value.kind, "_fields") else value.kind(items)
        if isinstance(value, DictValue) and not isinstance(value, InheritingValue) and value.default_factory is None:
            return value.kind({key: self._replace_by_fakes(item) for key, item in value.items.items()})
        if value.is_constant():
            return value.constant()
        raise GraphBreak(f"{value} among what a function takes or gives whose calls are transformed")

    def rebuilt(self, tensors: Sequence[Value]) -> Value:
        """Return the value with its tensors replaced by these."""
        given = iter(tensors)

        def build(value: Value) -> Value:
            value = realized(value)
            if isinstance(value, TensorValue):
                return next(given)
            if isinstance(value, SequenceValue):
                return SequenceValue([build(item) for item in value.items], value.kind)
            if isinstance(value, DictValue):
                return DictValue({key: build(item) for key, item in value.items.items()}, value.kind)
            return value

        return build(self.value)


class Subgraph(NamedTuple):
    """A captured function: its graph, the outer nodes that it reads, and its result."""

    module: GraphModule
    outer: list[Node]
    result: Tree


def follow(
    tx: Translator, what: str, function: Value, fakes: Sequence[Tensor], call: Callable[[list[Value]], Value]
) -> Subgraph:
    """Capture `call` into a subgraph; its inputs are tracked tensors like `fakes`. `what` names it in messages."""
    builder = tx.graph
    versions = versions_of(builder)
    with (
        _name_in_breaks(what), tx.effects.apart() as changed, builder.apart(GraphApart()) as graph,
        _require_unchanged_grad_mode(),
    ):  # fmt: skip
        inputs = [builder.tensor_value(graph.input(f"input_{index}", fake), fake) for index, fake in enumerate(fakes)]
        result = Tree(call(inputs))
        del changed  # values that the function made itself may change
        kept = [*graph.outer, *(value.graph_node for value in inputs)]
        check_writes(kept, versions | builder.versions | {value.graph_node: 0 for value in inputs})
        outer = graph.finish(tuple([value.graph_node for value in result.tensors]))
    return Subgraph(GraphModule({}, graph, "Subgraph"), outer, result)


@contextmanager
def _name_in_breaks(what: str) -> Any:
    """Context manager: graph breaks in the block say that `what` cannot be captured. An exception of the program becomes such a
    graph break."""
    try:
        yield
    except Raised as error:
        raise GraphBreak(f"{what} cannot be captured: it raises {error}") from None
    except GraphBreak as reason:
        reason.reason = f"{what} cannot be captured: {reason.reason}"
        reason.args = (reason.reason,)
        raise


@contextmanager
def _require_unchanged_grad_mode() -> Any:
    """Context manager: break the graph if the block leaves the grad mode switched."""
    before = state.grad_enabled
    yield
    if state.grad_enabled is not before:
        raise GraphBreak("it leaves gradients switched")


def call_transform(
    tx: Translator, target: Callable, inputs: Sequence[TensorValue], graph: Subgraph
) -> list[Value]:
    """Add a node that calls `target` with tensors and the outer values that the graph reads; returns its results."""
    nodes = tuple([value.node(tx) for value in inputs])
    node, results = tx.add_call("call_function", target, (nodes, tuple(graph.outer)), {})
    return wrap_result(tx, node, results).items_of(tx)


def constant_or(value: Value | None, default: Any) -> Any:
    """Return the plain value of a transform's option, which must be known."""
    return default if value is None else Tree(value).skeleton


def none() -> Value:
    """Return None as a tracked value."""
    return ConstantValue(None)
