"""Lowering of matrix products and attention to templates; bias and activations become epilogues.

All are calculated in float32. Of a product's factors the second stays in its own type until the kernel reads it; other
operands in bfloat16 or float16 are widened by what makes them.
"""

from __future__ import annotations

import math

from rushlight.core.dtype import dtype, float32
from rushlight.core.symbolic import SymInt
from rushlight.inductor.ir import Constant, Operand
from rushlight.inductor.lowering.builder import cast
from rushlight.inductor.lowering.pointwise import add, scaled
from rushlight.inductor.lowering.registry import lowering
from rushlight.inductor.tensor_box import TensorBox


def in_float32(graph, box: TensorBox) -> TensorBox:
    """The box with its elements as float32."""
    if box.dtype is float32:
        return box
    return graph.pointwise(box.size, float32, lambda index: cast(box.value(index), float32))


def in_type(graph, box: TensorBox, kind: dtype) -> TensorBox:
    """The box with its elements rounded to `kind`."""
    return box if box.dtype is kind else graph.pointwise(box.size, kind, lambda index: cast(box.value(index), kind))


def _product(graph, self: TensorBox, mat2: TensorBox) -> TensorBox:
    (rows, depth), columns = self.size, mat2.size[1]
    depth = mat2.size[0] if isinstance(depth, SymInt) else depth  # which may be a known size
    if not (rows and columns and depth):
        return graph.pointwise((rows, columns), self.dtype, lambda index: Constant(self.dtype, 0.0))
    right = graph.strided_operand(mat2, (depth, columns))
    constant = graph.is_constant_buffer(right.buffer)
    operands = {"a": _left(graph, in_float32(graph, self), (rows, depth)), "b": right}
    return graph.template(
        "gemm", (rows, columns), self.dtype, rows, columns, operands, depth=depth, packed_once=constant
    )


def _left(graph, self: TensorBox, size: tuple) -> Operand:
    """The first factor where it lies, if it has unit stride along its rows or its columns; else a copy."""
    found = graph.operand(self, size)
    columns = found is not None and found.strides[0] == 1 and found.strides[1] != 1
    return found if columns else graph.strided_operand(self, size, unit_dim=1)


@lowering("mm")
def mm(graph, self, mat2):
    return _product(graph, self, mat2)


@lowering("addmm")
def addmm(graph, self, mat1, mat2, *, beta=1, alpha=1):
    product = scaled(graph, _product(graph, mat1, mat2), alpha, mat1.dtype)
    return product if beta == 0 else add(graph, product, scaled(graph, self, beta, self.dtype))


@lowering("bmm")
def bmm(graph, self, mat2):
    (batch, rows, depth), columns = self.size, mat2.size[2]
    depth = mat2.size[1] if isinstance(depth, SymInt) else depth
    if not (batch and rows and columns and depth):
        return graph.pointwise((batch, rows, columns), self.dtype, lambda index: Constant(self.dtype, 0.0))
    operands = {
        "a": graph.strided_operand(in_float32(graph, self), (batch, rows, depth)),
        "b": graph.strided_operand(mat2, (batch, depth, columns)),
    }
    return graph.template(
        "bgemm", (batch, rows, columns), self.dtype, batch * rows, columns, operands, batch=batch, rows_each=rows,
        depth=depth,
    )  # fmt: skip


@lowering("_scaled_dot_product_flash_attention_for_cpu")
def attention(graph, query, key, value, dropout_p=0.0, is_causal=False, *, attn_mask=None, scale=None):
    batch, heads, rows, depth = query.size
    keys, depth = key.size[2], int(depth)  # the kernel is compiled for one depth
    operands = {
        "q": graph.strided_operand(in_float32(graph, query), query.size),
        "k": graph.strided_operand(in_float32(graph, key), key.size),
        "v": graph.strided_operand(in_float32(graph, value), value.size),
    }
    if attn_mask is not None:
        wide = (batch, heads, rows, keys)
        lead = (1,) * (4 - len(attn_mask.size)) + attn_mask.size
        graph.realize(attn_mask)
        small = graph.operand(attn_mask, lead) or graph.operand(graph.copy(attn_mask), lead)
        strides = tuple(0 if lead[dim] == 1 and wide[dim] != 1 else small.strides[dim] for dim in range(4))
        operands["mask"] = type(small)(small.buffer, small.offset, strides)
    made = graph.template(
        "attention", (batch, rows, heads, depth), float32, batch * rows, heads * depth, operands, batch=batch, heads=heads,
        rows_each=rows, keys=keys, depth=depth, causal=bool(is_causal),
        scale=1.0 / math.sqrt(depth) if scale is None else scale,
    )  # fmt: skip
    output = made.view((batch, heads, rows, depth), lambda index: [index[0], index[2], index[1], index[3]])
    return in_type(graph, output, query.dtype), None
