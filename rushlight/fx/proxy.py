"""Proxy: stands for a value while a program is traced; operations on it become nodes of a graph.

In: operations on proxies by the traced Python code. Out: nodes, made by the tracer that owns the graph. A proxy has no value,
so operations that need one (a branch, a loop, `len`) raise `TraceError`.
"""

from __future__ import annotations

import dis
import operator
import sys
import traceback
from collections.abc import Callable, Iterator
from types import FrameType
from typing import TYPE_CHECKING, Any

from rushlight.fx.annotations import PACKAGE_FOLDER
from rushlight.fx.node import Node
from rushlight.fx.targets import TORCH, mutates_arguments

if TYPE_CHECKING:
    from rushlight.core.size import Size
    from rushlight.fx.graph import Graph
    from rushlight.nn.parameter import Parameter


class TraceError(ValueError):
    """The traced program asked for the value of a proxy."""


class Proxy:
    """A value of a traced program: the result of `node`. Operators, methods, attributes and functions on it are recorded.

    Without a `tracer`, the nodes are appended to the graph of `node`.
    """

    def __init__(self, node: Node, tracer: TracerBase | None = None) -> None:
        self.tracer = GraphAppendingTracer(node.graph) if tracer is None else tracer
        self.node = node

    def __repr__(self) -> str:
        return f"Proxy({self.node.name})"

    def __getattr__(self, name: str) -> Attribute:
        # Deep copies and pickles look for protocol methods; a proxy has none.
        if name.startswith("__") and name.endswith("__"):
            raise AttributeError(name)
        return Attribute(self, name)

    def __call__(self, *args: Any, **kwargs: Any) -> Proxy:
        return self.tracer.create_proxy("call_method", "__call__", (self, *args), kwargs)

    def __iter__(self) -> Iterator[Proxy]:
        count = _unpacked_count(sys._getframe(1))
        if count is not None:
            return iter([self[index] for index in range(count)])
        return self.tracer.iter(self)

    def __bool__(self) -> bool:
        return self.tracer.to_bool(self)

    def __len__(self) -> int:
        raise RuntimeError(
            "'len' is not supported in symbolic tracing by default. If you want this call to be recorded, please call "
            "torch.fx.wrap('len') at module scope"
        )

    def keys(self) -> Any:
        """Called by `**proxy`; the tracer decides (an error by default)."""
        return self.tracer.keys(self)

    @classmethod
    def __torch_function__(cls, function: Callable, types: tuple, args: tuple = (), kwargs: dict | None = None) -> Proxy:
        """Record a call of a library function that has proxies among its arguments."""
        kwargs = kwargs or {}
        tracer = find_tracer((args, kwargs))
        owner = getattr(function, "owner", None)
        if owner is not None:  # a method of a scripted module
            return tracer.create_proxy("call_method", function.name, (owner, *args), kwargs)
        return tracer.create_proxy("call_function", function, args, kwargs)


class Attribute(Proxy):
    """`proxy.attr`: a method if it is called, otherwise an attribute, whose node is made when it is needed."""

    def __init__(self, root: Proxy, attr: str) -> None:
        self.root = root
        self.attr = attr
        self.tracer = root.tracer
        self._node: Node | None = None

    @property
    def node(self) -> Node:
        """The node that reads the attribute."""
        if self._node is None:
            self._node = self.tracer.create_proxy("call_function", getattr, (self.root, self.attr), {}).node
        return self._node

    def __call__(self, *args: Any, **kwargs: Any) -> Proxy:
        return self.tracer.create_proxy("call_method", self.attr, (self.root, *args), kwargs)


class ParameterProxy(Proxy):
    """A parameter whose shape is known while tracing."""

    def __init__(self, tracer: TracerBase, node: Node, name: str, param: Parameter) -> None:
        super().__init__(node, tracer)
        self.param = param
        self.name = name

    def __repr__(self) -> str:
        return f"ParameterProxy({self.name})"

    @property
    def shape(self) -> Size:
        """The parameter's sizes."""
        return self.param.shape

    def size(self, dim: int | None = None) -> Size | int:
        """Return the parameter's sizes, or one of them."""
        return self.param.size() if dim is None else self.param.size(dim)

    def dim(self) -> int:
        """Return the number of the parameter's dimensions."""
        return self.param.dim()

    @property
    def ndim(self) -> int:
        """The number of the parameter's dimensions."""
        return self.param.dim()

    def numel(self) -> int:
        """Return the number of the parameter's elements."""
        return self.param.numel()

    def nelement(self) -> int:
        """Return the number of the parameter's elements."""
        return self.param.numel()


class TracerBase:
    """Makes nodes for operations on proxies. Subclasses decide which operations become nodes."""

    graph: Graph
    check_mutable_operations = False
    """Whether a call of a function that writes to its arguments is an error, since passes for functional graphs would mishandle
    it."""

    def create_node(self, kind: str, target: Any, args: tuple, kwargs: dict, name: str | None = None,
                    type_expr: Any = None) -> Node:  # fmt: skip
        """Add a node to the graph. With `check_mutable_operations`, RuntimeError for a call that writes to its arguments."""
        if self.check_mutable_operations and kind == "call_function":
            _check_pure(target, kwargs)
        return self.graph.create_node(kind, target, args, kwargs, name, type_expr)

    def proxy(self, node: Node) -> Proxy:
        """Return the proxy of a node."""
        return Proxy(node, self)

    def create_proxy(self, kind: str, target: Any, args: tuple, kwargs: dict, name: str | None = None,
                     type_expr: Any = None) -> Proxy:  # fmt: skip
        """Add a node whose arguments may be proxies and other values, and return its proxy."""
        node = self.create_node(kind, target, self.create_arg(tuple(args)), self.create_arg(dict(kwargs)), name, type_expr)
        node.stack_trace = _user_stack()
        return self.proxy(node)

    def create_arg(self, value: Any) -> Any:
        """Convert a value to an argument of a node: nodes for proxies, nested values item by item."""
        if isinstance(value, Proxy):
            return value.node
        if hasattr(type(value), "__fx_create_arg__"):
            return value.__fx_create_arg__(self)
        if isinstance(value, tuple) and hasattr(value, "_fields"):
            return type(value)(*[self.create_arg(item) for item in value])
        if isinstance(value, list | tuple):
            return type(value)([self.create_arg(item) for item in value])
        if isinstance(value, dict):
            return self._create_dict(value)
        if isinstance(value, slice):
            return slice(self.create_arg(value.start), self.create_arg(value.stop), self.create_arg(value.step))
        if isinstance(value, range):
            return range(value.start, value.stop, value.step)
        return value

    def _create_dict(self, value: dict) -> dict:
        if next(proxies_in(tuple(value)), None) is not None:
            key = next(proxies_in(tuple(value)))
            raise RuntimeError(f"Keys for dictionaries used as an argument cannot contain a Node. Got key: {key.node}")
        return {key: self.create_arg(item) for key, item in value.items()}

    def to_bool(self, value: Proxy) -> bool:
        """Called when the program needs a truth value."""
        raise TraceError("symbolically traced variables cannot be used as inputs to control flow")

    def iter(self, value: Proxy) -> Iterator:
        """Called when the program iterates over a value, except to unpack a known number of items."""
        raise TraceError(
            "Proxy object cannot be iterated. This can be attempted when the Proxy is used in a loop or as a *args or **kwargs "
            "function argument: unpack a fixed number of items, or make the function a leaf by torch.fx.wrap."
        )

    def keys(self, value: Proxy) -> Any:
        """Called by `**proxy`."""
        return value.tracer.create_proxy("call_method", "keys", (value,), {})


class GraphAppendingTracer(TracerBase):
    """Adds nodes to an existing graph: Python code can write into it through `Proxy(node, GraphAppendingTracer(graph))`."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.scope = Scope("", None)
        self.module_stack: dict[str, Any] = {}
        self.node_name_to_scope: dict[str, tuple[str, Any]] = {}


class Scope:
    """The module whose forward is being traced: its dotted name and its type."""

    def __init__(self, module_path: str, module_type: Any) -> None:
        self.module_path = module_path
        self.module_type = module_type


class ScopeContextManager:
    """Sets `scope` to the values of `current_scope` in the block, and restores it after."""

    def __init__(self, scope: Scope, current_scope: Scope) -> None:
        self._before = Scope(scope.module_path, scope.module_type)
        self._scope = scope
        scope.module_path, scope.module_type = current_scope.module_path, current_scope.module_type

    def __enter__(self) -> Scope:
        return self._scope

    def __exit__(self, *args: object) -> None:
        self._scope.module_path, self._scope.module_type = self._before.module_path, self._before.module_type


def _user_stack() -> str:
    """Return the frames outside this package, formatted like a traceback."""
    frames = [frame for frame in traceback.extract_stack() if not frame.filename.startswith(PACKAGE_FOLDER)]
    return "".join(traceback.format_list(frames[-3:]))


def find_tracer(values: object) -> TracerBase:
    """Return the tracer of the first proxy in nested arguments; RuntimeError if there is none, or proxies of two tracers."""
    found: TracerBase | None = None
    for proxy in proxies_in(values):
        if found is not None and proxy.tracer is not found and not _write_to_one_graph(found, proxy.tracer):
            raise RuntimeError("a call has proxies of two tracers among its arguments; trace one program at a time")
        found = proxy.tracer
    if found is None:
        raise RuntimeError("a call was to be recorded, but no proxy is among its arguments")
    return found


def _write_to_one_graph(one: TracerBase, other: TracerBase) -> bool:
    return isinstance(one, GraphAppendingTracer) and isinstance(other, GraphAppendingTracer) and one.graph is other.graph


def proxies_in(values: object) -> Iterator[Proxy]:
    """Yield the proxies in nested lists, tuples, dicts and slices."""
    if isinstance(values, Proxy):
        yield values
    elif isinstance(values, list | tuple):
        for value in values:
            yield from proxies_in(value)
    elif isinstance(values, dict):
        yield from proxies_in(tuple(values.values()))
    elif isinstance(values, slice):
        yield from proxies_in((values.start, values.stop, values.step))


def _unpacked_count(frame: FrameType) -> int | None:
    """Return how many values the current instruction unpacks (`a, b = proxy`); None for other iterations."""
    for instruction in dis.get_instructions(frame.f_code):
        if instruction.offset == frame.f_lasti:
            return instruction.argval if instruction.opname == "UNPACK_SEQUENCE" else None
    return None


_BINARY = (
    "add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "matmul", "lshift", "rshift", "and", "or", "xor",
)  # fmt: skip
_OTHERS = ("eq", "ne", "lt", "le", "gt", "ge", "neg", "pos", "invert", "abs", "getitem")
_FUNCTIONS = {name: getattr(operator, f"{name}_" if name in ("and", "or") else name) for name in (*_BINARY, *_OTHERS)}


def _recording(function: Callable) -> Callable:
    def method(self: Proxy, *args: Any) -> Proxy:
        return self.tracer.create_proxy("call_function", function, (self, *args), {})

    return method


def _recording_reflected(function: Callable) -> Callable:
    def method(self: Proxy, other: Any) -> Proxy:
        return self.tracer.create_proxy("call_function", function, (other, self), {})

    return method


def _setitem(self: Proxy, index: Any, value: Any) -> None:
    self.tracer.create_proxy("call_function", operator.setitem, (self, index, value), {})


for _name, _function in _FUNCTIONS.items():
    setattr(Proxy, f"__{_name}__", _recording(_function))
for _name in _BINARY:
    setattr(Proxy, f"__r{_name}__", _recording_reflected(_FUNCTIONS[_name]))
Proxy.__setitem__ = _setitem
# Defining `__eq__` removed it; proxies hash by identity.
Proxy.__hash__ = object.__hash__


def _check_pure(target: Any, kwargs: dict) -> None:
    """Raise RuntimeError for a call of a function that writes to its arguments."""
    name = getattr(target, "__name__", "")
    if kwargs.get("out") is not None and vars(TORCH).get(name) is target:
        raise RuntimeError(f"Tried to trace mutable operation aten::{name}.out. FX only supports functional code")
    is_in_place = name.endswith("_") and not name.endswith("__")
    if mutates_arguments(target) or is_in_place and vars(TORCH).get(name) is target:
        raise RuntimeError(f"Tried to trace mutable operation {target}. FX only supports functional code")
