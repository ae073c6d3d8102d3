"""Operator support: objects that tell a partitioner which nodes a backend can run, and ways to combine them."""

from __future__ import annotations

import abc
from collections.abc import Callable, Mapping

from rushlight.fx.node import Node
from rushlight.fx.passes.tools_common import get_node_target
from rushlight.nn.modules.module import Module

__all__ = ["OpSupports", "OperatorSupport", "OperatorSupportBase", "any_chain", "chain", "create_op_support"]
Asked = Callable[[Mapping[str, Module], Node], bool]


class OperatorSupportBase(abc.ABC):
    """Tells whether a backend runs a node; subclasses define `is_node_supported`."""

    @abc.abstractmethod
    def is_node_supported(self, submodules: Mapping[str, Module], node: Node) -> bool:
        """Return whether the backend runs `node`; `submodules` are the graph's modules by dotted name."""


class OperatorSupport(OperatorSupportBase):
    """Supports the targets in `support_dict`, if the inputs have the listed dtypes.

    The keys are names in the form of `get_node_target`. A value is None for any dtypes, or a pair: for each positional input
    the allowed dtypes, and for each keyword input.
    """

    _support_dict: Mapping[str, tuple | None] = {}

    def __init__(self, support_dict: Mapping[str, tuple | None] | None = None) -> None:
        self._support_dict = support_dict or self._support_dict

    def is_node_supported(self, submodules: Mapping[str, Module], node: Node) -> bool:
        """Return whether the table has the node's target, and allows the dtypes of its inputs."""
        if node.op not in ("call_module", "call_function", "call_method"):
            return True
        target = get_node_target(submodules, node)
        if target not in self._support_dict:
            return False
        wanted = self._support_dict[target]
        if wanted is None:
            return True
        by_position, by_name = wanted
        pairs = [(node.args[index], dtypes) for index, dtypes in enumerate(by_position) if index < len(node.args)]
        pairs += [(node.kwargs[key], dtypes) for key, dtypes in by_name.items() if key in node.kwargs]
        return all(_dtype(value) in dtypes for value, dtypes in pairs if isinstance(value, Node))


def _dtype(node: Node) -> object:
    for key in ("tensor_meta", "val"):
        if key in node.meta:
            return getattr(node.meta[key], "dtype", None)
    return None


class _Asking(OperatorSupportBase):
    def __init__(self, ask: Asked) -> None:
        self._ask = ask

    def is_node_supported(self, submodules: Mapping[str, Module], node: Node) -> bool:
        return self._ask(submodules, node)


def create_op_support(is_node_supported: Asked) -> OperatorSupportBase:
    """Make an OperatorSupportBase from a function."""
    return _Asking(is_node_supported)


def chain(*op_support: OperatorSupportBase) -> OperatorSupportBase:
    """Supports the nodes that all of these support."""
    return _Asking(lambda modules, node: all(each.is_node_supported(modules, node) for each in op_support))


def any_chain(*op_support: OperatorSupportBase) -> OperatorSupportBase:
    """Supports the nodes that any of these supports."""
    return _Asking(lambda modules, node: any(each.is_node_supported(modules, node) for each in op_support))


class OpSupports:
    """Rules to combine with others."""

    @classmethod
    def decline_if_input_dtype(cls, dtype: object) -> OperatorSupportBase:
        """Support no node with an input of this dtype."""
        return _Asking(lambda modules, node: all(_dtype(used) != dtype for used in node.all_input_nodes))

    @classmethod
    def decline_if_node_in_names(cls, disallow_set: set[str]) -> OperatorSupportBase:
        """Support no node with one of these names."""
        return _Asking(lambda modules, node: node.name not in disallow_set)
