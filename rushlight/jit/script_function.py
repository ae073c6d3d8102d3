"""`script`: functions and modules of Python as TorchScript.

In: a function, class or module. Out: a ScriptFunction, the class itself, or a ScriptModule.
"""

from __future__ import annotations

import functools
import pickle
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from rushlight._C import machine_bind_exactly
from rushlight.core.lazy_module import LazyModule
from rushlight.core.overrides import call_override, overriding_arguments
from rushlight.jit.function import Function
from rushlight.jit.runtime.conversions import from_script, may_hold_objects
from rushlight.jit.runtime.executor import executor_of, run_function
from rushlight.jit.runtime.type_checks import CannotConvert, exact_form, to_script
from rushlight.jit.savable import Savable

if TYPE_CHECKING:
    from rushlight.jit.execution import ExecutorState
    from rushlight.jit.graph_api import Graph
    from rushlight.jit.schema import FunctionSchema
    from rushlight.jit.serialization.class_printer import ConstantMap

# Imported lazily: running a function needs neither the compiler nor the printer.
class_printer, compiler, execution, graph_api, inlining = map(LazyModule, (
    "rushlight.jit.serialization.class_printer", "rushlight.jit.compiler", "rushlight.jit.execution", "rushlight.jit.graph_api",
    "rushlight.jit.passes.inline",
))  # fmt: skip


class ScriptFunction(Savable):
    """A scripted or traced function."""

    def __init__(self, function: Function, original: Callable | None = None):
        self._function = function
        self._rushlight_functions: Sequence[Function] = [function]
        if original is not None:
            functools.update_wrapper(self, original, updated=())

    @property
    def name(self) -> str:
        """Return its name."""
        return self._function.short_name

    @property
    def qualified_name(self) -> str:
        """Return its name with its module, `__torch__.f`."""
        return self._function.name

    @property
    def graph(self) -> Graph:
        """Return its graph, with calls."""
        return graph_api.Graph(self._function.graph)

    @property
    def inlined_graph(self) -> Graph:
        """Return its graph with all calls inlined."""
        graph = self._function.graph.copy()
        inlining.inline(graph)
        return graph_api.Graph(graph)

    @property
    def schema(self) -> FunctionSchema:
        """Return its signature."""
        return self._function.schema

    @property
    def code(self) -> str:
        """Return its graph as TorchScript's Python."""
        return class_printer.code_of(self._function)[0]

    @property
    def code_with_constants(self) -> tuple[str, ConstantMap]:
        """Return its graph as TorchScript's Python, and the constants that the code refers to, such as `constants.c0`."""
        text, constants = class_printer.code_of(self._function)
        return text, class_printer.ConstantMap(constants)

    def graph_for(self, *args: object, **kwargs: object) -> Graph:
        """Return the optimised graph that runs for such arguments."""
        self(*args, **kwargs)
        return graph_api.Graph(executor_of(self._function).current_plan().graph)

    def get_debug_state(self) -> ExecutorState:
        """Return the executor's state."""
        return execution.ExecutorState(executor_of(self._function))

    def __call__(self, *args: object, **kwargs: object) -> object:
        for function in self._rushlight_functions[:-1]:
            try:
                bound = bind_arguments(function.schema, args, kwargs)
                return from_script(run_function(function, bound), function.schema.return_type)
            except CannotBind:
                continue  # try the next declared signature
        function = self._rushlight_functions[-1]
        binding = function.binding
        if binding is None or binding.schema is not function.schema_:
            binding = function.binding = Binding(function.schema)
        try:
            bound = binding.bind(args, kwargs)
        except CannotBind:
            return call_of_override(self, args, kwargs)
        result = run_function(function, bound)
        return from_script(result, binding.result_type) if binding.converts_result else result

    def __reduce__(self) -> tuple:
        raise pickle.PickleError("ScriptFunction cannot be pickled")

    def __repr__(self) -> str:
        return f"<ScriptFunction {self._function.name}>"


class CannotBind(RuntimeError):
    """Arguments of Python that do not fit a signature."""


class Binding:
    """The precomputed facts about a signature that each call from Python needs. `of_method`: the first argument does not come
    from Python."""

    def __init__(self, schema: FunctionSchema, of_method: bool = False):
        self.schema = schema
        self.result_type = schema.return_type
        self.converts_result = may_hold_objects(self.result_type)
        self._python_schema = schema.without_self() if of_method else schema
        arguments = self._python_schema.arguments
        forms = tuple(exact_form(argument.type) for argument in arguments)
        self._forms = None if None in forms or any(argument.kwarg_only for argument in arguments) else forms

    def bind(self, args: tuple, kwargs: dict[str, object]) -> list:
        """Return Python's arguments in the schema's order, converted; CannotBind names the one that does not fit."""
        if not kwargs and self._forms is not None:
            bound = machine_bind_exactly(self._forms, args)
            if bound is not None:
                return bound
        return bind_arguments(self._python_schema, args, kwargs)


def call_of_override(callee: object, args: Sequence[object], kwargs: dict[str, object]) -> object:
    """Offer a call whose arguments did not bind to an argument that overrides functions, such as a traced proxy.

    It is called while CannotBind is handled, and raises it again if no argument overrides functions.
    """
    deciding = overriding_arguments(args, kwargs)
    if not deciding:
        raise
    return call_override(callee, deciding, args, kwargs)


def bind_arguments(schema: FunctionSchema, args: Sequence[object], kwargs: dict[str, object]) -> list:
    """Return Python's arguments in a schema's order, converted; CannotBind names the one that does not fit."""
    arguments = schema.arguments
    if not kwargs and len(args) == len(arguments) and not (arguments and arguments[-1].kwarg_only):
        try:
            return [to_script(value, argument.type) for value, argument in zip(args, arguments, strict=True)]
        except CannotConvert:
            pass  # the error below names the argument
    positional = sum(not each.kwarg_only for each in arguments)
    name = schema.name.rpartition(".")[2]
    if len(args) > positional:
        kind = "argument(s)" if positional == len(arguments) else "positional argument(s)"
        given = f"expected at most {positional} {kind} but received {len(args)} {kind}"
        raise CannotBind(f"{name}() {given}. Declaration: {schema}")
    bound, used = [], 0
    for index, argument in enumerate(arguments):
        if index < len(args) and not argument.kwarg_only:
            if argument.name in kwargs:
                raise CannotBind(f"{name}() got multiple values for argument '{argument.name}'. Declaration: {schema}")
            value = args[index]
        elif argument.name in kwargs:
            value = kwargs[argument.name]
            used += 1
        elif argument.has_default:
            value = argument.default
        else:
            raise CannotBind(f"{name}() is missing value for argument '{argument.name}'. Declaration: {schema}")
        try:
            bound.append(to_script(value, argument.type))
        except CannotConvert as error:
            raise CannotBind(
                f"{name}() Expected a value of type '{argument.type_text}' for argument '{argument.name}' "
                f"but instead found type '{type(value).__name__}'.{argument.inference_hint}"
                f"\nPosition: {index}\n{error}\nDeclaration: {schema}"
            ) from None
    if used != len(kwargs):
        unknown = next(key for key in kwargs if key not in schema.positions)
        raise CannotBind(f"{name}() Unknown keyword argument '{unknown}' for operator '{name}'. Declaration: {schema}")
    return bound


def script_function(function: Callable, frame: Callable[[str], object]) -> ScriptFunction:
    """Script a Python function; names missing in its closure are looked up in `frame`."""
    closure = compiler.closure_lookup(function)

    def lookup(name: str) -> object:
        found = closure(name)
        return frame(name) if found is None else found

    compiled = compiler.compiler.compile_overloads(function, lookup)
    for each in compiled:
        each.ensure_defined()
    made = ScriptFunction(compiled[0], function)
    made._rushlight_functions = compiled
    return made
