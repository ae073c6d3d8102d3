"""Operators: `registry.py` finds them; `numbers.py`, `strings.py`, `containers.py`, `special.py` and `tensors.py` define the
jit's own, `archived.py` and `attention.py` more that torch's archives use, and `gradients.py` those of differentiated
graphs."""

from rushlight.jit.operators.registry import (
    Operator,
    deregister_operator,
    find_operator,
    operators_named,
    register_operator,
)

__all__ = ["Operator", "deregister_operator", "find_operator", "operators_named", "register_operator"]
