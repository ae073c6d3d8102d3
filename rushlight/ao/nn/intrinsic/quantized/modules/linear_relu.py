"""A quantized linear layer with ReLU."""

from __future__ import annotations

from rushlight.ao.nn import intrinsic
from rushlight.ao.nn.quantized.modules import linear
from rushlight.core.dtype import dtype, qint8
from rushlight.core.tensor import Tensor
from rushlight.nn.modules.module import Module
from rushlight.ops.packet import namespaces

__all__ = ["LinearReLU"]

quantized = namespaces.namespace("quantized")


class LinearReLU(linear.Linear):
    """`relu(linear(x))`."""

    _FLOAT_MODULE = (intrinsic.LinearReLU,)

    def __init__(self, in_features: int, out_features: int, bias: bool = True, dtype: dtype = qint8) -> None:
        super().__init__(in_features, out_features, bias, dtype)

    def forward(self, x: Tensor) -> Tensor:
        return quantized.linear_relu(x, self._packed_params._packed_params, self.scale, self.zero_point)

    def _get_name(self) -> str:
        return "QuantizedLinearReLU"

    @classmethod
    def from_reference(cls, ref_linear_relu: Module, output_scale: float, output_zero_point: int) -> LinearReLU:
        """Create the layer from a reference module, which computes in floats with a quantized weight."""
        return super().from_reference(ref_linear_relu[0], output_scale, output_zero_point)
