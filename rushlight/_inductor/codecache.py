"""`torch._inductor.codecache`, where PyTorch had `AsyncCompile` before 2.5."""

from rushlight._inductor.async_compile import AsyncCompile

__all__ = ["AsyncCompile"]
