"""Backends that count or keep what they are given, for tests."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from rushlight.compiler.backends import Backend, make_backend
from rushlight.compiler.logs import StageLog
from rushlight.compiler.settings import configured, from_environment
from rushlight.core.dtype import bool_, float32
from rushlight.core.dtype import dtype as Dtype
from rushlight.core.tensor import Tensor
from rushlight.fx.graph_module import GraphModule
from rushlight.ops.packet import namespaces

aten = namespaces.namespace("aten")


def rand_strided(
    size: Sequence[int], stride: Sequence[int], dtype: Dtype = float32, device: str = "cpu", extra_size: int = 0
) -> Tensor:
    """Return random values that lie in memory so, with `extra_size` elements behind them: normal ones, or integers below 16."""
    length = 1 + sum((number - 1) * step for number, step in zip(size, stride, strict=True)) if all(size) else 0
    if dtype.is_floating_point or dtype.is_complex:
        memory = aten.randn.default([length + extra_size], dtype=dtype, device=device)
    else:
        memory = aten.randint.default(2 if dtype is bool_ else 16, [length + extra_size], dtype=dtype, device=device)
    return memory.as_strided(size, stride)


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
