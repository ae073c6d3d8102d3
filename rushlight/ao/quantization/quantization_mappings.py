"""`torch.ao.quantization.quantization_mappings`: the replacements of modules by quantized ones."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from rushlight.ao.nn import intrinsic as nni
from rushlight.ao.nn import qat as nnqat
from rushlight.ao.nn import quantized as nnq
from rushlight.ao.nn.intrinsic import qat as nniqat
from rushlight.ao.nn.intrinsic import quantized as nniq
from rushlight.ao.nn.intrinsic.quantized import dynamic as nniqd
from rushlight.ao.nn.qat import dynamic as nnqatd
from rushlight.ao.nn.quantized import dynamic as nnqd
from rushlight.ao.quantization.fake_quantize import (
    default_fixed_qparams_range_0to1_fake_quant,
    default_fixed_qparams_range_neg1to1_fake_quant,
)
from rushlight.ao.quantization.stubs import DeQuantStub, QuantStub
from rushlight.ao.quantization.utils import get_combined_dict
from rushlight.nn import functional as F
from rushlight.nn import modules as nn
from rushlight.nn.modules.linear import NonDynamicallyQuantizableLinear
from rushlight.nn.modules.module import Module
from rushlight.nn.utils.parametrize import type_before_parametrizations
from rushlight.ops.packet import namespaces

__all__ = [
    "DEFAULT_DYNAMIC_QUANT_MODULE_MAPPINGS", "DEFAULT_FLOAT_TO_QUANTIZED_OPERATOR_MAPPINGS",
    "DEFAULT_MODULE_TO_ACT_POST_PROCESS", "DEFAULT_QAT_MODULE_MAPPINGS", "DEFAULT_STATIC_QUANT_MODULE_MAPPINGS",
    "get_default_compare_output_module_list", "get_default_dynamic_quant_module_mappings",
    "get_default_float_to_quantized_operator_mappings", "get_default_qat_module_mappings",
    "get_default_qconfig_propagation_list", "get_default_static_quant_module_mappings", "get_dynamic_quant_module_class",
    "get_embedding_qat_module_mappings", "get_embedding_static_quant_module_mappings", "get_quantized_operator",
    "get_static_quant_module_class", "no_observer_set",
]  # fmt: skip

quantized = namespaces.quantized

_SAME_NAME = (
    "BatchNorm2d", "BatchNorm3d", "Conv1d", "Conv2d", "Conv3d", "ConvTranspose1d", "ConvTranspose2d", "ConvTranspose3d",
    "Dropout", "ELU", "Embedding", "EmbeddingBag", "GroupNorm", "Hardswish", "InstanceNorm1d", "InstanceNorm2d",
    "InstanceNorm3d", "LayerNorm", "LeakyReLU", "Linear", "PReLU", "ReLU6",
)  # fmt: skip
_FUSED = ("BNReLU2d", "BNReLU3d", "ConvReLU1d", "ConvReLU2d", "ConvReLU3d", "LinearReLU")
_TRAINED_FUSED = (
    "ConvBn1d", "ConvBn2d", "ConvBn3d", "ConvBnReLU1d", "ConvBnReLU2d", "ConvBnReLU3d", "ConvReLU2d", "ConvReLU3d",
    "LinearBn1d", "LinearReLU",
)  # fmt: skip

DEFAULT_STATIC_QUANT_MODULE_MAPPINGS: dict[Callable, Any] = {
    QuantStub: nnq.Quantize, DeQuantStub: nnq.DeQuantize, nnq.FloatFunctional: nnq.QFunctional,
    **{getattr(nn, name): getattr(nnq, name) for name in _SAME_NAME},
    NonDynamicallyQuantizableLinear: nnq.Linear,
    **{getattr(nni, name): getattr(nniq, name) for name in _FUSED},
    **{getattr(nniqat, f"ConvBn{rank}d"): getattr(nnq, f"Conv{rank}d") for rank in (1, 2, 3)},
    **{getattr(nniqat, f"ConvBnReLU{rank}d"): getattr(nniq, f"ConvReLU{rank}d") for rank in (1, 2, 3)},
    **{getattr(nniqat, name): getattr(nniq, name) for name in ("ConvReLU2d", "ConvReLU3d", "LinearReLU")},
    nniqat.LinearBn1d: nnq.Linear, nnqat.Linear: nnq.Linear, nnqat.Conv2d: nnq.Conv2d, nnqat.Conv3d: nnq.Conv3d,
}  # fmt: skip
"""Float layers with observers, and those that trained with fake quantization, to quantized ones."""

DEFAULT_QAT_MODULE_MAPPINGS: dict[Callable, Any] = {
    nn.Conv2d: nnqat.Conv2d, nn.Conv3d: nnqat.Conv3d, nn.Linear: nnqat.Linear, NonDynamicallyQuantizableLinear: nnqat.Linear,
    **{getattr(nni, name): getattr(nniqat, name) for name in _TRAINED_FUSED},
}  # fmt: skip
"""Float layers to those that train with fake quantization."""

DEFAULT_DYNAMIC_QUANT_MODULE_MAPPINGS: dict[Callable, Any] = {
    **{getattr(nn, name): getattr(nnqd, name) for name in ("GRU", "GRUCell", "LSTM", "LSTMCell", "Linear", "RNNCell")},
    nnqatd.Linear: nnqd.Linear, NonDynamicallyQuantizableLinear: nnqd.Linear, nni.LinearReLU: nniqd.LinearReLU,
    nn.EmbeddingBag: nnq.EmbeddingBag, nn.Embedding: nnq.Embedding,
}  # fmt: skip
"""Float layers to those of float tensors with quantized weights."""

DEFAULT_FLOAT_TO_QUANTIZED_OPERATOR_MAPPINGS: dict[Callable | str, Callable] = {
    F.elu: quantized.elu, F.hardswish: quantized.hardswish, F.instance_norm: quantized.instance_norm,
    F.layer_norm: quantized.layer_norm, F.leaky_relu: quantized.leaky_relu, F.dropout: quantized.dropout,
}  # fmt: skip

DEFAULT_MODULE_TO_ACT_POST_PROCESS: dict[Callable, Callable] = {
    nn.Hardsigmoid: default_fixed_qparams_range_0to1_fake_quant, nn.Sigmoid: default_fixed_qparams_range_0to1_fake_quant,
    nn.Softmax: default_fixed_qparams_range_0to1_fake_quant, nn.Tanh: default_fixed_qparams_range_neg1to1_fake_quant,
}  # fmt: skip
"""Layers whose results have a known range, with its fake quantization."""


def no_observer_set() -> set[Any]:
    """Classes that consist of observed modules and need no observer of their own: none here."""
    return set()


def get_default_static_quant_module_mappings() -> dict[Callable, Any]:
    """Return a copy of the mapping of static quantization."""
    return dict(DEFAULT_STATIC_QUANT_MODULE_MAPPINGS)


def get_embedding_static_quant_module_mappings() -> dict[Callable, Any]:
    """Return the mapping of static quantization, with embeddings that trained with fake quantization."""
    return {**DEFAULT_STATIC_QUANT_MODULE_MAPPINGS, nnqat.EmbeddingBag: nnq.EmbeddingBag, nnqat.Embedding: nnq.Embedding}


def get_default_qat_module_mappings() -> dict[Callable, Any]:
    """Return a copy of the mapping of quantization-aware training."""
    return dict(DEFAULT_QAT_MODULE_MAPPINGS)


def get_embedding_qat_module_mappings() -> dict[Callable, Any]:
    """Return the mapping of quantization-aware training, with embeddings."""
    return {**DEFAULT_QAT_MODULE_MAPPINGS, nn.EmbeddingBag: nnqat.EmbeddingBag, nn.Embedding: nnqat.Embedding}


def get_default_dynamic_quant_module_mappings() -> dict[Callable, Any]:
    """Return the mapping of dynamic quantization."""
    return dict(DEFAULT_DYNAMIC_QUANT_MODULE_MAPPINGS)


def _class_for(mapping: dict, more: dict | None, kind: Callable) -> Any:
    found = get_combined_dict(mapping, more or {}).get(kind)
    if found is None:
        raise AssertionError(f"Floating point module class {kind} does not have a corresponding quantized module class")
    return found


def get_static_quant_module_class(
    float_module_class: Callable, additional_static_quant_mapping: dict[Callable, Any] | None = None, is_reference: bool = False
) -> Any:
    """Return the class that replaces another in static quantization. AssertionError if there is none."""
    if is_reference:
        raise NotImplementedError("there are no reference modules here: call it with is_reference=False")
    return _class_for(DEFAULT_STATIC_QUANT_MODULE_MAPPINGS, additional_static_quant_mapping, float_module_class)


def get_dynamic_quant_module_class(
    float_module_class: Callable, additional_dynamic_quant_mapping: dict[Callable, Any] | None = None
) -> Any:
    """Return the class that replaces another in dynamic quantization. AssertionError if there is none."""
    return _class_for(DEFAULT_DYNAMIC_QUANT_MODULE_MAPPINGS, additional_dynamic_quant_mapping, float_module_class)


def get_default_qconfig_propagation_list() -> set[Callable]:
    """Return the classes of modules that can have observers."""
    mappings = (
        DEFAULT_STATIC_QUANT_MODULE_MAPPINGS, DEFAULT_QAT_MODULE_MAPPINGS, DEFAULT_DYNAMIC_QUANT_MODULE_MAPPINGS,
    )  # fmt: skip
    return {kind for mapping in mappings for kind in mapping} | {nn.Sequential}


def get_default_compare_output_module_list() -> set[Callable]:
    """Return the classes whose results are compared between a float and a quantized model."""
    mappings = (
        DEFAULT_STATIC_QUANT_MODULE_MAPPINGS, DEFAULT_QAT_MODULE_MAPPINGS, DEFAULT_DYNAMIC_QUANT_MODULE_MAPPINGS,
    )  # fmt: skip
    kinds = {kind for mapping in mappings for kind in mapping.values()}
    return kinds | set(DEFAULT_STATIC_QUANT_MODULE_MAPPINGS) | set(DEFAULT_DYNAMIC_QUANT_MODULE_MAPPINGS)


def get_default_float_to_quantized_operator_mappings() -> dict[Callable | str, Callable]:
    """Return a copy of the mapping of functions."""
    return dict(DEFAULT_FLOAT_TO_QUANTIZED_OPERATOR_MAPPINGS)


def get_quantized_operator(float_op: Callable | str) -> Callable:
    """Return the quantized operator for a function. AssertionError if there is none."""
    found = DEFAULT_FLOAT_TO_QUANTIZED_OPERATOR_MAPPINGS.get(float_op)
    if found is None:
        raise AssertionError(f"Operator {float_op} does not have corresponding quantized op")
    return found


def _get_special_act_post_process(module: Module) -> Callable | None:
    return DEFAULT_MODULE_TO_ACT_POST_PROCESS.get(type_before_parametrizations(module))


def _has_special_act_post_process(module: Module) -> bool:
    return module.training and type(module) in DEFAULT_MODULE_TO_ACT_POST_PROCESS
