"""Packed batches in TorchScript's language: packing, unpacking and padding."""

from __future__ import annotations

from collections.abc import Callable
from typing import List, Optional, Tuple  # noqa: UP035 (scripted code)

from rushlight.core.dtype import int64
from rushlight.core.tensor import Tensor
from rushlight.jit.overloads import overload
from rushlight.nn.functional.common import aten
from rushlight.nn.utils import rnn
from rushlight.nn.utils.rnn import PackedSequence
from rushlight.ops.construct import tensor


def invert_permutation(permutation: Optional[Tensor]) -> Optional[Tensor]:
    if permutation is None:
        return None
    places = aten.arange(0, permutation.numel(), device=permutation.device)
    return aten.empty_like(permutation).scatter_(0, permutation, places)


@overload
def pack_padded_sequence(input: Tensor, lengths: Tensor, batch_first: bool = False, enforce_sorted: bool = True
                         ) -> PackedSequence: ...
@overload
def pack_padded_sequence(input: Tensor, lengths: List[int], batch_first: bool = False, enforce_sorted: bool = True
                         ) -> PackedSequence: ...
def pack_padded_sequence(input, lengths, batch_first, enforce_sorted):
    counts = lengths if isinstance(lengths, Tensor) else tensor(lengths, dtype=int64)
    if enforce_sorted:
        data, batch_sizes = aten._pack_padded_sequence(input, counts, batch_first)
        return PackedSequence(data, batch_sizes, None, None)
    counts, order = aten.sort(counts, descending=True)
    order = order.to(input.device)
    input = input.index_select(0 if batch_first else 1, order)
    data, batch_sizes = aten._pack_padded_sequence(input, counts, batch_first)
    return PackedSequence(data, batch_sizes, order, invert_permutation(order))


def pad_packed_sequence(
    sequence: PackedSequence, batch_first: bool = False, padding_value: float = 0.0, total_length: Optional[int] = None
) -> Tuple[Tensor, Tensor]:
    steps = sequence.batch_sizes.size(0)
    if total_length is not None:
        if total_length < steps:
            raise ValueError(
                "Expected total_length to be at least the length of the longest sequence in input, but got "
                "total_length={} and max sequence length being {}".format(total_length, steps)
            )
        steps = total_length
    padded, lengths = aten._pad_packed_sequence(sequence.data, sequence.batch_sizes, batch_first, padding_value, steps)
    order = sequence.unsorted_indices
    if order is not None:
        return padded.index_select(0 if batch_first else 1, order), lengths.index_select(0, order.cpu())
    return padded, lengths


@overload
def pad_sequence(sequences: List[Tensor], batch_first: bool = False, padding_value: float = 0.0, padding_side: str = "right"
                 ) -> Tensor: ...
@overload
def pad_sequence(sequences: Tensor, batch_first: bool = False, padding_value: float = 0.0, padding_side: str = "right"
                 ) -> Tensor: ...
def pad_sequence(sequences, batch_first, padding_value, padding_side):
    parts = sequences.unbind(0) if isinstance(sequences, Tensor) else sequences
    return aten.pad_sequence(parts, batch_first, padding_value, padding_side)


def unpad_sequence(padded_sequences: Tensor, lengths: Tensor, batch_first: bool = False) -> List[Tensor]:
    batch = padded_sequences if batch_first else padded_sequences.transpose(0, 1)
    found: List[Tensor] = []
    for index in range(len(lengths)):
        found.append(batch[index][: int(lengths[index])])
    return found


def pack_sequence(sequences: List[Tensor], enforce_sorted: bool = True) -> PackedSequence:
    lengths = tensor([each.size(0) for each in sequences], dtype=int64)
    return pack_padded_sequence(pad_sequence(sequences), lengths, enforce_sorted=enforce_sorted)


def unpack_sequence(packed_sequences: PackedSequence) -> List[Tensor]:
    padded, lengths = pad_packed_sequence(packed_sequences, batch_first=True)
    return unpad_sequence(padded, lengths, batch_first=True)


REPLACEMENTS: dict[Callable, Callable] = {
    rnn.invert_permutation: invert_permutation, rnn.pack_padded_sequence: pack_padded_sequence,
    rnn.pad_packed_sequence: pad_packed_sequence, rnn.pad_sequence: pad_sequence, rnn.unpad_sequence: unpad_sequence,
    rnn.pack_sequence: pack_sequence, rnn.unpack_sequence: unpack_sequence,
}  # fmt: skip
