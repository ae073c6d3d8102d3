"""Stubs that mark where a model quantizes and dequantizes: the identity until the model is quantized."""

from __future__ import annotations

from typing import Any

from rushlight.core.tensor import Tensor
from rushlight.nn.modules.module import Module


class _Stub(Module):
    def __init__(self, qconfig: Any = None) -> None:
        super().__init__()
        if qconfig:
            self.qconfig = qconfig

    def forward(self, x: Tensor) -> Tensor:
        """Return `x` itself."""
        return x


class QuantStub(_Stub):
    """Marks where values are to be quantized."""


class DeQuantStub(_Stub):
    """Marks where values are to be dequantized."""


class QuantWrapper(Module):
    """`module` between a QuantStub and a DeQuantStub."""

    def __init__(self, module: Module) -> None:
        super().__init__()
        qconfig = getattr(module, "qconfig", None)
        self.quant, self.dequant = QuantStub(qconfig), DeQuantStub(qconfig)
        self.module = module
        self.train(module.training)

    def forward(self, X: Tensor) -> Tensor:  # noqa: N803  (torch's name)
        """Return the result of `module` for `X`."""
        return self.dequant(self.module(self.quant(X)))
