"""A linear layer with batch normalisation, whose weight is fake-quantized in training as in `conv_fused`."""

from __future__ import annotations

from typing import Any

from rushlight.ao.nn import intrinsic
from rushlight.ao.nn.intrinsic import _FusedModule
from rushlight.ao.nn.intrinsic.qat.modules.batch_statistics import BatchStatistics
from rushlight.ao.nn.qat.modules.weights import check_float_module, check_qconfig
from rushlight.core.tensor import Tensor
from rushlight.nn import BatchNorm1d, Linear, init
from rushlight.nn import functional as F
from rushlight.nn.modules.module import Module
from rushlight.nn.utils.fusion import fuse_linear_bn_weights
from rushlight.ops.packet import namespaces

__all__ = ["LinearBn1d"]

aten = namespaces.namespace("aten")


class LinearBn1d(BatchStatistics, Linear, _FusedModule):
    """`bn(linear(x))`."""

    def __init__(
        self, in_features: int, out_features: int, bias: bool = True, eps: float = 1e-5, momentum: float = 0.1,
        freeze_bn: bool = False, qconfig: Any = None,
    ) -> None:  # fmt: skip
        Linear.__init__(self, in_features, out_features, bias)
        self.qconfig = check_qconfig(qconfig)
        self.freeze_bn = freeze_bn if self.training else True
        self.bn = BatchNorm1d(out_features, eps, momentum, True, True)
        self.weight_fake_quant = qconfig.weight()
        self.reset_bn_parameters()
        if self.training and not freeze_bn:
            self.update_bn_stats()
        else:
            self.freeze_bn_stats()

    def reset_bn_parameters(self) -> None:
        """Uniform scales and no offsets."""
        self.bn.reset_running_stats()
        init.uniform_(self.bn.weight)
        init.zeros_(self.bn.bias)

    def forward(self, input: Tensor) -> Tensor:
        factor = self.bn.weight / aten.sqrt.default(self.bn.running_var + self.bn.eps)
        weight = self.weight_fake_quant(self.weight * factor.reshape([-1, 1]))
        zeros = aten.zeros.default([self.out_features], device=weight.device)
        result = F.linear(input, weight, zeros) / factor
        return self.bn(result if self.bias is None else result + self.bias)

    @classmethod
    def from_float(cls, mod: Module, use_precomputed_fake_quant: bool = False) -> LinearBn1d:
        """Create the layer from a fused float one with a qconfig, over the same parameters."""
        check_float_module(cls, mod, intrinsic.LinearBn1d)
        linear, bn = mod[0], mod[1]
        made = cls(linear.in_features, linear.out_features, linear.bias is not None, bn.eps, bn.momentum, False, mod.qconfig)
        made.weight, made.bias = linear.weight, linear.bias
        for name in ("weight", "bias", "running_mean", "running_var", "num_batches_tracked"):
            setattr(made.bn, name, getattr(bn, name))
        return made

    def to_float(self) -> Module:
        """Return a float layer with batch normalisation folded into it."""
        made, bn = Linear(self.in_features, self.out_features), self.bn
        made.weight, made.bias = fuse_linear_bn_weights(
            self.weight, self.bias, bn.running_mean, bn.running_var, bn.eps, bn.weight, bn.bias
        )
        return made
