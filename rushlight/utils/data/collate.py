"""Collate samples into batches: tensors, arrays and numbers are stacked, containers of them part by part."""

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
    """NumPy arrays and numbers converted to tensors, also in containers; other values unchanged."""
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


def collate(batch: list | tuple, *, collate_fn_map: dict[type | tuple[type, ...], Callable] | None = None) -> Any:
    """One batch of a list of samples, part by part, by the functions of `collate_fn_map`.

    It maps classes of parts, or tuples of classes, to functions `f(parts, *, collate_fn_map)`. Mappings, tuples and sequences
    without a function there are collated part by part. TypeError for anything else; RuntimeError for sequences of unequal
    length.
    """
    first = batch[0]
    functions = collate_fn_map or {}
    function = functions.get(type(first))
    if function is None:
        function = next((each for kinds, each in functions.items() if isinstance(first, kinds)), None)
    if function is not None:
        return function(batch, collate_fn_map=collate_fn_map)

    def parts(values: list | tuple) -> Any:
        return collate(values, collate_fn_map=collate_fn_map)

    if isinstance(first, Mapping):
        return _like(first, {key: parts([value[key] for value in batch]) for key in first})
    if isinstance(first, tuple) and hasattr(first, "_fields"):
        return type(first)(*map(parts, _columns(batch)))
    if isinstance(first, tuple):
        return [parts(column) for column in _columns(batch)]
    if isinstance(first, Sequence):
        return _like(first, [parts(column) for column in _columns(batch)])
    raise TypeError(_UNKNOWN.format(type(first)))


def collate_tensor_fn(batch: list | tuple, *, collate_fn_map: dict | None = None) -> Tensor:
    """Tensors of one shape, stacked."""
    return aten.stack.default(list(batch), 0)


def collate_numpy_array_fn(batch: list | tuple, *, collate_fn_map: dict | None = None) -> Any:
    """Arrays of one shape, stacked as tensors. TypeError for arrays of strings and objects."""
    if batch[0].dtype.kind in "SUO":
        raise TypeError(_UNKNOWN.format(batch[0].dtype))
    return collate([as_tensor(value) for value in batch], collate_fn_map=collate_fn_map)


def collate_numpy_scalar_fn(batch: list | tuple, *, collate_fn_map: dict | None = None) -> Tensor:
    """NumPy's numbers, as a tensor."""
    return as_tensor(batch)


def collate_float_fn(batch: list | tuple, *, collate_fn_map: dict | None = None) -> Tensor:
    """Floats, as a tensor in float64."""
    return tensor(batch, dtype=float64)


def collate_int_fn(batch: list | tuple, *, collate_fn_map: dict | None = None) -> Tensor:
    """Ints, as a tensor."""
    return tensor(batch)


def collate_str_fn(batch: list | tuple, *, collate_fn_map: dict | None = None) -> Any:
    """Strings, as they are."""
    return batch


default_collate_fn_map: dict[type | tuple[type, ...], Callable] = {
    Tensor: collate_tensor_fn, np.ndarray: collate_numpy_array_fn, (np.bool_, np.number, np.object_): collate_numpy_scalar_fn,
    float: collate_float_fn, int: collate_int_fn, str: collate_str_fn, bytes: collate_str_fn,
}  # fmt: skip
"""The collate function of each class for `default_collate`; programs may add their own classes."""


def default_collate(batch: list | tuple) -> Any:
    """One batch of a list of samples, with a new first dimension.

    Tensors and arrays are stacked, numbers become tensors (floats in float64), strings stay a list, and mappings, tuples and
    sequences are collated part by part. TypeError for anything else; RuntimeError for sequences of unequal length.
    """
    return collate(batch, collate_fn_map=default_collate_fn_map)


_UNKNOWN = "default_collate: batch must contain tensors, numpy arrays, numbers, dicts or lists; found {}"


def _columns(batch: list) -> list[tuple]:
    if any(len(sample) != len(batch[0]) for sample in batch):
        raise RuntimeError("each element in list of batch should be of equal size")
    return list(zip(*batch, strict=True))


def _like(original: Any, made: Any) -> Any:
    """`made`, a dict or list, converted to the class of `original` if possible."""
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
    except TypeError:  # a class with another constructor signature
        return made
