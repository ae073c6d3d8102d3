"""Operators of differentiated graphs: gradients that may be absent, and sums over broadcast dimensions.

An absent gradient is None at run time, of type Tensor in the graph.
"""

from __future__ import annotations

from collections.abc import Sequence

from rushlight.core.tensor import Tensor
from rushlight.jit.operators.registry import declare_operator


def _grad_sum_to_size(self: Tensor | None, size: Sequence[int] | None) -> Tensor | None:
    return self if size is None or self is None else self.sum_to_size(list(size))


def _size_if_not_equal(self_size: Sequence[int], other_size: Sequence[int]) -> list[int] | None:
    return None if list(self_size) == list(other_size) else list(self_size)


def _add(a: Tensor | None, b: Tensor | None) -> Tensor | None:
    if a is None or b is None:
        return b if a is None else a
    return a + b


def _broadcast_sizes(*sizes: Sequence[int]) -> list[int]:
    rank = max(map(len, sizes), default=0)
    padded = [[1] * (rank - len(each)) + list(each) for each in sizes]
    found = []
    for parts in zip(*padded, strict=True):
        wide = {part for part in parts if part != 1} or {1}
        if len(wide) > 1:
            raise RuntimeError(f"sizes {[list(each) for each in sizes]} can't be broadcast to one")
        found.append(wide.pop())
    return found


declare_operator("aten::_grad_sum_to_size(Tensor(a) self, int[]? size) -> Tensor(a)", _grad_sum_to_size)
declare_operator("aten::_size_if_not_equal(int[] self_size, int[] other_size) -> int[]?", _size_if_not_equal)
declare_operator("prim::AutogradAdd(Any(a) a, Any(a) b) -> Any(a)", _add)
declare_operator("prim::AutogradZero() -> Tensor", lambda: None)
declare_operator("prim::AutogradAnyNonZero(...) -> bool", lambda *values: any(value is not None for value in values))
declare_operator("prim::AutogradAllNonZero(...) -> bool", lambda *values: all(value is not None for value in values))
declare_operator("prim::AutogradAllZero(...) -> bool", lambda *values: all(value is None for value in values))
declare_operator("prim::BroadcastSizes(...) -> int[]", _broadcast_sizes)
declare_operator("prim::ReturnTensorSizes(Tensor self) -> int[]", lambda self: list(self.shape))
