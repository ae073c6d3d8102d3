"""Meta rules of special functions: the floating type of the operands, broadcast."""

from __future__ import annotations

from rushlight.core.dtype import dtype
from rushlight.ops.meta.checks import not_implemented
from rushlight.ops.meta.common import pointwise
from rushlight.ops.primitives.special import BINARY, POLYNOMIALS, UNARY, WITH_INPLACE, names_of
from rushlight.ops.promotion import float_type, result_type
from rushlight.ops.registry import meta


def special_type(name: str, *operands: object) -> dtype:
    """Return the dtype of a special function's result; NotImplementedError for complex operands."""
    kind = float_type(result_type(*operands))
    if kind.is_complex:
        raise not_implemented(name.partition(".")[0], kind)
    return kind


def _register(name: str) -> None:
    @meta(name)
    def rule(*operands):
        return pointwise(special_type(name, *operands), *operands)


for _group in (WITH_INPLACE, UNARY, BINARY, POLYNOMIALS):
    for _name in names_of(_group):
        if _name != "polygamma":
            _register(_name)


@meta("polygamma")
def polygamma(n, self):
    return pointwise(special_type("polygamma", self), self)
