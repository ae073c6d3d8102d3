"""The third step: insert observers on the inputs and results of operators to be quantized.

In: a fused graph and qconfigs. Out: the graph with calls of observers (or fake quantization), each named
`activation_post_process_N`; and, in `meta["quantization"]` of the module, the plan for each node.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from rushlight.ao.nn import quantized as nnq
from rushlight.ao.nn.intrinsic import _FusedModule
from rushlight.ao.quantization.fx.configs import Lookup
from rushlight.ao.quantization.fx.roles import (
    ON_UNIT,
    binary_of,
    is_cat,
    is_quantizable_function,
    is_relu,
    is_relu_function,
    keeps_scale,
    module_of,
    name_of,
    tensor_operands,
)
from rushlight.ao.quantization.qconfig import QConfigAny, _assert_valid_qconfig
from rushlight.ao.quantization.qconfig_mapping import FIXED_QPARAMS, QConfigMapping
from rushlight.ao.quantization.quantization_mappings import (
    DEFAULT_DYNAMIC_QUANT_MODULE_MAPPINGS,
    DEFAULT_QAT_MODULE_MAPPINGS,
    get_embedding_static_quant_module_mappings,
)
from rushlight.ao.quantization.utils import (
    activation_is_dynamically_quantized,
    activation_is_statically_quantized,
    weight_dtype,
)
from rushlight.core.dtype import float16, qint8, quint4x2, quint8
from rushlight.core.qscheme import per_channel_affine_float_qparams
from rushlight.fx.graph_module import GraphModule
from rushlight.fx.node import Node
from rushlight.nn import modules as nn
from rushlight.nn.modules.conv import _ConvNd
from rushlight.nn.modules.module import Module

STATIC, DYNAMIC, SAME, CAT, BINARY_ROLE, FIXED = "static", "dynamic", "same", "cat", "binary", "fixed"
NUMBER = "number"  # the role of sums and products with a Python number
UNIT = "unit"  # the role of functions with a known range, such as sigmoid
FUNCTION = "function"  # the role of other functions
_TABLES = (nn.Embedding, nn.EmbeddingBag)
STATIC_LAYERS = {**get_embedding_static_quant_module_mappings(), nn.Softmax: nnq.Softmax}
"""Observed layers to quantized ones: those of eager mode, and Softmax."""


@dataclass
class Plan:
    """The plan for nodes: a role and a qconfig by node name, and the call of the observer of its result.

    `with_relu` maps ReLUs that are fused with the sum or product before them to its name.
    """

    roles: dict[str, str] = field(default_factory=dict)
    qconfigs: dict[str, QConfigAny] = field(default_factory=dict)
    observers: dict[str, str] = field(default_factory=dict)
    with_relu: dict[str, str] = field(default_factory=dict)


def scopes_of(module: GraphModule) -> dict[str, str]:
    """Return the dotted name of the module that each node calls, or in which it is called."""
    found = {}
    for node in module.graph.nodes:
        stack = list(node.meta.get("nn_module_stack", {}).values())
        found[node.name] = node.target if node.op == "call_module" else (stack[-1][0] if stack else "")
    return found


class _Preparing:
    def __init__(self, module: GraphModule, mapping: QConfigMapping, is_qat: bool) -> None:
        self.module, self.is_qat, self.plan = module, is_qat, Plan()
        self.lookup = Lookup(module, mapping, scopes_of(module))
        self.observed: dict[Node, Module] = {}
        self.count = 0

    def run(self) -> None:
        nodes = [node for node in self.module.graph.nodes if node.op not in ("placeholder", "get_attr", "output")]
        for node in nodes:
            self._choose(node)
        for node in nodes:
            self._observe(node)

    # Roles

    def _choose(self, node: Node) -> None:
        qconfig = self.lookup.of(node)
        role = None if qconfig is None else self._role(node, qconfig)
        if role is not None:
            self.plan.roles[node.name], self.plan.qconfigs[node.name] = role, qconfig

    def _role(self, node: Node, qconfig: Any) -> str | None:
        module = module_of(self.module, node)
        if module is not None:
            _assert_valid_qconfig(qconfig, module)
        if self._is_dynamic(module, qconfig):
            return DYNAMIC
        if not activation_is_statically_quantized(qconfig):
            return None
        if self._is_relu_after_binary(node):
            return SAME
        if keeps_scale(self.module, node) and node.args and isinstance(node.args[0], Node):
            return SAME
        if is_cat(node):
            return CAT
        binary, count = binary_of(node), len(tensor_operands(node))
        if binary is not None:
            return BINARY_ROLE if count == 2 else NUMBER if count == 1 and binary != "matmul" else None
        if name_of(node) in ON_UNIT:
            return UNIT
        if is_quantizable_function(node):
            return FUNCTION
        is_layer = type(module) in STATIC_LAYERS and type(module) not in _TABLES
        if not is_layer and (type(module) in FIXED_QPARAMS or name_of(node) in FIXED_QPARAMS):
            return FIXED
        is_layer |= self.is_qat and type(module) in DEFAULT_QAT_MODULE_MAPPINGS
        return STATIC if is_layer and _weight_fits(qconfig, module) else None

    def _is_dynamic(self, module: Module | None, qconfig: Any) -> bool:
        if type(module) in _TABLES:
            weight = qconfig.weight()
            return getattr(weight, "qscheme", None) is per_channel_affine_float_qparams and weight.dtype in (quint8, quint4x2)
        return type(module) in DEFAULT_DYNAMIC_QUANT_MODULE_MAPPINGS and (
            activation_is_dynamically_quantized(qconfig) and weight_dtype(qconfig) in (qint8, float16)
        )

    def _is_relu_after_binary(self, node: Node) -> bool:
        """Record a ReLU after a sum or product that has no other use."""
        before = node.args[0] if node.args else None
        is_one = is_relu(self.module, node) or is_relu_function(node)
        if not is_one or not isinstance(before, Node) or len(before.users) != 1:
            return False
        if self.plan.roles.get(before.name) not in (BINARY_ROLE, NUMBER) or binary_of(before) == "matmul":
            return False
        self.plan.with_relu[node.name] = before.name
        return True

    # Observers

    def _observe(self, node: Node) -> None:
        role, plan = self.plan.roles.get(node.name), self.plan
        if role is None:
            return
        if self.is_qat and role == STATIC:
            self._train(node)
        if role == DYNAMIC:
            self._mark(node)
            return
        qconfig = plan.qconfigs[node.name]
        if node.name in plan.with_relu:
            is_binary = plan.roles[plan.with_relu[node.name]] == BINARY_ROLE
            self._after(node, qconfig.activation() if is_binary else self.observed[node.args[0]])
            return
        inputs = self._inputs(node, role)
        if role != FIXED:
            for each in inputs:
                self._observe_input(each, qconfig)
        if role == SAME:
            self._after(node, self.observed[inputs[0]])
        elif role == CAT:
            self._join(node, inputs, qconfig)
        elif role == NUMBER and node.name in plan.with_relu.values():
            self.observed[node] = self.observed[inputs[0]]
        elif role == NUMBER:
            self._after(node, self.observed[inputs[0]])
        elif node.name not in plan.with_relu.values():
            self._after(node, qconfig.activation())
        self._mark(node)

    def _inputs(self, node: Node, role: str) -> list[Node]:
        if role == CAT:
            return [each for each in node.args[0] if isinstance(each, Node)]
        return tensor_operands(node) if role in (BINARY_ROLE, NUMBER) else [node.args[0]]

    def _mark(self, node: Node) -> None:
        module = module_of(self.module, node)
        if module is not None:
            module.qconfig = self.plan.qconfigs[node.name]
            for layer in module if isinstance(module, _FusedModule) else ():
                layer.qconfig = module.qconfig

    def _train(self, node: Node) -> None:
        """Replace a float layer by its trained form with fake quantization."""
        module = module_of(self.module, node)
        kind = DEFAULT_QAT_MODULE_MAPPINGS.get(type(module))
        if kind is None:
            return
        self._mark(node)
        parent, _, name = node.target.rpartition(".")
        setattr(self.module.get_submodule(parent), name, kind.from_float(module))

    def _observe_input(self, given: Node, qconfig: Any) -> None:
        """Insert an observer of the reading operator on a tensor that has none."""
        if given not in self.observed:
            made = self._insert(given, qconfig.activation())
            given.replace_all_uses_with(made, delete_user_cb=lambda user: user is not made)

    def _after(self, node: Node, observer: Module) -> None:
        made = self._insert(node, observer)
        node.replace_all_uses_with(made, delete_user_cb=lambda user: user is not made)

    def _insert(self, source: Node, observer: Module) -> Node:
        name = f"activation_post_process_{self.count}"
        self.count += 1
        self.module.add_module(name, observer)
        with self.module.graph.inserting_after(source):
            made = self.module.graph.call_module(name, (source,))
        self.plan.observers[source.name] = made.name
        self.observed[source] = self.observed[made] = observer
        return made

    def _join(self, node: Node, inputs: list[Node], qconfig: Any) -> None:
        """Share one observer between all concatenated tensors and the result."""
        shared = self.observed[inputs[0]]
        gone = {id(self.observed[each]) for each in inputs}
        for name, each in list(self.module._modules.items()):
            if id(each) in gone:
                self.module._modules[name] = shared
        for key, each in list(self.observed.items()):
            if id(each) in gone:
                self.observed[key] = shared
        self._after(node, shared)


def _weight_fits(qconfig: Any, module: Module) -> bool:
    """Return whether a qconfig quantizes the layer's weight to qint8, if the layer has a quantized weight."""
    inner = module[0] if isinstance(module, _FusedModule) and len(module._modules) else module
    if not isinstance(inner, nn.Linear | _ConvNd):
        return True
    return qconfig.weight is not None and weight_dtype(qconfig) is qint8


def prepare(module: GraphModule, mapping: QConfigMapping, is_qat: bool) -> GraphModule:
    """Put observers into a fused graph."""
    step = _Preparing(module, mapping, is_qat)
    step.run()
    module.graph.lint()
    module.recompile()
    module.meta["quantization"] = step.plan
    return module
