"""Window functions, as `torch.signal.windows`: rows of `M` numbers whose largest is 1.

All take `M`, the number of points; `sym`, whether the window is symmetric (for filters) or lacks the last point of a
symmetric window of M + 1 points (periodic, for spectra); and `dtype` (float32 or float64), `layout`, `device` and
`requires_grad` of the result. ValueError where `M` is negative, or the dtype or the layout is another.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

from rushlight.core.device import device
from rushlight.core.dtype import dtype, float32, float64, get_default_dtype
from rushlight.core.layout import layout, strided
from rushlight.core.tensor import Tensor
from rushlight.core.thread_state import state
from rushlight.ops.packet import namespaces

aten = namespaces.namespace("aten")
__all__ = [
    "bartlett", "blackman", "cosine", "exponential", "gaussian", "general_cosine", "general_hamming", "hamming", "hann",
    "kaiser", "nuttall",
]  # fmt: skip


class _Options:
    """The requested properties of a window. Errors name the function `name`."""

    def __init__(self, name: str, M: int, dtype: dtype | None, layout: layout, device: device | str | None, grad: bool):
        self.kind = dtype or get_default_dtype()
        self.device, self.requires_grad = state.default_device if device is None else device, grad
        if M < 0:
            raise ValueError(f"{name} requires non-negative window length, got M={M}")
        if layout is not strided:
            raise ValueError(f"{name} is implemented for strided tensors only, got: {layout}")
        if self.kind not in (float32, float64):
            raise ValueError(f"{name} expects float32 or float64 dtypes, got: {self.kind}")

    def ones(self, count: int) -> Tensor:
        """Return the window of no points or of one."""
        return self.finish(aten.ones.default((count,), dtype=self.kind, device=self.device))

    def line(self, start: float, end: float, count: int) -> Tensor:
        """Return evenly spaced numbers."""
        return aten.linspace(start, end, count, dtype=self.kind, device=self.device)

    def finish(self, window: Tensor) -> Tensor:
        """Return the window as a leaf."""
        return window.detach().requires_grad_(self.requires_grad)


def exponential(
    M: int, *, center: float | None = None, tau: float = 1.0, sym: bool = True, dtype: dtype | None = None,
    layout: layout = strided, device: device | str | None = None, requires_grad: bool = False,
) -> Tensor:  # fmt: skip
    """Return exp(-|n - center| / tau). `center` is the middle by default, and may be set for periodic windows only."""
    options = _Options("exponential", M, dtype, layout, device, requires_grad)
    if tau <= 0:
        raise ValueError(f"Tau must be positive, got: {tau} instead.")
    if sym and center is not None:
        raise ValueError("Center must be None for symmetric windows")
    if M == 0:
        return options.ones(0)
    middle = (M - 1 if sym or M == 1 else M) / 2.0 if center is None else center
    return options.finish(aten.exp(-options.line(-middle / tau, (-middle + M - 1) / tau, M).abs()))


def cosine(
    M: int, *, sym: bool = True, dtype: dtype | None = None, layout: layout = strided,
    device: device | str | None = None, requires_grad: bool = False,
) -> Tensor:  # fmt: skip
    """Return sin(pi (n + 1/2) / M), half a period of the sine."""
    options = _Options("cosine", M, dtype, layout, device, requires_grad)
    if M == 0:
        return options.ones(0)
    step = math.pi / (M if sym or M == 1 else M + 1)
    return options.finish(aten.sin(options.line(0.5 * step, (M - 0.5) * step, M)))


def gaussian(
    M: int, *, std: float = 1.0, sym: bool = True, dtype: dtype | None = None, layout: layout = strided,
    device: device | str | None = None, requires_grad: bool = False,
) -> Tensor:  # fmt: skip
    """Return exp(-((n - middle) / std)^2 / 2), a bell of standard deviation `std` points."""
    options = _Options("gaussian", M, dtype, layout, device, requires_grad)
    if std <= 0:
        raise ValueError(f"Standard deviation must be positive, got: {std} instead.")
    if M == 0:
        return options.ones(0)
    start, scale = -(M - 1 if sym or M == 1 else M) / 2.0, 1 / (std * math.sqrt(2))
    position = options.line(start * scale, (start + M - 1) * scale, M)
    return options.finish(aten.exp(-(position * position)))


def kaiser(
    M: int, *, beta: float = 12.0, sym: bool = True, dtype: dtype | None = None, layout: layout = strided,
    device: device | str | None = None, requires_grad: bool = False,
) -> Tensor:  # fmt: skip
    """Return I0(beta sqrt(1 - x^2)) / I0(beta) for x from -1 to 1, where I0 is the modified Bessel function."""
    options = _Options("kaiser", M, dtype, layout, device, requires_grad)
    if beta < 0:
        raise ValueError(f"beta must be non-negative, got: {beta} instead.")
    if M <= 1:
        return options.ones(M)
    last = M - 1 if sym else M
    squares = options.line(-beta, -beta + (M - 1) * 2.0 * beta / last, M) ** 2
    # Rounding may put a square a little above beta^2.
    root = aten.sqrt(aten.clamp_min(beta * beta - squares, 0))
    scale = aten.i0(aten.scalar_tensor(float(beta), dtype=options.kind, device=device))
    return options.finish(aten.i0(root) / scale)


def bartlett(
    M: int, *, sym: bool = True, dtype: dtype | None = None, layout: layout = strided,
    device: device | str | None = None, requires_grad: bool = False,
) -> Tensor:  # fmt: skip
    """Return 1 - |2n / (M - 1) - 1|, a triangle whose ends are 0."""
    options = _Options("bartlett", M, dtype, layout, device, requires_grad)
    if M <= 1:
        return options.ones(M)
    step = 2.0 / (M - 1 if sym else M)
    return options.finish(1 - options.line(-1, -1 + (M - 1) * step, M).abs())


def general_cosine(
    M: int, *, a: Iterable[float], sym: bool = True, dtype: dtype | None = None, layout: layout = strided,
    device: device | str | None = None, requires_grad: bool = False,
) -> Tensor:  # fmt: skip
    """Return a[0] - a[1] cos(x) + a[2] cos(2x) - ... for x over a period. TypeError and ValueError for no coefficients."""
    options = _Options("general_cosine", M, dtype, layout, device, requires_grad)
    if not isinstance(a, Iterable):
        raise TypeError(f"Coefficients must be a list/tuple, got: {type(a).__name__}")
    weights = list(a)
    if not weights:
        raise ValueError("Coefficients cannot be empty")
    if M <= 1:
        return options.ones(M)
    angle = options.line(0, (M - 1) * 2 * math.pi / (M - 1 if sym else M), M)
    total = aten.full_like(angle, weights[0])
    for order, weight in enumerate(weights[1:], 1):
        total = total + aten.cos(angle * order) * (weight if order % 2 == 0 else -weight)
    return options.finish(total)


def general_hamming(
    M: int, *, alpha: float = 0.54, sym: bool = True, dtype: dtype | None = None, layout: layout = strided,
    device: device | str | None = None, requires_grad: bool = False,
) -> Tensor:  # fmt: skip
    """Return alpha - (1 - alpha) cos(x) for x over a period."""
    return general_cosine(M, a=[alpha, 1.0 - alpha], sym=sym, dtype=dtype, layout=layout, device=device,
                          requires_grad=requires_grad)  # fmt: skip


def hamming(
    M: int, *, sym: bool = True, dtype: dtype | None = None, layout: layout = strided,
    device: device | str | None = None, requires_grad: bool = False,
) -> Tensor:  # fmt: skip
    """Return 0.54 - 0.46 cos(x) for x over a period."""
    return general_hamming(M, sym=sym, dtype=dtype, layout=layout, device=device, requires_grad=requires_grad)


def hann(
    M: int, *, sym: bool = True, dtype: dtype | None = None, layout: layout = strided,
    device: device | str | None = None, requires_grad: bool = False,
) -> Tensor:  # fmt: skip
    """Return (1 - cos(x)) / 2 for x over a period."""
    return general_hamming(M, alpha=0.5, sym=sym, dtype=dtype, layout=layout, device=device, requires_grad=requires_grad)


def blackman(
    M: int, *, sym: bool = True, dtype: dtype | None = None, layout: layout = strided,
    device: device | str | None = None, requires_grad: bool = False,
) -> Tensor:  # fmt: skip
    """Return 0.42 - 0.5 cos(x) + 0.08 cos(2x) for x over a period."""
    return general_cosine(M, a=[0.42, 0.5, 0.08], sym=sym, dtype=dtype, layout=layout, device=device,
                          requires_grad=requires_grad)  # fmt: skip


def nuttall(
    M: int, *, sym: bool = True, dtype: dtype | None = None, layout: layout = strided,
    device: device | str | None = None, requires_grad: bool = False,
) -> Tensor:  # fmt: skip
    """Return the sum of four cosines whose side lobes are smallest, as A. H. Nuttall published it (1981)."""
    return general_cosine(M, a=[0.3635819, 0.4891775, 0.1365995, 0.0106411], sym=sym, dtype=dtype, layout=layout,
                          device=device, requires_grad=requires_grad)  # fmt: skip
