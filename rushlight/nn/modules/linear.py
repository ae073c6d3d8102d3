"""Linear layers."""

from __future__ import annotations

import math
from typing import Any

from rushlight.core.lazy_module import lazy_names
from rushlight.core.tensor import Tensor
from rushlight.nn import functional as F
from rushlight.nn import init
from rushlight.nn.creation import new_parameter
from rushlight.nn.modules.module import Module


class Identity(Module):
    """Returns its input; takes any arguments.

    Args:
        *args (Any): ignored.
        **kwargs (Any): ignored.

    Example:
        >>> torch.nn.Identity()(torch.tensor([-1.0, 2.0]))
        tensor([-1.,  2.])
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__()

    def forward(self, input: Tensor) -> Tensor:
        return input


class Linear(Module):
    """(..., in_features) to (..., out_features): input @ weight^T + bias.

    Args:
        in_features (int): the features of the input.
        out_features (int): the features of the result.
        bias (bool): whether the layer has a learned bias.
        device: the device of the parameters.
        dtype: the dtype of the parameters.

    Example:
        >>> torch.nn.Linear(3, 2)(torch.ones(4, 3)).shape
        torch.Size([4, 2])
    """

    def __init__(self, in_features: int, out_features: int, bias: bool = True, device=None, dtype=None) -> None:
        super().__init__()
        self.in_features = in_features
        self.out_features = out_features
        self.weight = new_parameter([out_features, in_features], device, dtype)
        self.register_parameter("bias", new_parameter([out_features], device, dtype) if bias else None)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Uniform numbers within 1 / sqrt(in_features)."""
        init.kaiming_uniform_(self.weight, a=math.sqrt(5))
        if self.bias is not None:
            bound = 1 / math.sqrt(self.in_features) if self.in_features > 0 else 0
            init.uniform_(self.bias, -bound, bound)

    def forward(self, input: Tensor) -> Tensor:
        return F.linear(input, self.weight, self.bias)

    def extra_repr(self) -> str:
        return f"in_features={self.in_features}, out_features={self.out_features}, bias={self.bias is not None}"


class NonDynamicallyQuantizableLinear(Linear):
    """The Linear inside MultiheadAttention; printed models show this class name."""


class Bilinear(Module):
    """(..., in1_features) and (..., in2_features) to (..., out_features): input1 @ weight[k] @ input2 + bias[k].

    Args:
        in1_features (int): the features of the first input.
        in2_features (int): the features of the second input.
        out_features (int): the features of the result.
        bias (bool): whether the layer has a learned bias.
        device: the device of the parameters.
        dtype: the dtype of the parameters.

    Example:
        >>> torch.nn.Bilinear(2, 3, 4)(torch.ones(1, 2), torch.ones(1, 3)).shape
        torch.Size([1, 4])
    """

    def __init__(
        self, in1_features: int, in2_features: int, out_features: int, bias: bool = True, device=None, dtype=None
    ) -> None:
        super().__init__()
        if in1_features <= 0:
            raise ValueError(f"in1_features must be > 0, but got {in1_features}")
        self.in1_features = in1_features
        self.in2_features = in2_features
        self.out_features = out_features
        self.weight = new_parameter([out_features, in1_features, in2_features], device, dtype)
        self.register_parameter("bias", new_parameter([out_features], device, dtype) if bias else None)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Uniform numbers within 1 / sqrt(in1_features)."""
        bound = 1 / math.sqrt(self.in1_features)
        init.uniform_(self.weight, -bound, bound)
        if self.bias is not None:
            init.uniform_(self.bias, -bound, bound)

    def forward(self, input1: Tensor, input2: Tensor) -> Tensor:
        return F.bilinear(input1, input2, self.weight, self.bias)

    def extra_repr(self) -> str:
        return (
            f"in1_features={self.in1_features}, in2_features={self.in2_features}, out_features={self.out_features}, "
            f"bias={self.bias is not None}"
        )


# PyTorch's module of this name also has these classes; they are imported lazily.
__getattr__, __dir__ = lazy_names(globals(), {
    "rushlight.nn.modules.lazy_layers": ("LazyLinear",),
})  # fmt: skip
