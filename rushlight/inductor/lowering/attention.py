"""Lowering of attention and its gradients to templates, which compute in float32.

A kernel with several results writes them one after the other into one buffer.
"""

from __future__ import annotations

import math

from rushlight.core.dtype import float32
from rushlight.core.symbolic import SymInt
from rushlight.inductor.ir import Operand
from rushlight.inductor.lowering.builder import GraphBuilder
from rushlight.inductor.lowering.products import as_factor, in_type
from rushlight.inductor.lowering.registry import lowering
from rushlight.inductor.tensor_box import TensorBox
from rushlight.ops.meta.attention import default_scale

Size = int | SymInt


def _heads_operand(graph: GraphBuilder, box: TensorBox) -> Operand:
    return graph.strided_operand(as_factor(graph, box), box.size)


def _mask_operand(graph: GraphBuilder, mask: TensorBox, wide: tuple[Size, ...]) -> Operand:
    """Return the mask as it is in memory, with stride 0 where it is broadcast."""
    lead = (1,) * (4 - len(mask.size)) + mask.size
    graph.realize(mask)
    small = graph.operand(mask, lead) or graph.operand(graph.copy(mask), lead)
    strides = tuple(0 if lead[dim] == 1 and wide[dim] != 1 else small.strides[dim] for dim in range(4))
    return Operand(small.buffer, small.offset, strides)


def _move_heads_outside(box: TensorBox) -> TensorBox:
    """View [B, L, H, ...] as [B, H, L, ...]."""
    batch, rows, heads, *rest = box.size
    return box.view((batch, heads, rows, *rest), lambda index: [index[0], index[2], index[1], *index[3:]])


def _parameters(query: TensorBox, key: TensorBox, is_causal: bool, scale: float | None) -> dict[str, object]:
    batch, heads, rows, depth = query.size
    depth = int(depth)  # the kernel is compiled for one constant depth
    return {
        "batch": batch, "heads": heads, "rows_each": rows, "keys": key.size[2], "depth": depth, "causal": bool(is_causal),
        "scale": default_scale(depth) if scale is None else scale,
    }  # fmt: skip


@lowering("_scaled_dot_product_flash_attention_for_cpu")
def attention(graph, query, key, value, dropout_p=0.0, is_causal=False, *, attn_mask=None, scale=None):
    parameters = _parameters(query, key, is_causal, scale)
    batch, heads, rows, depth = query.size
    operands = {"q": _heads_operand(graph, query), "k": _heads_operand(graph, key), "v": _heads_operand(graph, value)}
    if attn_mask is not None:
        operands["mask"] = _mask_operand(graph, attn_mask, (batch, heads, rows, key.size[2]))
    if 1 not in graph.items_used:  # the log-sum-exp is not used
        made = graph.template(
            "attention", (batch, rows, heads, depth), query.dtype if graph.target.keeps_halves else float32, batch * rows,
            heads * depth, operands, **parameters,
        )
        return in_type(graph, _move_heads_outside(made), query.dtype), None
    sizes = [(batch, rows, heads, depth), (batch, heads, rows)]
    total = sum(map(math.prod, sizes))
    made = graph.template("attention", (total,), float32, 1, total, operands, sums=math.prod(sizes[0]), **parameters)
    output, sums = made.sections(sizes)
    return in_type(graph, _move_heads_outside(output), query.dtype), sums


@lowering("_scaled_dot_product_flash_attention_for_cpu_backward")
def attention_backward(
    graph, grad_out, query, key, value, out, logsumexp, dropout_p, is_causal, *, attn_mask=None, scale=None
):  # fmt: skip
    names = {"q": query, "k": key, "v": value, "out": out, "grad": grad_out}
    operands = {name: _heads_operand(graph, box) for name, box in names.items()}
    operands["sums"] = graph.strided_operand(logsumexp, logsumexp.size)
    if attn_mask is not None:
        operands["mask"] = _mask_operand(graph, attn_mask, (*query.size[:3], key.size[2]))
    sizes = [tuple(box.size[dim] for dim in (0, 2, 1, 3)) for box in (query, key, value)]
    total = sum(map(math.prod, sizes))
    kind = query.dtype if graph.target.keeps_halves and len({query.dtype, key.dtype, value.dtype}) == 1 else float32
    parameters = _parameters(query, key, is_causal, scale)
    made = graph.template("attention_backward", (total,), kind, 1, total, operands, **parameters)
    parts = [_move_heads_outside(part) for part in made.sections(sizes)]
    return tuple(in_type(graph, part, box.dtype) for part, box in zip(parts, (query, key, value), strict=True))
