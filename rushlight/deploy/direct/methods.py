"""Inline calls of methods through interfaces.

In: an inlined graph, and the object whose method it is. Out: the same graph, modified in place. A call of a single object
becomes its method's body. If a number, a string or a branch selects among several objects, the call becomes a chain of
`prim::If`. Calls of unknown objects stay.

    %m : InterfaceType<Step> = prim::ModuleContainerIndex(%layers, %i)          %hit : bool = aten::eq(%i, %0)
    %y : Tensor = prim::CallMethod[name="forward"](%m, %x)            =>        %y : Tensor = prim::If(%hit)
                                                                                  block0(): %layer =
                                                                                  prim::GetAttr[name="0"](%layers) ...
                                                                                  block1(): ...
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from rushlight.jit.ir.graph import Block, Graph, Node, Value
from rushlight.jit.passes.inline import insert_graph, replace_call
from rushlight.jit.runtime.objects import ScriptObject
from rushlight.jit.types import kinds as types
from rushlight.jit.types.relations import implements

_MAX_CALLS = 512
Choice = tuple[Callable[[], Value], Callable[[], Value], types.ClassType]
"""(function that writes the test of a choice, function that writes its object, the object's class)."""


def resolve_methods(graph: Graph, owner: ScriptObject | None) -> None:
    """Replace calls through interfaces by the methods' bodies."""
    _resolve_managers(graph)
    for _ in range(_MAX_CALLS):
        objects = _objects(graph, owner)
        if not any(_resolve(graph, node, objects) for node in graph.find_all_nodes("prim::CallMethod")):
            return


def _resolve_managers(graph: Graph) -> None:
    """Replace `prim::Enter` and `prim::Exit` of user-defined classes by the bodies of `__enter__` and `__exit__`."""
    for node in (*graph.find_all_nodes("prim::Enter"), *graph.find_all_nodes("prim::Exit")):
        kind, is_enter = node.input().type, node.kind == "prim::Enter"
        method = kind.find_method("__enter__" if is_enter else "__exit__") if isinstance(kind, types.ClassType) else None
        if method is None or kind.name.startswith("__torch__.torch."):  # the grad modes have no effect here
            continue
        with graph.inserting(before=node):
            rest = [] if is_enter else [graph.insert("prim::Constant").output.set_type(types.NONE) for _ in range(3)]
        for old, new in zip(node.outputs, insert_graph(node, method.graph, [node.input(), *rest]), strict=False):
            old.replace_all_uses_with(new)
        node.destroy()


def _objects(graph: Graph, owner: ScriptObject | None) -> dict[Value, ScriptObject]:
    """Return value -> object, for the values known to be objects of the module."""
    found: dict[Value, ScriptObject] = {} if owner is None else {graph.inputs[0]: owner}
    for node in graph.all_nodes():
        if node.kind == "prim::GetAttr" and node.input() in found:
            value = found[node.input()].slots[node["name"]]
            if isinstance(value, ScriptObject):
                found[node.output] = value
    return found


def _resolve(graph: Graph, node: Node, objects: dict[Value, ScriptObject]) -> bool:
    """Inline one call. Return False if the call stays."""
    called = node.input()
    if called in objects:
        replace_call(node, objects[called].type.find_method(node["name"]).graph)
        return True
    choices = _find_choices(graph, node, objects)
    if not choices:
        return False
    with graph.inserting(before=node):
        chosen = _write_choices(graph, node, choices)
    for old, new in zip(node.outputs, chosen.outputs, strict=True):
        old.replace_all_uses_with(new)
    node.destroy()
    return True


def _find_choices(graph: Graph, node: Node, objects: dict[Value, ScriptObject]) -> list[Choice]:
    called = node.input()
    if called.node.kind == "prim::ModuleContainerIndex" and called.node.input() in objects:
        container, key = called.node.inputs
        slots = objects[container].slots
        members = [(name, slots[name]) for name in slots if isinstance(slots[name], ScriptObject)]
        return [_member_choice(graph, container, key, name, value.type) for name, value in members]
    if not isinstance(called.type, types.InterfaceType | types.UnionType) or getattr(called.type, "is_module", False):
        return []
    classes = dict.fromkeys(each.output.type for each in graph.find_all_nodes("prim::CreateObject"))
    return [_class_choice(graph, called, each) for each in classes if _is_among(each, called.type)]


def _is_among(kind: types.ClassType, called: types.Type) -> bool:
    return implements(kind, called) if isinstance(called, types.InterfaceType) else kind in called.members


def _member_choice(graph: Graph, container: Value, key: Value, name: str, kind: types.ClassType) -> Choice:
    def test() -> Value:
        known = graph.insert("prim::Constant").set("value", int(name) if key.type is types.INT else name)
        known.output.set_type(key.type)
        return graph.insert("aten::eq", [key, known.output]).output.set_type(types.BOOL)

    return test, lambda: graph.insert("prim::GetAttr", [container]).set("name", name).output.set_type(kind), kind


def _class_choice(graph: Graph, called: Value, kind: types.ClassType) -> Choice:
    def test() -> Value:
        return graph.insert("prim::isinstance", [called]).set("types", [kind]).output.set_type(types.BOOL)

    return test, lambda: graph.insert("prim::unchecked_cast", [called]).output.set_type(kind), kind


def _write_choices(graph: Graph, node: Node, choices: Sequence[Choice]) -> Node:
    """Write a branch for the first choice, and the branches for other choices nested in its else block."""
    test, make, kind = choices[0]
    branch = graph.insert("prim::If", [test()], len(node.outputs))
    branch.source_range = node.source_range
    for value, old in zip(branch.outputs, node.outputs, strict=True):
        value.set_type(old.type)
    first, other = branch.add_block(), branch.add_block()
    with graph.inserting(at_end_of=first):
        inputs = [make(), *node.inputs[1:]]
    for value in insert_graph(first.result, kind.find_method(node["name"]).graph, inputs):
        first.add_output(value)
    with graph.inserting(at_end_of=other):
        if len(choices) > 1:
            results: Sequence[Value] = _write_choices(graph, node, choices[1:]).outputs
        else:
            results = _insert_raise(graph, node, other)
    for value in results:
        other.add_output(value)
    return branch


def _insert_raise(graph: Graph, node: Node, block: Block) -> list[Value]:
    """Raise as for a key that no module has; returns placeholders for the results."""
    texts = [f"nothing has this method {node['name']!r}: the index or key is out of range", "IndexError"]
    message = [graph.insert("prim::Constant").set("value", text).output.set_type(types.STRING) for text in texts]
    raised = graph.insert("prim::RaiseException", message, 0)
    raised.source_range = node.source_range
    return [graph.insert("prim::Uninitialized").output.set_type(value.type) for value in node.outputs]
