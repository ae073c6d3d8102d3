"""`torch.onnx`: models in ONNX's format, for other runtimes. `export` needs the package `onnx`.

Functions that translate operators can be registered, as libraries do on import; `export` does not use them.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from rushlight.core.lazy_module import lazy_names
from rushlight.onnx import errors
from rushlight.onnx.errors import OnnxExporterError
from rushlight.onnx.modes import OperatorExportTypes, TensorProtoDataType, TrainingMode

__all__ = [
    "ONNXProgram", "OnnxExporterError", "OperatorExportTypes", "TensorProtoDataType", "TrainingMode", "errors", "export",
    "is_in_onnx_export", "register_custom_op_symbolic", "unregister_custom_op_symbolic",
]  # fmt: skip


_SYMBOLIC_NAME = re.compile(r"[a-zA-Z][\w]*::[a-zA-Z_][\w]*")
_symbolics: dict[tuple[str, int], Callable] = {}
"""Functions that translate an operator, by its name and the version of ONNX's operators."""


def register_custom_op_symbolic(symbolic_name: str, symbolic_fn: Callable, opset_version: int) -> None:
    """Let `symbolic_fn` translate the operator `domain::name` from a version of ONNX's operators on.

    OnnxExporterError: the name has another form.
    """
    if not _SYMBOLIC_NAME.fullmatch(symbolic_name):
        raise OnnxExporterError(
            f"Failed to register operator {symbolic_name}. The symbolic name must match the format domain::name, and should "
            "start with a letter and contain only alphanumeric characters"
        )
    _symbolics[symbolic_name, opset_version] = symbolic_fn


def unregister_custom_op_symbolic(symbolic_name: str, opset_version: int) -> None:
    """Undo `register_custom_op_symbolic`, if it was called."""
    _symbolics.pop((symbolic_name, opset_version), None)


# Libraries import this package for the names above alone.
__getattr__, __dir__ = lazy_names(globals(), {
    "rushlight.onnx.exporting": ("export", "is_in_onnx_export"),
    "rushlight.onnx.program": ("ONNXProgram",),
})  # fmt: skip
