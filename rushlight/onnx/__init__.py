"""`torch.onnx`: the names that programs import to say how their models are exported.

No exporter runs yet: `export` raises. Functions that translate operators can be registered, as libraries do on import.
"""

from __future__ import annotations

import enum
import re
from collections.abc import Callable

from rushlight.core.absent import absent_class, absent_function
from rushlight.onnx import errors
from rushlight.onnx.errors import OnnxExporterError

__all__ = [
    "ONNXProgram", "OnnxExporterError", "OperatorExportTypes", "TensorProtoDataType", "TrainingMode", "errors", "export",
    "is_in_onnx_export", "register_custom_op_symbolic", "unregister_custom_op_symbolic",
]  # fmt: skip


class TrainingMode(enum.IntEnum):
    """The mode in which a model is exported."""

    EVAL = 0
    PRESERVE = 1
    TRAINING = 2


class OperatorExportTypes(enum.IntEnum):
    """What becomes of operators that ONNX does not have."""

    ONNX = 0
    ONNX_ATEN = 1
    ONNX_ATEN_FALLBACK = 2
    ONNX_FALLTHROUGH = 3


TensorProtoDataType = enum.IntEnum(
    "TensorProtoDataType",
    "UNDEFINED FLOAT UINT8 INT8 UINT16 INT16 INT32 INT64 STRING BOOL FLOAT16 DOUBLE UINT32 UINT64 COMPLEX64 COMPLEX128 "
    "BFLOAT16 FLOAT8E4M3FN FLOAT8E4M3FNUZ FLOAT8E5M2 FLOAT8E5M2FNUZ",
    start=0,
    module=__name__,
)
"""Types of elements, by their numbers in ONNX files."""

_SYMBOLIC_NAME = re.compile(r"[a-zA-Z][\w]*::[a-zA-Z_][\w]*")
_symbolics: dict[tuple[str, int], Callable] = {}
"""Functions that translate an operator, by its name and the version of ONNX's operators."""


def is_in_onnx_export() -> bool:
    """Whether a model is being exported now: never yet."""
    return False


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
    """Forget what `register_custom_op_symbolic` was told, if anything."""
    _symbolics.pop((symbolic_name, opset_version), None)


export = absent_function("torch.onnx.export")
ONNXProgram = absent_class("torch.onnx.ONNXProgram")
