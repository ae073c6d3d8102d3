"""Fuse a model's layers, given by name: `torch.ao.quantization.fuse_modules`."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from typing import Any

from rushlight.ao.quantization.fuser_method_mappings import get_fuser_method
from rushlight.ao.quantization.utils import getattr_from_fqn
from rushlight.nn.modules.linear import Identity
from rushlight.nn.modules.module import Module
from rushlight.nn.utils.parametrize import type_before_parametrizations

__all__ = ["fuse_known_modules", "fuse_modules", "fuse_modules_qat"]

Names = Sequence[str] | Sequence[Sequence[str]]


def fuse_known_modules(
    mod_list: Sequence[Module], is_qat: bool, additional_fuser_method_mapping: dict | None = None
) -> list[Module]:
    """Return the fused module, and an Identity for each other layer. Hooks of the first and the last layer are moved to it."""
    kinds = tuple(type_before_parametrizations(each) for each in mod_list)
    fused = get_fuser_method(kinds, additional_fuser_method_mapping)(is_qat, *mod_list)
    for hook in mod_list[0]._forward_pre_hooks.values():
        fused.register_forward_pre_hook(hook)
    mod_list[0]._forward_pre_hooks.clear()
    for hook in mod_list[-1]._forward_hooks.values():
        fused.register_forward_hook(hook)
    mod_list[-1]._forward_hooks.clear()
    others = [Identity() for _ in mod_list[1:]]
    for each in others:
        each.training = mod_list[0].training
    return [fused, *others]


def _set_module(model: Module, name: str, module: Module) -> None:
    path, _, last = name.rpartition(".")
    setattr(getattr_from_fqn(model, path) if path else model, last, module)


def _fuse(
    model: Module, modules_to_fuse: Names, is_qat: bool, inplace: bool, fuser_func: Callable,
    fuse_custom_config_dict: dict | None,
) -> Module:  # fmt: skip
    model = model if inplace else copy.deepcopy(model)
    more = (fuse_custom_config_dict or {}).get("additional_fuser_method_mapping", {})
    is_one = all(isinstance(each, str) for each in modules_to_fuse)
    for names in [modules_to_fuse] if is_one else modules_to_fuse:
        made = fuser_func([getattr_from_fqn(model, name) for name in names], is_qat, more)
        for name, module in zip(names, made, strict=True):
            _set_module(model, name, module)
    return model


def fuse_modules(
    model: Module, modules_to_fuse: Names, inplace: bool = False, fuser_func: Callable = fuse_known_modules,
    fuse_custom_config_dict: dict[str, Any] | None = None,
) -> Module:  # fmt: skip
    """Return the model with fused layers, for evaluation: batch normalisation is folded into the layer before it.

    `modules_to_fuse` is a list of names, [["conv1", "bn1", "relu1"], ["fc", "relu"]], or one such group. The first of a group
    becomes the fused layer, the others Identity. AssertionError for layers that can't be fused, or are not all in one mode.
    """
    return _fuse(model, modules_to_fuse, False, inplace, fuser_func, fuse_custom_config_dict)


def fuse_modules_qat(
    model: Module, modules_to_fuse: Names, inplace: bool = False, fuser_func: Callable = fuse_known_modules,
    fuse_custom_config_dict: dict[str, Any] | None = None,
) -> Module:  # fmt: skip
    """Fuse for quantization-aware training: batch normalisation is kept, and goes on training."""
    return _fuse(model, modules_to_fuse, True, inplace, fuser_func, fuse_custom_config_dict)
