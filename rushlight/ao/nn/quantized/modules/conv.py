"""Convolutions with quantized weights, plain and transposed."""

from __future__ import annotations

from typing import Any, Optional

from rushlight.ao.nn.intrinsic import ConvReLU1d, ConvReLU2d, ConvReLU3d, qat
from rushlight.ao.nn.quantized.modules.utils import (
    WeightedQuantizedModule,
    _quantize_weight,
    inner_of,
    observers_of,
    require_float_module,
    set_scale,
)
from rushlight.core.dtype import float32, qint8
from rushlight.core.tensor import Tensor
from rushlight.nn import functional as F
from rushlight.nn.functional.common import as_tuple
from rushlight.nn.modules import conv as floats
from rushlight.nn.modules.module import Module
from rushlight.nn.utils.fusion import fuse_conv_bn_weights
from rushlight.ops.construct import tensor
from rushlight.ops.packet import namespaces
from rushlight.quantized.functions import _empty_affine_quantized

__all__ = ["Conv1d", "Conv2d", "Conv3d", "ConvTranspose1d", "ConvTranspose2d", "ConvTranspose3d"]

aten, quantized = namespaces.namespace("aten"), namespaces.namespace("quantized")
_PADDING_MODES = ("zeros", "reflect")
_SETTINGS = (
    "in_channels", "out_channels", "kernel_size", "stride", "padding", "dilation", "transposed", "output_padding", "groups",
    "padding_mode",
)  # fmt: skip


def _reverse_repeat_padding(padding: list[int]) -> list[int]:
    """Return the padding in the form of F.pad: last dimension first, both sides."""
    sides: list[int] = []
    for index in range(len(padding)):
        side = padding[len(padding) - index - 1]
        sides.append(side)
        sides.append(side)
    return sides


class _ConvNd(WeightedQuantizedModule):
    """A layer from quantized tensors to quantized tensors, with a qint8 weight and a float32 bias; `scale` and `zero_point` are
    those of the results. `_dims` is the number of spatial dimensions."""

    _dims: int
    _FLOAT_MODULE: type
    _NNIQAT_CONV_BN_MODULE: type | None = None
    _NNI_CONV_RELU_MODULE: type | None = None

    def _init(
        self, in_channels: int, out_channels: int, kernel_size: Any, stride: Any, padding: Any, dilation: Any,
        transposed: bool, output_padding: Any, groups: int, bias: bool, padding_mode: str, device: Any, dtype: Any,
    ) -> None:  # fmt: skip
        super().__init__()
        if out_channels <= 0:
            raise ValueError(f"out_channels must be greater than 0, got {out_channels}")
        if in_channels % groups:
            raise ValueError(f"in_channels must be divisible by groups, got {in_channels} and {groups}")
        if out_channels % groups:
            raise ValueError(f"out_channels must be divisible by groups, got {out_channels} and {groups}")
        if padding_mode not in _PADDING_MODES:
            raise ValueError(f"'padding_mode' {padding_mode} is not supported by quantized convolution")
        self.in_channels, self.out_channels, self.groups = in_channels, out_channels, groups
        self.kernel_size, self.stride = as_tuple(kernel_size, self._dims), as_tuple(stride, self._dims)
        self.padding = padding if isinstance(padding, str) else as_tuple(padding, self._dims)
        self.dilation, self.output_padding = as_tuple(dilation, self._dims), as_tuple(output_padding, self._dims)
        self.transposed, self.padding_mode = transposed, padding_mode
        lead = [in_channels, out_channels // groups] if transposed else [out_channels, in_channels // groups]
        weight = _empty_affine_quantized([*lead, *self.kernel_size], scale=1, zero_point=0, dtype=qint8, device=device or "cpu")
        self.set_weight_bias(weight, aten.zeros.default([out_channels]) if bias else None)
        self.scale = 1.0
        self.zero_point = 0

    def weight(self) -> Tensor:
        """Return the weight, qint8."""
        return self._weight_bias()[0]

    def bias(self) -> Tensor | None:
        """Return the bias, float32, or None."""
        return self._weight_bias()[1]

    def extra_repr(self) -> str:
        text = (
            f"{self.in_channels}, {self.out_channels}, kernel_size={self.kernel_size}, stride={self.stride}, "
            f"scale={self.scale}, zero_point={self.zero_point}"
        )
        for name, usual in (("padding", 0), ("dilation", 1), ("output_padding", 0)):
            if getattr(self, name) != (usual,) * self._dims:
                text += f", {name}={getattr(self, name)}"
        if self.groups != 1:
            text += f", groups={self.groups}"
        return text if self.bias() is not None else text + ", bias=False"

    # State

    def _save_to_state_dict(self, destination, prefix, keep_vars) -> None:
        super()._save_to_state_dict(destination, prefix, keep_vars)
        destination[prefix + "weight"], destination[prefix + "bias"] = self._weight_bias()
        destination[prefix + "scale"] = tensor(self.scale)
        destination[prefix + "zero_point"] = tensor(self.zero_point)

    def _load_from_state_dict(
        self, state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs
    ) -> None:
        absent = [prefix + name for name in ("weight", "bias", "scale", "zero_point") if prefix + name not in state_dict]
        if absent:
            missing_keys.extend(absent)
            return
        self.set_weight_bias(state_dict.pop(prefix + "weight"), state_dict.pop(prefix + "bias"))
        self.scale = float(state_dict.pop(prefix + "scale"))
        self.zero_point = int(state_dict.pop(prefix + "zero_point"))
        super()._load_from_state_dict(state_dict, prefix, local_metadata, False, missing_keys, unexpected_keys, error_msgs)

    def __getstate__(self) -> tuple:
        settings = tuple(getattr(self, name) for name in _SETTINGS)
        return (*settings, *self._weight_bias(), self.scale, self.zero_point, self.training)

    def __setstate__(self, state: tuple) -> None:
        if "_modules" not in self.__dict__:
            Module.__init__(self)
        *settings, w, b, self.scale, self.zero_point, self.training = state
        for name, value in zip(_SETTINGS, settings, strict=True):
            setattr(self, name, value)
        self.set_weight_bias(w, b)

    def __deepcopy__(self, memo):
        made = type(self).__new__(type(self))
        made.__setstate__(self.__getstate__())
        return made

    def __copy__(self):
        return self.__deepcopy__({})

    # From other modules

    @classmethod
    def _of(cls, mod: Module) -> _ConvNd:
        """Return an empty layer with the settings of a float one."""
        return cls(
            mod.in_channels, mod.out_channels, mod.kernel_size, mod.stride, mod.padding, mod.dilation, mod.groups,
            mod.bias is not None, mod.padding_mode,
        )  # fmt: skip

    @classmethod
    def from_float(cls, mod: Module, use_precomputed_fake_quant: bool = False) -> _ConvNd:
        """Create the layer from a float one with observers, or from one trained with fake quantization."""
        if not hasattr(mod, "weight_fake_quant"):
            require_float_module(cls, mod, cls._FLOAT_MODULE, cls._NNI_CONV_RELU_MODULE)
        elif type(mod) is cls._NNIQAT_CONV_BN_MODULE:
            mod.weight, mod.bias = fuse_conv_bn_weights(
                mod.weight, mod.bias, mod.bn.running_mean, mod.bn.running_var, mod.bn.eps, mod.bn.weight, mod.bn.bias
            )
        results, observer = observers_of(mod)
        if observer.dtype is not qint8:
            raise AssertionError(f"Weight observer must have a dtype of qint8, got {observer.dtype}")
        inner = inner_of(mod)
        made = cls._of(inner)
        made.set_weight_bias(_quantize_weight(inner.weight.float(), observer), inner.bias)
        return made if results is None or results.dtype is float32 else set_scale(made, results)

    @classmethod
    def from_reference(cls, ref_qconv: Module, output_scale: float, output_zero_point: int) -> _ConvNd:
        """Create the layer from a reference module, which computes in floats with a quantized weight."""
        made = cls._of(ref_qconv)
        made.set_weight_bias(ref_qconv.get_quantized_weight(), ref_qconv.bias)
        made.scale, made.zero_point = float(output_scale), int(output_zero_point)
        return made


class _Convolution(_ConvNd):
    def __init__(
        self, in_channels: int, out_channels: int, kernel_size: Any, stride: Any = 1, padding: Any = 0, dilation: Any = 1,
        groups: int = 1, bias: bool = True, padding_mode: str = "zeros", device: Any = None, dtype: Any = None,
    ) -> None:  # fmt: skip
        if self._dims == 3 and padding_mode == "reflect":
            raise AssertionError("Conv3d does not support reflection padding")
        self._init(
            in_channels, out_channels, kernel_size, stride, padding, dilation, False, 0, groups, bias, padding_mode, device,
            dtype,
        )  # fmt: skip


class Conv1d(_Convolution):
    """A quantized convolution: (batch, channels, length)."""

    _dims = 1
    _FLOAT_MODULE = floats.Conv1d
    _NNIQAT_CONV_BN_MODULE = qat.ConvBn1d
    _NNI_CONV_RELU_MODULE = ConvReLU1d

    def _get_name(self) -> str:
        return "QuantizedConv1d"

    def set_weight_bias(self, w: Tensor, b: Optional[Tensor]) -> None:  # noqa: UP045  (scripted)
        """Set the weight and the bias."""
        if self.padding_mode == "zeros":
            self._packed_params = quantized.conv1d_prepack(w, b, self.stride, self.padding, self.dilation, self.groups)
        else:
            self._packed_params = quantized.conv1d_prepack(w, b, self.stride, (0,), self.dilation, self.groups)

    def _weight_bias(self):
        w, b = quantized.conv1d_unpack(self._packed_params)
        return w, b

    def forward(self, input):
        if len(input.shape) != 3:
            raise ValueError("Input shape must be `(N, C, L)`!")
        if self.padding_mode != "zeros":
            input = F.pad(input, _reverse_repeat_padding(self.padding), mode=self.padding_mode)
        return quantized.conv1d(input, self._packed_params, self.scale, self.zero_point)


class Conv2d(_Convolution):
    """A quantized convolution: (batch, channels, height, width)."""

    _dims = 2
    _FLOAT_MODULE = floats.Conv2d
    _NNIQAT_CONV_BN_MODULE = qat.ConvBn2d
    _NNI_CONV_RELU_MODULE = ConvReLU2d

    def _get_name(self) -> str:
        return "QuantizedConv2d"

    def set_weight_bias(self, w: Tensor, b: Optional[Tensor]) -> None:  # noqa: UP045  (scripted)
        """Set the weight and the bias."""
        if self.padding_mode == "zeros":
            self._packed_params = quantized.conv2d_prepack(w, b, self.stride, self.padding, self.dilation, self.groups)
        else:
            self._packed_params = quantized.conv2d_prepack(w, b, self.stride, (0, 0), self.dilation, self.groups)

    def _weight_bias(self):
        return self._packed_params.unpack()

    def forward(self, input):
        if len(input.shape) != 4:
            raise ValueError("Input shape must be `(N, C, H, W)`!")
        if self.padding_mode != "zeros":
            input = F.pad(input, _reverse_repeat_padding(self.padding), mode=self.padding_mode)
        return quantized.conv2d(input, self._packed_params, self.scale, self.zero_point)


class Conv3d(_Convolution):
    """A quantized convolution: (batch, channels, depth, height, width)."""

    _dims = 3
    _FLOAT_MODULE = floats.Conv3d
    _NNIQAT_CONV_BN_MODULE = qat.ConvBn3d
    _NNI_CONV_RELU_MODULE = ConvReLU3d

    def _get_name(self) -> str:
        return "QuantizedConv3d"

    def set_weight_bias(self, w: Tensor, b: Optional[Tensor]) -> None:  # noqa: UP045  (scripted)
        """Set the weight and the bias."""
        self._packed_params = quantized.conv3d_prepack(w, b, self.stride, self.padding, self.dilation, self.groups)

    def _weight_bias(self):
        return self._packed_params.unpack()

    def forward(self, input):
        if len(input.shape) != 5:
            raise ValueError("Input shape must be `(N, C, D, H, W)`!")
        return quantized.conv3d(input, self._packed_params, self.scale, self.zero_point)


class _ConvTransposeNd(_ConvNd):
    def __init__(
        self, in_channels: int, out_channels: int, kernel_size: Any, stride: Any = 1, padding: Any = 0, output_padding: Any = 0,
        groups: int = 1, bias: bool = True, dilation: Any = 1, padding_mode: str = "zeros", device: Any = None,
        dtype: Any = None,
    ) -> None:  # fmt: skip
        if padding_mode != "zeros":
            raise ValueError(f'Only "zeros" padding mode is supported for {type(self).__name__}, got {padding_mode!r}')
        self._init(
            in_channels, out_channels, kernel_size, stride, padding, dilation, True, output_padding, groups, bias,
            padding_mode, device, dtype,
        )  # fmt: skip

    @classmethod
    def _of(cls, mod: Module) -> _ConvTransposeNd:
        return cls(
            mod.in_channels, mod.out_channels, mod.kernel_size, mod.stride, mod.padding, mod.output_padding, mod.groups,
            mod.bias is not None, mod.dilation, mod.padding_mode,
        )  # fmt: skip


class ConvTranspose1d(_ConvTransposeNd):
    """The adjoint of a convolution: (batch, channels, length)."""

    _dims = 1
    _FLOAT_MODULE = floats.ConvTranspose1d

    def _get_name(self) -> str:
        return "QuantizedConvTranspose1d"

    def set_weight_bias(self, w: Tensor, b: Optional[Tensor]) -> None:  # noqa: UP045  (scripted)
        """Set the weight and the bias."""
        self._packed_params = quantized.conv_transpose1d_prepack(
            w, b, self.stride, self.padding, self.output_padding, self.dilation, self.groups
        )

    def _weight_bias(self):
        w, b = quantized.conv_transpose1d_unpack(self._packed_params)
        return w, b

    def forward(self, input):
        if len(input.shape) != 3:
            raise ValueError("Input shape must be `(N, C, L)`!")
        return quantized.conv_transpose1d(input, self._packed_params, self.scale, self.zero_point)


class ConvTranspose2d(_ConvTransposeNd):
    """The adjoint of a convolution: (batch, channels, height, width)."""

    _dims = 2
    _FLOAT_MODULE = floats.ConvTranspose2d

    def _get_name(self) -> str:
        return "QuantizedConvTranspose2d"

    def set_weight_bias(self, w: Tensor, b: Optional[Tensor]) -> None:  # noqa: UP045  (scripted)
        """Set the weight and the bias."""
        self._packed_params = quantized.conv_transpose2d_prepack(
            w, b, self.stride, self.padding, self.output_padding, self.dilation, self.groups
        )

    def _weight_bias(self):
        w, b = quantized.conv2d_unpack(self._packed_params)
        return w, b

    def forward(self, input):
        if len(input.shape) != 4:
            raise ValueError("Input shape must be `(N, C, H, W)`!")
        return quantized.conv_transpose2d(input, self._packed_params, self.scale, self.zero_point)


class ConvTranspose3d(_ConvTransposeNd):
    """The adjoint of a convolution: (batch, channels, depth, height, width)."""

    _dims = 3
    _FLOAT_MODULE = floats.ConvTranspose3d

    def _get_name(self) -> str:
        return "QuantizedConvTranspose3d"

    def set_weight_bias(self, w: Tensor, b: Optional[Tensor]) -> None:  # noqa: UP045  (scripted)
        """Set the weight and the bias."""
        self._packed_params = quantized.conv_transpose3d_prepack(
            w, b, self.stride, self.padding, self.output_padding, self.dilation, self.groups
        )

    def _weight_bias(self):
        w, b = quantized.conv3d_unpack(self._packed_params)
        return w, b

    def forward(self, input):
        if len(input.shape) != 5:
            raise ValueError("Input shape must be `(N, C, T, H, W)`!")
        return quantized.conv_transpose3d(input, self._packed_params, self.scale, self.zero_point)
