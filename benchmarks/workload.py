"""What a workload is: inputs, weights, and the same computation spelled for each kind of contender."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from types import ModuleType

import numpy as np

Arrays = dict[str, np.ndarray]


class Workload:
    """One computation, from fixed inputs to one array. Subclass it and add an instance to `workloads.WORKLOADS`.

    name: for the command line; title: for the tables.
    tolerance: the largest absolute difference from the float64 reference that counts as agreement.
    trains: whether calls ask for gradients.
    """

    trains = False

    def __init__(self, name: str, title: str, tolerance: float) -> None:
        self.name = name
        self.title = title
        self.tolerance = tolerance

    def inputs(self) -> Arrays:
        """The arguments by name, in order; the same at every call."""
        raise NotImplementedError

    def weights(self) -> Arrays:
        """The state dict, for workloads that have one."""
        return {}

    def array_function(self, xp: ModuleType, weights: Arrays) -> Callable:
        """The computation in NumPy's vocabulary. With NumPy in float64 it is the reference; JAX compiles it."""
        raise NotImplementedError

    def torch_function(self, torch: ModuleType, weights: Arrays) -> Callable:
        """The computation in torch's vocabulary, for PyTorch and Rushlight alike."""
        raise NotImplementedError

    def jax_function(self, jax: ModuleType, weights: Arrays) -> Callable | None:
        """The computation as JAX's users write it, compiled; None where it is `array_function` of weights and inputs."""
        return None

    def collect(self, result: np.ndarray) -> np.ndarray:
        """What is compared, of the result of the last call. Its time does not count."""
        return result

    def onnx_model(self, weights: Arrays) -> bytes | None:
        """The computation as an ONNX model, or None where there is none."""
        return None

    def reference(self, inputs: Arrays, weights: Arrays) -> np.ndarray:
        """The result in float64."""
        function = self.array_function(np, {name: in_float64(array) for name, array in weights.items()})
        return function(*map(in_float64, inputs.values()))


def in_float64(array: np.ndarray) -> np.ndarray:
    """Floating point widened; integers as they are."""
    return array.astype(np.float64) if array.dtype.kind == "f" else array


def error_function(xp: ModuleType) -> Callable:
    """erf for NumPy or jax.numpy; neither has it in its main namespace."""
    if xp is np:
        return np.vectorize(math.erf, otypes=[np.float64])
    import jax

    return jax.scipy.special.erf


def choose(available: Iterable, names: list[str], kind: str) -> list:
    """The items so named. Raises ValueError for an unknown name."""
    items = {item.name: item for item in available}
    unknown = [name for name in names if name not in items]
    if unknown:
        raise ValueError(f"unknown {kind}: {', '.join(unknown)}; there are: {', '.join(items)}")
    return [items[name] for name in names]
