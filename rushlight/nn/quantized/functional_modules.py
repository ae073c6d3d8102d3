"""Operations as modules, so that an observer can watch their results."""

from __future__ import annotations

from collections.abc import Sequence

from rushlight.core.tensor import Tensor
from rushlight.nn.modules.linear import Identity
from rushlight.nn.modules.module import Module
from rushlight.ops.packet import namespaces

aten = namespaces.namespace("aten")


class FloatFunctional(Module):
    """Sums and products whose results pass `activation_post_process`, which does nothing until an observer takes its place."""

    def __init__(self) -> None:
        super().__init__()
        self.activation_post_process: Module = Identity()

    def forward(self, x: Tensor) -> Tensor:
        """RuntimeError: the methods are what is called."""
        raise RuntimeError("FloatFunctional is not intended to use the 'forward'. Please use the underlying operation")

    def add(self, x: Tensor, y: Tensor) -> Tensor:
        """`x + y`."""
        return self.activation_post_process(x + y)

    def add_scalar(self, x: Tensor, y: float) -> Tensor:
        """`x + y`; a sum with a number is not watched."""
        return x + y

    def mul(self, x: Tensor, y: Tensor) -> Tensor:
        """`x * y`."""
        return self.activation_post_process(x * y)

    def mul_scalar(self, x: Tensor, y: float) -> Tensor:
        """`x * y`; a product with a number is not watched."""
        return x * y

    def cat(self, x: Sequence[Tensor], dim: int = 0) -> Tensor:
        """Tensors one after the other."""
        return self.activation_post_process(aten.cat.default(x, dim))

    def add_relu(self, x: Tensor, y: Tensor) -> Tensor:
        """`relu(x + y)`."""
        return self.activation_post_process((x + y).relu())

    def matmul(self, x: Tensor, y: Tensor) -> Tensor:
        """`x @ y`."""
        return self.activation_post_process(x @ y)
