"""`torch.nested`: batches of tensors of several lengths, for elementwise functions, products, layers and autograd."""

from __future__ import annotations

from collections.abc import Sequence

from rushlight.core.dtype import dtype
from rushlight.core.layout import jagged, layout, strided
from rushlight.core.tensor import Tensor
from rushlight.nested.tensor import NestedTensor, nested
from rushlight.ops.construct import NO_PINNED_MEMORY, tensor
from rushlight.ops.packet import namespaces

aten = namespaces.namespace("aten")


def nested_tensor(
    tensor_list: Sequence, *, dtype: dtype | None = None, layout: layout | None = None, device: object = None,
    requires_grad: bool = False, pin_memory: bool = False,
) -> NestedTensor:  # fmt: skip
    """Return a nested tensor of copies of tensors, or of lists of numbers, all of as many dimensions; it is a leaf of
    autograd."""
    if pin_memory:
        raise RuntimeError(NO_PINNED_MEMORY)
    pieces = _read_pieces(tensor_list, dtype, device)
    copies = _copy_to_one_memory([piece.detach() for piece in pieces])
    return _make_nested(copies, layout).requires_grad_(requires_grad)


def as_nested_tensor(
    ts: Sequence[Tensor] | Tensor, dtype: dtype | None = None, device: object = None, layout: layout | None = None
) -> NestedTensor:
    """Return a nested tensor of these tensors, to which gradients flow; of a tensor's slices along dimension 0."""
    if isinstance(ts, NestedTensor):
        return ts
    if isinstance(ts, Tensor):
        ts = list(ts.unbind(0))
    return _make_nested([aten.clone(piece) for piece in _read_pieces(ts, dtype, device)], layout)


def _read_pieces(given: object, kind: dtype | None, device: object) -> list[Tensor]:
    if not isinstance(given, list | tuple):
        raise TypeError("Only lists (List[Tensor] and List[List...[Scalar]]) are accepted in nested_tensor")
    pieces = [each if isinstance(each, Tensor) else tensor(each, dtype=kind) for each in given]
    kind = kind or (pieces[0].dtype if pieces else None)
    for index, piece in enumerate(pieces):
        if piece.dim() != pieces[0].dim():
            raise RuntimeError(
                "All Tensors given to nested_tensor must have the same dimension. Found dimension "
                f"{piece.dim()} for Tensor at index {index} and dimension {pieces[0].dim()} for Tensor at index 0."
            )
    return [piece.to(device=device or piece.device, dtype=kind) for piece in pieces]


def _copy_to_one_memory(pieces: list[Tensor]) -> list[Tensor]:
    """Return copies of tensors that lie in one memory, one after the other."""
    if not pieces:
        return []
    flat = aten.cat([piece.reshape(-1) for piece in pieces], 0)
    split = aten.split_with_sizes(flat, [piece.numel() for piece in pieces])
    return [part.view(piece.shape).detach() for part, piece in zip(split, pieces, strict=True)]


def _make_nested(pieces: list[Tensor], kind: layout | None) -> NestedTensor:
    if kind not in (None, strided, jagged):
        raise RuntimeError(f"Specified layout is unsupported for nested tensors: {kind}")
    if kind is not jagged:
        return nested(pieces)
    return nested(pieces, jagged, _ragged_dimension(pieces))


def _ragged_dimension(pieces: list[Tensor]) -> int:
    if not pieces:
        raise RuntimeError("Cannot construct a nested tensor of layout torch.jagged from an empty list of tensors")
    differing = [dim for dim in range(pieces[0].dim()) if len({piece.shape[dim] for piece in pieces}) > 1]
    if len(differing) > 1 or not pieces[0].dim():
        raise RuntimeError(
            "Cannot represent given tensor list as a nested tensor with the jagged layout. Note that the jagged layout only "
            f"allows for a single ragged dimension, and the tensors differ in the dimensions {differing}"
        )
    return differing[0] + 1 if differing else 1


def nested_tensor_from_jagged(
    values: Tensor, offsets: Tensor | None = None, lengths: Tensor | None = None, jagged_dim: int | None = None,
    min_seqlen: int | None = None, max_seqlen: int | None = None,
) -> NestedTensor:  # fmt: skip
    """Return a nested tensor whose pieces are parts of `values` from each of the `offsets` on, along `jagged_dim` - 1.

    With `lengths`, each piece is as long, and without `offsets` they follow one another. `min_seqlen` and `max_seqlen`, by
    which PyTorch need not look for the extremes of the lengths, are not needed.
    """
    if offsets is None and lengths is None:
        raise RuntimeError("nested_tensor_from_jagged(): At least one of offsets or lengths is required.")
    ragged = 1 if jagged_dim is None else jagged_dim
    if not 1 <= ragged <= values.dim():
        raise RuntimeError(f"nested_tensor_from_jagged(): jagged_dim must be from 1 to {values.dim()}, got {ragged}")
    starts = [0, *aten.cumsum(lengths, 0).tolist()] if offsets is None else offsets.tolist()
    counts = [end - start for start, end in zip(starts, starts[1:], strict=False)] if lengths is None else lengths.tolist()
    for start, count in zip(starts, counts, strict=False):
        if start < 0 or count < 0 or start + count > values.shape[ragged - 1]:
            raise RuntimeError(f"a piece of {count} from {start} on leaves the {values.shape[ragged - 1]} of values")
    pieces = [values.narrow(ragged - 1, start, count) for start, count in zip(starts, counts, strict=False)]
    is_whole = (lengths is None or offsets is None) and starts[:1] == [0] and starts[-1] == values.shape[ragged - 1]
    return nested(pieces, jagged, ragged, packed=values if is_whole else None)


def to_padded_tensor(
    input: NestedTensor, padding: float, output_size: Sequence[int] | None = None, out: None = None
) -> Tensor:
    """Return a plain tensor of all pieces, each filled up with `padding` at its ends; as large as the largest unless told.

    RuntimeError where `out` is given.
    """
    if out is not None:
        raise RuntimeError("to_padded_tensor() does not support out=...; use its result")
    return input.to_padded_tensor(padding, output_size)


def masked_select(tensor: Tensor, mask: Tensor) -> NestedTensor:
    """Return the elements of each slice of `tensor` where `mask` is True, as a jagged nested tensor."""
    if tensor.layout is not strided or mask.layout is not strided:
        raise RuntimeError(f"torch.nested.masked_select requires strided tensors, got {tensor.layout} and {mask.layout}")
    whole = mask.expand(tensor.shape)
    pieces = [aten.masked_select(row, chosen) for row, chosen in zip(tensor.unbind(0), whole.unbind(0), strict=True)]
    return nested(pieces, jagged, 1)


def narrow(
    tensor: Tensor, dim: int, start: int | Tensor, length: int | Tensor, layout: layout = strided
) -> NestedTensor:
    """Return parts of the slices of `tensor` along `dim`: from `start`, `length` long, or by tensors, one number each."""
    if layout not in (strided, jagged):
        raise RuntimeError(f"Specified layout is unsupported for nested narrow: {layout}")
    if layout is strided and (isinstance(start, Tensor) or isinstance(length, Tensor)):
        raise RuntimeError("start and length must be integers for the strided layout NT impl")
    count = tensor.shape[0]
    starts = start.tolist() if isinstance(start, Tensor) else [start] * count
    lengths = length.tolist() if isinstance(length, Tensor) else [length] * count
    pieces = [
        piece.narrow(dim - 1, first, many) for piece, first, many in zip(tensor.unbind(0), starts, lengths, strict=True)
    ]
    return nested(pieces, layout, dim)


__all__ = [
    "as_nested_tensor", "masked_select", "narrow", "nested_tensor", "nested_tensor_from_jagged", "to_padded_tensor",
]  # fmt: skip
