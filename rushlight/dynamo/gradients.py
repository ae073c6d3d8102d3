"""Backward code that a program registers (hooks, custom autograd functions): captured into a graph of its own at registration.

In: a function that follows the program's code, given tracked gradients. Out: a graph over these gradients and values of the
whole graph, as a callable, and the nodes of those values. GraphBreak if the code does anything but compute with tensors.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from rushlight.amp.autocast_mode import autocast
from rushlight.autograd.captured import CapturedBackward
from rushlight.core.tensor import Tensor
from rushlight.core.thread_state import state
from rushlight.dynamo.errors import GraphBreak
from rushlight.dynamo.graph_apart import GraphApart, check_writes, versions_of
from rushlight.dynamo.graph_builder import GraphBuilder
from rushlight.dynamo.regions import disable
from rushlight.dynamo.translator import Translator
from rushlight.dynamo.values.base import Raised, Value
from rushlight.dynamo.values.constant import is_none
from rushlight.dynamo.values.tensor import TensorValue
from rushlight.fx.graph_module import GraphModule
from rushlight.fx.node import Node
from rushlight.ops.registry import aten

Follow = Callable[[list[Value]], Iterable[Value]]
_ONCE = (
    "trying to differentiate twice {what}, as torch.compile captured it: it is marked with @once_differentiable, or depends on "
    "whether gradients are recorded"
)


def capture_backward(
    tx: Translator, what: str, like: Sequence[Tensor], follow: Follow, around: Iterable[Value] = (), own: Value | None = None
) -> tuple[CapturedBackward, list[Node]]:
    """Capture what `follow` does to gradients that look `like` these tensors; also return the nodes of the other values it
    reads.

    `what` names the code in messages. The code must not change the values `around` it or those of the followed frames; it may
    only set attributes of `own`.
    """
    session, builder = tx.session, tx.graph
    recorded, asked, session.asked_grad_mode = state.grad_enabled, session.asked_grad_mode, False
    state.grad_enabled = False  # the backward pass runs without grad mode
    versions = versions_of(builder)
    try:
        with autocast("cpu", enabled=False), builder.apart(GraphApart()) as graph, tx.effects.apart() as changed:
            gradients = [_add_gradient(builder, graph, fake) for fake in like]
            results = list(follow(list(gradients)))
        if changed and _can_reach([tx, *around], {id(value) for value in changed if value is not own}):
            raise GraphBreak("a change of what the program made before")
        once = _ONCE.format(what=what) if session.asked_grad_mode else ""
        check_writes([*graph.outer, *(value.graph_node for value in gradients)], versions | builder.versions)
        outer = graph.finish(tuple(map(_node, results)))
        module = GraphModule({}, graph, "Backward")
        return CapturedBackward(disable(lambda *values: module.forward(*values)), once, graph.is_constant()), outer
    except Raised as error:
        raise GraphBreak(f"{what} cannot be captured: it raises {error}") from None
    except GraphBreak as reason:
        reason.args = (f"{what} cannot be captured: {reason.reason}",)
        reason.reason = reason.args[0]
        raise
    finally:
        state.grad_enabled, session.asked_grad_mode = recorded, asked


def _add_gradient(builder: GraphBuilder, graph: GraphApart, like: Tensor) -> TensorValue:
    """Add the placeholder of a gradient to a backward graph."""
    with builder.fakes:
        fake = aten("empty_like")(like)
    made = builder.tensor_value(graph.input("gradient", fake), fake)
    made.is_gradient = True
    return made


def _node(result: Value) -> Node | None:
    """Return the graph node of a gradient; None for no gradient."""
    if not is_none(result) and not isinstance(result, TensorValue):
        raise GraphBreak(f"it gives {result} in the place of a gradient")
    return None if is_none(result) else result.graph_node


def _can_reach(roots: Iterable[object], wanted: set[int]) -> bool:
    """Return whether any value with an id in `wanted` is reachable from the roots, which are values or followed frames."""
    seen: set[int] = set()
    stack = list(roots)
    while stack:
        item = stack.pop()
        if id(item) in wanted:
            return True
        if id(item) in seen:
            continue
        seen.add(id(item))
        if isinstance(item, Translator):
            stack += [item.stack, item.locals, item.cells, item.handled, item.parent]
        elif isinstance(item, Value):
            stack += vars(item).values()
        elif isinstance(item, dict):
            stack += [*item, *item.values()]
        elif isinstance(item, list | tuple | set | frozenset):
            stack += item
    return False
