"""A linear layer with a quantized weight."""

from __future__ import annotations

from typing import Optional

from rushlight.ao.nn.intrinsic.qat import LinearBn1d
from rushlight.ao.nn.quantized.modules.utils import (
    WeightedQuantizedModule,
    _hide_packed_params_repr,
    _quantize_weight,
    inner_of,
    load_scale,
    observers_of,
    save_scale,
    set_scale,
)
from rushlight.core.dtype import dtype, float16, float32, qint8
from rushlight.core.tensor import Tensor
from rushlight.jit.decorators import export
from rushlight.nn import Linear as FloatLinear
from rushlight.nn.modules.linear import NonDynamicallyQuantizableLinear
from rushlight.nn.modules.module import Module
from rushlight.nn.utils.fusion import fuse_linear_bn_weights
from rushlight.nn.utils.parametrize import type_before_parametrizations
from rushlight.ops.packet import namespaces
from rushlight.quantized.functions import _empty_affine_quantized

__all__ = ["Linear", "LinearPackedParams"]

aten, quantized = namespaces.namespace("aten"), namespaces.namespace("quantized")


class LinearPackedParams(Module):
    """Weight and bias in the operators' packed form; states store "dtype", and "_packed_params", a pair.

    `dtype` is qint8 or float16.
    """

    _version = 3

    def __init__(self, dtype: dtype = qint8) -> None:
        super().__init__()
        self.dtype = dtype
        self.set_weight_bias(_empty_weight(1, 1, dtype), None)

    @export
    def set_weight_bias(self, weight: Tensor, bias: Optional[Tensor]) -> None:  # noqa: UP045  (scripted)
        """Set a weight (out features, in features), and a bias or None."""
        if self.dtype == qint8:
            self._packed_params = quantized.linear_prepack(weight, bias)
        elif self.dtype == float16:
            self._packed_params = quantized.linear_prepack_fp16(weight, bias)
        else:
            raise RuntimeError("Unsupported dtype on dynamic quantized linear!")

    @export
    def _weight_bias(self):
        if self.dtype == qint8:
            return quantized.linear_unpack(self._packed_params)
        elif self.dtype == float16:
            return quantized.linear_unpack_fp16(self._packed_params)
        else:
            raise RuntimeError("Unsupported dtype on dynamic quantized linear!")

    def forward(self, x):
        return x

    def _save_to_state_dict(self, destination, prefix, keep_vars) -> None:
        super()._save_to_state_dict(destination, prefix, keep_vars)
        destination[prefix + "dtype"] = self.dtype
        destination[prefix + "_packed_params"] = self._weight_bias()

    def _load_from_state_dict(
        self, state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs
    ) -> None:
        version = local_metadata.get("version")
        is_old = version is None or version < 3
        names = ("weight", "bias") if is_old else ("_packed_params",)
        absent = [prefix + name for name in (*names, *(("dtype",) if not is_old else ())) if prefix + name not in state_dict]
        if absent:
            missing_keys.extend(absent)
            return
        self.dtype = state_dict.pop(prefix + "dtype", qint8)
        parts = [state_dict.pop(prefix + name) for name in names]
        self.set_weight_bias(*(parts if is_old else parts[0]))
        super()._load_from_state_dict(state_dict, prefix, local_metadata, False, missing_keys, unexpected_keys, error_msgs)

    def __repr__(self) -> str:
        return repr(self._weight_bias())


def _empty_weight(out_features: int, in_features: int, kind: dtype) -> Tensor:
    if kind is qint8:
        return _empty_affine_quantized([out_features, in_features], scale=1.0, zero_point=0, dtype=qint8)
    if kind is float16:
        return aten.zeros.default([out_features, in_features], dtype=float32)
    raise RuntimeError(f"Unsupported dtype specified for quantized Linear: expected torch.qint8 or torch.float16, got {kind}")


class Linear(WeightedQuantizedModule):
    """From quantized tensors (..., in features) to (..., out features), with a qint8 weight and a float32 bias.

    `scale` and `zero_point` are those of the results.
    """

    _version = 3
    _FLOAT_MODULE: tuple[type, ...] = (FloatLinear, NonDynamicallyQuantizableLinear)

    def __init__(self, in_features: int, out_features: int, bias_: bool = True, dtype: dtype = qint8) -> None:
        super().__init__()
        self.in_features, self.out_features = in_features, out_features
        weight = _empty_weight(out_features, in_features, dtype)
        self._packed_params = LinearPackedParams(dtype)
        self._packed_params.set_weight_bias(weight, aten.zeros.default([out_features]) if bias_ else None)
        self.scale = 1.0
        self.zero_point = 0

    def _get_name(self) -> str:
        return "QuantizedLinear"

    def extra_repr(self) -> str:
        return (
            f"in_features={self.in_features}, out_features={self.out_features}, scale={self.scale}, "
            f"zero_point={self.zero_point}, qscheme={self.weight().qscheme()}"
        )

    def __repr__(self) -> str:
        return _hide_packed_params_repr(self, LinearPackedParams)

    def forward(self, x: Tensor) -> Tensor:
        return quantized.linear(x, self._packed_params._packed_params, self.scale, self.zero_point)

    def _save_to_state_dict(self, destination, prefix, keep_vars) -> None:
        super()._save_to_state_dict(destination, prefix, keep_vars)
        save_scale(self, destination, prefix)

    def _load_from_state_dict(
        self, state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs
    ) -> None:
        load_scale(self, state_dict, prefix, missing_keys)
        version = local_metadata.get("version")
        if version is None or version == 1:
            for name in ("weight", "bias"):
                if prefix + name in state_dict:
                    state_dict[f"{prefix}_packed_params.{name}"] = state_dict.pop(prefix + name)
        super()._load_from_state_dict(state_dict, prefix, local_metadata, False, missing_keys, unexpected_keys, error_msgs)

    def _weight_bias(self):
        return self._packed_params._weight_bias()

    def weight(self) -> Tensor:
        """Return the weight, qint8."""
        return self._weight_bias()[0]

    def bias(self) -> Tensor | None:
        """Return the bias, float32, or None."""
        return self._weight_bias()[1]

    def set_weight_bias(self, w: Tensor, b: Optional[Tensor]) -> None:  # noqa: UP045  (scripted)
        """Set the weight and the bias."""
        self._packed_params.set_weight_bias(w, b)

    @classmethod
    def from_float(cls, mod: Module, use_precomputed_fake_quant: bool = False) -> Linear:
        """Create the layer from a float one with observers, or from one trained with fake quantization."""
        if hasattr(mod, "weight_fake_quant"):
            if type_before_parametrizations(mod) is LinearBn1d:
                mod.weight, mod.bias = fuse_linear_bn_weights(
                    mod.weight, mod.bias, mod.bn.running_mean, mod.bn.running_var, mod.bn.eps, mod.bn.weight, mod.bn.bias
                )
        elif type_before_parametrizations(mod) not in cls._FLOAT_MODULE:
            names = ", ".join(each.__name__ for each in cls._FLOAT_MODULE)
            raise AssertionError(f"nnq.{cls.__name__}.from_float only works for {names}, but got: {type(mod)}")
        results, observer = observers_of(mod, use_precomputed_fake_quant)
        if observer.dtype is not qint8:
            raise AssertionError(f"Weight observer must have dtype torch.qint8, got {observer.dtype}")
        inner = inner_of(mod)
        made = cls(inner.in_features, inner.out_features, dtype=qint8)
        made.set_weight_bias(_quantize_weight(inner.weight.float(), observer), inner.bias)
        return set_scale(made, results)

    @classmethod
    def from_reference(cls, ref_qlinear: Module, output_scale: float, output_zero_point: int) -> Linear:
        """Create the layer from a reference module, which computes in floats with a quantized weight."""
        made = cls(ref_qlinear.in_features, ref_qlinear.out_features)
        made.set_weight_bias(ref_qlinear.get_quantized_weight(), ref_qlinear.bias)
        made.scale, made.zero_point = float(output_scale), int(output_zero_point)
        return made
