"""`rushlight.linalg`: the operators `linalg_*` under torch's names."""

from rushlight.ops.bindings import functions_of

globals().update(functions_of("linalg"))
