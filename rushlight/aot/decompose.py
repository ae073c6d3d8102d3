"""Replace operators by their decompositions in a graph of aten operators.

In: a graph with fake values in `meta["val"]`, and a table of decompositions. Out: a graph with the same results, without the
operators whose decomposition did not return NotImplemented. Stage: aot, before functionalization, since a decomposition may
write in place.
"""

from __future__ import annotations

import itertools
import operator
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack

from rushlight.core.dispatch_key import AUTOGRAD_BITS
from rushlight.core.layout import contiguous_format
from rushlight.core.tensor import Tensor
from rushlight.core.thread_state import ExcludeKeys
from rushlight.fx.fake_tensor import FakeTensorMode
from rushlight.fx.graph_module import GraphModule
from rushlight.fx.node import Node, map_arg
from rushlight.fx.proxy_tensor import ProxyMode, origin_of
from rushlight.ops.dispatcher import OpOverload


def decompose(module: GraphModule, table: dict[OpOverload, Callable], shared: Sequence[Node] = ()) -> None:
    """Replace the calls of operators in `table`. Decompositions may use the fake values of `shared` nodes besides arguments."""
    fakes = FakeTensorMode()
    # Placeholders show which symbols sizes have.
    shared = [*(node for node in module.graph.nodes if node.op == "placeholder"), *shared]
    for node in list(module.graph.nodes):
        rule = table.get(node.target) if node.op == "call_function" else None
        if rule is not None:
            _replace(module, node, rule, fakes, shared)
    module.graph.eliminate_dead_code()


def _replace(module: GraphModule, node: Node, rule: Callable, fakes: FakeTensorMode, shared: Sequence[Node]) -> None:
    graph, before = module.graph, node.prev
    mode = ProxyMode(graph, fakes, {})
    mode.origin = origin_of(node)
    for used in (*shared, *node.all_input_nodes):
        if isinstance(used.meta["val"], Tensor):
            mode.nodes[used.meta["val"]._impl] = used
    for used in shared:
        mode.symbols.bind(used.meta["val"], used)
    args, kwargs = map_arg(node.args, _value), map_arg(node.kwargs, _value)
    with ExitStack() as stack:
        for context in (ExcludeKeys(AUTOGRAD_BITS), fakes, mode, graph.inserting_before(node)):
            stack.enter_context(context)
        result = rule(*args, **kwargs)
        result = result if result is NotImplemented else _laid_out(node.meta["val"], result)
    made = list(itertools.takewhile(lambda other: other is not node, _nodes_after(before)))
    if result is NotImplemented:
        for other in reversed(made):
            graph.erase_node(other)
        return
    for other in made:
        if node.meta.get("recompute"):
            other.meta["recompute"] = True
    _use(node, mode, result, set(made))


def _nodes_after(node: Node) -> Iterator[Node]:
    while True:
        node = node.next
        yield node


def _laid_out(before: object, after: object) -> object:
    """Give the results `after` of a decomposition the strides of the operator's results `before`, as far as they exist.

    Return NotImplemented if a contiguous copy does not have these strides.
    """
    if isinstance(before, tuple):
        laid_out = tuple(itertools.starmap(_laid_out, zip(before, after, strict=True)))
        return NotImplemented if any(value is NotImplemented for value in laid_out) else laid_out
    if after is None or before.stride() == after.stride():
        return after
    if before.is_contiguous():
        after = after.clone(memory_format=contiguous_format)
    return after if before.stride() == after.stride() else NotImplemented


def _value(node: Node) -> object:
    return node.meta["val"]


def _use(node: Node, mode: ProxyMode, result: object, made: set[Node]) -> None:
    """Let the users of a node use the results of its decomposition, and give these the node's fake values.

    Later passes recognise by fake values which nodes share memory.
    """
    if not isinstance(result, tuple):
        _replace_by(node, mode.argument(result), made)
        return
    for user in list(node.users):
        if user.target is not operator.getitem:
            raise ValueError(f"{user.format_node()} uses all results of {node.name} at once")
        _replace_by(user, mode.argument(result[user.args[1]]), made)
    node.graph.erase_node(node)


def _replace_by(node: Node, new: Node, made: set[Node]) -> None:
    if new in made:
        new.meta["val"] = node.meta["val"]
    node.replace_all_uses_with(new)
    node.graph.erase_node(node)
