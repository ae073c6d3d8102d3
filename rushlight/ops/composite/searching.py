"""Composite searches: places in sorted sequences, membership."""

from __future__ import annotations

import functools

from rushlight.core.dtype import bool_
from rushlight.core.tensor import Tensor
from rushlight.ops.numbers import as_operand
from rushlight.ops.packet import namespaces
from rushlight.ops.promotion import result_type
from rushlight.ops.registry import composite

aten = namespaces.namespace("aten")
_MAX_COMPARED_VALUES = 3  # with at most this many values, isin compares with each; more are searched in a sorted list


@composite(
    "searchsorted.Scalar(Tensor sorted_sequence, Scalar self, *, bool out_int32=False, bool right=False, str? side=None, "
    "Tensor? sorter=None) -> Tensor"
)
def searchsorted(sorted_sequence, self, *, out_int32=False, right=False, side=None, sorter=None):
    value = as_operand(self, sorted_sequence)
    return aten.searchsorted.Tensor(sorted_sequence, value, out_int32=out_int32, right=right, side=side, sorter=sorter)


@composite("bucketize.Tensor(Tensor self, Tensor boundaries, *, bool out_int32=False, bool right=False) -> Tensor")
def bucketize(self, boundaries, *, out_int32=False, right=False):
    if boundaries.dim() != 1:
        raise RuntimeError(f"torch.searchsorted(): boundaries tensor must be 1 dimension, but got dim({boundaries.dim()})")
    kind = result_type(self, boundaries)
    return aten.searchsorted.Tensor(boundaries.to(kind), self.to(kind), out_int32=out_int32, right=right)


@composite("bucketize.Scalar(Scalar self, Tensor boundaries, *, bool out_int32=False, bool right=False) -> Tensor")
def bucketize_scalar(self, boundaries, *, out_int32=False, right=False):
    return bucketize(_as_tensor(self, boundaries), boundaries, out_int32=out_int32, right=right)


def _as_tensor(value: object, beside: Tensor) -> Tensor:
    return aten.full.default((), value, device=beside.device)


@composite("argwhere(Tensor self) -> Tensor")
def argwhere(self):
    return aten.nonzero.default(self)


def _check_ordered(values: Tensor) -> None:
    if values.dtype.is_complex or values.dtype is bool_:
        raise RuntimeError(f"Unsupported input type encountered for isin(): {values.dtype.scalar_name}")


@composite(
    "isin.Tensor_Tensor(Tensor elements, Tensor test_elements, *, bool assume_unique=False, bool invert=False) -> Tensor"
)
def isin(elements, test_elements, *, assume_unique=False, invert=False):
    kind = result_type(elements, test_elements)
    _check_ordered(elements)
    _check_ordered(test_elements)
    wanted, known = elements.to(kind), aten.reshape.default(test_elements, (-1,)).to(kind)
    count = known.numel()
    if not count:
        found = aten.zeros_like.default(wanted).bool()
    elif count <= _MAX_COMPARED_VALUES:
        found = functools.reduce(aten.logical_or.default, [wanted == aten.select.int(known, 0, each) for each in range(count)])
    else:
        known = aten.sort.default(known)[0]
        position = aten.clamp.default(aten.searchsorted.Tensor(known, wanted), None, count - 1)
        found = aten.index.Tensor(known, [position]) == wanted
    return aten.logical_not.default(found) if invert else found


@composite("isin.Tensor_Scalar(Tensor elements, Scalar test_element, *, bool assume_unique=False, bool invert=False) -> Tensor")
def isin_scalar(elements, test_element, *, assume_unique=False, invert=False):
    _check_ordered(elements)
    _check_ordered(_as_tensor(test_element, elements))
    return elements != test_element if invert else elements == test_element


@composite("isin.Scalar_Tensor(Scalar element, Tensor test_elements, *, bool assume_unique=False, bool invert=False) -> Tensor")
def isin_number(element, test_elements, *, assume_unique=False, invert=False):
    return isin(_as_tensor(element, test_elements), test_elements, invert=invert)
