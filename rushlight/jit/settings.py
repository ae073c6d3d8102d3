"""Settings of the jit that the environment gives."""

from __future__ import annotations

import os


def is_enabled() -> bool:
    """Whether `script` and `trace` compile: not with RUSHLIGHT_JIT=0 or PYTORCH_JIT=0."""
    return "0" not in (os.environ.get("RUSHLIGHT_JIT"), os.environ.get("PYTORCH_JIT"))
