"""`torch.backends.cpu`."""

from __future__ import annotations

import rushlight._C as _C


def get_cpu_capability() -> str:
    """Return the instructions that kernels use: "AVX512", "AVX2", "NEON" or "DEFAULT"."""
    features = _C.cpu_features()
    for name, text in (("avx512bw", "AVX512"), ("avx2", "AVX2"), ("neon", "NEON")):
        if name in features:
            return text
    return "DEFAULT"
