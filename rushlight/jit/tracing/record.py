"""Recording: the kernel of the Tracer key, which sees every call before autograd and with composites whole.

In: an operator call. Out: its results, and a node in the graph of the active trace.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

from rushlight.core.dtype import complex128, float64
from rushlight.core.tensor import Tensor
from rushlight.jit.constants import as_number_tensor, insert_constant
from rushlight.jit.ir.graph import Node, Value
from rushlight.jit.tracing.calls import OfKind, call_of
from rushlight.jit.tracing.numbers import TracedFloat, TracedInt, as_number, plain, traced_item
from rushlight.jit.tracing.state import TracingState, complete_type
from rushlight.jit.tracing.warning import warn_literal
from rushlight.jit.types.extensions import ExtensionType, extension_type_of
from rushlight.jit.types.kinds import BOOL, FLOAT, INT, NUMBER, STRING, TENSOR, ListType
from rushlight.jit.types.kinds import Type as JitType
from rushlight.jit.types.relations import optional
from rushlight.ops.construct import tensor
from rushlight.ops.dispatcher import OpOverload
from rushlight.ops.recording import suspended
from rushlight.ops.schema import Type

_KINDS: dict[str, JitType] = {
    "int": INT, "SymInt": INT, "float": FLOAT, "bool": BOOL, "str": STRING, "Scalar": NUMBER, "Tensor": TENSOR,
}  # fmt: skip


def record(tracing: TracingState, op: OpOverload, key_set: int, args: tuple, kwargs: dict) -> object:
    """Run a call below the tracer and add it to the graph."""
    if op._opname == "_local_scalar_dense":
        return _read_element(op, key_set, args)
    if op._opname == "lift_fresh":
        return _record_literal(tracing, op, key_set, args)
    tracing.locate()
    call = call_of(op, op.normalize(args, kwargs))
    inputs = [argument_value(tracing, value, kind) for value, kind in call.arguments]
    node = tracing.graph.create(call.name, inputs, 0)
    with suspended():
        result = op.redispatch(key_set, *map(plain, args), **{name: plain(value) for name, value in kwargs.items()})
    tracing.graph.insert_node(node)
    if op.is_mutable and not op._schema.returns:
        return result
    results = result if isinstance(result, tuple) and len(op._schema.returns) > 1 else (result,)
    return _wrap_results(result, [add_result(tracing, node, value) for value in results])


def _wrap_results(result: object, values: list) -> object:
    return tuple(values) if len(values) > 1 else values[0]


def _read_element(op: OpOverload, key_set: int, args: tuple) -> object:
    """Return the element of a tensor, read for an operator's argument."""
    with suspended():
        number = op.redispatch(key_set, *args)
    return traced_item(args[0], number)


def _record_literal(tracing: TracingState, op: OpOverload, key_set: int, args: tuple) -> object:
    """Return a tensor made from Python data: a constant."""
    with suspended():
        made = op.redispatch(key_set, *args)
    tracing.locate()
    warn_literal(sys._getframe(3))
    value = tracing.constant_tensor(made)
    graph = tracing.graph
    rest = [insert_constant(graph, each, graph.current_range) for each in (made.device, made.dtype, False, False, None)]
    moved = graph.insert("aten::to", [value, *rest]).output.set_type(value.type)
    tracing.set_value(made, graph.insert("aten::detach", [moved]).output.set_type(value.type))
    return made


def argument_value(tracing: TracingState, value: object, kind: Type) -> Value:
    """Return the graph value of an argument."""
    if kind.is_list and isinstance(value, int | float) and kind.length is not None:
        value = [value] * kind.length
    if isinstance(value, list | tuple) and not isinstance(value, OfKind):
        return _record_list(tracing, value, kind)
    if isinstance(value, Tensor):
        return tracing.value_of(value)
    if isinstance(value, TracedInt | TracedFloat):
        return value.value if kind.base == "Tensor" else as_number(value, _KINDS.get(kind.base, NUMBER))
    if isinstance(value, OfKind):
        with suspended():
            return tracing.constant_tensor(tensor(plain(value.number), dtype=value.dtype))
    if kind.base == "Tensor" and value is not None:
        return tracing.constant_tensor(_number(value))
    if extension_type_of(getattr(value, "held", value)) is not None:
        return _packed_value(tracing, getattr(value, "held", value))
    made = insert_constant(tracing.graph, _to_python(value, kind), tracing.graph.current_range)
    if made is None:  # a generator argument: graphs use the default generator
        made = insert_constant(tracing.graph, None, tracing.graph.current_range)
    return made


def _packed_value(tracing: TracingState, value: object) -> Value:
    """Return packed weights: an attribute of a module, or a traced operator's result."""
    found = tracing.objects.get(value)
    if found is None:
        raise RuntimeError(
            f"tracing: packed weights ({type(value).__name__}) were made outside of the trace; make them an attribute of the "
            "module that is traced"
        )
    return found


def _number(value: object) -> Tensor:
    """Return a number as a 0-dim tensor; a float or complex number keeps its precision."""
    kind = float64 if isinstance(value, float) else complex128 if isinstance(value, complex) else None
    with suspended():
        return as_number_tensor(tensor(value, dtype=kind))


def _to_python(value: object, kind: Type) -> object:
    """Convert NumPy's numbers to Python's, and numbers to the expected type."""
    item = getattr(value, "item", None)
    value = item() if item is not None else value
    if kind.base == "float" and type(value) is int:
        return float(value)
    return value


def _record_list(tracing: TracingState, values: Sequence[object], kind: Type) -> Value:
    element = Type(kind.base, optional=kind.optional_elements)
    items = [argument_value(tracing, value, element) for value in values]
    made = tracing.graph.insert("prim::ListConstruct", items)
    jit_kind = items[0].type if items and isinstance(items[0].type, ExtensionType) else _KINDS.get(kind.base, TENSOR)
    return made.output.set_type(ListType(optional(jit_kind) if kind.optional_elements else jit_kind))


def add_result(tracing: TracingState, node: Node, value: object) -> object:
    """Add a result of a node: a tensor, a list of tensors, a number, or packed weights."""
    output = node.add_output()
    if isinstance(value, Tensor):
        output.set_type(complete_type(value))
        tracing.set_value(value, output)
    elif isinstance(value, list | tuple):
        output.set_type(ListType(TENSOR))
        unpack = tracing.graph.create("prim::ListUnpack", [output], 0).insert_after(node)
        for item in value:
            add_result(tracing, unpack, item)
    elif isinstance(value, bool | int | float):
        output.set_type(BOOL if type(value) is bool else INT if isinstance(value, int) else FLOAT)
    elif extension_type_of(value) is not None:
        tracing.objects[value] = output.set_type(extension_type_of(value))
    return value
