"""The errors of capture."""

from rushlight.dynamo.capture import Unsupported
from rushlight.dynamo.dynamic import ConstraintViolationError
from rushlight.dynamo.errors import BackendCompilerFailed

__all__ = ["BackendCompilerFailed", "ConstraintViolationError", "Unsupported"]
