"""Samples become batches: tensors, arrays and numbers are stacked, containers of them part by part."""

from __future__ import annotations

from collections.abc import Callable, Mapping, MutableMapping, MutableSequence, Sequence
from copy import copy
from typing import Any

import numpy as np

from rushlight.core.dtype import float64
from rushlight.core.tensor import Tensor
from rushlight.ops import aten
from rushlight.ops.construct import as_tensor, tensor


def default_convert(data: Any) -> Any:
    """NumPy arrays and numbers as tensors, also in containers; all else as it is."""
    if isinstance(data, np.ndarray | np.generic):
        return data if data.dtype.kind in "SUO" else as_tensor(data)
    if isinstance(data, Mapping):
        return _like(data, {key: default_convert(value) for key, value in data.items()})
    if isinstance(data, tuple) and hasattr(data, "_fields"):
        return type(data)(*map(default_convert, data))
    if isinstance(data, tuple):
        return list(map(default_convert, data))
    if isinstance(data, Sequence) and not isinstance(data, str | bytes):
        return _like(data, list(map(default_convert, data)))
    return data


def default_collate(batch: list | tuple) -> Any:
    """One batch of a list of samples, with a new first dimension.

    Tensors and arrays are stacked, numbers become tensors (floats in float64), strings stay a list, and mappings, tuples and
    sequences are collated part by part. TypeError for anything else; RuntimeError for sequences of unequal length.
    """
    first = batch[0]
    if isinstance(first, Tensor):
        return aten.stack.default(list(batch), 0)
    if isinstance(first, np.ndarray):
        if first.dtype.kind in "SUO":
            raise TypeError(_UNKNOWN.format(first.dtype))
        return default_collate([as_tensor(value) for value in batch])
    if isinstance(first, np.generic):
        return as_tensor(batch)
    if isinstance(first, float):
        return tensor(batch, dtype=float64)
    if isinstance(first, int):
        return tensor(batch)
    if isinstance(first, str | bytes):
        return batch
    if isinstance(first, Mapping):
        return _like(first, {key: default_collate([value[key] for value in batch]) for key in first})
    if isinstance(first, tuple) and hasattr(first, "_fields"):
        return type(first)(*map(default_collate, _columns(batch)))
    if isinstance(first, tuple):
        return [default_collate(column) for column in _columns(batch)]
    if isinstance(first, Sequence):
        return _like(first, [default_collate(column) for column in _columns(batch)])
    raise TypeError(_UNKNOWN.format(type(first)))


_UNKNOWN = "default_collate: batch must contain tensors, numpy arrays, numbers, dicts or lists; found {}"


def _columns(batch: list) -> list[tuple]:
    if any(len(sample) != len(batch[0]) for sample in batch):
        raise RuntimeError("each element in list of batch should be of equal size")
    return list(zip(*batch, strict=True))


def _like(original: Any, made: Any) -> Any:
    """`made`, a dict or list, as the class of `original` where that can hold it."""
    kind: Callable = type(original)
    if kind in (dict, list):
        return made
    try:
        if isinstance(original, MutableMapping):
            filled = copy(original)
            filled.update(made)
            return filled
        if isinstance(original, MutableSequence):
            filled = copy(original)
            filled[:] = made
            return filled
        return kind(made)
    except TypeError:  # a class of its own mind about its arguments
        return made
