"""Lowering of matrix products to templates; bias and activations become epilogues.

Products of float32 and 16-bit floats are computed in float32, others in their own type. The second factor stays in its own type
until the kernel reads it; other bfloat16 or float16 operands are widened where they are produced. If the processor has bfloat16
dot products, both factors stay as they are.
"""

from __future__ import annotations

import math

from rushlight.core.dtype import bfloat16, dtype, float16, float32, int32
from rushlight.core.symbolic import SymInt
from rushlight.inductor import costs
from rushlight.inductor.ir import Constant, Operand
from rushlight.inductor.lowering.builder import cast
from rushlight.inductor.lowering.byte_layers import is_layer_of_bytes, layer_of_bytes
from rushlight.inductor.lowering.library_calls import Function, library_call
from rushlight.inductor.lowering.pointwise import add, mul_boxes, scaled
from rushlight.inductor.lowering.reductions import reduce_box
from rushlight.inductor.lowering.registry import lowering
from rushlight.inductor.tensor_box import Index, TensorBox


def in_float32(graph, box: TensorBox) -> TensorBox:
    """Return the box converted to float32."""
    if box.dtype is float32:
        return box
    return graph.pointwise(box.size, float32, lambda index: cast(box.value(index), float32))


def as_factor(graph, box: TensorBox) -> TensorBox:
    """Return the box in the type in which the target multiplies matrices."""
    return box if graph.target.keeps_halves and box.dtype in (bfloat16, float16) else in_float32(graph, box)


def in_type(graph, box: TensorBox, kind: dtype) -> TensorBox:
    """Return the box rounded to `kind`."""
    return box if box.dtype is kind else graph.pointwise(box.size, kind, lambda index: cast(box.value(index), kind))


def matrix_product(graph, self: TensorBox, mat2: TensorBox) -> TensorBox:
    """Return the product of two matrices."""
    if _is_summed_in_own_type(self.dtype):
        return plain_product(graph, self, mat2)
    (rows, depth), columns = self.size, mat2.size[1]
    depth = mat2.size[0] if isinstance(depth, SymInt) else depth  # the other factor may have a known size
    if not (rows and columns and depth):
        return graph.pointwise((rows, columns), self.dtype, lambda index: Constant(self.dtype, 0.0))
    if _is_one(columns) or _is_one(depth) or (_is_one(rows) and not graph.is_constant(mat2)):
        return _without_blocks(graph, self, mat2)
    right = graph.strided_operand(mat2, (depth, columns))
    constant = graph.is_constant_buffer(right.buffer)
    if self.dtype is mat2.dtype is bfloat16 and costs.multiplies_pairs() and not graph.target.keeps_halves:
        return _product_by_words(graph, self, right, (rows, columns), bfloat16)
    operands = {"a": _left(graph, as_factor(graph, self), (rows, depth)), "b": right}
    return graph.template(
        "gemm", (rows, columns), self.dtype, rows, columns, operands, depth=depth, packed_once=constant,
        **costs.passes(rows, columns, depth),
    )  # fmt: skip


def _is_one(size: int | SymInt) -> bool:
    return isinstance(size, int) and size == 1


def _without_blocks(graph, self: TensorBox, mat2: TensorBox) -> TensorBox:
    """Compute a product, possibly batched, as an elementwise loop and a reduction, if blocking gains nothing because one
    factor's elements are used only once: the first factor has one row, the second one column, or the depth is 1. The loop reads
    the factors in place and fuses with their producers."""
    *batch, rows, depth = self.size
    if _is_one(depth):
        return mul_boxes(graph, self, mat2)
    left, right = in_float32(graph, self), in_float32(graph, mat2)
    if _is_one(rows):
        left, dim = left.view((*batch, depth, 1), _swap_last_two), len(batch)
    else:
        right, dim = right.view((*batch, 1, depth), _swap_last_two), len(batch) + 1
    return in_type(graph, reduce_box(graph, mul_boxes(graph, left, right), (dim,), "sum", float32, True), self.dtype)


def _swap_last_two(index: Index) -> Index:
    return [*index[:-2], index[-1], index[-2]]


def _product_by_words(graph, self: TensorBox, right: Operand, size: tuple, kind: dtype) -> TensorBox:
    """Return a product with `right` by the processor's dot product instructions (bfloat16 or int8); sums are float32 or
    int32."""
    operands = {"a": graph.strided_operand(self, self.size, unit_dim=1), "b": right}
    depth, constant = self.size[1], graph.is_constant_buffer(right.buffer)
    return graph.template("word_gemm", size, kind, *size, operands, depth=depth, packed_once=constant)


def _left(graph, self: TensorBox, size: tuple) -> Operand:
    """Return the first factor in place if it has unit stride along rows or columns, else a copy."""
    found = graph.operand(self, size)
    columns = found is not None and found.strides[0] == 1 and found.strides[1] != 1
    return found if columns else graph.strided_operand(self, size, unit_dim=1)


PLAIN = Function("matrix", "plain_product<{type}>")


def plain_product(graph, self: TensorBox, other: TensorBox) -> TensorBox:
    """Compute batched products summed in their own type: float64 or integers."""
    *batch, rows, depth = self.size
    columns, count = other.size[-1], math.prod(batch)
    size = (*batch, rows, columns)
    if 0 in (count, rows, depth, columns):
        return graph.pointwise(size, self.dtype, lambda index: Constant(self.dtype, 0))
    work = 2 * count * rows * depth * columns
    return library_call(graph, PLAIN, self.dtype, [self, other], [(size, self.dtype)], [count, rows, depth, columns], work)[0]


def _is_summed_in_own_type(kind: dtype) -> bool:
    return kind not in (float32, bfloat16, float16)


@lowering("mm")
def mm(graph, self, mat2):
    return matrix_product(graph, self, mat2)


@lowering("addmm")
def addmm(graph, self, mat1, mat2, *, beta=1, alpha=1):
    product = scaled(graph, matrix_product(graph, mat1, mat2), alpha, mat1.dtype)
    return product if beta == 0 else add(graph, product, scaled(graph, self, beta, self.dtype))


MIN_ROWS_TO_WIDEN = 16  # with at least this many rows it pays to convert whole panels of bytes to floats first


@lowering("_weight_int8pack_mm")
def weight_int8pack_mm(graph, self, mat2, scales):
    (rows, depth), columns = self.size, mat2.size[0]
    if not isinstance(rows, SymInt) and rows < MIN_ROWS_TO_WIDEN:
        turned = mat2.view(mat2.size[::-1], lambda index: [index[1], index[0]])
        return mul_boxes(graph, matrix_product(graph, self, turned), scales)
    left = self.view((1, rows, depth), lambda index: index[1:])
    product = bmm(graph, left, mat2.view((1, depth, columns), lambda index: [index[2], index[1]]))
    return mul_boxes(graph, product.reshape((rows, columns)), scales)


@lowering("_int_mm")
def int_mm(graph, self, mat2):
    (rows, depth), columns = self.size, mat2.size[1]
    if not (rows and columns and depth):
        return graph.pointwise((rows, columns), int32, lambda index: Constant(int32, 0))
    right = graph.strided_operand(mat2, mat2.size)
    if is_layer_of_bytes(graph, right, depth):
        weight = mat2.view((columns, 1, 1, depth), lambda index: [index[3], index[0]])
        return layer_of_bytes(graph, self.reshape((1, 1, rows, depth)), weight, None).reshape((rows, columns))
    return _product_by_words(graph, self, right, (rows, columns), int32)


@lowering("bmm")
def bmm(graph, self, mat2):
    if _is_summed_in_own_type(self.dtype):
        return plain_product(graph, self, mat2)
    (batch, rows, depth), columns = self.size, mat2.size[2]
    depth = mat2.size[1] if isinstance(depth, SymInt) else depth
    if not (batch and rows and columns and depth):
        return graph.pointwise((batch, rows, columns), self.dtype, lambda index: Constant(self.dtype, 0.0))
    if any(map(_is_one, (rows, columns, depth))):
        return _without_blocks(graph, self, mat2)
    operands = {
        "a": graph.strided_operand(as_factor(graph, self), (batch, rows, depth)),
        "b": graph.strided_operand(mat2, (batch, depth, columns)),
    }
    return graph.template(
        "bgemm", (batch, rows, columns), self.dtype, batch * rows, columns, operands, batch=batch, rows_each=rows,
        depth=depth,
    )  # fmt: skip
