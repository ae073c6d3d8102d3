"""Operators from outside, with rules of their own for shapes and gradients. For users it is `torch.library`."""

from rushlight.core.lazy_module import lazy_names
from rushlight.library.custom_ops import CustomOpDef, custom_op, register_autograd, register_fake, register_kernel
from rushlight.library.names import define, impl
from rushlight.library.schemas import infer_schema
from rushlight.ops.library import Library, fallthrough_kernel

__all__ = [
    "CustomOpDef", "Library", "custom_op", "define", "fallthrough_kernel", "impl", "infer_schema", "opcheck",
    "register_autograd", "register_fake", "register_kernel",
]  # fmt: skip

__getattr__, __dir__ = lazy_names(globals(), {"rushlight.library.checks": ("OpCheckError", "opcheck")})  # which compiles
