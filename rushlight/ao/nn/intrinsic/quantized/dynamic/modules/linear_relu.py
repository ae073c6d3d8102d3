"""A linear layer of float tensors with ReLU and a quantized weight."""

from __future__ import annotations

from rushlight.ao.nn import intrinsic
from rushlight.ao.nn.quantized.dynamic.modules import linear
from rushlight.core.dtype import dtype, float16, qint8
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
        if self._packed_params.dtype == qint8:
            Y = quantized.linear_relu_dynamic(x, self._packed_params._packed_params, True)  # noqa: N806
        elif self._packed_params.dtype == float16:
            Y = quantized.linear_relu_dynamic_fp16(x, self._packed_params._packed_params)  # noqa: N806
        else:
            raise RuntimeError("Unsupported dtype on dynamic quantized linear relu!")
        return Y.to(x.dtype)

    def _get_name(self) -> str:
        return "DynamicQuantizedLinearReLU"

    @classmethod
    def from_reference(cls, ref_qlinear_relu: Module) -> LinearReLU:
        """Create the layer from a reference module, which computes in floats with a quantized weight."""
        return super().from_reference(ref_qlinear_relu[0])
