"""The errors of capture."""

from rushlight.dynamo.dynamic import ConstraintViolationError
from rushlight.dynamo.errors import BackendCompilerFailed, RecompileError
from rushlight.dynamo.guarded_code import Unsupported

__all__ = ["BackendCompilerFailed", "ConstraintViolationError", "RecompileError", "Unsupported"]
