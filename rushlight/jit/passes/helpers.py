"""Helpers that many passes share."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from rushlight.jit.constants import insert_constant
from rushlight.jit.ir.block import Block
from rushlight.jit.ir.graph import Graph
from rushlight.jit.ir.node import Node, Value
from rushlight.jit.operators.lookup import has_side_effects, operator_of, writes
from rushlight.jit.types.kinds import INT, TENSOR, ListType, Type

NONDETERMINISTIC = frozenset(
    ("aten::dropout", "aten::dropout_", "aten::_fused_dropout", "aten::_standard_gamma", "aten::bernoulli", "aten::bernoulli_",
     "aten::multinomial", "aten::normal", "aten::normal_", "aten::poisson", "aten::binomial", "aten::rrelu", "aten::rand",
     "aten::rand_like", "aten::randint", "aten::randint_like", "aten::randn", "aten::randn_like", "aten::randperm",
     "aten::feature_dropout", "aten::alpha_dropout", "aten::feature_alpha_dropout", "aten::rrelu_with_noise", "aten::uniform_",
     "aten::random_", "aten::exponential_", "aten::geometric_", "aten::cauchy_", "aten::log_normal_", "aten::empty",
     "aten::empty_like", "aten::empty_strided", "aten::new_empty")
)  # fmt: skip
"""Operators of which equal arguments need not give equal results."""

SHAPE_READERS = frozenset(("aten::dim", "aten::size", "aten::numel", "prim::dtype", "prim::device", "prim::layout"))
"""Operators that read a tensor's metadata only."""


def full_name(node: Node) -> str:
    """Return the operator of a node with its overload, `aten::add.Tensor`; the kind if it is no operator."""
    operator = operator_of(node)
    if operator is None or not operator.schema.overload:
        return node.kind
    return f"{operator.schema.name}.{operator.schema.overload}"


def is_nondeterministic(node: Node) -> bool:
    """Return whether a node may give different results for the same inputs. Inactive dropout does not."""
    if node.kind not in NONDETERMINISTIC:
        return False
    return not (node.kind == "aten::dropout" and node.input_count == 3 and node.input(2).constant(True) is False)


def is_pure(node: Node) -> bool:
    """Return whether a node without blocks has no effects, and results that depend only on its inputs."""
    return not (has_side_effects(node) or writes(node) or is_nondeterministic(node) or node.blocks)


def constant_before(node: Node, value: object, kind: Type | None = None) -> Value:
    """Insert a constant before a node."""
    graph = node.graph
    with graph.inserting(before=node), graph.source(node.source_range):
        made = insert_constant(graph, value)
    return made if kind is None else made.set_type(kind)


def insert_before(
    node: Node, kind: str, inputs: Iterable[Value], result: Type = TENSOR, attributes: dict[str, object] | None = None
) -> Value:
    """Insert a node with one result before another, with the same source range."""
    graph = node.graph
    made = graph.create(kind, inputs).insert_before(node)
    made.source_range, made.scope = node.source_range, node.scope
    made.attributes.update(attributes or {})
    return made.output.set_type(result)


def int_list_before(node: Node, numbers: Sequence[int]) -> Value:
    """Insert a list of ints as a constant before a node."""
    made = insert_before(node, "prim::Constant", (), ListType(INT))
    made.node.set("value", list(numbers))
    return made


def replace_with(node: Node, value: Value) -> None:
    """Replace the uses of a node's only result by another value, and remove the node."""
    node.output.replace_all_uses_with(value)
    node.destroy()


def splice_block(node: Node, block: Block) -> None:
    """Move a block's nodes before the node that contains it, and replace the node's results by the block's."""
    for each in block.nodes:
        each.move_before(node)
    for result, value in zip(node.outputs, block.outputs, strict=True):
        result.replace_all_uses_with(value)


def list_elements(value: Value) -> list[Value] | None:
    """Return the elements of a list from a prim::ListConstruct; None for other lists."""
    return list(value.node.inputs) if value.node.kind == "prim::ListConstruct" else None


def constant_ints(value: Value) -> list[int] | None:
    """Return a known list of ints: a constant, or a list of constants."""
    found = value.constant()
    if isinstance(found, list | tuple) and all(type(each) is int for each in found):
        return list(found)
    parts = list_elements(value)
    if parts is None or not all(part.is_constant and type(part.constant()) is int for part in parts):
        return None
    return [part.constant() for part in parts]


def nodes_inside_out(block: Block) -> Iterator[Node]:
    """Yield the nodes of a block; those of inner blocks come before their node. The current one may be destroyed."""
    for node in block.nodes:
        for inner in node.blocks:
            yield from nodes_inside_out(inner)
        yield node


def held_graphs(graph: Graph) -> list[Graph]:
    """Return the graphs that nodes of a graph hold."""
    found = (node.attributes.get("Subgraph") for node in graph.all_nodes())
    return [each for each in found if isinstance(each, Graph)]
