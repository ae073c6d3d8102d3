"""A linear layer and ReLU, whose weight is fake-quantized in training."""

from __future__ import annotations

from rushlight.ao.nn import intrinsic
from rushlight.ao.nn.intrinsic import _FusedModule
from rushlight.ao.nn.qat.modules import linear as qat
from rushlight.core.tensor import Tensor
from rushlight.nn import ReLU
from rushlight.nn import functional as F
from rushlight.nn.modules.module import Module

__all__ = ["LinearReLU"]


class LinearReLU(qat.Linear, _FusedModule):
    """Linear, ReLU."""

    _FLOAT_MODULE = intrinsic.LinearReLU

    def forward(self, input: Tensor) -> Tensor:
        return F.relu(F.linear(input, self.weight_fake_quant(self.weight), self.bias))

    def to_float(self) -> Module:
        """Return a float layer and a ReLU."""
        return intrinsic.LinearReLU(super().to_float(), ReLU())
