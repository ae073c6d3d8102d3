"""Executes a jit graph node by node on fake tensors: known values decide branches and loops, calls are followed.

In: a graph, values of its inputs, a World. Out: values of its outputs; the active mode records the tensor operators.
Unsupported for decisions that need a tensor's elements, and for side effects.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rushlight.compiler.scripted.readers import Applied, Known
from rushlight.compiler.scripted.recorder import Recorder
from rushlight.compiler.scripted.regions import Known as KnownTensor
from rushlight.compiler.scripted.regions import Unsupported, run_nodes
from rushlight.compiler.scripted.scalars import READS
from rushlight.compiler.scripted.typed import Number, takes_number
from rushlight.compiler.scripted.world import Symbol, World
from rushlight.core.symbolic import SymInt, UnguardedSizeError
from rushlight.core.tensor import Tensor
from rushlight.core.tensor_impl import DataDependentError
from rushlight.core.thread_state import state
from rushlight.jit.function import Function
from rushlight.jit.ir.graph import Block, Graph, Node, Value
from rushlight.jit.operators.lookup import operator_of
from rushlight.jit.operators.registry import RANDOM, Operator
from rushlight.jit.runtime.interpreter import make_named_tuple
from rushlight.jit.runtime.objects import ScriptObject
from rushlight.jit.runtime.type_checks import is_instance
from rushlight.jit.types.kinds import STRING, TupleType
from rushlight.ops.modes import SuspendModes

FAILURES = (
    Unsupported, DataDependentError, UnguardedSizeError, NotImplementedError, RuntimeError, TypeError, ValueError, IndexError,
    KeyError, AttributeError, ZeroDivisionError, OverflowError,
)  # fmt: skip
"""Exceptions of operators on fake tensors and known numbers: they lack values, or will fail at run time, too."""
_MAX_CALL_DEPTH = 100
OF_AUTOGRAD = frozenset(
    "prim::requires_grad aten::is_leaf aten::output_nr aten::retain_grad aten::requires_grad_ aten::backward aten::grad "
    "aten::_version aten::_fw_primal".split()
)
"""Operators that query autograd, which a capture does not record."""


class Cut(Unsupported):
    """A node of the graph, or one inside it, cannot be captured; the code before and after it may be."""

    def __init__(self, node: Node, reason: str):
        super().__init__(reason)
        self.node = node


class TooManyRounds(Unsupported):
    """Unrolled loops would become too large."""


@dataclass
class Budget:
    """The limits of a capture's unrolling: rounds of one loop, and nodes in total. `open_loops`: whether a number that can
    change may decide a loop's rounds; `draws`: whether random numbers may be drawn."""

    rounds: int
    nodes: int
    open_loops: bool
    draws: bool = False


class Execution:
    """One run of a graph. The recorder, if there is one, records the calls."""

    def __init__(self, world: World, budget: Budget, recorder: Recorder | None):
        self.world = world
        self.recorder = recorder
        self.budget = budget
        self.grad_enabled = state.grad_enabled
        self.depth = 0
        self.tensor_nodes = 0
        self._operators: dict[Node, Operator | None] = {}

    def run(self, graph: Graph, inputs: Sequence[object]) -> list[object]:
        """Run the graph; returns its outputs. Cut names the node that cannot be captured."""
        values = dict(zip(graph.inputs, inputs, strict=True))
        for node in graph.nodes:
            try:
                self._run_node(node, values)
            except TooManyRounds:
                raise
            except FAILURES as error:
                raise Cut(node, _reason(node, error)) from error
        return [self._value(value, values) for value in graph.outputs]

    def _run_block(self, block: Block, values: dict[Value, object]) -> list[object]:
        for node in block.nodes:
            self._run_node(node, values)
        return [self._value(value, values) for value in block.outputs]

    def _value(self, value: Value, values: dict[Value, object]) -> object:
        if value.is_constant:
            return value.constant()
        found = values[value]
        return found.tensor if isinstance(found, KnownTensor) else found

    def _run_node(self, node: Node, values: dict[Value, object]) -> None:
        if node.kind == "prim::Constant":
            return
        if node.kind in OF_AUTOGRAD:
            raise Unsupported(f"{node.kind}, which asks what autograd has recorded")
        special = _SPECIAL.get(node.kind)
        if special is not None:
            special(self, node, values)
        else:
            self._run_operator(node, values)

    def _concretize(self, value: object) -> object:
        if type(value) is tuple:
            return tuple(map(self._concretize, value))
        if type(value) is not Symbol:
            return value
        is_open = type(value.value) is int and self.world.is_changing(value)
        return self.world.open_integer(value) if is_open else self.world.fixed(value)

    # Run operators

    def _run_operator(self, node: Node, values: dict[Value, object]) -> None:
        if node not in self._operators:
            self._operators[node] = operator_of(node) if node.kind.startswith("aten::") or "::" in node.kind else None
        operator = self._operators[node]
        arguments = [values[value] if value in values else value.constant() for value in node.inputs]
        if node.kind in READS and self.world.is_constant(arguments[0]):
            values[node.output] = self._element(operator, arguments[0])
            return
        if operator is not None:
            if operator.has_side_effects or (_draws_random_numbers(operator, arguments) and not self.budget.draws):
                raise Unsupported(f"{node.kind}, which has effects or draws random numbers")
            self._count_node(operator)
            if any(type(each) is Symbol for each in arguments) and self._compute_on_numbers(node, operator, arguments, values):
                return
        given = [self._prepare_argument(node, place, each) for place, each in enumerate(arguments)]
        if any(each.type == STRING for each in node.outputs):
            given = [_specialize_sizes(each) for each in given]
        local = dict(zip(node.inputs, given, strict=True))
        run_nodes([node], local)
        if self.recorder is not None:
            self.recorder.call(node, given, [local[value] for value in node.outputs])
        for value in node.outputs:
            values[value] = local[value]

    def _element(self, operator: Operator, tensor: Tensor) -> object:
        """Return the element of a constant tensor, and make every call check that it is the same."""
        with SuspendModes():
            return self.world.element(operator, tensor, operator.function(tensor))

    def _count_node(self, operator: Operator) -> None:
        self.budget.nodes -= 1
        if self.budget.nodes < 0:
            raise TooManyRounds("more operators than one program holds")
        self.tensor_nodes += operator.op is not None

    def _prepare_argument(self, node: Node, place: int, value: object) -> object:
        if type(value) is not Symbol:
            return self._concretize(value)
        if self.world.is_changing(value) and takes_number(node, place):
            return Number(self.world.tensor_of(value))
        return self._concretize(value)

    def _compute_on_numbers(self, node: Node, operator: Operator, arguments: list, values: dict[Value, object]) -> bool:
        """Compute with numbers that may change; False if the operator takes or returns other values, such as open sizes."""
        if any(type(each) is SymInt for each in arguments):
            return False
        plain = [each.value if type(each) is Symbol else each for each in arguments]
        if not operator.is_pure or len(node.outputs) != 1 or not all(isinstance(each, bool | int | float) for each in plain):
            return False
        result = operator.function(*plain)
        if not isinstance(result, bool | int | float):
            return False
        readers = tuple(each.read if type(each) is Symbol else Known(each) for each in arguments)
        sources = frozenset().union(*(each.sources for each in arguments if type(each) is Symbol))
        values[node.output] = Symbol(result, Applied(operator, readers), sources)
        return True

    # Run ifs and loops

    def _run_if(self, node: Node, values: dict[Value, object]) -> None:
        condition = self._concretize(self._value(node.input(), values))
        results = self._run_block(node.blocks[0 if condition else 1], values)
        values.update(zip(node.outputs, results, strict=True))

    def _run_loop(self, node: Node, values: dict[Value, object]) -> None:
        block = node.blocks[0]
        limit, condition, *carried = [self._value(value, values) for value in node.inputs]
        limit, condition, count = self._loop_bound(limit), self._loop_bound(condition), 0
        while count < limit and condition:
            if count >= self.budget.rounds:
                raise TooManyRounds(f"a loop of more than {count} rounds")
            values.update(zip(block.inputs, [count, *carried], strict=True))
            condition, *carried = self._run_block(block, values)
            condition, count = self._loop_bound(condition), count + 1
        values.update(zip(node.outputs, carried, strict=True))

    def _loop_bound(self, value: object) -> object:
        """Return a loop's limit or condition. TooManyRounds if a changing number decides it and the budget forbids that."""
        if type(value) is Symbol and not self.budget.open_loops:
            raise TooManyRounds("a loop whose rounds a number decides")
        return self._concretize(value)

    def _run_raise(self, node: Node, values: dict[Value, object]) -> None:
        raise Unsupported("it raises an exception")

    # Follow calls

    def _call_function(self, node: Node, values: dict[Value, object]) -> None:
        function = node.input().constant()
        if not isinstance(function, Function):
            raise Unsupported("a call of a function that is not known")
        self._run_call(function, [self._value(value, values) for value in node.inputs[1:]], node, values)

    def _call_method(self, node: Node, values: dict[Value, object]) -> None:
        arguments = [self._value(value, values) for value in node.inputs]
        self._run_call(arguments[0].type.find_method(node["name"]), arguments, node, values)

    def _run_call(self, function: Function, arguments: list, node: Node, values: dict[Value, object]) -> None:
        graph = function.graph
        self._check_depth()
        self.depth += 1
        results = self._run_block(graph.block, dict(zip(graph.inputs, arguments, strict=True)))
        self.depth -= 1
        values.update(zip(node.outputs, results, strict=True))

    def _check_depth(self) -> None:
        if self.depth >= _MAX_CALL_DEPTH:
            raise Unsupported("calls within calls, too deep to be written out")

    def _run_fork(self, node: Node, values: dict[Value, object]) -> None:
        body: Graph = node["Subgraph"]
        arguments = [self._value(value, values) for value in node.inputs]
        results = self._run_block(body.block, dict(zip(body.inputs, arguments, strict=True)))
        values[node.output] = results[0] if len(results) == 1 else tuple(results)

    # Access objects

    def _run_get(self, node: Node, values: dict[Value, object]) -> None:
        values[node.output] = self.world.get(self._object(node, values), node["name"])

    def _run_set(self, node: Node, values: dict[Value, object]) -> None:
        self.world.set(self._object(node, values), node["name"], self._value(node.input(1), values))

    def _object(self, node: Node, values: dict[Value, object]) -> ScriptObject:
        found = self._value(node.input(), values)
        if not isinstance(found, ScriptObject):
            raise Unsupported("an attribute of what is no object")
        return found

    def _run_create(self, node: Node, values: dict[Value, object]) -> None:
        values[node.output] = ScriptObject(node.output.type)

    def _run_manage(self, node: Node, values: dict[Value, object]) -> None:
        manager = self._object(node, values)
        name = "__enter__" if node.kind == "prim::Enter" else "__exit__"
        arguments = [manager] if name == "__enter__" else [manager, None, None, None]
        self._run_call(manager.type.find_method(name), arguments, node, values)

    def _set_grad_mode(self, node: Node, values: dict[Value, object]) -> None:
        if self.recorder is not None:
            raise Unsupported("a change of the grad mode where gradients are needed")
        self.grad_enabled = bool(self._concretize(self._value(node.input(), values)))
        if self.grad_enabled and not state.grad_enabled:
            raise Unsupported("what comes next may need gradients, which the beginning does not")
        values.update(dict.fromkeys(node.outputs))

    def _run_grad_mode(self, node: Node, values: dict[Value, object]) -> None:
        values[node.output] = self.grad_enabled

    # Make containers

    def _is_instance(self, node: Node, values: dict[Value, object]) -> None:
        found = self._value(node.input(), values)
        plain = found.value if type(found) is Symbol else found
        values[node.output] = any(is_instance(plain, kind) for kind in node["types"])

    def _run_same(self, node: Node, values: dict[Value, object]) -> None:
        values[node.output] = self._value(node.input(), values)

    def _set_none(self, node: Node, values: dict[Value, object]) -> None:
        values[node.output] = None

    def _run_list(self, node: Node, values: dict[Value, object]) -> None:
        values[node.output] = [self._concretize(self._value(value, values)) for value in node.inputs]

    def _run_tuple(self, node: Node, values: dict[Value, object]) -> None:
        kind, items = node.output.type, [self._value(value, values) for value in node.inputs]
        is_named = isinstance(kind, TupleType) and kind.name is not None
        values[node.output] = make_named_tuple(kind, items) if is_named else tuple(items)

    def _run_dict(self, node: Node, values: dict[Value, object]) -> None:
        items = [self._value(value, values) for value in node.inputs]
        values[node.output] = dict(zip(map(self._concretize, items[::2]), map(self._concretize, items[1::2]), strict=True))

    def _run_unpack(self, node: Node, values: dict[Value, object]) -> None:
        values.update(zip(node.outputs, self._value(node.input(), values), strict=True))


_SPECIAL = {
    "prim::If": Execution._run_if, "prim::Loop": Execution._run_loop, "prim::RaiseException": Execution._run_raise,
    "prim::CallFunction": Execution._call_function, "prim::CallMethod": Execution._call_method,
    "prim::fork": Execution._run_fork,
    "aten::wait": Execution._run_same, "prim::GetAttr": Execution._run_get, "prim::SetAttr": Execution._run_set,
    "prim::CreateObject": Execution._run_create, "prim::Enter": Execution._run_manage, "prim::Exit": Execution._run_manage,
    "aten::set_grad_enabled": Execution._set_grad_mode, "aten::is_grad_enabled": Execution._run_grad_mode,
    "prim::isinstance": Execution._is_instance, "prim::unchecked_cast": Execution._run_same,
    "prim::Uninitialized": Execution._set_none, "prim::ListConstruct": Execution._run_list,
    "prim::TupleConstruct": Execution._run_tuple, "prim::DictConstruct": Execution._run_dict,
    "prim::ListUnpack": Execution._run_unpack,
    "prim::TupleUnpack": Execution._run_unpack,
}  # fmt: skip


def _specialize_sizes(value: object) -> object:
    """Return a value with open sizes specialized, for conversion to text."""
    if type(value) in (list, tuple):
        return type(value)(map(_specialize_sizes, value))
    return int(value) if type(value) is SymInt else value


def _reason(node: Node, error: Exception) -> str:
    if isinstance(error, DataDependentError):
        return f"{node.kind} depends on the elements of a tensor"
    return f"inside {node.kind}: {error}" if node.blocks else str(error)


def _draws_random_numbers(operator: Operator, arguments: list) -> bool:
    """Return whether an operator draws random numbers; disabled dropout does not."""
    name = operator.schema.name.removeprefix("aten::").removesuffix("_")
    by_name = dict(zip((argument.name for argument in operator.schema.arguments), arguments, strict=False))
    trains = by_name.get("train", by_name.get("training"))
    if name in RANDOM:
        return trains is not False
    rate = by_name.get("dropout_p", by_name.get("dropout", 0.0))
    return isinstance(rate, float) and rate > 0 and trains is not False


def has_tensors(value: object) -> bool:
    """Return whether a value contains a tensor."""
    if isinstance(value, dict):
        return any(map(has_tensors, value.values()))
    return isinstance(value, Tensor) or (isinstance(value, list | tuple) and any(map(has_tensors, value)))
