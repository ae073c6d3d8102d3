"""Compile scripted code to one graph: the whole function, with branches decided and loops unrolled.


In: a jit graph and arguments. Out: a callable that returns the graph's results for such arguments and makes the same changes to
objects, or returns None if a call differs from the capture. Parameters and other attributes of modules are constants of the
compiled graph, which prepares them once; a call checks that the same objects are there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from rushlight.aot.memory import root_of
from rushlight.autograd.grad_mode import no_grad
from rushlight.compiler.logs import StageLog
from rushlight.compiler.passes import for_fusion
from rushlight.compiler.passes import run as run_passes
from rushlight.compiler.scripted.execution import Budget, Execution
from rushlight.compiler.scripted.extraction import append_only
from rushlight.compiler.scripted.open_sizes import Dims, OpenSizes, SizeChecks
from rushlight.compiler.scripted.program import Form, Inputs, KnownSizes, WholeProgram, asking_of, constants_of
from rushlight.compiler.scripted.readers import Argument
from rushlight.compiler.scripted.recorder import Recorder
from rushlight.compiler.scripted.regions import Unsupported
from rushlight.compiler.scripted.results import Results
from rushlight.compiler.scripted.training import compile_training
from rushlight.compiler.scripted.world import World, Written, path_of
from rushlight.compiler.settings import Settings
from rushlight.core.parallel import get_num_threads
from rushlight.core.pytree import tree_flatten
from rushlight.core.tensor import Tensor
from rushlight.dynamo.unknown_sizes import UnknownSizes
from rushlight.fx.graph_module import GraphModule
from rushlight.fx.node import Node
from rushlight.fx.proxy_tensor import capture
from rushlight.fx.symbolic_sizes import Geometry
from rushlight.inductor import plan_cache
from rushlight.inductor.compile_fx import compile_fx
from rushlight.inductor.late_inputs import as_last_inputs
from rushlight.inductor.options import Options
from rushlight.jit.function import Function
from rushlight.jit.ir.graph import Graph
from rushlight.jit.ir.graph import Node as JitNode
from rushlight.jit.operators.lookup import writes
from rushlight.jit.types.kinds import ClassType, DictType, ListType
from rushlight.ops.dispatcher import OpOverload
from rushlight.ops.registry import aten

_MIN_TENSOR_NODES = 2  # a native call is worthwhile from this number of operators on tensors


def written_by(graph: Graph) -> Written:
    """Return what a graph, with the functions that it calls, may change outside."""
    nodes = list(_all_nodes(graph, set()))
    names = frozenset(node["name"] for node in nodes if node.kind == "prim::SetAttr")
    made = ("prim::ListConstruct", "prim::DictConstruct")
    changed = (value for node in nodes for value in writes(node) if isinstance(value.type, ListType | DictType))
    return Written(names, any(value.node.kind not in made for value in changed))


def _all_nodes(graph: Graph, seen: set[Graph]) -> Iterable[JitNode]:
    """Yield the nodes of a graph and of the functions that it calls, each graph once."""
    if graph in seen:
        return
    seen.add(graph)
    for node in graph.all_nodes():
        yield node
        for inner in _graphs_of(node):
            yield from _all_nodes(inner, seen)


def _graphs_of(node: JitNode) -> list[Graph]:
    """Return the graphs that a node calls."""
    if node.kind == "prim::fork":
        return [node["Subgraph"]]
    if node.kind == "prim::CallFunction":
        function = node.input().constant()
        return [function.graph] if isinstance(function, Function) else []
    if node.kind == "prim::CallMethod" and isinstance(node.input().type, ClassType):
        return [node.input().type.find_method(node["name"]).graph]
    return []


class Captured:
    """A captured graph, with everything that a call needs beside native code."""

    def __init__(self, graph: Graph, arguments: Sequence[object], wish: Wish):
        self.sizes = OpenSizes(wish.dims)
        self.recorder = Recorder() if wish.gradients else None
        self.world = World(arguments, written_by(graph), wish.changing, self.sizes, self.recorder)
        self.unread = append_only(graph)
        self.inputs = Inputs(arguments, self.unread)
        self.execution = Execution(self.world, wish.budget, self.recorder)
        opened: list[Geometry | None] = [None] * len(self.inputs.leaves)
        for place, index in enumerate(self.inputs.tensors):
            if index in self.inputs.distinct:
                opened[index] = self.sizes.geometry(place, self.inputs.leaves[index])
        self.unknown = UnknownSizes(self.sizes.environment)
        with no_grad():
            found = capture(
                lambda *given: self._run(graph, arguments, given), self.inputs.given, open_leaves=opened,
                decompositions=wish.of_values, following=None if wish.of_values is None else self.unknown.following,
            )  # fmt: skip
        # Put the arguments' tensors first among the inputs, then those that the capture found while it ran.
        self.module: GraphModule = as_last_inputs(found.module, ())
        self.order = [*map(self.inputs.tensors.index, self.inputs.distinct), *self.world.inputs]

    def first_inputs(self, arguments: Sequence[object]) -> list[Tensor | int]:
        """Return the compiled graph's inputs for the arguments of the capture."""
        late = [read(arguments) for read in self.world.inputs.values()]
        return [*(self.inputs.leaves[index] for index in self.inputs.distinct), *late]

    def _run(self, graph: Graph, arguments: Sequence[object], given: Sequence[object]) -> tuple:
        values = list(arguments)
        if self.recorder is not None:
            leaves = tree_flatten(given)[0]
            for index in self.inputs.distinct:
                self.recorder.input(leaves[index])
        for index, value in zip(self.inputs.positions, given, strict=True):
            if isinstance(value, bool | int | float):
                value = self.world.argument_number(index, value)
            elif not isinstance(value, Tensor):
                self.world.argument_containers(value, Argument(index))
            values[index] = value
        for index in self.unread:
            values[index] = self.world.unread_list(Argument(index))
        outputs = self.execution.run(graph, values)
        results = Results(self.world)
        self.results = [results.template(value) for value in outputs]
        self.assignments, self.changes = results.assignments(), results.changes()
        self.outputs = results.outputs
        return tuple(results.outputs)

    def form(self, arguments: Sequence[object]) -> Form:
        """Return the part of a program beside native code; it is made after the graph's passes."""
        world = self.world
        inputs = self.sizes.inputs
        form = Form(
            self.inputs, [(each.owner, each.name, value) for each, value in world.reads], world.conditions, world.kinds,
            world.aliases, world.apart(arguments), list(world.inputs.values()), self._size_checks(), self.results,
            [(each.owner, each.name, each.value) for each in self.assignments],
            [(each.reader, each.grows, each.contents) for each in self.changes], self.execution.grad_enabled,
            numbers=world.numbers,
            places={place: (read, inputs[place][0]._impl.sizes) for place, read in world.inputs.items() if place in inputs},
        )  # fmt: skip
        form.paths = [path_of(each.read_owner) for each, _ in world.reads]
        constants = constants_of(form)
        form.written = _find_written(self.module, constants)
        if self.recorder is not None:
            form.asking = asking_of((*self.first_inputs(arguments), *constants))
        return form

    def _size_checks(self) -> SizeChecks | KnownSizes:
        """Return the checks of the inputs' sizes; a cheaper kind if no size is open."""
        if self.sizes.environment.bindings:
            return SizeChecks(self.sizes, self.order)
        impls = [self.sizes.inputs[place][0]._impl for place in self.order]
        return KnownSizes([(impl.dtype, impl.sizes, impl.strides) for impl in impls])


@dataclass(frozen=True)
class Wish:
    """What a program has to support: `changing` numbers and dimensions `dims` differ from call to call, `gradients` says
    whether the results need gradients, `budget` limits the size. `of_values` are the functions to record in place of operators
    whose result sizes depend on values; None: these operators are refused."""

    changing: frozenset[tuple]
    dims: Dims
    gradients: bool
    budget: Budget
    of_values: Mapping[OpOverload, Callable] | None = None


def compile_whole(
    graph: Graph, arguments: Sequence[object], wish: Wish, settings: Settings, log: StageLog
) -> WholeProgram:  # fmt: skip
    """Compile a graph. Cut and TooManyRounds say what prevents it; Unsupported if there is nothing to gain."""
    captured = Captured(graph, arguments, wish)
    if captured.execution.tensor_nodes < _MIN_TENSOR_NODES:
        raise Unsupported("too few operators on tensors")
    if wish.gradients:
        inputs = captured.first_inputs(arguments)
        native = compile_training(captured.recorder.module(captured.outputs), inputs, settings, log)
        return WholeProgram(native, captured.form(arguments))
    run_passes(for_fusion(fallback_random=True), captured.module, log)
    if captured.module.meta.get("keep_eager"):
        raise Unsupported(captured.module.meta["keep_eager"])
    log.graph("graph", captured.module)
    options = Options(settings.threads or get_num_threads(), settings.debug_cpp)
    native = compile_fx(captured.module, options, log)
    return WholeProgram(native, captured.form(arguments), lambda: _describe_module(captured.module, options))


def _describe_module(module: GraphModule, options: Options) -> tuple[str | None, dict[str, Tensor]]:
    targets = [node.target for node in module.graph.nodes if node.op == "get_attr"]
    return plan_cache.key_of(module, options), {target: getattr(module, target) for target in targets}


def _find_written(module: GraphModule, constants: Sequence[Tensor]) -> list[int]:
    """Return which inputs and constants a graph writes to, as indices into the inputs followed by the constants.


    Unsupported for `as_strided` on these: where a tensor begins in its storage may differ from call to call.
    """
    inputs = [node for node in module.graph.nodes if node.op == "placeholder"]
    found: set[int] = set()
    for node in module.graph.nodes:
        if node.op != "call_function" or not isinstance(node.target, OpOverload):
            continue
        if node.target is aten("as_strided") and root_of(node).op != "call_function":
            raise Unsupported("views of tensors by absolute places")
        for target in _written_by(node):
            if target.op == "placeholder":
                found.add(inputs.index(target))
            elif target.op == "get_attr":
                tensor = getattr(module, target.target)
                found.add(len(inputs) + next(place for place, each in enumerate(constants) if each is tensor))
    return sorted(found)


def _written_by(node: Node) -> Sequence[Node]:
    """Return the nodes that a call may write to."""
    if node.target is aten("copy_"):
        return node.args[:1]
    return node.all_input_nodes if node.target.is_mutable else ()
