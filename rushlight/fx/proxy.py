"""Proxy: stands for a value while a program is traced; what is done with it becomes nodes of a graph.

In: operations on proxies by the traced Python code. Out: nodes, made by the tracer that owns the graph. A proxy knows no value,
so what needs one (a branch, a loop, `len`) raises `TraceError`.
"""

from __future__ import annotations

import dis
import operator
import sys
from collections.abc import Callable, Iterator
from types import FrameType
from typing import TYPE_CHECKING, Any

from rushlight.fx.node import Node

if TYPE_CHECKING:
    from rushlight.core.size import Size
    from rushlight.fx.tracer import TracerBase
    from rushlight.nn.parameter import Parameter


class TraceError(ValueError):
    """The traced program asked for the value of a proxy."""


class Proxy:
    """A value of a traced program: the result of `node`. Operators, methods, attributes and functions on it are recorded."""

    def __init__(self, node: Node, tracer: TracerBase) -> None:
        self.tracer = tracer
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
        """What `**proxy` unpacks; the tracer decides (an error by default)."""
        return self.tracer.keys(self)

    @classmethod
    def __torch_function__(cls, function: Callable, types: tuple, args: tuple = (), kwargs: dict | None = None) -> Proxy:
        """Record a call of a library function that has proxies among its arguments."""
        kwargs = kwargs or {}
        tracer = find_tracer((args, kwargs))
        return tracer.create_proxy("call_function", function, args, kwargs)


class Attribute(Proxy):
    """`proxy.name`: a method when it is called, otherwise an attribute, whose node is made when it is needed."""

    def __init__(self, root: Proxy, name: str) -> None:
        self.root = root
        self.name = name
        self.tracer = root.tracer
        self._node: Node | None = None

    @property
    def node(self) -> Node:
        """The node that reads the attribute."""
        if self._node is None:
            self._node = self.tracer.create_proxy("call_function", getattr, (self.root, self.name), {}).node
        return self._node

    def __call__(self, *args: Any, **kwargs: Any) -> Proxy:
        return self.tracer.create_proxy("call_method", self.name, (self.root, *args), kwargs)


class ParameterProxy(Proxy):
    """A parameter whose shape is known while tracing."""

    def __init__(self, node: Node, tracer: TracerBase, parameter: Parameter) -> None:
        super().__init__(node, tracer)
        self.parameter = parameter

    @property
    def shape(self) -> Size:
        """The parameter's sizes."""
        return self.parameter.shape

    def size(self, dim: int | None = None) -> Size | int:
        """The parameter's sizes, or one of them."""
        return self.parameter.size() if dim is None else self.parameter.size(dim)

    def dim(self) -> int:
        """The number of the parameter's dimensions."""
        return self.parameter.dim()

    def numel(self) -> int:
        """The number of the parameter's elements."""
        return self.parameter.numel()


def find_tracer(values: object) -> TracerBase:
    """The tracer of the first proxy in nested arguments; RuntimeError where there is none, or proxies of two tracers."""
    found: TracerBase | None = None
    for proxy in proxies_in(values):
        if found is not None and proxy.tracer is not found:
            raise RuntimeError("a call has proxies of two tracers among its arguments; trace one program at a time")
        found = proxy.tracer
    if found is None:
        raise RuntimeError("a call was to be recorded, but no proxy is among its arguments")
    return found


def proxies_in(values: object) -> Iterator[Proxy]:
    """The proxies in nested lists, tuples, dicts and slices."""
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
    """How many values the instruction that iterates now unpacks (`a, b = proxy`); None for other iterations."""
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
# `__eq__` took it away; proxies are told apart by identity.
Proxy.__hash__ = object.__hash__
