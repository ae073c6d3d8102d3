"""Prepare and quantize models module by module ("eager mode"): `torch.ao.quantization.quantize`.

In: a model whose modules have a `qconfig`, with stubs where tensors are quantized and dequantized. `prepare` adds observers,
the user calls the model on some data, `convert` swaps in quantized modules. `quantize_dynamic` needs neither stubs nor data.
"""

from __future__ import annotations

import copy
import inspect
import warnings
from collections.abc import Callable, Iterable
from typing import Any

from rushlight.ao.nn import quantized as nnq
from rushlight.ao.nn.intrinsic import _FusedModule
from rushlight.ao.quantization.observer import _is_activation_post_process
from rushlight.ao.quantization.qconfig import (
    QConfigAny,
    _activation_is_memoryless,
    _assert_valid_qconfig,
    default_dynamic_qconfig,
    float16_dynamic_qconfig,
    float_qparams_weight_only_qconfig,
    float_qparams_weight_only_qconfig_4bit,
)
from rushlight.ao.quantization.quantization_mappings import (
    _get_special_act_post_process,
    _has_special_act_post_process,
    get_default_dynamic_quant_module_mappings,
    get_default_qat_module_mappings,
    get_default_qconfig_propagation_list,
    get_default_static_quant_module_mappings,
    no_observer_set,
)
from rushlight.ao.quantization.stubs import DeQuantStub, QuantWrapper
from rushlight.ao.quantization.utils import has_no_children_ignoring_parametrizations
from rushlight.core.dtype import dtype, float16, qint8, quint4x2, quint8
from rushlight.core.tensor import Tensor
from rushlight.nn import modules as nn
from rushlight.nn.modules.module import Module
from rushlight.nn.utils.parametrize import type_before_parametrizations

__all__ = [
    "add_quant_dequant", "convert", "get_default_custom_config_dict", "prepare", "prepare_qat", "propagate_qconfig_",
    "quantize", "quantize_dynamic", "quantize_qat", "swap_module",
]  # fmt: skip

is_activation_post_process = _is_activation_post_process


def get_default_custom_config_dict() -> dict[str, dict]:
    """Custom modules that need more than an entry in a mapping: none here."""
    return {"float_to_observed_custom_module_class": {}, "observed_to_quantized_custom_module_class": {}}


# Configurations


def propagate_qconfig_(
    module: Module, qconfig_dict: dict | None = None, prepare_custom_config_dict: dict | None = None
) -> None:
    """Give every module the `qconfig` of its parent, unless it has its own.

    `qconfig_dict` has qconfigs for classes and for names of modules; `prepare_custom_config_dict` may say, as
    "non_traceable_module_name" and "non_traceable_module_class", which modules to leave out.
    """
    custom = prepare_custom_config_dict or {}
    _propagate(module, qconfig_dict or {}, custom, None, "")


def _propagate(module: Module, qconfigs: dict, custom: dict, parent: QConfigAny, prefix: str) -> None:
    found = qconfigs.get(prefix, qconfigs.get(type_before_parametrizations(module), parent))
    found = getattr(module, "qconfig", found)
    _assert_valid_qconfig(found, module)
    module.qconfig = found
    for name, child in module.named_children():
        is_left_out = name in custom.get("non_traceable_module_name", ()) or type(child) in custom.get(
            "non_traceable_module_class", ()
        )
        if not is_left_out:
            _propagate(child, qconfigs, custom, found, f"{prefix}.{name}" if prefix else name)


def _has_qconfig(module: Module) -> bool:
    return getattr(module, "qconfig", None) is not None


def add_quant_dequant(module: Module) -> Module:
    """Return the model with a QuantWrapper around each layer that has a qconfig; the wrapper itself if the model is such a
    layer."""
    if has_no_children_ignoring_parametrizations(module) and getattr(module, "qconfig", None):
        return QuantWrapper(module)
    for name, child in module.named_children():
        module._modules[name] = add_quant_dequant(child)
    return module


# Observers


def _observer_forward_hook(self: Module, input: tuple, output: Tensor) -> Tensor:
    """Passes a module's result to its observer."""
    return self.activation_post_process(output)


def _observer_forward_pre_hook(self: Module, input: tuple) -> Tensor:
    """Passes a module's first argument to its observer."""
    return self.activation_post_process(input[0])


def _insert_observer(module: Module, constructor: Callable | None = None) -> None:
    """Insert an observer of a module's results, `activation_post_process`; of its input if the observer is memoryless."""
    if not _has_qconfig(module) or isinstance(module, DeQuantStub):
        return
    module.add_module("activation_post_process", (constructor or module.qconfig.activation)())
    if _activation_is_memoryless(module.qconfig):
        module.register_forward_pre_hook(_observer_forward_pre_hook, prepend=True)
    else:
        module.register_forward_hook(_observer_forward_hook, prepend=True)


def _add_observer_(module: Module, kinds: Iterable[Callable], non_leaf: Iterable[type], custom: dict[type, type]) -> None:
    for name, child in module.named_children():
        kind = type_before_parametrizations(child)
        if kind is nn.Dropout:
            continue
        if issubclass(kind, nnq.FloatFunctional | nnq.QFunctional):
            if _has_qconfig(child):
                child.activation_post_process = child.qconfig.activation()
        elif isinstance(child, _FusedModule) or kind in non_leaf:
            _insert_observer(child)
        elif _has_special_act_post_process(child):
            _insert_observer(child, _get_special_act_post_process(child))
        elif _has_qconfig(child) and kind in custom:
            observed = custom[kind].from_float(child)
            setattr(module, name, observed)
            if custom[kind] not in no_observer_set():
                _insert_observer(observed)
        else:
            _add_observer_(child, kinds, non_leaf, custom)
    is_leaf = has_no_children_ignoring_parametrizations(module) or hasattr(module, "weight_fake_quant")
    if is_leaf and not isinstance(module, nn.Sequential) and type_before_parametrizations(module) in kinds:
        _insert_observer(module)


def prepare(
    model: Module, inplace: bool = False, allow_list: Iterable[Callable] | None = None,
    observer_non_leaf_module_list: Iterable[type] | None = None, prepare_custom_config_dict: dict | None = None,
) -> Module:  # fmt: skip
    """Return a copy of the model with observers; run it on data before `convert`.

    Args:
        model: modules that are to be quantized have a `qconfig`, or are inside one that has.
        inplace: change the model itself.
        allow_list: the classes of modules that get observers; by default those that can be quantized.
        observer_non_leaf_module_list: classes with submodules that get one as a whole.
        prepare_custom_config_dict: "float_to_observed_custom_module_class", classes with their observed ones.
    """
    custom = (prepare_custom_config_dict or get_default_custom_config_dict()).get("float_to_observed_custom_module_class", {})
    model = model if inplace else copy.deepcopy(model)
    propagate_qconfig_(model)
    if not any(getattr(each, "qconfig", None) for each in model.modules()):
        warnings.warn(
            "None of the submodule got qconfig applied. Make sure you passed correct configuration through `qconfig_dict` or "
            "by assigning the `.qconfig` attribute directly on submodules",
            stacklevel=2,
        )
    kinds = get_default_qconfig_propagation_list() if allow_list is None else allow_list
    _add_observer_(model, kinds, observer_non_leaf_module_list or (), custom)
    return model


def _remove_qconfig(module: Module) -> None:
    """Remove qconfigs and observers."""
    for child in module.children():
        _remove_qconfig(child)
    if hasattr(module, "qconfig"):
        del module.qconfig
    if _is_activation_post_process(getattr(module, "activation_post_process", None)):
        del module.activation_post_process
    for hooks, observing in (
        (module._forward_pre_hooks, _observer_forward_pre_hook), (module._forward_hooks, _observer_forward_hook),
    ):  # fmt: skip
        for key in [key for key, hook in hooks.items() if hook is observing]:
            del hooks[key]


# Quantizing


def swap_module(
    mod: Module, mapping: dict[Callable, Any], custom_module_class_mapping: dict[Callable, Any],
    use_precomputed_fake_quant: bool = False,
) -> Module:  # fmt: skip
    """Return the quantized module for one with a qconfig, with its hooks; the module itself if the mapping lacks it."""
    kind = type_before_parametrizations(mod)
    if not _has_qconfig(mod):
        return mod
    if kind in custom_module_class_mapping:
        made = custom_module_class_mapping[kind].from_observed(mod)
    elif kind in mapping:
        build = mapping[kind].from_float
        takes_flag = "use_precomputed_fake_quant" in inspect.signature(build).parameters
        made = build(mod, use_precomputed_fake_quant=use_precomputed_fake_quant) if takes_flag else build(mod)
    else:
        return mod
    for hook in mod._forward_pre_hooks.values():
        made.register_forward_pre_hook(hook)
    for hook in mod._forward_hooks.values():
        if hook is not _observer_forward_hook:
            made.register_forward_hook(hook)
    return made


def _convert(module: Module, mapping: dict, custom: dict, use_precomputed_fake_quant: bool) -> None:
    made = {}
    for name, child in module.named_children():
        if not isinstance(child, _FusedModule) and type_before_parametrizations(child) not in custom:
            _convert(child, mapping, custom, use_precomputed_fake_quant)
        made[name] = swap_module(child, mapping, custom, use_precomputed_fake_quant)
    module._modules.update(made)


def convert(
    module: Module, mapping: dict[Callable, Any] | None = None, inplace: bool = False, remove_qconfig: bool = True,
    is_reference: bool = False, convert_custom_config_dict: dict | None = None, use_precomputed_fake_quant: bool = False,
) -> Module:  # fmt: skip
    """Return a copy of a prepared model with quantized modules.

    Args:
        module: the model, whose observers have seen data.
        mapping: quantized classes by float ones; by default those of static quantization.
        inplace: change the model itself.
        remove_qconfig: take off qconfigs and observers.
        is_reference: NotImplementedError if True.
        convert_custom_config_dict: "observed_to_quantized_custom_module_class", observed classes with their quantized ones.
        use_precomputed_fake_quant: don't show weights to their fake quantization again.
    """
    if is_reference:
        raise NotImplementedError("convert: there are no reference modules here: call it with is_reference=False")
    custom = (convert_custom_config_dict or get_default_custom_config_dict()).get(
        "observed_to_quantized_custom_module_class", {}
    )
    module = module if inplace else copy.deepcopy(module)
    mapping = get_default_static_quant_module_mappings() if mapping is None else mapping
    _convert(module, mapping, custom, use_precomputed_fake_quant)
    if remove_qconfig:
        _remove_qconfig(module)
    return module


def quantize(
    model: Module, run_fn: Callable, run_args: Iterable, mapping: dict[Callable, Any] | None = None, inplace: bool = False
) -> Module:
    """Apply `prepare`, `run_fn(model, *run_args)`, which shows it data, and `convert`."""
    model = model if inplace else copy.deepcopy(model)
    model.eval()
    prepare(model, inplace=True)
    run_fn(model, *run_args)
    return convert(model, mapping, inplace=True)


_RECURRENT = (nn.LSTM, nn.GRU, nn.LSTMCell, nn.RNNCell, nn.GRUCell)
_DYNAMIC: dict[dtype, tuple[Any, tuple[type, ...]]] = {
    qint8: (default_dynamic_qconfig, (nn.Linear, *_RECURRENT)),
    float16: (float16_dynamic_qconfig, (nn.Linear, *_RECURRENT)),
    quint8: (float_qparams_weight_only_qconfig, (nn.EmbeddingBag, nn.Embedding)),
    quint4x2: (float_qparams_weight_only_qconfig_4bit, (nn.EmbeddingBag,)),
}


def quantize_dynamic(
    model: Module, qconfig_spec: dict | set | None = None, dtype: dtype = qint8, mapping: dict[Callable, Any] | None = None,
    inplace: bool = False,
) -> Module:  # fmt: skip
    """Return a copy of the model with quantized weights, whose activations are quantized while it runs.

    Args:
        model: a float model.
        qconfig_spec: qconfigs by classes or names of modules, or a set of those; by default linear and recurrent layers for
            qint8 and float16, embeddings for quint8, and bags of them for quint4x2.
        dtype: qint8, float16, quint8 or quint4x2.
        mapping: quantized classes by float ones; by default those of dynamic quantization.
        inplace: change the model itself.

    ValueError or RuntimeError for another dtype without a qconfig for each class.
    """
    if qconfig_spec is None:
        if dtype not in _DYNAMIC:
            raise ValueError(f"Don't know how to quantize with default settings for {dtype}. Provide full qconfig please")
        qconfig, kinds = _DYNAMIC[dtype]
        qconfig_spec = dict.fromkeys(kinds, qconfig)
    elif isinstance(qconfig_spec, set):
        if dtype not in _DYNAMIC:
            raise RuntimeError(f"Unknown dtype specified for quantize_dynamic: {dtype}")
        qconfig_spec = dict.fromkeys(qconfig_spec, _DYNAMIC[dtype][0])
    model = model if inplace else copy.deepcopy(model)
    model.eval()
    propagate_qconfig_(model, qconfig_spec)
    return convert(model, get_default_dynamic_quant_module_mappings() if mapping is None else mapping, inplace=True)


def prepare_qat(model: Module, mapping: dict[Callable, Any] | None = None, inplace: bool = False) -> Module:
    """Return a copy of the model with fake-quantized weights and activations for training, followed by `convert`.

    AssertionError unless it is in training mode.
    """
    if not model.training:
        raise AssertionError("prepare_qat only works on models in training mode: call model.train()")
    mapping = get_default_qat_module_mappings() if mapping is None else mapping
    model = model if inplace else copy.deepcopy(model)
    propagate_qconfig_(model)
    convert(model, mapping=mapping, inplace=True, remove_qconfig=False)
    return prepare(model, observer_non_leaf_module_list=set(mapping.values()), inplace=True)


def quantize_qat(model: Module, run_fn: Callable, run_args: Iterable, inplace: bool = False) -> Module:
    """Apply `prepare_qat`, `run_fn(model, *run_args)`, which trains it, and `convert`."""
    model = model if inplace else copy.deepcopy(model)
    model.train()
    prepare_qat(model, inplace=True)
    run_fn(model, *run_args)
    return convert(model, inplace=True)


def _get_observer_dict(mod: Module, target_dict: dict[str, Module], prefix: str = "") -> None:
    """Fill a dict with a model's observers, by name."""
    for name, each in mod.named_modules(prefix=prefix):
        if name.endswith("activation_post_process") and name.count("activation_post_process") == 1:
            target_dict[name] = each
