"""A scripted or traced module as methods of a model without Python.

In: a `ScriptModule`, and examples of calls. Out: the methods, each with the forms that the examples need. For example, a module
that starts with an empty cache has one form for the first call and another for later ones.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field

from rushlight.compiler.scripted.execution import TooManyRounds
from rushlight.compiler.scripted.open_sizes import Dims
from rushlight.compiler.scripted.programs import NOT_NATIVE
from rushlight.compiler.scripted.regions import Unsupported
from rushlight.core.tensor import Tensor
from rushlight.deploy.direct.form import DirectForm
from rushlight.deploy.graph_form import excluded_values
from rushlight.deploy.model import Method, Model, Parameter, check_tensor
from rushlight.deploy.refusals import MAY_FAIL
from rushlight.deploy.spelling import NotExportable, identifier
from rushlight.deploy.state import States
from rushlight.deploy.structured_form import StructuredForm
from rushlight.deploy.whole_form import WholeForm, whole_form
from rushlight.jit.function import Function
from rushlight.jit.ir.graph import Graph
from rushlight.jit.module import ScriptModule
from rushlight.jit.runtime.objects import ScriptObject, run_with_executor
from rushlight.jit.types import kinds as types
from rushlight.ops.packet import find_packet

_MAX_FORMS = 16
_CALLS = 4  # calls of each example in a row, to find the forms that a changed state needs

Form = WholeForm | StructuredForm | DirectForm
index_select, remainder, arange = (find_packet(f"aten::{name}") for name in ("index_select", "remainder", "arange"))


@dataclass
class Example:
    """A call of a method: its arguments, and the names of open dimensions per tensor, in order of tensors; `bounds` are the
    limits of named sizes, where known."""

    method: str
    arguments: tuple
    dims: dict[int, dict[int, str]]
    bounds: dict[str, tuple[int, int | None]] = field(default_factory=dict)

    def with_sizes(self, sizes: dict[str, int]) -> Example:
        """Return the example with some of the open sizes fixed."""
        position, arguments = 0, []
        for argument in self.arguments:
            made = argument
            if isinstance(argument, Tensor):
                for dim, name in self.dims.get(position, {}).items():
                    if name in sizes:
                        made = index_select(made, dim, remainder(arange(sizes[name]), made.size(dim)))
            position += _count_tensors(argument)
            arguments.append(made)
        rest = {
            position: {dim: name for dim, name in each.items() if name not in sizes} for position, each in self.dims.items()
        }
        return Example(self.method, tuple(arguments), {position: each for position, each in rest.items() if each}, self.bounds)


def add_scripted(model: Model, module: ScriptModule, examples: Sequence[Example]) -> None:
    """Add the methods that the examples call. NotExportable says why one has no form without Python."""
    first: ScriptObject = module._c
    states = States(model, copy.deepcopy(first))
    present = copy.deepcopy(first)
    for name in dict.fromkeys(example.method for example in examples):
        function = first.type.find_method(name)
        if function is None:
            raise NotExportable(f"the module has no method {name!r}; it has {', '.join(first.type.methods)}")
        _MethodWriter(model, states, function, name, [present]).add([each for each in examples if each.method == name])


def add_scripted_function(model: Model, function: Function, examples: Sequence[Example]) -> None:
    """Add a scripted or traced function as the method of the examples."""
    name = examples[0].method
    _MethodWriter(model, States(model, None), function, name, []).add(examples)


class _MethodWriter:
    """Adds one method. `owner` is the object whose method it is, with the state after the calls so far, or None."""

    def __init__(self, model: Model, states: States, function: Function, name: str, owner: list[ScriptObject]):
        self.model, self.states, self.function, self.name, self.owner = model, states, function, name, owner
        self.schema = function.schema.arguments[len(owner) :]
        taken: set[str] = set()
        self.names = [*([""] * len(owner)), *(identifier(each.name, taken) for each in self.schema)]
        self.graph = function.prepared_graph()
        self.method = Method(model.method_name(name), [], [])
        self.forms: list[Form] = []

    def add(self, examples: Sequence[Example]) -> None:
        """Add the method, with a form for each kind of call that the examples produce."""
        self.model.methods.append(self.method)
        self.names = self.names[: len(self.owner) + max(len(each.arguments) for each in examples)]
        begun = copy.deepcopy(self.owner)
        for example in examples:
            self._add_example(example, self.owner)
        for example in examples:  # start each example from the initial state, too
            self._add_example(example, copy.deepcopy(begun))
        for example in [each for whole in examples for each in self._with_other_sizes(whole)]:
            for owner in (begun, self.owner):
                with suppress(*MAY_FAIL):  # this size may be impossible
                    self._add_example(example, copy.deepcopy(owner), is_special=True)

    def _add_example(self, example: Example, owner: list[ScriptObject], is_special: bool = False) -> None:
        """Add the forms for a call and its repetitions. `is_special` says that the sizes are fixed, though the method's
        description already has them as open."""
        arguments = self._arguments(example.arguments)
        for _ in range(_CALLS):
            call = [*owner, *arguments]
            if not any(form.fits(call) for form in self.forms):
                if len(self.forms) == _MAX_FORMS:
                    raise NotExportable(f"{self.name} needs more than {_MAX_FORMS} forms: its state never settles")
                self._add_form(call, example, is_special)
            run_with_executor(self.function, [*owner, *copy.deepcopy(arguments)])

    def _with_other_sizes(self, example: Example) -> Iterator[Example]:
        """Yield the example with open sizes that the forms so far exclude: each size is 0, 1 or another value, or all of them
        are 1."""
        names = dict.fromkeys(name for dims in example.dims.values() for name in dims.values())
        small = [name for name in names if example.bounds.get(name, (0, None))[0] <= 1]
        yield from (example.with_sizes({name: 1}) for name in small)
        yield from (example.with_sizes({name: 0}) for name in small if example.bounds.get(name, (0, None))[0] == 0)
        if len(small) > 1:
            yield example.with_sizes(dict.fromkeys(small, 1))
        for form in list(self.forms):
            if isinstance(form, WholeForm):
                called = _size_names(form, example)
                for symbol, values in excluded_values(each.relation for each in form.relations()).items():
                    if str(symbol) in called:
                        yield from (example.with_sizes({called[str(symbol)]: value}) for value in values if value > 1)

    def _add_form(self, call: list, example: Example, is_special: bool) -> None:
        called = f"form_{self.method.name}_{len(self.forms)}"
        form, results = self._first_form(call, example, called)
        names = self.names[len(self.owner) :]
        inputs = _describe_inputs(names, self.schema[: len(names)], call[len(self.owner) : len(self.names)], example)
        if isinstance(form, DirectForm):
            pairs = zip(inputs, self.schema, strict=False)
            inputs = [Parameter(each.name, "value", about=str(declared.type)) if _has_choices(declared.type) else each
                      for each, declared in pairs]  # fmt: skip
        method = self.method
        if not is_special:
            method.inputs, method.outputs = _merge_parameters(method.inputs, inputs), _merge_parameters(method.outputs, results)
        method.mark_written({index - len(self.owner) for index in form.written})
        method.forms.append(called)
        self.forms.append(form)

    def _first_form(self, call: list, example: Example, called: str) -> tuple[Form, list[Parameter]]:
        """Build the first form that is possible and add it to the method; return the form and its results."""
        reasons: list[str] = []
        for form in _forms_of(self.graph, call, example, len(self.names), reasons):
            try:
                with self.model.whole():
                    return form, form.add(self.model, self.states, self.name, called, self.names, _size_names(form, example))
            except NotExportable as error:
                reasons.append(str(error))
        raise NotExportable("\n  ".join([f"{self.name} cannot be exported", *reasons]))

    def _arguments(self, given: Sequence[object]) -> list[object]:
        """Return the arguments of an example, followed by defaults."""
        schema = self.schema
        if len(given) > len(schema):
            raise ValueError(f"{self.name} takes {len(schema)} arguments, got {len(given)}")
        made = list(given)
        for each in schema[len(given) :]:
            if not each.has_default:
                raise ValueError(f"the example for {self.name} has no value for {each.name!r}")
            made.append(each.default)
        pairs = zip(made, schema, strict=True)
        return [float(value) if each.type is types.FLOAT and type(value) is int else value for value, each in pairs]


def _forms_of(graph: Graph, call: list, example: Example, given: int, reasons: list[str]) -> Iterator[Form]:
    """Yield the possible forms of a call: one graph; a structured program with loops and branches; a direct program; one graph
    that holds for these numbers only.

    A graph that would hold only for the example's strings and lists of numbers comes last. `given` is the number of arguments
    that callers pass. `reasons` receives why there are no further forms.
    """
    dims: Dims = {position: frozenset(found) for position, found in example.dims.items()}
    direct = ("statement by statement", lambda: DirectForm(graph, call, example.dims, example.bounds))
    makers = [("with loops and branches of its own", lambda: _make_structured_form(graph, call, example)), direct]
    # The direct form comes first, because other forms support only one member of a union.
    if any(isinstance(value.type, types.UnionType) for value in graph.inputs[:given]):
        makers.reverse()
    rest: list[Form] = []
    has_many_rounds = False
    try:
        form = whole_form(graph, call, dims, open_loops=False)
        if makers[0] is not direct and not form.fixes_contents(given):
            yield form
        else:
            rest, makers = [form], [direct, *(each for each in makers if each is not direct)]
    except NOT_NATIVE as error:
        has_many_rounds = isinstance(error, TooManyRounds)
        reasons.append(f"as one graph: {error}")
    for what, make in makers:
        try:
            yield make()
        except NOT_NATIVE as error:
            reasons.append(f"{what}: {error}")
    yield from rest
    if has_many_rounds:
        with suppress(*NOT_NATIVE):
            yield whole_form(graph, call, dims, open_loops=True)


def _make_structured_form(graph: Graph, call: list, example: Example) -> StructuredForm:
    if example.dims:
        raise Unsupported("such a program has known sizes")
    return StructuredForm(graph, call)


def _size_names(form: Form, example: Example) -> dict[str, str]:
    """Return the user's names of a form's symbols."""
    if not isinstance(form, WholeForm):
        return {}
    found = {}
    for binding in form.captured.sizes.environment.bindings:
        position, dim = binding.source
        if dim is not None and position in example.dims and dim in example.dims[position]:
            found[str(binding.symbol)] = example.dims[position][dim]
    return found


def _describe_inputs(names: Sequence[str], schema: Sequence, arguments: Sequence[object], example: Example) -> list[Parameter]:
    made, position = [], 0
    for name, declared, value in zip(names, schema, arguments, strict=True):
        if isinstance(value, Tensor):
            open_dims = example.dims.get(position, {})
            check_tensor(name, value.dtype, value.shape)
            sizes = tuple(open_dims.get(dim, size) for dim, size in enumerate(value.shape))
            bounds = tuple((size, *example.bounds.get(size, (0, None))) for size in dict.fromkeys(open_dims.values()))
            made.append(Parameter(name, "tensor", value.dtype, sizes, bounds))
            position += 1
            continue
        position += _count_tensors(value)
        made.append(Parameter(name, _kind_name(value), about=str(declared.type)))
    return made


def _has_choices(kind: types.Type) -> bool:
    """Return whether a value may be of several types, or None."""
    return isinstance(kind, types.UnionType | types.OptionalType)


def _kind_name(value: object) -> str:
    kinds = {bool: "bool", int: "int", float: "float", str: "string", list: "list", dict: "dict"}
    return kinds.get(type(value), "tuple" if isinstance(value, tuple) else "value")


def _count_tensors(value: object) -> int:
    if isinstance(value, Tensor):
        return 1
    items = value.values() if isinstance(value, dict) else value if isinstance(value, list | tuple) else ()
    return sum(map(_count_tensors, items))


def _merge_parameters(before: list[Parameter], now: list[Parameter]) -> list[Parameter]:
    """Return the description of parameters that holds for all forms."""
    if not before:
        return now
    if len(before) != len(now):
        raise NotExportable(f"one call gives {len(before)} results and another {len(now)}")
    return [_merge_parameter(one, other) for one, other in zip(before, now, strict=True)]


def _merge_parameter(one: Parameter, other: Parameter) -> Parameter:
    if one == other:
        return one
    if one.kind != other.kind:
        return Parameter(one.name, "value", written=one.written)
    same = one.sizes is not None and other.sizes is not None and len(one.sizes) == len(other.sizes)
    sizes = None
    if same:
        sizes = tuple(mine if mine == theirs else "any" for mine, theirs in zip(one.sizes, other.sizes, strict=True))
    kind = one.dtype if one.dtype is other.dtype else None
    return Parameter(one.name, one.kind, kind, sizes, one.bounds, one.about, one.written)
