"""An exported program as JSON values and tensors by name, and back.

In: a program. Out: the content of `archive.py`'s files. The fake values of nodes are not written: running the graph on fake
tensors recreates them.
"""

from __future__ import annotations

import math
import operator
from typing import Any

from rushlight.core.algebra import Var
from rushlight.core.dispatch_key import AUTOGRAD_BITS
from rushlight.core.layout import strided
from rushlight.core.pytree import tree_flatten, tree_unflatten
from rushlight.core.symbolic import ShapeEnv, SymInt
from rushlight.core.tensor import Tensor
from rushlight.core.thread_state import ExcludeKeys
from rushlight.dynamo.unknown_sizes import UnknownSizes
from rushlight.dynamo.unknown_values import check_relation
from rushlight.export import graph_signature as signatures
from rushlight.export.encoding import (
    RELATIONS,
    FormatError,
    decode,
    decode_relation,
    decode_size,
    decode_target,
    decode_tree,
    dtype_named,
    encode,
    encode_relation,
    encode_size,
    encode_target,
    encode_tree,
)
from rushlight.export.exported_program import CallSpec, ExportedProgram
from rushlight.export.graph_signature import ExportGraphSignature, InputKind, InputSpec, OutputKind, OutputSpec
from rushlight.export.names import add_placeholder
from rushlight.export.ranges import ValueRanges
from rushlight.fx.fake_tensor import FakeTensorMode
from rushlight.fx.graph import Graph
from rushlight.fx.graph_module import GraphModule
from rushlight.fx.node import Node, map_arg
from rushlight.fx.symbolic_sizes import environment_of
from rushlight.nn.parameter import Parameter
from rushlight.ops.dispatcher import OpOverload
from rushlight.ops.registry import aten

_ARGUMENTS = {
    kind.__name__: kind
    for kind in (
        signatures.TensorArgument, signatures.SymIntArgument, signatures.SymFloatArgument, signatures.ConstantArgument,
    )
}  # fmt: skip


def tensors_of(program: ExportedProgram) -> dict[str, Tensor]:
    """Return all tensors of a program, by names that encode their role."""
    named = {f"state/{name}": tensor for name, tensor in program.state_dict.items()}
    named |= {f"constant/{name}": tensor for name, tensor in program.constants.items()}
    leaves = tree_flatten(program.example_inputs)[0] if program.example_inputs else []
    named |= {f"example/{index}": leaf for index, leaf in enumerate(leaves) if isinstance(leaf, Tensor)}
    for name, tensor in named.items():
        if tensor.is_quantized or tensor.layout is not strided:
            raise TypeError(f"{name.partition('/')[2]} is a quantized or sparse tensor, which cannot be saved")
    return named


def write_program(program: ExportedProgram) -> dict[str, Any]:
    """Encode a program without its tensors."""
    environment = environment_of([node.meta.get("val") for node in program.graph.nodes if node.op == "placeholder"])
    # Reading the graph makes the symbols of numbers that it computes anew.
    symbols = [symbol for symbol in environment.symbols if symbol not in environment.unknown] if environment is not None else []
    examples = tree_flatten(program.example_inputs)[0] if program.example_inputs else None
    return {
        "dialect": program.dialect,
        "symbols": [[symbol.name, environment.hint_of(symbol), symbol.least, symbol.extent] for symbol in symbols],
        "nodes": [_write_node(node) for node in program.graph.nodes],
        "inputs": [_write_spec(spec) for spec in program.graph_signature.input_specs],
        "outputs": [_write_spec(spec) for spec in program.graph_signature.output_specs],
        "ranges": [
            [encode_size(size), _end(bounds.lower), _end(bounds.upper)] for size, bounds in program.range_constraints.items()
        ],
        "relations": [encode_relation(relation) for relation in program._relations],
        "size_names": program._size_names,
        "in_spec": encode_tree(program.call_spec.in_spec),
        "out_spec": encode_tree(program.call_spec.out_spec),
        "examples": None if examples is None else [None if isinstance(leaf, Tensor) else encode(leaf) for leaf in examples],
    }  # fmt: skip


def _end(value: float) -> int | None:
    return None if value == math.inf else int(value)


def _write_node(node: Node) -> dict[str, Any]:
    record: dict[str, Any] = {"name": node.name, "op": node.op, "stack_trace": node.stack_trace or ""}
    if node.op == "placeholder":
        record["value"] = _write_value(node.meta["val"])
    elif node.op in ("call_function", "output"):
        record["args"] = encode(tuple(node.args))
        record["kwargs"] = encode(dict(node.kwargs))
        record["target"] = encode_target(node.target) if node.op == "call_function" else "output"
    else:
        raise TypeError(f"an exported program with a node {node.op} cannot be saved")
    return record


def _write_value(value: Any) -> dict[str, Any]:
    if not isinstance(value, Tensor):
        return {"constant": encode(value)}
    return {
        "dtype": value.dtype.name, "sizes": [encode_size(size) for size in value.shape],
        "strides": [encode_size(stride) for stride in value._impl.strides],
    }  # fmt: skip


def _write_spec(spec: InputSpec | OutputSpec) -> dict[str, Any]:
    argument = spec.arg
    record = {"kind": spec.kind.name, "type": type(argument).__name__, "name": argument.name, "target": spec.target}
    if isinstance(argument, signatures.ConstantArgument):
        record["value"] = encode(argument.value)
    return record | ({"persistent": spec.persistent} if isinstance(spec, InputSpec) else {})


# Reading


def read_program(found: dict[str, Any], tensors: dict[str, Tensor]) -> ExportedProgram:
    """Return the inverse of `write_program`. Raises errors of many kinds for other content."""
    environment = ShapeEnv(keeps_floats=True)
    symbols = dict(_read_symbol(environment, *record) for record in found["symbols"])
    graph = _read_graph(found["nodes"], environment, symbols)
    signature = ExportGraphSignature(
        [InputSpec(InputKind[spec["kind"]], _argument(spec), spec["target"], spec["persistent"]) for spec in found["inputs"]],
        [OutputSpec(OutputKind[spec["kind"]], _argument(spec), spec["target"]) for spec in found["outputs"]],
    )
    in_spec = decode_tree(found["in_spec"])
    ranges = {
        decode_size(size, symbols): ValueRanges(lower, math.inf if upper is None else upper)
        for size, lower, upper in found["ranges"]
    }  # fmt: skip
    program = ExportedProgram(
        GraphModule({}, graph), signature, _state(tensors, signature), _group(tensors, "constant/"), ranges,
        CallSpec(in_spec, decode_tree(found["out_spec"])), _examples(found["examples"], tensors, in_spec), found["dialect"],
        [decode_relation(relation, symbols) for relation in found["relations"]],
        {str(symbol): str(name) for symbol, name in found["size_names"].items()},
    )  # fmt: skip
    _check(program)
    return program


def _read_symbol(environment: ShapeEnv, name: str, hint: int, least: int | None, extent: int | None) -> tuple[str, Var]:
    made = environment.create_symbol(hint, name, share=False, least=least, most=None if extent is None else extent - 1)
    if type(made) is not SymInt or made.expr.name != name:
        raise FormatError(f"the size {name!r:.50} is out of place")
    return name, made.expr


def _read_graph(records: list[dict], environment: ShapeEnv, symbols: dict[str, Var]) -> Graph:
    graph, fakes = Graph(), FakeTensorMode()
    nodes: dict[str, Node] = {}
    with UnknownSizes(environment).following(fakes):
        for record in records:
            nodes[record["name"]] = _read_node(graph, record, nodes, fakes, environment, symbols)
    graph.lint()
    return graph


def _read_node(
    graph: Graph, record: dict, nodes: dict[str, Node], fakes: FakeTensorMode, environment: ShapeEnv, symbols: dict[str, Var]
) -> Node:
    if record["op"] == "placeholder":
        node = add_placeholder(graph, record["name"])
        node.meta["val"] = _read_value(record["value"], environment, symbols, fakes)
    elif record["op"] == "output":
        node = graph.output(decode(record["args"], nodes)[0])
    else:
        node = _read_call(graph, record, nodes, fakes)
    if node.op != "output" and node.name != record["name"]:
        raise FormatError(f"the node {record['name']!r:.50} is there twice")
    node.meta["stack_trace"] = record["stack_trace"]
    return node


def _read_call(graph: Graph, record: dict, nodes: dict[str, Node], fakes: FakeTensorMode) -> Node:
    args, kwargs = decode(record["args"], nodes), decode(record["kwargs"], nodes)
    node = graph.create_node("call_function", decode_target(record["target"]), args, kwargs, name=record["name"])
    values, named = map_arg(args, _value_of), map_arg(kwargs, _value_of)
    if node.target is check_relation:
        number, kind, message, error = values
        if kind not in RELATIONS or type(message) is not str or not issubclass(error, Exception):
            raise FormatError(f"a check of {kind!r:.50} with {message!r:.50}")
        _check_numbers(record["target"], (number,))
        node.meta["val"] = None
        return node
    if not isinstance(node.target, OpOverload) and node.target is not operator.getitem:
        _check_numbers(record["target"], values)
    with ExcludeKeys(AUTOGRAD_BITS), fakes:
        node.meta["val"] = node.target(*values, **named)
    return node


def _check_numbers(name: str, values: tuple) -> None:
    """Raise FormatError for arithmetic that no trace writes, since it may take any time and memory."""
    if not all(isinstance(value, int | float) for value in values):
        raise FormatError(f"{name!r:.50} of something else than numbers")
    if any(type(value) is int and abs(value) >> 63 for value in values) or (
        name == "pow" and not any(isinstance(value, float) for value in values)
    ):
        raise FormatError(f"{name!r:.50} of integers whose result may be too large")


def _value_of(node: Node) -> Any:
    return node.meta["val"]


def _read_value(found: dict, environment: ShapeEnv, symbols: dict[str, Var], fakes: FakeTensorMode) -> Any:
    if "constant" in found:
        return decode(found["constant"], {})
    sizes, strides = (
        [environment.integer(decode_size(size, symbols)) for size in found[part]] for part in ("sizes", "strides")
    )  # fmt: skip
    with fakes:
        return aten("empty_strided")(sizes, strides, dtype=dtype_named(found["dtype"]))


def _argument(spec: dict) -> Any:
    kind = _ARGUMENTS[spec["type"]]
    if kind is signatures.ConstantArgument:
        return kind(spec["name"], decode(spec["value"], {}))
    return kind(spec["name"])


def _group(tensors: dict[str, Tensor], prefix: str) -> dict[str, Tensor]:
    return {name.removeprefix(prefix): tensor for name, tensor in tensors.items() if name.startswith(prefix)}


def _state(tensors: dict[str, Tensor], signature: ExportGraphSignature) -> dict[str, Tensor]:
    """Return parameters and buffers. Tensors under several names stay one parameter."""
    made: dict[Tensor, Parameter] = {}
    state = _group(tensors, "state/")
    for name in signature.parameters:
        tensor = state[name]
        if tensor not in made:
            made[tensor] = Parameter(tensor.detach(), requires_grad=tensor.requires_grad)
        state[name] = made[tensor]
    return state


def _examples(found: list | None, tensors: dict[str, Tensor], spec: Any) -> Any:
    if found is None:
        return None
    own = _group(tensors, "example/")
    return tree_unflatten([own.get(str(index), decode(leaf, {})) for index, leaf in enumerate(found)], spec)


def _check(program: ExportedProgram) -> None:
    """Raise FormatError if signature, graph and tensors do not match."""
    specs = program.graph_signature
    placeholders = [node.name for node in program.graph.nodes if node.op == "placeholder"]
    if placeholders != [spec.arg.name for spec in specs.input_specs]:
        raise FormatError("the inputs of the graph are not those of its signature")
    if len(program.graph.output_node().args[0]) != len(specs.output_specs):
        raise FormatError("the outputs of the graph are not those of its signature")
    users = sum(spec.kind is InputKind.USER_INPUT for spec in specs.input_specs)
    results = sum(spec.kind is OutputKind.USER_OUTPUT for spec in specs.output_specs)
    if users != program.call_spec.in_spec.num_leaves or results != program.call_spec.out_spec.num_leaves:
        raise FormatError("the trees of inputs and outputs are not those of the signature")
    held = {**program.constants, **program.state_dict}
    _check_tensors(program, held)


def _check_tensors(program: ExportedProgram, held: dict[str, Tensor]) -> None:
    values = {node.name: node.meta["val"] for node in program.graph.nodes if node.op == "placeholder"}
    for spec in program.graph_signature.input_specs:
        if spec.kind is InputKind.USER_INPUT:
            continue
        wanted, found = values[spec.arg.name], held[spec.target]
        if wanted.dtype is not found.dtype or tuple(wanted.shape) != tuple(found.shape):
            raise FormatError(f"{spec.target} is a {found.dtype} of {tuple(found.shape)}, which the graph does not expect")
