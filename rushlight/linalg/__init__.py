"""`rushlight.linalg`: the operators `linalg_*` under torch's names."""

from rushlight.ops.bindings import functions_of
from rushlight.ops.linalg_errors import LinAlgError

__all__ = ["LinAlgError", *(_functions := functions_of("linalg"))]
globals().update(_functions)
