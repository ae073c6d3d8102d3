"""Settings of the jit from the environment."""

from __future__ import annotations

import os


def is_enabled() -> bool:
    """Return whether `script` and `trace` compile: not with RUSHLIGHT_JIT=0 or PYTORCH_JIT=0."""
    return "0" not in (os.environ.get("RUSHLIGHT_JIT"), os.environ.get("PYTORCH_JIT"))


def native_seconds() -> float:
    """Return the total interpreter time for one kind of arguments after which native code is compiled for it.

    RUSHLIGHT_JIT_NATIVE_AFTER sets it in seconds; RUSHLIGHT_JIT_NATIVE=0 disables native code.
    """
    if os.environ.get("RUSHLIGHT_JIT_NATIVE") == "0":
        return float("inf")
    text = os.environ.get("RUSHLIGHT_JIT_NATIVE_AFTER", "0.02")
    try:
        return float(text)
    except ValueError:
        raise ValueError(f"RUSHLIGHT_JIT_NATIVE_AFTER must be a number of seconds, got {text!r}") from None
