"""`torch.nn.utils.rnn`: batches of sequences of different lengths, padded or packed.

A padded batch has one length for all sequences. A packed batch stores, time step by time step, the rows of the sequences that
are long enough, without padding; recurrent layers accept it as `PackedSequence`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from rushlight.core.dtype import int64
from rushlight.core.following import runs_as_it_is
from rushlight.core.tensor import Tensor
from rushlight.nn.modules.conversion import parse_to_arguments
from rushlight.ops.construct import tensor as make_tensor
from rushlight.ops.packet import namespaces

aten = namespaces.namespace("aten")


class _PackedFields(NamedTuple):
    data: Tensor
    batch_sizes: Tensor
    sorted_indices: Tensor | None
    unsorted_indices: Tensor | None


class PackedSequence(_PackedFields):
    """A packed batch.

    data: (all time steps, ...). batch_sizes: int64 on the CPU, the number of sequences at each time step. sorted_indices: the
    caller's index of each sequence, sorted by length; unsorted_indices: the inverse.
    """

    def __new__(
        cls,
        data: Tensor,
        batch_sizes: Tensor | None = None,
        sorted_indices: Tensor | None = None,
        unsorted_indices: Tensor | None = None,
    ) -> PackedSequence:
        if batch_sizes is None:
            if not isinstance(data, (tuple, list)) or len(data) != 2:
                raise ValueError("PackedSequence needs data and batch_sizes, or a pair of both")
            data, batch_sizes = data
        if unsorted_indices is None:
            unsorted_indices = invert_permutation(sorted_indices)
        if batch_sizes.device.type != "cpu":
            raise ValueError(
                "batch_sizes should always be on CPU. Instances of PackedSequence should never be created manually. "
                "They should be instantiated by functions like pack_sequence and pack_padded_sequence in "
                "nn.utils.rnn."
            )
        return super().__new__(cls, data, batch_sizes, sorted_indices, unsorted_indices)

    def to(self, *args: Any, **kwargs: Any) -> PackedSequence:
        """Return the same batch with its data on another device or in another dtype."""
        data = self.data.to(*args, **kwargs)
        if data is self.data:
            return self
        where = parse_to_arguments(*args, **kwargs)[0] or data.device
        moved = [None if index is None else index.to(where) for index in (self.sorted_indices, self.unsorted_indices)]
        return PackedSequence(data, self.batch_sizes, *moved)

    def cpu(self) -> PackedSequence:
        """On the CPU."""
        return self.to("cpu")

    def cuda(self, *args: Any, **kwargs: Any) -> PackedSequence:
        """On a GPU, by default the current one."""
        return self.to(*args, device="cuda", **kwargs) if not args and "device" not in kwargs else self.to(*args, **kwargs)

    def double(self) -> PackedSequence:
        """In float64."""
        return self._with_data(self.data.double())

    def float(self) -> PackedSequence:
        """In float32."""
        return self._with_data(self.data.float())

    def half(self) -> PackedSequence:
        """In float16."""
        return self._with_data(self.data.half())

    def long(self) -> PackedSequence:
        """In int64."""
        return self._with_data(self.data.long())

    def int(self) -> PackedSequence:
        """In int32."""
        return self._with_data(self.data.int())

    def _with_data(self, data: Tensor) -> PackedSequence:
        return PackedSequence(data, *self[1:])

    @property
    def is_cuda(self) -> bool:
        """Whether the data is on a CUDA device."""
        return self.data.device.type == "cuda"

    def is_pinned(self) -> bool:
        """Return whether the data is in page-locked memory."""
        return self.data.is_pinned()

    def pin_memory(self) -> PackedSequence:
        """Return the same batch in page-locked memory. RuntimeError without a GPU."""
        return PackedSequence(self.data.pin_memory(), *(part if part is None else part.pin_memory() for part in self[1:]))


def invert_permutation(permutation: Tensor | None) -> Tensor | None:
    """Return the permutation that undoes `permutation`; None for None."""
    if permutation is None:
        return None
    positions = aten.arange.default(permutation.numel(), device=permutation.device)
    return aten.empty_like.default(positions).scatter_(0, permutation, positions)


@runs_as_it_is("the size of a packed batch depends on lengths in a tensor", with_callees=True)
def pack_padded_sequence(
    input: Tensor, lengths: Tensor | Sequence[int], batch_first: bool = False, enforce_sorted: bool = True
) -> PackedSequence:
    """Pack a batch (time, batch, ...), or (batch, time, ...) if `batch_first`, by the sequences' lengths.

    With `enforce_sorted` the lengths must be in decreasing order; otherwise sequences are sorted, and the result stores the
    order. Raises RuntimeError for lengths that are not positive, not sorted or not one per sequence.
    """
    lengths = lengths if isinstance(lengths, Tensor) else make_tensor(list(lengths), dtype=int64)
    order = None
    if not enforce_sorted:
        lengths, order = lengths.sort(descending=True)
        order = order.to(input.device)
        input = input.index_select(0 if batch_first else 1, order)
    data, batch_sizes = aten._pack_padded_sequence.default(input, lengths.to(int64), batch_first)
    return PackedSequence(data, batch_sizes, order)


@runs_as_it_is("lengths of sequences depend on the values in a packed batch", with_callees=True)
def pad_packed_sequence(
    sequence: PackedSequence, batch_first: bool = False, padding_value: float = 0.0, total_length: int | None = None
) -> tuple[Tensor, Tensor]:
    """Return the padded batch and the lengths, in the caller's order; ValueError if `total_length` is too short."""
    steps = sequence.batch_sizes.size(0)
    if total_length is not None and total_length < steps:
        raise ValueError(
            "Expected total_length to be at least the length of the longest sequence in input, "
            f"but got total_length={total_length} and max sequence length being {steps}"
        )
    padded, lengths = aten._pad_packed_sequence.default(
        sequence.data, sequence.batch_sizes, batch_first, padding_value, total_length or steps
    )
    order = sequence.unsorted_indices
    if order is None:
        return padded, lengths
    return padded.index_select(0 if batch_first else 1, order), lengths.index_select(0, order.cpu())


def pad_sequence(
    sequences: Tensor | Iterable[Tensor],
    batch_first: bool = False,
    padding_value: float = 0.0,
    padding_side: str = "right",
) -> Tensor:
    """Sequences (length, ...) as one tensor (longest, count, ...), or (count, longest, ...) if `batch_first`."""
    if isinstance(sequences, Tensor):
        sequences = sequences.unbind(0)
    elif not isinstance(sequences, Iterable):
        raise RuntimeError(
            f"pad_sequence: Expected iterable for input sequences, but got arg of type: {type(sequences)}"
        )
    return aten.pad_sequence.default(list(sequences), batch_first, padding_value, padding_side)


def unpad_sequence(padded_sequences: Tensor, lengths: Tensor, batch_first: bool = False) -> list[Tensor]:
    """Return the sequences of a padded batch, each cut to its length."""
    batch = padded_sequences if batch_first else padded_sequences.transpose(0, 1)
    return [sequence[:length] for sequence, length in zip(batch.unbind(0), lengths.tolist(), strict=True)]


def pack_sequence(sequences: Sequence[Tensor], enforce_sorted: bool = True) -> PackedSequence:
    """Pack sequences (length, ...), longest first unless `enforce_sorted` is False."""
    lengths = make_tensor([sequence.size(0) for sequence in sequences])
    return pack_padded_sequence(pad_sequence(sequences), lengths, enforce_sorted=enforce_sorted)


def unpack_sequence(packed_sequences: PackedSequence) -> list[Tensor]:
    """Return the sequences of a packed batch, in the caller's order."""
    padded, lengths = pad_packed_sequence(packed_sequences, batch_first=True)
    return unpad_sequence(padded, lengths, batch_first=True)
