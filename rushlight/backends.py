"""`torch.backends`: which libraries compute, and their switches. Here all kernels are the library's own."""

from __future__ import annotations

import rushlight._C as _C


class _Absent:
    """A library that is not used. Its switches can be set, as programs do, and change nothing."""

    def __init__(self, **flags: object) -> None:
        self.__dict__.update(flags)

    def is_available(self) -> bool:
        """Whether the library is used."""
        return False

    def is_built(self) -> bool:
        """Whether the library is part of the build."""
        return False

    def version(self) -> None:
        """The library's version."""
        return None


class _Processor:
    """`torch.backends.cpu`."""

    def get_cpu_capability(self) -> str:
        """The instructions that kernels use: "AVX512", "AVX2", "NEON" or "DEFAULT"."""
        features = _C.cpu_features()
        for name, text in (("avx512bw", "AVX512"), ("avx2", "AVX2"), ("neon", "NEON")):
            if name in features:
                return text
        return "DEFAULT"


cpu = _Processor()
cudnn = _Absent(enabled=False, benchmark=False, deterministic=False, allow_tf32=False)
cuda = _Absent()
mkl = _Absent()
mkldnn = _Absent(enabled=False)
mps = _Absent()
openmp = _Absent()
openmp.is_available = lambda: True
