"""`torch.ao.quantization.qconfig`: the observers, or fake quantization, of activations and weights."""

from __future__ import annotations

import warnings
from collections import namedtuple
from typing import Any

from rushlight.ao.quantization.fake_quantize import (
    FakeQuantize,
    FakeQuantizeBase,
    FusedMovingAvgObsFakeQuantize,
    default_dynamic_fake_quant,
    default_embedding_fake_quant,
    default_embedding_fake_quant_4bit,
    default_fake_quant,
    default_fused_act_fake_quant,
    default_fused_per_channel_wt_fake_quant,
    default_fused_wt_fake_quant,
    default_per_channel_weight_fake_quant,
    default_weight_fake_quant,
    fused_per_channel_wt_fake_quant_range_neg_127_to_127,
    fused_wt_fake_quant_range_neg_127_to_127,
)
from rushlight.ao.quantization.observer import (
    HistogramObserver,
    MinMaxObserver,
    MovingAverageMinMaxObserver,
    MovingAveragePerChannelMinMaxObserver,
    NoopObserver,
    PerChannelMinMaxObserver,
    PlaceholderObserver,
    ReuseInputObserver,
    _PartialWrapper,
    default_debug_observer,
    default_dynamic_quant_observer,
    default_float_qparams_observer,
    default_float_qparams_observer_4bit,
    default_observer,
    default_per_channel_weight_observer,
    default_placeholder_observer,
    default_reuse_input_observer,
    default_weight_observer,
    per_channel_weight_observer_range_neg_127_to_127,
    weight_observer_range_neg_127_to_127,
)
from rushlight.core.dtype import float16, float32, qint8
from rushlight.nn import ConvTranspose1d, ConvTranspose2d, ConvTranspose3d, Identity
from rushlight.nn.modules.module import Module

__all__ = [
    "QConfig", "QConfigAny", "QConfigDynamic", "default_activation_only_qconfig", "default_debug_qconfig",
    "default_dynamic_qat_qconfig", "default_dynamic_qconfig", "default_embedding_qat_qconfig",
    "default_embedding_qat_qconfig_4bit", "default_per_channel_qconfig", "default_per_channel_symmetric_qnnpack_qat_qconfig",
    "default_per_channel_symmetric_qnnpack_qconfig", "default_qat_qconfig", "default_qat_qconfig_v2", "default_qconfig",
    "default_quint8_weight_qconfig", "default_reuse_input_qconfig", "default_symmetric_qnnpack_qat_qconfig",
    "default_symmetric_qnnpack_qconfig", "default_weight_only_qconfig", "float16_dynamic_qconfig", "float16_static_qconfig",
    "float_qparams_weight_only_qconfig", "float_qparams_weight_only_qconfig_4bit", "get_default_qat_qconfig",
    "get_default_qconfig", "per_channel_dynamic_qconfig", "qconfig_equals",
]  # fmt: skip

_BACKENDS = ("fbgemm", "x86", "qnnpack", "onednn")


def _refuse_modules(name: str, *constructors: Any) -> None:
    if any(isinstance(each, Module) for each in constructors):
        raise ValueError(
            f"{name} received observer instance, please pass observer class instead. Use MyObserver.with_args(x=1) to "
            "override arguments to constructor if needed"
        )


class QConfig(namedtuple("QConfig", ["activation", "weight"])):
    """Classes of observers, or of fake quantization, for activations and for weights; arguments by `with_args`.

    `QConfig(activation=MinMaxObserver.with_args(dtype=torch.quint8), weight=default_weight_observer)`. ValueError for observer
    instances.
    """

    __slots__ = ()

    def __new__(cls, activation: Any, weight: Any) -> QConfig:
        _refuse_modules("QConfig", activation, weight)
        return super().__new__(cls, activation, weight)


class QConfigDynamic(namedtuple("QConfigDynamic", ["activation", "weight"])):
    """An older form of QConfig for dynamic quantization."""

    __slots__ = ()

    def __new__(cls, activation: Any = Identity, weight: Any = Identity) -> QConfigDynamic:
        warnings.warn(
            "`QConfigDynamic` is going to be deprecated in PyTorch 1.12, please use `QConfig` instead", FutureWarning,
            stacklevel=2,
        )  # fmt: skip
        _refuse_modules("QConfigDynamic", weight)
        return super().__new__(cls, activation, weight)


QConfigAny = QConfig | None

default_qconfig = QConfig(default_observer, default_weight_observer)
default_debug_qconfig = QConfig(default_debug_observer, default_weight_observer)
default_per_channel_qconfig = QConfig(default_observer, default_per_channel_weight_observer)
default_dynamic_qconfig = QConfig(default_dynamic_quant_observer, default_weight_observer)
float16_dynamic_qconfig = QConfig(
    PlaceholderObserver.with_args(dtype=float16, is_dynamic=True), PlaceholderObserver.with_args(dtype=float16)
)
float16_static_qconfig = QConfig(PlaceholderObserver.with_args(dtype=float16), PlaceholderObserver.with_args(dtype=float16))
per_channel_dynamic_qconfig = QConfig(default_dynamic_quant_observer, default_per_channel_weight_observer)
float_qparams_weight_only_qconfig = QConfig(default_placeholder_observer, default_float_qparams_observer)
float_qparams_weight_only_qconfig_4bit = QConfig(default_placeholder_observer, default_float_qparams_observer_4bit)
default_qat_qconfig = QConfig(default_fake_quant, default_weight_fake_quant)
default_dynamic_qat_qconfig = QConfig(default_dynamic_fake_quant, default_weight_fake_quant)
default_weight_only_qconfig = QConfig(Identity, default_weight_fake_quant)
default_activation_only_qconfig = QConfig(default_fake_quant, Identity)
default_qat_qconfig_v2 = QConfig(default_fused_act_fake_quant, default_fused_wt_fake_quant)
default_reuse_input_qconfig = QConfig(default_reuse_input_observer, NoopObserver)
default_embedding_qat_qconfig = QConfig(NoopObserver.with_args(dtype=float32), default_embedding_fake_quant)
default_embedding_qat_qconfig_4bit = QConfig(NoopObserver.with_args(dtype=float32), default_embedding_fake_quant_4bit)
default_quint8_weight_qconfig = QConfig(HistogramObserver, MinMaxObserver)

_SIGNED_HISTOGRAM = HistogramObserver.with_args(dtype=qint8, reduce_range=False, eps=2**-12)
_SIGNED_AVERAGE = FusedMovingAvgObsFakeQuantize.with_args(
    observer=MovingAverageMinMaxObserver, quant_min=-128, quant_max=127, dtype=qint8, reduce_range=False, eps=2**-12
)
default_symmetric_qnnpack_qconfig = QConfig(_SIGNED_HISTOGRAM, weight_observer_range_neg_127_to_127)
default_per_channel_symmetric_qnnpack_qconfig = QConfig(_SIGNED_HISTOGRAM, per_channel_weight_observer_range_neg_127_to_127)
default_symmetric_qnnpack_qat_qconfig = QConfig(_SIGNED_AVERAGE, fused_wt_fake_quant_range_neg_127_to_127)
default_per_channel_symmetric_qnnpack_qat_qconfig = QConfig(
    _SIGNED_AVERAGE, fused_per_channel_wt_fake_quant_range_neg_127_to_127
)


def _check_backend(backend: str, version: int, versions: tuple[int, ...], name: str) -> None:
    if backend not in _BACKENDS:
        raise AssertionError(f"backend: {backend} not supported. backend must be one of {list(_BACKENDS)}")
    if version not in versions:
        expected = " or ".join(map(str, versions))
        raise AssertionError(f"Version number: {version} in {name} is not supported. Version number must be {expected}")


def get_default_qconfig(backend: str = "x86", version: int = 0) -> QConfig:
    """Return the default qconfig: histograms of activations, and a scale per channel for weights (one scale for "qnnpack").

    With "x86" and "fbgemm" activations have 7 bits, which keeps sums of two products within 16 bits. AssertionError for an
    unknown backend.
    """
    _check_backend(backend, version, (0,), "get_default_qconfig")
    weight = default_weight_observer if backend == "qnnpack" else default_per_channel_weight_observer
    return QConfig(HistogramObserver.with_args(reduce_range=backend in ("fbgemm", "x86")), weight)


def get_default_qat_qconfig(backend: str = "x86", version: int = 1) -> QConfig:
    """Return the default QAT qconfig: fake quantization with moving averages, and a scale per channel for weights (one scale
    for "qnnpack").

    Version 1 uses one fused operator, version 0 an observer and a rounding. AssertionError for an unknown backend.
    """
    _check_backend(backend, version, (0, 1), "get_default_qat_qconfig")
    kind = FusedMovingAvgObsFakeQuantize if version == 1 else FakeQuantize
    reduced = {} if backend == "onednn" else {"reduce_range": backend != "qnnpack"}
    activation = kind.with_args(observer=MovingAverageMinMaxObserver, quant_min=0, quant_max=255, **reduced)
    if version == 1:
        weights = default_fused_wt_fake_quant, default_fused_per_channel_wt_fake_quant
    else:
        weights = default_weight_fake_quant, default_per_channel_weight_fake_quant
    return QConfig(activation, weights[backend != "qnnpack"])


# Queries


def _assert_valid_qconfig(qconfig: QConfigAny, mod: Module) -> None:
    """Raise AssertionError for a transposed convolution with a scale per channel."""
    if qconfig is None or qconfig.weight is None or not isinstance(mod, ConvTranspose1d | ConvTranspose2d | ConvTranspose3d):
        return
    if isinstance(qconfig.weight(), PerChannelMinMaxObserver | MovingAveragePerChannelMinMaxObserver):
        raise AssertionError(
            "Per channel weight observer is not supported yet for ConvTranspose{n}d: give it a qconfig with one scale, such as "
            "default_qconfig"
        )


def _equal_constructors(one: Any, other: Any) -> bool:
    if not isinstance(one, _PartialWrapper) or not isinstance(other, _PartialWrapper):
        return one == other
    first, second = dict(one.p.keywords), dict(other.p.keywords)
    observers = first.pop("observer", None), second.pop("observer", None)
    return one.p.func == other.p.func and one.p.args == other.p.args and first == second and _equal_constructors(*observers)


def qconfig_equals(q1: QConfigAny, q2: QConfigAny) -> bool:
    """Return whether two configurations make the same observers."""
    if q1 is None or q2 is None:
        return q1 == q2
    return _equal_constructors(q1.activation, q2.activation) and _equal_constructors(q1.weight, q2.weight)


def _activation_is_memoryless(qconfig: QConfig) -> bool:
    """Return whether the observer of activations forgets earlier tensors."""
    found = qconfig.activation()
    if isinstance(found, FakeQuantizeBase) and hasattr(found, "activation_post_process"):
        found = found.activation_post_process
    return getattr(found, "averaging_constant", None) == 1


def _is_reuse_input_qconfig(qconfig: QConfigAny) -> bool:
    """Return whether results keep the scale of the operator's input."""
    return (
        qconfig is not None
        and isinstance(qconfig.activation(), ReuseInputObserver)
        and isinstance(qconfig.weight(), NoopObserver)
    )
