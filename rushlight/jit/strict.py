"""`strict_fusion` in eager code; `library/contexts.py` has the scripted class, `passes/strict_fusion.py` the check."""

from __future__ import annotations

import warnings


class strict_fusion:
    """A context for scripted code: RuntimeError names the operators in it that the profiling executor did not group, for fusion
    or, where gradients are needed, for differentiation. No effect in eager code, and without that executor."""

    def __init__(self) -> None:
        warnings.warn("Only works in script mode", stacklevel=2)

    def __enter__(self) -> None:
        """Do nothing in eager code."""

    def __exit__(self, kind: object, error: object, traceback: object) -> None:
        """Do nothing in eager code."""
