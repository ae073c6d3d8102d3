"""Kept plans: plans of captured graphs, so that another process need not trace the graph to aten operators again.

In: dynamo's graph of library calls, without gradients and with fixed sizes. Out: a callable that runs a kept plan, or nothing.
The key covers all inputs of tracing and lowering: calls and their arguments, the metadata of inputs and attributes, the
thread's modes, and the library's version. Stage: between dynamo and inductor.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable

from rushlight.core.dtype import get_default_dtype
from rushlight.core.lazy_module import LazyModule
from rushlight.core.naming import own_module
from rushlight.core.storage import StorageImpl
from rushlight.core.tensor import Tensor
from rushlight.core.thread_state import state
from rushlight.core.wrapper_subclasses import is_constant_of_graphs
from rushlight.fx.graph_module import GraphModule
from rushlight.fx.node import Node
from rushlight.fx.targets import qualified_name, resolve
from rushlight.inductor import plan_cache
from rushlight.inductor.compile_fx import runner
from rushlight.inductor.compiled import CompiledGraph
from rushlight.inductor.options import Options
from rushlight.inductor.plan import Plan
from rushlight.inductor.plan_cache import Unknown, argument_text
from rushlight.ops import library
from rushlight.ops.dispatcher import OpOverload

pieces = LazyModule("rushlight.inductor.pieces")

# Folders of the library whose code determines a graph's plan.
_SOURCES = (
    "amp", "aot", "autograd", "compiler", "core", "dynamo", "fft", "fx", "inductor", "linalg", "nn", "ops", "quantized",
    "sparse", "special", "utils",
)  # fmt: skip


class KeptPlans:
    """The plans of captured graphs, compiled with these options."""

    def __init__(self, options: Options) -> None:
        self.options = options

    def key_of(self, module: GraphModule) -> str | None:
        """Return the key of a graph's plan; None if the graph must be traced each time."""
        try:
            return self.name_of(_Description(module).text())
        except Unknown:
            return None

    def name_of(self, text: str) -> str | None:
        """Return the key of a described object under the thread's current modes; None if they prevent keeping."""
        cast = state.autocast
        if self.options.debug or self.options.autotune or state.modes or (cast is not None and cast.enabled):
            return None
        if library.has_foreign_kernels():
            return None
        modes = (state.grad_enabled, state.inference, state.include, state.exclude, get_default_dtype())
        return plan_cache.digest(f"{modes}\n{text}", self.options, _SOURCES)

    def find(self, key: str, module: GraphModule, trace: Callable[[], GraphModule]) -> tuple[Callable[..., tuple], Plan] | None:
        """Load a kept plan and return a callable that runs it, and the plan. `trace` makes the aten graph, for inspection of
        kernels."""
        found = plan_cache.load(key)
        if found is None:
            return None
        plan, built = found
        details = functools.cache(lambda: pieces.lower(trace(), self.options, lambda stage, text, *more: None))
        return runner(CompiledGraph, module, plan, built, details), plan

    def keep(self, key: str, attributes: dict[str, Tensor], traced: GraphModule, constants: dict[str, Tensor]) -> bool:
        """Keep the plan of a captured graph with these attributes, if the aten graph's plan was kept.

        Nothing is kept if the aten graph has constants that are no attributes of the captured graph.
        """
        names = {id(tensor): name for name, tensor in attributes.items()}
        targets = {target: names.get(id(tensor)) for target, tensor in constants.items()}
        plan_key = traced.meta.get("plan_key")
        return plan_key is not None and None not in targets.values() and plan_cache.keep_also(plan_key, key, targets)


def gives_inputs(plan: Plan) -> bool:
    """Return whether results share memory with inputs or constants."""
    return any(view.buffer and view.buffer not in plan.outputs for view in plan.views)


class _Description:
    """The text of a captured graph. Unknown if the text would be incomplete."""

    def __init__(self, module: GraphModule) -> None:
        self.module = module
        self._storages: dict[StorageImpl, int] = {}
        self._names: dict[object, str] = {}

    def text(self) -> str:
        """Return a line for each node."""
        return "\n".join(map(self._describe_node, self.module.graph.nodes))

    def _describe_node(self, node: Node) -> str:
        called = f"{node.name} {argument_text(node.args)} {argument_text(node.kwargs)}"
        if node.op == "call_function" and node.target is getattr:
            return f"{self._member_name(node.args[1])} {called}"
        if node.op == "call_function":
            return f"{self._function_name(node.target)} {called}"
        if node.op == "call_method":
            return f"{self._member_name(node.target)} {called}"
        if node.op == "output":
            return called
        value = node.meta.get("val")
        if not isinstance(value, Tensor):
            raise Unknown
        if node.op == "get_attr" and is_constant_of_graphs(type(getattr(self.module, node.target))):
            raise Unknown  # its inner tensors become part of the graph
        return f"{node.op} {node.name} {plan_cache.describe(value, self._storages)} {value.requires_grad}"

    def _function_name(self, target: Callable) -> str:
        name = self._names.get(target)
        if name is None:
            name = qualified_name(target)
            if not _is_own(target) or resolve(name) is not target:
                raise Unknown
            self._names[target] = name
        return name

    def _member_name(self, name: str) -> str:
        """Return a method or attribute of Tensor."""
        if name not in self._names:
            found = getattr(Tensor, name, None)
            if not _is_own(found.fget if isinstance(found, property) else found):
                raise Unknown
            self._names[name] = f".{name}"
        return self._names[name]


def _is_own(function: object) -> bool:
    """Return whether a function belongs to the library or is a Python operator, which calls methods."""
    if isinstance(function, OpOverload):
        return function.namespace == "aten"
    if getattr(operator, getattr(function, "__name__", ""), None) is function:
        return True
    owner = getattr(function, "__objclass__", function)
    return own_module(owner).partition(".")[0] == "rushlight"
