"""All operators of quantized tensors: importing this module defines them.

It is not imported at start-up; `loading.ensure_operators` and methods of Tensor import it on demand.
"""

from importlib import import_module

from rushlight.quantized import arithmetic as _arithmetic
from rushlight.quantized import convolution as _convolution
from rushlight.quantized import elementwise as _elementwise
from rushlight.quantized import embedding as _embedding
from rushlight.quantized import linear as _linear
from rushlight.quantized import normalisation as _normalisation
from rushlight.quantized import pooling as _pooling
from rushlight.quantized import recurrent as _recurrent
from rushlight.quantized import row_tables as _row_tables
from rushlight.quantized import tensor_operators as _tensor_operators
from rushlight.quantized import views as _views
from rushlight.quantized.creation import scheme_of
from rushlight.quantized.printing import quantized_text
from rushlight.quantized.registration import aten

_DEFINING = (
    _arithmetic, _convolution, _elementwise, _embedding, _linear, _normalisation, _pooling, _recurrent, _row_tables,
    _tensor_operators, _views,
)  # fmt: skip

__all__ = ["aten", "quantized_text", "scheme_of"]

# Capture rules look operators up by name, so they come after the definitions.
import_module("rushlight.quantized.captures")
