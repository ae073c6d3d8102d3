"""The errors of capture."""

from rushlight.dynamo.dynamic import ConstraintViolationError
from rushlight.dynamo.errors import BackendCompilerFailed, RecompileError
from rushlight.dynamo.guarded_code import Unsupported



class TensorifyScalarRestartAnalysis(Exception):
    """PyTorch begins a capture again by raising it; here nothing does."""


__all__ = ["BackendCompilerFailed", "ConstraintViolationError", "RecompileError", "TensorifyScalarRestartAnalysis", "Unsupported"]
