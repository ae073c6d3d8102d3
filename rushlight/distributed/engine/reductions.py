"""Reductions as MPI's operations: which one stands for a ReduceOp and a dtype, and what is done before and after it.

MPI adds integers, float32 and float64. Operations of ours, made of the library's operators, reduce 16-bit floats. A mean is a
sum that is divided afterwards.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from rushlight.autograd.grad_mode import no_grad
from rushlight.core.dtype import bfloat16, dtype, float16
from rushlight.core.tensor import Tensor, wrap
from rushlight.core.tensor_impl import impl_from_array
from rushlight.distributed.engine import mpi
from rushlight.distributed.engine.reduce_op import RedOpType, ReduceOp, kind_of
from rushlight.ops import aten

_SUMS = (RedOpType.SUM, RedOpType.AVG, RedOpType.PREMUL_SUM)
_NAMES = {
    RedOpType.SUM: "SUM", RedOpType.AVG: "SUM", RedOpType.PREMUL_SUM: "SUM", RedOpType.PRODUCT: "PROD", RedOpType.MIN: "MIN",
    RedOpType.MAX: "MAX", RedOpType.BAND: "BAND", RedOpType.BOR: "BOR", RedOpType.BXOR: "BXOR",
}  # fmt: skip
# Booleans are bytes that are 0 or 1.
_OF_BOOLEANS = {"SUM": "MAX", "PROD": "MIN"}
_BITWISE = ("BAND", "BOR", "BXOR")
_OF_HALVES = {"SUM": aten.add, "PROD": aten.mul, "MIN": aten.minimum, "MAX": aten.maximum}


class Reduction:
    """A ReduceOp for tensors of one dtype: `operation` is MPI's; `before` prepares what is sent, `after` finishes the result.

    RuntimeError or ValueError for a dtype that the operation does not have.
    """

    def __init__(self, op: RedOpType | ReduceOp, kind: dtype, size: int, caller: str) -> None:
        self.kind = kind_of(op)
        check(self.kind, kind, caller)
        self.factor = op.factor if isinstance(op, ReduceOp) else None
        self.operation = _mpi_operation(_NAMES[self.kind], kind)
        self._size = size

    @property
    def scales(self) -> bool:
        """Return whether `before` changes values."""
        return self.kind is RedOpType.PREMUL_SUM and self.factor is not None

    def before(self, tensor: Tensor) -> None:
        """Multiply a tensor that will be sent by the factor of PREMUL_SUM, in place."""
        if self.scales:
            with no_grad():
                tensor.mul_(self.factor)

    def after(self, tensor: Tensor) -> None:
        """Divide a sum by the number of ranks for AVG, in place."""
        if self.kind is RedOpType.AVG:
            with no_grad():
                tensor.div_(self._size)


def check(kind: RedOpType, of: dtype, caller: str) -> None:
    """Raise the error of an operation that a dtype does not have."""
    if kind not in _NAMES:
        raise RuntimeError(f"{caller}: {kind} is not an operation")
    if of.is_complex and kind not in _SUMS:
        raise ValueError(f"{caller} does not support {kind} on complex tensors")
    if of.is_floating_point and _NAMES[kind] in _BITWISE:
        raise RuntimeError(f"Cannot use ReduceOp.{kind.name} with non-integral dtype")
    if kind is RedOpType.AVG and of.is_integral:
        raise RuntimeError(f"result type Float can't be cast to the desired output type {of.scalar_name}")
    if not of.is_integral and of.to_real().name not in ("float16", "bfloat16", "float32", "float64"):
        raise RuntimeError(f"Invalid scalar type: {caller} cannot reduce {of}; convert it first")


@functools.cache
def _mpi_operation(name: str, kind: dtype) -> Any:
    """Return the MPI operation `name` of a dtype's elements."""
    MPI = mpi.load()
    real = kind.to_real()
    if real in (float16, bfloat16):
        return MPI.Op.Create(_reduce_by(_OF_HALVES[name], real), commute=True)
    if kind.name == "bool":
        name = _OF_BOOLEANS.get(name, name)
    return getattr(MPI, name)


def _reduce_by(combine: Callable, kind: dtype) -> Callable:
    """Return a function for MPI that combines the elements of two buffers into the second."""

    def reduce(source: Any, target: Any, datatype: Any) -> None:
        mine, theirs = (wrap(impl_from_array(np.frombuffer(buffer, kind.numpy), kind)) for buffer in (target, source))
        with no_grad():
            mine.copy_(combine(mine, theirs))

    return reduce
