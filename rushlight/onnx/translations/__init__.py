"""Translations of aten operators into ONNX's, by what the operators do."""

from rushlight.onnx.translations import elementwise, networks, reductions, shapes
from rushlight.onnx.translations.table import TRANSLATIONS

__all__ = ["TRANSLATIONS", "elementwise", "networks", "reductions", "shapes"]
