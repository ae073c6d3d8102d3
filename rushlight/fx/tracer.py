"""symbolic_trace: run a program on proxies, and record its operations as a graph.

In: a module or function. Out: a `Graph` (`Tracer.trace`) or `GraphModule` (`symbolic_trace`) of the library functions,
methods and leaf modules that it calls. Python's control flow is followed once; if it depends on a traced value,
`TraceError` is raised.
"""

from __future__ import annotations

import copy
import functools
import inspect
import math
import threading
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import fields, is_dataclass
from enum import Enum
from types import EllipsisType, FunctionType, ModuleType, NoneType
from typing import Any

import numpy as np

from rushlight.core.device import device
from rushlight.core.dtype import dtype
from rushlight.core.generator import Generator
from rushlight.core.layout import layout, memory_format
from rushlight.core.naming import own_module
from rushlight.core.symbolic import SymInt
from rushlight.core.tensor import Tensor
from rushlight.fx.graph import Graph
from rushlight.fx.graph_module import GraphModule
from rushlight.fx.node import Node
from rushlight.fx.patching import Patches, names_of_function, patched_modules, wrapped_functions
from rushlight.fx.proxy import ParameterProxy, Proxy, TracerBase, proxies_in
from rushlight.fx.proxyable_classes import ProxyableClassMeta, construction_of, noting_constructions
from rushlight.nn.modules.container import ModuleDict, ModuleList, Sequential
from rushlight.nn.modules.module import Module
from rushlight.nn.parameter import Parameter
from rushlight.ops.dispatcher import OpOverload
from rushlight.ops.functional import _assert, _assert_is_none

_PACKAGE = __name__.split(".")[0]


class _Placeholder:
    """Marks, in nested `concrete_args`, the values that stay inputs."""

    def __repr__(self) -> str:
        return "PH"


PH = _Placeholder()
# The types that may be arguments of a node.
_ARGUMENTS = (
    Node, Proxy, Tensor, str, bytes, bool, int, float, complex, NoneType, EllipsisType, Enum, list, tuple, dict, slice, range,
    dtype, device, layout, memory_format, Generator, OpOverload, SymInt, np.generic,
)  # fmt: skip


class Tracer(TracerBase):
    """Traces a module or function.

    Modules of the library itself are leaves, recorded as `call_module`; `is_leaf_module` decides. Calls of the functions in
    `autowrap_modules` (`math`) and `autowrap_functions`, and of those passed to `wrap`, are recorded if a proxy is among
    their arguments. With `param_shapes_constant`, the shapes of parameters are known while tracing.
    """

    traced_func_name = "forward"

    def __init__(
        self,
        autowrap_modules: tuple[ModuleType, ...] = (math,),
        autowrap_functions: tuple[Callable, ...] = (),
        param_shapes_constant: bool = False,
    ) -> None:
        self._autowrap_modules = autowrap_modules
        functions = [value for module in autowrap_modules for value in vars(module).values() if callable(value)]
        self._autowrapped = {id(function): function for function in (*functions, *autowrap_functions)}
        self.param_shapes_constant = param_shapes_constant
        self.root: Module = Module()
        self.module_stack: dict[str, tuple[str, type]] = {}
        self._thread = threading.get_ident()

    # Methods that subclasses override

    def is_leaf_module(self, m: Module, module_qualified_name: str) -> bool:
        """Return whether a call of `m` becomes one node. It does for the library's own modules, other than containers."""
        return own_module(type(m)).startswith(f"{_PACKAGE}.nn") and not isinstance(m, Sequential | ModuleList | ModuleDict)

    def call_module(self, m: Module, forward: Callable, args: tuple, kwargs: dict) -> Any:
        """Called for each call of a module; `forward` runs it inline."""
        name = self.path_of_module(m)
        if self.is_leaf_module(m, name):
            return self.create_proxy("call_module", name, args, kwargs)
        return forward(*args, **kwargs)

    def path_of_module(self, mod: Module) -> str:
        """Return the dotted name of a submodule of the root; NameError if it is none."""
        name = self._module_names.get(id(mod))
        if name is None:
            raise NameError(f"module is not installed as a submodule: {type(mod).__name__}")
        return name

    def create_arg(self, value: Any) -> Any:
        """Convert a value like the base class; parameters, buffers and other tensors of the root become `get_attr` nodes."""
        if isinstance(value, Tensor):
            return self.create_node("get_attr", self._name_of_tensor(value), (), {})
        if isinstance(value, Module) and id(value) in self._module_names:
            return self.create_node("get_attr", self.path_of_module(value), (), {})
        if is_dataclass(value) and not isinstance(value, type):
            made = {part.name: self.create_arg(getattr(value, part.name)) for part in fields(value)}
            return self.create_node("call_function", type(value), (), made)
        if isinstance(type(value), ProxyableClassMeta) and (construction := construction_of(value)) is not None:
            return self.create_proxy("call_function", type(value), *construction).node
        if not isinstance(value, _ARGUMENTS) and not hasattr(type(value), "__fx_create_arg__"):
            raise NotImplementedError(f"argument of type: {type(value)}")
        return super().create_arg(value)

    def module_attribute(self, value: Any) -> Any:
        """Called for parameters, buffers and submodules read from a module: a parameter becomes a proxy, once."""
        if not isinstance(value, Parameter) or id(value) not in self._tensor_names:
            return value
        name = self._tensor_names[id(value)]
        if name not in self._parameters:
            self._parameters[name] = self.create_proxy("get_attr", name, (), {})
            if self.param_shapes_constant:
                self._parameters[name] = ParameterProxy(self, self._parameters[name].node, name, value)
        return self._parameters[name]

    def _name_of_tensor(self, value: Tensor) -> str:
        name = self._tensor_names.get(id(value))
        if name is not None:
            return name
        if isinstance(value, Parameter):
            raise NameError("parameter is not a member of this module")
        name = self.get_fresh_qualname("_tensor_constant")
        self._tensor_names[id(value)] = name
        setattr(self.root, name, value)
        return name

    def get_fresh_qualname(self, prefix: str) -> str:
        """Return `prefix` with the first number that makes it a new attribute name of the root."""
        number = 0
        while hasattr(self.root, f"{prefix}{number}"):
            number += 1
        return f"{prefix}{number}"

    # Tracing

    def trace(self, root: Module | Callable, concrete_args: dict[str, Any] | tuple | None = None) -> Graph:
        """Trace a module's `forward` (the method that `traced_func_name` names), or a function, to a graph.

        `concrete_args` fixes arguments by name, or, in a tuple, by position; in nested values, `PH` marks what stays an input.
        The graph still takes all arguments, and raises AssertionError if fixed ones have other values. Values of a tuple beyond
        the parameters are arguments that `*args` takes. TraceError if the program's control flow depends on an input.
        """
        if isinstance(root, Module) and hasattr(root, self.traced_func_name):  # a GraphModule has it from now on
            function = getattr(type(root), self.traced_func_name, getattr(root, self.traced_func_name))
        elif isinstance(root, Module):
            raise AssertionError(f"traced_func_name={self.traced_func_name} doesn't exist in {type(root).__name__}")
        else:
            function = root
        if not callable(function):
            raise TypeError(f"trace expects a module or a function, got {type(root).__name__}")
        self._subject = root
        self.root = root if isinstance(root, Module) else Module()
        self._module_names = {id(module): name for name, module in self.root.named_modules()}
        self._tensor_names = dict(_tensors_of(self.root))
        self._parameters: dict[str, Proxy] = {}
        self._thread = threading.get_ident()
        self.graph = Graph()
        code = getattr(inspect.unwrap(function), "__code__", None)
        if code is not None:
            self.graph.origin = f"{code.co_filename}:{code.co_firstlineno} in {code.co_name}"
        with self._patch_for_tracing(function), noting_constructions():
            result = self._call_with_inputs(function, concrete_args or {})
        self.create_node("output", "output", (self.create_arg(result),), {}, None, _return_annotation(function))
        return self.graph

    def _call_with_inputs(self, function: Callable, concrete: dict[str, Any] | tuple) -> Any:
        wanted = inspect.unwrap(function)
        if not isinstance(wanted, FunctionType):
            raise TypeError(f"trace expects a function written in Python, got {type(function).__name__}")
        if isinstance(self._subject, Module) and wanted.__code__.co_argcount == 0:
            raise RuntimeError("``self`` argument cannot be part of *args expansion!")
        parameters = {parameter.name: parameter for parameter in inspect.signature(wanted).parameters.values()}
        if isinstance(concrete, tuple):
            return self._call_by_position(function, list(parameters.values()), concrete)
        unknown = set(concrete) - set(parameters)
        if unknown:
            raise RuntimeError(f"concrete_args names {sorted(unknown)}, which are no parameters of {wanted.__qualname__}")
        names = list(wanted.__code__.co_varnames[: _parameter_count(wanted)])
        values = [self._make_input(parameters[name], concrete) for name in names[isinstance(self._subject, Module) :]]
        if isinstance(self._subject, Module):
            values.insert(0, self._subject)
        return _plain_parameters(function, wanted)(*values)

    def _call_by_position(self, function: Callable, parameters: list[inspect.Parameter], concrete: tuple) -> Any:
        owner = [self._subject] if isinstance(self._subject, Module) else []
        named = [each for each in parameters[len(owner):] if each.kind in (each.POSITIONAL_ONLY, each.POSITIONAL_OR_KEYWORD)]
        rest = next((each for each in parameters if each.kind is each.VAR_POSITIONAL), None)
        if len(concrete) > len(named) and rest is None or len(concrete) < len(named):
            raise RuntimeError(f"Tracing expected {len(named)} arguments but got {len(concrete)} concrete arguments")
        given = {each.name: value for each, value in zip(named, concrete, strict=False)}
        values = [self._make_input(each, given) for each in named]
        for index, value in enumerate(concrete[len(named):]):
            name = f"{rest.name}_{index}"
            values.append(self._assert_concrete_value(value, self.create_proxy("placeholder", name, (), {}, name), name))
        return function(*owner, *values)

    def _make_input(self, parameter: inspect.Parameter, concrete: dict[str, Any]) -> Any:
        default = () if parameter.default is parameter.empty else (parameter.default,)
        annotation = None if parameter.annotation in (parameter.empty, Any, "Any") else parameter.annotation
        if parameter.name not in concrete:
            stars = {parameter.VAR_POSITIONAL: "*", parameter.VAR_KEYWORD: "**"}.get(parameter.kind, "")
            return self.create_proxy("placeholder", stars + parameter.name, default, {}, parameter.name, annotation)
        given = self.create_proxy("placeholder", parameter.name, default, {}, parameter.name, annotation)
        return self._assert_concrete_value(concrete[parameter.name], given, parameter.name)

    def _assert_concrete_value(self, value: Any, given: Proxy, name: str) -> Any:
        """Return the program's value for a fixed argument; add an assertion to the graph that it is given that value."""
        if value is PH:
            return given
        if isinstance(value, dict):
            return {key: self._assert_concrete_value(item, given[key], name) for key, item in value.items()}
        if isinstance(value, list | tuple):
            items = [self._assert_concrete_value(item, given[index], name) for index, item in enumerate(value)]
            return type(value)(*items) if hasattr(value, "_fields") else type(value)(items)
        told = f"{name} has been specialized to have value {value} but got another value"
        if value is None:
            _assert_is_none(given, told)
        elif isinstance(value, _ARGUMENTS) and not isinstance(value, Tensor):
            _assert(given == value, told)
        else:
            warnings.warn(
                f"Was not able to add assertion to guarantee correct input {name} to specialized function. It is up to the "
                "user to make sure that your inputs match the inputs you specialized the function with.", stacklevel=2,
            )  # fmt: skip
        return value

    @contextmanager
    def _patch_for_tracing(self, function: Callable) -> Iterator[None]:
        with Patches() as patches:
            patched_modules(patches, self._thread, self._call_inside, self.module_attribute)
            for names, name, original in wrapped_functions():
                patches.set_item(names, name, self._wrap_to_record(original))
                for generated in self._generated_namespaces():
                    for position in names_of_function(original, generated):
                        patches.set_item(generated, position, self._wrap_to_record(original))
            for names in (getattr(inspect.unwrap(function), "__globals__", {}), *map(vars, self._autowrap_modules)):
                for name, value in list(names.items()):
                    if id(value) in self._autowrapped:
                        patches.set_item(names, name, self._wrap_to_record(value))
            yield

    def _call_inside(self, module: Module, forward: Callable, args: tuple, kwargs: dict) -> Any:
        """Call `call_module`, and record the module in the meta of the new nodes."""
        before, path = self.module_stack, self._module_names.get(id(module))
        if path:
            self.module_stack = {**before, path: (path, type(module))}
        try:
            return self.call_module(module, forward, args, kwargs)
        finally:
            self.module_stack = before

    def create_node(self, kind: str, target: Any, args: tuple, kwargs: dict, name: str | None = None,
                    type_expr: Any = None) -> Node:  # fmt: skip
        """Add a node to the graph; its `meta["nn_module_stack"]` has the enclosing modules, (path, type) by path."""
        node = super().create_node(kind, target, args, kwargs, name, type_expr)
        if self.module_stack:
            node.meta["nn_module_stack"] = self.module_stack
        return node

    def __deepcopy__(self, memo: dict) -> Tracer:
        made = memo[id(self)] = type(self).__new__(type(self))
        shared = ("_autowrap_modules", "_autowrapped")
        for name, value in self.__dict__.items():
            made.__dict__[name] = value if name in shared else copy.deepcopy(value, memo)
        return made

    def _generated_namespaces(self) -> list[dict]:
        """Return the globals of the generated code of GraphModules, which have their own names for functions."""
        graphs = [module for module in self.root.modules() if isinstance(module, GraphModule)]
        return [graph.forward.__func__.__globals__ for graph in graphs]

    def _wrap_to_record(self, original: Callable) -> Callable:
        """Wrap `original` so that a call with a proxy among its arguments is recorded as one node."""

        @functools.wraps(original)
        def recorded(*args: Any, **kwargs: Any) -> Any:
            if next(proxies_in((args, kwargs)), None) is None or threading.get_ident() != self._thread:
                return original(*args, **kwargs)
            return self.create_proxy("call_function", original, args, kwargs)

        return recorded


def _tensors_of(root: Module) -> Iterator[tuple[int, str]]:
    """Yield the tensors that a module and its submodules hold, as (id, dotted name), with the first name of each."""
    seen: set[int] = set()
    for prefix, module in root.named_modules():
        held = {**vars(module), **module._buffers, **module._parameters}
        for name, value in held.items():
            if isinstance(value, Tensor) and id(value) not in seen:
                seen.add(id(value))
                yield id(value), f"{prefix}.{name}" if prefix else name


def _parameter_count(function: FunctionType) -> int:
    code = function.__code__
    variadic = bool(code.co_flags & inspect.CO_VARARGS) + bool(code.co_flags & inspect.CO_VARKEYWORDS)
    return code.co_argcount + code.co_kwonlyargcount + variadic


def _plain_parameters(function: Callable, wanted: FunctionType) -> Callable:
    """Return `function` with all its parameters positional: `*args` and `**kwargs` take one value each."""
    code = wanted.__code__
    if function is not wanted or _parameter_count(wanted) == code.co_argcount:
        return function
    flags = code.co_flags & ~(inspect.CO_VARARGS | inspect.CO_VARKEYWORDS)
    code = code.replace(co_flags=flags, co_argcount=_parameter_count(wanted), co_kwonlyargcount=0, co_posonlyargcount=0)
    return FunctionType(code, wanted.__globals__, wanted.__name__, None, wanted.__closure__)


def _return_annotation(function: Callable) -> Any:
    found = getattr(inspect.unwrap(function), "__annotations__", {}).get("return")
    return None if found in (Any, "Any") else found


def symbolic_trace(root: Module | Callable, concrete_args: dict[str, Any] | tuple | None = None) -> GraphModule:
    """Return a GraphModule that computes what `root` computed when it was traced: see `Tracer.trace`."""
    tracer = Tracer()
    graph = tracer.trace(root, concrete_args)
    name = type(root).__name__ if isinstance(root, Module) else getattr(root, "__name__", "GraphModule")
    return GraphModule(tracer.root, graph, name)
