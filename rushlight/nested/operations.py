"""How functions of the library work on nested tensors: most run on each piece, where every dimension has one number less.

Functions that no table here names raise NotImplementedError: their meaning for pieces of several lengths is not known.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from rushlight.core.layout import jagged
from rushlight.core.tensor import Tensor
from rushlight.ops.packet import namespaces

aten = namespaces.namespace("aten")

# Element by element, with numbers and tensors that broadcast.
_POINTWISE = frozenset(
    "abs add sub mul div rsub neg relu gelu silu sigmoid tanh exp log sqrt rsqrt square pow sin cos erf reciprocal sign floor "
    "ceil round clamp clamp_min clamp_max where masked_fill logical_not logical_and logical_or bitwise_and bitwise_or eq ne lt "
    "le gt ge isnan isinf isfinite maximum minimum softplus elu leaky_relu relu6 hardtanh mish selu hardswish hardsigmoid "
    "threshold log1p expm1 true_divide floor_divide remainder fmod lerp addcmul addcdiv dropout alpha_dropout "
    "feature_alpha_dropout native_dropout __add__ __radd__ __sub__ __rsub__ __mul__ __rmul__ __truediv__ __rtruediv__ __pow__ "
    "__rpow__ __neg__ __eq__ __ne__ __lt__ __le__ __gt__ __ge__ __and__ __or__ __invert__ __floordiv__ __mod__ __abs__ "
    "__iadd__ __isub__ __imul__ __itruediv__ logsigmoid nan_to_num".split()
)
# As a whole for each piece: copies, and layers that work along the last dimensions.
_PIECEWISE = frozenset(
    "clone contiguous detach to type type_as cpu zeros_like ones_like empty_like "
    "full_like rand_like randn_like linear embedding layer_norm rms_norm scaled_dot_product_attention one_hot alias".split()
)
# With dimensions as arguments from the first, or as `dim`.
_ALONG = {
    "softmax": 1, "log_softmax": 1, "transpose": 2, "swapaxes": 2, "cumsum": 1, "chunk": None, "split": None, "narrow": 1,
    "flatten": 2, "squeeze": 1, "unflatten": 1, "glu": 1, "flip": 1, "argsort": 1, "sort": 1, "normalize": None,
    "split_with_sizes": None, "tensor_split": None, "cumprod": 1,
}  # fmt: skip
_REDUCTIONS = frozenset("sum mean amax amin prod any all argmax argmin max min norm std var logsumexp".split())


def is_nested(value: object) -> bool:
    """Whether a value is a nested tensor."""
    return isinstance(value, Tensor) and value.is_nested


def call(function: Callable, args: tuple, kwargs: dict) -> Any:
    """Call a function of the library with arguments of which some are nested tensors."""
    name = getattr(function, "__name__", str(function))
    if name in _HANDLERS:
        return _HANDLERS[name](function, args, kwargs)
    if name in _POINTWISE or (name.endswith("_") and name[:-1] in (*_POINTWISE, "zero", "fill", "copy")):
        made = pointwise(function, args, kwargs)
        return args[0] if _is_in_place(name) else made
    if name in _PIECEWISE:
        return piecewise(function, args, kwargs)
    if name in _ALONG:
        return _run_along_dimension(function, args, kwargs, _ALONG[name])
    if name in _REDUCTIONS:
        return _reduce_pieces(function, args, kwargs)
    raise NotImplementedError(f"{name}() is not available for nested tensors; use unbind() or to_padded_tensor() first")


def _is_in_place(name: str) -> bool:
    return (name.endswith("_") and not name.startswith("__")) or name in ("__iadd__", "__isub__", "__imul__", "__itruediv__")


def _count_pieces(args: tuple, kwargs: dict) -> tuple[Any, int]:
    found = [value for value in (*args, *kwargs.values()) if is_nested(value)]
    lengths = {len(value._pieces) for value in found}
    if len(lengths) != 1:
        raise RuntimeError(f"nested tensors of one operation must have as many pieces, got {sorted(lengths)}")
    return found[0], lengths.pop()


def piecewise(function: Callable, args: tuple, kwargs: dict, ragged: int | None = None) -> Any:
    """Return the results for each piece, as a nested tensor; tuples of them where they are tuples."""
    first, count = _count_pieces(args, kwargs)
    return _nest_results(first, [_on_piece(function, args, kwargs, index) for index in range(count)], ragged)


def _on_piece(function: Callable, args: tuple, kwargs: dict, index: int) -> Any:
    def piece(value: Any) -> Any:
        return value._pieces[index] if is_nested(value) else value

    return function(*map(piece, args), **{name: piece(value) for name, value in kwargs.items()})


def _nest_results(first: Any, results: list, ragged: int | None = None) -> Any:
    if results and isinstance(results[0], tuple | list):
        return tuple(_nest_results(first, list(each), ragged) for each in zip(*results, strict=True))
    return first._with_pieces(results, ragged)


def pointwise(function: Callable, args: tuple, kwargs: dict) -> Any:
    """Element by element: plain tensors broadcast to each piece, with a dimension of length 1 where pieces differ."""
    first, count = _count_pieces(args, kwargs)
    _check_pieces([value for value in (*args, *kwargs.values()) if is_nested(value)])
    results = []
    for index in range(count):
        chosen = [_piece_of_operand(value, first, index) for value in args]
        named = {name: _piece_of_operand(value, first, index) for name, value in kwargs.items()}
        results.append(function(*chosen, **named))
    return _nest_results(first, results)


def _check_pieces(tensors: list) -> None:
    for other in tensors[1:]:
        for mine, its in zip(tensors[0]._pieces, other._pieces, strict=True):
            if mine.dim() != its.dim() or any(a != b and 1 not in (a, b) for a, b in zip(mine.shape, its.shape, strict=True)):
                raise RuntimeError(
                    "cannot call an elementwise function with nested tensors whose pieces do not broadcast: "
                    f"{list(mine.shape)} and {list(its.shape)}"
                )


def _piece_of_operand(value: Any, first: Any, index: int) -> Any:
    if not isinstance(value, Tensor) or is_nested(value) or value.numel() == 1:
        return value._pieces[index] if is_nested(value) else value.reshape(()) if isinstance(value, Tensor) else value
    rank = first.dim()
    lengths = {piece.shape[first._ragged - 1] for piece in first._pieces}
    beyond = rank - value.dim()
    place = first._ragged - beyond
    if beyond < 0 or (place >= 0 and value.shape[place] != 1 and len(lengths) > 1):
        raise RuntimeError(
            f"Expected both self and other to be nested, but got a nested self of {rank} dimensions and a plain tensor of "
            f"shape {list(value.shape)}, which does not broadcast over the pieces"
        )
    return value if beyond else value[index if value.shape[0] > 1 else 0]


def _piece_dimension(rank: int, dim: Any) -> Any:
    """Convert a dimension of the nested tensor to that of a piece; RuntimeError for dimension 0, which counts the pieces."""
    if isinstance(dim, tuple | list):
        return [_piece_dimension(rank, each) for each in dim]
    if not -rank <= dim < rank:
        raise IndexError(f"Dimension out of range (expected to be in range of [{-rank}, {rank - 1}], but got {dim})")
    place = dim % rank
    if place == 0:
        raise RuntimeError("this operation is not available along dimension 0 of a nested tensor, which counts its pieces")
    return place - 1


_DIMENSIONS = ("dim", "dim0", "dim1", "start_dim", "end_dim", "axis")


def _run_along_dimension(function: Callable, args: tuple, kwargs: dict, count: int | None) -> Any:
    rank, name = args[0].dim(), function.__name__
    given = list(args)
    places = range(1, 1 + count) if count is not None else range(2, 3)
    for place in places:
        if place < len(given):
            given[place] = _piece_dimension(rank, given[place])
    named = {key: _piece_dimension(rank, value) if key in _DIMENSIONS else value for key, value in kwargs.items()}
    missing = len(given) < 3 and "dim" not in named
    if count is None and missing:
        named["dim"] = _piece_dimension(rank, 1 if name == "normalize" else 0)
    if name == "flatten" and len(given) < 2 and "start_dim" not in named:
        raise RuntimeError("flatten(): the pieces of a nested tensor cannot be joined; give a start_dim from 1")
    return piecewise(function, tuple(given), named, _new_ragged_dimension(args[0], function, given, named))


def _new_ragged_dimension(first: Any, function: Callable, given: list, named: dict) -> int:
    """Return the position of the ragged dimension in the result; RuntimeError if it is merged, split or removed."""
    name, place = function.__name__, first._ragged - 1
    if name in ("transpose", "swapaxes"):
        one, other = (*given[1:3], *(named[key] for key in _DIMENSIONS if key in named))
        return {one: other, other: one}.get(place, place) + 1
    if name not in ("flatten", "unflatten", "squeeze", "select"):
        return first._ragged
    start = given[1] if len(given) > 1 else named.get("start_dim", named.get("dim"))
    end = (given[2] if len(given) > 2 else named.get("end_dim", first.dim() - 2)) if name == "flatten" else start
    if first._layout is jagged and start <= place <= end and not (name == "squeeze" or (name == "flatten" and start == end)):
        raise RuntimeError(f"{name}(): not supported for a nested tensor of layout torch.jagged on its ragged dimension")
    return first._ragged if start >= place else first._ragged + _added_dimensions(function, first, given, start, end)


def _added_dimensions(function: Callable, first: Any, given: list, start: int, end: int) -> int:
    """Return by how much the number of dimensions before the ragged one changes."""
    if function.__name__ == "flatten":
        return start - end
    if function.__name__ == "unflatten":
        return len(given[2]) - 1
    return -1 if function.__name__ == "select" or first._pieces[0].shape[start] == 1 else 0


def _reduce_pieces(function: Callable, args: tuple, kwargs: dict) -> Any:
    first = args[0]
    dim = args[1] if len(args) > 1 and not isinstance(args[1], Tensor) else kwargs.get("dim")
    if dim is None or dim == ():
        return function(first.values(), *args[1:], **kwargs)
    place = _piece_dimension(first.dim(), dim)
    named = {key: value for key, value in kwargs.items() if key != "dim"}
    results = [function(piece, place, *args[2:], **named) for piece in first._pieces]
    reduced = [place] if isinstance(place, int) else place
    if first._layout is jagged and first._ragged - 1 in reduced:
        return aten.stack(results, 0) if isinstance(results[0], Tensor) else results
    is_kept = args[2] if len(args) > 2 else named.get("keepdim", False)
    gone = 0 if is_kept else sum(each < first._ragged - 1 for each in reduced)
    return _nest_results(first, results, first._ragged - gone)


def _bmm(function: Callable, args: tuple, kwargs: dict) -> Any:
    return _matmul(aten.matmul, args, kwargs)


def _product(function: Callable, args: tuple, kwargs: dict) -> Any:
    """Piece by piece; where the ragged dimension is summed over, a plain tensor."""
    first, second = args[:2]
    if first._layout is not jagged:
        return piecewise(function, args, kwargs)
    last = first.dim() - 1
    if first._ragged == last:
        count = _count_pieces(args, kwargs)[1]
        return aten.stack([_on_piece(function, args, kwargs, index) for index in range(count)], 0)
    if second._ragged == second.dim() - 1:
        raise RuntimeError(f"matmul(): not supported between inputs of shapes {first.shape} and {second.shape}")
    return piecewise(function, args, kwargs)


def _matmul(function: Callable, args: tuple, kwargs: dict) -> Any:
    if all(is_nested(each) for each in args[:2]):
        return _product(function, args, kwargs)
    plain = args[1] if is_nested(args[0]) else args[0]
    if plain.dim() <= 2:
        return piecewise(function, args, kwargs)
    first, count = _count_pieces(args, kwargs)
    if plain.shape[0] != count:
        raise RuntimeError(f"matmul: the plain tensor has {plain.shape[0]} matrices for {count} pieces")
    pairs = [[each._pieces[i] if is_nested(each) else each[i] for each in args] for i in range(count)]
    return _nest_results(first, [function(*pair, **kwargs) for pair in pairs])


def _sizes_from(args: tuple) -> list:
    return list(args[1]) if len(args) == 2 and isinstance(args[1], tuple | list) else list(args[1:])


def _view(function: Callable, args: tuple, kwargs: dict) -> Any:
    """New sizes of the pieces: -1 keeps the ragged length where there are two of them, and so does that length itself."""
    first = args[0]
    sizes = _sizes_from(args) or list(kwargs.get("shape", kwargs.get("size", ())))
    if len(sizes) < 2 or sizes[0] not in (len(first._pieces), -1):
        raise RuntimeError(f"{function.__name__}: the first size of a nested tensor of {len(first._pieces)} pieces must stay")
    rest = sizes[1:]
    unknown = [place for place, size in enumerate(rest) if size is first._length and size is not None]
    unknown = unknown or [place for place, size in enumerate(rest) if type(size) is int and size == -1]
    ragged = unknown[0] if unknown else first._ragged - 1
    is_kept = len([size for size in rest if int(size) == -1]) > 1 or (unknown and rest[unknown[0]] is first._length)
    results = []
    for piece in first._pieces:
        wanted = list(rest)
        if is_kept:
            wanted[ragged] = piece.shape[first._ragged - 1]
        results.append(function(piece, wanted))
    return _nest_results(first, results, ragged + 1)


def _permute(function: Callable, args: tuple, kwargs: dict) -> Any:
    first = args[0]
    order = _sizes_from(args) or list(kwargs["dims"])
    order = [dim % first.dim() for dim in order]
    if not order or order[0] != 0:
        raise RuntimeError("permute(): the first dimension of a nested tensor must stay where it is")
    ragged = order.index(first._ragged)
    return piecewise(lambda piece: function(piece, [dim - 1 for dim in order[1:]]), (first,), {}, ragged)


def _unsqueeze(function: Callable, args: tuple, kwargs: dict) -> Any:
    first = args[0]
    place = _piece_dimension(first.dim() + 1, args[1] if len(args) > 1 else kwargs["dim"])
    return piecewise(function, (first, place), {}, first._ragged + (place < first._ragged))


def _cat(function: Callable, args: tuple, kwargs: dict) -> Any:
    tensors = list(args[0] if args else kwargs["tensors"])
    dim = args[1] if len(args) > 1 else kwargs.get("dim", 0)
    if not all(is_nested(each) for each in tensors):
        raise RuntimeError("cat(): nested tensors can be joined with nested ones only")
    first = tensors[0]
    if dim % first.dim() == 0:
        return first._with_new_ragged_length([piece for each in tensors for piece in each._pieces])
    place = _piece_dimension(first.dim(), dim)
    pieces = zip(*(each._pieces for each in tensors), strict=True)
    return _nest_results(first, [function(list(each), place) for each in pieces])


def _getitem(function: Callable, args: tuple, kwargs: dict) -> Any:
    first, index = args
    if isinstance(index, int) and not isinstance(index, bool):
        if not -len(first._pieces) <= index < len(first._pieces):
            raise IndexError(f"index {index} is out of bounds for dimension 0 with size {len(first._pieces)}")
        return first.unbind()[index]
    items = index if isinstance(index, tuple) else (index,)
    if items and isinstance(items[0], int):
        return first.unbind()[items[0]][items[1:]]
    if items and items[0] is Ellipsis:
        return piecewise(function, (first, items), {})
    if items and isinstance(items[0], slice):
        chosen = [piece[items[1:]] if items[1:] else piece for piece in first._pieces[items[0]]]
        return first._with_pieces(chosen) if items[0] == slice(None) else first._with_new_ragged_length(chosen)
    raise NotImplementedError("nested tensors are indexed by a number, or by a slice of the pieces and then items for each")


def _attention(function: Callable, args: tuple, kwargs: dict) -> Any:
    """Multi-head attention of each piece to itself or another, (length, features) each, or its transposed nested form."""
    outputs = [_on_piece(function, args, {**kwargs, "need_weights": False}, index)[0] for index in range(len(args[0]._pieces))]
    return _nest_results(args[0], outputs), None


def _select(function: Callable, args: tuple, kwargs: dict) -> Any:
    dim, index = (*args[1:], *kwargs.values())
    if dim % args[0].dim() == 0:
        return _getitem(function, (args[0], index), {})
    return _run_along_dimension(function, args, kwargs, 1)


def _pad_to_tensor(function: Callable, args: tuple, kwargs: dict) -> Any:
    return args[0].to_padded_tensor(*args[1:], **kwargs)


def _unbind(function: Callable, args: tuple, kwargs: dict) -> Any:
    return args[0].unbind(*args[1:], **kwargs)


_HANDLERS: dict[str, Callable] = {
    "matmul": _matmul, "__matmul__": _matmul, "bmm": _bmm, "view": _view, "reshape": _view, "permute": _permute,
    "cat": _cat, "concat": _cat, "getitem": _getitem, "__getitem__": _getitem, "unbind": _unbind,
    "select": _select, "unsqueeze": _unsqueeze, "to_padded_tensor": _pad_to_tensor,
    "multi_head_attention_forward": _attention,
}  # fmt: skip
