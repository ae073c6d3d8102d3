"""Items of tensors by 0-d index tensors, `table[i]`, in functions under `vmap`: each example has its own index.

In: a tracked tensor and a key. Out: the tensor after indexing with the 0-d tensors, and the rest of the key.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from rushlight.core.dtype import bool_
from rushlight.dynamo.values.base import Value, realized
from rushlight.dynamo.values.constant import NONE, ConstantValue
from rushlight.dynamo.values.sequences import SequenceValue
from rushlight.ops.registry import aten

if TYPE_CHECKING:
    from rushlight.dynamo.values.base import Following

_INDEX = aten("index.Tensor")


def is_scalar_index(value: Value) -> bool:
    """Return whether a key is a 0-d integer tensor."""
    fake = getattr(realized(value), "fake", None)
    if fake is None or fake.dim():
        return False
    return not (fake.dtype.is_floating_point or fake.dtype.is_complex or fake.dtype is bool_)


def by_scalars(tx: Following, owner: Value, key: Value) -> tuple[Value, Value | None]:
    """Return the tensor after indexing by the 0-d tensors in a key, and the rest of the key; None if nothing is left."""
    parts = key.items_of(tx) if isinstance(key, SequenceValue) and key.kind is tuple else [key]
    if not any(map(is_scalar_index, parts)) or any(_is_mask_or_many(part) for part in parts):
        return owner, key
    chosen, rest, dim = [], [], 0
    width = owner.fake.dim() - sum(map(_takes_dimension, parts))
    for part in parts:
        if is_scalar_index(part):
            chosen += [NONE] * (dim - len(chosen)) + [part]
        else:
            rest.append(part)
        dim += width if _is_constant(part, ...) else _takes_dimension(part)
    found = tx.call_in_graph("call_function", _INDEX, [owner, SequenceValue(chosen, list)], {})
    return found, SequenceValue(rest, tuple) if any(not _is_constant(part, ...) for part in rest) else None


def _is_mask_or_many(part: Value) -> bool:
    """Return whether a part of a key indexes several elements by a tensor or list, which moves dimensions."""
    if is_scalar_index(part) or part.is_constant() and not isinstance(part.constant(), bool | list | tuple):
        return False
    return hasattr(part, "fake") or isinstance(part, SequenceValue) or isinstance(part, ConstantValue)


def _takes_dimension(part: Value) -> int:
    return 0 if _is_constant(part, None) or _is_constant(part, ...) else 1


def _is_constant(part: Value, constant: object) -> bool:
    return part.is_constant() and part.constant() is constant
