"""Reductions: which operation of MPI stands for a ReduceOp and a dtype, which kernel, and what is done before and after.

MPI reduces integers, float32 and float64, and not the 16-bit floats. Booleans are bytes that are 0 or 1. A mean is a sum that
is divided afterwards.
"""

from __future__ import annotations

from typing import Any

from rushlight.autograd.grad_mode import no_grad
from rushlight.core.dtype import bfloat16, dtype, float16
from rushlight.core.tensor import Tensor
from rushlight.distributed.engine import mpi
from rushlight.distributed.engine.reduce_op import RedOpType, ReduceOp, kind_of
from rushlight.ops import aten

_SUMS = (RedOpType.SUM, RedOpType.AVG, RedOpType.PREMUL_SUM)
_NAMES = {
    RedOpType.SUM: "SUM", RedOpType.AVG: "SUM", RedOpType.PREMUL_SUM: "SUM", RedOpType.PRODUCT: "PROD", RedOpType.MIN: "MIN",
    RedOpType.MAX: "MAX", RedOpType.BAND: "BAND", RedOpType.BOR: "BOR", RedOpType.BXOR: "BXOR",
}  # fmt: skip
_OF_BOOLEANS = {"SUM": "MAX", "PROD": "MIN"}
_BITWISE = ("BAND", "BOR", "BXOR")
_KERNELS = {
    "SUM": lambda into, other: into.add_(other),
    "PROD": lambda into, other: into.mul_(other),
    "MIN": lambda into, other: into.copy_(aten.minimum(into, other)),
    "MAX": lambda into, other: into.copy_(aten.maximum(into, other)),
}


class Reduction:
    """A ReduceOp for tensors of one dtype and a number of ranks.

    `operation` is MPI's, None where it has none. RuntimeError or ValueError for a dtype that the ReduceOp does not have.
    """

    def __init__(self, op: RedOpType | ReduceOp, kind: dtype, size: int, caller: str) -> None:
        self.kind = kind_of(op)
        _check(self.kind, kind, caller)
        self.factor = getattr(op, "factor", None)  # kinds have none
        self._name = _NAMES[self.kind]
        self._size = size
        self.operation = _mpi_operation(self._name, kind)
        self.has_kernel = not kind.is_integral

    def combine(self, into: Tensor, other: Tensor) -> None:
        """Reduce two tensors of floats of one shape into the first."""
        with no_grad():
            _KERNELS[self._name](into, other)

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


def _check(kind: RedOpType, of: dtype, caller: str) -> None:
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


def _mpi_operation(name: str, kind: dtype) -> Any:
    """Return the MPI operation `name` for a dtype's elements, None for 16-bit floats."""
    if kind.to_real() in (float16, bfloat16):
        return None
    if kind.name == "bool":
        name = _OF_BOOLEANS.get(name, name)
    return getattr(mpi.load(), name)
