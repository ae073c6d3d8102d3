"""`torch.onnx.operators`: functions of shapes that stay operators in an exported model."""

from __future__ import annotations

from rushlight.core.dtype import int64
from rushlight.core.tensor import Tensor
from rushlight.ops.construct import tensor


def shape_as_tensor(x: Tensor) -> Tensor:
    """Return the sizes of `x` as an int64 vector."""
    return tensor(list(x.shape), dtype=int64)


def reshape_from_tensor_shape(x: Tensor, shape: Tensor) -> Tensor:
    """Return `x` with the sizes that an integer vector holds."""
    return x.reshape(shape.tolist())
