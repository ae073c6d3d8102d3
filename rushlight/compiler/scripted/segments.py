"""Run scripted code that is cut: nodes without a native form run in the interpreter, the nodes around them natively.


In: a graph, and the node at which a capture had to stop. Out: a callable over the graph's arguments.

A segment is a run of nodes with native programs of its own. They are made when the segment is reached, so that sizes which
depend on data are known by then. A segment whose capture has to stop is cut in turn, and the call goes on with its pieces. The
programs of these are made at once, since the graph has already run often enough. If a branch or loop has to be decided at run
time, each of its blocks is also a sequence of segments.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Sequence
from itertools import groupby

from rushlight.compiler.logs import StageLog
from rushlight.compiler.scripted.execution import Cut
from rushlight.compiler.scripted.extraction import Extract, append_only, enclosing, part_of_block, part_of_nodes
from rushlight.compiler.scripted.open_sizes import Dims
from rushlight.compiler.scripted.programs import Programs, guarded
from rushlight.compiler.settings import Settings
from rushlight.jit.ir.graph import Block, Graph, Node, Value
from rushlight.jit.operators.lookup import operator_of
from rushlight.jit.passes.alias_analysis import AliasDb
from rushlight.jit.runtime.code import Code
from rushlight.jit.runtime.executor import interpret
from rushlight.jit.runtime.native import Part
from rushlight.jit.runtime.objects import ScriptObject, run_with_executor
from rushlight.jit.runtime.specialized import Specialized
from rushlight.jit.types.kinds import TensorType

TOO_FEW = "too few operators on tensors"
_QUANTIZING = frozenset(("aten::quantize_per_tensor", "aten::quantize_per_channel", "aten::dequantize"))
_MIN_TENSOR_NODES = 2  # a block inside a node is segmented if it has at least this many operators on tensors


class Memory:
    """Knows which values of a graph are written to: by its nodes, or, for the results at the indices `written_later`,
    outside."""

    def __init__(self, graph: Graph, written_later: frozenset[int]):
        self._block = graph.block
        self._aliases = AliasDb(graph)
        self._leaving = [graph.outputs[place] for place in written_later]

    def written_later(self, nodes: Sequence[Node], values: Sequence[Value]) -> frozenset[int]:
        """Return the indices of those `values`, results of `nodes`, whose memory other nodes, or later rounds of a loop, may
        write to."""
        own = {node for node in nodes if node.kind != "prim::Loop"}
        return frozenset(place for place, value in enumerate(values) if self._is_written(value, own))

    def _is_written(self, value: Value, own: set[Node]) -> bool:
        """Return whether the memory of a value is written to by nodes that are not in `own`."""
        if not isinstance(value.type, TensorType):
            return False
        writers = self._aliases.writers_of(value)
        return any(enclosing(node, self._block) not in own for node in writers) or self._aliases.may_alias_any(
            [value], self._leaving
        )


class Segment:
    """Nodes that run natively if a program fits their inputs, else in the interpreter. `cut` is the node at which a capture of
    them

    had to stop; `reason` says why a single node stands alone. `memory` knows the writes in the block.
    """

    def __init__(
        self, nodes: Sequence[Node], block: Block, name: str, settings: Settings, memory: Memory, reason: str = "",
        at_once: bool = False,
    ):  # fmt: skip
        self.nodes = nodes
        self.reason = reason
        self.part = part_of_nodes(nodes, block)
        self.inputs, self.outputs = self.part.inputs, self.part.outputs
        self.cut: tuple[Node, str] | None = None
        self.pieces: list[Segment | Branching] = []
        crossing = {*self.inputs, *self.outputs}
        self.entered = [node for node in nodes if node.kind in ("prim::Enter", "prim::Exit") and node.input() in crossing]
        self._written = memory.written_later(nodes, self.outputs)
        self.programs: list[Programs] = []
        self.may_be_native = not reason and sum(map(_count_tensor_operators, nodes)) >= _MIN_TENSOR_NODES
        self._name = name
        self._settings = settings
        self._code: Code | None = None
        self._specialized = Specialized(
            self.part.graph, name, self._compile, append_only(self.part.graph), at_once=at_once and self.may_be_native
        )

    def run(self, arguments: list) -> list | None:
        """Return the values of `outputs` for values of `inputs`; None if the segment has to be cut first."""
        specialized = self._specialized
        kind = None if self.reason else specialized.kind_of(arguments)
        results = None if kind is None else specialized.run(kind, arguments)
        if results is not None:
            return results
        if self.cut is not None:
            return None
        start = time.perf_counter()
        if self._code is None:
            self._code = Code(self.part.graph, self._name)
        results = interpret(self._code, arguments)
        if kind is not None:
            specialized.note(kind, time.perf_counter() - start)
        return results

    def described(self, depth: int, seconds: dict[object, float]) -> list[Part]:
        """Describe how it runs now."""
        how = "native" if any(each.programs for each in self.programs) else "interpreted"
        reason = "" if how == "native" else self.reason or ("" if self.may_be_native else TOO_FEW)
        return [Part(depth, how, len(self.nodes), self.nodes[0].source_range, reason, seconds.get(self))]

    def _compile(self, graph: Graph, arguments: Sequence[object], name: str, dims: Dims | None) -> Programs | None:
        log = StageLog(self._settings, name, graph)
        return guarded(lambda: self._programs(graph, arguments, name, dims, log), name, log)

    def _programs(self, graph: Graph, arguments: Sequence[object], name: str, dims: Dims | None, log: StageLog) -> Programs:
        made = Programs(graph, name, self._settings, owns_lists=False, dims=dims, written_later=self._written)
        try:
            made.programs.append(made.make(arguments, log))
        except Cut as cut:
            self.cut = self.part.originals[cut.node], str(cut)
            raise
        self.programs.append(made)
        return made


class Branching:
    """A branch or loop that is decided at run time; its blocks are segmented."""

    cut = None
    entered = ()

    def __init__(self, node: Node, name: str, settings: Settings, memory: Memory, reason: str):
        self.node = node
        self.reason = reason
        self.nodes = [node]
        self.parts = [part_of_block(inner) for inner in node.blocks]
        first = 0 if node.kind == "prim::If" else 1  # a loop's body returns its condition first
        written = frozenset(first + place for place in memory.written_later([node], node.outputs))
        self.bodies = [Segmented(part.graph, name, settings, at_once=True, written_later=written) for part in self.parts]
        own = len(node.inputs)
        outside = dict.fromkeys(value for part, inner in zip(self.parts, node.blocks, strict=True)
                                for value in part.inputs[len(inner.inputs):])  # fmt: skip
        self.inputs = (*node.inputs, *outside)
        self.outputs = tuple(node.outputs)
        self._places = [self._places_of(part, len(inner.inputs), own, list(outside))
                        for part, inner in zip(self.parts, node.blocks, strict=True)]  # fmt: skip

    @staticmethod
    def _places_of(part: Extract, count: int, first: int, outside: list[Value]) -> list[int]:
        return [first + outside.index(value) for value in part.inputs[count:]]

    def run(self, arguments: list) -> list:
        """Return the node's results."""
        return self._run_if(arguments) if self.node.kind == "prim::If" else self._run_loop(arguments)

    def described(self, depth: int, seconds: dict[object, float]) -> list[Part]:
        """Describe how its blocks run now."""
        what = "branch" if self.node.kind == "prim::If" else "loop"
        own = Part(depth, what, 1, self.node.source_range, self.reason, seconds.get(self))
        return [own, *(part for body in self.bodies for part in body.parts(depth + 1))]

    def _run_if(self, arguments: list) -> list:
        side = 0 if arguments[0] else 1
        return self.bodies[side]([arguments[place] for place in self._places[side]])

    def _run_loop(self, arguments: list) -> list:
        """Run a loop round by round; its body is a sequence of segments."""
        limit, condition, *carried = arguments[: len(self.node.inputs)]
        outside, count = [arguments[place] for place in self._places[0]], 0
        while count < limit and condition:
            condition, *carried = self.bodies[0]([count, *carried, *outside])
            count += 1
        return carried


class Segmented:
    """The segments of a graph, in order. At first there is one, or several if there are operators on quantized tensors or a
    cut.

    `seconds`, if set, adds up the time of each segment. `at_once`: the first segment's program is made when it is first
    reached.
    `written_later`: the indices of results that are written to outside.
    """

    is_whole = False

    def __init__(
        self, graph: Graph, name: str, settings: Settings, cut: Cut | None = None, at_once: bool = False,
        written_later: frozenset[int] = frozenset(),
    ):  # fmt: skip
        self.graph = graph
        self.name = name
        self.settings = settings
        self.seconds: dict[object, float] | None = None
        self._memory = Memory(graph, written_later)
        nodes = [node for node in graph.nodes if node.kind != "prim::Constant"]
        self._lock = threading.Lock()
        apart = quantized_nodes(graph)
        # Segments cannot pass quantized tensors to each other, so these nodes decide where the graph is split. The node in
        # `cut` may then be missed here; capturing its segment fails there again, and the segment is split.
        if apart:
            pieces = self._split_around(nodes, apart)
        elif cut is not None:
            pieces = self._split_at(nodes, cut.node, str(cut))
        else:
            pieces = self._make_segments(nodes, at_once=at_once)
        self.steps = self._with_last_uses(list(pieces))

    @property
    def segments(self) -> list[Segment | Branching]:
        """Return the current segments."""
        return [segment for segment, _ in self.steps]

    def _with_last_uses(self, segments: Sequence[Segment | Branching]) -> tuple:
        """Pair each segment with the values that nothing reads after it."""
        kept, dead = set(self.graph.outputs), []
        for segment in reversed(segments):
            dead.append([value for value in dict.fromkeys((*segment.inputs, *segment.outputs)) if value not in kept])
            kept.update(segment.inputs)
        return tuple(zip(segments, reversed(dead), strict=True))

    def __call__(self, arguments: Sequence[object]) -> list:
        """Return the graph's results."""
        values: dict[Value, object] = dict(zip(self.graph.inputs, arguments, strict=True))
        entered: list[ScriptObject] = []
        steps = self.steps
        try:
            for segment, dead in steps:
                self._run(segment, values, entered)
                for value in dead:
                    values.pop(value, None)
        except BaseException:
            for manager in reversed(entered):
                run_with_executor(manager.type.find_method("__exit__"), [manager, None, None, None])
            raise
        if any(segment.cut is not None for segment, _ in steps):
            self._cut(steps)
        return [_value_of(value, values) for value in self.graph.outputs]

    def _run(self, segment: Segment | Branching, values: dict[Value, object], entered: list[ScriptObject]) -> None:
        """Run a segment, or its pieces if it is cut now, and add its outputs to `values`."""
        given = [_value_of(value, values) for value in segment.inputs]
        results = segment.run(given) if self.seconds is None else self._run_timed(segment, given)
        if results is None:
            for piece in self._pieces_of(segment):
                self._run(piece, values, entered)
            return
        values.update(zip(segment.outputs, results, strict=True))
        if segment.entered:
            _note_entered(segment.entered, values, entered)

    def _run_timed(self, segment: Segment | Branching, given: list) -> list:
        """Run a segment and add up its time."""
        start = time.perf_counter()
        results = segment.run(given)
        self.seconds[segment] = self.seconds.get(segment, 0.0) + time.perf_counter() - start
        return results

    def entry(self, constants: object) -> None:
        """Return None: only running the segments shows where to cut them."""

    def watch(self, seconds: dict[object, float] | None) -> None:
        """Add up the time of each segment in this dict, or stop doing so."""
        self.seconds = seconds
        for segment in self.segments:
            for body in getattr(segment, "bodies", ()):
                body.watch(seconds)

    def parts(self, depth: int = 0) -> list[Part]:
        """Describe how the graph runs now, segment by segment."""
        return [part for segment in self.segments for part in segment.described(depth, self.seconds or {})]

    def _cut(self, steps: tuple) -> None:
        """Replace each segment that was cut by its pieces, unless another thread has done so."""
        with self._lock:
            if self.steps is not steps:
                return
        pieces = [piece for segment, _ in steps for piece in self._leaf_segments(segment)]
        joined = self._with_last_uses(list(self._join_interpreted(pieces)))
        with self._lock:
            if self.steps is steps:
                self.steps = joined

    def _leaf_segments(self, segment: Segment | Branching) -> Iterator[Segment | Branching]:
        """Yield a segment, or, if it is cut, its pieces that are not cut themselves."""
        if segment.cut is None:
            yield segment
            return
        for piece in self._pieces_of(segment):
            yield from self._leaf_segments(piece)

    def _pieces_of(self, segment: Segment) -> list[Segment | Branching]:
        """Return the pieces of a cut segment; they are made once."""
        with self._lock:
            if not segment.pieces:
                segment.pieces = list(self._split_at(segment.nodes, *segment.cut))
            return segment.pieces

    def _split_at(self, nodes: Sequence[Node], cut: Node, reason: str) -> Iterator[Segment | Branching]:
        """Yield segments for the nodes before `cut`, for `cut` itself, and for the nodes after it."""
        place = nodes.index(cut)
        yield from self._make_segments(nodes[:place])
        if cut.kind in ("prim::If", "prim::Loop") and _tensor_nodes(cut) >= _MIN_TENSOR_NODES:
            yield Branching(cut, self.name, self.settings, self._memory, reason)
        else:
            yield from self._make_segments([cut], reason)
        yield from self._make_segments(nodes[place + 1 :])

    def _split_around(self, nodes: Sequence[Node], apart: set[Node]) -> Iterator[Segment]:
        """Yield segments that alternate between nodes in `apart` and other nodes."""
        for is_apart, group in groupby(nodes, apart.__contains__):
            yield from self._make_segments(list(group), "operators on quantized tensors" if is_apart else "")

    def _join_interpreted(self, pieces: Sequence[Segment | Branching]) -> Iterator[Segment | Branching]:
        """Yield the pieces, with adjacent ones that only the interpreter runs joined."""
        for interpreted, group in groupby(pieces, lambda piece: isinstance(piece, Segment) and not piece.may_be_native):
            found = list(group)
            if interpreted and len(found) > 1:
                nodes = [node for piece in found for node in piece.nodes]
                reason = next((piece.reason for piece in found if piece.reason), "")
                yield Segment(nodes, self.graph.block, self.name, self.settings, self._memory, reason or TOO_FEW)
            else:
                yield from found

    def _make_segments(self, nodes: Sequence[Node], reason: str = "", at_once: bool = True) -> Iterator[Segment]:
        if nodes:
            yield Segment(nodes, self.graph.block, self.name, self.settings, self._memory, reason, at_once)


def quantized_nodes(graph: Graph) -> set[Node]:
    """Find the operators on quantized tensors among a graph's own nodes, and the nodes that only fetch their packed weights."""
    found = {node for node in graph.nodes if node.kind.startswith("quantized::") or node.kind in _QUANTIZING}
    for node in reversed(list(graph.nodes)):
        if node.kind == "prim::GetAttr" and all(use.user in found for value in node.outputs for use in value.uses):
            found.add(node)
    return found


def _value_of(value: Value, values: dict[Value, object]) -> object:
    return value.constant() if value.is_constant else values[value]


def _note_entered(nodes: Sequence[Node], values: dict[Value, object], entered: list[ScriptObject]) -> None:
    """Update the list of context managers that are open between segments."""
    for node in nodes:
        manager = _value_of(node.input(), values)
        if node.kind == "prim::Enter":
            entered.append(manager)
        elif manager in entered:
            entered.remove(manager)


def _tensor_nodes(node: Node) -> int:
    return sum(map(_count_tensor_operators, (each for block in node.blocks for each in block.nodes)))


def _count_tensor_operators(node: Node) -> int:
    """Count the operators on tensors in a node."""
    if node.blocks:
        return _tensor_nodes(node)
    return int(node.kind.startswith("aten::") and getattr(operator_of(node), "op", None) is not None)
