"""make_fx: run a function on fake tensors and record every operator it reaches as a node of an fx.Graph.

In: a function and example inputs. Out: a GraphModule of aten operators. Tensors that are neither inputs nor made inside
(parameters, constants) become attributes of the module.
"""

from __future__ import annotations

import linecache
import operator
import os
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass, field
from types import CodeType, FrameType
from typing import NamedTuple

from rushlight.core.dispatch_key import AUTOGRAD_BITS
from rushlight.core.dtype import QUANTIZED_TYPES
from rushlight.core.pytree import TreeSpec, tree_flatten, tree_unflatten
from rushlight.core.symbolic import ShapeEnv, SymFloat, SymInt
from rushlight.core.tensor import Tensor, wrap
from rushlight.core.tensor_impl import TensorImpl
from rushlight.core.thread_state import ExcludeKeys
from rushlight.core.wrapper_subclasses import constants_of_graphs, is_constant_of_graphs
from rushlight.fx.fake_tensor import FakeTensorMode
from rushlight.fx.graph import Graph
from rushlight.fx.graph_module import GraphModule
from rushlight.fx.interpreter import Interpreter
from rushlight.fx.node import Node
from rushlight.fx.symbolic_sizes import Geometry, SymbolNodes, open_sizes
from rushlight.ops.capture_rules import CAPTURE_RULES
from rushlight.ops.dispatcher import OpOverload
from rushlight.ops.modes import DispatchMode
from rushlight.ops.registry import aten

_CLONE, _DETACH = aten("clone"), aten("detach")
_PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep


class Origin(NamedTuple):
    """The origin of nodes: the user's line, as in a traceback, and the enclosing modules (see `Tracer.create_node`)."""

    line: str = ""
    modules: dict[str, tuple[str, type]] | None = None


class ProxyMode(DispatchMode):
    """Records operator calls into `graph`, and computes their results with the fake mode below it."""

    is_recording = True

    def __init__(
        self, graph: Graph, fakes: FakeTensorMode, names: dict[TensorImpl, str],
        decompositions: Mapping[OpOverload, Callable] | None = None,
    ):  # fmt: skip
        self.graph = graph
        self.fakes = fakes
        self.names = names
        self.decompositions = decompositions or {}
        self.nodes: dict[TensorImpl, Node] = {}
        self.constants: dict[str, Tensor] = {}
        self.symbols = SymbolNodes(graph, self._locate)
        self.origin = Origin()

    def _locate(self) -> str:
        return self.origin.line or user_frame(sys._getframe(1))

    def _mark(self, node: Node) -> None:
        """Record the origin of a new node."""
        node.meta["stack_trace"] = self._locate()
        if self.origin.modules:
            node.meta["nn_module_stack"] = self.origin.modules

    def track(self, tensor: Tensor, node: Node) -> None:
        """Record that `node` produces `tensor`."""
        self.nodes[tensor._impl] = node
        node.meta["val"] = tensor

    def new_input(self, value: Tensor | SymInt, geometry: Geometry | None, name: str) -> Tensor | SymInt:
        """Add an input to the graph; return the fake tensor or symbolic integer that the program gets for it."""
        fake = value if type(value) is SymInt else self.fakes.from_tensor(value, geometry)
        node = self.graph.placeholder(name)
        node.meta["val"] = fake
        if isinstance(fake, Tensor):
            self.track(fake, node)
        self.symbols.bind(fake, node)
        return fake

    def __torch_dispatch__(self, op: OpOverload, types: tuple, args: tuple, kwargs: dict):
        held = constants_of_graphs((*args, *kwargs.values()))
        if held:  # records the operations on the tensors that they consist of
            with self:
                return held[0].__torch_dispatch__(op, held, args, kwargs)
        if op._schema.name in ("detach", "alias") and self.argument(args[0]).op == "call_function":
            return self._same_value(args[0])  # for an input it is another tensor, which does not require grad
        if op._schema.name == "lift_fresh":
            op = _CLONE  # every call of the program makes a tensor literal anew
        for rules in (CAPTURE_RULES, self.decompositions):
            if op in rules:
                with self:
                    result = rules[op](*args, **kwargs)
                if result is not NotImplemented:
                    return result
        return self.call(op, args, kwargs)

    def call(self, op: OpOverload, args: tuple, kwargs: dict) -> object:
        """Call an operator with autograd off, and add the node of the call."""
        node_args = _map(self.argument, args)
        node_kwargs = {name: _map(self.argument, value) for name, value in kwargs.items()}
        with ExcludeKeys(AUTOGRAD_BITS):
            result = op(*args, **kwargs)
        node = self.graph.create_node("call_function", op, node_args, node_kwargs, name=op._schema.name)
        self._mark(node)
        return self._record(op, node, args, result)

    def _same_value(self, tensor: Tensor) -> Tensor:
        node = self.argument(tensor)
        fake = self.fakes.from_tensor(tensor)
        impl = fake._impl
        made = wrap(impl.alias(impl.sizes, impl.strides, impl.storage_offset))
        self.nodes[made._impl] = node
        return made

    def _record(self, op: OpOverload, node: Node, args: tuple, result):
        if op.is_mutable and result is args[0]:
            # The written tensor is the result: later uses read the node of the write.
            self.track(self.fakes.from_tensor(result), node)
            self.nodes[result._impl] = node
            return result
        if isinstance(result, tuple | list):
            node.meta["val"] = result
            self._record_items(node, result)
        elif isinstance(result, Tensor):
            self.track(result, node)
            self._bind_unknown(result, node)
        elif type(result) in (SymInt, SymFloat):
            node.meta["val"] = result
            self.symbols.bind(result, node)
        return result

    def _bind_unknown(self, result: Tensor, node: Node) -> None:
        """Record where to read sizes that depend on values."""
        if any(type(size) is SymInt and size.is_unknown for size in result._impl.sizes):
            self.symbols.bind(result, node)

    def _record_items(self, node: Node, result: tuple | list) -> None:
        for index, value in enumerate(result):
            if not isinstance(value, Tensor | list):
                continue
            item = self.graph.create_node("call_function", operator.getitem, (node, index), name=f"{node.name}_{index}")
            item.meta["stack_trace"] = node.meta["stack_trace"]
            if isinstance(value, Tensor):
                self.track(value, item)
                self._bind_unknown(value, item)
            else:
                item.meta["val"] = value
                self._record_items(item, value)

    def argument(self, value: object) -> object:
        """Convert `value` to an argument of a node: a node for a tensor or a symbolic number, any other value unchanged."""
        if type(value) in (SymInt, SymFloat):
            return self.symbols.node_of(value)
        if not isinstance(value, Tensor):
            return value
        node = self.nodes.get(value._impl) or self._same_memory(value._impl)
        return self._constant(value) if node is None else node

    def _same_memory(self, impl: TensorImpl) -> Node | None:
        """Find the node of a tensor with the same memory, sizes and strides: `.data` makes one without calling an operator.

        For `.data` of an input or parameter, a `detach` node is added: it is another tensor, which does not require grad.
        """
        others = self.nodes if impl.fake else {} if impl in self.names else self.names
        geometry = (impl.dtype, impl.storage_offset, impl.sizes, impl.strides)
        for other in reversed(others):
            if other.storage is impl.storage and (other.dtype, other.storage_offset, other.sizes, other.strides) == geometry:
                node = self.argument(wrap(other))
                self.nodes[impl] = node if node.op == "call_function" else self._insert_detach(node, wrap(impl))
                return self.nodes[impl]
        return None

    def _insert_detach(self, node: Node, result: Tensor) -> Node:
        detached = self.graph.create_node("call_function", _DETACH, (node,), name="detach")
        self._mark(detached)
        detached.meta["val"] = self.fakes.from_tensor(result)
        return detached

    def _constant(self, tensor: Tensor) -> Node:
        if tensor._impl.dtype in QUANTIZED_TYPES:
            raise NotImplementedError("a quantized tensor that a captured graph would have to hold, take or give")
        if tensor._impl.fake:
            raise RuntimeError(
                "a fake tensor from outside this capture reached it: a tensor of an earlier capture was kept, e.g. in a "
                "module attribute. Remove the side effect from the compiled function."
            )
        qualified = self.names.get(tensor._impl)
        name = re.sub(r"\W", "_", qualified) if qualified else f"_tensor_constant{len(self.constants)}"
        while name in self.constants:
            name += "_"
        self.constants[name] = tensor
        node = self.graph.create_node("get_attr", name, name=name)
        node.meta["qualified_name"] = qualified
        self.nodes[tensor._impl] = node
        node.meta["val"] = self.fakes.from_tensor(tensor)
        return node


def _map(function: Callable, value: object) -> object:
    if isinstance(value, tuple | list):
        items = [_map(function, item) for item in value]
        return items if type(value) is list else tuple(items)
    return function(value)


def is_library(code: CodeType) -> bool:
    """Return whether code belongs to this package."""
    return code.co_filename.startswith(_PACKAGE)


def user_frame(frame: FrameType | None) -> str:
    """Return the innermost frame outside the package, as a line of a traceback and its code."""
    while frame is not None and is_library(frame.f_code):
        frame = frame.f_back
    if frame is None:
        return ""
    path, line, name = frame.f_code.co_filename, frame.f_lineno, frame.f_code.co_name
    return f'File "{path}", line {line}, in {name}\n    {linecache.getline(path, line).strip()}'


class ModuleRunner(Interpreter):
    """Runs a GraphModule's nodes, and gives the new nodes the user's source lines of the old ones."""

    def __init__(self, module: GraphModule, mode: ProxyMode):
        super().__init__(module)
        self.mode = mode

    def run_node(self, node: Node) -> object:
        """Run a node, and return its result."""
        self.mode.origin = origin_of(node)
        return super().run_node(node)


def origin_of(node: Node) -> Origin:
    """Return the origin that a node's meta records."""
    return Origin(innermost_user_line(node.stack_trace or ""), node.meta.get("nn_module_stack"))


def innermost_user_line(stack_trace: str) -> str:
    """Return the last frame outside the package in a formatted stack trace."""
    frames = [frame for frame in re.split(r"^  (?=File )", stack_trace, flags=re.MULTILINE) if frame.startswith("File ")]
    return next((frame.rstrip() for frame in reversed(frames) if not frame.startswith(f'File "{_PACKAGE}')), "")


@dataclass
class Capture:
    """A captured program: its graph over flat tensor inputs, and how its results are put together again.

    `module(*tensors)` returns the flat outputs as a tuple; `unflatten` builds the function's own result from them.
    """

    module: GraphModule
    output_spec: TreeSpec
    constants: dict[str, Tensor] = field(default_factory=dict)

    def unflatten(self, outputs: tuple) -> object:
        """Return the result in the function's own structure."""
        return tree_unflatten(outputs, self.output_spec)


def capture(
    function: Callable,
    args: tuple,
    kwargs: dict | None = None,
    names: dict[TensorImpl, str] | None = None,
    class_name: str = "GraphModule",
    open_leaves: Sequence[Geometry | SymInt | None] | None = None,
    decompositions: Mapping[OpOverload, Callable] | None = None,
    input_names: Sequence[str] | None = None,
    every_leaf: bool = False,
    following: Callable[[FakeTensorMode], AbstractContextManager] | None = None,
) -> Capture:
    """Record `function(*args, **kwargs)`: the tensors among the arguments' leaves become inputs, in order.

    `open_leaves` says for each leaf what to leave symbolic: sizes and strides of a tensor, a SymInt in place of an int, which
    then becomes an input, or None. `names` has the qualified names of tensors that the function may use, `input_names` those of
    the inputs, leaf by leaf. `decompositions` are functions that are recorded in place of operators, unless they return
    NotImplemented. With `every_leaf`, leaves that are not tensors become unused inputs.

    Python's control flow is followed once. DataDependentError if the function asks for a value, unless `following`, a context
    manager, gives such operators results. A GraphModule is run node by node, so that the new nodes get the user's source lines
    of the old ones.
    """
    leaves, spec = tree_flatten((args, kwargs or {}))
    graph, fakes = Graph(), FakeTensorMode()
    mode = ProxyMode(graph, fakes, names or {}, decompositions)
    called = input_names or [f"arg{index}_1" for index in range(len(leaves))]
    given = zip(leaves, open_leaves or [None] * len(leaves), called, strict=True)
    replaced = [_input(mode, leaf, opened, name, every_leaf) for leaf, opened, name in given]
    fake_args, fake_kwargs = tree_unflatten(replaced, spec)
    if isinstance(function, GraphModule):
        function = ModuleRunner(function, mode).run
    with ExitStack() as stack:
        stack.enter_context(fakes)
        stack.enter_context(mode)
        if following is not None:
            stack.enter_context(following(fakes))
        result = function(*fake_args, **fake_kwargs)
        outputs, output_spec = tree_flatten(result)
        outputs = [value.dequantize() if is_constant_of_graphs(type(value)) else value for value in outputs]
    graph.output(tuple(mode.argument(value) for value in outputs))
    graph.eliminate_dead_code()
    used = {node.target for node in graph.nodes if node.op == "get_attr"}
    constants = {name: value for name, value in mode.constants.items() if name in used}
    return Capture(GraphModule(constants, graph, class_name), output_spec, constants)


def _input(mode: ProxyMode, leaf: object, opened: Geometry | SymInt | None, name: str, every_leaf: bool) -> object:
    """Return the program's value for a leaf of its arguments."""
    if type(opened) is SymInt:
        return mode.new_input(opened, None, name)
    if not isinstance(leaf, Tensor):
        if every_leaf:
            mode.graph.placeholder(name)
        return leaf
    fake = mode.fakes.from_tensor(leaf, opened)
    return fake if fake._impl in mode.nodes else mode.new_input(leaf, opened, name)


TRACING_MODES = ("real", "fake", "symbolic")


def make_fx(
    function: Callable, tracing_mode: str = "fake", decompositions: Mapping[OpOverload, Callable] | None = None,
    names: Callable[[tuple, dict], list[str]] | None = None,
) -> Callable[..., GraphModule]:  # fmt: skip
    """Return a function that, called like `function`, returns the GraphModule of aten operators that `function` runs.

    The module takes the arguments' leaves and returns what `function` returns; values other than tensors are fixed as recorded.
    With `tracing_mode="symbolic"` sizes and ints are left symbolic: the module then serves other sizes, as far as the guards of
    `module.shape_env` admit. "real" and "fake" mean the same. `decompositions` are functions to record in place of
    operators; `names` returns, for the arguments, the names of their leaves. ValueError for another mode.
    """
    if tracing_mode not in TRACING_MODES:
        raise ValueError(f"Unexpected tracing type: {tracing_mode}, expected one of {', '.join(TRACING_MODES)}")

    def traced(*args, **kwargs) -> GraphModule:
        environment = ShapeEnv(locate=lambda: user_frame(sys._getframe(1)), keeps_floats=True)
        opened = _open_all(environment, tree_flatten((args, kwargs))[0]) if tracing_mode == "symbolic" else None
        called = None if names is None else names(args, kwargs)
        captured = capture(
            function, args, kwargs, open_leaves=opened, decompositions=decompositions, input_names=called, every_leaf=True
        )
        captured.module.shape_env = environment
        output = captured.module.graph.output_node()
        output.args = (tree_unflatten(list(output.args[0]), captured.output_spec),)
        captured.module.recompile()
        return captured.module

    return traced


def _open_all(environment: ShapeEnv, leaves: list) -> list:
    """Make all sizes and ints of the leaves symbolic."""
    return [_open_leaf(environment, leaf, f"arg{index}_1") for index, leaf in enumerate(leaves)]


def _open_leaf(environment: ShapeEnv, leaf: object, source: str) -> Geometry | SymInt | None:
    if type(leaf) is int:
        made = environment.create_symbol(leaf, source, share=False, least=None)
        return made if type(made) is SymInt else None
    return open_sizes(environment, leaf._impl, range(leaf.dim()), source) if isinstance(leaf, Tensor) else None
