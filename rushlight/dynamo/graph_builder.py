"""The graph that one capture builds: calls of the library on tensors become nodes with fake results.

In: calls with tracked values. Out: an `fx.Graph` whose placeholders are the tensors that the frame reached, and whose
attributes are parameters, buffers and tensors that modules own.
"""

from __future__ import annotations

import linecache
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

from rushlight.core.symbolic import Relation, ShapeEnv, SymInt, UnknownSizeError
from rushlight.core.tensor import Tensor
from rushlight.dynamo.errors import GraphBreak
from rushlight.dynamo.handlers import ALLOWED_IN_GRAPH
from rushlight.dynamo.known_results import KnownResults
from rushlight.dynamo.rules import RULES
from rushlight.dynamo.sources import Source
from rushlight.dynamo.unknown_values import UnknownValues, check_relation, message_of
from rushlight.dynamo.values.tensor import TensorValue
from rushlight.fx.fake_tensor import DataDependentError, FakeTensorMode
from rushlight.fx.graph import Graph
from rushlight.fx.graph_module import GraphModule
from rushlight.fx.immutable_collections import CONTAINERS, map_tuple
from rushlight.fx.node import Node
from rushlight.fx.symbolic_sizes import Geometry, SymbolNodes

G = TypeVar("G", bound=Graph)
_NOT_IN_NAMES = re.compile(r"\W+")


class GraphBuilder:
    """Nodes, their fake values, and the sources of the inputs. Calls become nodes of `graph`: the whole graph, or a
    subgraph."""

    def __init__(self, name_of: Callable[[Source], str], environment: ShapeEnv) -> None:
        self.name_of = name_of
        self.graph = self.whole = Graph()
        self.fakes = FakeTensorMode()
        self.symbols = SymbolNodes(self.graph)
        self.environment = environment
        self.unknowns = UnknownValues(environment, self.fakes)
        self._supposed: list[Relation] = []
        self.inputs: list[tuple[Node, Source, Tensor | int]] = []
        self.attributes: dict[str, Tensor] = {}
        self.versions: dict[Node, int] = {}
        self._node_of: dict[int, Node] = {}
        self._value_of: dict[int, TensorValue] = {}
        self._keep: list[Tensor] = []
        self._place_texts: dict[tuple[str, int, str], str] = {}
        self._results = KnownResults()
        self._has_open_sizes = self._lists_numbers = False
        self._input_names: set[str] = set()
        self._last_placeholder: Node | None = None
        self._named: set[Node] = set()  # nodes already named after a variable of the program
        self.calls = 0
        self.has_history = False  # True if an input has autograd history; the fake tensor for it is a leaf

    def input(self, tensor: Tensor, source: Source, geometry: Geometry | None = None) -> Node:
        """Add a placeholder for a tensor that the frame reaches. `geometry` has symbols for its open sizes and strides."""
        node = self._add_placeholder(source)
        node.type = type(tensor)
        self.inputs.append((node, source, tensor))
        if geometry is not None:
            self._has_open_sizes = True
            node.meta["geometry"] = geometry
            self.symbols.bind(self.fakes.from_tensor(tensor, geometry), node)
        return self._set_example(node, tensor)

    def integer_input(self, number: SymInt, source: Source) -> None:
        """Add a placeholder for an open integer that the frame reaches."""
        self._has_open_sizes = True
        node = self._add_placeholder(source)
        node.meta["example_value"] = node.meta["val"] = number
        self.inputs.append((node, source, number.hint))
        self.symbols.bind(number, node)

    def _add_placeholder(self, source: Source) -> Node:
        """Add a placeholder after the existing ones."""
        name = self._make_unique_name(self.name_of(source))
        if self._last_placeholder is None:
            place = self.whole.inserting_before()
        else:
            place = self.whole.inserting_after(self._last_placeholder)
        with place:
            self._last_placeholder = self.whole.placeholder(name)
        return self._last_placeholder

    def _make_unique_name(self, name: str) -> str:
        """Append underscores until no input has the name."""
        while name in self._input_names:
            name += "_"
        self._input_names.add(name)
        return name

    def attribute(self, tensor: Tensor, name: str, source: Source | None = None) -> Node:
        """Add a `get_attr` node for a tensor that the graph owns; `source` says how the program reaches it."""
        name = name.replace(".", "_").strip("_")
        if not name.isidentifier():
            name = _NOT_IN_NAMES.sub("_", name).strip("_")
        while name in self.attributes:
            name += "_"
        self.attributes[name] = tensor
        node = self._set_example(self.whole.create_node("get_attr", name, name=name), tensor)
        if source is not None:
            node.meta["input_name"] = self._make_unique_name(self.name_of(source))
        return node

    def _set_example(self, node: Node, tensor: Tensor) -> Node:
        """Record the fake tensor of an input node."""
        fake = self.fakes.from_tensor(tensor)
        self.has_history |= tensor.requires_grad and not tensor.is_leaf
        if tensor.requires_grad and not fake.requires_grad:
            fake.requires_grad_(True)
        node.meta["example_value"] = node.meta["val"] = fake
        self._node_of[id(tensor)] = node
        self.versions[node] = fake._impl.version.value
        self._keep.append(tensor)
        return node

    def tensor_value(self, node: Node, fake: Tensor, source: Source | None = None, real: Tensor | None = None) -> TensorValue:
        """Return the tracked value of a tensor. Each tensor has exactly one, so that `x.add_(1) is x`."""
        made = self._value_of.get(id(fake))
        if made is None:
            made = self._value_of[id(fake)] = TensorValue(node, fake, source, Tensor if real is None else type(real))
            made.own_attributes = frozenset(() if real is None else real.__dict__)
            made.is_inference = (fake if real is None else real).is_inference()
            made.is_from_outside = real is not None
        return made

    def name_after(self, node: Node, variable: str) -> None:
        """Name a call's node after the first variable of the program that its result is assigned to."""
        if node.op.startswith("call_") and node not in self._named:
            self._named.add(node)
            node._rename(variable)

    def replace_value(self, value: TensorValue, by: TensorValue) -> None:
        """Make a tensor of the program stand for the result of another node."""
        value.graph_node, value.fake, value.constant_at_first = by.graph_node, by.fake, None
        self._value_of[id(by.fake)] = value
        self._keep.append(by.fake)

    @contextmanager
    def apart(self, graph: G) -> Iterator[G]:
        """Context manager: in the block, add calls to a subgraph, which may refer to nodes of the whole graph."""
        around, self.graph = self.graph, graph
        try:
            yield graph
        finally:
            self.graph = around

    def known(self, tensor: Tensor) -> Node | None:
        """Return the node of a tensor that is already in the graph."""
        return self._node_of.get(id(tensor))

    def real(self, node: Node) -> Tensor | None:
        """Return the real tensor of an input or attribute."""
        if node.op == "get_attr":
            return self.attributes.get(node.target)
        return next((value for own, _, value in self.inputs if own is node and isinstance(value, Tensor)), None)

    def call(
        self, op: str, target: Any, args: tuple, kwargs: dict[str, Any], stack_trace: str,
        modules: dict[str, tuple[str, type]],
    ) -> tuple[Node, Any]:  # fmt: skip
        """Add a node, run it on fake tensors, and return both node and result. `stack_trace` holds the program's lines that
        make the call, `modules` the modules around it (see `fx.Tracer.create_node`).

        GraphBreak if the call needs real values; errors that the call itself raises pass through.
        """
        node = self.graph.create_node(op, target, args, kwargs)
        node.stack_trace = stack_trace
        if modules:
            node.meta["nn_module_stack"] = modules
        key = None if self._has_open_sizes else self._results.key_of(node)
        result = self._results.find(key)
        if result is None:
            result = self._run_first(node, key)
        node.meta["example_value"] = node.meta["val"] = result
        self.calls += 1
        if "of_values" in node.meta:
            self.symbols.bind(result, node)
        supposed, self._supposed = self._supposed, []
        for relation in supposed:
            self.check(relation, message_of(relation))
        return node, result

    def _run_first(self, node: Node, key: tuple | None) -> Any:
        """Run a node, record its side effects, and if it has none cache the result under `key`."""
        inputs = [value for used in node.all_input_nodes if isinstance(value := used.meta["example_value"], Tensor)]
        versions = [value._impl.version.value for value in inputs]
        random_calls = self.fakes.random_calls
        try:
            result = self._follow(node)
        except (DataDependentError, UnknownSizeError) as error:
            self.graph.erase_node(node)
            raise GraphBreak(str(error)) from None
        except BaseException:
            self.graph.erase_node(node)
            raise
        # Detect writes by version counters. Inference tensors have none, but an in-place operator returns its argument.
        if versions != [value._impl.version.value for value in inputs] or any(result is value for value in inputs):
            node.meta["writes_arguments"] = True
        if self.fakes.random_calls != random_calls:
            node.meta["draws_random_numbers"] = True
        elif key is not None and "writes_arguments" not in node.meta:
            self._results.keep(key, result, inputs)
        return result

    def _follow(self, node: Node) -> Any:
        """Run a node on fake tensors. If it needs real values that the graph may compute, use symbols for them."""
        try:
            return self._run_with_assumptions(node)
        except DataDependentError:
            keeps_numbers = RULES.capture_scalar_outputs or self._lists_numbers
            kept = keeps_numbers if node.target == "item" else RULES.capture_dynamic_output_shape_ops
            if not kept or self.graph is not self.whole:
                raise
        self._has_open_sizes = True
        return self.unknowns.follow(node, self._run_with_assumptions, self._real_input)

    @contextmanager
    def listing_numbers(self) -> Iterator[None]:
        """Keep `item()` of integers in the graph for `tolist()`, whatever the setting `capture_scalar_outputs` is."""
        before, self._lists_numbers = self._lists_numbers, True
        try:
            yield
        finally:
            self._lists_numbers = before

    def _run_with_assumptions(self, node: Node) -> Any:
        """Run a node. Its assumptions about numbers that the graph computes are collected, and checked by nodes behind it."""
        environment = self.environment
        if not environment.unknown and self.fakes.of_values is None:
            return self.run(node)
        environment.suppose = self._supposed.append
        try:
            return self.run(node)
        finally:
            environment.suppose = None

    def check(self, relation: Relation, message: str, error: type[Exception] = RuntimeError) -> None:
        """Add a node that raises `error` unless a relation between numbers holds that the graph computes."""
        value = self.environment.integer(relation.expression)
        known = self.symbols.node_of(value) if type(value) is SymInt else value
        self.add(check_relation, (known, relation.kind, message, error), None)

    def add_item(self, node: Node) -> Node:
        """Add a node for `item()` of a one-element float tensor."""
        made = self.graph.create_node("call_method", "item", (node,))
        made.meta["of_values"] = True
        made.meta["example_value"] = made.meta["val"] = self.unknowns.number(made, self._real_input)
        self._has_open_sizes = True
        self.calls += 1
        return made

    def add(self, function: Callable, args: tuple, result: Any) -> Node:
        """Add a node for a function of numbers that are known only when the graph runs."""
        node = self.graph.create_node("call_function", function, args)
        node.meta["example_value"] = node.meta["val"] = result
        return node

    def _real_input(self, node: Node) -> Any:
        real = self.real(node)
        return next((value for own, _, value in self.inputs if own is node), None) if real is None else real

    def place_text(self, place: tuple[str, int, str]) -> str:
        """Return a file, line and function in the format of a traceback."""
        text = self._place_texts.get(place)
        if text is None:
            file, number, function = place
            line = linecache.getline(file, number).strip()
            text = f'  File "{file}", line {number}, in {function}\n' + (f"    {line}\n" if line else "")
            self._place_texts[place] = text
        return text

    def run(self, node: Node) -> Any:
        """Run a node's call on fake tensors."""
        args, kwargs = _example_of(node.args), _example_of(node.kwargs)
        with self.fakes:
            if node.op == "call_method":
                return getattr(args[0], node.target)(*args[1:], **kwargs)
            return node.target(*args, **kwargs)

    def writes_inputs(self) -> bool:
        """Return whether any call mutates an input."""
        return any(node.meta["val"]._impl.version.value != version for node, version in self.versions.items())

    def finish(self, outputs: list[Node], name: str) -> GraphModule:
        """Return the module that computes the outputs; dead nodes and unused inputs are removed."""
        self.graph.output(tuple(outputs))
        self.graph.eliminate_dead_code(lambda node: node.is_impure() or id(node.target) in ALLOWED_IN_GRAPH)
        for node, _, _ in list(self.inputs):
            if not node.users:
                self.graph.erase_node(node)
        self.inputs = [item for item in self.inputs if not item[0]._erased]
        used = {node.target for node in self.graph.nodes if node.op == "get_attr"}
        self.graph.lint()
        return GraphModule({name: tensor for name, tensor in self.attributes.items() if name in used}, self.graph, name)


def _example_of(value: Any) -> Any:
    """Return a node's argument as its call takes it: fake results replace nodes, plain lists and dicts replace immutable
    ones.
    """
    if isinstance(value, Node):
        return value.meta["example_value"]
    if not isinstance(value, CONTAINERS):
        return value
    if isinstance(value, tuple):
        return map_tuple(value, [_example_of(item) for item in value])
    if isinstance(value, list):
        return [_example_of(item) for item in value]
    if isinstance(value, dict):
        return {key: _example_of(item) for key, item in value.items()}
    return slice(_example_of(value.start), _example_of(value.stop), _example_of(value.step))


Backend = Callable[[GraphModule, list[Tensor | int]], Callable]
