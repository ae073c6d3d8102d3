"""Compile straight-line pieces of a jit graph: run nodes on fake tensors to get an aten graph, and lower that with inductor.


In: nodes in order, the tensors and numbers that they take from outside, and the values that are needed afterwards. Out: a
Region of a structured program, with the sizes of its outputs.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from rushlight.autograd.grad_mode import no_grad
from rushlight.compiler.passes import PIPELINE
from rushlight.compiler.scripted.typed import Number, call_with_numbers, written
from rushlight.core.dtype import bool_, float64, int64
from rushlight.core.layout import contiguous_format
from rushlight.core.tensor import Tensor
from rushlight.core.thread_state import state
from rushlight.fx.proxy_tensor import Origin, ProxyMode, capture
from rushlight.inductor.codegen.cpp.program import ProgramWriter
from rushlight.inductor.graph import GraphLowering
from rushlight.inductor.structured import BOOL, FLOAT, Operand, Region, Scalar, TensorOf, Var
from rushlight.inductor.support import is_supported
from rushlight.jit.enumerations import dtype_of_number
from rushlight.jit.ir.graph import Node, Value
from rushlight.jit.operators.lookup import operator_of, writes
from rushlight.jit.runtime.primitives import PRIMITIVES
from rushlight.ops.modes import SuspendModes
from rushlight.ops.packet import find_packet
from rushlight.ops.registry import aten


class Unsupported(Exception):
    """A graph contains something without a native form; the message names it."""


class NoNativeForm(Unsupported):
    """A piece contains an operator that only the library's kernels compute."""


class OutputIsConstant(Unsupported):
    """An output of a piece is a constant that is prepared once."""


@dataclass
class Piece:
    """Nodes that run together. `inputs` maps values from outside to operands, `plain` maps values that are known now. `wanted`
    are values that are needed afterwards even if no node outside uses them."""

    nodes: list[Node] = field(default_factory=list)
    inputs: dict[Value, Operand] = field(default_factory=dict)
    plain: dict[Value, object] = field(default_factory=dict)
    wanted: set[Value] = field(default_factory=set)

    def makes(self, value: Value) -> bool:
        """Return whether a node of the piece makes a value."""
        return value.node in self.nodes


def example_of(operand: Operand) -> Tensor:
    """Make a tensor like those that a piece gets for an operand."""
    if isinstance(operand.kind, TensorOf):
        size, strides = operand.kind.size, operand.kind.strides
        if strides is None:
            return aten("empty.memory_format")(list(size), dtype=operand.kind.dtype)
        return aten("empty_strided")(list(size), list(strides), dtype=operand.kind.dtype)
    kind = float64 if operand.kind == FLOAT else bool_ if operand.kind == BOOL else int64
    return aten("empty.memory_format")([], dtype=kind)


def function_of(node: Node) -> Callable:
    """Return the function that computes a node. Unsupported for nodes without an operator."""
    if node.kind in PRIMITIVES:
        return PRIMITIVES[node.kind](node)
    operator = operator_of(node)
    if operator is None:
        raise Unsupported(f"{node.kind} has no operator")
    return operator.function


@dataclass(frozen=True)
class Known:
    """A 0-dim tensor whose element is known now; it is made from a size, for example."""

    tensor: Tensor


def run_nodes(nodes: Sequence[Node], values: dict[Value, object], in_place: bool = False) -> None:
    """Compute nodes one by one. Whatever depends on sizes only is computed at once, not recorded. `in_place`: an operator that

    writes returns the tensor that it would write.
    """
    capturing = next((mode for mode in reversed(state.modes) if isinstance(mode, ProxyMode)), None)
    for node in nodes:
        arguments = [values[value] for value in node.inputs]
        if capturing is not None:
            capturing.origin = Origin(node.source_range.traceback() if node.source_range is not None else "")
        build = _BUILDERS.get(node.kind)
        if build is not None:
            build(node, arguments, values)
            continue
        if in_place and writes(node):
            values[node.output] = written(node, [_unwrap_known(each) for each in arguments])
            continue
        if any(isinstance(each, Number) for each in arguments):
            values[node.output] = _run_with_numbers(node, [_unwrap_known(each) for each in arguments])
            continue
        is_known = node.kind == "prim::NumToTensor" or any(isinstance(each, Known) for each in arguments)
        if is_known and not any(isinstance(each, Tensor) and each._impl.fake for each in arguments):
            with SuspendModes():
                results = function_of(node)(*map(_unwrap_known, arguments))
            values[node.output] = Known(results) if isinstance(results, Tensor) else results
            continue
        results = function_of(node)(*map(_unwrap_known, arguments))
        if node.outputs:
            values.update(zip(node.outputs, (results,) if len(node.outputs) == 1 else results, strict=True))


def _run_with_numbers(node: Node, arguments: list) -> object:
    """Run a node that has Numbers among its arguments."""
    if writes(node):
        return find_packet("aten::copy_")(arguments[0], written(node, arguments))
    return call_with_numbers(node, arguments)


def _unwrap_known(value: object) -> object:
    return value.tensor if isinstance(value, Known) else value


def _unpack(node: Node, arguments: list, values: dict) -> None:
    values.update(zip(node.outputs, arguments[0], strict=True))


def _make_list(node: Node, arguments: list, values: dict) -> None:
    values[node.output] = [_unwrap_known(value) for value in arguments]


def _make_tuple(node: Node, arguments: list, values: dict) -> None:
    values[node.output] = tuple(_unwrap_known(value) for value in arguments)


def _make_dict(node: Node, arguments: list, values: dict) -> None:
    items = [_unwrap_known(value) for value in arguments]
    values[node.output] = dict(zip(items[::2], items[1::2], strict=True))


def _make_empty(node: Node, arguments: list, values: dict) -> None:
    """Fill an empty tensor with zeros: its contents are undefined, and a piece has to compute each of its outputs."""
    zeros = find_packet("aten::zeros" if node.kind == "aten::empty" else "aten::zeros_like")
    values[node.output] = zeros(arguments[0], dtype=None if arguments[1] is None else dtype_of_number(arguments[1]))


_BUILDERS = {
    "prim::ListConstruct": _make_list, "prim::TupleConstruct": _make_tuple, "prim::DictConstruct": _make_dict,
    "prim::ListUnpack": _unpack, "prim::TupleUnpack": _unpack, "aten::empty": _make_empty, "aten::empty_like": _make_empty,
}  # fmt: skip


def make_region(
    piece: Piece, outputs: Sequence[Value], fixed: set[Var], threads: int | None, constant: Callable[[Tensor], Var]
) -> tuple[Region, list[Operand], list[TensorOf]]:
    """Make a region from a piece; return also the operands to pass to it, and the types of its outputs. `fixed` are operands
    that

    never change; `constant` returns the operand for a tensor that an operator makes during the capture.
    """
    changing = [value for value, operand in piece.inputs.items() if operand not in fixed]
    kept = {value: operand for value, operand in piece.inputs.items() if operand in fixed}
    examples = [example_of(piece.inputs[value]) for value in changing]
    constants = {value: example_of(operand) for value, operand in kept.items()}

    def run(*tensors: Tensor) -> tuple:
        values = {**piece.plain, **constants, **dict(zip(changing, tensors, strict=True))}
        for value, operand in piece.inputs.items():
            if isinstance(operand.kind, Scalar):
                values[value] = Number(values[value])
        try:
            run_nodes(piece.nodes, values, in_place=True)
        except (RuntimeError, TypeError, ValueError, IndexError) as error:
            # The interpreter raises the error if it reaches the node.
            raise Unsupported(f"operators that fail: {error}") from error
        taken = {tensor._impl.storage for tensor in (*tensors, *constants.values())}
        results = []
        for value in outputs:
            tensor = values[value]
            if not isinstance(tensor, Tensor):
                raise Unsupported(f"{value.node.kind} gives no tensor")
            results.append(_own_memory(tensor, taken))
        return tuple(results)

    with no_grad():
        captured = capture(run, tuple(examples)).module
        for graph_pass in PIPELINE:
            graph_pass(captured)
    _check(captured)
    lowered = GraphLowering(captured).run()
    program = ProgramWriter(lowered, threads).write()
    by_tensor = {id(tensor): kept[value] for value, tensor in constants.items()}
    tensors = [getattr(captured, buffer.target) for buffer in program.constants]
    used = [by_tensor.get(id(tensor)) or constant(tensor) for tensor in tensors]
    names = _output_names(lowered, program.outputs)
    kinds = [TensorOf(node.meta["val"].dtype, tuple(node.meta["val"].shape)) for node in captured.graph.output_node().args[0]]
    return Region(lowered, program, used, names), [piece.inputs[value] for value in changing], kinds


def _own_memory(tensor: Tensor, taken: set) -> Tensor:
    """Return a contiguous tensor that shares memory with no other."""
    impl = tensor._impl
    whole = impl.is_contiguous() and impl.storage_offset == 0 and impl.storage not in taken
    if not (whole and impl.storage.nbytes == impl.numel * impl.dtype.itemsize):
        tensor = tensor.clone(memory_format=contiguous_format)
    taken.add(tensor._impl.storage)
    return tensor


def _check(captured) -> None:
    """Raise Unsupported unless every node has native rules and none writes to an input."""
    for node in captured.graph.nodes:
        if node.op == "call_function" and (not is_supported(node) or getattr(node.target, "is_mutable", False)):
            raise NoNativeForm(f"{node.target} has no native form")
    if captured.meta.get("keep_eager"):
        raise NoNativeForm(captured.meta["keep_eager"])


def _output_names(lowered, own: list[str]) -> list[str]:
    """Return the names of the buffers that are outputs. OutputIsConstant if an output has no buffer of its own."""
    names = []
    for view in lowered.outputs:
        if view.buffer not in own or view.offset != 0:
            raise OutputIsConstant("an output that is a view")
        names.append(view.buffer)
    if len(set(names)) != len(names):
        raise Unsupported("two outputs that are one")
    return names


