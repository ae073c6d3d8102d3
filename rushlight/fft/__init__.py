"""`rushlight.fft`: the operators `fft_*` under torch's names."""

from rushlight.ops.bindings import functions_of

_functions = functions_of("fft")
__all__ = sorted(_functions)
globals().update(_functions)
