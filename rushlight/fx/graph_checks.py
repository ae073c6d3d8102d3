"""The checks of `Graph.lint`: is the list of nodes a well-formed program?

In: a graph. Out: nothing, or a RuntimeError that names the node and the fault and prints the graph.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NoReturn

from rushlight.fx.node import OPCODES, Node

if TYPE_CHECKING:
    from rushlight.fx.node import NodeGraph


def lint(graph: NodeGraph) -> None:
    """Check order, names, links between inputs and users, opcodes, and that targets exist in the owning module.

    Raises RuntimeError at the first fault.
    """
    defined: dict[Node, None] = {}
    names: dict[str, Node] = {}
    for node in graph.nodes:
        _check_identity(graph, node, names)
        _check_inputs(graph, node, defined)
        _check_users(graph, node)
        if graph.owning_module is not None:
            _check_reference(graph, node)
        defined[node] = None
        names[node.name] = node
    _check_output(graph, list(defined))


def _fail(graph: NodeGraph, message: str) -> NoReturn:
    raise RuntimeError(f"{message}\n{graph}")


def _check_identity(graph: NodeGraph, node: Node, names: dict[str, Node]) -> None:
    if node.op not in OPCODES:
        _fail(graph, f"Node {node} has unknown opcode {node.op!r}; expected one of {', '.join(OPCODES)}")
    if node.graph is not graph:
        _fail(graph, f"Node {node} stands in this graph but says that it belongs to another one")
    if node.name in names:
        _fail(graph, f"Node redefined name {node.name}: {names[node.name].format_node()} and {node.format_node()}")
    if node._prev._next is not node or node._next._prev is not node:
        _fail(graph, f"Node {node} is linked wrongly between {node._prev} and {node._next}")


def _check_inputs(graph: NodeGraph, node: Node, defined: dict[Node, None]) -> None:
    for used in node._input_nodes:
        if used.graph is not graph:
            _fail(graph, f"Argument '{used}' of Node '{node}' does not belong to this Graph")
        if used._erased:
            _fail(graph, f"Argument '{used}' of Node '{node}' was erased from the graph")
        if used not in defined:
            _fail(
                graph,
                f"Argument '{used}' of Node '{node}' was used before it has been defined! "
                "Please check that Nodes in the graph are topologically ordered",
            )
        if node not in used.users:
            _fail(graph, f"Node '{node}' uses '{used}', which does not list it among its users")


def _check_users(graph: NodeGraph, node: Node) -> None:
    for user in node.users:
        if user._erased or node not in user._input_nodes:
            _fail(graph, f"Node '{node}' lists '{user}' as a user, but that node does not use it")


def _check_output(graph: NodeGraph, nodes: list[Node]) -> None:
    outputs = [node for node in nodes if node.op == "output"]
    if len(outputs) > 1:
        _fail(graph, f"the graph has {len(outputs)} output nodes; expected one")
    if outputs and outputs[0] is not nodes[-1]:
        _fail(graph, f"the output must be the last node, but '{nodes[-1]}' follows it")


def _check_reference(graph: NodeGraph, node: Node) -> None:
    if node.op not in ("get_attr", "call_module"):
        return
    found: Any = graph.owning_module
    for atom in node.target.split("."):
        if not hasattr(found, atom):
            owner = type(found).__name__
            _fail(graph, f"Node {node} target {node.target} references nonexistent attribute {atom} of {owner}")
        found = getattr(found, atom)
    if node.op == "call_module" and not callable(found):
        _fail(graph, f"Node {node} target {node.target} is a {type(found).__name__}, which cannot be called")
