"""Traced modules: a type for each instance, and methods from the recording of its `forward`.

In: a module before the trace, and the recorded graph after it, where calls of modules are `prim::TracedModuleForward` nodes
with a block, and their parameters `prim::TracedAttr` nodes with a path. Out: a method for each call (`forward`, `forward1`,
...), the graph with `prim::CallMethod` and `prim::GetAttr`.
"""

from __future__ import annotations

from rushlight.core.tensor import Tensor
from rushlight.core.wrapper_subclasses import is_constant_of_graphs
from rushlight.jit.compiler import qualified_name
from rushlight.jit.concrete import ConcreteModule
from rushlight.jit.function import Function
from rushlight.jit.ir.graph import Block, Graph, Node, Value
from rushlight.jit.module import ScriptModule
from rushlight.jit.module_types import unique_name
from rushlight.jit.passes.dead_code_elimination import eliminate_dead_code
from rushlight.jit.passes.normalize_ops import normalize_ops
from rushlight.jit.runtime.objects import ExtensionObject, ScriptObject
from rushlight.jit.tracing.state import TracingState, complete_type
from rushlight.jit.types.extensions import extension_type_of
from rushlight.jit.types.kinds import BOOL, NONE, TENSOR, ClassType, OptionalType, TupleType, Type
from rushlight.jit.types.relations import unshaped
from rushlight.nn import Module

Path = tuple[str, ...]
ATTRIBUTE = "prim::TracedAttr"
_MADE = "made_by_tracing"


class TracedModule(ScriptModule):
    """A module inside a traced one."""

    def _get_name(self) -> str:
        return self.original_name


class TopLevelTracedModule(TracedModule):
    """A module that `trace` made."""


def traced_module(module: Module, top: bool = True, seen: dict[Module, ScriptModule] | None = None) -> ScriptModule:
    """Return a scripted module without methods, which shares parameters and buffers with the original. Scripted submodules are
    kept."""
    seen = {} if seen is None else seen
    if module in seen:
        return seen[module]
    if isinstance(module, ScriptModule) and module._c is not None:
        return module
    kind = ClassType(unique_name(qualified_name(type(module))), is_module=True)
    children = {}
    kind_of_made = TopLevelTracedModule if top else TracedModule
    made = seen[module] = kind_of_made.__new__(kind_of_made)
    Module.__init__(made)
    for name, child in module._modules.items():
        made._modules[name] = children[name] = None if child is None else traced_module(child, False, seen)
    made._parameters.update(_attributes_of(module._parameters))
    made._buffers.update(_attributes_of(module._buffers))
    for name, parameter in made._parameters.items():
        kind.add_attribute(name, TENSOR if parameter is not None else NONE, is_parameter=True)
    for name, buffer in made._buffers.items():
        kind.add_attribute(name, TENSOR if buffer is not None else NONE, is_buffer=True)
    made._non_persistent_buffers_set = set(module._non_persistent_buffers_set)
    for name, child in children.items():
        kind.add_attribute(name, NONE if child is None else child._c.type)
    for name, value in vars(module).items():
        packed = extension_type_of(value)
        if packed is not None:
            kind.add_attribute(name, packed)
            made.__dict__[name] = ExtensionObject(packed, value)
    kind.add_attribute("training", BOOL)
    kind.add_attribute("_is_full_backward_hook", OptionalType(BOOL))
    made.__dict__["training"] = module.training
    concrete = {name: child._concrete for name, child in children.items() if child is not None}
    made._take_type(ConcreteModule(type(module), kind, concrete))
    return made


def _attributes_of(tensors: dict[str, Tensor | None]) -> dict[str, Tensor | None]:
    """Return the tensors that become a traced module's attributes; others are embedded in the graph as constants."""
    return {name: tensor for name, tensor in tensors.items() if not is_constant_of_graphs(type(tensor))}


def register_modules(tracing: TracingState, module: Module, scripted: ScriptModule, root: Value) -> None:
    """Bind a module's object, its parameters, buffers and packed weights to values, and those of its submodules."""
    _register_paths(tracing, module, ())
    tracing.module_paths.pop(module, None)
    tracing.objects[()] = tracing.objects[scripted._c] = root
    _register_attributes(tracing, scripted, ())


def _register_paths(tracing: TracingState, module: Module, path: Path) -> None:
    for name, child in module.named_children():
        tracing.module_paths[child] = (*path, name)
        _register_paths(tracing, child, (*path, name))


def _register_attributes(tracing: TracingState, scripted: ScriptModule, path: Path) -> None:
    tensors: dict[str, Tensor | None] = {**scripted._parameters, **scripted._buffers}
    for name, tensor in tensors.items():
        if tensor is not None and tensor._impl not in tracing.values:
            tracing.set_value(tensor, _attribute(tracing.graph, (*path, name), TENSOR))
    for name, packed in vars(scripted).items():
        if isinstance(packed, ExtensionObject):
            tracing.objects.setdefault(packed.held, _attribute(tracing.graph, (*path, name), packed.type))
    for name, child in scripted._modules.items():
        if child is None:
            continue
        value = _attribute(tracing.graph, (*path, name), child._c.type)
        tracing.objects[(*path, name)] = value
        tracing.objects.setdefault(child._c, value)
        _register_attributes(tracing, child, (*path, name))


def _attribute(graph: Graph, path: Path, kind: object) -> Value:
    node = graph.insert(ATTRIBUTE).set("path", path)
    return node.output.set_type(kind)


def make_methods(graph: Graph, scripted: ScriptModule, root: Value) -> None:
    """Turn recorded calls of modules into methods, and the attributes' nodes into `prim::GetAttr`."""
    made = [graph]
    _make_methods(graph.block, scripted, made)
    _read_attributes(graph.block, root, ())
    for each in made:
        for node in each.find_all_nodes("prim::CallMethod"):
            if node.attributes.pop(_MADE, False):
                node.output.set_type(unshaped(node.output.type))
        normalize_ops(each)
        eliminate_dead_code(each)


def _make_methods(block: Block, scripted: ScriptModule, made: list[Graph]) -> None:
    for node in list(block.nodes):
        for inner in node.blocks:
            _make_methods(inner, scripted, made)
        if node.kind == "prim::TracedModuleForward":
            made.append(_make_method(node, scripted))


def _make_method(node: Node, scripted: ScriptModule) -> Graph:
    """Turn a node's block into a method of its module, and the node into a call. Returns the method's graph."""
    path, inner = node["path"], node.blocks[0]
    owner: ScriptObject = _submodule_at(scripted, path)._c
    captured = _captured_values(inner, path)
    given = _values_used_outside(inner)
    graph = Graph()
    self_value = graph.add_input("self", owner.type)
    copies = {value: graph.add_input(_name_of(value), _captured_type(value, scripted)) for value in captured}

    def copied(value: Value) -> Value:
        if value not in copies:  # an attribute of a submodule
            copies[value] = _copy_attribute(graph, value)
        return copies[value]

    for each in inner.nodes:
        copy = graph.insert_node(graph.clone_node(each, copied))
        copies.update(zip(each.outputs, copy.outputs, strict=True))
    results = [copied(value) for value in given]
    _set_results(graph, results)
    _read_attributes(graph.block, self_value, path)
    name = _free_name(owner.type)
    owner.type.methods[name] = Function(f"{owner.type.name}.{name}", graph)
    _call(node, name, captured, given)
    return graph


def _captured_type(value: Value, scripted: ScriptModule) -> Type:
    if value.node.kind != ATTRIBUTE or value.type != TENSOR:
        return value.type
    *path, name = value.node["path"]
    return complete_type(getattr(_submodule_at(scripted, tuple(path)), name))


def _copy_attribute(graph: Graph, value: Value) -> Value:
    node = graph.create(ATTRIBUTE).set("path", value.node["path"])
    graph.block.prepend(node)
    return node.output.set_type(value.type)


def _name_of(value: Value) -> str | None:
    return value._name.partition(".")[0] if value.has_debug_name else None


def _submodule_at(scripted: ScriptModule, path: Path) -> ScriptModule:
    for name in path:
        scripted = scripted._modules[name]
    return scripted


def _captured_values(block: Block, path: Path) -> list[Value]:
    """Return the outside values that a block reads, except attributes of its own module: other modules' attributes first."""
    inside = {value for node in block.all_nodes() for value in node.outputs}
    found: dict[Value, None] = {}
    for node in block.all_nodes():
        for value in node.inputs:
            own = value.node.kind == ATTRIBUTE and value.node["path"][: len(path)] == path
            if value not in inside and not own:
                found[value] = None
    return sorted(found, key=lambda value: value.node.kind != ATTRIBUTE)


def _values_used_outside(block: Block) -> list[Value]:
    """Return the values of a block that are used outside."""
    inside = set(block.all_nodes())
    return [value for node in block.nodes for value in node.outputs if any(use.user not in inside for use in value.uses)]


def _set_results(graph: Graph, results: list[Value]) -> None:
    if len(results) == 1:
        graph.register_output(results[0])
    elif results:
        packed = graph.insert("prim::TupleConstruct", results)
        graph.register_output(packed.output.set_type(TupleType(tuple(value.type for value in results))))
    else:
        graph.register_output(graph.insert("prim::Constant").output.set_type(NONE))


def _free_name(kind: ClassType) -> str:
    name, number = "forward", 0
    while name in kind.methods:
        number += 1
        name = f"forward{number}"
    return name


def _call(node: Node, name: str, captured: list[Value], given: list[Value]) -> None:
    """Replace a node by a call."""
    graph = node.graph
    call = graph.create("prim::CallMethod", [node.input(), *captured]).set("name", name).set(_MADE, True).insert_before(node)
    call.source_range = node.source_range
    results = [call.output]
    if len(given) > 1:
        call.output.set_type(TupleType(tuple(value.type for value in given)))
        unpack = graph.create("prim::TupleUnpack", [call.output], 0).insert_before(node)
        results = [unpack.add_output(value.type) for value in given]
    elif given:
        call.output.set_type(given[0].type)
    else:
        call.output.set_type(NONE)
    for old, new in zip(given, results, strict=False):
        old.replace_all_uses_with(new)
    node.destroy()


def _read_attributes(block: Block, self_value: Value, path: Path) -> None:
    """Replace the attributes' nodes in a method by chains of `prim::GetAttr` from its own object: modules first."""
    graph = block.graph
    found: dict[Value, None] = {}
    for node in block.all_nodes():
        for value in node.inputs:
            if value.node.kind == ATTRIBUTE:
                found[value] = None
    for value in block.outputs:
        if value.node.kind == ATTRIBUTE:
            found[value] = None
    for value in sorted(found, key=lambda each: isinstance(each.type, ClassType)):
        below = value.node["path"][len(path) :]
        source = self_value
        place = block.param
        for name in below:
            kind = source.type.attributes[name].type
            node = graph.create("prim::GetAttr", [source]).set("name", name).insert_after(place)
            node.source_range = value.node.source_range
            source, place = node.output.set_type(kind), node
            node.output.debug_name = name if not name.isdecimal() else f"_{name}"
        value.replace_all_uses_with(source)
    for node in list(block.nodes):
        if node.kind == ATTRIBUTE and not node.output.uses:
            node.destroy()
