"""Operators of quantized tensors in captured graphs, as operators on plain tensors of bytes: importing this fills the rules."""

from rushlight.core.module_list import import_all
from rushlight.quantized.captures.tensors import install

import_all(__name__, __path__)
install()
