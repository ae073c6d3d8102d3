"""`rushlight.special`: the operators `special_*` under torch's names."""

from rushlight.ops.bindings import functions_of

_functions = functions_of("special")
__all__ = sorted(_functions)
globals().update(_functions)
