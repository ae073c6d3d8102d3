"""A linear layer whose weight is fake-quantized in training, for a model that will be quantized dynamically."""

from __future__ import annotations

from typing import Any

from rushlight.ao.nn.qat.modules import linear as static
from rushlight.ao.quantization.utils import activation_is_dynamically_quantized

__all__ = ["Linear"]


class Linear(static.Linear):
    """Like `qat.Linear`; the qconfig's activations must be dynamic and memoryless."""

    def __init__(
        self, in_features: int, out_features: int, bias: bool = True, qconfig: Any = None, device: Any = None, dtype: Any = None
    ) -> None:
        super().__init__(in_features, out_features, bias, qconfig, device, dtype)
        observer = qconfig.activation()
        held = getattr(observer, "activation_post_process", observer)
        if not activation_is_dynamically_quantized(qconfig) or getattr(held, "averaging_constant", None) != 1:
            raise ValueError(
                "Dynamic QAT requires a memoryless observer. This means a MovingAverage observer with averaging constant "
                "equal to 1, and is_dynamic=True: use default_dynamic_qat_qconfig"
            )
