"""Helpers shared by quantized layers: quantize weights by an observer, save and load scales, and print layers."""

from __future__ import annotations

from typing import Any

from rushlight.core.dtype import float32, float64, iinfo, int64, qint8, qint32, quint8
from rushlight.core.qscheme import per_channel_affine_float_qparams, per_tensor_affine, per_tensor_symmetric
from rushlight.core.tensor import Tensor
from rushlight.nn.modules.module import Module
from rushlight.ops.construct import tensor
from rushlight.quantized.functions import (
    _make_per_channel_quantized_tensor,
    _make_per_tensor_quantized_tensor,
    quantize_per_channel,
    quantize_per_tensor,
)

__all__ = ["WeightedQuantizedModule"]


class WeightedQuantizedModule(Module):
    """A quantized layer with a weight."""

    @classmethod
    def from_reference(cls, ref_module: Module, output_scale: float, output_zero_point: int) -> Module:
        """Create the layer from a reference module, which computes in floats with a quantized weight."""
        raise NotImplementedError


def _quantize_weight(float_wt: Tensor, observer: Any) -> Tensor:
    """Return a weight quantized with an observer's scale and zero point. ValueError for an unknown scheme."""
    scale, zero_point = observer.calculate_qparams()
    if observer.qscheme in (per_tensor_symmetric, per_tensor_affine):
        made = quantize_per_tensor(float_wt, float(scale), int(zero_point), qint8)
    elif observer.qscheme is per_channel_affine_float_qparams:
        scale, zero_point = scale.to(float32), zero_point.to(float32)
        made = quantize_per_channel(float_wt, scale, zero_point, observer.ch_axis, observer.dtype)
    else:
        scale, zero_point = scale.to(float64), zero_point.to(int64)
        made = quantize_per_channel(float_wt, scale, zero_point, observer.ch_axis, qint8)
    return _clamp_weights(made, observer, scale, zero_point)


def _clamp_weights(qweight: Tensor, observer: Any, scale: Tensor, zp: Tensor) -> Tensor:
    """Return a weight with integers clamped to the observer's range, if that is narrower than the dtype's."""
    observer = getattr(observer, "activation_post_process", observer)
    if qweight.dtype not in (qint8, quint8, qint32):
        return qweight
    limits = iinfo(qweight.dtype)
    if observer.quant_min <= limits.min and observer.quant_max >= limits.max:
        return qweight
    integers = qweight.int_repr().clamp(observer.quant_min, observer.quant_max)
    if observer.qscheme in (per_tensor_symmetric, per_tensor_affine):
        return _make_per_tensor_quantized_tensor(integers, scale.item(), zp.item())
    return _make_per_channel_quantized_tensor(integers, scale, zp, observer.ch_axis)


def _hide_packed_params_repr(self: Module, params: type) -> str:
    """Return a module's printed form without its children of class `params`."""
    shown = [f"({name}): {child!r}" for name, child in self._modules.items() if not isinstance(child, params)]
    extra = self.extra_repr()
    if not shown:
        return f"{self._get_name()}({extra})"
    lines = "".join("\n  " + line.replace("\n", "\n  ") for line in ([extra] if extra else []) + shown)
    return f"{self._get_name()}({lines}\n)"


def observers_of(mod: Module, precomputed: bool = False) -> tuple[Any, Any]:
    """Return the observer of a layer's results, or None, and one for its weight, which has observed it.

    `precomputed`: fake quantization has observed it already. AssertionError if the layer has no qconfig.
    """
    results = getattr(mod, "activation_post_process", None)
    if hasattr(mod, "weight_fake_quant"):
        weight = mod.weight_fake_quant
    else:
        if not hasattr(mod, "qconfig"):
            raise AssertionError("Input float module must have qconfig defined")
        weight, precomputed = inner_of(mod).qconfig.weight(), False
    if not precomputed:
        weight(inner_of(mod).weight)
    return results, weight


def inner_of(mod: Module) -> Module:
    """Return the layer with the weight: the module itself, or the first one of a fused module."""
    return mod if isinstance(getattr(mod, "weight", None), Tensor) else mod[0]


def require_float_module(cls: type, mod: Module, *kinds: type | None) -> None:
    """Raise AssertionError unless a module has one of the classes that `cls.from_float` accepts."""
    expected = [kind for kind in kinds if kind is not None]
    if type(mod) not in expected:
        names = ", ".join(kind.__name__ for kind in expected)
        raise AssertionError(f"nnq.{cls.__name__}.from_float only works for {names}, but got: {type(mod).__name__}")


def save_scale(module: Module, destination: dict, prefix: str) -> None:
    """Write the scale and the zero point of a layer's results into a state."""
    destination[prefix + "scale"] = tensor(module.scale)
    destination[prefix + "zero_point"] = tensor(module.zero_point)


def load_scale(module: Module, state_dict: dict, prefix: str, missing_keys: list[str]) -> None:
    """Load the scale and the zero point of a layer's results from a state."""
    for name, kind in (("scale", float), ("zero_point", int)):
        if prefix + name in state_dict:
            setattr(module, name, kind(state_dict.pop(prefix + name)))
        else:
            missing_keys.append(prefix + name)


def set_scale(made: Module, observer: Any) -> Module:
    """Set the scale and the zero point of a layer's results from an observer."""
    scale, zero_point = observer.calculate_qparams()
    made.scale, made.zero_point = float(scale), int(zero_point)
    return made
