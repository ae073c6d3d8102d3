"""`freeze` and `optimize_for_inference`: modules in evaluation whose weights are constants of their code.

In: a ScriptModule. Out: another, with only the attributes that are still read, assigned or preserved. Stage: jit, after
scripting; the passes are `passes/freeze_module.py` and `passes/fold_frozen_layers.py`.
"""

from __future__ import annotations

from collections.abc import Sequence

from rushlight.jit.concrete import ConcreteModule
from rushlight.jit.function import Function
from rushlight.jit.ir.graph import Graph
from rushlight.jit.module import ScriptModule
from rushlight.jit.module_types import unique_name
from rushlight.jit.passes.constant_propagation import constant_propagation
from rushlight.jit.passes.fold_frozen_layers import (
    fold_frozen_conv_add_or_sub,
    fold_frozen_conv_batch_norm,
    fold_frozen_conv_mul_or_div,
    fold_frozen_linear_batch_norm,
)
from rushlight.jit.passes.freeze_module import freeze_graph
from rushlight.jit.passes.functional_activations import functional_to_inplace_activation
from rushlight.jit.passes.inline import inline
from rushlight.jit.passes.peephole import peephole_optimize
from rushlight.jit.passes.remove_dropout import remove_dropout
from rushlight.jit.schema import Argument, FunctionSchema
from rushlight.jit.types.kinds import ClassType
from rushlight.nn import Module


def freeze(mod: ScriptModule, preserved_attrs: Sequence[str] | None = None, optimize_numerics: bool = True) -> ScriptModule:
    """Return a copy of a scripted module whose parameters and attributes are constants. It is for evaluation: RuntimeError for
    a module in training mode, unless `training` is preserved.

    `preserved_attrs` names attributes, dotted inside submodules, and methods that the copy keeps. `optimize_numerics` also
    folds batch norms and arithmetic into the layers before them, which changes results by rounding.
    """
    if not isinstance(mod, ScriptModule):
        raise RuntimeError(
            "Freezing expects a ScriptModule as input. Please use torch.jit.script or torch.jit.trace to script your "
            f"'nn.Module', which is a {type(mod).__name__} here."
        )
    kept = list(preserved_attrs or ())
    if mod.training and "training" not in kept:
        raise RuntimeError(
            "Freezing is currently only implemented for modules in eval mode. Please call .eval() on your module before "
            "freezing, or preserve 'training'."
        )
    names = ["forward"] if mod._c.type.find_method("forward") is not None else []
    methods = list(dict.fromkeys([*names, *(name for name in kept if mod._c.type.find_method(name) is not None)]))
    attributes = [name for name in kept if name not in methods]
    for name in attributes:
        _check_exists(mod, name)
    made = _freeze(mod, methods, attributes)
    if optimize_numerics:
        run_frozen_optimizations(made, True, [name for name in methods if name != "forward"])
    return made


def _check_exists(mod: ScriptModule, name: str) -> None:
    owner: object = mod
    for step in name.split("."):
        if not hasattr(owner, step):
            raise AttributeError(f"preserved attribute or method '{name}' doesn't exist in {mod.original_name}")
        owner = getattr(owner, step)


def _freeze(mod: ScriptModule, methods: Sequence[str], attributes: Sequence[str]) -> ScriptModule:
    own = mod._c
    graphs: dict[str, Graph] = {}
    for name in methods:
        graph = own.type.find_method(name).graph.copy()
        inline(graph)
        graphs[name] = graph
    kept = [*attributes, *(found for graph in graphs.values() for found in _assigned_paths(graph))]
    for graph in graphs.values():
        freeze_graph(graph, own, kept)
    needed = {name.partition(".")[0] for name in attributes}
    needed |= {found for graph in graphs.values() for found in _used_attributes(graph)}
    return _module_of(mod, graphs, [name for name in own.type.attributes if name in needed | {"training"}])


def _assigned_paths(graph: Graph) -> list[str]:
    """Return the attributes that a method assigns, as dotted paths from the module."""
    paths = {graph.inputs[0]: ""}
    found = []
    for node in graph.all_nodes():
        if node.kind == "prim::GetAttr" and node.input() in paths:
            paths[node.output] = f"{paths[node.input()]}{node['name']}."
        elif node.kind == "prim::SetAttr" and node.input() in paths:
            found.append(f"{paths[node.input()]}{node['name']}")
    return found


def _used_attributes(graph: Graph) -> list[str]:
    """Return the module's own attributes that a method reads or assigns."""
    uses = [use for use in graph.inputs[0].uses if use.user.kind in ("prim::GetAttr", "prim::SetAttr") and use.offset == 0]
    return [use.user["name"] for use in uses]


def _module_of(mod: ScriptModule, graphs: dict[str, Graph], names: Sequence[str]) -> ScriptModule:
    own = mod._c.type
    kind = ClassType(unique_name(own.name), is_module=True)
    for name in names:
        attribute = own.attributes[name]
        kind.add_attribute(name, attribute.type, attribute.is_parameter, attribute.is_buffer)
    made = ScriptModule._make_module(ConcreteModule(Module, kind))
    for name in names:
        for table in ("_parameters", "_buffers", "_modules"):
            if name in getattr(mod, table):
                getattr(made, table)[name] = getattr(mod, table)[name]
                break
        else:
            made.__dict__[name] = mod.__dict__[name]
    made.training = mod.training
    for name, graph in graphs.items():
        graph.inputs[0].type = kind
        function = Function(f"{kind.name}.{name}", graph)
        function.set_graph(graph, _schema_for(own.find_method(name).schema, f"{kind.name}.{name}", kind))
        kind.methods[name] = function
    return made


def _schema_for(schema: FunctionSchema, name: str, kind: ClassType) -> FunctionSchema:
    first = Argument(schema.arguments[0].name, kind)
    return FunctionSchema(name, schema.overload, (first, *schema.arguments[1:]), schema.returns)


def run_frozen_optimizations(
    mod: ScriptModule, optimize_numerics: bool = True, preserved_methods: Sequence[str] | None = None
) -> None:
    """Fold adjacent layers of a frozen module, in place."""
    for name in ("forward", *(preserved_methods or ())):
        method = mod._c.type.methods.get(name)
        if method is not None:
            optimize_frozen_graph(method.graph, optimize_numerics)
            method.set_graph(method.graph, method.schema)


def optimize_frozen_graph(graph: Graph, optimize_numerics: bool = True) -> None:
    """Apply the optimizations for graphs with constant weights."""
    remove_dropout_in_evaluation(graph)
    if optimize_numerics:
        changed = True
        while changed:
            changed = fold_frozen_conv_batch_norm(graph) or fold_frozen_linear_batch_norm(graph)
            changed = fold_frozen_conv_add_or_sub(graph) or fold_frozen_conv_mul_or_div(graph) or changed
    peephole_optimize(graph, True)
    constant_propagation(graph)


def remove_dropout_in_evaluation(graph: Graph) -> None:
    """Drop dropout if all of it is known to be inactive."""
    kinds = ("aten::dropout", "aten::dropout_", "aten::feature_dropout", "aten::feature_dropout_")
    if all(node.input(2).constant() is False for kind in kinds for node in graph.find_all_nodes(kind)):
        remove_dropout(graph)


def optimize_for_inference(mod: ScriptModule, other_methods: Sequence[str] | None = None) -> ScriptModule:
    """Return a frozen module, optimised further: activations work in place where nothing can observe it. A module that is not
    frozen yet is frozen first."""
    made = mod
    if any(attribute.is_parameter or attribute.is_buffer for attribute in mod._c.type.attributes.values()) or mod._modules:
        made = freeze(mod.eval(), list(other_methods or ()))
    for name in ("forward", *(other_methods or ())):
        method = made._c.type.methods.get(name)
        if method is not None:
            functional_to_inplace_activation(method.graph)
            method.set_graph(method.graph, method.schema)
    return made
