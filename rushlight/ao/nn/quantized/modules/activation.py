"""Activations on quantized tensors, with a scale and zero point for the results."""

from __future__ import annotations

from typing import Any

from rushlight.core.dtype import quint8
from rushlight.core.tensor import Tensor
from rushlight.nn import modules as nn
from rushlight.nn.modules.module import Module
from rushlight.ops.construct import tensor
from rushlight.ops.packet import namespaces
from rushlight.quantized.functions import quantize_per_tensor

__all__ = ["ELU", "Hardswish", "LeakyReLU", "PReLU", "ReLU6", "Sigmoid", "Softmax"]

aten, quantized = namespaces.namespace("aten"), namespaces.namespace("quantized")


def _scale_of(mod: Module) -> tuple[float, int]:
    """Return the scale and the zero point from the observer of a module's results."""
    scale, zero_point = mod.activation_post_process.calculate_qparams()
    return float(scale), int(zero_point)


def register_scale(module: Module, scale: float, zero_point: int, device: Any, dtype: Any) -> None:
    """Register a scale and a zero point as buffers, as in torch's state dicts."""
    module.register_buffer("scale", tensor(scale, device=device, dtype=dtype))
    module.register_buffer("zero_point", tensor(zero_point, device=device, dtype=dtype))


class ReLU6(nn.ReLU):
    """min(max(x, 0), 6), with the scale of its input."""

    def __init__(self, inplace: bool = False) -> None:
        super().__init__(inplace)

    def forward(self, input):
        return quantized.relu6(input, self.inplace)

    def _get_name(self) -> str:
        return "QuantizedReLU6"

    @staticmethod
    def from_float(mod: Module, use_precomputed_fake_quant: bool = False) -> ReLU6:
        """Create the layer from a float one."""
        return ReLU6(mod.inplace)


class Hardswish(nn.Hardswish):
    """`hardswish`; scale and zero point of the results are buffers."""

    def __init__(self, scale: float, zero_point: int, device: Any = None, dtype: Any = None) -> None:
        super().__init__()
        register_scale(self, scale, zero_point, device, dtype)

    def forward(self, input):
        return quantized.hardswish(input, float(self.scale), int(self.zero_point))

    def _get_name(self) -> str:
        return "QuantizedHardswish"

    @classmethod
    def from_float(cls, mod: Module, use_precomputed_fake_quant: bool = False) -> Hardswish:
        """Create the layer from a float one with an observer."""
        return cls(*_scale_of(mod))

    @classmethod
    def from_reference(cls, mod: Module, scale: float, zero_point: int) -> Hardswish:
        """Create the layer from a float one and a scale."""
        return cls(float(scale), int(zero_point))


class ELU(nn.ELU):
    """`elu`."""

    def __init__(self, scale: float, zero_point: int, alpha: float = 1.0) -> None:
        super().__init__(alpha)
        self.scale = scale
        self.zero_point = zero_point

    def forward(self, input):
        return quantized.elu(input, self.scale, self.zero_point, self.alpha)

    def _get_name(self) -> str:
        return "QuantizedELU"

    @classmethod
    def from_float(cls, mod: Module, use_precomputed_fake_quant: bool = False) -> ELU:
        """Create the layer from a float one with an observer."""
        return cls(*_scale_of(mod), mod.alpha)

    @classmethod
    def from_reference(cls, mod: Module, scale: float, zero_point: int) -> ELU:
        """Create the layer from a float one and a scale."""
        return cls(float(scale), int(zero_point), mod.alpha)


class LeakyReLU(nn.LeakyReLU):
    """`leaky_relu`; scale and zero point of the results are buffers."""

    def __init__(
        self, scale: float, zero_point: int, negative_slope: float = 0.01, inplace: bool = False, device: Any = None,
        dtype: Any = None,
    ) -> None:  # fmt: skip
        super().__init__(negative_slope, inplace)
        register_scale(self, scale, zero_point, device, dtype)

    def forward(self, input):
        return quantized.leaky_relu(input, self.negative_slope, self.inplace, float(self.scale), int(self.zero_point))

    def _get_name(self) -> str:
        return "QuantizedLeakyReLU"

    @classmethod
    def from_float(cls, mod: Module, use_precomputed_fake_quant: bool = False) -> LeakyReLU:
        """Create the layer from a float one with an observer."""
        return cls(*_scale_of(mod), mod.negative_slope, mod.inplace)

    @classmethod
    def from_reference(cls, mod: Module, scale: float, zero_point: int) -> LeakyReLU:
        """Create the layer from a float one and a scale."""
        return cls(float(scale), int(zero_point), mod.negative_slope, mod.inplace)


class Sigmoid(nn.Sigmoid):
    """`sigmoid`."""

    def __init__(self, output_scale: float, output_zero_point: int) -> None:
        super().__init__()
        self.output_scale = output_scale
        self.output_zero_point = output_zero_point

    def forward(self, input):
        return quantized.sigmoid(input, self.output_scale, self.output_zero_point)

    @classmethod
    def from_float(cls, mod: Module, use_precomputed_fake_quant: bool = False) -> Sigmoid:
        """Create the layer from a float one with an observer."""
        return cls(*_scale_of(mod))


class Softmax(nn.Softmax):
    """`softmax`."""

    def __init__(self, dim: int | None = None, scale: float = 1.0, zero_point: int = 0) -> None:
        super().__init__(dim)
        self.scale = scale
        self.zero_point = zero_point

    def forward(self, input):
        dim = self.dim
        if dim is None:
            dim = 0 if input.dim() in (0, 1, 3) else 1
        return quantized.softmax(input, dim, self.scale, self.zero_point)

    def _get_name(self) -> str:
        return "QuantizedSoftmax"

    @classmethod
    def from_float(cls, mod: Module, use_precomputed_fake_quant: bool = False) -> Softmax:
        """Create the layer from a float one with an observer."""
        return cls(mod.dim, *_scale_of(mod))

    @classmethod
    def from_reference(cls, mod: Module, scale: float, zero_point: int) -> Softmax:
        """Create the layer from a float one and a scale."""
        return cls(mod.dim, float(scale), int(zero_point))


class PReLU(Module):
    """`prelu` with a quantized slope, quint8."""

    def __init__(self, output_scale: float, output_zero_point: int, num_parameters: int = 1) -> None:
        super().__init__()
        self.num_parameters = num_parameters
        self.scale = output_scale
        self.zero_point = output_zero_point
        self.set_weight(quantize_per_tensor(aten.randn.default([num_parameters]), 1.0, 0, quint8))

    def set_weight(self, w: Tensor) -> None:
        """Set a quantized slope."""
        self.weight = w

    def forward(self, input: Tensor) -> Tensor:
        return quantized.prelu(input, self.weight, self.scale, self.zero_point)

    def _get_name(self) -> str:
        return "QuantizedPReLU"

    @classmethod
    def from_float(cls, mod: Module, use_precomputed_fake_quant: bool = False) -> PReLU:
        """Create the layer from a float one with an observer."""
        return cls.from_reference(mod, *_scale_of(mod))

    @classmethod
    def from_reference(cls, mod: Module, scale: float, zero_point: int) -> PReLU:
        """Create the layer from a float one and a scale."""
        made, slope, observer = cls(float(scale), int(zero_point), mod.num_parameters), mod.weight.float(), mod.qconfig.weight()
        observer(slope)
        found, offset = observer.calculate_qparams()
        made.set_weight(quantize_per_tensor(slope, float(found), int(offset), quint8))
        return made
