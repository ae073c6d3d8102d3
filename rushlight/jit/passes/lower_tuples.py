"""LowerTuples: remove tuples that are only unpacked.

LowerSimpleTuples requires SSA and guarantees: no `prim::TupleUnpack`, `prim::TupleIndex` of known index or `prim::TupleSlice`
reads a `prim::TupleConstruct`; results of ifs and loops that are tuples made in every branch are split. LowerAllTuples
guarantees that no value of the graph is a tuple: the elements become separate inputs and outputs. RuntimeError where that is
impossible, as for a list of tuples.
"""

from __future__ import annotations

from collections.abc import Sequence

from rushlight.jit.ir.graph import Block, Graph, Node, Value
from rushlight.jit.passes.dead_code_elimination import eliminate_dead_code, eliminate_unused_code
from rushlight.jit.passes.pass_log import PassLog
from rushlight.jit.passes.registry import graph_pass
from rushlight.jit.types.kinds import TupleType

_LOG = PassLog(__file__)
_TAKERS = frozenset(("prim::TupleUnpack", "prim::TupleIndex", "prim::TupleSlice"))
_CARRIERS = frozenset(("prim::If", "prim::Loop", "prim::TupleUnpack", "prim::TupleConstruct", "prim::TupleIndex",
                       "prim::TupleSlice", "prim::Param", "prim::Return", "prim::Constant", "prim::Uninitialized",
                       "prim::unchecked_cast", "prim::CallFunction", "prim::CallMethod"))  # fmt: skip


@graph_pass("LowerSimpleTuples", "_jit_pass_lower_simple_tuples")
def lower_simple_tuples(graph: Graph) -> None:
    """Forward the elements of tuples that are constructed here."""
    _take_apart(graph.block)
    _split_carried(graph.block)
    _take_apart(graph.block)
    eliminate_dead_code(graph)


@graph_pass("LowerAllTuples", "_jit_pass_lower_all_tuples")
def lower_all_tuples(graph: Graph) -> None:
    """Remove all tuples, also those among inputs and outputs of the graph."""
    _Flattener(graph).run()
    eliminate_dead_code(graph)


def forward_elements(graph: Graph) -> None:
    """Forward the elements of tuples constructed in the same or an outer block; ifs and loops are unchanged."""
    _take_apart(graph.block)
    eliminate_unused_code(graph)


def _take_apart(block: Block) -> None:
    for node in block.nodes:
        for inner in node.blocks:
            _take_apart(inner)
        if node.kind in _TAKERS:
            _lower(node)


def _lower(node: Node) -> None:
    """Forward the elements taken out of a node's tuple."""
    made = node.input().node
    if made.kind != "prim::TupleConstruct" or not _LOG.permits("{} reads elements of {} directly", node, made):
        return
    elements = made.inputs
    if node.kind == "prim::TupleUnpack":
        for value, element in zip(node.outputs, elements, strict=True):
            value.replace_all_uses_with(element)
    elif node.kind == "prim::TupleIndex":
        index = node.input(1).constant()
        if type(index) is not int:
            return
        if not -len(elements) <= index < len(elements):
            raise RuntimeError(f"a tuple of {len(elements)} elements has no element {index}: {node!r}")
        node.output.replace_all_uses_with(elements[index])
    else:
        graph = node.graph
        part = graph.create("prim::TupleConstruct", elements[node["beg"] : node["end"]]).insert_before(node)
        part.source_range = node.source_range
        node.output.replace_all_uses_with(part.output.set_type(node.output.type))
    node.destroy()


# Split the results of ifs and loops


def _split_carried(block: Block) -> None:
    for node in block.nodes:
        for inner in node.blocks:
            _split_carried(inner)
        if node.kind == "prim::If":
            _split_if(node)
        elif node.kind == "prim::Loop":
            _split_loop(node)


def _split_if(node: Node) -> None:
    index = 0
    while index < len(node.outputs):
        value = node.outputs[index]
        ends = [block.outputs[index] for block in node.blocks]
        if not isinstance(value.type, TupleType) or not all(map(_has_parts, ends)):
            index += 1
            continue
        if not _LOG.permits("the result %{} of an if is split", value.debug_name):
            return
        elements = [_tuple_elements(end) for end in ends]
        parts = _split_output(node, index)
        for block, each in zip(node.blocks, elements, strict=True):
            block.erase_output(index)
            for offset, element in enumerate(each):
                block.insert_output(index + offset, element)
        index += len(parts)


def _split_loop(node: Node) -> None:
    body, index = node.blocks[0], 0
    while index < len(node.outputs):
        value, begin, end = node.outputs[index], node.input(index + 2), body.outputs[index + 1]
        if not isinstance(value.type, TupleType) or not (_has_parts(begin) and _has_parts(end)):
            index += 1
            continue
        if not _LOG.permits("the carried value %{} of a loop is split", value.debug_name):
            return
        firsts, lasts = _tuple_elements(begin), _tuple_elements(end)
        parts = _split_output(node, index)
        node.remove_input(index + 2)
        for offset, element in enumerate(firsts):
            node.insert_input(index + 2 + offset, element)
        body.erase_output(index + 1)
        for offset, element in enumerate(lasts):
            body.insert_output(index + 1 + offset, element)
        split_input(body, index + 1)
        index += len(parts)


def _has_parts(value: Value) -> bool:
    """Return whether a tuple's elements are available without unpacking it."""
    made = value.node.kind in ("prim::TupleConstruct", "prim::Constant", "prim::Uninitialized")
    return made and isinstance(value.type, TupleType)


def _tuple_elements(value: Value) -> Sequence[Value]:
    """Return the elements of a tuple that is constructed, constant or unused."""
    made = value.node
    if made.kind == "prim::TupleConstruct":
        return made.inputs
    found = []
    for index, kind in enumerate(value.type.elements):
        part = made.graph.create(made.kind).insert_before(made)
        part.source_range = made.source_range
        if made.kind == "prim::Constant" and made["value"][index] is not None:
            part.set("value", made["value"][index])
        found.append(part.output.set_type(kind))
    return found


def _split_output(node: Node, index: int) -> list[Value]:
    """Replace a result by one per element, and construct the tuple after the node."""
    value = node.outputs[index]
    parts = [node.insert_output(index + 1 + offset, kind) for offset, kind in enumerate(value.type.elements)]
    made = node.graph.create("prim::TupleConstruct", parts).insert_after(node)
    made.output.set_type(value.type)
    value.replace_all_uses_with(made.output)
    node.erase_output(index)
    return parts


def split_input(block: Block, index: int) -> list[Value]:
    """Replace a block's input by one per element, and construct the tuple at the block's beginning."""
    value = block.inputs[index]
    parts = [block.insert_input(index + 1 + offset, None, kind) for offset, kind in enumerate(value.type.elements)]
    made = block.prepend(block.graph.create("prim::TupleConstruct", parts))
    made.output.set_type(value.type)
    value.replace_all_uses_with(made.output)
    block.erase_input(index)
    return parts


# Lower all tuples


class _Flattener:
    """Splits all tuples of a graph, inputs first."""

    def __init__(self, graph: Graph):
        self.graph = graph

    def run(self) -> None:
        """Flatten the graph."""
        self._lower_inputs(self.graph.block, 0)
        self._lower_block(self.graph.block)
        self._lower_outputs(self.graph.block, 0)

    def _lower_inputs(self, block: Block, start: int) -> None:
        index = start
        while index < len(block.inputs):
            if isinstance(block.inputs[index].type, TupleType):
                split_input(block, index)
            else:
                index += 1

    def _lower_block(self, block: Block) -> None:
        for node in block.nodes:
            self._lower_node(node)

    def _lower_node(self, node: Node) -> None:
        if node.kind == "prim::Constant" and isinstance(node.output.type, TupleType):
            self._lower_constant(node)
            return
        self._check(node)
        if node.kind in _TAKERS:
            _lower(node)
            return
        if node.kind in ("prim::If", "prim::Loop"):
            self._lower_carrier(node)

    def _lower_carrier(self, node: Node) -> None:
        is_loop = node.kind == "prim::Loop"
        if is_loop:
            self._lower_node_inputs(node, 2)
        for inner in node.blocks:
            self._lower_inputs(inner, 0)
            self._lower_block(inner)
            self._lower_outputs(inner, 1 if is_loop else 0)
        index = 0
        while index < len(node.outputs):
            if isinstance(node.outputs[index].type, TupleType):
                _split_output(node, index)
            else:
                index += 1

    def _lower_node_inputs(self, node: Node, start: int) -> None:
        index = start
        while index < node.input_count:
            value = node.input(index)
            if not isinstance(value.type, TupleType):
                index += 1
                continue
            elements = self._read_elements(value, node)
            node.remove_input(index)
            for offset, element in enumerate(elements):
                node.insert_input(index + offset, element)

    def _lower_outputs(self, block: Block, start: int) -> None:
        self._lower_node_inputs(block.result, start)

    def _read_elements(self, value: Value, reader: Node) -> tuple[Value, ...]:
        if value.node.kind == "prim::TupleConstruct":
            return value.node.inputs
        if value.node.kind == "prim::Uninitialized":
            return tuple(self._insert_uninitialized(value.node, kind) for kind in value.type.elements)
        unpack = self.graph.create("prim::TupleUnpack", [value], 0).insert_before(reader)
        return tuple(unpack.add_output(kind) for kind in value.type.elements)

    def _insert_uninitialized(self, node: Node, kind: object) -> Value:
        return self.graph.create("prim::Uninitialized").insert_before(node).output.set_type(kind)

    def _lower_constant(self, node: Node) -> None:
        parts = []
        for item, kind in zip(node["value"], node.output.type.elements, strict=True):
            part = self.graph.create("prim::Constant").insert_before(node)
            if item is not None:
                part.set("value", item)
            parts.append(part.output.set_type(kind))
            self._lower_node(part)
        made = self.graph.create("prim::TupleConstruct", parts).insert_before(node)
        node.output.replace_all_uses_with(made.output.set_type(node.output.type))
        node.destroy()

    def _check(self, node: Node) -> None:
        if node.kind in _CARRIERS or node.kind == "prim::ListConstruct" and not node.inputs:
            return
        for value in (*node.inputs, *node.outputs):
            if isinstance(value.type, TupleType):
                raise RuntimeError(
                    f"tuple appears in op inputs, but this op does not forward tuples, unsupported kind: {node.kind}; "
                    "take the tuple apart before"
                )
