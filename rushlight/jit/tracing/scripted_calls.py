"""Calls of scripted functions and methods in a trace: one node each, `prim::CallFunction` or `prim::CallMethod`."""

from __future__ import annotations

from rushlight.core.tensor import Tensor
from rushlight.jit.constants import insert_constant
from rushlight.jit.function import Function
from rushlight.jit.ir.graph import Value
from rushlight.jit.runtime.objects import ScriptObject
from rushlight.jit.tracing.numbers import TracedFloat, TracedInt, as_number
from rushlight.jit.tracing.state import TracingState, complete_type
from rushlight.jit.types.kinds import FLOAT, INT, TENSOR, DictType, ListType, OptionalType, TupleType, Type


def record_call(tracing: TracingState, function: Function, arguments: list, result: object) -> None:
    """Add a call to the graph: the callee, the arguments and the result."""
    tracing.locate()
    graph = tracing.graph
    schema = function.schema
    values = [ivalue(tracing, value, each.type) for value, each in zip(arguments, schema.arguments, strict=True)]
    is_method = bool(arguments) and isinstance(arguments[0], ScriptObject)
    if is_method:
        node = graph.insert("prim::CallMethod", values).set("name", function.short_name)
    else:
        constant = insert_constant(graph, function, graph.current_range)
        node = graph.insert("prim::CallFunction", [constant, *values])
    _take(tracing, node.output.set_type(schema.return_type), result)


def ivalue(tracing: TracingState, value: object, kind: Type) -> Value:
    """Return the graph value of a value of scripted code. RuntimeError for an object that is no part of the traced module."""
    graph = tracing.graph
    if isinstance(kind, OptionalType) and value is not None:
        kind = kind.element
    if isinstance(value, Tensor):
        return tracing.value_of(value)
    if isinstance(value, TracedInt | TracedFloat):
        return as_number(value, INT if isinstance(value, int) and kind != FLOAT else kind)
    if isinstance(value, ScriptObject):
        return _object(tracing, value)
    if isinstance(value, list) and isinstance(kind, ListType):
        parts = [ivalue(tracing, item, kind.element) for item in value]
        return graph.insert("prim::ListConstruct", parts).output.set_type(kind)
    if isinstance(value, tuple) and isinstance(kind, TupleType):
        parts = [ivalue(tracing, item, each) for item, each in zip(value, kind.elements, strict=True)]
        return graph.insert("prim::TupleConstruct", parts).output.set_type(kind)
    if isinstance(value, dict) and isinstance(kind, DictType):
        pairs = [(part, each) for key, item in value.items() for part, each in ((key, kind.key), (item, kind.value))]
        parts = [ivalue(tracing, part, each) for part, each in pairs]
        return graph.insert("prim::DictConstruct", parts).output.set_type(kind)
    made = insert_constant(graph, value, graph.current_range)
    if made is None:
        raise RuntimeError(f"Tracer cannot infer the type of {value!r}, an argument of a scripted function")
    return made


def _object(tracing: TracingState, value: ScriptObject) -> Value:
    found = tracing.objects.get(value)
    if found is None:
        raise RuntimeError(
            f"a scripted object of type {value.type.name} is used in a trace but is no attribute of the traced module; make it "
            "a submodule"
        )
    return found


def _holds_tensors(result: object) -> bool:
    """Return whether a result is a tensor or a container with one."""
    if isinstance(result, dict):
        return any(map(_holds_tensors, result.values()))
    if isinstance(result, list | tuple):
        return any(map(_holds_tensors, result))
    return isinstance(result, Tensor)


def _take(tracing: TracingState, value: Value, result: object) -> None:
    """Bind the tensors in a result to values."""
    graph = tracing.graph
    if isinstance(result, Tensor):
        value.set_type(complete_type(result) if value.type == TENSOR else value.type)
        tracing.set_value(result, value)
    elif isinstance(result, tuple) and isinstance(value.type, TupleType):
        node = graph.insert("prim::TupleUnpack", [value], 0)
        for item, kind in zip(result, value.type.elements, strict=True):
            _take(tracing, node.add_output(kind), item)
    elif isinstance(result, list) and isinstance(value.type, ListType) and any(map(_holds_tensors, result)):
        node = graph.insert("prim::ListUnpack", [value], 0)
        for item in result:
            _take(tracing, node.add_output(value.type.element), item)
    elif isinstance(result, dict) and isinstance(value.type, DictType):
        for key, item in result.items():
            if _holds_tensors(item):
                node = graph.insert("aten::__getitem__", [value, insert_constant(graph, key)])
                _take(tracing, node.output.set_type(value.type.value), item)
