"""Templates as Triton kernels, each with its epilogue.

In: a group that begins with a template. Out: its launches. NoTritonForm for templates that are calls of native functions.
"""

from __future__ import annotations

from typing import NamedTuple

from rushlight.core.algebra import Expr, Var, as_expr, unflatten_index
from rushlight.core.dtype import dtype
from rushlight.inductor.codegen.triton.attention import attention_launches
from rushlight.inductor.codegen.triton.convolutions import convolution_of
from rushlight.inductor.codegen.triton.kernels import Launch, Limits
from rushlight.inductor.codegen.triton.products import Product, SumKernel, product_launches
from rushlight.inductor.codegen.triton.types import NoTritonForm
from rushlight.inductor.ir import Buffer, Load, Operand, TemplateBuffer, Value
from rushlight.inductor.lowering.builder import call
from rushlight.inductor.origins import origins_of
from rushlight.inductor.scheduler import Group
from rushlight.inductor.sizes import row_major

PRODUCTS = ("gemm", "word_gemm", "bgemm")
PLAIN_PRODUCT = "plain_product<{type}>"


class Precision(NamedTuple):
    """How float32 matrices are multiplied: "ieee", or "tf32" with 10 bits of the fractions."""

    float32: str = "ieee"


def template_launches(
    group: Group, buffers: dict[str, Buffer], hints: dict[Var, int], precision: Precision, limits: Limits
) -> list[Launch]:  # fmt: skip
    """Return the launches of a template's group."""
    template = group.template
    if template.kind in PRODUCTS:
        return product_launches(group, buffers, hints, _product_of(template, buffers), precision.float32, limits)
    if template.kind in ("attention", "attention_backward"):
        return attention_launches(group, buffers, hints, precision.float32, limits)
    convolution = convolution_of(template, buffers)
    if convolution is not None:
        if convolution.is_single:
            return [SumKernel(group, buffers, hints, *convolution.term()).write()]
        return product_launches(group, buffers, hints, convolution.product(), precision.float32, limits)
    if template.kind == "library" and template.parameters["function"] == PLAIN_PRODUCT:
        return [_plain_product(group, buffers, hints).write()]
    name = template.parameters["function"] if template.kind == "library" else template.kind
    raise NoTritonForm(origins_of(template), f"{name} is a function of the native headers")


def _element(operand: Operand, place: tuple[Expr, ...], buffers: dict[str, Buffer]) -> Load:
    index = sum((at * step for at, step in zip(place, operand.strides, strict=True)), as_expr(operand.offset))
    return Load(buffers[operand.buffer].layout.dtype, operand.buffer, index)


def _product_of(template: TemplateBuffer, buffers: dict[str, Buffer]) -> Product:
    """Return the product of a template with operands a (rows, depth) and b (depth, columns), or batches of them."""
    a, b, depth = template.operands["a"], template.operands["b"], template.parameters["depth"]
    if template.kind != "bgemm":
        return Product(
            1, template.rows, template.columns, depth,
            lambda batch, x, k: _element(a, (x, k), buffers), lambda batch, k, r: _element(b, (k, r), buffers),
        )  # fmt: skip
    rows = template.parameters["rows_each"]
    return Product(
        template.parameters["batch"], rows, template.columns, depth,
        lambda batch, x, k: _element(a, (batch, x, k), buffers), lambda batch, k, r: _element(b, (batch, k, r), buffers),
        lambda batch, x, r: (batch * rows + x, r),
    )  # fmt: skip


def _plain_product(group: Group, buffers: dict[str, Buffer], hints: dict[Var, int]) -> SumKernel:
    """Return the kernel of a batched product that is summed in its own type: of float64 or integers."""
    template = group.template
    count, rows, depth, columns = template.parameters["numbers"]
    left, right = template.operands["in0"], template.operands["in1"]
    kind: dtype = template.parameters["type"]

    def factor(operand: Operand, place: tuple[Expr, ...], sizes: tuple) -> Load:
        index = sum((at * step for at, step in zip(place, row_major(sizes), strict=True)), as_expr(operand.offset))
        return Load(kind, operand.buffer, index)

    def term(x: Expr, r: Expr, step: Expr) -> Value:
        batch, row, column = unflatten_index(r, (count, rows, columns))
        first = factor(left, (batch, row, step), (count, rows, depth))
        return call("mul", kind, first, factor(right, (batch, step, column), (count, depth, columns)))

    return SumKernel(group, buffers, hints, depth, term)
