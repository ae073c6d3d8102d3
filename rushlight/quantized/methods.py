"""Methods of Tensor for quantized tensors, and their printed form."""

from __future__ import annotations

from rushlight.core import tensor as core
from rushlight.core.dispatch_key import DispatchKey, bit
from rushlight.core.lazy_module import LazyModule
from rushlight.core.qscheme import qscheme
from rushlight.core.tensor import Tensor

operators = LazyModule("rushlight.quantized.operators")
_BIT = bit(DispatchKey.QuantizedCPU)
_plain_repr, _plain_numpy, _plain_tolist = Tensor.__repr__, Tensor.numpy, Tensor.tolist


def _is_quantized(self: Tensor) -> bool:
    return bool(self._impl.key_set & _BIT)


def dequantize(self: Tensor) -> Tensor:
    """Return the dequantized numbers, float32; a floating tensor is converted to float32."""
    return operators.aten.dequantize(self)


def int_repr(self: Tensor) -> Tensor:
    """Return the integers of a quantized tensor: a copy of dtype uint8, int8 or int32."""
    return operators.aten.int_repr(self)


def q_scale(self: Tensor) -> float:
    """Return the scale of a tensor that has one."""
    return operators.aten.q_scale(self)


def q_zero_point(self: Tensor) -> int:
    """Return the zero point of a tensor that has one."""
    return operators.aten.q_zero_point(self)


def q_per_channel_scales(self: Tensor) -> Tensor:
    """Return the scales of the channels, float64 (float32 where zero points are no integers)."""
    return operators.aten.q_per_channel_scales(self)


def q_per_channel_zero_points(self: Tensor) -> Tensor:
    """Return the zero points of the channels, int64 or float32."""
    return operators.aten.q_per_channel_zero_points(self)


def q_per_channel_axis(self: Tensor) -> int:
    """Return the dimension along which scales differ."""
    return operators.aten.q_per_channel_axis(self)


def qscheme_of(self: Tensor) -> qscheme:
    """Return the scheme of a quantized tensor, such as `torch.per_tensor_affine`."""
    return operators.scheme_of(self)


def _repr(self: Tensor, *, tensor_contents: object = None) -> str:
    if not _is_quantized(self):
        return _plain_repr(self, tensor_contents=tensor_contents)
    prefix = "Parameter containing:\n" if type(self).__name__ == "Parameter" else ""
    return prefix + operators.quantized_text(self)


def _numpy(self: Tensor, *, force: bool = False):
    if _is_quantized(self):
        raise TypeError(
            f"Got unsupported ScalarType {self.dtype.scalar_name}: use int_repr().numpy() or dequantize().numpy() of a "
            "quantized tensor"
        )
    return _plain_numpy(self, force=force)


def _tolist(self: Tensor) -> list:
    if _is_quantized(self):
        raise RuntimeError("tolist() of a quantized tensor: use int_repr().tolist() or dequantize().tolist()")
    return _plain_tolist(self)


def install() -> None:
    """Attach the methods to Tensor."""
    for method in (
        dequantize, int_repr, q_scale, q_zero_point, q_per_channel_scales, q_per_channel_zero_points, q_per_channel_axis,
    ):  # fmt: skip
        setattr(Tensor, method.__name__, method)
    for wrapper, plain in ((_numpy, _plain_numpy), (_tolist, _plain_tolist), (_repr, core.Tensor.__repr__)):
        wrapper.__doc__ = plain.__doc__
    Tensor.numpy, Tensor.tolist, Tensor.__repr__ = _numpy, _tolist, _repr
    Tensor.qscheme = qscheme_of
    Tensor.is_quantized = property(_is_quantized, doc="Whether the tensor is quantized.")
