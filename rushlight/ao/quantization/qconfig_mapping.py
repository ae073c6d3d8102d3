"""`torch.ao.quantization.qconfig_mapping`: the qconfigs of a model's parts, for FX mode."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from typing import Any

from rushlight.ao.quantization.fake_quantize import FixedQParamsFakeQuantize, default_weight_fake_quant
from rushlight.ao.quantization.observer import (
    _PartialWrapper,
    default_fixed_qparams_range_0to1_observer,
    default_fixed_qparams_range_neg1to1_observer,
    default_placeholder_observer,
    default_weight_observer,
)
from rushlight.ao.quantization.qconfig import (
    QConfig,
    QConfigAny,
    default_quint8_weight_qconfig,
    default_reuse_input_qconfig,
    get_default_qat_qconfig,
    get_default_qconfig,
)
from rushlight.nn import functional as F
from rushlight.nn import modules as nn

__all__ = ["QConfigMapping", "get_default_qat_qconfig_mapping", "get_default_qconfig_mapping"]

_UNIT, _SIGNED = default_fixed_qparams_range_0to1_observer, default_fixed_qparams_range_neg1to1_observer
FIXED_QPARAMS: dict[Any, _PartialWrapper] = {
    **dict.fromkeys(
        (nn.Hardsigmoid, F.hardsigmoid, "hardsigmoid", "hardsigmoid_", nn.Sigmoid, "sigmoid", "sigmoid_", nn.Softmax),
        _UNIT,
    ),
    **dict.fromkeys((nn.Tanh, "tanh", "tanh_"), _SIGNED),
}  # fmt: skip
"""Operators whose results have a known range, with its observer."""


class QConfigMapping:
    """Qconfigs for a whole model, for classes and functions, and for modules by name; the most specific one applies.

    `QConfigMapping().set_global(get_default_qconfig("x86")).set_module_name("head", None)` leaves out one module. The order,
    from general to specific: `set_global`, `set_object_type`, `set_module_name_regex`, `set_module_name`,
    `set_module_name_object_type_order`.
    """

    def __init__(self) -> None:
        self.global_qconfig: QConfigAny = None
        self.object_type_qconfigs: OrderedDict[Callable | str, QConfigAny] = OrderedDict()
        self.module_name_regex_qconfigs: OrderedDict[str, QConfigAny] = OrderedDict()
        self.module_name_qconfigs: OrderedDict[str, QConfigAny] = OrderedDict()
        self.module_name_object_type_order_qconfigs: OrderedDict[tuple[str, Callable, int], QConfigAny] = OrderedDict()

    def set_global(self, global_qconfig: QConfigAny) -> QConfigMapping:
        """Set the default qconfig."""
        self.global_qconfig = global_qconfig
        return self

    def set_object_type(self, object_type: Callable | str, qconfig: QConfigAny) -> QConfigMapping:
        """Set the qconfig of a module class, a function, or methods and functions of a name."""
        self.object_type_qconfigs[object_type] = qconfig
        return self

    def set_module_name_regex(self, module_name_regex: str, qconfig: QConfigAny) -> QConfigMapping:
        """Set the qconfig of modules whose whole name matches a regular expression; the one set first has priority."""
        self.module_name_regex_qconfigs[module_name_regex] = qconfig
        return self

    def set_module_name(self, module_name: str, qconfig: QConfigAny) -> QConfigMapping:
        """Set the qconfig of a module, "layer.0", and of its submodules."""
        self.module_name_qconfigs[module_name] = qconfig
        return self

    def set_module_name_object_type_order(
        self, module_name: str, object_type: Callable, index: int, qconfig: QConfigAny
    ) -> QConfigMapping:
        """Set the qconfig of call number `index` of a class or function inside a module."""
        self.module_name_object_type_order_qconfigs[module_name, object_type, index] = qconfig
        return self

    def __repr__(self) -> str:
        text = f"{type(self).__name__} ("
        for name, qconfigs in vars(self).items():
            text += f"\n {name}"
            if isinstance(qconfigs, OrderedDict) and qconfigs:
                text += "".join(f"\n  {key}: {qconfig}" for key, qconfig in qconfigs.items())
            else:
                text += f"\n  {qconfigs}"
        return text + "\n)"

    def to_dict(self) -> dict[str, Any]:
        """Return the older form, a dict."""
        ordered = self.module_name_object_type_order_qconfigs.items()
        return {
            "": self.global_qconfig,
            "object_type": list(self.object_type_qconfigs.items()),
            "module_name_regex": list(self.module_name_regex_qconfigs.items()),
            "module_name": list(self.module_name_qconfigs.items()),
            "module_name_object_type_order": [(*key, qconfig) for key, qconfig in ordered],
        }

    @classmethod
    def from_dict(cls, qconfig_dict: dict[str, Any]) -> QConfigMapping:
        """Return the mapping of the older form."""
        made = cls()
        if "" in qconfig_dict:
            made.set_global(qconfig_dict[""])
        for key, setter in (
            ("object_type", made.set_object_type), ("module_name_regex", made.set_module_name_regex),
            ("module_name", made.set_module_name), ("module_name_object_type_order", made.set_module_name_object_type_order),
        ):  # fmt: skip
            for entry in qconfig_dict.get(key, []):
                setter(*entry)
        return made


def _default_mapping(is_qat: bool, backend: str, version: int) -> QConfigMapping:
    qconfig = (get_default_qat_qconfig if is_qat else get_default_qconfig)(backend, version)
    weight = default_weight_fake_quant if is_qat else default_weight_observer
    transposed = QConfig(qconfig.activation, weight) if backend in ("fbgemm", "x86") else qconfig
    layer_norm = QConfig(qconfig.activation, default_placeholder_observer)
    made = QConfigMapping().set_global(qconfig).set_object_type("reshape", default_reuse_input_qconfig)
    for kind in (nn.ConvTranspose1d, nn.ConvTranspose2d, nn.ConvTranspose3d, F.conv_transpose1d, F.conv_transpose2d,
                 F.conv_transpose3d):  # fmt: skip
        made.set_object_type(kind, transposed)
    made.set_object_type(F.layer_norm, layer_norm).set_object_type(nn.LayerNorm, layer_norm)
    made.set_object_type(nn.PReLU, default_quint8_weight_qconfig)
    for kind, observer in FIXED_QPARAMS.items():
        activation = FixedQParamsFakeQuantize.with_args(observer=observer) if is_qat else observer
        made.set_object_type(kind, QConfig(activation, weight))
    return made


def get_default_qconfig_mapping(backend: str = "x86", version: int = 0) -> QConfigMapping:
    """Return `get_default_qconfig(backend)`, with exceptions for transposed convolutions and results of a known range."""
    return _default_mapping(False, backend, version)


def get_default_qat_qconfig_mapping(backend: str = "x86", version: int = 1) -> QConfigMapping:
    """Return `get_default_qat_qconfig(backend)`, with the same exceptions."""
    return _default_mapping(True, backend, version)
