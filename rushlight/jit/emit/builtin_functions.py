"""Operators with a number on the left of a tensor, rewritten: `2 - x` is `neg(x) + 2`. Stage: jit, emission."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from rushlight.jit.ir.graph import Value
from rushlight.jit.source import SourceRange
from rushlight.jit.types.kinds import COMPLEX, FLOAT, INT, NUMBER, TensorType

if TYPE_CHECKING:
    from rushlight.jit.emit.emitter import Emitter
    from rushlight.jit.emit.sugared import NamedValue, SugaredValue

_NUMBERS = (INT, FLOAT, COMPLEX, NUMBER)
_STEPS: dict[str, tuple[tuple[str, ...], str]] = {
    "aten::mul": ((), "aten::mul"), "aten::add": ((), "aten::add"), "aten::sub": (("aten::neg",), "aten::add"),
    "aten::div": (("aten::reciprocal",), "aten::mul"), "aten::eq": ((), "aten::eq"), "aten::ne": ((), "aten::ne"),
    "aten::lt": ((), "aten::gt"), "aten::gt": ((), "aten::lt"), "aten::le": ((), "aten::ge"), "aten::ge": ((), "aten::le"),
}  # fmt: skip
"""Operators applied to the tensor first, then the operator that takes the tensor and the number."""


def emit_number_first(
    emitter: Emitter, name: str, where: SourceRange, args: Sequence[NamedValue], keywords: Sequence[NamedValue]
) -> SugaredValue | None:
    """Emit `name(number, tensor)`; None for anything else."""
    if name not in _STEPS or len(args) != 2 or keywords:
        return None
    number, tensor = args[0].value, args[1].value
    if not isinstance(number, Value) or not isinstance(tensor, Value):
        return None
    if number.type not in _NUMBERS or not isinstance(tensor.type, TensorType):
        return None
    first, last = _STEPS[name]
    for step in first:
        tensor = emitter.call_operator(step, where, [tensor]).as_value(where, emitter)
    return emitter.call_operator(last, where, [tensor, number])
