"""FakeTensorProp: runs a graph on fake tensors and notes each value, without data, in `meta["val"]`."""

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
    """`FakeTensorProp(gm).propagate(*inputs)` gives nodes `meta["val"]`, and `meta["tensor_meta"]` for tensors.

    `mode` is the FakeTensorMode to run under; a new one where there is none.
    """

    def __init__(self, module: GraphModule, mode: FakeTensorMode | None = None) -> None:
        super().__init__(module)
        self._mode = FakeTensorMode() if mode is None else mode

    def run_node(self, n: Node) -> Any:
        """Run one node and note its value."""
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
        """As `propagate`, for inputs that are fake already."""
        with self._mode:
            return super().run(*args)
