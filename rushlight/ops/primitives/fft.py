"""Primitives for discrete Fourier transforms over several dimensions.

`normalization` is 0 for none, 1 for division by the square root of the number of points, 2 for division by that number.
"""

from __future__ import annotations

from rushlight.ops.registry import define_primitives

define_primitives("""
_fft_c2c(Tensor self, SymInt[] dim, int normalization, bool forward) -> Tensor
_fft_r2c(Tensor self, int[] dim, int normalization, bool onesided) -> Tensor
_fft_c2r(Tensor self, int[] dim, int normalization, SymInt last_dim_size) -> Tensor
""")
