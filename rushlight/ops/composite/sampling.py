"""Composite draws: functional forms of the in-place ones, and normal numbers with tensors as mean and deviation."""

from __future__ import annotations

from rushlight.core.dtype import dtype, get_default_dtype
from rushlight.core.strides import broadcast_shapes
from rushlight.core.tensor import Tensor
from rushlight.ops.composite.creation import as_new
from rushlight.ops.composite.network.common import checked_later, values_of
from rushlight.ops.packet import namespaces
from rushlight.ops.promotion import result_type
from rushlight.ops.registry import composite

aten = namespaces.namespace("aten")


def _blank(self: Tensor, dtype: dtype | None = None) -> Tensor:
    return aten.empty_like.default(self.detach(), dtype=dtype)


@composite("bernoulli(Tensor self, *, Generator? generator=None) -> Tensor")
def bernoulli(self, *, generator=None):
    return as_new(aten.bernoulli_.Tensor(_blank(self), self.detach(), generator=generator))


@composite("bernoulli.p(Tensor self, float p, *, Generator? generator=None) -> Tensor")
def bernoulli_p(self, p, *, generator=None):
    return as_new(aten.bernoulli_.float(_blank(self), p, generator=generator))


@composite("random_.to(Tensor(a!) self, int to, *, Generator? generator=None) -> Tensor(a!)")
def random_to(self, to, *, generator=None):
    return getattr(aten.random_, "from")(self, 0, to, generator=generator)


def _checked_deviation(std: Tensor) -> Tensor:
    if std.is_complex():
        raise RuntimeError("normal expects standard deviation to be non-complex")
    values = values_of(std)
    if values is not None and (values < 0).any():
        raise RuntimeError("normal expects all elements of std >= 0.0")
    return checked_later(std, lambda x: x >= 0, RuntimeError, "normal expects all elements of std >= 0.0")


def _check_number(std: float) -> None:
    if not std >= 0:
        raise RuntimeError(f"normal expects std >= 0.0, but found std {std:g}")


@composite("normal.Tensor_float(Tensor mean, float std=1, *, Generator? generator=None) -> Tensor")
def normal_around(mean, std=1.0, *, generator=None):
    _check_number(std)
    drawn = aten.normal_.default(_blank(mean), 0.0, std, generator=generator)
    return as_new(aten.add_.Tensor(drawn, mean.detach()))


@composite("normal.float_Tensor(float mean, Tensor std, *, Generator? generator=None) -> Tensor")
def normal_with(mean, std, *, generator=None):
    std = _checked_deviation(std)
    drawn = aten.normal_.default(_blank(std), 0.0, 1.0, generator=generator)
    return as_new(aten.add_.Tensor(aten.mul_.Tensor(drawn, std.detach()), mean))


@composite("normal.Tensor_Tensor(Tensor mean, Tensor std, *, Generator? generator=None) -> Tensor")
def normal(mean, std, *, generator=None):
    std = _checked_deviation(std)
    # Allocate like the mean rather than by sizes: inside a vmap the result is batched if the operands are.
    blank = _blank(mean.expand(broadcast_shapes(mean.shape, std.shape)), dtype=result_type(mean, std))
    drawn = aten.normal_.default(blank, 0.0, 1.0, generator=generator)
    return as_new(aten.add_.Tensor(aten.mul_.Tensor(drawn, std.detach()), mean.detach()))


@composite(
    "normal.float_float(float mean, float std, SymInt[] size, *, Generator? generator=None, ScalarType? dtype=None, "
    "Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor"
)
def normal_numbers(mean, std, size, *, generator=None, dtype=None, layout=None, device=None, pin_memory=None):
    _check_number(std)
    made = aten.empty.memory_format(size, dtype=dtype or get_default_dtype(), device=device)
    return as_new(aten.normal_.default(made, mean, std, generator=generator))


_LIKE = (
    "*, Generator? generator, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None, "
    "MemoryFormat? memory_format=None) -> Tensor"
)


def _define_like(name: str, sampler: str) -> None:
    @composite(f"{name}.generator(Tensor self, {_LIKE}")
    def like(self, *, generator, dtype=None, layout=None, device=None, pin_memory=None, memory_format=None):
        made = aten.empty_like.default(self, dtype=dtype, device=device, memory_format=memory_format)
        return as_new(getattr(aten, sampler).default(made, generator=generator))


_define_like("rand_like", "uniform_")
_define_like("randn_like", "normal_")


@composite(f"randint_like.low_generator_dtype(Tensor self, SymInt low, SymInt high, {_LIKE}")
def randint_like_between(
    self, low, high, *, generator, dtype=None, layout=None, device=None, pin_memory=None, memory_format=None
):
    made = aten.empty_like.default(self, dtype=dtype, device=device, memory_format=memory_format)
    return as_new(getattr(aten.random_, "from")(made, low, high, generator=generator))


@composite(f"randint_like.generator(Tensor self, SymInt high, {_LIKE}")
def randint_like(self, high, **options):
    return randint_like_between(self, 0, high, **options)
