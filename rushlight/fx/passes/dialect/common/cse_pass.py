"""CSEPass: common subexpression elimination.

In: a GraphModule. Out: a new one, in which a call with the same target and arguments as an earlier one is replaced by its
value. Calls that write or draw random numbers stay; nothing is shared across a write, since the argument may have changed.
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
    """Return the operators whose calls may differ for the same arguments: they draw random numbers, or leave memory
    uninitialized."""
    return {getattr(TORCH.ops.aten, name) for name in _DRAWING if hasattr(TORCH.ops.aten, name)}


class CSEPass(PassBase):
    """Common subexpression elimination. `banned_ops`: operators (all overloads of each) whose calls are never replaced."""

    def __init__(self, banned_ops: Iterable[Any] | None = None) -> None:
        self.banned_ops = set(banned_ops or ())
        super().__init__()

    def call(self, graph_module: GraphModule) -> PassResult:
        """Return a copy of the module without repeated calls."""
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
        """Return a key that is equal for two calls with the same value; None for a call that has to stay."""
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
    """Return a key for a value that differs between types: 1, 1.0 and True are three."""
    if isinstance(value, list | tuple):
        return type(value), tuple(map(_told_apart, value))
    if isinstance(value, dict):
        return type(value), tuple((key, _told_apart(item)) for key, item in value.items())
    return type(value), value.hex() if isinstance(value, float) else value
