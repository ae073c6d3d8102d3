"""Inputs and outputs of traces: nested tuples, lists and dicts of tensors, as values of the graph.

In: example inputs, and what the program returned. Out: the graph's inputs, taken apart into tensors; its output.
"""

from __future__ import annotations

from rushlight.core.tensor import Tensor
from rushlight.jit.constants import insert_constant
from rushlight.jit.ir.graph import Value
from rushlight.jit.tracing.numbers import TracedFloat, TracedInt
from rushlight.jit.tracing.state import TracingState, complete_type
from rushlight.jit.tracing.warning import CONTAINER, warn
from rushlight.jit.types.kinds import BOOL, FLOAT, INT, STRING, TENSOR, DictType, ListType, TupleType, Type
from rushlight.jit.types.relations import unshaped
from rushlight.ops.recording import suspended

_NO_TENSORS = (
    "cannot be traced. Only Tensors and (possibly nested) Lists, Dicts, and Tuples of Tensors can be traced"
)
_KEYS = {str: STRING, int: INT, float: FLOAT, bool: BOOL}


def python_type(value: object) -> str:
    """Return the type of an example input in Python's spelling, for messages."""
    if isinstance(value, Tensor):
        return "Tensor"
    if isinstance(value, tuple):
        return f"Tuple[{', '.join(map(python_type, value))}]"
    if isinstance(value, list):
        return f"List[{python_type(value[0]) if value else 'Tensor'}]"
    if isinstance(value, dict) and value:
        key, item = next(iter(value.items()))
        return f"Dict[{python_type(key)}, {python_type(item)}]"
    return "NoneType" if value is None else type(value).__name__


def input_type(value: object) -> Type | None:
    """Return the type of an example input; None for what can't be traced."""
    if isinstance(value, Tensor):
        return complete_type(value)
    if isinstance(value, tuple):
        parts = tuple(map(input_type, value))
        if None in parts:
            return None
        return TupleType(parts)
    if isinstance(value, list):
        parts = {_unshaped_type(part) for part in map(input_type, value)} or {TENSOR}
        return ListType(parts.pop()) if len(parts) == 1 and None not in parts else None
    if isinstance(value, dict) and value:
        kinds = {(_KEYS.get(type(key)), _unshaped_type(input_type(item))) for key, item in value.items()}
        return DictType(*kinds.pop()) if len(kinds) == 1 and not any(None in pair for pair in kinds) else None
    return None


def _unshaped_type(kind: Type | None) -> Type | None:
    return None if kind is None else unshaped(kind)


def check_inputs(inputs: tuple) -> None:
    """Raise RuntimeError if an example input can't be traced."""
    if any(input_type(value) is None for value in inputs):
        raise RuntimeError(f"Type '{python_type(inputs)}' {_NO_TENSORS}")


def add_input(tracing: TracingState, example: object, name: str | None) -> object:
    """Add an input of the graph for an argument."""
    value = tracing.graph.add_input(name, input_type(example))
    return take_apart(tracing, example, value)


def take_apart(tracing: TracingState, example: object, value: Value) -> object:
    """Bind the tensors in a container to values. Returns the container, with duplicate tensors made distinct."""
    graph = tracing.graph
    if isinstance(example, Tensor):
        if example._impl in tracing.values:
            with suspended():
                example = example.view(list(example._impl.sizes))
        tracing.set_value(example, value)
        return example
    if isinstance(example, tuple | list):
        word = "prim::TupleUnpack" if isinstance(example, tuple) else "prim::ListUnpack"
        node = graph.insert(word, [value], 0)
        parts = [take_apart(tracing, item, node.add_output(input_type(item))) for item in example]
        if hasattr(example, "_fields"):
            return type(example)(*parts)
        return tuple(parts) if isinstance(example, tuple) else parts
    made = {}
    for key, item in example.items():
        node = graph.insert("aten::__getitem__", [value, insert_constant(graph, key)])
        made[key] = take_apart(tracing, item, node.output.set_type(input_type(item)))
    return made


def output_value(tracing: TracingState, result: object) -> Value:
    """Return the program's result as a value. RuntimeError if a graph can't return it."""
    graph = tracing.graph
    if isinstance(result, Tensor):
        return tracing.value_of(result)
    if type(result) in (TracedInt, TracedFloat):  # a 0-dim tensor in the graph
        return result.value
    if isinstance(result, tuple):
        parts = [output_value(tracing, item) for item in result]
        return graph.insert("prim::TupleConstruct", parts).output.set_type(TupleType(tuple(part.type for part in parts)))
    if isinstance(result, list):
        if tracing.strict:
            warn(f"Encountering a list{CONTAINER}")
        parts = [output_value(tracing, item) for item in result]
        kinds = {unshaped(part.type) for part in parts} or {TENSOR}
        if len(kinds) > 1:
            raise RuntimeError(f"A list at the output of a trace must have elements of one type, got {_names(kinds)}")
        return graph.insert("prim::ListConstruct", parts).output.set_type(ListType(kinds.pop()))
    if isinstance(result, dict) and result:
        return _output_dict(tracing, result)
    raise RuntimeError(
        "Only tensors, lists, tuples of tensors, or dictionary of tensors can be output from traced functions"
    )


def _names(kinds: set[Type]) -> str:
    return ", ".join(sorted(map(str, kinds)))


def _output_dict(tracing: TracingState, result: dict) -> Value:
    if tracing.strict:
        raise RuntimeError(f"Encountering a dict{CONTAINER}")
    graph = tracing.graph
    parts = []
    for key, item in result.items():
        parts += [insert_constant(graph, key), output_value(tracing, item)]
    kinds = {(unshaped(key.type), unshaped(item.type)) for key, item in zip(parts[::2], parts[1::2], strict=True)}
    if len(kinds) > 1 or any(key not in _KEYS.values() for key, _ in kinds):
        raise RuntimeError("A dict at the output of a trace must have keys and values of one type each")
    return graph.insert("prim::DictConstruct", parts).output.set_type(DictType(*kinds.pop()))


