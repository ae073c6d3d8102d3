"""A linear layer on float tensors, which it quantizes dynamically, with a qint8 or float16 weight."""

from __future__ import annotations

from rushlight.ao.nn.intrinsic import LinearReLU
from rushlight.ao.nn.qat.dynamic import Linear as TrainedLinear
from rushlight.ao.nn.quantized.modules import linear as static
from rushlight.ao.nn.quantized.modules.utils import _quantize_weight, inner_of
from rushlight.ao.quantization.qconfig import default_dynamic_qconfig
from rushlight.core.dtype import dtype, float16, qint8
from rushlight.core.tensor import Tensor
from rushlight.nn import Linear as FloatLinear
from rushlight.nn.modules.linear import NonDynamicallyQuantizableLinear
from rushlight.nn.modules.module import Module
from rushlight.ops.packet import namespaces

__all__ = ["Linear"]

quantized = namespaces.namespace("quantized")


class Linear(static.Linear):
    """From float tensors (..., in features) to (..., out features).

    With a weight in qint8, the input is quantized to 7 bits by its own range (8 in models of versions before 4).
    """

    _version = 4

    def __init__(self, in_features: int, out_features: int, bias_: bool = True, dtype: dtype = qint8) -> None:
        super().__init__(in_features, out_features, bias_, dtype=dtype)
        self.version = 4

    def forward(self, x: Tensor) -> Tensor:
        if self._packed_params.dtype == qint8:
            if self.version is None or self.version < 4:
                Y = quantized.linear_dynamic(x, self._packed_params._packed_params)  # noqa: N806
            else:
                Y = quantized.linear_dynamic(x, self._packed_params._packed_params, True)  # noqa: N806
        elif self._packed_params.dtype == float16:
            Y = quantized.linear_dynamic_fp16(x, self._packed_params._packed_params)  # noqa: N806
        else:
            raise RuntimeError("Unsupported dtype on dynamic quantized linear!")
        return Y.to(x.dtype)

    def _get_name(self) -> str:
        return "DynamicQuantizedLinear"

    def extra_repr(self) -> str:
        text = f"in_features={self.in_features}, out_features={self.out_features}, dtype={self._packed_params.dtype}"
        return text if self._packed_params.dtype is not qint8 else f"{text}, qscheme={self.weight().qscheme()}"

    def _load_from_state_dict(
        self, state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs
    ) -> None:
        self.version = local_metadata.get("version")
        super()._load_from_state_dict(state_dict, prefix, local_metadata, False, missing_keys, unexpected_keys, error_msgs)

    @classmethod
    def from_float(cls, mod: Module, use_precomputed_fake_quant: bool = False) -> Linear:
        """Create the layer from a float one with a qconfig."""
        kinds = (FloatLinear, NonDynamicallyQuantizableLinear, LinearReLU, TrainedLinear)
        if type(mod) not in kinds:
            names = [kind.__name__ for kind in kinds]
            raise AssertionError(f"nn.quantized.dynamic.Linear.from_float only works for one of {names}, got {type(mod)}")
        observer, inner = dynamic_observer(mod), inner_of(mod)
        observer(inner.weight)
        weight = inner.weight.float()
        made = cls(inner.in_features, inner.out_features, dtype=observer.dtype)
        made.set_weight_bias(_quantize_weight(weight, observer) if observer.dtype is qint8 else weight, inner.bias)
        return made

    @classmethod
    def from_reference(cls, ref_qlinear: Module) -> Linear:
        """Create the layer from a reference module, which computes in floats with a quantized weight."""
        made = cls(ref_qlinear.in_features, ref_qlinear.out_features, dtype=ref_qlinear.weight_dtype)
        made.set_weight_bias(ref_qlinear.get_quantized_weight(), ref_qlinear.bias)
        return made


def dynamic_observer(mod: Module) -> Module:
    """Return the qconfig's observer of a layer's weight. AssertionError unless it is for qint8 or float16."""
    if not hasattr(mod, "qconfig"):
        raise AssertionError("Input float module must have qconfig defined")
    has_weight = mod.qconfig is not None and mod.qconfig.weight is not None
    observer = (mod.qconfig if has_weight else default_dynamic_qconfig).weight()
    if observer.dtype not in (qint8, float16):
        raise AssertionError(f"The only supported dtypes for dynamic quantization are qint8 and float16, got: {observer.dtype}")
    return observer
