"""`torch._custom_ops`: operators from outside under their former names. `torch.library` is the place for new programs."""

from __future__ import annotations

from rushlight.library import custom_op, impl
from rushlight.library import register_fake as impl_abstract

__all__ = ["custom_op", "impl", "impl_abstract"]
