"""Index maps of strided layouts and contiguous reshapes.

In: sizes, strides and index expressions. Out: index expressions. Stage: inductor, lowering of view, reshape, permute
and of every load from a strided buffer.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from rushlight.core.algebra.arithmetic import ONE, ZERO, combine, memoised, multiply
from rushlight.core.algebra.nodes import Const, Expr
from rushlight.core.algebra.operators import as_expr
from rushlight.core.algebra.symbolic import floor_divide, modulo

Size = int | Expr


def flatten_index(indices: Sequence[Size], strides: Sequence[Size], offset: Size = 0) -> Expr:
    """Return `offset + sum(index * stride)`: where an element lies in its storage, counted in elements.

    ValueError when the two sequences differ in length.
    """
    if len(indices) != len(strides):
        raise ValueError(f"flatten_index: {len(indices)} indices but {len(strides)} strides; expected one each")
    return _linearize(tuple(indices), tuple(strides), offset)


@memoised
def _linearize(indices: tuple[Size, ...], strides: tuple[Size, ...], offset: Size) -> Expr:
    parts = [(as_expr(offset), 1)]
    for index, stride in zip(map(as_expr, indices), map(as_expr, strides), strict=True):
        parts.append((index, stride.value) if type(stride) is Const else (multiply(index, stride), 1))
    return combine(parts)


def unflatten_index(linear: Size, sizes: Sequence[Size]) -> list[Expr]:
    """Return the row-major coordinates of position `linear` in a contiguous tensor of the given sizes.

    `linear` must be a valid position, so the leading dimension takes no remainder even where the range of `linear` is
    unknown.
    """
    return list(_delinearize(as_expr(linear), tuple(sizes)))


@memoised
def _delinearize(linear: Expr, sizes: tuple[Size, ...]) -> tuple[Expr, ...]:
    found = [ZERO] * len(sizes)
    axes = [axis for axis, size in enumerate(sizes) if size != 1]
    for axis in reversed(axes[1:]):
        size = as_expr(sizes[axis])
        found[axis] = modulo(linear, size)
        linear = floor_divide(linear, size)
    if axes:
        found[axes[0]] = linear
    return tuple(found)


def row_major_strides(sizes: Sequence[Size]) -> list[Expr]:
    """Return the strides, in elements, of a contiguous tensor of the given sizes."""
    strides = [ONE] * len(sizes)
    for axis in range(len(sizes) - 2, -1, -1):
        strides[axis] = multiply(strides[axis + 1], as_expr(sizes[axis + 1]))
    return strides


def reindex_view(old_sizes: Sequence[Size], new_sizes: Sequence[Size]) -> Callable[[Sequence[Size]], list[Expr]]:
    """Return the index map of a contiguous reshape: an index into `new_sizes` -> the same element's index into `old_sizes`.

    Dimensions of size 1 are dropped, and the rest is cut wherever a suffix of both shapes has the same number of
    elements, so that dimensions which the reshape leaves alone pass through without division. ValueError where both
    shapes are known and hold different numbers of elements.
    """
    new_rank = len(new_sizes)
    groups = _matching_groups(tuple(old_sizes), tuple(new_sizes))

    def reindex(index: Sequence[Size]) -> list[Expr]:
        if len(index) != new_rank:
            raise ValueError(f"{len(index)} indices into a view of sizes {tuple(new_sizes)}, expected {new_rank}")
        found = [ZERO] * len(old_sizes)
        for group in groups:
            linear = flatten_index([index[axis] for axis in group.new_axes], group.new_strides)
            for axis, value in zip(group.old_axes, unflatten_index(linear, group.old_sizes), strict=True):
                found[axis] = value
        return found

    return reindex


class _Group(NamedTuple):
    """A run of axes of both shapes that holds the same number of elements, axes of size 1 left out."""

    old_axes: list[int]
    old_sizes: list[Size]
    new_axes: list[int]
    new_strides: list[Expr]


@memoised
def _matching_groups(old: tuple[Size, ...], new: tuple[Size, ...]) -> list[_Group]:
    """Return the shapes cut into runs wherever both have a suffix of the same number of elements; last axes first."""
    old_suffixes, new_suffixes = _suffix_products(old), _suffix_products(new)
    old_total, new_total = old_suffixes[0][0], new_suffixes[0][0]
    if type(old_total) is Const and type(new_total) is Const and old_total is not new_total:
        raise ValueError(f"a view of sizes {new} holds {new_total} elements, "
                         f"but the tensor of sizes {old} holds {old_total}")
    if old_total is ZERO:
        return []
    cuts = dict(new_suffixes)
    groups = []
    old_end, new_end = len(old), len(new)
    for product, old_start in reversed(old_suffixes):
        # The caller guarantees equal numbers of elements, even if the symbolic products have different forms.
        new_start = cuts.get(product) if old_start else 0
        if new_start is not None:
            groups.append(_group(old, range(old_start, old_end), new, range(new_start, new_end)))
            old_end, new_end = old_start, new_start
    return [group for group in groups if group.old_axes]


def _group(old: tuple[Size, ...], old_run: range, new: tuple[Size, ...], new_run: range) -> _Group:
    old_axes = [axis for axis in old_run if old[axis] != 1]
    new_axes = [axis for axis in new_run if new[axis] != 1]
    strides = row_major_strides([new[axis] for axis in new_axes])
    return _Group(old_axes, [old[axis] for axis in old_axes], new_axes, strides)


def _suffix_products(sizes: tuple[Size, ...]) -> list[tuple[Expr, int]]:
    """Return (number of elements of sizes[start:], start) for start from 0 to len(sizes)."""
    product = ONE
    found = [(product, len(sizes))]
    for start in range(len(sizes) - 1, -1, -1):
        product = multiply(product, as_expr(sizes[start]))
        found.append((product, start))
    return found[::-1]
