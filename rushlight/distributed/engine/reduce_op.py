"""ReduceOp: how the values of several ranks become one."""

from __future__ import annotations

import enum

from rushlight.core.tensor import Tensor


class RedOpType(enum.IntEnum):
    """The operations that reduce the values of several ranks to one."""

    SUM = 0
    AVG = 1
    PRODUCT = 2
    MIN = 3
    MAX = 4
    BAND = 5
    BOR = 6
    BXOR = 7
    PREMUL_SUM = 8
    UNUSED = 9

    def __str__(self) -> str:
        return f"RedOpType.{self.name}"


class _KindsToo(type):
    def __instancecheck__(cls, value: object) -> bool:
        return isinstance(value, RedOpType) or super().__instancecheck__(value)


class ReduceOp(metaclass=_KindsToo):
    """An operation of RedOpType; for PREMUL_SUM with the factor that each rank's values are multiplied by before the sum.

    Collectives take a RedOpType, such as `ReduceOp.SUM`, just as well, and it counts as an instance.
    """

    RedOpType = RedOpType
    SUM, AVG, PRODUCT, MIN, MAX = RedOpType.SUM, RedOpType.AVG, RedOpType.PRODUCT, RedOpType.MIN, RedOpType.MAX
    BAND, BOR, BXOR = RedOpType.BAND, RedOpType.BOR, RedOpType.BXOR
    PREMUL_SUM = RedOpType.PREMUL_SUM

    def __init__(self, op: RedOpType | ReduceOp, factor: float | Tensor | None = None) -> None:
        self.op = kind_of(op)
        self.factor = factor if factor is not None else getattr(op, "factor", None)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, RedOpType | ReduceOp) and self.op == kind_of(other)

    def __hash__(self) -> int:
        return hash(self.op)

    def __repr__(self) -> str:
        return f"ReduceOp({self.op.name})"


def kind_of(op: RedOpType | ReduceOp) -> RedOpType:
    """Return the RedOpType of an operation. TypeError for anything else."""
    if isinstance(op, RedOpType):
        return op
    if isinstance(op, ReduceOp):
        return op.op
    raise TypeError(f"expected a ReduceOp, such as ReduceOp.SUM, got {op!r}")


def premul_sum(factor: float | Tensor) -> ReduceOp:
    """Return the operation that multiplies each rank's values by `factor` and adds them."""
    return ReduceOp(RedOpType.PREMUL_SUM, factor)


def supports_complex(reduceOp: RedOpType | ReduceOp) -> bool:  # noqa: N803  (torch's name)
    """Return whether an operation reduces complex numbers: sums and means do."""
    return kind_of(reduceOp) in (RedOpType.SUM, RedOpType.AVG, RedOpType.PREMUL_SUM)
