"""Choose what the backward recomputes and what is saved for it: a minimum cut over the bytes of values.

In: the values of the forward that the backward depends on, in order, and those that it reads. Out: the values to save. A view
is never saved: it is made again from its base. Stage: aot, for the partitioner.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from rushlight.aot.flow import UNCUT, Network
from rushlight.aot.memory import is_alias, is_size
from rushlight.core.tensor import Tensor
from rushlight.fx.node import Node
from rushlight.ops.dispatcher import OpOverload

# Elementwise operators that cost about as much as reading their arguments.
CHEAP = frozenset(
    """abs add alias bitwise_and bitwise_not bitwise_or bitwise_xor ceil clone copysign detach div eq expand floor full ge gt
    isinf isnan le logical_and logical_not logical_or logical_xor lt maximum minimum mul ne neg permute reciprocal relu round
    select sgn sign signbit slice square squeeze sub threshold_backward trunc unsqueeze view where _to_copy constant_pad_nd
    arange clamp empty_like full_like zeros_like ones_like cat""".split()
)
# Elementwise operators of many instructions. Their results are saved if they are stored in memory anyway.
COSTLY = frozenset(
    """acos acosh asin asinh atan atan2 atanh cos cosh erf erfc exp expm1 fmod gelu hypot lgamma log log1p log2 pow remainder
    rsqrt sigmoid silu sin sinh sqrt tan tanh embedding gather index index_select gelu_backward""".split()
)
PRIMAL_SHARE = 16  # a primal is alive anyway: saving one costs this part of its bytes, so that the cut prefers it


def name_of(node: Node) -> str:
    """Return the name of the operator that a node calls."""
    return node.target._schema.name if isinstance(node.target, OpOverload) else ""


def nbytes(node: Node) -> int:
    """Return the bytes of a node's value; for symbolic sizes, the bytes of the example."""
    value = node.meta.get("val")
    if not isinstance(value, Tensor):
        return 8
    sizes = [getattr(size, "hint", size) for size in value.shape]
    return math.prod(sizes) * value.dtype.itemsize


def is_repeatable(node: Node) -> bool:
    """Return whether the backward may ever recompute a node: not if it draws random numbers or writes to memory."""
    return node.op == "get_attr" or (node.op == "call_function" and not node.is_impure())


def is_fusible(node: Node) -> bool:
    """Return whether a node is elementwise, so that a fused loop need not store its result."""
    return name_of(node) in CHEAP or name_of(node) in COSTLY


def is_stored_anyway(node: Node) -> bool:
    """Return whether a node's result is stored whatever the backward needs: it is returned, or read by an operator that is not
    fused."""
    return any(is_stored_anyway(user) if is_alias(user) else not is_fusible(user) for user in node.users)


def is_cheap_to_repeat(node: Node) -> bool:
    """Return whether recomputing a node costs less than saving it, even with memory to spare."""
    if node.op == "get_attr" or is_alias(node) or name_of(node) in CHEAP:
        return True
    return name_of(node) in COSTLY and not is_stored_anyway(node)


@dataclass
class Recomputation:
    """The choice between saving and recomputing values. `candidates` are in the graph's order; `read` are those that backward
    nodes read. Neither contains sizes, which cost nothing."""

    candidates: Sequence[Node]
    read: Sequence[Node]
    repeated: set[Node] = field(default_factory=set)  # expensive nodes that are recomputed to save memory

    def choose(self, memory_budget: float) -> list[Node]:
        """Return the values to save; see `min_cut_partition`."""
        kept = self._cut()
        if memory_budget == 1:
            return kept
        limit = memory_budget * self._weight(kept)
        expensive = [node for node in self.candidates if is_repeatable(node) and not is_cheap_to_repeat(node)]
        expensive.sort(key=lambda node: _work(node) / max(1, nbytes(node)))
        few, many = 0, len(expensive)
        while few < many:  # binary search: the fewest that bring the bytes below the limit
            middle = (few + many) // 2
            self.repeated = set(expensive[:middle])
            if self._weight(self._cut()) <= limit:
                many = middle
            else:
                few = middle + 1
        self.repeated = set(expensive[:few])
        return self._cut()

    @staticmethod
    def _weight(kept: Sequence[Node]) -> int:
        return sum(nbytes(node) for node in kept if node.op != "placeholder")

    def _cut(self) -> list[Node]:
        network = Network()
        source, sink = network.vertex(), network.vertex()
        enters: dict[Node, int] = {}
        leaves: dict[Node, int] = {}
        for node in self.candidates:
            enters[node], leaves[node] = network.vertex(), network.vertex()
            network.edge(enters[node], leaves[node], _cost(node))
            if not self._may_repeat(node):
                network.edge(source, enters[node])
            for used in node.all_input_nodes:
                if not is_size(used):
                    network.edge(leaves[used], enters[node])
        for node in self.read:
            network.edge(leaves[node], sink)
        side = network.source_side(source, sink)
        return [node for node in self.candidates if enters[node] in side and leaves[node] not in side]

    def _may_repeat(self, node: Node) -> bool:
        if node.target is operator.getitem:
            return True  # decided by the node that returns the tuple
        chosen = node in self.repeated or node.meta.get("recompute", False)
        return is_repeatable(node) and (chosen or is_cheap_to_repeat(node))


def _cost(node: Node) -> int:
    """Return the cost of saving a node's value; views and tuples are never saved."""
    if node.op == "get_attr" or isinstance(node.meta.get("val"), tuple | list) or is_alias(node):
        return UNCUT
    if node.op == "placeholder":
        return 1 + nbytes(node) // PRIMAL_SHARE
    size = 1 + nbytes(node)
    return size if node.target is operator.getitem or not is_fusible(node) or is_stored_anyway(node) else 2 * size


def _work(node: Node) -> float:
    """Estimate the number of operations of a node."""
    kind = name_of(node)
    return WORK[kind](node) if kind in WORK else 10.0 * max([nbytes(node), *map(nbytes, node.all_input_nodes)])


def _count_elements(node: Node) -> int:
    return nbytes(node) // node.meta["val"].dtype.itemsize


def _product_work(node: Node) -> float:
    first = next(used for used in node.all_input_nodes if used.meta["val"].dim() >= 2)
    return 2.0 * _count_elements(node) * getattr(first.meta["val"].shape[-1], "hint", first.meta["val"].shape[-1])


def _convolution_work(node: Node) -> float:
    weight = node.args[1]
    return 2.0 * _count_elements(node) * _count_elements(weight) / max(1, getattr(weight.meta["val"].shape[0], "hint", 1))


def _attention_work(node: Node) -> float:
    query, key = node.args[0], node.args[1]
    return 4.0 * _count_elements(query) * getattr(key.meta["val"].shape[-2], "hint", key.meta["val"].shape[-2])


WORK: dict[str, Callable[[Node], float]] = {
    "mm": _product_work,
    "addmm": _product_work,
    "bmm": _product_work,
    "convolution": _convolution_work,
    "_scaled_dot_product_flash_attention_for_cpu": _attention_work,
}
