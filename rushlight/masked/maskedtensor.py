"""Masked tensors: data with a mask, of whose elements those where the mask is False count as missing.

In: calls of the library's functions with a MaskedTensor among the arguments. Out: masked tensors: elementwise functions keep
the mask, functions of the form apply to data and mask alike, and reductions leave out what is missing.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from rushlight.core.dtype import bool_
from rushlight.core.tensor import Tensor
from rushlight.masked import normalisations, reductions
from rushlight.ops.packet import namespaces

aten = namespaces.namespace("aten")

_ELEMENTWISE = frozenset(
    "abs acos acosh angle asin asinh atan atanh add sub mul div true_divide floor_divide remainder fmod pow atan2 logaddexp "
    "maximum minimum fmax fmin eq ne lt le gt ge bitwise_and bitwise_or bitwise_xor logical_not logical_and logical_or ceil "
    "floor round trunc frac clamp cos cosh sin sinh tan tanh deg2rad rad2deg digamma erf erfc erfinv exp exp2 expm1 lgamma log "
    "log10 log1p log2 logit neg positive reciprocal rsqrt sqrt square sigmoid sign sgn signbit isnan relu rsub to float double "
    "half bfloat16 int long bool clone contiguous detach dropout ones_like zeros_like nan_to_num __add__ __radd__ __sub__ "
    "__rsub__ __mul__ __rmul__ __truediv__ __rtruediv__ __floordiv__ __mod__ __pow__ __rpow__ __neg__ __abs__ __eq__ __ne__ "
    "__lt__ __le__ __gt__ __ge__ __and__ __or__ __xor__ __invert__".split()
)
# Operators that only rearrange elements: they apply to data and mask alike.
_REARRANGING = frozenset(
    "view reshape permute transpose swapaxes t unsqueeze squeeze expand flatten unflatten select narrow chunk split "
    "getitem __getitem__ index_select flip roll unbind movedim broadcast_to repeat".split()
)
_JOINING = frozenset(("cat", "concat", "stack", "hstack", "vstack"))
_REDUCTIONS = frozenset("sum mean amax amin prod argmax argmin norm var std".split())
_NORMALISATIONS = frozenset("softmax log_softmax softmin cumsum cumprod normalize".split())


class MaskedTensor(Tensor):
    """A tensor of which the elements where a mask is False are missing; `get_data` and `get_mask` give both."""

    __slots__ = ("_data", "_mask")

    def __new__(cls, data: Tensor, mask: Tensor, requires_grad: bool = False) -> MaskedTensor:
        """A copy of data and mask, and a leaf of autograd; TypeError or ValueError where they do not fit."""
        return _make_masked(data.detach().clone().requires_grad_(requires_grad), mask.detach().clone())

    def __init__(self, data: Tensor, mask: Tensor, requires_grad: bool = False) -> None:
        """Everything is set where it is made."""

    @classmethod
    def __torch_function__(cls, func: Callable, types: tuple, args: tuple = (), kwargs: dict | None = None) -> Any:
        """Call a function of the library on the data, and where it changes the form, on the mask."""
        return _call(func, args, kwargs or {})

    @classmethod
    def __torch_dispatch__(cls, func: Callable, types: tuple, args: tuple = (), kwargs: dict | None = None) -> Any:
        """NotImplementedError: operators do not see masked tensors."""
        raise NotImplementedError(f"{func} is not available for masked tensors; use to_tensor(value) or get_data() first")

    def get_data(self) -> Tensor:
        """Return the data, missing elements included."""
        return self._data

    def get_mask(self) -> Tensor:
        """Return the mask: False for missing elements."""
        return self._mask

    def to_tensor(self, value: float) -> Tensor:
        """Return a plain tensor with `value` for missing elements."""
        return self._data.masked_fill(~self._mask, value)

    @property
    def requires_grad(self) -> bool:
        """Whether gradients of the data are recorded."""
        return self._data.requires_grad

    def requires_grad_(self, requires_grad: bool = True) -> MaskedTensor:
        """Record gradients of the data, or stop to."""
        self._data.requires_grad_(requires_grad)
        return self

    @property
    def is_leaf(self) -> bool:
        """Whether the data comes from no operation."""
        return self._data.is_leaf

    @property
    def grad_fn(self) -> Any:
        """The node that made the data."""
        return self._data.grad_fn

    @property
    def grad(self) -> MaskedTensor | None:
        """The gradient, with the same mask; None where there is none."""
        return None if self._data.grad is None else _make_masked(self._data.grad, self._mask)

    def backward(self, gradient: Tensor | None = None, **options: Any) -> None:
        """Backward from the data."""
        self._data.backward(gradient._data if isinstance(gradient, MaskedTensor) else gradient, **options)

    def __repr__(self, *, tensor_contents: object = None) -> str:
        data, mask = self._data.tolist(), self._mask.tolist()
        if not self.dim():
            return f"MaskedTensor({_format_number(data) if mask else '--'}, {mask})"
        return f"MaskedTensor(\n{_format_rows(data, mask, self.dim(), 2)}\n)"

    def __deepcopy__(self, memo: dict) -> MaskedTensor:
        return MaskedTensor(self._data, self._mask, self.requires_grad)

    def __reduce_ex__(self, protocol: Any) -> tuple:
        return MaskedTensor, (self._data.detach(), self._mask, self.requires_grad)

    __hash__ = Tensor.__hash__


def _define_conversion(name: str) -> Callable:
    def convert(self: MaskedTensor, *args: Any, **kwargs: Any) -> MaskedTensor:
        return _make_masked(getattr(self._data, name)(*args, **kwargs), self._mask)

    convert.__name__, convert.__doc__ = name, f"The same mask over what `{name}` makes of the data."
    return convert


for _name in ("half", "bfloat16", "float", "double", "int", "long", "bool"):
    setattr(MaskedTensor, _name, _define_conversion(_name))


def _format_number(value: Any) -> str:
    return f"{value:8.4f}" if isinstance(value, float) else str(value)


def _format_rows(data: list, mask: list, rank: int, indent: int) -> str:
    margin = " " * indent
    if rank == 1:
        shown = (_format_number(value) if kept else "      --" for value, kept in zip(data, mask, strict=True))
        return f"{margin}[{', '.join(shown)}]"
    rows = (_format_rows(row, kept, rank - 1, indent + 2) for row, kept in zip(data, mask, strict=True))
    return f"{margin}[\n" + ",\n".join(rows) + f"\n{margin}]"


def _make_masked(data: Tensor, mask: Tensor) -> MaskedTensor:
    if mask.dtype is not bool_:
        raise TypeError("mask must have dtype bool.")
    if data.dim() != mask.dim():
        raise ValueError("data.dim() must equal mask.dim()")
    if data.shape != mask.shape:
        raise ValueError("data.size() must equal mask.size()")
    made = Tensor._make_wrapper_subclass(MaskedTensor, tuple(data.shape), dtype=data.dtype, device=data.device)
    made._data, made._mask = data, mask
    return made


def masked_tensor(data: Tensor, mask: Tensor, requires_grad: bool = False) -> MaskedTensor:
    """Return a masked tensor of copies of data and mask, and a leaf of autograd."""
    return MaskedTensor(data, mask, requires_grad)


def as_masked_tensor(data: Tensor, mask: Tensor) -> MaskedTensor:
    """Return a masked tensor of this data, to which gradients flow where the mask is True: elsewhere they are 0, and not
    NaN."""
    if data.requires_grad:
        data = aten.where(mask, data, data.detach())
    return _make_masked(data, mask)


def is_masked_tensor(obj: Any, /) -> bool:
    """Whether a value is a masked tensor."""
    return isinstance(obj, MaskedTensor)


def _data_of(value: Any) -> Any:
    return value._data if isinstance(value, MaskedTensor) else value


def _call(function: Callable, args: tuple, kwargs: dict) -> Any:
    name = getattr(function, "__name__", str(function))
    if name == "where":
        condition, first, second = args
        data, masks = (_data_of(first), _data_of(second)), (_mask_of(first), _mask_of(second))
        return _make_masked(function(condition, *data), function(condition, *masks))
    if name in _JOINING:
        tensors, rest = args[0], args[1:]
        joined = (function([part(each) for each in tensors], *rest, **kwargs) for part in (_data_of, _mask_of))
        return _make_masked(*joined)
    if name in _REARRANGING:
        return _make_results(function(args[0]._data, *args[1:], **kwargs), function(args[0]._mask, *args[1:], **kwargs))
    if name in _ELEMENTWISE:
        return _elementwise(function, args, kwargs)
    if name in _REDUCTIONS:
        return _reduce(name, args, kwargs)
    if name in _NORMALISATIONS:
        first = args[0]
        return _make_masked(getattr(normalisations, name)(first._data, *args[1:], mask=first._mask, **kwargs), first._mask)
    raise NotImplementedError(f"{name}() is not available for masked tensors; use to_tensor(value) or get_data() first")


def _mask_of(value: Any) -> Tensor:
    return value._mask if isinstance(value, MaskedTensor) else aten.ones_like(value, dtype=bool_)


def _make_results(data: Any, mask: Any) -> Any:
    if isinstance(data, tuple | list):
        return tuple(_make_masked(*pair) for pair in zip(data, mask, strict=True))
    return _make_masked(data, mask)


def _elementwise(function: Callable, args: tuple, kwargs: dict) -> MaskedTensor:
    masks = [value._mask for value in (*args, *kwargs.values()) if isinstance(value, MaskedTensor)]
    if any(other.shape != masks[0].shape or not bool((other == masks[0]).all()) for other in masks[1:]):
        raise ValueError("Input masks must match")
    result = function(*map(_data_of, args), **{key: _data_of(value) for key, value in kwargs.items()})
    return _make_masked(result, masks[0].expand(result.shape))


def _reduce(name: str, args: tuple, kwargs: dict) -> MaskedTensor:
    """Reduce the unmasked elements; a result is masked out where all of its elements are."""
    first = args[0]
    result = getattr(reductions, name)(first._data, *args[1:], mask=first._mask, **kwargs)
    where = {key: value for key, value in kwargs.items() if key in ("dim", "keepdim")}
    dim = where.get("dim", args[1] if len(args) > 1 and name not in ("norm",) else None)
    if dim is None or result.dim() == 0:
        return _make_masked(result, first._mask.any().expand(result.shape))
    dims = dim if isinstance(dim, tuple | list) else (dim,)
    mask = first._mask
    for each in sorted((axis % mask.dim() for axis in dims), reverse=True):
        mask = mask.any(each, keepdim=result.dim() == first.dim())
    return _make_masked(result, mask)
