"""A jit graph without branches and loops, for arguments of known sizes, as one compiled graph.

In: an inlined graph, and arguments. Out: a callable that gives the graph's results for such arguments. Parameters and other
attributes of modules are constants of the compiled graph, which prepares them once; a call looks whether they are the same.
"""

from __future__ import annotations

from collections.abc import Sequence

from rushlight.compiler.logs import StageLog
from rushlight.compiler.passes import PIPELINE, depends_on_placement
from rushlight.compiler.scripted.regions import Unsupported, run_nodes
from rushlight.compiler.settings import Settings
from rushlight.core.parallel import get_num_threads
from rushlight.core.tensor import Tensor
from rushlight.core.thread_state import state
from rushlight.fx.proxy_tensor import Capture, capture
from rushlight.inductor.compile_fx import Options, compile_fx
from rushlight.inductor.compiled import ConstantChanged
from rushlight.jit.ir.graph import Graph, Node, Value
from rushlight.jit.operators.lookup import operator_of
from rushlight.jit.operators.registry import RANDOM
from rushlight.jit.runtime.objects import ScriptObject
from rushlight.utils.pytree import tree_flatten

_FEWEST = 2  # nodes on tensors for which a native call pays


def compile_straight(graph: Graph, arguments: Sequence[object], settings: Settings, log: StageLog) -> StraightProgram:
    """The compiled form of a graph. Unsupported where nodes have effects, or there are too few to gain anything."""
    _check(graph)
    attributes = attributes_of(graph, arguments)
    positions = [index for index, value in enumerate(arguments) if not isinstance(value, ScriptObject)]
    inputs = [graph.inputs[index] for index in positions]

    def run(*values: object) -> tuple:
        known = {**attributes, **dict(zip(inputs, values, strict=True))}
        known |= {node.output: node.attributes.get("value") for node in graph.nodes if node.kind == "prim::Constant"}
        run_nodes([node for node in graph.nodes if node.kind not in ("prim::Constant", "prim::GetAttr")], known)
        return tuple(known[value] for value in graph.outputs)

    given = tuple(arguments[index] for index in positions)
    captured = capture(run, given)
    for graph_pass in PIPELINE:
        graph_pass(captured.module)
    if depends_on_placement(captured.module) or captured.module.meta.get("keep_eager"):
        raise Unsupported("the graph writes to memory that it was given")
    log("graph", lambda: captured.module.print_readable(print_output=False))
    native = compile_fx(captured.module, Options(settings.threads or get_num_threads(), settings.debug_cpp), log)
    return StraightProgram(native, captured, positions, given, _sources(graph, attributes))


def _check(graph: Graph) -> None:
    count = 0
    for node in graph.nodes:
        operator = operator_of(node) if node.kind.startswith("aten::") else None
        if operator is not None and (operator.has_side_effects or _is_random(node)):
            raise Unsupported(f"{node.kind}, which has effects or draws random numbers")
        if node.kind.startswith("prim::") and node.kind not in _PRIMITIVES:
            raise Unsupported(node.kind)
        count += operator is not None and operator.op is not None
    if count < _FEWEST:
        raise Unsupported("too few operators on tensors")


def _is_random(node: Node) -> bool:
    if node.kind.endswith("dropout"):
        return node.input(2).constant() is not False
    return node.kind.removeprefix("aten::").removesuffix("_") in RANDOM


_PRIMITIVES = frozenset(
    "prim::Constant prim::GetAttr prim::ListConstruct prim::TupleConstruct prim::DictConstruct prim::ListUnpack "
    "prim::TupleUnpack prim::NumToTensor prim::TupleIndex prim::ConstantChunk prim::dtype prim::device prim::shape "
    "prim::unchecked_cast prim::layout".split()
)


def attributes_of(graph: Graph, arguments: Sequence[object]) -> dict[Value, object]:
    """What the attributes that a graph reads are now."""
    found: dict[Value, object] = dict(zip(graph.inputs, arguments, strict=True))
    for node in graph.all_nodes():
        if node.kind == "prim::GetAttr" and isinstance(found.get(node.input()), ScriptObject):
            found[node.output] = found[node.input()].slots[node["name"]]
    return {value: item for value, item in found.items() if value.node.kind == "prim::GetAttr"}


def _sources(graph: Graph, attributes: dict[Value, object]) -> list[tuple[int, tuple[str, ...], object]]:
    """For each attribute that is no object: the argument below which it is, its path, and what it was."""
    paths: dict[Value, tuple[int, tuple[str, ...]]] = {value: (index, ()) for index, value in enumerate(graph.inputs)}
    found = []
    for node in graph.nodes:
        if node.kind == "prim::GetAttr":
            argument, path = paths[node.input()]
            paths[node.output] = (argument, (*path, node["name"]))
            if not isinstance(attributes[node.output], ScriptObject):
                found.append((argument, paths[node.output][1], attributes[node.output]))
    return found


class StraightProgram:
    """A compiled graph as the executor calls it: the results for a function's arguments, None if it does not fit them."""

    def __init__(self, native, captured: Capture, positions: list[int], given: tuple, sources: list):
        self.native = native
        self.captured = captured
        self.positions = positions
        leaves, self._spec = tree_flatten(given)
        self._fixed = [None if isinstance(leaf, Tensor) else (leaf,) for leaf in leaves]
        self._first: dict[int, int] = {}
        self._distinct = [
            index for index, leaf in enumerate(leaves) if isinstance(leaf, Tensor) and self._is_first(index, leaf)
        ]
        self._roots: list[int] = []
        self._owners: list[tuple[int, str]] = []
        self._values: list[tuple[int, str, object]] = []
        self._plan_checks(sources)

    def _plan_checks(self, sources: list) -> None:
        """Number the objects that hold attributes, arguments first, so that each is looked up once."""
        self._roots = sorted({argument for argument, _, _ in sources})
        numbers: dict[tuple, int] = {(argument, ()): index for index, argument in enumerate(self._roots)}
        for argument, path, value in sources:
            for depth in range(1, len(path)):
                key = (argument, path[:depth])
                if key not in numbers:
                    numbers[key] = len(numbers)
                    self._owners.append((numbers[argument, path[: depth - 1]], path[depth - 1]))
            self._values.append((numbers[argument, path[:-1]], path[-1], value))

    def _is_first(self, index: int, leaf: Tensor) -> bool:
        return self._first.setdefault(id(leaf._impl), index) == index

    def __call__(self, arguments: Sequence[object]) -> list | None:
        leaves, spec = tree_flatten(tuple(arguments[index] for index in self.positions))
        if spec != self._spec or not self._same_numbers(leaves) or not self._same_attributes(arguments):
            return None
        try:
            outputs = self.native(*[leaves[index] for index in self._distinct])
        except ConstantChanged:
            return None
        return list(self.captured.unflatten(outputs))

    def _same_numbers(self, leaves: list) -> bool:
        """Whether numbers, which the graph holds as constants, are what they were, and equal tensors are equal again."""
        for leaf, fixed in zip(leaves, self._fixed, strict=True):
            if fixed is not None and (type(leaf) is not type(fixed[0]) or leaf != fixed[0]):
                return False
        return len(self._distinct) == len({id(leaf._impl) for leaf in leaves if isinstance(leaf, Tensor)})

    def _same_attributes(self, arguments: Sequence[object]) -> bool:
        slots = [arguments[index].slots for index in self._roots]
        for owner, name in self._owners:
            slots.append(slots[owner][name].slots)
        for owner, name, value in self._values:
            found = slots[owner][name]
            if found is not value and (isinstance(value, Tensor) or found != value):
                return False
            if isinstance(value, Tensor) and state.grad_enabled and value.requires_grad:
                return False
        return True
