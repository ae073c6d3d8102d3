"""Composite elementwise operators, and the in-place variants of composites."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable

from rushlight.core.dispatch_key import DispatchKey
from rushlight.core.dtype import bool_, dtype, finfo, get_default_dtype, of_number
from rushlight.core.tensor import Tensor
from rushlight.core.thread_state import state
from rushlight.ops.composite.precision import in_full_precision
from rushlight.ops.dispatcher import Kernel, define
from rushlight.ops.meta.checks import check_operands, not_implemented
from rushlight.ops.numbers import as_operand, as_wrapped_operand
from rushlight.ops.packet import namespaces
from rushlight.ops.promotion import check_number, result_type
from rushlight.ops.registry import check_castable, composite
from rushlight.ops.schema import in_place_declaration, split_declaration

aten = namespaces.namespace("aten")
# In-place variants that read an operand after they have started to write to `self`.
_READ_LATER = frozenset({"index_add_", "index_copy_", "index_fill_", "scatter_", "scatter_add_", "masked_scatter_", "put_"})


def with_inplace(*schemas: str, overload: str | None = None) -> Callable:
    """Define composites and, for each, the in-place variant `name_`, which copies the result into `self`.

    `overload` names the variant's overload where ATen calls it differently.
    """

    def decorate(function: Callable) -> Callable:
        composite(*schemas)(function)

        name = split_declaration(schemas[0])[0] + "_"

        def inplace(self, *args, **kwargs):
            operands = (*args, *kwargs.values())
            check_operands(self, name, operands, reads_later=name in _READ_LATER)
            result = function(source_of_write(self, operands), *args, **kwargs)
            check_castable(name, result.dtype, self.dtype)
            return aten.copy_.default(self, result)

        for schema in schemas:
            op = define("aten", in_place_declaration(schema, overload))
            op.register(DispatchKey.CompositeImplicitAutograd, Kernel(inplace))
        return function

    return decorate


def source_of_write(self: Tensor, operands: Iterable[object]) -> Tensor:
    """Return the source for an operator that overwrites `self`: a copy if autograd records the call and saves the source."""
    return aten.clone.default(self) if _is_recorded(self, *operands) else self


def _is_recorded(*operands: object) -> bool:
    """Return whether autograd records calls on these operands."""
    return state.grad_enabled and any(isinstance(value, Tensor) and value.requires_grad for value in operands)


@composite("rsub.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor")
def rsub(self, other, *, alpha=1):
    return aten.sub.Tensor(as_wrapped_operand(other, self), self, alpha=alpha)


@with_inplace("square(Tensor self) -> Tensor")
def square(self):
    return aten.pow.Tensor_Scalar(self, 2)


# Tensor overloads come first: a 0-dim tensor also fits an overload for numbers.
@with_inplace(
    "clamp.Tensor(Tensor self, Tensor? min=None, Tensor? max=None) -> Tensor",
    "clamp(Tensor self, Scalar? min=None, Scalar? max=None) -> Tensor",
)
def clamp(self, min=None, max=None):
    if min is None and max is None:
        raise RuntimeError("torch.clamp: At least one of 'min' or 'max' must not be None")
    _check_bounds(min, max)
    result = self if min is None else clamp_min(self, min)
    return result if max is None else clamp_max(result, max)


def _check_bounds(*bounds: Tensor | complex | None) -> None:
    """Raise unless bounds are both numbers (0-dim tensors count as numbers), or both tensors."""
    numbers = [bound for bound in bounds if bound is not None and not isinstance(bound, Tensor)]
    if numbers and any(isinstance(bound, Tensor) and bound.dim() for bound in bounds):
        names = ", ".join([f"{name}={type(bound).__name__}" for name, bound in zip(("min", "max"), bounds, strict=True)])
        raise TypeError(
            f"clamp() received an invalid combination of arguments - got ({names}), but expected two numbers or two tensors"
        )


@with_inplace(
    "clip.Tensor(Tensor self, Tensor? min=None, Tensor? max=None) -> Tensor",
    "clip(Tensor self, Scalar? min=None, Scalar? max=None) -> Tensor",
)
def clip(self, min=None, max=None):
    return clamp(self, min, max)


@with_inplace("clamp_min(Tensor self, Scalar min) -> Tensor", "clamp_min.Tensor(Tensor self, Tensor min) -> Tensor")
def clamp_min(self, min):
    return _clamp_on_one_side(self, min, aten.lt.Tensor, aten.maximum.default)


@with_inplace("clamp_max(Tensor self, Scalar max) -> Tensor", "clamp_max.Tensor(Tensor self, Tensor max) -> Tensor")
def clamp_max(self, max):
    return _clamp_on_one_side(self, max, aten.gt.Tensor, aten.minimum.default)


def _clamp_on_one_side(self: Tensor, bound: Tensor | complex, is_beyond: Callable, extremum: Callable) -> Tensor:
    """Return `extremum` of the elements and a bound that must broadcast to them. At ties the elements get the whole gradient,
    which extrema would halve. If one of the two is NaN, so is the result, and neither gets a gradient."""
    if not isinstance(bound, Tensor):
        check_number(bound, result_type(self, bound))
    if not _is_recorded(self, bound):
        return extremum(self, bound)
    found = aten.where.self(is_beyond(self, bound), as_operand(bound, self), self)
    missing = aten.isnan.default(self)
    if isinstance(bound, Tensor):
        missing = missing.logical_or(aten.isnan.default(bound))
    elif isinstance(bound, float) and math.isnan(bound):
        missing = aten.ones_like.default(missing)
    return filled(found, missing, math.nan)


@with_inplace("floor_divide(Tensor self, Tensor other) -> Tensor", overload="Tensor")
def floor_divide(self, other):
    return aten.div.Tensor_mode(self, other, rounding_mode="floor")


@with_inplace("true_divide.Tensor(Tensor self, Tensor other) -> Tensor", "divide.Tensor(Tensor self, Tensor other) -> Tensor")
def true_divide(self, other):
    return aten.div.Tensor(self, other)


@with_inplace("multiply.Tensor(Tensor self, Tensor other) -> Tensor")
def multiply(self, other):
    return aten.mul.Tensor(self, other)


@with_inplace("subtract.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor")
def subtract(self, other, *, alpha=1):
    return aten.sub.Tensor(self, other, alpha=alpha)


@with_inplace("lerp.Scalar(Tensor self, Tensor end, Scalar weight) -> Tensor")
def lerp(self, end, weight):
    _check_lerp(self, end)
    return _lerp(self, end, weight)


@in_full_precision
def _lerp(self, end, weight):
    weight = float(weight) if isinstance(weight, bool) else weight
    if abs(weight) < 0.5:
        return aten.add.Tensor(self, aten.sub.Tensor(end, self), alpha=weight)
    return aten.sub.Tensor(end, aten.sub.Tensor(end, self), alpha=1 - weight)


@with_inplace("lerp.Tensor(Tensor self, Tensor end, Tensor weight) -> Tensor")
def lerp_tensor(self, end, weight):
    _check_lerp(self, end, weight)
    return _lerp_tensor(self, end, weight)


@in_full_precision
def _lerp_tensor(self, end, weight):
    distance = end - self
    return aten.where.self(weight.abs() < 0.5, self + weight * distance, end - distance * (1 - weight))


def _check_lerp(self: Tensor, end: Tensor, weight: Tensor | None = None) -> None:
    with_tensor = weight is not None and weight.dim() > 0
    for name, given in (("end", end), ("weight", weight if with_tensor else None)):
        if given is not None and given.dtype is not self.dtype:
            raise RuntimeError(f"expected dtype {self.dtype} for `{name}` but got dtype {given.dtype}")
    if self.dtype.is_integral and (with_tensor or weight is None):
        raise not_implemented(f"lerp_kernel_{'scalar' if weight is None else 'tensor'}", self.dtype)


@with_inplace("addcmul(Tensor self, Tensor tensor1, Tensor tensor2, *, Scalar value=1) -> Tensor")
def addcmul(self, tensor1, tensor2, *, value=1):
    kind = result_type(self, tensor1, tensor2)
    if kind is bool_:
        raise not_implemented("addcmul_cpu_out", kind)
    check_number(value, kind)
    value = int(value) if kind.is_integral else value
    tensor1, tensor2 = tensor1.to(kind), tensor2.to(kind)
    return aten.add.Tensor(self, aten.mul.Tensor(tensor1 if value == 1 else tensor1 * value, tensor2))


@with_inplace("addcdiv(Tensor self, Tensor tensor1, Tensor tensor2, *, Scalar value=1) -> Tensor")
def addcdiv(self, tensor1, tensor2, *, value=1):
    kind = result_type(self, tensor1, tensor2)
    check_number(value, kind)
    if tensor1.dtype.is_integral and tensor2.dtype.is_integral:
        raise RuntimeError(
            "Integer division with addcdiv is no longer supported: convert the operands to a floating dtype for a true "
            "division, or use self + value * torch.trunc(tensor1 / tensor2).to(dtype)"
        )
    tensor1, tensor2 = tensor1.to(kind), tensor2.to(kind)
    return aten.add.Tensor(self, aten.div.Tensor(tensor1 if value == 1 else tensor1 * value, tensor2))


@with_inplace("exp2(Tensor self) -> Tensor")
def exp2(self):
    if self.dtype.is_complex:
        return aten.exp.default(_scale(self, 0.6931471805599453))
    return aten.pow.Scalar(2.0, _floating(self))


@with_inplace("log10(Tensor self) -> Tensor")
def log10(self):
    return _scale(aten.log2.default(self), 0.30102999566398119521)


def _scale(self: Tensor, factor: float) -> Tensor:
    """Return `self * factor`. Complex numbers scale by parts, because a full product would turn infinities into NaN."""
    if not self.dtype.is_complex:
        return self * factor
    return aten.view_as_complex.default(aten.view_as_real.default(self) * factor)


@with_inplace("logit(Tensor self, float? eps=None) -> Tensor")
def logit(self, eps=None):
    if self.dtype.is_complex:
        raise not_implemented("logit_cpu", self.dtype)
    x = _floating(self)
    if eps is None:  # the factor makes the gradient NaN, too, outside of [0, 1]
        return _logit(x * aten.where.Scalar((x < 0) | (x > 1), math.nan, 1.0).to(x.dtype))
    return _logit(aten.where.ScalarSelf(x < eps, eps, aten.where.ScalarSelf(x > 1 - eps, 1 - eps, x)))


@in_full_precision
def _logit(x: Tensor) -> Tensor:
    # The gradients of both logarithms are infinite at 0 and 1, where that of log(x / (1 - x)) would be NaN.
    return aten.log.default(x) - aten.log.default(1 - x)


@with_inplace("round.decimals(Tensor self, *, int decimals) -> Tensor")
def round_decimals(self, *, decimals):
    if self.dtype.is_integral:
        raise not_implemented("round_cpu", self.dtype)
    scale = 10.0 ** abs(decimals) if abs(decimals) <= 308 else math.inf
    if decimals < 0:
        return aten.round.default(self / scale) * scale
    return aten.round.default(self * scale) / scale


@with_inplace("frac(Tensor self) -> Tensor")
def frac(self):
    return self - aten.trunc.default(self)


def _floating(self: Tensor) -> Tensor:
    return self.to(get_default_dtype()) if self.dtype.is_integral else self


@composite("isfinite(Tensor self) -> Tensor")
def isfinite(self):
    if self.dtype.is_integral:
        return aten.ones_like.default(self, dtype=bool_)
    return aten.lt.Tensor(aten.abs.default(self), float("inf"))


@composite("isclose(Tensor self, Tensor other, float rtol=1e-05, float atol=1e-08, bool equal_nan=False) -> Tensor")
def isclose(self, other, rtol=1e-05, atol=1e-08, equal_nan=False):
    if self.dtype is not other.dtype:
        raise RuntimeError(f"{self.dtype} did not match {other.dtype} (isclose needs tensors of one dtype)")
    for name, value in (("rtol", rtol), ("atol", atol)):
        if not value >= 0:
            raise RuntimeError(f"{name} must be greater than or equal to zero, but got {value}")
    close = self == other
    if equal_nan and not self.dtype.is_integral:
        close = close | (aten.isnan.default(self) & aten.isnan.default(other))
    if rtol == 0 and atol == 0:  # compare exactly, which also works for dtypes without arithmetic
        return close
    near = aten.abs.default(_floating(self) - _floating(other)) <= atol + aten.abs.default(_floating(other) * rtol)
    return close | (isfinite(other) & isfinite(self) & near)


@composite("allclose(Tensor self, Tensor other, float rtol=1e-05, float atol=1e-08, bool equal_nan=False) -> bool")
def allclose(self, other, rtol=1e-05, atol=1e-08, equal_nan=False):
    return bool(isclose(self, other, rtol, atol, equal_nan).all().item())


@with_inplace("masked_fill.Scalar(Tensor self, Tensor mask, Scalar value) -> Tensor")
def masked_fill(self, mask, value):
    return aten.contiguous.default(filled(self, mask, value))


def filled(self: Tensor, mask: Tensor, value: complex) -> Tensor:
    """Return `self` with a number where the mask is true, in the memory order of `self`; errors as of masked_fill."""
    if mask.dtype is not bool_:
        raise RuntimeError(f"masked_fill_ only supports boolean masks, but got mask with dtype {mask.dtype}")
    _check_fits(self, of_number(value))
    replacement = aten.full.default((), value, dtype=self.dtype, device=self.device)
    return aten.where.self(mask, replacement, self)


@with_inplace("masked_fill.Tensor(Tensor self, Tensor mask, Tensor value) -> Tensor")
def masked_fill_tensor(self, mask, value):
    if value.dim():
        raise RuntimeError(
            f"masked_fill_ only supports a 0-dimensional value tensor, but got tensor with {value.dim()} dimension(s)."
        )
    if mask.dtype is not bool_:
        raise RuntimeError(f"masked_fill_ only supports boolean masks, but got mask with dtype {mask.dtype}")
    _check_fits(self, value.dtype)
    if value._impl.storage.buffer is not None and not value._impl.fake and not value.is_cuda:
        check_number(value._impl.array.reshape(()).tolist(), self.dtype)
    return aten.contiguous.default(aten.where.self(mask, value.to(self.dtype), self))


def _check_fits(self: Tensor, kind: dtype) -> None:
    if kind.is_complex and not self.dtype.is_complex:
        raise RuntimeError(f"value cannot be converted to type {self.dtype.name} without overflow")


@composite("where.ScalarSelf(Tensor condition, Scalar self, Tensor other) -> Tensor")
def where_scalar_self(condition, self, other):
    return aten.where.self(condition, as_operand(self, other), other)


@composite("where.ScalarOther(Tensor condition, Tensor self, Scalar other) -> Tensor")
def where_scalar_other(condition, self, other):
    return aten.where.self(condition, self, as_operand(other, self))


@composite("where.Scalar(Tensor condition, Scalar self, Scalar other) -> Tensor")
def where_scalars(condition, self, other):
    return aten.where.self(condition, as_operand(self, other, condition), as_operand(other, self, condition))


@composite("where(Tensor condition) -> Tensor[]")
def where_indices(condition):
    return aten.unbind.int(aten.nonzero.default(condition if condition.dim() else condition.reshape(1)), 1)


@with_inplace("tril(Tensor self, int diagonal=0) -> Tensor")
def tril(self, diagonal=0):
    return _triangle(self, lambda column, row: column <= row + diagonal)


@with_inplace("triu(Tensor self, int diagonal=0) -> Tensor")
def triu(self, diagonal=0):
    return _triangle(self, lambda column, row: column >= row + diagonal)


def _triangle(self: Tensor, keep: Callable) -> Tensor:
    if self.dim() < 2:
        raise RuntimeError(f"tril/triu: input tensor must have at least 2 dimensions, got {self.dim()}")
    rows = aten.unsqueeze.default(aten.arange.start_step(0, self.size(-2), 1, device=self.device), 1)
    columns = aten.arange.start_step(0, self.size(-1), 1, device=self.device)
    zero = aten.full.default((), 0, dtype=self.dtype, device=self.device)
    return aten.contiguous.default(aten.where.self(keep(columns, rows), self, zero))


@composite("positive(Tensor(a) self) -> Tensor(a)")
def positive(self):
    return self


@composite("logaddexp(Tensor self, Tensor other) -> Tensor")
def logaddexp(self, other):
    kind = result_type(self, other)
    if kind.is_integral:
        raise not_implemented("logaddexp_cpu", kind)
    if kind.is_complex:
        return _logaddexp_complex(self, other)
    high = aten.maximum.default(self, other)
    spread = -aten.abs.default(self - other)
    return aten.where.self(self == other, high + 0.6931471805599453, high + aten.log1p.default(aten.exp.default(spread)))


def _logaddexp_complex(self: Tensor, other: Tensor) -> Tensor:
    left, right = aten.real.default(self), aten.real.default(other)
    first = left >= right
    spread = aten.where.self(first, other - self, self - other)
    found = aten.where.self(first, self, other) + aten.log1p.default(aten.exp.default(spread))
    infinite = aten.where.self(left < 0, self, aten.log.default(aten.exp.default(self) + aten.exp.default(other)))
    return aten.where.self(aten.isinf.default(left).logical_and(left == right), infinite, found)


@with_inplace("nan_to_num(Tensor self, float? nan=None, float? posinf=None, float? neginf=None) -> Tensor")
def nan_to_num(self, nan=None, posinf=None, neginf=None):
    if self.dtype.is_integral:
        return aten.clone.default(self)
    if self.dtype.is_complex:
        return aten.view_as_complex.default(nan_to_num(aten.view_as_real.default(self), nan, posinf, neginf))
    largest = finfo(self.dtype).max
    finite = filled(self, aten.isnan.default(self), 0.0 if nan is None else nan)
    finite = filled(finite, self == float("inf"), largest if posinf is None else posinf)
    return filled(finite, self == float("-inf"), -largest if neginf is None else neginf)
