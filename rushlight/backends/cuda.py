"""`torch.backends.cuda`: switches of libraries for NVIDIA's GPUs, which are not there.

Those of scaled dot-product attention are remembered, as programs ask for what they have set; the one kernel that there is
computes what each of PyTorch's does.
"""

from __future__ import annotations

import types
from collections.abc import Iterator
from contextlib import contextmanager

from rushlight.core.absent import absent_class


def is_built() -> bool:
    """Return whether CUDA is part of the build: it is not."""
    return False


matmul = types.SimpleNamespace(
    allow_tf32=False, fp32_precision="none", allow_fp16_reduced_precision_reduction=True,
    allow_bf16_reduced_precision_reduction=True, allow_fp16_accumulation=False,
)  # fmt: skip
cufft_plan_cache = types.SimpleNamespace(size=0, max_size=0, clear=lambda: None)
SDPAParams = absent_class("torch.backends.cuda.SDPAParams", "there is no GPU")

_sdp = {"flash": True, "mem_efficient": True, "math": True, "cudnn": True}


def flash_sdp_enabled() -> bool:
    """Return the value that `enable_flash_sdp` set."""
    return _sdp["flash"]


def enable_flash_sdp(enabled: bool) -> None:
    """Remember whether flash attention is wanted."""
    _sdp["flash"] = bool(enabled)


def mem_efficient_sdp_enabled() -> bool:
    """Return the value that `enable_mem_efficient_sdp` set."""
    return _sdp["mem_efficient"]


def enable_mem_efficient_sdp(enabled: bool) -> None:
    """Remember whether memory-efficient attention is wanted."""
    _sdp["mem_efficient"] = bool(enabled)


def math_sdp_enabled() -> bool:
    """Return the value that `enable_math_sdp` set."""
    return _sdp["math"]


def enable_math_sdp(enabled: bool) -> None:
    """Remember whether attention by products is wanted."""
    _sdp["math"] = bool(enabled)


def cudnn_sdp_enabled() -> bool:
    """Return the value that `enable_cudnn_sdp` set."""
    return _sdp["cudnn"]


def enable_cudnn_sdp(enabled: bool) -> None:
    """Remember whether cuDNN's attention is wanted."""
    _sdp["cudnn"] = bool(enabled)


def is_flash_attention_available() -> bool:
    """Return whether flash attention for GPUs is part of the build: it is not."""
    return False


def can_use_flash_attention(params: object, debug: bool = False) -> bool:
    """Return whether flash attention for GPUs takes arguments: never."""
    return False


can_use_efficient_attention = can_use_cudnn_attention = can_use_flash_attention


@contextmanager
def sdp_kernel(
    enable_flash: bool = True, enable_math: bool = True, enable_mem_efficient: bool = True, enable_cudnn: bool = True
) -> Iterator[None]:
    """Return a context in which these kinds of attention are wanted."""
    before = dict(_sdp)
    _sdp.update(flash=enable_flash, math=enable_math, mem_efficient=enable_mem_efficient, cudnn=enable_cudnn)
    try:
        yield
    finally:
        _sdp.update(before)
