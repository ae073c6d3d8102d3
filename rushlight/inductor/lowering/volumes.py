"""Lowering of convolutions with few output channels to a template whose vectors run along rows of positions (volume.h).

Results are row-major. 1-D signals and images are volumes with dimensions of 1.
"""

from __future__ import annotations

import math

from rushlight.core.dtype import float32
from rushlight.inductor import costs
from rushlight.inductor.lowering.convolutions import contiguous_operand, has_one_filter, lies_channels_last
from rushlight.inductor.sizes import as_size, hint
from rushlight.inductor.tensor_box import TensorBox

MIN_USED_FRACTION = 0.5  # at least this fraction of the computed positions must lie inside rows, not past their ends
MIN_TAPS = 2  # with fewer taps, a convolution is a product that reads each pixel once
MAX_INTERLEAVED = 16  # maximal stride along rows in a gradient; `max_interleaved_phases` of volume.h


def by_positions(graph, input: TensorBox, weight: TensorBox, stride, padding, dilation, groups) -> TensorBox | None:
    """Return a convolution of any rank, without bias; None if vectors should run along channels instead."""
    extents = list(zip(input.size[2:], weight.size[2:], stride, padding, dilation, strict=True))
    sizes = [(size + 2 * pad - spread * (taps - 1) - 1) // step + 1 for size, taps, step, pad, spread in extents]
    if not _is_faster_by_positions(graph, input, weight, sizes, extents, groups):
        return None
    axes = _axis_members(extents)
    shape = (input.size[0], input.size[1], weight.size[0], groups, *axes)
    return _make_template(graph, "volumes", input, weight, shape, (input.size[0], weight.size[0], *sizes))


def _is_faster_by_positions(graph, input: TensorBox, weight: TensorBox, sizes: list, extents: list, groups) -> bool:
    outputs, taps = hint(weight.size[0]) // hint(groups), math.prod(map(hint, weight.size[2:]))
    if taps < MIN_TAPS or 2 * outputs > costs.core().panel:
        return False
    is_few = hint(groups) == 1 and 8 * outputs <= costs.core().panel and not has_one_filter(weight)
    if len(weight.size) < 5 and (not is_few or lies_channels_last(graph, input)):
        return False
    size, kernel, step, pad, spread = map(hint, extents[-1])
    width = sizes[-1] + spread * (kernel - 1) // step
    rows = hint(sizes[-2]) if len(sizes) > 1 else 1
    return _used_fraction(rows, hint(sizes[-1]), hint(width)) >= MIN_USED_FRACTION


def gradient_by_positions(graph, grad: TensorBox, weight: TensorBox, size: tuple, geometry) -> TensorBox | None:
    """Return the gradient of a 3-D convolution's input, which has `size`; None if there is no template for it."""
    if hint(geometry.stride[-1]) > MAX_INTERLEAVED:
        return None
    parts = (size[2:], weight.size[2:], geometry.stride, geometry.padding, geometry.dilation)
    shape = (size[0], size[1], weight.size[0], geometry.groups, *_axis_members(list(zip(*parts, strict=True))))
    return _make_template(graph, "volumes_input", grad, weight, shape, size)


def _axis_members(extents: list) -> list:
    """Return the members of three rl::volume_axis."""
    missing = [(1, 1, 1, 0, 1)] * (3 - len(extents))
    return [value for axis in (*missing, *extents) for value in axis]


def _make_template(graph, kind: str, source: TensorBox, weight: TensorBox, shape: tuple, size: tuple) -> TensorBox:
    filters, taps = contiguous_operand(graph, weight), math.prod(weight.size[2:])
    inputs = weight.size[1] if kind == "volumes" else weight.size[0] // shape[3]
    operands = {"input": contiguous_operand(graph, source), "weight": filters}
    return graph.template(
        kind, size, float32, size[0] * size[1], math.prod(size[2:]), operands, shape=shape, depth=as_size(inputs * taps),
        packed_once=graph.is_constant_buffer(filters.buffer),
    )  # fmt: skip


def _used_fraction(rows: int, columns: int, width: int) -> float:
    panel = costs.core().panel
    positions = (rows - 1) * width + columns
    return rows * columns / (-(-positions // panel) * panel) if rows > 0 and columns > 0 else 0.0
