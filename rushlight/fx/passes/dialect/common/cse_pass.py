"""CSEPass: calculate a value once that a graph calculates several times.

In: a GraphModule. Out: a new one, in which a call of the same target with the same arguments is the first one's value. Calls
that write or draw random numbers stay; nothing is shared across a write, since the argument may be another value after it.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import Any

from rushlight.fx.graph import Graph
from rushlight.fx.graph_module import GraphModule
from rushlight.fx.node import Node, map_arg
from rushlight.fx.passes.infra.pass_base import PassBase, PassResult
from rushlight.fx.passes.utils.matcher_utils import complete_arguments
from rushlight.fx.targets import TORCH
from rushlight.ops.dispatcher import OpOverload

__all__ = ["CSEPass", "get_CSE_banned_ops"]
_DRAWING = (
    "bernoulli", "dropout", "empty", "empty_like", "exponential", "geometric", "log_normal", "multinomial", "native_dropout",
    "new_empty", "normal", "poisson", "rand", "rand_like", "randint", "randint_like", "randn", "randn_like", "randperm",
    "uniform",
)  # fmt: skip


def get_CSE_banned_ops() -> set[Any]:  # noqa: N802 - the name that torch users know
    """The operators whose calls differ although their arguments are the same: those that draw, or leave memory as it is."""
    return {getattr(TORCH.ops.aten, name) for name in _DRAWING if hasattr(TORCH.ops.aten, name)}


class CSEPass(PassBase):
    """Common subexpression elimination. `banned_ops`: operators (all overloads of each) whose calls are left as they are."""

    def __init__(self, banned_ops: Iterable[Any] | None = None) -> None:
        self.banned_ops = set(banned_ops or ())
        super().__init__()

    def call(self, graph_module: GraphModule) -> PassResult:
        """The module without repeated calls; the one that is given stays as it is."""
        graph, made, known, modified = Graph(), {}, {}, False
        writes = 0
        for node in graph_module.graph.nodes:
            writes += node.op not in ("placeholder", "output") and node.mutates_state()
            key = self._key_of(node, made, writes)
            if key is not None and key in known:
                made[node], modified = known[key], True
                continue
            made[node] = graph.node_copy(node, made.__getitem__)
            if key is not None:
                known[key] = made[node]
        return PassResult(GraphModule(graph_module, graph), modified)

    def _key_of(self, node: Node, made: dict[Node, Node], writes: int) -> Hashable | None:
        """What two calls have in common that give one value; None for a call that is to stay."""
        packet = node.target.overloadpacket if isinstance(node.target, OpOverload) else node.target
        if node.op != "call_function" or node.is_impure() or packet in self.banned_ops or node.target in self.banned_ops:
            return None
        arguments = map_arg(complete_arguments(node), made.__getitem__)
        key = (node.target, writes, _told_apart(arguments))
        try:
            hash(key)
        except TypeError:
            return None
        return key


def _told_apart(value: Any) -> Any:
    """A value as one that equals no value of another type: 1, 1.0 and True are three."""
    if isinstance(value, list | tuple):
        return type(value), tuple(map(_told_apart, value))
    if isinstance(value, dict):
        return type(value), tuple((key, _told_apart(item)) for key, item in value.items())
    return type(value), value.hex() if isinstance(value, float) else value
