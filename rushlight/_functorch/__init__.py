"""`torch._functorch`: the names under which programs configure compiled training."""

from rushlight._functorch import config

__all__ = ["config"]
