"""`torch._dynamo._trace_wrapped_higher_order_op`: a context for mask functions under `vmap`."""

from __future__ import annotations


class TransformGetItemToIndex:
    """A context in which `x[i]` with tensors `i` of no dimensions can be mapped by `vmap`, as it always can here."""

    def __enter__(self) -> TransformGetItemToIndex:
        return self

    def __exit__(self, *error: object) -> None:
        return None
