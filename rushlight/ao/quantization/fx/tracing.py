"""The first two steps: trace a model, and fuse consecutive layers.

In: a model. Out: a GraphModule whose nodes call layers, among them fused ones, as in `fuse_modules`; a linear layer written as
a function of parameters becomes a module.
"""

from __future__ import annotations

from typing import Any

from rushlight.ao.quantization.fuser_method_mappings import DEFAULT_OP_LIST_TO_FUSER_METHOD
from rushlight.ao.quantization.fx.roles import is_relu, module_of, name_of
from rushlight.core.naming import own_module
from rushlight.fx.graph_module import GraphModule
from rushlight.fx.node import Node
from rushlight.fx.tracer import Tracer
from rushlight.nn import modules as nn
from rushlight.nn.modules.module import Module

_NORMS = (nn.BatchNorm1d, nn.BatchNorm2d, nn.BatchNorm3d)


class QuantizationTracer(Tracer):
    """A tracer whose leaves are the library's layers, also quantized ones and observers, and modules that the user excludes."""

    def __init__(self, skipped_module_names: list[str], skipped_module_classes: list[type]) -> None:
        super().__init__()
        self.skipped_module_names, self.skipped_module_classes = skipped_module_names, skipped_module_classes

    def is_leaf_module(self, m: Module, module_qualified_name: str) -> bool:
        """Return whether a module is a leaf."""
        is_skipped = module_qualified_name in self.skipped_module_names or type(m) in self.skipped_module_classes
        is_own = own_module(type(m)).startswith("rushlight.ao.") and not isinstance(m, GraphModule)
        return is_skipped or is_own or super().is_leaf_module(m, module_qualified_name)


def traced(model: Module, custom: Any) -> GraphModule:
    """Return a model as a graph. Its modules are shared with the model."""
    tracer = QuantizationTracer(list(custom.non_traceable_module_names), list(custom.non_traceable_module_classes))
    made = GraphModule(model, tracer.trace(model))
    made.train(model.training)
    for name in custom.preserved_attributes:
        setattr(made, name, getattr(model, name))
    _functions_to_modules(made)
    return made


def _functions_to_modules(module: GraphModule) -> None:
    """Turn `F.linear` of parameters into a module."""
    for node in list(module.graph.nodes):
        if name_of(node) != "linear" or node.op != "call_function":
            continue
        weight, bias = (_argument(node, position, name) for position, name in ((1, "weight"), (2, "bias")))
        is_fixed = isinstance(weight, Node) and weight.op == "get_attr" and (bias is None or _is_attribute(bias))
        if not is_fixed:
            continue
        values = [None if each is None else _value(module, each.target) for each in (weight, bias)]
        layer = nn.Linear(values[0].shape[1], values[0].shape[0], bias is not None)
        layer.weight, layer.bias = values
        layer.train(module.training)
        name = f"{node.name}_module"
        module.add_submodule(name, layer)
        with module.graph.inserting_before(node):
            node.replace_all_uses_with(made := module.graph.call_module(name, (_argument(node, 0, "input"),)))
        made.meta.update(node.meta)
        module.graph.erase_node(node)
    module.graph.eliminate_dead_code()
    module.recompile()


def _argument(node: Node, position: int, name: str) -> Any:
    return node.args[position] if len(node.args) > position else node.kwargs.get(name)


def _is_attribute(value: Any) -> bool:
    return isinstance(value, Node) and value.op == "get_attr"


def _value(module: Module, path: str) -> Any:
    for name in path.split("."):
        module = getattr(module, name)
    return module


# Fusing


def fuse(module: GraphModule, is_qat: bool) -> None:
    """Fuse a convolution or linear layer with the batch normalisation and ReLU after it, if the tensors between them have no
    other use."""
    for node in list(module.graph.nodes):
        if node.op == "call_module" and not node._erased:
            _fuse_from(module, node, is_qat)
    module.graph.eliminate_dead_code()
    module.delete_all_unused_submodules()
    module.recompile()


def _next(module: GraphModule, node: Node) -> Node | None:
    """Return the only user of a node, if the node is its only tensor input and its module is called once."""
    users = list(node.users)
    return users[0] if len(users) == 1 and users[0].op != "output" else None


def _fuse_from(module: GraphModule, node: Node, is_qat: bool) -> None:
    chain = [node]
    norm = _next(module, node)
    if norm is not None and type(module_of(module, norm)) in _NORMS and type(module_of(module, node)) not in _NORMS:
        chain.append(norm)
    last = _next(module, chain[-1])
    if last is not None and is_relu(module, last):
        chain.append(last)
    if _norm_goes_with_relu(module, chain):
        return
    while len(chain) > 1:
        layers = [module_of(module, each) or nn.ReLU().train(module.training) for each in chain]
        fusing = DEFAULT_OP_LIST_TO_FUSER_METHOD.get(tuple(map(type, layers)))
        if fusing is not None and _called_once(module, chain):
            _replace_by_fused(module, chain, fusing(is_qat, *layers))
            if type(layers[-1]) in _NORMS:  # a linear layer takes the ReLU that follows its normalisation
                _fuse_from(module, node, is_qat)
            return
        chain.pop()


def _norm_goes_with_relu(module: GraphModule, chain: list[Node]) -> bool:
    """Return whether a batch normalisation is fused with the ReLU after it and not with the layer before it, as in torch: after
    transposed convolutions."""
    kinds = tuple(type(module_of(module, each) or nn.ReLU()) for each in chain)
    return len(kinds) == 3 and kinds not in DEFAULT_OP_LIST_TO_FUSER_METHOD and kinds[1:] in DEFAULT_OP_LIST_TO_FUSER_METHOD


def _called_once(module: GraphModule, chain: list[Node]) -> bool:
    targets = [each.target for each in module.graph.nodes if each.op == "call_module"]
    return all(targets.count(each.target) == 1 for each in chain if each.op == "call_module")


def _replace_by_fused(module: GraphModule, chain: list[Node], fused: Module) -> None:
    """Replace the first layer by a fused module, and remove the others."""
    parent, _, name = chain[0].target.rpartition(".")
    setattr(module.get_submodule(parent), name, fused)
    chain[-1].replace_all_uses_with(chain[0])
    for each in reversed(chain[1:]):
        module.graph.erase_node(each)
