"""InsertBailOuts: the fallback for a failing guard: the rest of the unoptimized graph, from that place on.

Requires: SSA, `prim::Guard` nodes, no optimization yet that relies on them. Guarantees: no guard is left; each becomes a

    %5 : Float(2, 3, ...) = prim::BailOut[index=0](%template, %x, %live, ...)

whose first input is the one `prim::BailoutTemplate` of the graph, which holds the graph without assumptions; then come the
checked value and the live values that the rest of the graph needs. `build_bailout_graph` makes the rest: it takes those values,
and returns what the graph returns. Inside a loop, the rest consists of the rest of the round, a loop for the remaining rounds,
and the code after it.
"""

from __future__ import annotations

from collections.abc import Iterator

from rushlight.jit.ir.graph import Block, Graph, Node, Value
from rushlight.jit.passes.clear_profiling import erase_shape_information
from rushlight.jit.passes.dead_code_elimination import eliminate_dead_code
from rushlight.jit.passes.pass_log import PassLog
from rushlight.jit.passes.registry import graph_pass
from rushlight.jit.types.kinds import INT, FunctionType

_LOG = PassLog(__file__)
TEMPLATE = "prim::BailoutTemplate"
BAILOUT = "prim::BailOut"


@graph_pass("InsertBailOuts")
def insert_bailouts(graph: Graph) -> None:
    """Turn guards into bailouts."""
    guards = graph.find_all_nodes("prim::Guard")
    if not guards:
        return
    node = graph.block.prepend(graph.create(TEMPLATE)).set("Subgraph", Graph())
    node.output.set_type(FunctionType(None, "bailout"))
    for index, guard in enumerate(guards):
        _LOG.permits("the guard of %{} becomes bailout {}", guard.input().debug_name, index)
        _replace_guard(guard, node.output, index)
    template = graph.copy()
    outer = dict(zip(_values_of(template.block), _values_of(graph.block), strict=True))
    _strip(template)
    for bailout in graph.find_all_nodes(BAILOUT):
        for value in _Rest(template, bailout["index"]).live:
            bailout.add_input(outer[value])
    node.set("Subgraph", template)


def _replace_guard(guard: Node, template: Value, index: int) -> None:
    made = guard.graph.create(BAILOUT, [template, guard.input()]).insert_before(guard).set("index", index)
    made.source_range = guard.source_range
    made.output.copy_metadata(guard.output)
    guard.output.replace_all_uses_with(made.output)
    guard.destroy()


def _values_of(block: Block) -> Iterator[Value]:
    """Yield all values of a graph in order of definition."""
    yield from block.inputs
    for node in block.nodes:
        for inner in node.blocks:
            yield from _values_of(inner)
        yield from node.outputs


def _strip(template: Graph) -> None:
    """Reduce bailouts to their numbers and the value that they pass on, and drop types."""
    for node in template.find_all_nodes(BAILOUT):
        node.remove_input(0)
    template.find_node(TEMPLATE).destroy()
    erase_shape_information(template)


def build_bailout_graph(template: Graph, index: int) -> Graph:
    """Return the rest of the graph from a bailout on; its inputs are the checked value, and the live ones."""
    made = _Rest(template, index).graph
    for node in made.find_all_nodes(BAILOUT):
        node.output.replace_all_uses_with(node.input())
        node.destroy()
    eliminate_dead_code(made)
    return made


class _Rest:
    """The rest of a template from one bailout on, as a graph; `live` are the template's values that are its further inputs."""

    def __init__(self, template: Graph, index: int):
        self.graph = Graph()
        self.live: list[Value] = []
        self.copies: dict[Value, Value] = {}
        start = next(node for node in template.find_all_nodes(BAILOUT) if node["index"] == index)
        self.copies[start.input()] = self.graph.add_input(None, start.input().type)
        self._copy_rest_of_block(start)
        for value in template.outputs:
            self.graph.register_output(self._copy_of(value))

    def _copy_of(self, value: Value) -> Value:
        """Return the counterpart of a template's value: a copy, or an input of the rest."""
        if value not in self.copies:
            if value.is_constant:
                self.copies[value] = self.graph.block.prepend(self.graph.clone_node(value.node, self._copy_of)).output
            else:
                self.copies[value] = self.graph.add_input(None, value.type)
                self.live.append(value)
        return self.copies[value]

    def _copy(self, node: Node) -> None:
        copy = self.graph.block.append(self.graph.clone_node(node, self._copy_of))
        self.copies.update(zip(node.outputs, copy.outputs, strict=True))

    def _copy_rest_of_block(self, start: Node) -> None:
        """Copy the code after a node in its block, and then the code after the block's own node."""
        node, block = start, start.block
        while node is not block.result:
            self._copy(node)
            node = node.next
        owner = block.owner
        if owner is None:
            return
        if owner.kind == "prim::Loop":
            self._append_remaining_rounds(owner)
        else:
            self.copies.update(zip(owner.outputs, map(self._copy_of, block.outputs), strict=True))
        self._copy_rest_of_block(owner.next)

    def _append_remaining_rounds(self, loop: Node) -> None:
        """Append a loop over the rounds that follow the interrupted one. Rounds keep their numbers."""
        body = loop.blocks[0]
        one = self.graph.block.append(self.graph.create("prim::Constant")).set("value", 1).output.set_type(INT)
        done = self._insert_int_operator("aten::add", self._copy_of(body.inputs[0]), one)
        left = self._insert_int_operator("aten::sub", self._copy_of(loop.input()), done)
        made = self.graph.block.append(self.graph.create("prim::Loop", [left, *map(self._copy_of, body.outputs)], 0))
        made.source_range = loop.source_range
        rounds = made.add_block()
        inside = dict(self.copies)
        counter = rounds.add_input(None, INT)
        number = rounds.append(self.graph.create("aten::add", [done, counter])).output.set_type(INT)
        inside[body.inputs[0]] = number
        for value in body.inputs[1:]:
            inside[value] = rounds.add_input(None, value.type)
        self._fill_loop(rounds, body, inside)
        for value in loop.outputs:
            self.copies[value] = made.add_output(value.type)

    def _fill_loop(self, rounds: Block, body: Block, inside: dict[Value, Value]) -> None:
        def value_of(value: Value) -> Value:
            return inside[value] if value in inside else self._copy_of(value)

        for node in body.nodes:
            copy = rounds.append(self.graph.clone_node(node, value_of))
            inside.update(zip(node.outputs, copy.outputs, strict=True))
        for value in body.outputs:
            rounds.add_output(value_of(value))

    def _insert_int_operator(self, kind: str, first: Value, second: Value) -> Value:
        return self.graph.block.append(self.graph.create(kind, [first, second])).output.set_type(INT)
