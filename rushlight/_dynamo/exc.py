"""The errors of capture."""

from rushlight.dynamo.dynamic import ConstraintViolationError
from rushlight.dynamo.errors import BackendCompilerFailed, RecompileError
from rushlight.dynamo.guarded_code import Unsupported
from rushlight.export.errors import UserError

__all__ = [
    "BackendCompilerFailed", "ConstraintViolationError", "RecompileError", "TensorifyScalarRestartAnalysis",
    "TorchRuntimeError", "Unsupported", "UserError",
]  # fmt: skip


class TorchRuntimeError(RuntimeError):
    """PyTorch's error for an operation that fails while a frame is captured. Here such a frame raises the operation's own."""


class TensorifyScalarRestartAnalysis(Exception):  # noqa: N818 - torch's name
    """PyTorch's way to begin a capture anew. Nothing raises it here."""
