"""`torch.ao.quantization.fuser_method_mappings`: functions that fuse sequences of layers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from rushlight.ao.nn import intrinsic as nni
from rushlight.ao.quantization.utils import MatchAllNode, Pattern, get_combined_dict
from rushlight.nn import modules as nn
from rushlight.nn.modules.module import Module
from rushlight.nn.utils.fusion import fuse_conv_bn_eval, fuse_linear_bn_eval

__all__ = [
    "fuse_conv_bn", "fuse_conv_bn_relu", "fuse_convtranspose_bn", "fuse_linear_bn", "get_fuser_method", "get_fuser_method_new",
]  # fmt: skip

_CONV_BN = {nn.Conv1d: nni.ConvBn1d, nn.Conv2d: nni.ConvBn2d, nn.Conv3d: nni.ConvBn3d}
_CONV_BN_RELU = {nn.Conv1d: nni.ConvBnReLU1d, nn.Conv2d: nni.ConvBnReLU2d, nn.Conv3d: nni.ConvBnReLU3d}
_CONV_RELU = {nn.Conv1d: nni.ConvReLU1d, nn.Conv2d: nni.ConvReLU2d, nn.Conv3d: nni.ConvReLU3d}


def _check_modes(first: Module, *others: Module) -> None:
    if any(each.training != first.training for each in others):
        names = ", ".join(type(each).__name__ for each in (first, *others))
        raise AssertionError(f"{names}: all must be in the same mode (train or eval)")


def _check_norm(bn: Module, features: int) -> None:
    if bn.num_features != features:
        raise AssertionError(f"Output channel must match num_features of {type(bn).__name__}: {features} and {bn.num_features}")
    if not bn.affine:
        raise AssertionError(f"Only support fusing {type(bn).__name__} with affine set to True")
    if not bn.track_running_stats:
        raise AssertionError(f"Only support fusing {type(bn).__name__} with tracking_running_stats set to True")


def _class_of(mapping: dict[type, type], conv: Module, *others: Module) -> type:
    found = mapping.get(type(conv))
    if found is None:
        raise NotImplementedError(f"Cannot fuse modules: {(conv, *others)}")
    return found


def fuse_conv_bn(is_qat: bool, conv: Module, bn: Module) -> Module:
    """Fuse a convolution and batch normalisation: kept as two layers in training, folded otherwise."""
    _check_modes(conv, bn)
    if not is_qat:
        return fuse_conv_bn_eval(conv, bn)
    _check_norm(bn, conv.out_channels)
    return _class_of(_CONV_BN, conv, bn)(conv, bn)


def fuse_conv_bn_relu(is_qat: bool, conv: Module, bn: Module, relu: Module) -> Module:
    """Fuse a convolution, batch normalisation and ReLU."""
    _check_modes(conv, bn, relu)
    if not is_qat:
        return _class_of(_CONV_RELU, conv, bn, relu)(fuse_conv_bn_eval(conv, bn), relu)
    _check_norm(bn, conv.out_channels)
    return _class_of(_CONV_BN_RELU, conv, bn, relu)(conv, bn, relu)


def fuse_linear_bn(is_qat: bool, linear: Module, bn: Module) -> Module:
    """Fuse a linear layer and batch normalisation."""
    _check_modes(linear, bn)
    if not is_qat:
        return fuse_linear_bn_eval(linear, bn)
    _check_norm(bn, linear.out_features)
    return nni.LinearBn1d(linear, bn)


def fuse_convtranspose_bn(is_qat: bool, convt: Module, bn: Module) -> Module:
    """Fold batch normalisation into a transposed convolution. NotImplementedError in quantization-aware training."""
    _check_modes(convt, bn)
    if is_qat:
        raise NotImplementedError("Fusing ConvTranspose+BatchNorm not yet supported in QAT.")
    return fuse_conv_bn_eval(convt, bn, transpose=True)


def _sequential(kind: type) -> Callable:
    """Return a function that puts two layers in a sequence of class `kind`, in training and otherwise."""

    def fuse(is_qat: bool, first: Module, second: Module) -> Module:
        return kind(first, second)

    return fuse


_NORMS = {1: nn.BatchNorm1d, 2: nn.BatchNorm2d, 3: nn.BatchNorm3d}
_CONVS = {1: nn.Conv1d, 2: nn.Conv2d, 3: nn.Conv3d}
_TRANSPOSED = {1: nn.ConvTranspose1d, 2: nn.ConvTranspose2d, 3: nn.ConvTranspose3d}
DEFAULT_OP_LIST_TO_FUSER_METHOD: dict[tuple[type, ...], Callable] = {
    **{(_CONVS[rank], _NORMS[rank]): fuse_conv_bn for rank in (1, 2, 3)},
    **{(_CONVS[rank], _NORMS[rank], nn.ReLU): fuse_conv_bn_relu for rank in (1, 2, 3)},
    **{(_CONVS[rank], nn.ReLU): _sequential(_CONV_RELU[_CONVS[rank]]) for rank in (1, 2, 3)},
    (nn.Linear, nn.BatchNorm1d): fuse_linear_bn,
    (nn.Linear, nn.ReLU): _sequential(nni.LinearReLU),
    (nn.BatchNorm2d, nn.ReLU): _sequential(nni.BNReLU2d),
    (nn.BatchNorm3d, nn.ReLU): _sequential(nni.BNReLU3d),
    **{(_TRANSPOSED[rank], _NORMS[rank]): fuse_convtranspose_bn for rank in (1, 2, 3)},
}
"""Fuses a sequence of layers of these classes: function (is_qat, *layers) -> fused layer."""


def get_fuser_method(op_list: tuple[type, ...], additional_fuser_method_mapping: dict | None = None) -> Callable:
    """Return the function that fuses layers of these classes. AssertionError if there is none."""
    found = get_combined_dict(DEFAULT_OP_LIST_TO_FUSER_METHOD, additional_fuser_method_mapping or {}).get(op_list)
    if found is None:
        raise AssertionError(f"did not find fuser method for: {op_list} ")
    return found


def _patterns(pattern: Any) -> list:
    """Return a pattern, and its variants in which parts are any node."""
    if not isinstance(pattern, tuple | list):
        return [pattern, MatchAllNode]
    found: list[tuple] = [()]
    for part in pattern:
        found = [(*before, each) for before in found for each in _patterns(part)]
    return found


def get_fuser_method_new(op_pattern: Pattern, fuser_method_mapping: dict[Pattern, Callable]) -> Callable:
    """Return the function for a pattern, or for a variant in which parts are any node. AssertionError if there is none."""
    for pattern in _patterns(op_pattern):
        if fuser_method_mapping.get(pattern) is not None:
            return fuser_method_mapping[pattern]
    raise AssertionError(f"did not find fuser method for: {op_pattern} ")
