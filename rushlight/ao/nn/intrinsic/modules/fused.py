"""Fused layers: sequences of float layers that are quantized as one, and compute the same."""

from __future__ import annotations

from rushlight.core.tensor import Tensor
from rushlight.nn import (
    BatchNorm1d,
    BatchNorm2d,
    BatchNorm3d,
    Conv1d,
    Conv2d,
    Conv3d,
    LeakyReLU,
    Linear,
    Module,
    ReLU,
    Sequential,
    Tanh,
)
from rushlight.nn.utils.parametrize import type_before_parametrizations

__all__ = [
    "BNReLU2d", "BNReLU3d", "ConvAdd2d", "ConvAddReLU2d", "ConvBn1d", "ConvBn2d", "ConvBn3d", "ConvBnReLU1d", "ConvBnReLU2d",
    "ConvBnReLU3d", "ConvReLU1d", "ConvReLU2d", "ConvReLU3d", "LinearBn1d", "LinearLeakyReLU", "LinearReLU", "LinearTanh",
]  # fmt: skip


class _FusedModule(Sequential):
    """A sequence that is observed and quantized as one layer. `_parts` are the classes of its layers."""

    _parts: tuple[type, ...]


def _require(layers: tuple[Module, ...], kinds: tuple[type, ...]) -> None:
    given = tuple(map(type_before_parametrizations, layers))
    if given != kinds:
        names = [" and ".join(each.__name__ for each in several) for several in (kinds, given)]
        raise AssertionError(f"Incorrect types for input modules: expected {names[0]}, got {names[1]}")


class _ConvReLU(_FusedModule):
    def __init__(self, conv: Module, relu: Module) -> None:
        _require((conv, relu), self._parts)
        super().__init__(conv, relu)


class _ConvBn(_FusedModule):
    def __init__(self, conv: Module, bn: Module) -> None:
        _require((conv, bn), self._parts)
        super().__init__(conv, bn)


class _ConvBnReLU(_FusedModule):
    def __init__(self, conv: Module, bn: Module, relu: Module) -> None:
        _require((conv, bn, relu), self._parts)
        super().__init__(conv, bn, relu)


class _BNReLU(_FusedModule):
    def __init__(self, batch_norm: Module, relu: Module) -> None:
        _require((batch_norm, relu), self._parts)
        super().__init__(batch_norm, relu)


class ConvReLU1d(_ConvReLU):
    """Conv1d, ReLU."""

    _parts = (Conv1d, ReLU)


class ConvReLU2d(_ConvReLU):
    """Conv2d, ReLU."""

    _parts = (Conv2d, ReLU)


class ConvReLU3d(_ConvReLU):
    """Conv3d, ReLU."""

    _parts = (Conv3d, ReLU)


class ConvBn1d(_ConvBn):
    """Conv1d, BatchNorm1d."""

    _parts = (Conv1d, BatchNorm1d)


class ConvBn2d(_ConvBn):
    """Conv2d, BatchNorm2d."""

    _parts = (Conv2d, BatchNorm2d)


class ConvBn3d(_ConvBn):
    """Conv3d, BatchNorm3d."""

    _parts = (Conv3d, BatchNorm3d)


class ConvBnReLU1d(_ConvBnReLU):
    """Conv1d, BatchNorm1d, ReLU."""

    _parts = (Conv1d, BatchNorm1d, ReLU)


class ConvBnReLU2d(_ConvBnReLU):
    """Conv2d, BatchNorm2d, ReLU."""

    _parts = (Conv2d, BatchNorm2d, ReLU)


class ConvBnReLU3d(_ConvBnReLU):
    """Conv3d, BatchNorm3d, ReLU."""

    _parts = (Conv3d, BatchNorm3d, ReLU)


class BNReLU2d(_BNReLU):
    """BatchNorm2d, ReLU."""

    _parts = (BatchNorm2d, ReLU)


class BNReLU3d(_BNReLU):
    """BatchNorm3d, ReLU."""

    _parts = (BatchNorm3d, ReLU)


class LinearReLU(_FusedModule):
    """Linear, ReLU."""

    def __init__(self, linear: Module, relu: Module) -> None:
        _require((linear, relu), (Linear, ReLU))
        super().__init__(linear, relu)


class LinearBn1d(_FusedModule):
    """Linear, BatchNorm1d."""

    def __init__(self, linear: Module, bn: Module) -> None:
        _require((linear, bn), (Linear, BatchNorm1d))
        super().__init__(linear, bn)


class LinearLeakyReLU(_FusedModule):
    """Linear, LeakyReLU."""

    def __init__(self, linear: Module, leaky_relu: Module) -> None:
        _require((linear, leaky_relu), (Linear, LeakyReLU))
        super().__init__(linear, leaky_relu)


class LinearTanh(_FusedModule):
    """Linear, Tanh."""

    def __init__(self, linear: Module, tanh: Module) -> None:
        _require((linear, tanh), (Linear, Tanh))
        super().__init__(linear, tanh)


class ConvAdd2d(_FusedModule):
    """Conv2d, and a function that adds its result to another tensor."""

    def __init__(self, conv: Module, add: object) -> None:
        super().__init__(conv)
        self.add = add

    def forward(self, x1: Tensor, x2: Tensor) -> Tensor:
        """Return `add(conv(x1), x2)`."""
        return self.add(self[0](x1), x2)


class ConvAddReLU2d(_FusedModule):
    """Conv2d, a function that adds its result to another tensor, and ReLU."""

    def __init__(self, conv: Module, add: object, relu: Module) -> None:
        super().__init__(conv)
        self.add, self.relu = add, relu

    def forward(self, x1: Tensor, x2: Tensor) -> Tensor:
        """Return `relu(add(conv(x1), x2))`."""
        return self.relu(self.add(self[0](x1), x2))
