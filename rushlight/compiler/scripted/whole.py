"""Scripted code as one compiled graph: the whole function, with branches decided and loops written out.

In: a jit graph and arguments. Out: a callable that gives the graph's results for such arguments and makes the same changes to
objects, or None where a call differs in what the graph was made for. Parameters and what else modules hold are constants of the
compiled graph, which prepares them once; a call checks that the same objects are there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import rushlight._C as _C
from rushlight.autograd.grad_mode import no_grad, set_grad_enabled
from rushlight.compiler.logs import StageLog
from rushlight.compiler.passes import for_fusion
from rushlight.compiler.scripted.execution import Budget, Execution
from rushlight.compiler.scripted.extraction import append_only
from rushlight.compiler.scripted.open_sizes import Dims, OpenSizes, SizeChecks, differing
from rushlight.compiler.scripted.readers import Argument
from rushlight.compiler.scripted.recorder import Recorder
from rushlight.compiler.scripted.regions import Unsupported
from rushlight.compiler.scripted.results import Call, Effects, Maker, Results
from rushlight.compiler.scripted.training import compile_training
from rushlight.compiler.scripted.world import World, Written, entry_of, has_kind, same_value
from rushlight.compiler.settings import Settings
from rushlight.core.parallel import get_num_threads
from rushlight.core.tensor import Tensor
from rushlight.core.tensor_impl import TensorImpl
from rushlight.core.thread_state import state
from rushlight.fx.graph_module import GraphModule
from rushlight.fx.node import Node
from rushlight.fx.proxy_tensor import capture
from rushlight.fx.symbolic_sizes import Geometry
from rushlight.inductor.compile_fx import Options, compile_fx
from rushlight.inductor.compiled import ConstantChanged
from rushlight.inductor.late_inputs import as_last_inputs
from rushlight.jit.function import Function
from rushlight.jit.ir.graph import Graph
from rushlight.jit.ir.graph import Node as JitNode
from rushlight.jit.operators.lookup import writes
from rushlight.jit.runtime.objects import ScriptObject
from rushlight.jit.types.kinds import ClassType, DictType, ListType
from rushlight.ops.dispatcher import OpOverload
from rushlight.ops.registry import aten
from rushlight.utils.pytree import LEAF, tree_flatten

_FEWEST = 2  # operators on tensors for which a native call pays
UNFIT = object()


def written_by(graph: Graph) -> Written:
    """What a graph, or what it calls, may change outside of itself."""
    nodes = list(_all_nodes(graph, set()))
    names = frozenset(node["name"] for node in nodes if node.kind == "prim::SetAttr")
    made = ("prim::ListConstruct", "prim::DictConstruct")
    changed = (value for node in nodes for value in writes(node) if isinstance(value.type, ListType | DictType))
    return Written(names, any(value.node.kind not in made for value in changed))


def _all_nodes(graph: Graph, seen: set[Graph]) -> Iterable[JitNode]:
    if graph in seen:
        return
    seen.add(graph)
    for node in graph.all_nodes():
        yield node
        for inner in _graphs_of(node):
            yield from _all_nodes(inner, seen)


def _graphs_of(node: JitNode) -> list[Graph]:
    if node.kind == "prim::fork":
        return [node["Subgraph"]]
    if node.kind == "prim::CallFunction":
        function = node.input().constant()
        return [function.graph] if isinstance(function, Function) else []
    if node.kind == "prim::CallMethod" and isinstance(node.input().type, ClassType):
        return [node.input().type.find_method(node["name"]).graph]
    return []


class _Inputs:
    """The tensors among a call's arguments, each once, in the order of the compiled graph's inputs."""

    def __init__(self, arguments: Sequence[object], unread: frozenset[int]):
        self.positions = [
            index for index, value in enumerate(arguments) if not isinstance(value, ScriptObject) and index not in unread
        ]  # fmt: skip
        self.objects = [(index, value) for index, value in enumerate(arguments) if _is_module(value)]
        self.given = tuple(arguments[index] for index in self.positions)
        leaves, self.spec = tree_flatten(self.given)
        self.is_flat = all(child is LEAF for child in self.spec.children)
        first: dict[int, int] = {}
        self.distinct = [
            index for index, leaf in enumerate(leaves)
            if isinstance(leaf, Tensor) and first.setdefault(id(leaf._impl), index) == index
        ]  # fmt: skip
        self.leaves = leaves
        self.tensors = [index for index, leaf in enumerate(leaves) if isinstance(leaf, Tensor)]
        numbers = _numbers_outside(self.given)
        self.fixed = [
            (index, leaf) for index, leaf in enumerate(leaves) if not isinstance(leaf, Tensor) and index not in numbers
        ]  # fmt: skip

    def read(self, arguments: Sequence[object]) -> list[Tensor] | None:
        """The tensors of a call, None where its arguments have another structure."""
        for index, value in self.objects:
            if arguments[index] is not value:
                return None
        leaves = [arguments[index] for index in self.positions]
        if not self.is_flat:
            leaves, spec = tree_flatten(tuple(leaves))
            if spec != self.spec:
                return None
        for index, value in self.fixed:
            if not same_value(leaves[index], value):
                return None
        tensors = [leaves[index] for index in self.distinct]
        if len(self.tensors) > 1 and not self._are_distinct(leaves):
            return None
        return tensors

    def _are_distinct(self, leaves: list) -> bool:
        return len(self.distinct) == len({id(leaf._impl) for leaf in leaves if isinstance(leaf, Tensor)})


def _is_module(value: object) -> bool:
    return isinstance(value, ScriptObject) and value.type.is_module


def _numbers_outside(given: tuple) -> set[int]:
    """The places among the leaves of numbers that are arguments themselves."""
    places, place = set(), 0
    for value in given:
        if isinstance(value, bool | int | float):
            places.add(place)
        place += tree_flatten(value)[1].num_leaves
    return places


class Captured:
    """A graph as it was captured, with all that a call needs beside native code."""

    def __init__(self, graph: Graph, arguments: Sequence[object], wish: Wish):
        self.sizes = OpenSizes(wish.dims)
        self.recorder = Recorder() if wish.gradients else None
        self.world = World(arguments, written_by(graph), wish.changing, self.sizes, self.recorder)
        self.unread = append_only(graph)
        self.inputs = _Inputs(arguments, self.unread)
        self.execution = Execution(self.world, wish.budget, self.recorder)
        self.makers: list[Maker] = []
        opened: list[Geometry | None] = [None] * len(self.inputs.leaves)
        for place, index in enumerate(self.inputs.tensors):
            if index in self.inputs.distinct:
                opened[index] = self.sizes.geometry(place, self.inputs.leaves[index])
        with no_grad():
            found = capture(lambda *given: self._run(graph, arguments, given), self.inputs.given, open_leaves=opened)
        self.module: GraphModule = as_last_inputs(found.module, ())  # those met on the way stand behind the others
        self.order = [*map(self.inputs.tensors.index, self.inputs.distinct), *self.world.inputs]

    def first_inputs(self, arguments: Sequence[object]) -> list[Tensor | int]:
        """The compiled graph's inputs for the arguments of the capture."""
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
        self.makers = [results.maker(value) for value in outputs]
        self.effects = Effects(self.world, results)
        self.outputs = results.outputs
        return tuple(results.outputs)


@dataclass(frozen=True)
class Wish:
    """How a program is to be made: which numbers and dimensions are known to differ from call to call, whether its results are
    to be differentiated, and how large it may become."""

    changing: frozenset[tuple]
    dims: Dims
    gradients: bool
    budget: Budget


def compile_whole(
    graph: Graph, arguments: Sequence[object], wish: Wish, settings: Settings, log: StageLog
) -> WholeProgram:  # fmt: skip
    """The compiled form of a graph. Cut and TooManyRounds say what stands in the way; Unsupported where there is nothing to
    gain."""
    captured = Captured(graph, arguments, wish)
    if captured.execution.tensor_nodes < _FEWEST:
        raise Unsupported("too few operators on tensors")
    if wish.gradients:
        inputs = captured.first_inputs(arguments)
        native = compile_training(captured.recorder.module(captured.outputs), inputs, settings, log)
        return WholeProgram(native, captured, inputs)
    for graph_pass in for_fusion(fallback_random=True):
        graph_pass(captured.module)
    if captured.module.meta.get("keep_eager"):
        raise Unsupported(captured.module.meta["keep_eager"])
    log("graph", lambda: captured.module.print_readable(print_output=False))
    native = compile_fx(captured.module, Options(settings.threads or get_num_threads(), settings.debug_cpp), log)
    return WholeProgram(native, captured, captured.first_inputs(arguments))


class WholeProgram:
    """A compiled graph as the executor calls it."""

    def __init__(self, native: Callable[..., tuple], captured: Captured, first: Sequence[Tensor | int]):
        world = captured.world
        self.native = native
        self.world = world
        self.inputs = captured.inputs
        self.effects = captured.effects if captured.effects.attributes or captured.effects.containers else None
        self.makers = captured.makers
        self.checks = _C.AttributeChecks([entry_of(attribute.owner, attribute.name) for attribute, _ in world.reads])
        self.conditions = [(read, value) for read, value in world.conditions]
        self.kinds = world.kinds
        self.aliases = world.aliases
        self.late = list(world.inputs.values())
        self.sizes = SizeChecks(captured.sizes, captured.order)
        self.opened = captured.sizes
        held = (value for _, value in (*world.reads, *world.conditions) if isinstance(value, Tensor))
        self.constants = list({id(value): value for value in held}.values())
        self.written = _written(captured.module, self.constants)
        self.grad_mode = captured.execution.grad_enabled
        self.asking = None if captured.recorder is None else _asking((*first, *self.constants))

    def attempt(self, arguments: Sequence[object]) -> object:
        """The results for a call's arguments, None where the interpreter has to run; UNFIT where the call is not one that the
        program was made for."""
        tensors = self._fitting(arguments)
        if tensors is None:
            return UNFIT
        try:
            outputs = self.native(*tensors)
        except ConstantChanged:
            return UNFIT
        except (RuntimeError, IndexError):  # raised by the interpreter again, at its line and after the effects before it
            if self.written:
                raise
            return None
        call = Call(outputs, arguments)
        results = [make(call) for make in self.makers]  # which may read what the effects change
        if self.effects is not None:
            self.effects.apply(call)
        if self.grad_mode is not state.grad_enabled:
            set_grad_enabled(self.grad_mode)
        return results

    def _fitting(self, arguments: Sequence[object]) -> list[Tensor] | None:
        """The tensors that native code takes, if the program is right for a call; else None."""
        tensors = self.inputs.read(arguments)
        if tensors is None or not self.checks.hold():
            return None
        for read, kind in self.kinds:
            if not has_kind(read(arguments), kind):
                return None
        for one, other in self.aliases:
            if one(arguments) is not other(arguments):
                return None
        for read, value in self.conditions:
            if not same_value(read(arguments), value):
                return None
        tensors += [read(arguments) for read in self.late]
        if not self.sizes.hold(tensors):
            return None
        if state.grad_enabled and not self._asks_as_before(tensors):
            return None
        return tensors if self._may_write(tensors) else None

    def _asks_as_before(self, tensors: list[Tensor]) -> bool:
        """Whether the gradients that are needed are those which the program gives."""
        asking = _asking((*tensors, *self.constants))
        return not any(asking) if self.asking is None else asking == self.asking

    def _may_write(self, tensors: list[Tensor]) -> bool:
        """Whether what is written to shares memory with nothing else, and may be written to."""
        if not self.written:
            return True
        impls = [each._impl if isinstance(each, Tensor) else None for each in (*tensors, *self.constants)]
        for place in self.written:
            impl = impls[place]
            first, last = memory_of(impl)
            if impl.inference and not state.inference:
                return False
            for other, each in enumerate(impls):
                if other == place or each is None:
                    continue
                low, high = memory_of(each)
                if low < last and first < high:
                    return False
        return True

    def changed_sources(self, arguments: Sequence[object]) -> set[tuple]:
        """The sources of numbers that a call has otherwise than the one that the program was made for."""
        return self.world.changed_sources(arguments)

    def changed_dims(self, arguments: Sequence[object]) -> dict[object, frozenset[int]]:
        """The dimensions in which a call's state has other sizes than the program was made for."""
        found = {}
        for place, read in self.world.inputs.items():
            tensor = self.opened.inputs.get(place, (None,))[0]
            value = read(arguments)
            if isinstance(tensor, Tensor) and isinstance(value, Tensor):
                found[place] = differing(tensor._impl.sizes, value._impl.sizes)
        return {place: dims for place, dims in found.items() if dims}


def _asking(values: Iterable[object]) -> list[bool]:
    return [isinstance(value, Tensor) and value.requires_grad for value in values]


def _written(module: GraphModule, constants: Sequence[Tensor]) -> list[int]:
    """What a graph writes to, by place among its inputs and then the constants. Unsupported for views by absolute places."""
    inputs = [node for node in module.graph.nodes if node.op == "placeholder"]
    found: set[int] = set()
    for node in module.graph.nodes:
        if node.op != "call_function" or not isinstance(node.target, OpOverload):
            continue
        if node.target is aten("as_strided"):
            raise Unsupported("views of tensors by absolute places")
        for target in _written_by(node):
            if target.op == "placeholder":
                found.add(inputs.index(target))
            elif target.op == "get_attr":
                tensor = getattr(module, target.target)
                found.add(len(inputs) + next(place for place, each in enumerate(constants) if each is tensor))
    return sorted(found)


def _written_by(node: Node) -> Sequence[Node]:
    """The nodes that a call may write to."""
    if node.target is aten("copy_"):
        return node.args[:1]
    return node.all_input_nodes if node.target.is_mutable else ()


def memory_of(impl: TensorImpl) -> tuple[int, int]:
    """The addresses between which a tensor's elements lie."""
    reach = sum((size - 1) * step for size, step in zip(impl.sizes, impl.strides, strict=True)) + 1 if impl.numel else 0
    return impl.data_ptr, impl.data_ptr + reach * impl.dtype.itemsize
