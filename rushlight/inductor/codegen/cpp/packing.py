"""Packed operands, which are rearranged before a template reads them, and size lists for calls."""

from __future__ import annotations

from dataclasses import dataclass

from rushlight.core.dtype import dtype, float32
from rushlight.core.storage import ALIGNMENT
from rushlight.inductor.codegen.cpp.types import c_type, size_text
from rushlight.inductor.ir import Operand
from rushlight.inductor.sizes import Size, as_size, rounded_up

PADDING = 64  # at most this many columns are added to fill the last panel
WIDEST_PANEL = 32  # columns of an AVX-512 panel; other panel widths divide it
OWN_PANELS = "<own panels>"  # replaced by the memory in which threads pack panels of constants during a run
THREADS = "{threads}"  # replaced by the number of threads in sizes of shared scratch memory


@dataclass(frozen=True, slots=True)
class PackedOperand:
    """A matrix rearranged into panels for a product: once if it is constant, else in every run.

    `function` packs: it takes the source's first element, the `arguments`, and the target. Panels have elements of type
    `stored`. With `by_panels` the product can pack a constant itself, panel by panel, in runs before the constant is packed.
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
        """The name of the unpacked source as an argument of the product."""
        return f"unpacked {self.name}"

    @property
    def element(self) -> str:
        """The C++ type of the panels' elements."""
        return c_type(self.stored)

    @property
    def nbytes(self) -> Size:
        """An upper bound of the panels' bytes."""
        return as_size(self.stored.itemsize * self.depth * (self.columns + PADDING))

    @property
    def aligned_nbytes(self) -> Size:
        """`nbytes` rounded up to the alignment of the next operand."""
        return rounded_up(self.nbytes, ALIGNMENT)

    def nbytes_in_run(self, threads: int) -> Size:
        """Return the bytes needed to pack the operand during a run."""
        return as_size(self.stored.itemsize * self.depth * WIDEST_PANEL * threads) if self.by_panels else self.nbytes

    def call(self, source: str, target: str) -> str:
        """Return the statement that packs the operand."""
        return f"{self.function}({source}, {self.arguments}, {target});"


def texts(*sizes: Size) -> str:
    return ", ".join(map(size_text, sizes))
