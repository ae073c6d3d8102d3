"""PassBase and PassResult: a pass as a class, called with a GraphModule."""

from __future__ import annotations

import abc
from typing import NamedTuple

from rushlight.fx.graph_module import GraphModule

__all__ = ["PassBase", "PassResult"]


class PassResult(NamedTuple):
    """The module after a pass, and whether the pass changed it."""

    graph_module: GraphModule
    modified: bool


class PassBase(abc.ABC):
    """A pass: calling it runs `requires`, `call` and `ensures` on a GraphModule. Subclasses define `call`."""

    def __call__(self, graph_module: GraphModule) -> PassResult | None:
        self.requires(graph_module)
        result = self.call(graph_module)
        self.ensures(graph_module)
        return result

    @abc.abstractmethod
    def call(self, graph_module: GraphModule) -> PassResult | None:
        """Run the pass."""

    def requires(self, graph_module: GraphModule) -> None:  # noqa: B027 (most passes check nothing)
        """Check the module before the pass; raise if the pass does not apply."""

    def ensures(self, graph_module: GraphModule) -> None:  # noqa: B027
        """Check the module after the pass."""
