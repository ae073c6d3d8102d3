"""Padding layers: one amount for all sides, or (left, right, top, bottom, front, back) as far as there are dimensions."""

from __future__ import annotations

from collections.abc import Sequence

from rushlight.core.tensor import Tensor
from rushlight.nn import functional as F
from rushlight.nn.functional.common import as_tuple
from rushlight.nn.modules.module import Module


class _PadNd(Module):
    dims: int
    mode: str

    def __init__(self, padding: int | Sequence[int]) -> None:
        super().__init__()
        self.padding = as_tuple(padding, 2 * self.dims)

    def forward(self, input: Tensor) -> Tensor:
        return F.pad(input, self.padding, self.mode)

    def extra_repr(self) -> str:
        return f"{self.padding}"


class _ConstantPadNd(_PadNd):
    mode = "constant"

    def __init__(self, padding: int | Sequence[int], value: float) -> None:
        super().__init__(padding)
        self.value = value

    def forward(self, input: Tensor) -> Tensor:
        return F.pad(input, self.padding, "constant", self.value)

    def extra_repr(self) -> str:
        return f"padding={self.padding}, value={self.value}"


class ConstantPad1d(_ConstantPadNd):
    """Pads the last dimension with `value`.

    Args:
        padding (int | Sequence[int]): the padding on each side.
        value (float): the padding value.

    Example:
        >>> torch.nn.ConstantPad1d(1, 2.0)(torch.arange(4.0).view(1, 1, 4)).shape
        torch.Size([1, 1, 6])
    """

    dims = 1


class ConstantPad2d(_ConstantPadNd):
    """Pads the last two dimensions with `value`.

    Args:
        padding (int | Sequence[int]): the padding on each side.
        value (float): the padding value.

    Example:
        >>> torch.nn.ConstantPad2d(1, 2.0)(torch.arange(16.0).view(1, 1, 4, 4)).shape
        torch.Size([1, 1, 6, 6])
    """

    dims = 2


class ConstantPad3d(_ConstantPadNd):
    """Pads the last three dimensions with `value`.

    Args:
        padding (int | Sequence[int]): the padding on each side.
        value (float): the padding value.

    Example:
        >>> torch.nn.ConstantPad3d(1, 2.0)(torch.arange(64.0).view(1, 1, 4, 4, 4)).shape
        torch.Size([1, 1, 6, 6, 6])
    """

    dims = 3


class _ZeroPadNd(_ConstantPadNd):
    def __init__(self, padding: int | Sequence[int]) -> None:
        super().__init__(padding, 0.0)

    def extra_repr(self) -> str:
        return f"{self.padding}"


class ZeroPad1d(_ZeroPadNd):
    """Pads the last dimension with zeros.

    Args:
        padding (int | Sequence[int]): the padding on each side.

    Example:
        >>> torch.nn.ZeroPad1d(1)(torch.arange(4.0).view(1, 1, 4)).shape
        torch.Size([1, 1, 6])
    """

    dims = 1


class ZeroPad2d(_ZeroPadNd):
    """Pads the last two dimensions with zeros.

    Args:
        padding (int | Sequence[int]): the padding on each side.

    Example:
        >>> torch.nn.ZeroPad2d(1)(torch.arange(16.0).view(1, 1, 4, 4)).shape
        torch.Size([1, 1, 6, 6])
    """

    dims = 2


class ZeroPad3d(_ZeroPadNd):
    """Pads the last three dimensions with zeros.

    Args:
        padding (int | Sequence[int]): the padding on each side.

    Example:
        >>> torch.nn.ZeroPad3d(1)(torch.arange(64.0).view(1, 1, 4, 4, 4)).shape
        torch.Size([1, 1, 6, 6, 6])
    """

    dims = 3


class ReflectionPad1d(_PadNd):
    """Pads the last dimension by reflection.

    Args:
        padding (int | Sequence[int]): the padding on each side.

    Example:
        >>> torch.nn.ReflectionPad1d(1)(torch.arange(4.0).view(1, 1, 4)).shape
        torch.Size([1, 1, 6])
    """

    dims, mode = 1, "reflect"


class ReflectionPad2d(_PadNd):
    """Pads the last two dimensions by reflection.

    Args:
        padding (int | Sequence[int]): the padding on each side.

    Example:
        >>> torch.nn.ReflectionPad2d(1)(torch.arange(16.0).view(1, 1, 4, 4)).shape
        torch.Size([1, 1, 6, 6])
    """

    dims, mode = 2, "reflect"


class ReflectionPad3d(_PadNd):
    """Pads the last three dimensions by reflection.

    Args:
        padding (int | Sequence[int]): the padding on each side.

    Example:
        >>> torch.nn.ReflectionPad3d(1)(torch.arange(64.0).view(1, 1, 4, 4, 4)).shape
        torch.Size([1, 1, 6, 6, 6])
    """

    dims, mode = 3, "reflect"


class ReplicationPad1d(_PadNd):
    """Pads the last dimension with copies of its border.

    Args:
        padding (int | Sequence[int]): the padding on each side.

    Example:
        >>> torch.nn.ReplicationPad1d(1)(torch.arange(4.0).view(1, 1, 4)).shape
        torch.Size([1, 1, 6])
    """

    dims, mode = 1, "replicate"


class ReplicationPad2d(_PadNd):
    """Pads the last two dimensions with copies of their borders.

    Args:
        padding (int | Sequence[int]): the padding on each side.

    Example:
        >>> torch.nn.ReplicationPad2d(1)(torch.arange(16.0).view(1, 1, 4, 4)).shape
        torch.Size([1, 1, 6, 6])
    """

    dims, mode = 2, "replicate"


class ReplicationPad3d(_PadNd):
    """Pads the last three dimensions with copies of their borders.

    Args:
        padding (int | Sequence[int]): the padding on each side.

    Example:
        >>> torch.nn.ReplicationPad3d(1)(torch.arange(64.0).view(1, 1, 4, 4, 4)).shape
        torch.Size([1, 1, 6, 6, 6])
    """

    dims, mode = 3, "replicate"


class _CircularPadNd(_PadNd):
    mode = "circular"

    def _check_input_dim(self, input: Tensor) -> None:
        if input.dim() not in (self.dims + 1, self.dims + 2):
            raise ValueError(f"expected {self.dims + 1}D or {self.dims + 2}D input (got {input.dim()}D input)")

    def forward(self, input: Tensor) -> Tensor:
        self._check_input_dim(input)
        return F.pad(input, self.padding, "circular")


class CircularPad1d(_CircularPadNd):
    """Pads the last dimension with its opposite end.

    Args:
        padding (int | Sequence[int]): the padding on each side.

    Example:
        >>> torch.nn.CircularPad1d(1)(torch.arange(4.0).view(1, 1, 4)).shape
        torch.Size([1, 1, 6])
    """

    dims = 1


class CircularPad2d(_CircularPadNd):
    """Pads the last two dimensions with their opposite ends.

    Args:
        padding (int | Sequence[int]): the padding on each side.

    Example:
        >>> torch.nn.CircularPad2d(1)(torch.arange(16.0).view(1, 1, 4, 4)).shape
        torch.Size([1, 1, 6, 6])
    """

    dims = 2


class CircularPad3d(_CircularPadNd):
    """Pads the last three dimensions with their opposite ends.

    Args:
        padding (int | Sequence[int]): the padding on each side.

    Example:
        >>> torch.nn.CircularPad3d(1)(torch.arange(64.0).view(1, 1, 4, 4, 4)).shape
        torch.Size([1, 1, 6, 6, 6])
    """

    dims = 3
