"""Names from torch's first years that programs still use: tensor types such as `FloatTensor`, `range`, methods as functions.

In: sizes, values or tensors. Out: tensors and plain answers. New programs use `tensor`, `empty`, `arange` and methods.
"""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from typing import Any

from rushlight.core import dtype as dtypes
from rushlight.core.device import set_default_device
from rushlight.core.dtype import dtype, get_default_dtype, set_default_dtype
from rushlight.core.layout import layout
from rushlight.core.overrides import overridable
from rushlight.core.storage import UntypedStorage
from rushlight.core.symbolic.integers import SymInt
from rushlight.core.tensor import Tensor, tensor_from_storage
from rushlight.core.typed_storage import TypedStorage
from rushlight.ops.construct import tensor, tensor_of_storage
from rushlight.ops.out import write_out
from rushlight.ops.packet import namespaces

aten = namespaces.namespace("aten")


class TensorType(type):
    """The class of `FloatTensor` and its kin: its instances are all tensors of one dtype on devices of one type."""

    dtype: dtype
    place: str

    def __instancecheck__(cls, value: object) -> bool:
        return isinstance(value, Tensor) and value.dtype is cls.dtype and value.is_cuda is (cls.place == "cuda")

    def __call__(cls, *args: Any) -> Tensor:
        """Return an uninitialised tensor of the sizes given one by one, or one of the values of a sequence or tensor."""
        if len(args) == 1 and isinstance(args[0], UntypedStorage | TypedStorage):
            return tensor_of_storage(args[0], cls.dtype)
        if len(args) == 1 and isinstance(args[0], cls):
            return aten.alias.default(args[0])
        if len(args) == 1 and not isinstance(args[0], int):
            return tensor(args[0], dtype=cls.dtype, device=cls.place)
        return aten.empty.memory_format(list(args) or [0], dtype=cls.dtype, device=cls.place)


def _define(kind: dtype, place: str = "cpu") -> TensorType:
    name = f"{kind.scalar_name}Tensor"
    where = " on GPUs" if place == "cuda" else ""
    text = f"The type of tensors of {kind}{where}. Sizes make an uninitialised tensor, values one of these."
    module = "rushlight.cuda" if place == "cuda" else "rushlight"
    return TensorType(name, (), {"dtype": kind, "place": place, "__doc__": text, "__module__": module})


FloatTensor, DoubleTensor = _define(dtypes.float32), _define(dtypes.float64)
HalfTensor, BFloat16Tensor = _define(dtypes.float16), _define(dtypes.bfloat16)
LongTensor, IntTensor, ShortTensor = _define(dtypes.int64), _define(dtypes.int32), _define(dtypes.int16)
CharTensor, ByteTensor, BoolTensor = _define(dtypes.int8), _define(dtypes.uint8), _define(dtypes.bool_)
_TYPES = (
    FloatTensor, DoubleTensor, HalfTensor, BFloat16Tensor, LongTensor, IntTensor, ShortTensor, CharTensor, ByteTensor,
    BoolTensor,
)  # fmt: skip
CUDA_TYPES = {kind.__name__: _define(kind.dtype, "cuda") for kind in _TYPES}
"""The types of `torch.cuda` by name."""


def set_default_tensor_type(t: TensorType | str) -> None:
    """Set the default floating dtype and the default device by a tensor type or its name, as "torch.DoubleTensor" or
    "torch.cuda.FloatTensor"; TypeError for other types."""
    named = {f"torch.{kind.__name__}": kind for kind in _TYPES}
    named |= {f"torch.cuda.{name}": kind for name, kind in CUDA_TYPES.items()}
    kind = named.get(t) if isinstance(t, str) else t
    if not isinstance(kind, TensorType):
        raise TypeError(f"invalid type object: expected a floating tensor type such as torch.DoubleTensor, but got {t!r}")
    set_default_dtype(kind.dtype)
    set_default_device(None if kind.place == "cpu" else kind.place)


def range(  # noqa: A001
    start: float, end: float | None = None, step: float = 1, *, out: Tensor | None = None, dtype: dtype | None = None,
    layout: layout | None = None, device: Any = None, requires_grad: bool = False,
) -> Tensor:  # fmt: skip
    """Return values from `start` to `end`, inclusive, `step` apart; RuntimeError where `step` is 0 or leads away from `end`."""
    start, end = (0, start) if end is None else (start, end)
    if step == 0:
        raise RuntimeError("step must be nonzero")
    if (end - start) * step < 0:
        raise RuntimeError(f"upper bound and lower bound inconsistent with step sign: from {start} to {end} by {step}")
    count = math.floor((end - start) / step) + 1
    kind = dtype or (get_default_dtype() if out is None else out.dtype)
    place = aten.arange.default(count, dtype=dtypes.int64 if kind.is_integral else dtypes.float64)
    made = (place * step + start).to(dtype=kind, device=device)
    if out is not None:
        return write_out("range", out, made, ())
    return made.requires_grad_(requires_grad)


def from_file(
    filename: str | os.PathLike, shared: bool | None = None, size: int = 0, *, dtype: dtype | None = None,
    device: Any = None, requires_grad: bool = False,
) -> Tensor:  # fmt: skip
    """Return the first elements of a file as a 1-D tensor; where `shared`, writes reach the file."""
    kind = dtype or get_default_dtype()
    storage = UntypedStorage.from_file(filename, bool(shared), size * kind.itemsize)
    return tensor_from_storage(storage, kind, (size,), (1,)).requires_grad_(requires_grad)


@overridable
def is_same_size(input: Tensor, other: Tensor) -> bool:
    """Return whether both have the same shape."""
    return input.shape == other.shape


@overridable
def is_signed(input: Tensor) -> bool:
    """Return whether the dtype holds negative numbers."""
    return input.is_signed()


@overridable
def is_inference(input: Tensor) -> bool:
    """Return whether the tensor was made in inference mode."""
    return input.is_inference()


@overridable
def is_distributed(input: Tensor) -> bool:
    """Return whether the tensor lies on several machines: never."""
    return False


def detach_(input: Tensor) -> Tensor:
    """Take the tensor out of the graph that made it, in place."""
    return input.detach_()


def as_strided_(input: Tensor, size: tuple[int, ...], stride: tuple[int, ...], storage_offset: int | None = None) -> Tensor:
    """Give the tensor other sizes and strides over its storage, in place."""
    return input.as_strided_(size, stride, storage_offset)


def to_dlpack(input: Tensor) -> Any:
    """Return the tensor's memory as a DLPack capsule."""
    return input.__dlpack__()


@overridable
def unravel_index(indices: Tensor, shape: int | tuple[int, ...]) -> tuple[Tensor, ...]:
    """Return the coordinates of flat indices into a row-major tensor of `shape`: an int64 tensor per dimension.

    Raises TypeError for indices that are no integers and for other shapes, ValueError for negative sizes.
    """
    if not isinstance(shape, int | Sequence):
        raise TypeError(f"expected 'shape' to be int or sequence of ints, but got {type(shape)}")
    sizes = (shape,) if isinstance(shape, int) else tuple(shape)
    if not all(isinstance(size, int | SymInt) for size in sizes):
        other = next(size for size in sizes if not isinstance(size, int | SymInt))
        raise TypeError(f"expected 'shape' sequence to only contain ints, but got {type(other)}")
    if not indices.dtype.is_integral or indices.dtype is dtypes.bool_:
        raise TypeError(f"expected 'indices' to be integer dtype, but got {indices.dtype}")
    if any(size < 0 for size in sizes):
        raise ValueError(f"'shape' cannot have negative values, but got {sizes}")
    found, rest = [], indices.to(dtypes.int64)
    for size in reversed(sizes):
        found.append(aten.remainder(rest, size))
        rest = aten.floor_divide(rest, size)
    return tuple(reversed(found))


def _shape_as_tensor(input: Tensor) -> Tensor:
    """Return the sizes of a tensor as an int64 vector."""
    return tensor(list(input.shape), dtype=dtypes.int64)
