"""Nested tensors: a batch of tensors that may differ in their lengths, kept as a list of pieces.

In: calls of the library's functions with a NestedTensor among the arguments. Out: what `operations` makes of its pieces, each
of which is a plain tensor with its own path in autograd.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import count
from typing import Any

from rushlight.autograd import backward
from rushlight.core.dtype import bfloat16, bool_, dtype, float16, float32, float64, int32, int64
from rushlight.core.layout import jagged, layout, strided
from rushlight.core.size import Size
from rushlight.core.tensor import Tensor
from rushlight.nested.operations import call
from rushlight.ops.construct import tensor
from rushlight.ops.packet import namespaces

aten = namespaces.namespace("aten")
_numbers = count(1)


class RaggedLength(int):
    """The length of a ragged dimension, which is another one for each piece: -1 as a number, equal to itself only."""

    def __new__(cls) -> RaggedLength:
        """Return a length that equals no other."""
        made = super().__new__(cls, -1)
        made.name = f"j{next(_numbers)}"
        return made

    def __repr__(self) -> str:
        return self.name

    __str__ = __repr__

    def __eq__(self, other: object) -> bool:
        return self is other

    def __ne__(self, other: object) -> bool:
        return self is not other

    __hash__ = object.__hash__


class NestedTensor(Tensor):
    """A tensor whose first dimension counts pieces. `layout` is strided or, with one ragged dimension, jagged."""

    __slots__ = ("_pieces", "_layout", "_ragged", "_length", "_packed")

    @classmethod
    def __torch_function__(cls, func: Callable, types: tuple, args: tuple = (), kwargs: dict | None = None) -> Any:
        """Call a function of the library on the pieces."""
        return call(func, args, kwargs or {})

    @classmethod
    def __torch_dispatch__(cls, func: Callable, types: tuple, args: tuple = (), kwargs: dict | None = None) -> Any:
        """Raise NotImplementedError: operators do not see nested tensors."""
        raise NotImplementedError(f"{func} is not available for nested tensors; use unbind() or to_padded_tensor() first")

    # Properties

    @property
    def is_nested(self) -> bool:
        """True."""
        return True

    @property
    def layout(self) -> layout:
        """`strided` or `jagged`."""
        return self._layout

    @property
    def shape(self) -> Size:
        """The sizes, with a RaggedLength for the ragged dimension; RuntimeError for the layout strided."""
        if self._layout is not jagged:
            raise RuntimeError("a nested tensor of layout torch.strided has no sizes; use size(dim) or unbind()")
        return Size(self.size(dim) for dim in range(self.dim()))

    def size(self, dim: int | None = None) -> Any:
        """Return the length of a dimension; RuntimeError where the pieces of a strided nested tensor differ in it."""
        if dim is None:
            return self.shape
        place = _dimension(self, dim)
        if place == 0:
            return len(self._pieces)
        if self._layout is jagged and place == self._ragged:
            return self._length
        lengths = {piece.shape[place - 1] for piece in self._pieces}
        if len(lengths) != 1:
            raise RuntimeError(f"Given dimension {place} is irregular and does not have a size.")
        return lengths.pop()

    def dim(self) -> int:
        """Return the number of dimensions: one more than a piece has."""
        return (self._pieces[0].dim() if self._pieces else 0) + 1

    ndimension = dim

    @property
    def ndim(self) -> int:
        """The number of dimensions."""
        return self.dim()

    def numel(self) -> int:
        """Return the number of elements of all pieces."""
        return sum(piece.numel() for piece in self._pieces)

    nelement = numel

    def stride(self, dim: int | None = None) -> Any:
        """Raise RuntimeError: each piece has strides of its own."""
        raise RuntimeError("a nested tensor has no strides; use unbind() for the pieces")

    def is_contiguous(self, memory_format: Any = None) -> bool:
        """Return whether the pieces are contiguous."""
        return all(piece.is_contiguous() for piece in self._pieces)

    def _nested_tensor_size(self) -> Tensor:
        """Return the sizes of the pieces, (pieces, dimensions)."""
        return aten.stack([_lengths(piece.shape) for piece in self._pieces], 0) if self._pieces else _lengths(())

    def tolist(self) -> list:
        """Return the elements of each piece, as lists."""
        return [piece.tolist() for piece in self._pieces]

    def numpy(self, *, force: bool = False) -> Any:
        """Raise RuntimeError: NumPy has no arrays of such a form."""
        raise RuntimeError("can't convert a nested tensor to numpy; use unbind() or to_padded_tensor() first")

    @property
    def nbytes(self) -> int:
        """The bytes of the elements of all pieces."""
        return sum(piece.nbytes for piece in self._pieces)

    # Its pieces

    def unbind(self, dim: int = 0) -> tuple[Tensor, ...]:
        """Return the pieces, which share memory."""
        if dim != 0:
            raise RuntimeError(f"unbind(): nested tensors have pieces along dimension 0 only, got {dim}")
        return tuple(aten.alias(piece) for piece in self._pieces)

    def __iter__(self) -> Iterator[Tensor]:
        return iter(self.unbind())

    def __len__(self) -> int:
        return len(self._pieces)

    def values(self) -> Tensor:
        """Return the elements of all pieces: one after the other, and for the layout jagged along the ragged dimension."""
        if self._packed is not None:
            return self._packed
        if self._layout is jagged:
            return aten.cat(self._pieces, self._ragged - 1)
        return aten.cat([piece.reshape(-1) for piece in self._pieces], 0)

    def offsets(self) -> Tensor:
        """Return the offset of each piece along the ragged dimension of `values`, and the end of the last piece."""
        return aten.cat([aten.zeros([1], dtype=int64), aten.cumsum(self._ragged_lengths(), 0)], 0)

    def lengths(self) -> None:
        """None: no gaps are kept between pieces."""

    def _ragged_lengths(self) -> Tensor:
        if self._layout is not jagged:
            raise AttributeError("'Tensor' object has no attribute 'offsets': it is of the layouts jagged only")
        return _lengths([piece.shape[self._ragged - 1] for piece in self._pieces])

    def to_padded_tensor(self, padding: float, output_size: Sequence[int] | None = None) -> Tensor:
        """Return a plain tensor of all pieces, each filled up with `padding` at its ends; as large as the largest unless
        told."""
        return padded(self, padding, output_size)

    def _with_pieces(self, pieces: list[Tensor], ragged: int | None = None) -> NestedTensor:
        """Return a nested tensor of other pieces with the same layout and ragged lengths."""
        return nested(pieces, self._layout, self._ragged if ragged is None else ragged, self._length)

    def _with_new_ragged_length(self, pieces: list[Tensor]) -> NestedTensor:
        """Return a nested tensor of the same layout with pieces of other ragged lengths."""
        return nested(pieces, self._layout, self._ragged)

    def _to_dtype(self, kind: dtype) -> NestedTensor:
        """Return a copy with pieces of another dtype, or the tensor itself if it has that dtype."""
        return self if self.dtype is kind else self._with_pieces([piece.to(kind) for piece in self._pieces])

    # Autograd

    @property
    def requires_grad(self) -> bool:
        """Whether gradients of a piece are recorded."""
        return any(piece.requires_grad for piece in self._pieces)

    @requires_grad.setter
    def requires_grad(self, value: bool) -> None:
        self.requires_grad_(value)

    def requires_grad_(self, requires_grad: bool = True) -> NestedTensor:
        """Record gradients of the pieces, or stop to."""
        for piece in self._pieces:
            piece.requires_grad_(requires_grad)
        return self

    @property
    def is_leaf(self) -> bool:
        """Whether no piece comes from an operation."""
        return all(piece.is_leaf for piece in self._pieces)

    @property
    def grad_fn(self) -> Any:
        """The node of the first piece that has one."""
        return next((piece.grad_fn for piece in self._pieces if piece.grad_fn is not None), None)

    @property
    def grad(self) -> NestedTensor | None:
        """The gradients of the pieces; None where there is none."""
        if all(piece.grad is None for piece in self._pieces):
            return None
        found = [aten.zeros_like(piece) if piece.grad is None else piece.grad for piece in self._pieces]
        return self._with_pieces(found)

    @grad.setter
    def grad(self, value: NestedTensor | None) -> None:
        given = [None] * len(self._pieces) if value is None else value._pieces
        for piece, gradient in zip(self._pieces, given, strict=True):
            piece.grad = gradient

    def backward(self, gradient: NestedTensor | None = None, **options: Any) -> None:
        """Backpropagate from all pieces, with the pieces of `gradient`."""
        if gradient is None:
            raise RuntimeError("grad can be implicitly created only for scalar outputs")
        backward(self._pieces, gradient._pieces, **options)

    def retain_grad(self) -> None:
        """Keep the gradients of pieces that are no leaves, too."""
        for piece in self._pieces:
            piece.retain_grad()

    def __repr__(self, *, tensor_contents: object = None) -> str:
        node = self.grad_fn
        if node is None:
            note = ", requires_grad=True" if self.requires_grad else ""
        else:
            note = f", grad_fn=<{node.name()}>"
        if self._layout is jagged:
            sizes = ", ".join(map(str, self.shape))
            return f"NestedTensor(size=({sizes}), offsets={self.offsets()}{note}, contiguous={self.is_contiguous()})"
        shown = (piece.detach().requires_grad_(self.requires_grad) for piece in self._pieces)
        body = ",\n".join("  " + repr(piece).replace("\n", "\n  ") for piece in shown)
        return f"nested_tensor([\n{body}\n]{note})"

    def __reduce_ex__(self, protocol: Any) -> tuple:
        return nested, (list(self._pieces), self._layout, self._ragged)

    def __deepcopy__(self, memo: dict) -> NestedTensor:
        made = self._with_pieces([piece.__deepcopy__(memo) for piece in self._pieces])
        memo[id(self)] = made
        return made

    __hash__ = Tensor.__hash__


def _define_conversion(name: str, kind: dtype) -> Callable:
    def convert(self: NestedTensor) -> NestedTensor:
        return self._to_dtype(kind)

    convert.__name__, convert.__doc__ = name, f"The same with pieces of {kind}."
    return convert


for _name, _kind in {
    "half": float16, "bfloat16": bfloat16, "float": float32, "double": float64, "int": int32, "long": int64, "bool": bool_,
}.items():  # fmt: skip
    setattr(NestedTensor, _name, _define_conversion(_name, _kind))


def _lengths(sizes: Sequence[int]) -> Tensor:
    return tensor(list(sizes), dtype=int64, device="cpu")


def _dimension(self: NestedTensor, dim: int) -> int:
    rank = self.dim()
    if not -rank <= dim < rank:
        raise IndexError(f"Dimension out of range (expected to be in range of [{-rank}, {rank - 1}], but got {dim})")
    return dim % rank


def nested(
    pieces: list[Tensor], kind: layout = strided, ragged: int = 1, length: RaggedLength | None = None,
    packed: Tensor | None = None,
) -> NestedTensor:  # fmt: skip
    """Return a nested tensor of these pieces, which it shares; `ragged` is the dimension of the layout jagged that differs."""
    first = pieces[0] if pieces else aten.zeros([0])
    made = Tensor._make_wrapper_subclass(NestedTensor, (len(pieces),), dtype=first.dtype, device=first.device)
    made._pieces, made._layout, made._ragged = list(pieces), kind, ragged
    made._length = RaggedLength() if length is None and kind is jagged else length
    made._packed = packed
    return made


def padded(self: NestedTensor, padding: float, output_size: Sequence[int] | None = None) -> Tensor:
    """See `NestedTensor.to_padded_tensor`."""
    if not self._pieces:
        raise RuntimeError("to_padded_tensor: the nested tensor has no pieces, so its sizes are not known")
    least = [max(lengths) for lengths in zip(*(piece.shape for piece in self._pieces), strict=True)]
    size = [len(self._pieces), *least] if output_size is None else [int(each) for each in output_size]
    if len(size) != len(least) + 1 or any(given < needed for given, needed in zip(size[1:], least, strict=True)):
        raise RuntimeError(
            "Value in output_size is less than NestedTensor padded size. Truncation is not supported: "
            f"the pieces need {[len(self._pieces), *least]}, and output_size is {size}"
        )
    whole = [_pad_piece(piece, size[1:], padding) for piece in self._pieces]
    whole += [aten.full(size[1:], padding, dtype=self.dtype)] * (size[0] - len(whole))
    return aten.stack(whole, 0)


def _pad_piece(piece: Tensor, size: Sequence[int], padding: float) -> Tensor:
    missing = [end for given, wanted in zip(reversed(piece.shape), reversed(size), strict=True) for end in (0, wanted - given)]
    return aten.constant_pad_nd(piece, missing, padding) if any(missing) else piece
