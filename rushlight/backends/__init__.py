"""`torch.backends`: which libraries compute, and their switches. Here all kernels are the library's own.

The switches of a library that is not used can be set, as programs do, and change nothing.
"""

from __future__ import annotations

from rushlight.backends import cpu, cuda, cudnn, mha, mkl, mkldnn, mps, nnpack, openmp, opt_einsum, quantized

__all__ = ["cpu", "cuda", "cudnn", "mha", "mkl", "mkldnn", "mps", "nnpack", "openmp", "opt_einsum", "quantized"]
