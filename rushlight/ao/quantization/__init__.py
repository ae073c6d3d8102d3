"""`torch.ao.quantization`: quantize models. docs/quantization.md shows the calls."""

from __future__ import annotations

from importlib import import_module

from rushlight.core.lazy_module import lazy_names

_HERE = "rushlight.ao.quantization."
_HOMES: dict[str, tuple[str, ...]] = {
    f"{_HERE}fake_quantize": (
        "FakeQuantize", "FakeQuantizeBase", "FixedQParamsFakeQuantize", "FusedMovingAvgObsFakeQuantize",
        "default_affine_fixed_qparams_fake_quant", "default_dynamic_fake_quant", "default_embedding_fake_quant",
        "default_embedding_fake_quant_4bit", "default_fake_quant", "default_fixed_qparams_range_0to1_fake_quant",
        "default_fixed_qparams_range_neg1to1_fake_quant", "default_fused_act_fake_quant",
        "default_fused_per_channel_wt_fake_quant", "default_fused_wt_fake_quant", "default_histogram_fake_quant",
        "default_per_channel_weight_fake_quant", "default_symmetric_fixed_qparams_fake_quant", "default_weight_fake_quant",
        "disable_fake_quant", "disable_observer", "enable_fake_quant", "enable_observer",
        "fused_per_channel_wt_fake_quant_range_neg_127_to_127", "fused_wt_fake_quant_range_neg_127_to_127",
    ),
    f"{_HERE}fusing": ("fuse_known_modules", "fuse_modules", "fuse_modules_qat"),
    f"{_HERE}fuser_method_mappings": (
        "fuse_conv_bn", "fuse_conv_bn_relu", "fuse_convtranspose_bn", "fuse_linear_bn", "get_fuser_method",
        "get_fuser_method_new",
    ),
    f"{_HERE}observer": (
        "FixedQParamsObserver", "HistogramObserver", "MinMaxObserver", "MovingAverageMinMaxObserver",
        "MovingAveragePerChannelMinMaxObserver", "NoopObserver", "ObserverBase", "PerChannelMinMaxObserver",
        "PlaceholderObserver", "RecordingObserver", "ReuseInputObserver", "UniformQuantizationObserverBase",
        "default_affine_fixed_qparams_observer", "default_debug_observer", "default_dynamic_quant_observer",
        "default_fixed_qparams_range_0to1_observer", "default_fixed_qparams_range_neg1to1_observer",
        "default_float_qparams_observer", "default_float_qparams_observer_4bit", "default_histogram_observer",
        "default_observer", "default_per_channel_weight_observer", "default_placeholder_observer",
        "default_reuse_input_observer", "default_symmetric_fixed_qparams_observer", "default_weight_observer",
        "get_observer_state_dict", "load_observer_state_dict", "per_channel_weight_observer_range_neg_127_to_127",
        "weight_observer_range_neg_127_to_127",
    ),
    f"{_HERE}qconfig": (
        "QConfig", "QConfigAny", "QConfigDynamic", "default_activation_only_qconfig", "default_debug_qconfig",
        "default_dynamic_qat_qconfig", "default_dynamic_qconfig", "default_embedding_qat_qconfig",
        "default_embedding_qat_qconfig_4bit", "default_per_channel_qconfig",
        "default_per_channel_symmetric_qnnpack_qat_qconfig", "default_per_channel_symmetric_qnnpack_qconfig",
        "default_qat_qconfig", "default_qat_qconfig_v2", "default_qconfig", "default_quint8_weight_qconfig",
        "default_reuse_input_qconfig", "default_symmetric_qnnpack_qat_qconfig", "default_symmetric_qnnpack_qconfig",
        "default_weight_only_qconfig", "float16_dynamic_qconfig", "float16_static_qconfig",
        "float_qparams_weight_only_qconfig", "float_qparams_weight_only_qconfig_4bit", "get_default_qat_qconfig",
        "get_default_qconfig", "per_channel_dynamic_qconfig", "qconfig_equals",
    ),
    f"{_HERE}qconfig_mapping": ("QConfigMapping", "get_default_qat_qconfig_mapping", "get_default_qconfig_mapping"),
    f"{_HERE}quant_type": ("QuantType",),
    f"{_HERE}quantization_mappings": (
        "get_default_compare_output_module_list", "get_default_dynamic_quant_module_mappings",
        "get_default_float_to_quantized_operator_mappings", "get_default_qat_module_mappings",
        "get_default_qconfig_propagation_list", "get_default_static_quant_module_mappings", "get_dynamic_quant_module_class",
        "get_embedding_qat_module_mappings", "get_embedding_static_quant_module_mappings", "get_quantized_operator",
        "get_static_quant_module_class", "no_observer_set",
    ),
    f"{_HERE}eager": (
        "add_quant_dequant", "convert", "get_default_custom_config_dict", "prepare", "prepare_qat", "propagate_qconfig_",
        "quantize", "quantize_dynamic", "quantize_qat", "swap_module",
    ),
    f"{_HERE}stubs": ("DeQuantStub", "QuantStub", "QuantWrapper"),
    f"{_HERE}weights": (
        "BlockWeightOnlyConfig", "Int4WeightOnlyConfig", "Int8DynamicActivationInt8WeightConfig", "Int8WeightOnlyConfig",
        "int4_weight_only", "int8_dynamic_activation_int8_weight", "int8_weight_only", "quantize_",
    ),
    f"{_HERE}utils": ("MatchAllNode", "Pattern", "get_combined_dict"),
}  # fmt: skip

__all__ = sorted(name for names in _HOMES.values() for name in names)
_PARTS = {f"{_HERE}{part}": () for part in ("fx", "quantize_fx")}
__getattr__, __dir__ = lazy_names(globals(), {**_HOMES, **_PARTS})

# Modules with the same names as functions: import them now, so that a later import does not overwrite the functions.
for _name in ("fuse_modules", "quantize"):
    import_module(_HERE + _name)
    del globals()[_name]
