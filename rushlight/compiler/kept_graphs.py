"""Kept graphs: captured graphs as bytes, pickled by fx, with the metadata of inputs.

In: a graph of library calls of fixed sizes. Out: bytes, and the graph again when it is inspected: running a kept capture's
kernels does not need it.
"""

from __future__ import annotations

import pickle
import zlib
from typing import Any

from rushlight.autograd.grad_mode import set_grad_enabled
from rushlight.core.lazy_module import LazyModule
from rushlight.core.tensor import Tensor
from rushlight.dynamo.fingerprints import Fingerprints
from rushlight.fx.graph_module import GraphModule
from rushlight.fx.targets import TORCH, qualified_name, resolve

fake_tensor = LazyModule("rushlight.fx.fake_tensor")

class NoData(ValueError):
    """A part of a graph cannot be stored."""


def targets_of(module: GraphModule) -> tuple[tuple[str, str, str], ...]:
    """Return the calls of a graph: kind, name and fingerprint of each. NoData for a target without a name."""
    prints = Fingerprints()
    called = {(node.op, node.target): None for node in module.graph.nodes if node.op in ("call_function", "call_method")}
    return tuple((op, _name(target), prints.of(_resolve_target(op, _name(target)))) for op, target in called)


def are_same(targets: tuple[tuple[str, str, str], ...]) -> bool:
    """Return whether these names still have the same fingerprints."""
    prints = Fingerprints()
    return all(prints.of(_resolve_target(op, name)) == fingerprint for op, name, fingerprint in targets)


def _resolve_target(op: str, name: str) -> Any:
    return resolve(name) if op == "call_function" else getattr(Tensor, name, None)


def _name(target: Any) -> str:
    if isinstance(target, str):
        return target
    name = qualified_name(target)
    if resolve(name) is not target:
        raise NoData(name)
    return name


def to_data(module: GraphModule) -> bytes:
    """Return a graph as bytes, without its attributes. NoData if a part cannot be pickled."""
    inputs = {node.name: _describe_metadata(node.meta["val"]) for node in module.graph.find_nodes(op="placeholder")}
    try:
        return zlib.compress(pickle.dumps((type(module).__name__, module.graph, inputs)), 1)
    except (pickle.PicklingError, AttributeError, TypeError) as error:
        raise NoData(str(error)) from error


def _describe_metadata(value: Tensor) -> tuple:
    return tuple(value.shape), value.stride(), value.dtype, value.requires_grad


class KeptGraph:
    """A lazy GraphModule, made from `data` and these attributes when needed."""

    def __init__(self, data: bytes, attributes: dict[str, Tensor]) -> None:
        self._data = data
        self._attributes = attributes
        self._made: GraphModule | None = None

    def __getattr__(self, name: str) -> Any:
        attributes = self.__dict__["_attributes"]
        return attributes[name] if name in attributes else getattr(self.module(), name)

    def module(self) -> GraphModule:
        """Return the module."""
        if self._made is None:
            self._made = self._make()
        return self._made

    def _make(self) -> GraphModule:
        """Unpickle the graph, and give its inputs fake tensors again."""
        name, graph, inputs = pickle.loads(zlib.decompress(self._data))
        with set_grad_enabled(False), fake_tensor.FakeTensorMode():
            for node in graph.find_nodes(op="placeholder"):
                size, stride, dtype, requires_grad = inputs[node.name]
                made = TORCH.empty_strided(size, stride, dtype=dtype)
                node.meta["val"] = node.meta["example_value"] = made.requires_grad_(requires_grad)
        return GraphModule(self._attributes, graph, name)
