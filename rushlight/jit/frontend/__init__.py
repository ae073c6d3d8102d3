"""The frontend: Python source to tree views. `definitions.py` begins; `statements.py` and `expressions.py` do the rest."""

from rushlight.jit.frontend.definitions import get_jit_class_def, get_jit_def

__all__ = ["get_jit_class_def", "get_jit_def"]
