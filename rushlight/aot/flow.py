"""Minimum cuts of a directed graph with capacities, by Dinic's method.

In: vertices numbered from 0, and edges with integer capacities. Out: the vertices on the source's side of a minimum cut.

Source: Y. Dinitz, "Algorithm for solution of a problem of maximum flow in networks with power estimation" (1970).
"""

from __future__ import annotations

UNCUT = 1 << 62


class Network:
    """A flow network. Edges are kept in pairs: edge number e and its reverse, e ^ 1. `room` has the residual capacity of
    each."""

    def __init__(self) -> None:
        self.head: list[int] = []
        self.room: list[int] = []
        self.leaving: list[list[int]] = []

    def vertex(self) -> int:
        """Add a vertex."""
        self.leaving.append([])
        return len(self.leaving) - 1

    def edge(self, start: int, end: int, capacity: int = UNCUT) -> None:
        """Add an edge; an edge without a capacity is never cut."""
        self.leaving[start].append(len(self.head))
        self.leaving[end].append(len(self.head) + 1)
        self.head += (end, start)
        self.room += (capacity, 0)

    def source_side(self, source: int, sink: int) -> set[int]:
        """Return the source's side of the minimum cut that is nearest to the sink."""
        while True:
            level = self._levels(source)
            if level[sink] < 0:
                return set(range(len(self.leaving))) - self._reaching(sink)
            self._push_blocking_flow(source, sink, level)

    def _reaching(self, sink: int) -> set[int]:
        """Find the vertices from which a path of edges with residual capacity leads to the sink."""
        found, open_ends = {sink}, [sink]
        while open_ends:
            for edge in self.leaving[open_ends.pop()]:
                start = self.head[edge]
                if self.room[edge ^ 1] and start not in found:
                    found.add(start)
                    open_ends.append(start)
        return found

    def _levels(self, source: int) -> list[int]:
        """Return the distance of each vertex from the source along edges with residual capacity; -1 if there is no path."""
        level = [-1] * len(self.leaving)
        level[source], wave = 0, [source]
        while wave:
            following = []
            for vertex in wave:
                for edge in self.leaving[vertex]:
                    end = self.head[edge]
                    if self.room[edge] and level[end] < 0:
                        level[end] = level[vertex] + 1
                        following.append(end)
            wave = following
        return level

    def _push_blocking_flow(self, source: int, sink: int, level: list[int]) -> None:
        """Push a blocking flow along edges that go one level up. `turn` is the next edge to try at each vertex; it skips dead
        ends."""
        turn = [0] * len(self.leaving)
        path: list[int] = []
        vertex = source
        while True:
            if vertex == sink:
                vertex = self._push(path, source)
                continue
            edge = self._next(vertex, level, turn)
            if edge is not None:
                path.append(edge)
                vertex = self.head[edge]
            elif not path:
                return
            else:
                vertex = self.head[path.pop() ^ 1]
                turn[vertex] += 1

    def _next(self, vertex: int, level: list[int], turn: list[int]) -> int | None:
        edges = self.leaving[vertex]
        while turn[vertex] < len(edges):
            edge = edges[turn[vertex]]
            if self.room[edge] and level[self.head[edge]] == level[vertex] + 1:
                return edge
            turn[vertex] += 1
        return None

    def _push(self, path: list[int], source: int) -> int:
        """Push the smallest residual capacity of the path, truncate the path before its first full edge, and return the vertex
        there."""
        amount = min(self.room[edge] for edge in path)
        if amount >= UNCUT >> 1:
            raise ValueError("no cut separates the source from the sink: a path of edges without capacities joins them")
        first = None
        for position, edge in enumerate(path):
            self.room[edge] -= amount
            self.room[edge ^ 1] += amount
            if first is None and not self.room[edge]:
                first = position
        vertex = self.head[path[first] ^ 1]
        del path[first:]
        return vertex
