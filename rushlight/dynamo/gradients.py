"""What a program runs in the backward pass: followed at the place that registers it, into a graph of its own.

In: what follows the program's code, given tracked gradients. Out: a graph over these gradients and values of the whole graph,
as a callable, and the nodes of those values. GraphBreak where the code does something else than to compute with tensors.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from rushlight.amp.autocast_mode import autocast
from rushlight.autograd.captured import CapturedBackward
from rushlight.core.tensor import Tensor
from rushlight.core.thread_state import state
from rushlight.dynamo.errors import GraphBreak, Raised
from rushlight.dynamo.graph_builder import GraphBuilder
from rushlight.dynamo.regions import disable
from rushlight.dynamo.translator import Translator
from rushlight.dynamo.values.base import Value
from rushlight.dynamo.values.constant import is_none
from rushlight.dynamo.values.tensor import TensorValue
from rushlight.fx.graph import Graph
from rushlight.fx.graph_module import GraphModule
from rushlight.fx.node import Node, map_arg
from rushlight.ops.registry import aten

Follow = Callable[[list[Value]], Iterable[Value]]
_VALUES = ("example_value", "val")
_ZEROS = frozenset({"zeros", "zeros_like", "new_zeros"})
_OF_THE_SIZE = _ZEROS | {"ones_like", "full_like", "rand_like", "randn_like", "randint_like", "empty_like",
                         "new_ones", "new_full", "new_empty", "new_tensor"}  # fmt: skip
_ONCE = (
    "trying to differentiate twice {what}, as torch.compile captured it: it is marked with @once_differentiable, or depends on "
    "whether gradients are recorded"
)


def capture_backward(
    tx: Translator, what: str, like: Sequence[Tensor], follow: Follow, around: Iterable[Value] = (), own: Value | None = None
) -> tuple[CapturedBackward, list[Node]]:
    """What `follow` does to gradients that look `like` these tensors, and the nodes of the other values that it reads.

    `what` is its name in messages. It may change neither the values `around` it nor those of the frames that are followed; but
    of `own`, it may set the attributes.
    """
    session, builder = tx.session, tx.graph
    recorded, asked, session.asked_grad_mode = state.grad_enabled, session.asked_grad_mode, False
    state.grad_enabled = False  # as it is in the backward pass
    versions = _versions(builder)
    try:
        with autocast("cpu", enabled=False), builder.apart(_GraphApart()) as graph, tx.effects.apart() as changed:
            gradients = [_gradient(builder, graph, fake) for fake in like]
            results = list(follow(list(gradients)))
        if changed and _reach([tx, *around], {id(value) for value in changed if value is not own}):
            raise GraphBreak("a change of what the program made before")
        once = _ONCE.format(what=what) if session.asked_grad_mode else ""
        _check_writes([*graph.outer, *(value.graph_node for value in gradients)], versions | builder.versions)
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


class _GraphApart(Graph):
    """A graph whose nodes may be given nodes of another one: those become placeholders of it, behind the gradients."""

    def __init__(self) -> None:
        super().__init__()
        self.outer: dict[Node, Node] = {}
        self._last: Node | None = None
        self._parameters = 0
        self._gradients: set[Node] = set()

    def gradient(self, fake: Tensor) -> Node:
        """The placeholder of a gradient."""
        made = self._parameter("gradient", {"example_value": fake, "val": fake})
        self._gradients.add(made)
        return made

    def create_node(self, op: str, target: Any, args: tuple | None = None, kwargs: dict | None = None, **options: Any) -> Node:
        """The same as for any graph, whatever graph the arguments are of."""
        return super().create_node(op, target, map_arg(args or (), self._own), map_arg(kwargs or {}, self._own), **options)

    def _own(self, node: Node) -> Node:
        if node.graph is self:
            return node
        if node not in self.outer:
            self.outer[node] = self._parameter(node.name, {name: node.meta[name] for name in _VALUES if name in node.meta})
        return self.outer[node]

    def _parameter(self, name: str, meta: dict[str, Any]) -> Node:
        with self.inserting_before(None if self._last is None else self._last.next):
            self._last = self.placeholder(f"{name}_{self._parameters}")
        self._parameters += 1
        self._last.meta.update(meta)
        return self._last

    def finish(self, results: tuple[Node | None, ...]) -> list[Node]:
        """Return these results; the nodes of other graphs that the graph needs for it."""
        self.output(results)
        self.eliminate_dead_code()
        for placeholder in self.outer.values():
            if not placeholder.users:
                self.erase_node(placeholder)
        self.lint()
        outer, self.outer = self.outer, {}
        return [node for node, placeholder in outer.items() if placeholder.users]

    def is_constant(self) -> bool:
        """Whether a result other than zeros is calculated from no gradient, or from one's size only."""
        found = set(self._gradients)
        for node in self.nodes:
            if _name(node) not in _OF_THE_SIZE and any(used in found for used in node.all_input_nodes):
                found.update((node, *(node.all_input_nodes if node.mutates_state() else ())))
        results = [node for node in self.output_node().args[0] if node is not None]
        return any(node not in found and _name(node) not in _ZEROS for node in results)


def _gradient(builder: GraphBuilder, graph: _GraphApart, like: Tensor) -> TensorValue:
    with builder.fakes:
        fake = aten("empty_like")(like)
    made = builder.tensor_value(graph.gradient(fake), fake)
    made.is_gradient = True
    return made


def _node(result: Value) -> Node | None:
    if not is_none(result) and not isinstance(result, TensorValue):
        raise GraphBreak(f"it gives {result} in the place of a gradient")
    return None if is_none(result) else result.graph_node


def _name(node: Node) -> str:
    return node.target if isinstance(node.target, str) else getattr(node.target, "__name__", "")


def _versions(builder: GraphBuilder) -> dict[Node, int]:
    values = ((node, node.meta.get("example_value")) for node in builder.whole.nodes)
    return {node: value._impl.version.value for node, value in values if isinstance(value, Tensor)}


def _check_writes(nodes: list[Node], versions: dict[Node, int]) -> None:
    for node in nodes:
        value = node.meta["example_value"]
        if isinstance(value, Tensor) and value._impl.version.value != versions.get(node, 0):
            raise GraphBreak("it writes to a tensor that it did not make")


def _reach(roots: Iterable[object], wanted: set[int]) -> bool:
    """Whether one of the values `wanted`, by their ids, is held by the roots: values, or frames that are followed."""
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
