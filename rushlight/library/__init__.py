"""Operators from outside, with rules of their own for shapes and gradients. For users it is `torch.library`."""

from rushlight.core.lazy_module import lazy_names
from rushlight.library.contexts import FakeImplCtx, get_ctx
from rushlight.library.custom_ops import (
    CustomOpDef,
    custom_op,
    register_autocast,
    register_autograd,
    register_fake,
    register_kernel,
    register_torch_dispatch,
    register_vmap,
)
from rushlight.library.names import define, impl
from rushlight.library.schemas import infer_schema
from rushlight.ops.library import Library, fallthrough_kernel

__all__ = [
    "CustomOpDef", "FakeImplCtx", "Library", "custom_op", "define", "fallthrough_kernel", "get_ctx", "impl", "infer_schema",
    "opcheck", "register_autocast", "register_autograd", "register_fake", "register_kernel", "register_torch_dispatch",
    "register_vmap",
]  # fmt: skip

__getattr__, __dir__ = lazy_names(globals(), {"rushlight.library.checks": ("OpCheckError", "opcheck")})  # lazy: it compiles
