"""Backends that count or keep what they are given, for tests."""

from __future__ import annotations

from collections.abc import Callable

from rushlight.compiler.backends import Backend, make_backend
from rushlight.compiler.logs import StageLog
from rushlight.compiler.settings import configured, from_environment
from rushlight.core.tensor import Tensor
from rushlight.fx.graph_module import GraphModule


class CompileCounter:
    """A backend that runs graphs as captured: `frame_count` graphs so far, with `op_count` calls in them."""

    def __init__(self) -> None:
        self.clear()

    def __call__(self, gm: GraphModule, example_inputs: list[Tensor]) -> Callable:
        self.frame_count += 1
        self.op_count += sum(node.op.startswith("call_") for node in gm.graph.nodes)
        return gm.forward

    def clear(self) -> None:
        """Count anew."""
        self.frame_count = self.op_count = 0


class CompileCounterWithBackend(CompileCounter):
    """The same, where another backend, of a name that `compile` knows, runs the graphs; `graphs` are those so far."""

    def __init__(self, backend: str | Backend) -> None:
        super().__init__()
        self.backend = backend

    def __call__(self, gm: GraphModule, example_inputs: list[Tensor]) -> Callable:
        super().__call__(gm, example_inputs)
        self.graphs.append(gm)
        settings = configured(from_environment())
        return make_backend(self.backend, settings, dict, StageLog(settings, "counted"))(gm, example_inputs)

    def clear(self) -> None:
        """Count anew."""
        super().clear()
        self.graphs: list[GraphModule] = []


class EagerAndRecordGraphs:
    """A backend that runs graphs as captured, and keeps them in `graphs`."""

    def __init__(self) -> None:
        self.graphs: list[GraphModule] = []

    def __call__(self, gm: GraphModule, example_inputs: list[Tensor]) -> Callable:
        self.graphs.append(gm)
        return gm.forward
