"""A scripted or traced module as methods of a model without Python.

In: a `ScriptModule`, and examples of calls. Out: the methods, each with the forms that the examples need: a module whose state
differs after a call, as one that begins with an empty cache, has one form for the first call and another for those that follow.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass

from rushlight.compiler.scripted.open_sizes import Dims
from rushlight.compiler.scripted.programs import NOT_NATIVE
from rushlight.core.tensor import Tensor
from rushlight.deploy.model import Method, Model, Parameter, check_tensor
from rushlight.deploy.spelling import NotExportable, identifier
from rushlight.deploy.state import States
from rushlight.deploy.structured_form import StructuredForm, structured_form_of
from rushlight.deploy.whole_form import WholeForm, whole_form
from rushlight.jit.function import Function
from rushlight.jit.module import ScriptModule
from rushlight.jit.runtime.objects import ScriptObject
from rushlight.jit.types import kinds as types

_MOST_FORMS = 8
_CALLS = 4  # of one example in a row, by which the state has settled

Form = WholeForm | StructuredForm


@dataclass
class Example:
    """A call of a method: its arguments, and which dimensions of its tensors are open and what these are called, by the order
    of the tensors."""

    method: str
    arguments: tuple
    dims: dict[int, dict[int, str]]


def add_scripted(model: Model, module: ScriptModule, examples: Sequence[Example]) -> None:
    """Add the methods that the examples call. NotExportable says why one has no form without Python."""
    first: ScriptObject = module._c
    states = States(model, copy.deepcopy(first))
    present = copy.deepcopy(first)
    for name in dict.fromkeys(example.method for example in examples):
        function = first.type.find_method(name)
        if function is None:
            raise NotExportable(f"the module has no method {name!r}; it has {', '.join(first.type.methods)}")
        _add_method(model, states, function, present, name, [each for each in examples if each.method == name])


def _add_method(
    model: Model, states: States, function: Function, present: ScriptObject, name: str, examples: Sequence[Example]
) -> None:  # fmt: skip
    taken: set[str] = {"model"}
    schema = function.schema.arguments[1:]
    names = ["", *(identifier(each.name, taken) for each in schema)]
    method = Method(name, [], [])
    model.methods.append(method)
    forms: list[tuple[Form, dict[str, str]]] = []
    graph = function.prepared_graph()
    for example in examples:
        arguments = _arguments(function, example.arguments, name)
        for _ in range(_CALLS):
            call = [present, *arguments]
            if not any(form.fits(call) for form, _ in forms):
                if len(forms) == _MOST_FORMS:
                    raise NotExportable(f"{name} needs more than {_MOST_FORMS} forms for its examples; its state never settles")
                form = _form_of(graph, call, example, name)
                size_names = _size_names(form, example)
                results = form.add(model, states, name, f"{name}_{len(forms)}", names, size_names)
                inputs = _inputs(names[1:], schema, arguments, example)
                method.inputs, method.outputs = _merged(method.inputs, inputs), _merged(method.outputs, results)
                method.forms.append(f"{name}_{len(forms)}")
                forms.append((form, size_names))
            present.call(name, *copy.deepcopy(arguments))


def _form_of(graph, call: list, example: Example, name: str) -> Form:
    dims: Dims = {place: frozenset(found) for place, found in example.dims.items()}
    try:
        return whole_form(graph, call, dims)
    except NOT_NATIVE as error:
        reason = str(error)
    if example.dims:
        raise NotExportable(
            f"{name} cannot be exported with open sizes: {reason}. A program with loops and branches of its own has known "
            "sizes: export it for each size that is needed"
        )
    try:
        return structured_form_of(graph, call)
    except NOT_NATIVE as error:
        raise NotExportable(f"{name} cannot be exported: {reason}; with loops and branches of its own: {error}") from error


def _arguments(function: Function, given: Sequence[object], name: str) -> list[object]:
    """The arguments of an example, with defaults for those behind it."""
    schema = function.schema.arguments[1:]
    if len(given) > len(schema):
        raise ValueError(f"{name} takes {len(schema)} arguments, got {len(given)}")
    made = list(given)
    for each in schema[len(given) :]:
        if not each.has_default:
            raise ValueError(f"the example for {name} has no value for {each.name!r}")
        made.append(each.default)
    return [
        float(value) if each.type is types.FLOAT and type(value) is int else value
        for value, each in zip(made, schema, strict=True)
    ]


def _size_names(form: Form, example: Example) -> dict[str, str]:
    """What the user calls the symbols of a form."""
    if not isinstance(form, WholeForm):
        return {}
    found = {}
    for binding in form.captured.sizes.environment.bindings:
        place, dim = binding.source
        if dim is not None and place in example.dims and dim in example.dims[place]:
            found[str(binding.symbol)] = example.dims[place][dim]
    return found


def _inputs(names: Sequence[str], schema: Sequence, arguments: Sequence[object], example: Example) -> list[Parameter]:
    made, place = [], 0
    for name, declared, value in zip(names, schema, arguments, strict=True):
        if isinstance(value, Tensor):
            open_dims = example.dims.get(place, {})
            check_tensor(name, value.dtype, value.shape)
            sizes = tuple(open_dims.get(dim, size) for dim, size in enumerate(value.shape))
            made.append(Parameter(name, "tensor", value.dtype, sizes))
            place += 1
            continue
        place += _tensors_in(value)
        made.append(Parameter(name, _kind(value), about=str(declared.type)))
    return made


def _kind(value: object) -> str:
    kinds = {bool: "bool", int: "int", float: "float", str: "string", list: "list", dict: "dict"}
    return kinds.get(type(value), "tuple" if isinstance(value, tuple) else "value")


def _tensors_in(value: object) -> int:
    if isinstance(value, Tensor):
        return 1
    items = value.values() if isinstance(value, dict) else value if isinstance(value, list | tuple) else ()
    return sum(map(_tensors_in, items))


def _merged(before: list[Parameter], now: list[Parameter]) -> list[Parameter]:
    """What is true of parameters in all forms."""
    if not before:
        return now
    if len(before) != len(now):
        raise NotExportable(f"one call gives {len(before)} results and another {len(now)}")
    return [_merged_one(one, other) for one, other in zip(before, now, strict=True)]


def _merged_one(one: Parameter, other: Parameter) -> Parameter:
    if one == other:
        return one
    if one.kind != other.kind:
        return Parameter(one.name, "value")
    same = one.sizes is not None and other.sizes is not None and len(one.sizes) == len(other.sizes)
    sizes = None
    if same:
        sizes = tuple(mine if mine == theirs else "any" for mine, theirs in zip(one.sizes, other.sizes, strict=True))
    return Parameter(one.name, one.kind, one.dtype if one.dtype is other.dtype else None, sizes, one.bounds, one.about)
