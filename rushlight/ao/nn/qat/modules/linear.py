"""A linear layer whose weight is fake-quantized in training."""

from __future__ import annotations

from typing import Any

from rushlight.ao.nn.intrinsic import LinearReLU
from rushlight.ao.nn.qat.modules.weights import check_float_module, check_qconfig, detached
from rushlight.core.tensor import Tensor
from rushlight.nn import Linear as FloatLinear
from rushlight.nn import functional as F
from rushlight.nn.modules.module import Module
from rushlight.nn.utils.parametrize import (
    is_parametrized,
    transfer_parametrizations_and_params,
    type_before_parametrizations,
)

__all__ = ["Linear"]


class Linear(FloatLinear):
    """`nn.Linear` whose weight `weight_fake_quant` rounds; `qconfig.weight` creates that module."""

    _FLOAT_MODULE: type = FloatLinear

    def __init__(
        self, in_features: int, out_features: int, bias: bool = True, qconfig: Any = None, device: Any = None, dtype: Any = None
    ) -> None:
        super().__init__(in_features, out_features, bias, device=device, dtype=dtype)
        self.qconfig = check_qconfig(qconfig)
        self.weight_fake_quant = qconfig.weight(factory_kwargs={"device": device, "dtype": dtype})

    def forward(self, input: Tensor) -> Tensor:
        return F.linear(input, self.weight_fake_quant(self.weight), self.bias)

    @classmethod
    def from_float(cls, mod: Module, use_precomputed_fake_quant: bool = False) -> Linear:
        """Create the layer from a float one with a qconfig, over the same parameters."""
        check_float_module(cls, mod, cls._FLOAT_MODULE)
        inner = mod[0] if type_before_parametrizations(mod) is LinearReLU else mod
        made = cls(inner.in_features, inner.out_features, bias=inner.bias is not None, qconfig=inner.qconfig)
        for name in ("weight", "bias"):
            if is_parametrized(inner, name):
                transfer_parametrizations_and_params(inner, made, name)
            else:
                setattr(made, name, getattr(inner, name))
        return made

    def to_float(self) -> Module:
        """Return a float layer over the same parameters."""
        made = FloatLinear(self.in_features, self.out_features, self.bias is not None)
        made.weight, made.bias = detached(self.weight), detached(self.bias)
        made.train(self.training)
        return made
