"""Workloads of one or a few operators: call overhead, memory-bound passes, a matrix product."""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType

import numpy as np

from benchmarks.workload import Arrays, Workload


class Operators(Workload):
    """A function of arrays named by `shapes`, standard normal, float32; spelled once for arrays, once for torch."""

    def __init__(
        self,
        name: str,
        title: str,
        shapes: dict[str, tuple[int, ...]],
        array: Callable[[ModuleType], Callable],
        torch: Callable[[ModuleType], Callable],
        tolerance: float = 1e-5,
    ) -> None:
        super().__init__(name, title, tolerance)
        self.shapes = shapes
        self.array = array
        self.torch = torch

    def inputs(self) -> Arrays:
        generator = np.random.default_rng(0)
        return {name: generator.standard_normal(shape, np.float32) for name, shape in self.shapes.items()}

    def array_function(self, xp: ModuleType, weights: Arrays) -> Callable:
        return self.array(xp)

    def torch_function(self, torch: ModuleType, weights: Arrays) -> Callable:
        return self.torch(torch)


def array_softmax(xp: ModuleType) -> Callable:
    def softmax(x: np.ndarray) -> np.ndarray:
        powers = xp.exp(x - x.max(-1, keepdims=True))
        return powers / powers.sum(-1, keepdims=True)

    return softmax


def array_layer_norm(xp: ModuleType) -> Callable:
    def layer_norm(x: np.ndarray, weight: np.ndarray, bias: np.ndarray) -> np.ndarray:
        centered = x - x.mean(-1, keepdims=True)
        return centered / xp.sqrt((centered * centered).mean(-1, keepdims=True) + 1e-5) * weight + bias

    return layer_norm


def torch_layer_norm(torch: ModuleType) -> Callable:
    return lambda x, weight, bias: torch.nn.functional.layer_norm(x, (x.shape[-1],), weight, bias)


SMALL_WORKLOADS = [
    Operators(
        "add",
        "a + b, 8 elements",
        {"a": (8,), "b": (8,)},
        lambda xp: lambda a, b: a + b,
        lambda torch: lambda a, b: a + b,
    ),
    Operators(
        "sincos",
        "sin(x) + cos(y) * x, 8 elements",
        {"x": (8,), "y": (8,)},
        lambda xp: lambda x, y: xp.sin(x) + xp.cos(y) * x,
        lambda torch: lambda x, y: torch.sin(x) + torch.cos(y) * x,
    ),
    Operators(
        "chain",
        "chain of six pointwise operators, 64 MB",
        {"x": (4096, 4096)},
        lambda xp: lambda x: xp.maximum(x * 0.5 + 1.0, 0.0) * x - xp.abs(x),
        lambda torch: lambda x: torch.relu(x * 0.5 + 1.0) * x - torch.abs(x),
    ),
    Operators(
        "softmax",
        "softmax, 4096 x 4096",
        {"x": (4096, 4096)},
        array_softmax,
        lambda torch: lambda x: torch.softmax(x, -1),
    ),
    Operators(
        "layer_norm",
        "layer_norm, 4096 x 4096",
        {"x": (4096, 4096), "weight": (4096,), "bias": (4096,)},
        array_layer_norm,
        torch_layer_norm,
        tolerance=1e-4,
    ),
    Operators(
        "matmul",
        "matrix product, 1024 x 1024 x 1024",
        {"a": (1024, 1024), "b": (1024, 1024)},
        lambda xp: lambda a, b: a @ b,
        lambda torch: lambda a, b: a @ b,
        tolerance=1e-3,
    ),
]
