"""`torch._inductor`: the names under which programs configure native code."""

from rushlight._inductor import config

__all__ = ["config"]
