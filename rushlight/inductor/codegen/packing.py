"""Operands that are rearranged before a template reads them, and how sizes are listed in a call."""

from __future__ import annotations

from dataclasses import dataclass

from rushlight.core.dtype import dtype, float32
from rushlight.inductor.codegen.types import c_type, size_text
from rushlight.inductor.ir import Operand
from rushlight.inductor.sizes import Size, as_size

PADDING = 64  # columns that are added to fill the last panel, at most
THREADS = "{threads}"  # stands for the number of threads in the size of memory that they share


@dataclass(frozen=True, slots=True)
class PackedOperand:
    """A matrix rearranged into the panels that the product reads: once for constants, at each run otherwise.

    `function` does it: of the source's first element, the `arguments`, and where to. Panels hold elements of `stored`.
    """

    name: str
    source: Operand
    depth: Size
    columns: Size
    constant: bool
    function: str
    arguments: str
    stored: dtype = float32

    @property
    def element(self) -> str:
        """The panels' elements in C++."""
        return c_type(self.stored)

    @property
    def nbytes(self) -> Size:
        """The memory that the panels take, at most."""
        return as_size(self.stored.itemsize * self.depth * (self.columns + PADDING))

    def call(self, source: str, target: str) -> str:
        """The statement that packs."""
        return f"{self.function}({source}, {self.arguments}, {target});"


def texts(*sizes: Size) -> str:
    return ", ".join(map(size_text, sizes))
