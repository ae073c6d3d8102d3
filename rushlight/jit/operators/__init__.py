"""Operators: `registry.py` finds them; `numbers.py`, `strings.py`, `containers.py` and `special.py`, `tensors.py` define
the jit's own."""

from rushlight.jit.operators import containers, numbers, special, strings, tensors  # noqa: F401 (they register their operators)
from rushlight.jit.operators.registry import (
    Operator,
    deregister_operator,
    find_operator,
    operators_named,
    register_operator,
)

__all__ = ["Operator", "deregister_operator", "find_operator", "operators_named", "register_operator"]
