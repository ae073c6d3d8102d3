"""`rushlight.fft`: the operators `fft_*` under torch's names."""

from rushlight.ops.bindings import functions_of

globals().update(functions_of("fft"))
