"""Quantized tensors: integers with a scale and a zero point, and the operators of quantized models.

Importing this package attaches the methods to Tensor; what computes is in `operators`, which is imported when the first
quantized tensor is made or the first of its operators is asked for.
"""

from rushlight.quantized import methods
from rushlight.quantized.loading import ensure_operators, is_quantized_operator

methods.install()

__all__ = ["ensure_operators", "is_quantized_operator", "methods"]
