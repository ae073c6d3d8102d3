"""`trace` and `trace_module`: record programs' operations on example inputs as graphs.

In: a function or module, and example inputs. Out: a ScriptFunction or a TopLevelTracedModule.
"""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable

from rushlight.amp.autocast_mode import clear_autocast_cache
from rushlight.core.lazy_module import LazyModule
from rushlight.core.tensor import Tensor
from rushlight.jit.compiler import qualified_name
from rushlight.jit.function import Function
from rushlight.jit.ir.graph import Graph
from rushlight.jit.module import ScriptModule
from rushlight.jit.passes.dead_code_elimination import eliminate_dead_code
from rushlight.jit.passes.inline import inline
from rushlight.jit.passes.normalize_ops import normalize_ops
from rushlight.jit.script_function import ScriptFunction
from rushlight.jit.settings import is_enabled
from rushlight.jit.tracing.check import cloned, compare_graphs, compare_results
from rushlight.jit.tracing.containers import add_input, check_inputs, output_value
from rushlight.jit.tracing.hooks import tracing_hooks
from rushlight.jit.tracing.modules import make_methods, register_modules, traced_module
from rushlight.jit.tracing.record import record
from rushlight.jit.tracing.state import TracingState
from rushlight.nn import Module
from rushlight.ops.recording import suspended

graph_api = LazyModule("rushlight.jit.graph_api")


def trace(
    func: Callable | Module | None = None,
    example_inputs: object = None,
    optimize: bool | None = None,
    check_trace: bool = True,
    check_inputs: list | None = None,
    check_tolerance: float = 1e-5,
    strict: bool = True,
    _force_outplace: bool = False,
    _module_class: type | None = None,
    _compilation_unit: object = None,
    example_kwarg_inputs: dict | None = None,
    _store_inputs: bool = True,
) -> ScriptFunction | ScriptModule:
    """Trace a function or module: record its operations on `example_inputs`, a tensor or a tuple of the arguments.

    Arguments are tensors, or nested tuples, lists and dicts of tensors. Control flow is followed once, sizes are recorded,
    anything else that Python computes is a constant. `check_trace` traces again and compares graphs and results within
    `check_tolerance`, for `check_inputs` too. `strict=False` allows lists and dicts as results. `example_kwarg_inputs` passes
    the arguments by name instead. TracingCheckError where the graph depends on chance or on the values; TracerWarning where the
    trace will not follow other inputs; RuntimeError for what can't be traced.
    """
    if optimize is not None:
        warnings.warn("`optimize` is deprecated and has no effect", FutureWarning, stacklevel=2)
    if not is_enabled():
        return func
    if isinstance(func, ScriptModule | ScriptFunction):
        warnings.warn(
            "The input to trace is already a ScriptModule, tracing it is a no-op. Returning the object as is.", stacklevel=2
        )
        return func
    module, name = (func, "forward") if isinstance(func, Module) else _method_of(func)
    keywords = example_kwarg_inputs
    if keywords is not None and not isinstance(keywords, dict):
        raise RuntimeError("example_kwarg_inputs should be a dict")
    if example_inputs is None and keywords is None:
        raise RuntimeError("example_kwarg_inputs should be a dict")
    examples = keywords if keywords is not None else example_inputs
    options = (check_trace, check_inputs, check_tolerance, strict)
    if module is not None:
        given = None if check_inputs is None else [{name: each} for each in check_inputs]
        return trace_module(module, {name: examples}, None, check_trace, given, check_tolerance, strict,
                            example_inputs_is_kwarg=keywords is not None)  # fmt: skip
    return _trace_function(func, examples, keywords is not None, *options)


def _method_of(function: object) -> tuple[Module | None, str]:
    owner = getattr(function, "__self__", None)
    name = getattr(function, "__name__", "")
    if isinstance(owner, Module) and name == "forward":
        return owner, name
    return None, ""


def _bind_examples(examples: object, by_name: bool, function: Callable) -> tuple[tuple, list[str]]:
    """Return the example inputs in order, and the parameters' names for them."""
    names = _parameter_names(function)
    if not by_name:
        inputs = examples if isinstance(examples, tuple) else (examples,)
        if isinstance(examples, list):
            inputs = tuple(examples)
        return inputs, names
    unknown = [key for key in examples if key not in names]
    if unknown and "**" not in names:
        raise NameError(
            f"example_kwarg_inputs must only contain names of arguments of the traced function, got {', '.join(unknown)}; "
            f"expected some of {', '.join(names)}"
        )
    ordered = [name for name in names if name in examples]
    return tuple(examples[name] for name in ordered), ordered


def _parameter_names(function: Callable) -> list[str]:
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return []
    fixed = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.KEYWORD_ONLY)
    return [each.name for each in parameters if each.kind in fixed]


def _record(
    function: Callable, inputs: tuple, names: list[str], by_name: bool, strict: bool,
    module: tuple[Module, ScriptModule] | None = None,
) -> Graph:  # fmt: skip
    """Return the graph of one run, with modules' methods made."""
    check_inputs(inputs)
    clear_autocast_cache()  # casts of parameters were cached without being recorded
    tracing = TracingState(strict)
    root = None if module is None else tracing.graph.add_input("self", module[1]._c.type)
    taken = [add_input(tracing, value, names[index] if index < len(names) else None) for index, value in enumerate(inputs)]
    if module is not None:
        register_modules(tracing, *module, root)
    with tracing_hooks(), tracing.recording(record):
        result = function(**dict(zip(names, taken, strict=True))) if by_name else function(*taken)
        if result is None:
            raise RuntimeError(
                "The traced function didn't return any values! Side-effects are not captured in traces, so it would be a no-op."
            )
        with suspended():
            tracing.graph.register_output(output_value(tracing, result))
    graph = tracing.graph
    if module is not None:
        make_methods(graph, module[1], root)
    normalize_ops(graph)
    eliminate_dead_code(graph)
    return graph


def _trace_function(
    function: Callable, examples: object, by_name: bool, check: bool, check_inputs: list | None, tolerance: float, strict: bool
) -> ScriptFunction:
    inputs, names = _bind_examples(examples, by_name, function)
    graph = _record(function, inputs, names, by_name, strict)
    made = ScriptFunction(Function(_name_of(function), graph), function if hasattr(function, "__name__") else None)
    if check:
        for each in check_inputs if check_inputs is not None else [examples]:
            other_inputs, _ = _bind_examples(cloned(each), by_name, function)
            again = _record(function, cloned(other_inputs), names, by_name, strict)
            compare_graphs(graph, again)
            _compare(function, made, names if by_name else None, other_inputs, graph, tolerance)
    return made


def _name_of(function: Callable) -> str:
    if not hasattr(function, "__qualname__"):
        return f"__torch__.{type(function).__name__}"
    name = qualified_name(function)
    return name.rpartition(".")[0] + "._lambda" if name.endswith("._lambda_") else name


def _compare(
    function: Callable, traced: Callable, names: list[str] | None, inputs: tuple, graph: Graph, tolerance: float
) -> None:
    """Run a program and its trace on copies of the inputs, and compare results."""
    results = []
    for each in (function, traced):
        given = cloned(inputs)
        results.append(each(*given) if names is None else each(**dict(zip(names, given, strict=True))))
    compare_results(results[0], results[1], graph, tolerance, [False], "Python function")


def trace_module(
    mod: Module,
    inputs: dict[str, object],
    optimize: bool | None = None,
    check_trace: bool = True,
    check_inputs: list[dict] | None = None,
    check_tolerance: float = 1e-5,
    strict: bool = True,
    _force_outplace: bool = False,
    _module_class: type | None = None,
    _compilation_unit: object = None,
    example_inputs_is_kwarg: bool = False,
    _store_inputs: bool = True,
) -> ScriptModule:
    """Return a module with several methods traced: `inputs` gives the example inputs of each by its name. As `trace` otherwise.

    AttributeError unless `mod` is a module and `inputs` a dict.
    """
    if optimize is not None:
        warnings.warn("`optimize` is deprecated and has no effect", FutureWarning, stacklevel=2)
    if not isinstance(mod, Module):
        raise AttributeError("expected torch.nn.Module as the first argument")
    if not isinstance(inputs, dict):
        raise AttributeError("expected a dictionary of (method_name, input) pairs")
    if not is_enabled():
        return mod
    made = traced_module(mod)
    for name, examples in inputs.items():
        graph = _trace_method(mod, made, name, examples, example_inputs_is_kwarg, strict)
        made._c.type.methods[name] = Function(f"{made._c.type.name}.{name}", graph)
        if check_trace:
            others = [examples] if check_inputs is None else [each[name] for each in check_inputs if name in each]
            for other in others:
                _check_method(mod, made, name, other, example_inputs_is_kwarg, check_tolerance, strict)
    return made


def _trace_method(mod: Module, made: ScriptModule, name: str, examples: object, by_name: bool, strict: bool) -> Graph:
    method = mod if name == "forward" else getattr(mod, name)
    inputs, names = _bind_examples(examples, by_name, mod.forward if name == "forward" else method)
    function = _without_scope(mod) if name == "forward" else method
    return _record(function, inputs, names, by_name, strict, (mod, made))


def _without_scope(module: Module) -> Callable:
    return lambda *args, **kwargs: module(*args, **kwargs)


def _check_method(
    mod: Module, made: ScriptModule, name: str, examples: object, by_name: bool, tolerance: float, strict: bool
) -> None:
    again = traced_module(mod)
    graph = _trace_method(mod, again, name, cloned(examples), by_name, strict)
    first = made._method(name)._function.graph.copy()
    for each in (first, graph):
        inline(each)
        each.inputs[0].set_type(made._c.type)
        _forget_object_types(each)
    compare_graphs(first, graph)
    method = mod if name == "forward" else getattr(mod, name)
    inputs, names = _bind_examples(examples, by_name, mod.forward if name == "forward" else method)
    _compare(method, getattr(made, name), names if by_name else None, inputs, graph, tolerance)


def _forget_object_types(graph: Graph) -> None:
    """Ignore module types, which differ between two traces without changing the meaning."""
    for node in graph.all_nodes():
        if node.kind == "prim::GetAttr":
            for value in node.outputs:
                if value.type.kind() == "ClassType":
                    value.set_type(graph.inputs[0].type)


def _get_trace_graph(
    f: Callable | Module, args: object = (), kwargs: dict | None = None, strict: bool = True, _force_outplace: bool = False,
    return_inputs: bool = False,
) -> tuple:  # fmt: skip
    """Return the graph of a function or module for `args`, and its result; `args` too, if `return_inputs`.

    The parameters and buffers of a module are inputs of the graph, after the arguments. NotImplementedError with `kwargs`.
    """
    if kwargs:
        raise NotImplementedError(f"_get_trace_graph: give arguments by position, got {', '.join(kwargs)} by name")
    given = args if isinstance(args, tuple) else (args,)
    check_inputs(given)
    clear_autocast_cache()  # casts of parameters were cached without being recorded
    tracing = TracingState(strict)
    taken = [add_input(tracing, value, None) for value in given]
    for tensor in _state_of(f) if isinstance(f, Module) else ():
        add_input(tracing, tensor, None)
    with tracing_hooks(), tracing.recording(record):
        result = f(*taken)
        with suspended():
            tracing.graph.register_output(output_value(tracing, result))
    normalize_ops(tracing.graph)
    eliminate_dead_code(tracing.graph)
    graph = graph_api.Graph(tracing.graph)
    return (graph, result, given) if return_inputs else (graph, result)


def _state_of(module: Module) -> list[Tensor]:
    """Return the parameters and buffers of a module, in the order of its state, each once."""
    return list({id(tensor._impl): tensor for tensor in module.state_dict(keep_vars=True).values()}.values())
