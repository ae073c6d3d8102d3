"""An order of a graph's nodes in which collectives overlap with other work: they begin early, and are waited for late.

In: the nodes, which of them a backend can run, and what each must run after. Out: segments, as `split_by_support` makes them.
A collective begins as soon as its inputs are calculated, even where this cuts a piece in two. Its `wait_tensor` comes when
nothing else is left that can run. All ranks get the same order of the same graph.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping

from rushlight.fx.node import Node
from rushlight.ops.dispatcher import OpOverload

_NAMESPACE = "_c10d_functional"


def is_wait(node: Node) -> bool:
    """Return whether a node waits for a collective."""
    return _is_collective(node) and node.target._opname == "wait_tensor"


def is_start(node: Node) -> bool:
    """Return whether a node begins a collective."""
    return _is_collective(node) and node.target._opname != "wait_tensor"


def _is_collective(node: Node) -> bool:
    return node.op == "call_function" and isinstance(node.target, OpOverload) and node.target.namespace == _NAMESPACE


def order(
    nodes: list[Node], supported: Collection[Node], waits_for: Mapping[Node, list[Node]]
) -> list[tuple[bool, list[Node]]]:
    """Return the nodes in segments: whether the backend runs them, and the nodes in order."""
    return _Order(nodes, supported, waits_for).segments()


class _Order:
    """The state of the search: what is done, and what remains in the graph's order."""

    def __init__(self, nodes: list[Node], supported: Collection[Node], waits_for: Mapping[Node, list[Node]]) -> None:
        self._supported, self._waits_for = supported, waits_for
        self._remaining = [node for node in nodes if node.op not in ("placeholder", "get_attr")]
        self._first = [node for node in nodes if node.op in ("placeholder", "get_attr")]
        self._done = set(self._first)

    def segments(self) -> list[tuple[bool, list[Node]]]:
        found: list[tuple[bool, list[Node]]] = [(False, self._first)]
        while self._remaining:
            if nodes := self._take(self._is_eager):
                found.append((False, nodes))
            elif nodes := self._take_native():
                found.append((True, nodes))
            else:
                found.append((False, self._take(is_wait, 1)))
        return found

    def _is_eager(self, node: Node) -> bool:
        return node not in self._supported and not is_wait(node)

    def _take_native(self) -> list[Node]:
        """Take what the next collective needs, or else all that the backend can run."""
        needed = self._needed_by_next_start()
        return self._take(lambda node: node in self._supported and (needed is None or node in needed))

    def _needed_by_next_start(self) -> set[Node] | None:
        """Return what must run before the first collective that can begin without a wait; None where there is none."""
        for start in filter(is_start, self._remaining):
            needed = self._before(start)
            if not any(map(is_wait, needed)):
                return needed
        return None

    def _before(self, node: Node) -> set[Node]:
        """Return the nodes that remain to be run before a node."""
        found: set[Node] = set()
        pending = [node]
        while pending:
            for earlier in self._waits_for[pending.pop()]:
                if earlier not in self._done and earlier not in found:
                    found.add(earlier)
                    pending.append(earlier)
        return found

    def _take(self, wanted: Callable[[Node], bool], most: int | None = None) -> list[Node]:
        """Take the wanted nodes that can run, at most so many, in the graph's order."""
        taken: list[Node] = []
        for node in self._remaining:
            if len(taken) == most:
                break
            if wanted(node) and all(earlier in self._done for earlier in self._waits_for[node]):
                taken.append(node)
                self._done.add(node)
        self._remaining = [node for node in self._remaining if node not in self._done]
        return taken
