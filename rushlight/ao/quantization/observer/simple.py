"""Observers without statistics: with a fixed scale, as configuration only, or recording tensors."""

from __future__ import annotations

import warnings
from typing import Any

from rushlight.ao.quantization.observer.base import EPS, ObserverBase
from rushlight.core.dtype import dtype, float16, float32, int32, quint8
from rushlight.core.qscheme import per_tensor_affine, qscheme
from rushlight.core.tensor import Tensor
from rushlight.ops.construct import tensor


class FixedQParamsObserver(ObserverBase):
    """Has a fixed scale and zero point, such as for a sigmoid's results: buffers `scale` (1,) and `zero_point` (1,)."""

    scale: Tensor
    zero_point: Tensor

    def __init__(
        self, scale: float, zero_point: int, dtype: dtype = quint8, qscheme: qscheme = per_tensor_affine, quant_min: int = 0,
        quant_max: int = 255, is_dynamic: bool = False, **kwargs: Any,
    ) -> None:  # fmt: skip
        if is_dynamic:
            raise NotImplementedError("FixedQParamsObserver doesn't support dynamic quantization")
        super().__init__(dtype=dtype, is_dynamic=is_dynamic, **kwargs)
        self.quant_min, self.quant_max = quant_min, quant_max
        self.register_buffer("scale", tensor([scale], dtype=float32))
        self.register_buffer("zero_point", tensor([zero_point], dtype=int32))
        self.qscheme = qscheme

    def forward(self, X: Tensor) -> Tensor:  # noqa: N803  (torch's name)
        """Return `X`."""
        return X

    def calculate_qparams(self) -> tuple[Tensor, Tensor]:
        """Scale and zero point."""
        return self.scale, self.zero_point


class PlaceholderObserver(ObserverBase):
    """Only holds a dtype: for float16, and for activations that are quantized dynamically (`is_dynamic`)."""

    def __init__(
        self, dtype: dtype = float32, custom_op_name: str = "", compute_dtype: dtype | None = None,
        quant_min: int | None = None, quant_max: int | None = None, qscheme: qscheme | None = None, eps: float | None = None,
        is_dynamic: bool = False,
    ) -> None:  # fmt: skip
        super().__init__(dtype=dtype, is_dynamic=is_dynamic or bool(compute_dtype))
        self.qscheme = per_tensor_affine if qscheme is None else qscheme
        self.quant_min, self.quant_max = quant_min, quant_max
        self.eps = EPS if eps is None else eps
        self.custom_op = custom_op_name
        if compute_dtype:
            warnings.warn(
                "Please use `is_dynamic` instead of `compute_dtype`. `compute_dtype` will be deprecated in a future release of "
                "PyTorch.",
                stacklevel=2,
            )

    def forward(self, x: Tensor) -> Tensor:
        """Return `x`."""
        return x

    def extra_repr(self) -> str:
        return f"dtype={self.dtype}, is_dynamic={self.is_dynamic}"

    def calculate_qparams(self) -> tuple[Tensor, Tensor]:
        """Raise RuntimeError: it has no scale."""
        raise RuntimeError("calculate_qparams should not be called for PlaceholderObserver")


class RecordingObserver(ObserverBase):
    """Records copies of observed tensors, for debugging."""

    def __init__(self, dtype: dtype = quint8) -> None:
        super().__init__(dtype=dtype, is_dynamic=False)
        self.tensor_val: list[Tensor] = []

    def forward(self, x: Tensor) -> Tensor:
        """Record a copy of `x`, and return it."""
        self.tensor_val.append(x.clone())
        return x

    def calculate_qparams(self) -> tuple[Tensor, Tensor]:
        """Raise RuntimeError: it has no scale."""
        raise RuntimeError("calculate_qparams should not be called for RecordingObserver")

    def get_tensor_value(self) -> list[Tensor]:
        """Return the recorded copies."""
        return self.tensor_val


class NoopObserver(ObserverBase):
    """Does nothing; `dtype` is float16 or float32."""

    def __init__(self, dtype: dtype = float16, custom_op_name: str = "") -> None:
        super().__init__(dtype=dtype, is_dynamic=False)
        self.custom_op = custom_op_name

    def forward(self, x: Tensor) -> Tensor:
        """Return `x`."""
        return x

    def calculate_qparams(self) -> tuple[Tensor, Tensor]:
        """Raise RuntimeError: it has no scale."""
        raise RuntimeError("calculate_qparams should not be called for NoopObserver")


class ReuseInputObserver(ObserverBase):
    """Marks results that keep the scale of the operator's input, such as a reshape's."""

    def __init__(self) -> None:
        super().__init__(quint8, is_dynamic=False)

    def forward(self, x: Tensor) -> Tensor:
        """Return `x`."""
        return x

    def calculate_qparams(self) -> tuple[Tensor, Tensor]:
        """Raise RuntimeError: it has no scale."""
        raise RuntimeError("calculate_qparams should not be called for ReuseInputObserver")
