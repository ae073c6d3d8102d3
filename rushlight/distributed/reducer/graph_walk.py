"""Which parameters a result depends on, found in the tape."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from rushlight.autograd.node import Node
from rushlight.autograd.view_history import gradient_edge
from rushlight.core.pytree import tree_flatten
from rushlight.core.tensor import Tensor


def tensors_in(value: Any) -> list[Tensor]:
    """Return the tensors in nested lists, tuples and dictionaries, and in the fields of other objects at the top."""
    if not isinstance(value, Tensor | list | tuple | dict) and hasattr(value, "__dict__"):
        value = vars(value)
    return [leaf for leaf in tree_flatten(value)[0] if isinstance(leaf, Tensor)]


def unreached(results: Iterable[Tensor], accumulators: Sequence[Node]) -> list[int]:
    """Return the numbers of those leaves' nodes that a backward pass from `results` does not come to."""
    stack = [gradient_edge(tensor)[0] for tensor in results if tensor.requires_grad]
    seen: set[Node] = set(filter(None, stack))
    while stack:
        node = stack.pop()
        for following, _ in node.next_functions if node is not None else ():
            if following is not None and following not in seen:
                seen.add(following)
                stack.append(following)
    return [index for index, node in enumerate(accumulators) if node not in seen]
