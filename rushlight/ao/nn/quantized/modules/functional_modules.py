"""Operations as modules, so that observers can see their results, and quantized modules can replace them."""

from __future__ import annotations

from typing import List  # noqa: UP035  (scripted)

from rushlight.ao.nn.quantized.modules.utils import load_scale, save_scale, set_scale
from rushlight.core.tensor import Tensor
from rushlight.nn.modules.linear import Identity
from rushlight.nn.modules.module import Module
from rushlight.ops.packet import namespaces

__all__ = ["FXFloatFunctional", "FloatFunctional", "QFunctional"]

aten, quantized = namespaces.namespace("aten"), namespaces.namespace("quantized")


class FXFloatFunctional(Module):
    """Sums, products and concatenation as methods of a module."""

    def forward(self, x):
        raise RuntimeError("FloatFunctional is not intended to use the 'forward'. Please use the underlying operation")

    def add(self, x: Tensor, y: Tensor) -> Tensor:
        """Return `x + y`."""
        return x + y

    def add_scalar(self, x: Tensor, y: float) -> Tensor:
        """Return `x + y`."""
        return x + y

    def mul(self, x: Tensor, y: Tensor) -> Tensor:
        """Return `x * y`."""
        return x * y

    def mul_scalar(self, x: Tensor, y: float) -> Tensor:
        """Return `x * y`."""
        return x * y

    def cat(self, x: List[Tensor], dim: int = 0) -> Tensor:  # noqa: UP006
        """Concatenate tensors."""
        return aten.cat(x, dim)

    def add_relu(self, x: Tensor, y: Tensor) -> Tensor:
        """Return `relu(x + y)`."""
        return (x + y).relu()

    def matmul(self, x: Tensor, y: Tensor) -> Tensor:
        """Return `x @ y`."""
        return x @ y


class FloatFunctional(Module):
    """Sums and products whose results go through `activation_post_process`, the identity until it is replaced by an
    observer."""

    def __init__(self) -> None:
        super().__init__()
        self.activation_post_process = Identity()

    def forward(self, x):
        raise RuntimeError("FloatFunctional is not intended to use the 'forward'. Please use the underlying operation")

    def add(self, x: Tensor, y: Tensor) -> Tensor:
        """Return `x + y`."""
        return self.activation_post_process(x + y)

    def add_scalar(self, x: Tensor, y: float) -> Tensor:
        """Return `x + y`; sums with a number are not observed."""
        return x + y

    def mul(self, x: Tensor, y: Tensor) -> Tensor:
        """Return `x * y`."""
        return self.activation_post_process(x * y)

    def mul_scalar(self, x: Tensor, y: float) -> Tensor:
        """Return `x * y`; products with a number are not observed."""
        return x * y

    def cat(self, x: List[Tensor], dim: int = 0) -> Tensor:  # noqa: UP006
        """Concatenate tensors."""
        return self.activation_post_process(aten.cat(x, dim))

    def add_relu(self, x: Tensor, y: Tensor) -> Tensor:
        """Return `relu(x + y)`."""
        return self.activation_post_process((x + y).relu())

    def matmul(self, x: Tensor, y: Tensor) -> Tensor:
        """Return `x @ y`."""
        return self.activation_post_process(x @ y)


class QFunctional(Module):
    """The same operations on quantized tensors; `scale` and `zero_point` are those of the results."""

    def __init__(self) -> None:
        super().__init__()
        self.scale = 1.0
        self.zero_point = 0
        self.activation_post_process = Identity()

    def _save_to_state_dict(self, destination, prefix, keep_vars) -> None:
        super()._save_to_state_dict(destination, prefix, keep_vars)
        save_scale(self, destination, prefix)

    def _load_from_state_dict(
        self, state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs
    ) -> None:
        load_scale(self, state_dict, prefix, missing_keys)
        super()._load_from_state_dict(state_dict, prefix, local_metadata, False, missing_keys, unexpected_keys, error_msgs)

    def _get_name(self) -> str:
        return "QFunctional"

    def extra_repr(self) -> str:
        return f"scale={self.scale}, zero_point={self.zero_point}"

    def forward(self, x):
        raise RuntimeError("Functional is not intended to use the 'forward'. Please use the underlying operation")

    def add(self, x: Tensor, y: Tensor) -> Tensor:
        """Return `x + y`."""
        return self.activation_post_process(quantized.add(x, y, self.scale, self.zero_point))

    def add_scalar(self, x: Tensor, y: float) -> Tensor:
        """Return `x + y`, with its own scale."""
        return quantized.add_scalar(x, y)

    def mul(self, x: Tensor, y: Tensor) -> Tensor:
        """Return `x * y`."""
        return self.activation_post_process(quantized.mul(x, y, self.scale, self.zero_point))

    def mul_scalar(self, x: Tensor, y: float) -> Tensor:
        """Return `x * y`, with its own scale."""
        return quantized.mul_scalar(x, y)

    def cat(self, x: List[Tensor], dim: int = 0) -> Tensor:  # noqa: UP006
        """Concatenate tensors."""
        return self.activation_post_process(quantized.cat(x, dim, self.scale, self.zero_point))

    def add_relu(self, x: Tensor, y: Tensor) -> Tensor:
        """Return `relu(x + y)`."""
        return self.activation_post_process(quantized.add_relu(x, y, self.scale, self.zero_point))

    def matmul(self, x: Tensor, y: Tensor) -> Tensor:
        """Return `x @ y`."""
        return quantized.matmul(x, y, self.scale, self.zero_point)

    @classmethod
    def from_float(cls, mod: Module, use_precomputed_fake_quant: bool = False) -> QFunctional:
        """Create the module from a FloatFunctional with an observer."""
        if type(mod) is not FloatFunctional:
            raise AssertionError(f"QFunctional.from_float expects an instance of FloatFunctional, got {type(mod).__name__}")
        return set_scale(cls(), mod.activation_post_process)
