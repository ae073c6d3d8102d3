"""Public functions whose signature is not that of one operator: variable numbers of tensors, or several operators in one."""

from __future__ import annotations

from collections.abc import Sequence
from string import ascii_lowercase, ascii_uppercase

from rushlight.core.overrides import overridable
from rushlight.core.size import Size
from rushlight.core.storage import UntypedStorage
from rushlight.core.strides import broadcast_shapes as _broadcast_shapes
from rushlight.core.tensor import Tensor
from rushlight.core.typed_storage import TypedStorage
from rushlight.ops import functional_linalg
from rushlight.ops.distinct import unique, unique_consecutive
from rushlight.ops.functional_views import atleast_1d, atleast_2d, atleast_3d, meshgrid
from rushlight.ops.out import finish
from rushlight.ops.packet import namespaces
from rushlight.ops.promotion import result_type as _result_type

aten = namespaces.namespace("aten")
_LETTERS = ascii_uppercase + ascii_lowercase  # einsum's letters for the subscripts 0 to 51
result_type = overridable(_result_type)


def _unpack_single_sequence(tensors: tuple) -> tuple | list:
    """Return tensors given one by one or in one sequence, as a sequence."""
    return tensors[0] if len(tensors) == 1 and isinstance(tensors[0], list | tuple) else tensors


@overridable
def einsum(*args: str | Tensor | Sequence) -> Tensor:
    """Return the sum of products that an equation names, as in `einsum("bij,bjk->bik", a, b)`; RuntimeError where it does not
    fit.

    Without an equation each operand is followed by the list of its subscripts, numbers below 52 and `...`; a last list is of
    the result's: `einsum(a, [0, 1, 2], b, [0, 2, 3], [0, 1, 3])`.
    """
    if len(args) < 2:
        raise ValueError(
            "einsum(): must specify the equation string and at least one operand, or at least one operand and its subscripts "
            "list"
        )
    if isinstance(args[0], Tensor):
        return aten.einsum.default(_equation_of(args), list(args[: len(args) // 2 * 2 : 2]))
    if len(args) == 2 and isinstance(args[1], list | tuple):
        return einsum(args[0], *args[1])  # start over, so that overrides of operands inside a list are found
    return aten.einsum.default(args[0], list(args[1:]))


def _equation_of(args: tuple) -> str:
    """Return the equation for operands that are each followed by a list of subscripts, with an optional list for the result."""
    inputs = ",".join(map(_subscripts, args[1::2]))
    return f"{inputs}->{_subscripts(args[-1])}" if len(args) % 2 else inputs


def _subscripts(numbers: Sequence) -> str:
    return "".join("..." if number is Ellipsis else _letter(number) for number in numbers)


def _letter(number: int) -> str:
    if not 0 <= number < len(_LETTERS):
        raise ValueError(f"einsum(): subscript in subscript list is not within the valid range [0, {len(_LETTERS)})")
    return _LETTERS[number]


@overridable
def broadcast_tensors(*tensors: Tensor | Sequence[Tensor]) -> tuple[Tensor, ...]:
    """Return each tensor expanded to the common shape; RuntimeError where there is none."""
    return aten.broadcast_tensors.default(list(_unpack_single_sequence(tensors)))


def broadcast_shapes(*shapes: int | Sequence[int]) -> Size:
    """Return the shape to which tensors of these shapes broadcast; RuntimeError where there is none."""
    return Size(_broadcast_shapes(*[(shape,) if isinstance(shape, int) else tuple(shape) for shape in shapes]))


@overridable
def nonzero(input: Tensor, *, as_tuple: bool = False, out: Tensor | None = None) -> Tensor | tuple[Tensor, ...]:
    """Return the indices of elements that are not 0, one row each, int64; with `as_tuple`, one tensor per dimension."""
    source = input.unsqueeze(0) if as_tuple and not input.dim() else input
    found = aten.nonzero.default(source)
    if as_tuple:
        return found.unbind(1)
    return finish("nonzero", out, found, input)


def is_tensor(obj: object) -> bool:
    """Return whether `obj` is a Tensor."""
    return isinstance(obj, Tensor)


@overridable
def is_floating_point(input: Tensor) -> bool:
    """Return whether the dtype is a floating one."""
    return input.is_floating_point()


@overridable
def is_complex(input: Tensor) -> bool:
    """Return whether the dtype is complex."""
    return input.is_complex()


@overridable
def is_nonzero(input: Tensor) -> bool:
    """Return whether the value of a one-element tensor differs from 0; RuntimeError for more or fewer elements."""
    return bool(input)


def is_storage(obj: object) -> bool:
    """Return whether `obj` is a storage."""
    return isinstance(obj, UntypedStorage | TypedStorage)


def typename(obj: object) -> str:
    """Return "torch.FloatTensor" for a tensor, the dotted name of a class or function, else that of the object's class."""
    if isinstance(obj, Tensor):
        return obj.type()
    named = obj if hasattr(obj, "__qualname__") else type(obj)
    is_plain = named.__module__ in ("builtins", None)
    return named.__qualname__ if is_plain else f"{named.__module__}.{named.__qualname__}"


@overridable
def numel(input: Tensor) -> int:
    """Return the number of elements."""
    return input.numel()


PUBLIC = functional_linalg.PUBLIC | {
    function.__name__: function
    for function in (
        broadcast_shapes, broadcast_tensors, einsum, is_complex, is_floating_point, is_nonzero, is_storage, is_tensor,
        nonzero, numel, typename,
        unique, unique_consecutive, atleast_1d, atleast_2d, atleast_3d, meshgrid,
    )
}  # fmt: skip
# Functions here that are also methods of Tensor.
METHODS = (*functional_linalg.METHODS, "nonzero", "unique", "unique_consecutive")


@overridable
def _assert(condition: object, message: str) -> None:
    """Raise AssertionError with the message where the condition is false. Unlike the statement it can be traced."""
    assert condition, message


@overridable
def _assert_is_none(value: object, message: str) -> None:
    """Raise AssertionError with the message where the value is not None."""
    assert value is None, message


@overridable
def _assert_async(input: Tensor, assert_msg: str = "") -> None:
    """Raise RuntimeError with the message where the only element of `input` is zero or False."""
    if not bool(input):
        raise RuntimeError(assert_msg or "Expected Tensor with single nonzero value, but got zero")


_assert._is_impure = _assert_is_none._is_impure = _assert_async._is_impure = True
