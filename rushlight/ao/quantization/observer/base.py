"""The base of observers: creation with preset arguments, and scales from a range of numbers."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import partial
from typing import Any

from rushlight.ao.quantization.utils import calculate_qmin_qmax, check_min_max_valid, validate_qmin_qmax
from rushlight.core.dtype import (
    dtype,
    float8_e4m3fn,
    float8_e5m2,
    float32,
    int8,
    int16,
    int32,
    int64,
    qint8,
    qint32,
    quint4x2,
    quint8,
    uint8,
    uint16,
)
from rushlight.core.qscheme import (
    per_channel_affine,
    per_channel_affine_float_qparams,
    per_channel_symmetric,
    per_tensor_affine,
    per_tensor_symmetric,
    qscheme,
)
from rushlight.core.tensor import Tensor
from rushlight.jit.decorators import export
from rushlight.nn.modules.module import Module
from rushlight.ops.construct import tensor
from rushlight.ops.packet import namespaces

aten = namespaces.namespace("aten")
EPS = 2.0**-23  # float32's epsilon, and the smallest scale
_SCHEMES = (
    per_tensor_affine, per_tensor_symmetric, per_channel_affine, per_channel_symmetric, per_channel_affine_float_qparams,
)  # fmt: skip
_DTYPES = (qint8, quint8, quint4x2, qint32, int8, uint8, int16, int32, float8_e5m2, float8_e4m3fn, uint16)


class _PartialWrapper:
    """A class or function with preset arguments: `Observer.with_args(dtype=qint8)`. A call creates an object.

    Arguments of `with_callable_args` are computed for each object.
    """

    def __init__(self, p: Callable) -> None:
        self.p = p
        self.callable_args: dict[str, Callable] = {}

    def __call__(self, *args: Any, **keywords: Any) -> Any:
        made = {name: make() for name, make in self.callable_args.items() if name not in keywords}
        return self.p(*args, **keywords, **made)

    def __repr__(self) -> str:
        return repr(self.p) + repr(self.callable_args)

    def with_args(self, **kwargs: Any) -> _PartialWrapper:
        """Return the same with more preset arguments."""
        return _with_args(self, **kwargs)

    def with_callable_args(self, **kwargs: Callable) -> _PartialWrapper:
        """Return the same with functions that compute arguments."""
        made = _PartialWrapper(self.p)
        made.callable_args = {**self.callable_args, **kwargs}
        return made


def _with_args(cls_or_self: Callable, **kwargs: Any) -> _PartialWrapper:
    """Preset more arguments of a class, or of one with arguments."""
    return _PartialWrapper(partial(cls_or_self, **kwargs))


def _with_callable_args(cls_or_self: Callable, **kwargs: Callable) -> _PartialWrapper:
    """Return a class with functions that compute arguments."""
    return _PartialWrapper(partial(cls_or_self)).with_callable_args(**kwargs)


def factory_kwargs_of(given: dict | None) -> dict:
    """Return device and dtype for the tensors of an observer."""
    return {name: value for name, value in (given or {}).items() if name in ("device", "dtype") and value is not None}


class ObserverBase(Module):
    """A module that observes the tensors passed to it, and computes the scale and zero point to quantize them.

    Subclasses define `forward(x)`, which returns `x`, and `calculate_qparams()`.

    Args:
        dtype: what tensors are quantized to.
        is_dynamic: whether scales are found again for every tensor while the quantized model runs.
    """

    def __init__(self, dtype: dtype, is_dynamic: bool = False) -> None:
        if type(self).forward is Module.forward or type(self).calculate_qparams is ObserverBase.calculate_qparams:
            raise TypeError(
                f"Can't instantiate abstract class {type(self).__name__}: define forward and calculate_qparams in it"
            )
        super().__init__()
        self.dtype = dtype
        self.is_dynamic = is_dynamic

    def calculate_qparams(self, **kwargs: Any) -> tuple[Tensor, Tensor]:
        """Scale and zero point."""
        raise NotImplementedError

    with_args = classmethod(_with_args)
    with_callable_args = classmethod(_with_callable_args)


class UniformQuantizationObserverBase(ObserverBase):
    """An observer that computes scale and zero point from minima and maxima.

    Args:
        dtype: quint8, qint8, qint32, quint4x2, or a plain integer dtype.
        qscheme: `per_tensor_affine`, `per_channel_symmetric`, and so on.
        reduce_range: leave one bit out, so that sums of two products fit 16 bits.
        quant_min, quant_max: the range of integers; by default the dtype's.
        factory_kwargs: device and dtype of the buffers.
        eps: the smallest scale.
    """

    _version = 3
    eps: Tensor

    def __init__(
        self, dtype: dtype = quint8, qscheme: qscheme = per_tensor_affine, reduce_range: bool = False,
        quant_min: int | None = None, quant_max: int | None = None, factory_kwargs: dict | None = None, eps: float = EPS,
        is_dynamic: bool = False, **kwargs: Any,
    ) -> None:  # fmt: skip
        super().__init__(dtype=dtype, is_dynamic=is_dynamic, **kwargs)
        self.qscheme = qscheme
        if reduce_range:
            warnings.warn(
                "Please use quant_min and quant_max to specify the range for observers. reduce_range will be deprecated in a "
                "future release of PyTorch.",
                stacklevel=2,
            )
        self.reduce_range = reduce_range
        self.register_buffer("eps", tensor([eps], **factory_kwargs_of(factory_kwargs)))
        if qscheme not in _SCHEMES:
            raise AssertionError(f"Default Observer only works for the schemes {_SCHEMES}, got {qscheme}")
        if dtype not in _DTYPES:
            raise AssertionError(f"Default Observer only works for {_DTYPES} data type, got {dtype}")
        self.has_customized_qrange = quant_min is not None and quant_max is not None
        if self.has_customized_qrange:
            validate_qmin_qmax(quant_min, quant_max)
        self.quant_min, self.quant_max = calculate_qmin_qmax(
            quant_min, quant_max, self.has_customized_qrange, dtype, reduce_range
        )

    def _load_from_state_dict(
        self, state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs
    ) -> None:
        version = local_metadata.get("version")
        if version is None or version == 1:
            state_dict[prefix + "eps"] = tensor([EPS])
        super()._load_from_state_dict(state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs)

    def _calculate_qparams(self, min_val: Tensor, max_val: Tensor) -> tuple[Tensor, Tensor]:
        """Return scales and zero points, (channels,) or (1,), for minima and maxima; 1 and 0 before any observation."""
        if not check_min_max_valid(min_val, max_val):
            return tensor([1.0], device=min_val.device), tensor([0], device=min_val.device)
        low, high = min_val.clamp(max=0), max_val.clamp(min=0)
        count = float(self.quant_max - self.quant_min)
        zero_point = aten.zeros.default(low.size(), dtype=int64, device=low.device)
        if self.qscheme in (per_tensor_symmetric, per_channel_symmetric):
            scale = aten.maximum.default(aten.maximum.default(-low, high) / (count / 2), self.eps)
            zero_point = zero_point + self._middle()
        elif self.qscheme is per_channel_affine_float_qparams:
            scale = (max_val - min_val) / count
            scale = scale.where(scale > self.eps, aten.ones_like.default(scale))
            zero_point = -1 * min_val / scale
        else:
            scale = aten.maximum.default((high - low) / count, self.eps)
            zero_point = (self.quant_min - aten.round.default(low / scale).to(int32)).clamp(self.quant_min, self.quant_max)
        return scale.reshape(-1).to(float32), zero_point.reshape(-1)

    def _middle(self) -> int:
        """Return the zero point of a symmetric range."""
        if self.dtype in (quint8, uint8):
            return (self.quant_min + self.quant_max) // 2 if self.has_customized_qrange else 128
        return 2**15 if self.dtype is uint16 else 0

    @export
    def reset_min_max_vals(self):
        """Forget all observations."""
        raise NotImplementedError("Cannot reset min/max values in the given observer.")
