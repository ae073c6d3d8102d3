"""The functional form of an exported graph, the result of `run_decompositions`.

In: a graph that may write to its inputs, with its signature. Out: a graph of primitive operators without writes; new contents
of buffers and inputs are outputs before the user's.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from rushlight.aot.decompositions import TRAINING
from rushlight.aot.functionalize import functionalize
from rushlight.core.symbolic import ShapeEnv
from rushlight.core.tensor import Tensor, wrap
from rushlight.dynamo.unknown_sizes import UnknownSizes
from rushlight.dynamo.unknown_values import check_relation
from rushlight.export.errors import UserError
from rushlight.export.graph_signature import (
    ExportGraphSignature,
    InputKind,
    InputSpec,
    OutputKind,
    OutputSpec,
    TensorArgument,
    argument_kind,
)
from rushlight.export.names import add_placeholder
from rushlight.export.tracing import add_checks
from rushlight.fx.fake_tensor import FakeTensorMode
from rushlight.fx.graph import Graph
from rushlight.fx.graph_module import GraphModule
from rushlight.fx.node import Node
from rushlight.fx.proxy_tensor import ModuleRunner, ProxyMode
from rushlight.fx.symbolic_sizes import environment_of, name_symbols
from rushlight.ops.dispatcher import OpOverload
from rushlight.ops.registry import aten

_BATCH_NORM = aten("native_batch_norm")  # writes to running statistics, and has no functional form
_MUTATIONS = {
    InputKind.BUFFER: OutputKind.BUFFER_MUTATION,
    InputKind.PARAMETER: OutputKind.PARAMETER_MUTATION,
    InputKind.USER_INPUT: OutputKind.USER_INPUT_MUTATION,
}


def to_functional(
    module: GraphModule, signature: ExportGraphSignature, table: Mapping[OpOverload, Callable]
) -> tuple[GraphModule, ExportGraphSignature]:
    """Return the functional form of a graph and its signature. `table` maps operators to replacement functions.

    UserError where a write cannot be removed from the graph.
    """
    fakes = FakeTensorMode()
    values = [node.meta["val"] for node in module.graph.nodes if node.op == "placeholder"]
    unknown = UnknownSizes(environment_of(values) or ShapeEnv())
    made = _record_decomposed(module, {_BATCH_NORM: TRAINING[_BATCH_NORM], **table}, fakes, unknown)
    # It asks of these numbers only whether memory may overlap, which needs no check when the program runs.
    with unknown.following(fakes):
        functionalize(made)
    if "keep_eager" in made.meta:
        raise UserError(f"The program cannot be made functional: {made.meta['keep_eager']}")
    written = _remove_writes(made.graph)
    name_symbols(made.graph)
    specs = _signature(made.graph, signature, written)
    made.graph.eliminate_dead_code()
    made.graph.lint()
    return GraphModule({}, made.graph), specs


def _record_decomposed(
    module: GraphModule, table: Mapping[OpOverload, Callable], fakes: FakeTensorMode, unknown: UnknownSizes
) -> GraphModule:
    """Return the graph recorded again, below autograd, which decomposes composites."""
    mode = ProxyMode(Graph(), fakes, {}, table)
    values = [_input(mode, node) for node in module.graph.nodes if node.op == "placeholder"]
    with fakes, mode, unknown.following(fakes):
        results = _Runner(module, mode).run(*values)
    add_checks(mode, unknown)
    mode.graph.output(tuple(mode.argument(value) for value in results))
    mode.graph.eliminate_dead_code()
    return GraphModule({}, mode.graph)


class _Runner(ModuleRunner):
    """Runs a graph's nodes, and keeps the checks of numbers that the program computes."""

    def call_function(self, target: Callable, args: tuple, kwargs: dict) -> object:
        """Return the result of a call."""
        if target is not check_relation:
            return super().call_function(target, args, kwargs)
        node = self.mode.graph.call_function(check_relation, tuple([self.mode.argument(value) for value in args]))
        node.meta["val"] = None
        return None


def _input(mode: ProxyMode, node: Node) -> object:
    value = node.meta["val"]
    if isinstance(value, Tensor):
        impl = value._impl
        value = wrap(impl.alias(impl.sizes, impl.strides, impl.storage_offset))  # tied parameters get separate nodes
    made = add_placeholder(mode.graph, node.name)
    made.meta["val"] = value
    if isinstance(value, Tensor):
        mode.track(value, made)
    mode.symbols.bind(value, made)
    return value


def _remove_writes(graph: Graph) -> dict[str, Node]:
    """Remove the write-backs at the end of a functional graph. Returns the new contents, by input name."""
    written: dict[str, Node] = {}
    for node in list(graph.nodes):
        if node.op == "call_function" and node.target is aten("copy_") and node.args[0].op == "placeholder":
            root, new = node.args
            _read_instead(graph, root, new, behind=node)
            written[root.name] = new
            node.replace_all_uses_with(new)
            graph.erase_node(node)
    return written


def _read_instead(graph: Graph, root: Node, new: Node, behind: Node) -> None:
    """Make the nodes after one read the new contents of an input."""
    seen = False
    for node in graph.nodes:
        if seen:
            node.replace_input_with(root, new)
        seen |= node is behind


def _signature(graph: Graph, old: ExportGraphSignature, written: dict[str, Node]) -> ExportGraphSignature:
    output = graph.output_node()
    mutations = [(spec, written[spec.arg.name]) for spec in old.input_specs if getattr(spec.arg, "name", None) in written]
    results = output.args[0]
    output.args = ((*(node for _, node in mutations), *results),)
    specs = [_mutation(spec, node) for spec, node in mutations]
    specs += [_rename_output(spec, result) for spec, result in zip(old.output_specs, results, strict=True)]
    return ExportGraphSignature([replace(spec) for spec in old.input_specs], specs)


def _mutation(spec: InputSpec, node: Node) -> OutputSpec:
    if spec.kind not in _MUTATIONS:
        raise UserError(f"The program writes to the constant {spec.target}; register it as a buffer")
    return OutputSpec(_MUTATIONS[spec.kind], TensorArgument(node.name), spec.target or spec.arg.name)


def _rename_output(spec: OutputSpec, result: object) -> OutputSpec:
    if not isinstance(result, Node):
        return spec
    return replace(spec, arg=argument_kind(result.meta["val"])(result.name))
