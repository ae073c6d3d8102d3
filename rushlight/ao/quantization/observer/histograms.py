"""An observer that keeps a histogram and narrows the range to minimise the quantization error.

In: tensors, counted in a histogram over the observed range. Out: the range between two bins, found by a search: while the error
falls, it moves inwards the end with less mass outside. The error is the sum over bins of the squared distance to the nearest
quantized value, assuming mass spreads evenly within its bin.
"""

from __future__ import annotations

import warnings
from bisect import bisect_left, bisect_right
from typing import Any

import numpy as np

from rushlight.ao.quantization.observer.base import EPS, UniformQuantizationObserverBase, aten, factory_kwargs_of
from rushlight.ao.quantization.observer.ranges import require_per_tensor
from rushlight.core.dtype import dtype, float32, iinfo, quint8
from rushlight.core.qscheme import per_tensor_affine, qscheme
from rushlight.core.tensor import Tensor
from rushlight.ops.construct import tensor

_INFINITY = float("inf")
_STEP = 1e-5  # the part of the mass that the search skips per step


class HistogramObserver(UniformQuantizationObserverBase):
    """Keeps a histogram of `bins` bins over the range of all observed tensors: `histogram`, `min_val`, `max_val`.

    The arguments are those of `UniformQuantizationObserverBase`; `qscheme` has one scale.
    """

    histogram: Tensor
    min_val: Tensor
    max_val: Tensor

    def __init__(
        self, bins: int = 2048, dtype: dtype = quint8, qscheme: qscheme = per_tensor_affine, reduce_range: bool = False,
        quant_min: int | None = None, quant_max: int | None = None, factory_kwargs: dict | None = None, eps: float = EPS,
        is_dynamic: bool = False, **kwargs: Any,
    ) -> None:  # fmt: skip
        require_per_tensor(qscheme, "HistogramObserver")
        if is_dynamic:
            raise NotImplementedError("HistogramObserver doesn't support dynamic quantization")
        super().__init__(dtype, qscheme, reduce_range, quant_min, quant_max, factory_kwargs, eps, is_dynamic, **kwargs)
        made = factory_kwargs_of(factory_kwargs)
        self.bins = bins
        self.register_buffer("histogram", tensor([0.0] * bins, **made))
        self.register_buffer("min_val", tensor(_INFINITY, **made))
        self.register_buffer("max_val", tensor(-_INFINITY, **made))
        self.dst_nbins = 2 ** iinfo(dtype).bits
        self.upsample_rate = 16  # subdivisions of a bin when the histogram is stretched to a wider range

    def forward(self, x_orig: Tensor) -> Tensor:
        """Count `x_orig`, and return it."""
        x = x_orig.detach()
        if x.numel() and bool((x.abs() == _INFINITY).any()):
            warnings.warn("torch.inf detected in input tensor, ignoring input", stacklevel=2)
            x = x[x.abs() != _INFINITY]
        if x.numel():
            self._count(x, *aten.aminmax.default(x))
        return x_orig

    def _count(self, x: Tensor, low: Tensor, high: Tensor) -> None:
        is_first = self.min_val == _INFINITY or self.max_val == -_INFINITY
        if is_first:
            self._set(self._counts(x, low, high), low, high)
            return
        new_low, new_high = aten.minimum.default(self.min_val, low), aten.maximum.default(self.max_val, high)
        self._set(self._rebin_histogram(new_low, new_high) + self._counts(x, new_low, new_high), new_low, new_high)

    def _counts(self, x: Tensor, low: Tensor, high: Tensor) -> Tensor:
        return aten.histc.default(x.to(float32), self.bins, low.item(), high.item())

    def _set(self, histogram: Tensor, low: Tensor, high: Tensor) -> None:
        for name, value in (("histogram", histogram), ("min_val", low), ("max_val", high)):
            held = getattr(self, name)
            held.resize_(value.shape)
            held.copy_(value)

    def _rebin_histogram(self, low: Tensor, high: Tensor) -> Tensor:
        """Return the histogram re-binned to a range that includes its own."""
        old_low, old_high = self.min_val, self.max_val
        if low == old_low and high == old_high:
            return self.histogram
        if old_low == old_high:
            return self._counts(old_low, low, high) * self.histogram.sum()
        count, parts = self.bins * self.upsample_rate, self.histogram.repeat_interleave(self.upsample_rate)
        middles = aten.linspace.default(old_low.item(), old_high.item(), count + 1)[:-1] + 0.5 * ((old_high - old_low) / count)
        edges = aten.linspace.default(low.item(), high.item(), self.bins + 1)
        positions = (aten.bucketize.Tensor(middles, edges, right=True) - 1).clamp(0, self.bins - 1)
        return aten.bincount.default(positions, parts / self.upsample_rate, self.bins)

    def calculate_qparams(self) -> tuple[Tensor, Tensor]:
        """Scale (1,) and zero point (1,)."""
        if self.min_val == _INFINITY and self.max_val == -_INFINITY:
            warnings.warn(
                "must run observer before calling calculate_qparams. Returning default scale and zero point ", stacklevel=2
            )
            return tensor([1.0], device=self.min_val.device), tensor([0], device=self.min_val.device)
        if self.bins != len(self.histogram):
            raise AssertionError(
                "The number of bins in histogram should be equal to the number of bins supplied while making this observer: "
                f"got {len(self.histogram)} and {self.bins}"
            )
        return self._calculate_qparams(*self._find_best_range())

    # The search

    def _find_best_range(self) -> tuple[Tensor, Tensor]:
        """Return the range found by the search."""
        width = (self.max_val - self.min_val) / self.bins
        total, sums = self.histogram.sum().item(), aten.cumsum.default(self.histogram, 0)
        first, last = self._search(total, sums.tolist())
        return self.min_val + width * first, self.min_val + width * (last + 1)

    def _search(self, total: float, sums: list[float]) -> tuple[int, int]:
        first, last, left, right, least = 0, self.bins - 1, 0.0, 1.0, _INFINITY
        while left < right:
            next_left, next_right = left + _STEP, right - _STEP
            low, high = _inwards(sums, first, last, next_left * total, next_right * total)
            if low - first > last - high:
                candidate, left = (low, last), next_left
            else:
                candidate, right = (first, high), next_right
            if candidate == (first, last):
                continue
            error = self._error(*candidate)
            if error > least:
                break
            least, (first, last) = error, candidate
        return first, last

    def _error(self, first: int, last: int) -> float:
        """Return the squared error if the integers cover bins `first` to `last`."""
        width = (self.max_val.item() - self.min_val.item()) / self.bins
        quantum = width * (last - first + 1) / self.dst_nbins
        if quantum == 0:
            return 0.0
        begin = (aten.arange.default(self.bins) - first) * width
        end = begin + width
        highest, density = self.dst_nbins - 1, self.histogram / width
        first_quantum = aten.div.Tensor_mode(begin, quantum, rounding_mode="floor").clamp(0, highest)
        last_quantum = aten.div.Tensor_mode(end, quantum, rounding_mode="floor").clamp(0, highest)
        half = tensor(quantum / 2)
        error = _integral(begin - (first_quantum + 0.5) * quantum, aten.ones_like.default(begin) * (quantum / 2), density)
        error = error + (last_quantum - first_quantum - 1) * _integral(-half, half, density)
        error = error + _integral(-half, end - (last_quantum * quantum + quantum / 2), density)
        return error.sum().item()

    # State

    def _load_from_state_dict(
        self, state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs
    ) -> None:
        version = local_metadata.get("version")
        for name, start in (("min_val", _INFINITY), ("max_val", -_INFINITY)):
            key = prefix + name
            if key in state_dict:
                if (version is None or version < 3) and state_dict[key].shape == (0,):
                    state_dict[key] = tensor(start)
                setattr(self, name, state_dict[key])
            elif strict:
                missing_keys.append(key)
        super()._load_from_state_dict(state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs)

    def extra_repr(self) -> str:
        return f"min_val={self.min_val}, max_val={self.max_val}"


def _inwards(sums: list[float], first: int, last: int, below: float, above: float) -> tuple[int, int]:
    """Return the first bin from `first` on with a cumulative sum of at least `below`, and the last one up to `last` with one of
    at most `above`."""
    low = bisect_left(sums, float(np.float32(below)))
    high = bisect_right(sums, float(np.float32(above))) - 1
    return min(max(low, first), last), max(min(high, last), first)


def _integral(begin: Tensor, end: Tensor, density: Tensor) -> Tensor:
    """Return the integral of x^2 from `begin` to `end`, times the density."""
    return density * ((end * end * end - begin * begin * begin) / 3)
