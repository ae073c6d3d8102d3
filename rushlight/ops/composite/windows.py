"""Composite window functions such as `hann_window`: a vector that rises to 1 and falls again."""

from __future__ import annotations

import math
from collections.abc import Callable

from rushlight.core.device import device
from rushlight.core.dtype import dtype, get_default_dtype
from rushlight.core.tensor import Tensor
from rushlight.ops.packet import namespaces
from rushlight.ops.registry import composite

aten = namespaces.namespace("aten")
_OPTIONS = "ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None"


def _window(
    name: str, length: int, periodic: bool, kind: dtype | None, where: device | str | None, function: Callable
) -> Tensor:
    """Return `function(position, last)` over the positions of a window; a periodic window is one longer, without the last
    element."""
    kind = kind or get_default_dtype()
    if length < 0:
        raise RuntimeError(f"{name} requires non-negative window_length, got window_length={length}")
    if not kind.is_floating_point:
        raise RuntimeError(f"{name} expects floating point dtypes, got: {kind}")
    if length <= 1:
        return aten.ones.default((length,), dtype=kind, device=where)
    last = length if periodic else length - 1
    position = aten.arange.start_step(0, length, 1, dtype=kind, device=where)
    return function(position, last).to(kind)


def _bartlett(position: Tensor, last: int) -> Tensor:
    return 1 - (position * (2.0 / last) - 1).abs()


def _blackman(position: Tensor, last: int) -> Tensor:
    angle = position * (2 * math.pi / last)
    return aten.cos.default(2 * angle) * 0.08 - aten.cos.default(angle) * 0.5 + 0.42


def _hamming(alpha: float, beta: float) -> Callable:
    return lambda position, last: alpha - aten.cos.default(position * (2 * math.pi / last)) * beta


def _kaiser(beta: float) -> Callable:
    def function(position, last):
        inside = 1 - (position * (2.0 / last) - 1) ** 2
        return aten.i0.default(beta * aten.sqrt.default(inside)) / aten.i0.default(aten.scalar_tensor.default(float(beta)))

    return function


def _define(name: str, function: Callable) -> None:
    @composite(f"{name}(int window_length, *, {_OPTIONS}) -> Tensor")
    def window(window_length, *, dtype=None, layout=None, device=None, pin_memory=None):
        return _window(name, window_length, True, dtype, device, function)

    @composite(f"{name}.periodic(int window_length, bool periodic, *, {_OPTIONS}) -> Tensor")
    def window_periodic(window_length, periodic, *, dtype=None, layout=None, device=None, pin_memory=None):
        return _window(name, window_length, periodic, dtype, device, function)


_define("bartlett_window", _bartlett)
_define("blackman_window", _blackman)
_define("hamming_window", _hamming(0.54, 0.46))
_define("hann_window", _hamming(0.5, 0.5))
_define("kaiser_window", _kaiser(12.0))


@composite(f"hamming_window.periodic_alpha(int window_length, bool periodic, float alpha, *, {_OPTIONS}) -> Tensor")
def hamming_window_alpha(window_length, periodic, alpha, *, dtype=None, layout=None, device=None, pin_memory=None):
    return _window("hamming_window", window_length, periodic, dtype, device, _hamming(alpha, 0.46))


@composite(
    f"hamming_window.periodic_alpha_beta(int window_length, bool periodic, float alpha, float beta, *, {_OPTIONS}) -> Tensor"
)
def hamming_window_alpha_beta(
    window_length, periodic, alpha, beta, *, dtype=None, layout=None, device=None, pin_memory=None
):
    return _window("hamming_window", window_length, periodic, dtype, device, _hamming(alpha, beta))


@composite(f"kaiser_window.beta(int window_length, bool periodic, float beta, *, {_OPTIONS}) -> Tensor")
def kaiser_window_beta(window_length, periodic, beta, *, dtype=None, layout=None, device=None, pin_memory=None):
    return _window("kaiser_window", window_length, periodic, dtype, device, _kaiser(beta))
