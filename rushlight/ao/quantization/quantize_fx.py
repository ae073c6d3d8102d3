"""`torch.ao.quantization.quantize_fx`: quantize a model by its graph, without stubs and lists of layers to fuse.

`prepare_fx` traces the model and adds observers, the user calls it on some data, `convert_fx` gives the quantized model.
"""

from __future__ import annotations

import copy
from typing import Any

from rushlight.ao.quantization.fx.configs import ConvertCustomConfig, FuseCustomConfig, PrepareCustomConfig
from rushlight.ao.quantization.fx.convert import convert
from rushlight.ao.quantization.fx.prepare import prepare
from rushlight.ao.quantization.fx.tracing import fuse, traced
from rushlight.ao.quantization.qconfig_mapping import QConfigMapping
from rushlight.fx.graph_module import GraphModule
from rushlight.nn.modules.module import Module

__all__ = ["convert_fx", "fuse_fx", "prepare_fx", "prepare_qat_fx"]


def _refuse(**settings: Any) -> None:
    for name, value in settings.items():
        if value is not None:
            raise NotImplementedError(f"{name} is not supported here: leave it out")


def fuse_fx(
    model: Module, fuse_custom_config: FuseCustomConfig | dict | None = None, backend_config: Any = None
) -> GraphModule:
    """Trace the model, and fuse its consecutive layers as `fuse_modules` does in evaluation mode."""
    _refuse(backend_config=backend_config)
    if model.training:
        raise AssertionError("fuse_fx works on models in evaluation mode: call model.eval()")
    made = traced(copy.deepcopy(model), FuseCustomConfig.of(fuse_custom_config))
    fuse(made, False)
    return made


def _prepare_model(model: Module, qconfig_mapping: Any, example_inputs: Any, custom: Any, is_qat: bool) -> GraphModule:
    if not isinstance(example_inputs, tuple | list):
        raise TypeError(f"example_inputs is a tuple of the model's arguments, got {type(example_inputs).__name__}")
    mapping = QConfigMapping.from_dict(qconfig_mapping) if isinstance(qconfig_mapping, dict) else qconfig_mapping
    if not isinstance(mapping, QConfigMapping):
        raise TypeError(f"qconfig_mapping is a QConfigMapping or a dict, got {type(mapping).__name__}")
    made = traced(copy.deepcopy(model), PrepareCustomConfig.of(custom))
    fuse(made, is_qat)
    return prepare(made, mapping, is_qat)


def prepare_fx(
    model: Module, qconfig_mapping: QConfigMapping | dict[str, Any], example_inputs: tuple[Any, ...],
    prepare_custom_config: PrepareCustomConfig | dict[str, Any] | None = None, _equalization_config: Any = None,
    backend_config: Any = None,
) -> GraphModule:  # fmt: skip
    """Return a traced copy of a model with observers; run it on data before `convert_fx`.

    Args:
        model: in evaluation mode; its control flow may not depend on tensors.
        qconfig_mapping: which part gets which qconfig, as `get_default_qconfig_mapping("x86")`.
        example_inputs: arguments of the model.
        prepare_custom_config: modules that are not traced into, and attributes that stay.

    AssertionError for a model in training mode; NotImplementedError for a backend config or an equalization.
    """
    _refuse(_equalization_config=_equalization_config, backend_config=backend_config)
    if model.training:
        raise AssertionError("prepare_fx works on models in evaluation mode: call model.eval()")
    return _prepare_model(model, qconfig_mapping, example_inputs, prepare_custom_config, False)


def prepare_qat_fx(
    model: Module, qconfig_mapping: QConfigMapping | dict[str, Any], example_inputs: tuple[Any, ...],
    prepare_custom_config: PrepareCustomConfig | dict[str, Any] | None = None, backend_config: Any = None,
) -> GraphModule:  # fmt: skip
    """Return a traced copy of a model with fake-quantized weights and activations for training, followed by `convert_fx`.

    The arguments are those of `prepare_fx`; the model is in training mode.
    """
    _refuse(backend_config=backend_config)
    if not model.training:
        raise AssertionError("prepare_qat_fx works on models in training mode: call model.train()")
    return _prepare_model(model, qconfig_mapping, example_inputs, prepare_custom_config, True)


def convert_fx(
    graph_module: GraphModule, convert_custom_config: ConvertCustomConfig | dict[str, Any] | None = None,
    _remove_qconfig: bool = True, qconfig_mapping: Any = None, backend_config: Any = None,
    keep_original_weights: bool = False,
) -> GraphModule:  # fmt: skip
    """Return a copy of a prepared model with quantized layers and operators; others stay float.

    ValueError for a model that `prepare_fx` did not make; NotImplementedError for other qconfigs than it was prepared with.
    """
    _refuse(qconfig_mapping=qconfig_mapping, backend_config=backend_config)
    if keep_original_weights:
        raise NotImplementedError("convert_fx: keep_original_weights=True is not supported here")
    if not isinstance(graph_module, GraphModule) or "quantization" not in graph_module.meta:
        raise ValueError("convert_fx takes what prepare_fx or prepare_qat_fx gave")
    custom = ConvertCustomConfig.of(convert_custom_config)
    made = convert(copy.deepcopy(graph_module), _remove_qconfig)
    for name in custom.preserved_attributes:
        setattr(made, name, getattr(graph_module, name))
    return made
