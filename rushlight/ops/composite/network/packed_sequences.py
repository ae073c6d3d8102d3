"""Batches of sequences of different lengths: padded to one length, or packed without the padding.

Packed data is ordered by time step. Each step holds one row per sequence that is long enough, longest sequence first;
`batch_sizes` is the number of rows of each step.
"""

from __future__ import annotations

from rushlight.core.dtype import int64
from rushlight.ops.composite.network.common import arange, aten
from rushlight.ops.registry import composite


@composite("_pack_padded_sequence(Tensor input, Tensor lengths, bool batch_first) -> (Tensor, Tensor)")
def pack_padded_sequence(input, lengths, batch_first):
    """Return the packed rows and the batch sizes; `lengths` must be in decreasing order."""
    if input.dim() < 2 or lengths.dim() != 1:
        raise RuntimeError(
            f"Expected input of at least 2 dimensions and lengths of one, but got {list(input.shape)} and {list(lengths.shape)}"
        )
    if lengths.device.type != "cpu":
        raise RuntimeError(f"'lengths' argument should be a 1D CPU int64 tensor, but it is on {lengths.device}")
    data = input.transpose(0, 1) if batch_first else input
    values = lengths.tolist()
    _check_lengths(values, data.shape)
    inside = arange(data, values[0]).unsqueeze(1) < lengths.to(data.device)
    return aten.index.Tensor(data.narrow(0, 0, values[0]), [inside]), inside.sum([1]).to(int64).cpu()


def _check_lengths(lengths: list[int], sizes) -> None:
    if len(lengths) != sizes[1]:
        raise RuntimeError(
            f"Expected `len(lengths)` to be equal to batch_size, but got {len(lengths)} (batch_size={sizes[1]})"
        )
    if not lengths or min(lengths) <= 0:
        raise RuntimeError(
            "Length of all samples has to be greater than 0, but found an element in 'lengths' that is <= 0"
        )
    if any(later > earlier for earlier, later in zip(lengths, lengths[1:], strict=False)):
        raise RuntimeError(
            "`lengths` array must be sorted in decreasing order when `enforce_sorted` is True. "
            "You can pass `enforce_sorted=False` to pack_padded_sequence and/or pack_sequence to sidestep this requirement "
            "if you do not need ONNX exportability."
        )
    if lengths[0] > sizes[0]:
        raise RuntimeError(f"Expected lengths of at most {sizes[0]}, the time steps of the input, but got {lengths[0]}")


@composite(
    "_pad_packed_sequence(Tensor data, Tensor batch_sizes, bool batch_first, Scalar padding_value, int total_length) "
    "-> (Tensor, Tensor)"
)
def pad_packed_sequence(data, batch_sizes, batch_first, padding_value, total_length):
    """Return the padded batch, of `total_length` time steps if that is positive, and the lengths."""
    if not data.dim() or batch_sizes.dim() != 1 or not batch_sizes.numel():
        raise RuntimeError(
            "Expected data of at least one dimension and non-empty batch_sizes of one, "
            f"but got {list(data.shape)} and {list(batch_sizes.shape)}"
        )
    steps, batch = batch_sizes.shape[0], int(batch_sizes[0])
    if 0 < total_length < steps:
        raise RuntimeError(
            "Expected total_length to be at least the length of the longest sequence in input, "
            f"but got total_length={total_length} and max sequence length being {steps}"
        )
    inside = arange(data, batch) < batch_sizes.to(data.device).unsqueeze(1)
    padded = data.new_full([steps, batch, *data.shape[1:]], padding_value)
    padded = aten.index_put.default(padded, [inside], data)
    if total_length > steps:
        rest = data.new_full([total_length - steps, batch, *data.shape[1:]], padding_value)
        padded = aten.cat.default([padded, rest])
    return (padded.transpose(0, 1) if batch_first else padded), inside.sum([0]).to(int64).cpu()


@composite(
    "pad_sequence(Tensor[] sequences, bool batch_first=False, float padding_value=0.0, "
    'str padding_side="right") -> Tensor'
)
def pad_sequence(sequences, batch_first=False, padding_value=0.0, padding_side="right"):
    """Pad sequences (length, ...) to one tensor (longest, count, ...), or (count, longest, ...) if `batch_first`."""
    if not sequences:
        raise RuntimeError("received an empty list of sequences")
    if padding_side not in ("left", "right"):
        raise RuntimeError(f"Expected padding_side to be one of left or right, but got {padding_side}.")
    longest = max(sequence.shape[0] for sequence in sequences)
    padded = []
    for sequence in sequences:
        missing = longest - sequence.shape[0]
        amounts = [0, missing] if padding_side == "right" else [missing, 0]
        padded.append(aten.constant_pad_nd.default(sequence, [0, 0] * (sequence.dim() - 1) + amounts, padding_value))
    return aten.stack.default(padded, 0 if batch_first else 1)
