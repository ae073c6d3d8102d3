"""Operands that are rearranged before a template reads them, and how sizes are listed in a call."""

from __future__ import annotations

from dataclasses import dataclass

from rushlight.core.dtype import dtype, float32
from rushlight.core.storage import ALIGNMENT
from rushlight.inductor.codegen.types import c_type, size_text
from rushlight.inductor.ir import Operand
from rushlight.inductor.sizes import Size, as_size, rounded_up

PADDING = 64  # columns that are added to fill the last panel, at most
WIDEST_PANEL = 32  # columns, with vectors of 16 floats; the others' panels divide it
OWN_PANELS = "<own panels>"  # stands for the memory in which threads pack panels of constants themselves
THREADS = "{threads}"  # stands for the number of threads in the size of memory that they share


@dataclass(frozen=True, slots=True)
class PackedOperand:
    """A matrix rearranged into the panels that the product reads: once for constants, at each run otherwise.

    `function` does it: of the source's first element, the `arguments`, and where to. Panels hold elements of `stored`. Where
    a run is to pack a constant, threads do it panel by panel if the product can be told where the source is (`by_panels`).
    """

    name: str
    source: Operand
    depth: Size
    columns: Size
    constant: bool
    function: str
    arguments: str
    stored: dtype = float32
    by_panels: bool = False

    @property
    def unpacked(self) -> str:
        """What the source is called as an argument of the product."""
        return f"unpacked {self.name}"

    @property
    def element(self) -> str:
        """The panels' elements in C++."""
        return c_type(self.stored)

    @property
    def nbytes(self) -> Size:
        """The memory that the panels take, at most."""
        return as_size(self.stored.itemsize * self.depth * (self.columns + PADDING))

    @property
    def nbytes_beside(self) -> Size:
        """The same up to where another operand may begin."""
        return rounded_up(self.nbytes, ALIGNMENT)

    def nbytes_in_run(self, threads: int) -> Size:
        """The memory that is needed to pack it in the course of a run."""
        return as_size(self.stored.itemsize * self.depth * WIDEST_PANEL * threads) if self.by_panels else self.nbytes

    def call(self, source: str, target: str) -> str:
        """The statement that packs."""
        return f"{self.function}({source}, {self.arguments}, {target});"


def texts(*sizes: Size) -> str:
    return ", ".join(map(size_text, sizes))
