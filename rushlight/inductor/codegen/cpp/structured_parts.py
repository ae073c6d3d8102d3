"""The common base of structured programs' writers: arena memory, names, operands as text, copies of tensors."""

from __future__ import annotations

from collections.abc import Iterator

from rushlight.core.dtype import float64, int64
from rushlight.core.storage import aligned
from rushlight.inductor.codegen.cpp.types import c_type, literal
from rushlight.inductor.structured import (
    BOOL,
    FLOAT,
    Kind,
    ListOf,
    Literal,
    Null,
    Operand,
    Scalar,
    StructuredProgram,
    TensorOf,
    Var,
    contiguous_strides,
)

SCALARS = {"int": "int64_t", "float": "double", "bool": "bool"}


def declared(kind: Kind) -> str:
    """Return the C++ type of a variable."""
    if isinstance(kind, TensorOf):
        return f"{c_type(kind.dtype)}*"
    return "rl::program::list*" if isinstance(kind, ListOf) else SCALARS[kind.name]


def width_of(element: Kind) -> int:
    """Return the size of a list's element in bytes."""
    return element.nbytes if isinstance(element, TensorOf) else 1 if element == BOOL else 8


class Parts:
    """Base of the writers. `threads` is the last argument of region calls."""

    threads = ""

    def __init__(self, program: StructuredProgram):
        self.program = program
        self.arena = 0
        self.temporaries = 0

    def _allocate(self, nbytes: int) -> str:
        """Return the address of a new part of the arena."""
        offset = self.arena
        self.arena += aligned(nbytes)
        return f"(arena + {offset}L)"

    def _temporary(self, name: str) -> str:
        self.temporaries += 1
        return f"{name}_{self.temporaries}"

    def _target(self, var: Var) -> str:
        return f"{declared(var.kind)} {var}" if isinstance(var.kind, TensorOf | ListOf) else f"const {declared(var.kind)} {var}"

    def _text(self, operand: Operand, wanted: Kind | None = None) -> str:
        """Return an operand as text; numbers are converted to the wanted type."""
        if isinstance(operand, Null):
            return "0" if isinstance(operand.kind, Scalar) else "nullptr"
        if isinstance(operand, Literal):
            value = operand.value
            if wanted == FLOAT or isinstance(value, float):
                return literal(float(value), float64)
            return ("true" if value else "false") if isinstance(value, bool) else literal(value, int64)
        needs_cast = isinstance(wanted, Scalar) and isinstance(operand.kind, Scalar) and operand.kind != wanted
        return f"({SCALARS[wanted.name]}){operand}" if needs_cast else str(operand)

    def _copy_tensor(self, address: str, to: TensorOf, source: str, kind: TensorOf) -> Iterator[str]:
        """Copy a tensor from address `source` to address `address`. Both have the same dtype and size, and may be strided."""
        if to.strides is None and kind.strides is None:
            yield f"memmove({address}, {source}, {to.nbytes}L);"
            return
        steps, others = to.strides or contiguous_strides(to.size), kind.strides or contiguous_strides(kind.size)
        names = [self._temporary("k") for _ in to.size]
        for name, length in zip(names, to.size, strict=True):
            yield f"for (int64_t {name} = 0; {name} < {length}L; ++{name})"
        rows = [[f"{name} * {step}L" for name, step in zip(names, row, strict=True)] for row in (steps, others)]
        at = [" + ".join(["0", *row]) for row in rows]
        element = c_type(to.dtype)
        yield f"  (({element}*){address})[{at[0]}] = (({element}*){source})[{at[1]}];"
