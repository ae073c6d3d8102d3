"""Captured graphs as plain data: nodes, their arguments, and what is known of inputs.

In: a graph of library calls of fixed sizes. Out: bytes, and the graph again, for those who look at it: the kernels that a kept
capture runs need none.
"""

from __future__ import annotations

import marshal
import zlib
from typing import Any

from rushlight.autograd.grad_mode import set_grad_enabled
from rushlight.core.device import device
from rushlight.core.dtype import dtype
from rushlight.core.lazy_module import LazyModule
from rushlight.core.size import Size
from rushlight.core.tensor import Tensor
from rushlight.dynamo.fingerprints import Fingerprints
from rushlight.fx.graph_module import GraphModule
from rushlight.fx.node import Node
from rushlight.fx.targets import TORCH, qualified_name, resolve

fake_tensor, graphs = map(LazyModule, ("rushlight.fx.fake_tensor", "rushlight.fx.graph"))

_PLAIN = (bool, int, float, complex, str, type(None), type(...))
_NOTED = ("writes_arguments", "draws_random_numbers")
NODE, TUPLE, SIZE, LIST, DICT, SLICE, NAMED, DEVICE = range(8)


class NoData(ValueError):
    """Something in a graph is not known here."""


def targets_of(module: GraphModule) -> tuple[tuple[str, str, str], ...]:
    """What a graph calls: kind, name and fingerprint of each. NoData for what has no name."""
    prints = Fingerprints()
    called = {(node.op, node.target): None for node in module.graph.nodes if node.op in ("call_function", "call_method")}
    return tuple((op, _name(target), prints.of(_called(op, _name(target)))) for op, target in called)


def are_same(targets: tuple[tuple[str, str, str], ...]) -> bool:
    """Whether these names mean what they meant."""
    prints = Fingerprints()
    return all(prints.of(_called(op, name)) == fingerprint for op, name, fingerprint in targets)


def _called(op: str, name: str) -> Any:
    return resolve(name) if op == "call_function" else getattr(Tensor, name, None)


def _name(target: Any) -> str:
    if isinstance(target, str):
        return target
    name = qualified_name(target)
    if resolve(name) is not target:
        raise NoData(name)
    return name


def to_data(module: GraphModule) -> bytes:
    """A graph as bytes. NoData where it has open sizes, or arguments of unknown kinds."""
    nodes = [
        (
            node.op, node.name, _name(node.target), _data(node.args), _data(node.kwargs), node.stack_trace,
            _facts(node.meta["val"]) if node.op == "placeholder" else None,
            tuple(name for name in _NOTED if name in node.meta),
        )
        for node in module.graph.nodes
    ]  # fmt: skip
    return zlib.compress(marshal.dumps((type(module).__name__, nodes)), 1)


def _facts(value: object) -> tuple:
    if not isinstance(value, Tensor) or not all(type(number) is int for number in (*value.shape, *value.stride())):
        raise NoData("an input of open sizes")
    return tuple(value.shape), value.stride(), value.dtype.name, value.requires_grad


def _data(value: Any) -> Any:
    if isinstance(value, Node):
        return NODE, value.name
    if type(value) in _PLAIN:
        return value
    if type(value) in (tuple, Size):
        return SIZE if type(value) is Size else TUPLE, [_data(item) for item in value]
    if isinstance(value, list):
        return LIST, [_data(item) for item in value]
    if isinstance(value, dict):
        return DICT, [(name, _data(item)) for name, item in value.items()]
    if isinstance(value, slice):
        return SLICE, [_data(value.start), _data(value.stop), _data(value.step)]
    if isinstance(value, dtype):
        return NAMED, value.name
    if type(value) is device:
        return DEVICE, str(value)
    name = repr(value).removeprefix("torch.")
    if type(value).__name__ in ("layout", "memory_format") and getattr(TORCH, name, None) is value:
        return NAMED, name
    raise NoData(type(value).__name__)


def _value(data: Any, nodes: dict[str, Node]) -> Any:
    if type(data) is not tuple:
        return data
    kind, content = data
    if kind == NODE:
        return nodes[content]
    if kind == DEVICE:
        return device(content)
    if kind == NAMED:
        return getattr(TORCH, content)
    if kind == DICT:
        return {name: _value(item, nodes) for name, item in content}
    items = [_value(item, nodes) for item in content]
    return items if kind == LIST else slice(*items) if kind == SLICE else Size(items) if kind == SIZE else tuple(items)


class KeptGraph:
    """Stands for the GraphModule that `data` describes, with these attributes. It is made when it is needed."""

    def __init__(self, data: bytes, attributes: dict[str, Tensor], input_count: int) -> None:
        self._data = data
        self._attributes = attributes
        self.input_count = input_count
        self._made: GraphModule | None = None

    def __getattr__(self, name: str) -> Any:
        attributes = self.__dict__["_attributes"]
        return attributes[name] if name in attributes else getattr(self.module(), name)

    def module(self) -> GraphModule:
        """The module."""
        if self._made is None:
            self._made = self._make()
        return self._made

    def _make(self) -> GraphModule:
        name, described = marshal.loads(zlib.decompress(self._data))
        graph, fakes, nodes = graphs.Graph(), fake_tensor.FakeTensorMode(), {}
        for op, own, target, args, kwargs, stack_trace, facts, noted in described:
            called = resolve(target) if op == "call_function" else target
            node = graph.create_node(op, called, _value(args, nodes), _value(kwargs, nodes), name=own)
            node.stack_trace = stack_trace
            node.meta |= dict.fromkeys(noted, True)
            if facts is not None:
                node.meta["val"] = node.meta["example_value"] = _fake(fakes, *facts)
            nodes[own] = node
        return GraphModule(self._attributes, graph, name)


def _fake(fakes: Any, size: tuple, stride: tuple, name: str, requires_grad: bool) -> Tensor:
    with set_grad_enabled(False), fakes:
        made = TORCH.empty_strided(size, stride, dtype=getattr(TORCH, name))
    return made.requires_grad_(requires_grad)
