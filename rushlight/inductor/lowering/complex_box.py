"""Complex tensors during lowering: `ComplexBox`, a pair of boxes with the real and imaginary parts.

In memory (inputs, constants, results) the parts of a number are adjacent, and generated code sees pairs of reals:
`parts_of_memory` splits such a buffer, and `into_memory` makes one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from rushlight.core.algebra import Expr, as_expr
from rushlight.core.dtype import bool_, complex64, dtype
from rushlight.core.symbolic import SymInt
from rushlight.inductor.ir import Buffer, ComputedBuffer, Constant, FixedLayout, Operand, Pointwise
from rushlight.inductor.lowering.builder import GraphBuilder, call, cast, index_value
from rushlight.inductor.sizes import Size, as_size, as_sizes, quotient, row_major
from rushlight.inductor.tensor_box import StorageBox, TensorBox, loop_variables

PARTS = 2


@dataclass(frozen=True, slots=True)
class ComplexBox:
    """A complex tensor; both parts have its sizes. `pairs`, if present, is a box with the parts along its last dimension."""

    real: TensorBox
    imag: TensorBox
    pairs: TensorBox | None = None

    @property
    def size(self) -> tuple[int | SymInt, ...]:
        """The sizes."""
        return self.real.size

    @property
    def dtype(self) -> dtype:
        """The complex dtype."""
        return self.real.dtype.to_complex()

    @property
    def is_realized(self) -> bool:
        """Whether both parts are in buffers."""
        return self.real.is_realized and self.imag.is_realized


def of_pairs(pairs: TensorBox) -> ComplexBox:
    """Return the complex tensor with parts along the last dimension of a box."""
    size = pairs.size[:-1]
    real, imag = (pairs.view(size, lambda index, part=part: [*index, as_expr(part)]) for part in range(PARTS))
    return ComplexBox(real, imag, pairs)


def pairs_of(graph: GraphBuilder, box: ComplexBox) -> TensorBox:
    """Return a box with the parts along its last dimension."""
    if box.pairs is not None:
        return box.pairs
    kind = box.real.dtype

    def inner(index: Sequence[Expr]):
        is_real = call("lt", bool_, index_value(index[-1]), Constant(index_value(index[-1]).dtype, 1))
        return call("where", kind, is_real, box.real.value(index[:-1]), box.imag.value(index[:-1]))

    return graph.pointwise((*box.size, PARTS), kind, inner)


def parts_of_memory(graph: GraphBuilder, buffer: Buffer, size: Sequence[int | SymInt]) -> ComplexBox:
    """Split the buffer of a complex input or constant."""
    layout = buffer.layout
    pairs = FixedLayout(layout.dtype.to_real(), (*layout.size, PARTS), (*(as_size(step * PARTS) for step in layout.stride), 1))
    seen = Buffer(buffer.name, pairs, buffer.lines)
    return of_pairs(TensorBox(StorageBox(None, seen), (*size, PARTS), pairs.dtype))


def into_memory(graph: GraphBuilder, box: ComplexBox, order: Sequence[int]) -> str:
    """Write a tensor to a buffer of complex dtype, its dimensions in this order, the outermost first; returns the buffer's
    name."""
    ranges = as_sizes([*(box.size[dim] for dim in order), PARTS])
    variables = loop_variables(ranges)
    moved = [variables[order.index(dim)] for dim in range(len(order))]
    pairs = pairs_of(graph, box)
    body = pairs.value([*moved, variables[-1]])
    layout = FixedLayout(box.dtype, ranges[:-1], row_major(ranges[:-1]))
    loop = Pointwise(pairs.dtype, ranges, variables, body, graph.origin)
    return graph.add(ComputedBuffer(graph.fresh_name(), layout, graph.lines, data=loop)).name


def complex_operand(graph: GraphBuilder, box: ComplexBox, stride: Sequence[Size]) -> Operand | None:
    """Return the tensor as an operand in complex memory with these strides; None if it is not in such memory."""
    if not box.is_realized:
        return None
    real, imag = graph.operand(box.real, box.size), graph.operand(box.imag, box.size)
    if real is None or imag is None or real.buffer != imag.buffer or imag.offset != as_size(real.offset + 1):
        return None
    lies = all(
        extent in (0, 1) or step == other == as_size(PARTS * wanted)
        for extent, step, other, wanted in zip(as_sizes(box.size), real.strides, imag.strides, stride, strict=True)
    )
    memory = next(buffer for buffer in graph.buffers if buffer.name == real.buffer)
    offset = quotient(real.offset, PARTS)
    is_complex = memory.layout.dtype.is_complex and offset is not None
    return Operand(real.buffer, offset, tuple(stride)) if lies and is_complex else None


def as_complex(graph: GraphBuilder, value: object, kind: dtype = complex64) -> ComplexBox:
    """Convert a box or number to a complex tensor; new parts get the real dtype of `kind`."""
    if isinstance(value, ComplexBox):
        return value
    real = kind.to_real()
    if isinstance(value, TensorBox):
        part = graph.pointwise(value.size, real, lambda index: cast(value.value(index), real))
        return ComplexBox(part, _constant_box(graph, 0.0, real))
    number = complex(value)
    return ComplexBox(_constant_box(graph, number.real, real), _constant_box(graph, number.imag, real))


def _constant_box(graph: GraphBuilder, number: float, kind: dtype) -> TensorBox:
    return graph.pointwise((), kind, lambda index: Constant(kind, number))


def each_part(box: ComplexBox, change: Callable[[TensorBox], TensorBox]) -> ComplexBox:
    """Apply a function to both parts."""
    return ComplexBox(change(box.real), change(box.imag))
