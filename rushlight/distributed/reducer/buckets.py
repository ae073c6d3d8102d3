"""Buckets: gradients side by side in one flat buffer, so that ranks exchange few large messages."""

from __future__ import annotations

from collections.abc import Sequence

from rushlight.core.strides import is_non_overlapping_and_dense
from rushlight.core.tensor import Tensor

FIRST_BUCKET_BYTES = 1 << 20  # small, so that the first reduction begins early in the backward pass
_LARGEST_BUCKET_BYTES = 25 << 20
_USUAL_BUCKETS = 8  # so that, of a small model too, only an eighth is left to reduce when the backward pass ends


def default_bucket_bytes(parameters: Sequence[Tensor]) -> int:
    """Return how large buckets are unless the program says so."""
    part = sum(each.nbytes for each in parameters) // _USUAL_BUCKETS
    return min(max(part, FIRST_BUCKET_BYTES), _LARGEST_BUCKET_BYTES)


class Bucket:
    """Some parameters' gradients in one buffer; `indices` are the parameters' numbers, `views` their parts of the buffer."""

    def __init__(self, parameters: Sequence[Tensor], indices: Sequence[int]) -> None:
        self.parameters, self.indices = list(parameters), list(indices)
        self.flat = parameters[0].detach().new_zeros([sum(each.numel() for each in parameters)])
        self.views = _views(self.flat, parameters)
        self.pending = len(self.indices)


def _views(flat: Tensor, parameters: Sequence[Tensor]) -> list[Tensor]:
    """Return the parts of a flat tensor, each with the shape of a parameter and, where that has no gaps, its strides."""
    made, start = [], 0
    for parameter in parameters:
        strides = parameter.stride()
        if is_non_overlapping_and_dense(tuple(parameter.shape), tuple(strides)):
            made.append(flat.as_strided(parameter.shape, strides, start))
        else:
            made.append(flat.narrow(0, start, parameter.numel()).view(parameter.shape))
        start += parameter.numel()
    return made


class GradBucket:
    """What a communication hook gets: the gradients of some parameters, as one flat tensor."""

    def __init__(self, bucket: Bucket, index: int, is_last: bool) -> None:
        self._bucket, self._index, self._is_last = bucket, index, is_last
        self._buffer = bucket.flat

    def index(self) -> int:
        """Return the bucket's number, in the order in which buckets are reduced."""
        return self._index

    def buffer(self) -> Tensor:
        """Return the gradients, one after the other, in one 1-D tensor."""
        return self._buffer

    def set_buffer(self, buffer: Tensor) -> None:
        """Replace the flat tensor, for the hooks that follow."""
        self._buffer = buffer

    def gradients(self) -> list[Tensor]:
        """Return the gradients as views of the flat tensor, with the parameters' shapes."""
        return _views(self._buffer, self._bucket.parameters)

    def parameters(self) -> list[Tensor]:
        """Return the parameters."""
        return list(self._bucket.parameters)

    def is_last(self) -> bool:
        """Return whether this bucket is the last one to be reduced."""
        return self._is_last


def assign(parameters: Sequence[Tensor], order: Sequence[int], limits: Sequence[int]) -> list[list[int]]:
    """Return the parameters' numbers in groups of one dtype and device, filled in the order given.

    `limits` are bytes: of the first group, of the second, and so on; the last holds for all that follow. A group is closed by
    the parameter that reaches its limit.
    """
    closed: list[list[int]] = []
    opened: dict[object, list[int]] = {}
    sizes: dict[object, int] = {}
    counts: dict[object, int] = {}
    for index in order:
        kind = parameters[index].dtype, parameters[index].device
        opened.setdefault(kind, []).append(index)
        sizes[kind] = sizes.get(kind, 0) + parameters[index].nbytes
        number = counts.get(kind, 0)
        if sizes[kind] >= limits[min(number, len(limits) - 1)]:
            closed.append(opened.pop(kind))
            sizes[kind], counts[kind] = 0, number + 1
    return closed + list(opened.values())
