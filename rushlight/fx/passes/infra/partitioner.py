"""CapabilityBasedPartitioner: groups the nodes that a backend can run, as large as dependencies allow, and fuses them."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Sequence

from rushlight.fx.graph_module import GraphModule
from rushlight.fx.node import Node
from rushlight.fx.passes.operator_support import OperatorSupportBase
from rushlight.fx.passes.utils.fuser_utils import fuse_by_partitions
from rushlight.fx.targets import qualified_name

__all__ = ["CapabilityBasedPartitioner", "Partition"]


class Partition:
    """A group of nodes, with a number."""

    def __init__(
        self, id: int | None = None, nodes: Iterable[Node] | None = None, node_orders: Iterable[int] | None = None
    ) -> None:
        self.id = id
        nodes = list(nodes or ())
        orders = list(node_orders) if node_orders is not None else [None] * len(nodes)
        self.nodes: dict[Node, int | None] = dict(zip(nodes, orders, strict=True))

    def add_node(self, node: Node, node_order: int | None = None) -> None:
        """Add a node."""
        self.nodes[node] = node_order

    def remove_node(self, node: Node) -> None:
        """Remove a node."""
        del self.nodes[node]

    def size(self) -> int:
        """Return the number of nodes."""
        return len(self.nodes)

    def __repr__(self) -> str:
        return str(list(self.nodes))


class CapabilityBasedPartitioner:
    """Partitions the nodes of `graph_module` that `operator_support` supports.

    Args:
        allows_single_node_partition: keep partitions of one computing node.
        non_compute_ops: dotted names of functions that don't count as computing.
        allowed_single_node_partition_ops: dotted names of functions that may be alone in a partition nevertheless.
        skip_horizontal_fusion: group only nodes that are connected.
    """

    def __init__(
        self, graph_module: GraphModule, operator_support: OperatorSupportBase, allows_single_node_partition: bool = False,
        non_compute_ops: Sequence[str] | None = None, allowed_single_node_partition_ops: Sequence[str] | None = None,
        skip_horizontal_fusion: bool = False,
    ) -> None:  # fmt: skip
        self.graph_module = graph_module
        self.operator_support = operator_support
        self.allows_single_node_partition = allows_single_node_partition
        self.non_compute_ops = tuple(non_compute_ops or ())
        self.allowed_single_node_partition_ops = tuple(allowed_single_node_partition_ops or ())
        self.skip_horizontal_fusion = skip_horizontal_fusion
        self._modules = dict(graph_module.named_modules())

    def _is_node_supported(self, node: Node) -> bool:
        return self.operator_support.is_node_supported(self._modules, node)

    def propose_partitions(self) -> list[Partition]:
        """Return the partitions, in the order of their first nodes. Each can become one node without a cycle."""
        groups = _Groups(list(self.graph_module.graph.nodes), self._is_node_supported, self.skip_horizontal_fusion)
        found = [Partition(number, nodes, map(groups.position.__getitem__, nodes))
                 for number, nodes in enumerate(groups.groups())]  # fmt: skip
        for partition in found:
            self._leave_getitems(partition)
        return [each for each in found if each.size() and (self.allows_single_node_partition or self._is_worth_it(each))]

    def _leave_getitems(self, partition: Partition) -> None:
        """Remove each `getitem` from the partition if its tuple is made outside of it."""
        for node in list(partition.nodes):
            if node.target is operator.getitem and node.args[0] not in partition.nodes:
                partition.remove_node(node)

    def _is_worth_it(self, partition: Partition) -> bool:
        names = [qualified_name(node.target) for node in partition.nodes if node.op == "call_function"]
        plain = {*self.non_compute_ops, "operator.getitem", "_operator.getitem"}
        computing = [name for name in names if name not in plain]
        return len(computing) > 1 or any(name in self.allowed_single_node_partition_ops for name in computing)

    def fuse_partitions(self, partitions: list[Partition], prefix: str = "fused_") -> GraphModule:
        """Make each partition a submodule; the module is changed in place and returned."""
        return fuse_by_partitions(self.graph_module, [dict(partition.nodes) for partition in partitions], prefix=prefix)

    def remove_bookend_non_compute_ops(self, partitions: list[Partition]) -> None:
        """Remove functions that don't compute from the beginnings and ends of partitions."""
        for partition in partitions:
            changed = True
            while changed:
                ends = [node for node in partition.nodes if self._is_bookend(node, partition)]
                changed = bool(ends)
                for node in ends:
                    partition.remove_node(node)

    def _is_bookend(self, node: Node, partition: Partition) -> bool:
        if node.op != "call_function" or qualified_name(node.target) not in self.non_compute_ops:
            return False
        inputs = [used for used in node.all_input_nodes if used in partition.nodes]
        users = [user for user in node.users if user in partition.nodes]
        return not inputs or not users

    def partition_and_fuse(self, prefix: str = "fused_") -> GraphModule:
        """Propose partitions and fuse them."""
        return self.fuse_partitions(self.propose_partitions(), prefix)


class _Groups:
    """Groups of supported nodes, merged from the last node to the first if no path leaves a group and comes back."""

    def __init__(self, nodes: list[Node], is_supported: Callable[[Node], bool], connected_only: bool) -> None:
        self.nodes = nodes
        self.position = {node: index for index, node in enumerate(nodes)}
        self.connected_only = connected_only
        self.supported = [node for node in nodes if node.op not in ("placeholder", "output") and is_supported(node)]
        self.group_of: dict[Node, int] = {node: self.position[node] for node in self.supported}
        self.members: dict[int, list[Node]] = {self.position[node]: [node] for node in self.supported}
        self._merge_all()

    def _merge_all(self) -> None:
        for node in reversed(self.supported):
            for user in sorted(node.users, key=self.position.__getitem__):
                if user in self.group_of:
                    self._try_merge(self.group_of[node], self.group_of[user])
        if not self.connected_only:
            self._merge_independent()

    def _merge_independent(self) -> None:
        for one in sorted(self.members):
            for other in sorted(self.members):
                if one < other and one in self.members and other in self.members:
                    self._try_merge(one, other)

    def _try_merge(self, one: int, other: int) -> None:
        if one == other or self._would_close_a_circle(self.members[one] + self.members[other]):
            return
        for node in self.members[other]:
            self.group_of[node] = one
        self.members[one] += self.members.pop(other)

    def _would_close_a_circle(self, inside: list[Node]) -> bool:
        """Return whether a path leads out of these nodes and back in; each group counts as one node."""
        wanted, seen = set(inside), set()
        waiting = [user for node in inside for user in node.users if user not in wanted]
        while waiting:
            node = waiting.pop()
            if node in wanted:
                return True
            if node in seen:
                continue
            group = self.members[self.group_of[node]] if node in self.group_of else [node]
            seen.update(group)
            waiting += [user for member in group for user in member.users]
        return False

    def groups(self) -> list[list[Node]]:
        """Return the groups' nodes in the order of the graph."""
        ordered = [sorted(members, key=self.position.__getitem__) for members in self.members.values()]
        return sorted(ordered, key=lambda members: self.position[members[0]])
