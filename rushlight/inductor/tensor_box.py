"""TensorBox: a tensor during lowering. It knows its sizes and dtype, and how to make the value at an index.

A box refers to a realized buffer, or to a loop without a buffer; views only change the indices.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from rushlight.core.algebra import Expr, Var, as_expr, flatten_index, reindex_view
from rushlight.core.dtype import dtype
from rushlight.core.symbolic import SymInt
from rushlight.inductor.ir import Buffer, Constant, Load, Pointwise, Value, substitute
from rushlight.inductor.sizes import Size, as_size, as_sizes, row_major

Index = Sequence[Expr]


class StorageBox:
    """The storage of boxes: a Pointwise that is not computed yet, or a buffer. `realize` turns a loop into a buffer."""

    __slots__ = ("data", "buffer", "lines", "origins")

    def __init__(self, data: Pointwise | None, buffer: Buffer | None, lines: tuple[str, ...] = ()):
        self.data = data
        self.buffer = buffer
        self.lines = lines
        self.origins: tuple[str, ...] = ()

    def value(self, index: Index) -> Value:
        """Return the element at `index` of the loop's ranges, or of the buffer."""
        if self.buffer is not None:
            layout = self.buffer.layout
            return Load(layout.dtype, self.buffer.name, flatten_index(index, layout.stride))
        loop = self.data
        return substitute(loop.body, dict(zip(loop.variables, map(as_expr, index), strict=True)))


class TensorBox:
    """A tensor of sizes `size` and type `dtype` over a StorageBox; `reindex` maps its indices to the storage's.

    Sizes are ints, and SymInts where the fake tensor has those.
    """

    __slots__ = ("storage", "size", "dtype", "reindex")

    def __init__(
        self, storage: StorageBox, size: Sequence[int | SymInt], kind: dtype,
        reindex: Callable[[Index], Index] | None = None,
    ):  # fmt: skip
        self.storage = storage
        self.size = tuple(size)
        self.dtype = kind
        self.reindex = reindex

    def value(self, index: Index) -> Value:
        """Return the element at `index`. An empty tensor gives a zero that is never computed."""
        if 0 in self.size:
            return Constant(self.dtype, 0)
        return self.storage.value(index if self.reindex is None else self.reindex(index))

    def view(self, size: Sequence[int | SymInt], reindex: Callable[[Index], Index]) -> TensorBox:
        """Return a view: its index maps to this box's index by `reindex`."""
        inner = self.reindex
        composed = reindex if inner is None else lambda index: inner(reindex(index))
        return TensorBox(self.storage, size, self.dtype, composed)

    def reshape(self, size: Sequence[int | SymInt]) -> TensorBox:
        """Return the same elements in row-major order, with other sizes."""
        have, want = as_sizes(self.size), as_sizes(size)
        return self if have == want else self.view(size, reindex_view(have, want))

    def sections(self, sizes: Sequence[tuple[int | SymInt, ...]]) -> list[TensorBox]:
        """Split a flat tensor into consecutive row-major tensors."""
        made, start = [], as_size(0)
        for size in sizes:
            strides = row_major(as_sizes(size))

            def at(index: Index, start: Size = start, strides: Sequence[Size] = strides) -> Index:
                return [start + sum(position * stride for position, stride in zip(index, strides, strict=True))]

            made.append(self.view(size, at))
            start = as_size(start + as_size(math.prod(size)))
        return made

    @property
    def is_realized(self) -> bool:
        """Whether a buffer holds the elements."""
        return self.storage.buffer is not None


def loop_variables(ranges: Sequence[Size], prefix: str = "i") -> tuple[Var, ...]:
    """Return one variable per range: i0, i1, ... with those extents."""
    return tuple(Var(f"{prefix}{position}", extent) for position, extent in enumerate(ranges))
