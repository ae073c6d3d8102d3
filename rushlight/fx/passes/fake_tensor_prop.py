"""FakeTensorProp: run a graph on fake tensors and record each value in `meta["val"]`."""

from __future__ import annotations

from typing import Any

from rushlight.core.symbolic import SymInt
from rushlight.core.tensor import Tensor
from rushlight.fx.fake_tensor import FakeTensorMode
from rushlight.fx.graph_module import GraphModule
from rushlight.fx.immutable_collections import map_aggregate
from rushlight.fx.interpreter import Interpreter
from rushlight.fx.node import Node
from rushlight.fx.passes.shape_prop import _extract_tensor_metadata

__all__ = ["FakeTensorProp"]


class FakeTensorProp(Interpreter):
    """`FakeTensorProp(gm).propagate(*inputs)` sets `meta["val"]` of all nodes, and `meta["tensor_meta"]` for tensors.

    `mode` is the FakeTensorMode to run under; the default is a new one.
    """

    def __init__(self, module: GraphModule, mode: FakeTensorMode | None = None) -> None:
        super().__init__(module)
        self._mode = FakeTensorMode() if mode is None else mode

    def run_node(self, n: Node) -> Any:
        """Run one node and record its value."""
        result = super().run_node(n)
        known = Tensor | SymInt | int | float | bool
        n.meta["val"] = map_aggregate(result, lambda value: value if isinstance(value, known) else None)
        if isinstance(result, Tensor):
            n.meta["tensor_meta"] = _extract_tensor_metadata(result)
        return result

    def propagate(self, *args: Any) -> Any:
        """Run the graph on fakes of these inputs and return its result, which is fake."""
        return self.propagate_dont_convert_inputs(
            *[self._mode.from_tensor(value) if isinstance(value, Tensor) else value for value in args]
        )

    def propagate_dont_convert_inputs(self, *args: Any) -> Any:
        """Like `propagate`, for inputs that are fake already."""
        with self._mode:
            return super().run(*args)
