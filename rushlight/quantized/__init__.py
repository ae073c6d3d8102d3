"""Quantized tensors: integers with a scale and a zero point, with operators for quantized models; and block-quantized weights.

Importing this package attaches the methods to Tensor. The kernels are in `operators`, which is imported when the first
quantized tensor is created or one of its operators is first looked up.
"""

from rushlight.core.lazy_module import lazy_names
from rushlight.quantized import methods
from rushlight.quantized.loading import ensure_operators, is_quantized_operator

methods.install()

_HOMES = {"rushlight.quantized.blocks": ("BlockTensor",), "rushlight.serialization.gguf_models": ("from_gguf",)}

__all__ = ["BlockTensor", "ensure_operators", "from_gguf", "is_quantized_operator", "methods"]
__getattr__, __dir__ = lazy_names(globals(), _HOMES)
