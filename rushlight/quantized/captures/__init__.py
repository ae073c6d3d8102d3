"""Decompositions of quantized operators for captured graphs, into operators on plain byte tensors. Importing this fills the
rules."""

from rushlight.core.module_list import import_all
from rushlight.quantized.captures.tensors import install

import_all(__name__, __path__)
install()
