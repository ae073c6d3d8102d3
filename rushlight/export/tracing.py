"""The trace: a module run once on fake tensors, with every operator recorded before composites are decomposed.

In: a module, its arguments, the open sizes. Out: a graph whose inputs are the parameters, buffers and constants, then the
user's inputs. The graph may write to its inputs; `functional.py` turns such writes into outputs.
"""

from __future__ import annotations

import linecache
import warnings
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any

from rushlight.core.pytree import TreeSpec, tree_flatten, tree_unflatten
from rushlight.core.symbolic import UnknownSizeError
from rushlight.core.tensor import Tensor
from rushlight.core.tensor_impl import DataDependentError, TensorImpl
from rushlight.core.thread_state import state
from rushlight.core.wrapper_subclasses import is_constant_of_graphs
from rushlight.dynamo.unknown_sizes import UnknownSizes
from rushlight.dynamo.unknown_values import check_relation, message_of
from rushlight.export.errors import UserError
from rushlight.export.graph_signature import (
    ConstantArgument,
    ExportGraphSignature,
    InputKind,
    InputSpec,
    OutputKind,
    OutputSpec,
    TensorArgument,
    argument_kind,
)
from rushlight.export.names import add_placeholder, identifier
from rushlight.export.ranges import OpenInputs
from rushlight.fx.fake_tensor import FakeTensorMode
from rushlight.fx.graph import Graph
from rushlight.fx.graph_module import GraphModule
from rushlight.fx.node import Node
from rushlight.fx.proxy_tensor import ProxyMode, is_library
from rushlight.fx.symbolic_sizes import Geometry
from rushlight.nn.modules.module import Module
from rushlight.ops.dispatcher import OpOverload
from rushlight.ops.recording import recording, suspended
from rushlight.ops.registry import aten
from rushlight.utils._pytree import tree_flatten_with_path

_COPY, _CLONE = aten("copy_"), aten("clone")


@dataclass
class Traced:
    """A graph with its signature. `constants` are tensors that the program used and that are not the module's state."""

    module: GraphModule
    signature: ExportGraphSignature
    constants: dict[str, Tensor]
    out_spec: TreeSpec


class _Recorder(ProxyMode):
    """Records the calls of a program whose inputs already have nodes."""

    def __init__(self, graph: Graph, fakes: FakeTensorMode, geometry: dict[TensorImpl, Geometry]) -> None:
        super().__init__(graph, fakes, {})
        self.geometry = geometry
        self.last_input: Node | None = None

    def record(self, op: OpOverload, key_set: int, args: tuple, kwargs: dict) -> object:
        """Record a call; the operator itself runs on fake tensors, unrecorded."""
        if op._opname == "lift_fresh":
            op = _CLONE  # a tensor literal is made anew at every call of the program
        with suspended(), self.fakes:
            result = self.call(op, args, kwargs)
        return _replace_real_by_fake(result, self)

    def add_input(self, name: str, value: object) -> Node:
        """Add a placeholder after the existing ones."""
        first = self.last_input.next if self.last_input is not None else next(iter(self.graph.nodes), None)
        with self.graph.inserting_before(first) if first is not None else ExitStack():
            node = self.last_input = add_placeholder(self.graph, name)
        node.meta["val"] = value
        if isinstance(value, Tensor):
            fake = self.fakes.from_tensor(value, self.geometry.get(value._impl))
            self.track(fake, node)
            self.nodes[value._impl] = node
            self.symbols.bind(fake, node)
        return node


def _replace_real_by_fake(result: object, recorder: _Recorder) -> object:
    """Return the result with real tensors replaced by fakes, such as a parameter that `contiguous()` returned unchanged."""
    if isinstance(result, Tensor):
        node = recorder.nodes.get(result._impl)
        fake = recorder.fakes.from_tensor(result)
        if node is not None and fake is not result:
            recorder.track(fake, node)
        return fake
    return result


def trace(module: Module, args: tuple, kwargs: dict, opened: OpenInputs, names: dict[str, Any]) -> Traced:
    """Run `module(*args, **kwargs)` and record it. `names` are the arguments' names, in the order of their leaves."""
    graph, fakes = Graph(), FakeTensorMode()
    recorder = _Recorder(graph, fakes, opened.geometry)
    inputs = [*_add_state(recorder, module), *_add_arguments(recorder, names)]
    leaves, spec = tree_flatten((args, kwargs))
    fake_args, fake_kwargs = tree_unflatten([_fake_leaf(recorder, leaf) for leaf in leaves], spec)
    unknown = UnknownSizes(opened.environment)
    with _unchanged_state(module, recorder), unknown.following(fakes):
        result = _run(recorder, module, fake_args, fake_kwargs)
    add_checks(recorder, unknown)
    outputs, out_spec = tree_flatten(result)
    specs = [_output(recorder, value) for value in outputs]
    graph.output(tuple(node for node, _ in specs))
    constants = _lift_constants(recorder, module, inputs)
    signature = ExportGraphSignature(inputs, [OutputSpec(OutputKind.USER_OUTPUT, arg, None) for _, arg in specs])
    graph.eliminate_dead_code()
    graph.lint()
    return Traced(GraphModule({}, graph), signature, constants, out_spec)


def _run(recorder: _Recorder, module: Module, args: tuple, kwargs: dict) -> object:
    with exporting(), recording(recorder.record):
        try:
            return module(*args, **kwargs)
        except (DataDependentError, UnknownSizeError) as error:
            raise UserError(
                f"Could not export a part of the program that depends on the values of a tensor: {error}\n"
                f"{_user_line(error)}\nUse torch.where in the place of such a branch."
            ) from error


def add_checks(recorder: ProxyMode, unknown: UnknownSizes) -> None:
    """Add checks to the graph for assumptions about computed numbers, except numbers that are internal to one operator."""
    for relation in unknown.supposed:
        if not recorder.symbols.has_symbols_of(relation.expression):
            continue
        value = unknown.environment.integer(relation.expression)
        arguments = (recorder.argument(value), relation.kind, message_of(relation), RuntimeError)
        recorder.graph.call_function(check_relation, arguments).meta["val"] = None


def _user_line(error: Exception) -> str:
    """Return the innermost line of the user's code that an exception passed, as a traceback line with its code."""
    frames, trace = [], error.__traceback__
    while trace is not None:
        frames.append((trace.tb_frame.f_code, trace.tb_lineno))
        trace = trace.tb_next
    lines = (
        f'  File "{code.co_filename}", line {number}, in {code.co_name}\n'
        f"    {linecache.getline(code.co_filename, number).strip()}"
        for code, number in reversed(frames) if not is_library(code)
    )  # fmt: skip
    return next(lines, "")


@contextmanager
def exporting() -> Iterator[None]:
    """Return a context in which `torch.compiler.is_exporting()` holds."""
    before, state.exporting = state.exporting, True
    try:
        yield
    finally:
        state.exporting = before


def _fake_leaf(recorder: _Recorder, leaf: object) -> object:
    return recorder.fakes.from_tensor(leaf) if isinstance(leaf, Tensor) else leaf


# Inputs


def _add_state(recorder: _Recorder, module: Module) -> Iterator[InputSpec]:
    for name, parameter in module.named_parameters(remove_duplicate=False):
        if is_constant_of_graphs(type(parameter)):
            continue
        node = recorder.add_input(f"p_{_state_name(name)}", parameter)
        yield InputSpec(InputKind.PARAMETER, TensorArgument(node.name), name)
    persistent = module.state_dict(keep_vars=True)
    for name, buffer in module.named_buffers(remove_duplicate=False):
        if is_constant_of_graphs(type(buffer)):
            continue
        node = recorder.add_input(f"b_{_state_name(name)}", buffer)
        yield InputSpec(InputKind.BUFFER, TensorArgument(node.name), name, name in persistent)


def _add_arguments(recorder: _Recorder, named: dict[str, Any]) -> Iterator[InputSpec]:
    for name, value in named.items():
        for path, leaf in tree_flatten_with_path(value)[0]:
            node = recorder.add_input(identifier("_".join([name, *map(_key, path)])), leaf)
            argument = TensorArgument(node.name) if isinstance(leaf, Tensor) else ConstantArgument(node.name, leaf)
            yield InputSpec(InputKind.USER_INPUT, argument, None)


def _state_name(name: str) -> str:
    return identifier(name).removeprefix("self_")  # PyTorch drops it as the module's name


def _key(entry: Any) -> str:
    return str(next(getattr(entry, name) for name in ("idx", "key", "name") if hasattr(entry, name)))


def _lift_constants(recorder: _Recorder, module: Module, inputs: list[InputSpec]) -> dict[str, Tensor]:
    """Turn tensors that the program used into inputs: attributes of modules, and literals."""
    known = _tensor_attributes(module)
    constants: dict[str, Tensor] = {}
    states = [spec for spec in inputs if spec.kind is not InputKind.USER_INPUT]
    named = {node.name: node for node in recorder.graph.nodes if node.op == "placeholder"}
    recorder.last_input = named[states[-1].arg.name] if states else None
    for target, tensor in recorder.constants.items():
        name = known.get(tensor._impl) or f"lifted_tensor_{sum(other.startswith('lifted_tensor_') for other in constants)}"
        node = recorder.add_input(f"c_{_state_name(name)}", recorder.fakes.from_tensor(tensor))
        for read in [other for other in recorder.graph.nodes if other.op == "get_attr" and other.target == target]:
            read.replace_all_uses_with(node)
            recorder.graph.erase_node(read)
        constants[name] = tensor
        inputs.insert(len(states), InputSpec(InputKind.CONSTANT_TENSOR, TensorArgument(node.name), name))
        states.append(inputs[len(states)])
    return constants


def _tensor_attributes(module: Module) -> dict[TensorImpl, str]:
    return {
        value._impl: f"{path}.{name}" if path else name
        for path, owner in module.named_modules()
        for name, value in vars(owner).items() if isinstance(value, Tensor)
    }  # fmt: skip


# Outputs


def _output(recorder: _Recorder, value: object) -> tuple[object, Any]:
    node = recorder.argument(value)
    if not isinstance(node, Node):
        if node is not None and not isinstance(node, int | float | bool | str):
            raise TypeError(f"an exported program returns tensors, numbers and strings, got {type(node).__name__}")
        return node, ConstantArgument("", node)
    return node, argument_kind(value)(node.name)


# State


@contextmanager
def _unchanged_state(module: Module, recorder: _Recorder) -> Iterator[None]:
    """Restore attributes that the run assigns. An assigned buffer becomes a write to it."""
    before = [(path, owner, dict(vars(owner)), dict(owner._buffers)) for path, owner in module.named_modules()]
    try:
        yield
        for path, owner, attributes, buffers in before:
            _record_assigned(recorder, owner, buffers)
            _warn_assigned(path, owner, attributes)
    finally:
        for _, owner, attributes, buffers in before:
            vars(owner).clear()
            vars(owner).update(attributes)
            owner._buffers.clear()
            owner._buffers.update(buffers)


def _record_assigned(recorder: _Recorder, owner: Module, buffers: dict[str, Any]) -> None:
    for name, value in owner._buffers.items():
        old = buffers.get(name)
        if value is not old and isinstance(value, Tensor) and isinstance(old, Tensor):
            recorder.record(_COPY, 0, (old, value), {})


def _warn_assigned(path: str, owner: Module, attributes: dict[str, Any]) -> None:
    changed = [name for name, value in vars(owner).items() if attributes.get(name) is not value and isinstance(value, Tensor)]
    for name in changed:
        warnings.warn(
            f"The tensor attribute {f'{path}.{name}' if path else name} was assigned during export. Such attributes must be "
            "registered as buffers using the `register_buffer` API; the assignment is left out.", stacklevel=2,
        )  # fmt: skip
