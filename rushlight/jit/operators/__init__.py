"""Operators: `registry.py` finds them; `numbers.py`, `strings.py`, `containers.py` and `special.py`, `tensors.py` define
the jit's own, `archived.py` and `attention.py` those that torch's archives name beside
them, `gradients.py` those of differentiated graphs."""

from rushlight.jit.operators.registry import (
    Operator,
    deregister_operator,
    find_operator,
    operators_named,
    register_operator,
)

__all__ = ["Operator", "deregister_operator", "find_operator", "operators_named", "register_operator"]
