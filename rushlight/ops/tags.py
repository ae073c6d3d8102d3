"""`Tag`: facts about operators that their schemas do not tell. `op.tags` holds them."""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum


class Tag(StrEnum):
    """A fact about an operator. The library itself reads `nondeterministic_seeded`: such an operator draws random numbers."""

    core = "core"
    cudagraph_unsafe = "cudagraph_unsafe"
    data_dependent_output = "data_dependent_output"
    dynamic_output_shape = "dynamic_output_shape"
    flexible_layout = "flexible_layout"
    generated = "generated"
    inplace_view = "inplace_view"
    maybe_aliasing_or_mutating = "maybe_aliasing_or_mutating"
    needs_contiguous_strides = "needs_contiguous_strides"
    needs_exact_strides = "needs_exact_strides"
    needs_fixed_stride_order = "needs_fixed_stride_order"
    nondeterministic_bitwise = "nondeterministic_bitwise"
    nondeterministic_seeded = "nondeterministic_seeded"
    pointwise = "pointwise"
    pt2_compliant_tag = "pt2_compliant_tag"
    reduction = "reduction"
    view_copy = "view_copy"


def tag_set(tags: Tag | Iterable[Tag]) -> frozenset[Tag]:
    """Return one tag or several as a set. TypeError for anything else."""
    found = frozenset((tags,) if isinstance(tags, Tag) else tags)
    wrong = next((each for each in found if not isinstance(each, Tag)), None)
    if wrong is not None:
        raise TypeError(f"an operator's tags must be of torch.Tag, got {wrong!r}")
    return found
