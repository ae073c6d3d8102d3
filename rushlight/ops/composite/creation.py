"""Composite creation and conversion operators."""

from __future__ import annotations

from rushlight.core.device import present_device
from rushlight.core.dtype import get_default_dtype, int64
from rushlight.core.layout import CHANNELS_LAST_RANKS, preserve_format
from rushlight.core.strides import contiguous_strides, elementwise_strides, is_non_overlapping_and_dense
from rushlight.core.tensor import Tensor
from rushlight.ops.meta.checks import is_channels_last
from rushlight.ops.packet import namespaces
from rushlight.ops.promotion import rounded_to_half
from rushlight.ops.registry import composite

aten = namespaces.namespace("aten")
_OPTIONS = "ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None"


def _define(name: str, value: int) -> None:
    @composite(f"{name}(SymInt[] size, *, {_OPTIONS}) -> Tensor")
    def filled(size, *, dtype=None, layout=None, device=None, pin_memory=None):
        return aten.full.default(size, value, dtype=dtype or get_default_dtype(), device=device)

    @composite(f"{name}_like(Tensor self, *, {_OPTIONS}, MemoryFormat? memory_format=None) -> Tensor")
    def like(self, *, dtype=None, layout=None, device=None, pin_memory=None, memory_format=None):
        return full_like(self, value, dtype=dtype, device=device, memory_format=memory_format)

    @composite(f"new_{name}(Tensor self, SymInt[] size, *, {_OPTIONS}) -> Tensor")
    def new(self, size, *, dtype=None, layout=None, device=None, pin_memory=None):
        return aten.full.default(size, value, dtype=dtype or self.dtype, device=device or self.device)


_define("zeros", 0)
_define("ones", 1)


@composite(f"empty_like(Tensor self, *, {_OPTIONS}, MemoryFormat? memory_format=None) -> Tensor")
def empty_like(self, *, dtype=None, layout=None, device=None, pin_memory=None, memory_format=None):
    kind, where = dtype or self.dtype, device or self.device
    impl = self._impl
    if memory_format not in (None, preserve_format):
        return aten.empty.memory_format(impl.sizes, dtype=kind, device=where, memory_format=memory_format)
    is_dense = is_non_overlapping_and_dense(impl.sizes, impl.strides)
    strides = impl.strides if is_dense else elementwise_strides(impl.sizes, [(impl.sizes, impl.strides)])
    return aten.empty_strided.default(impl.sizes, strides, dtype=kind, device=where)


def laid_out_as(made: Tensor, like: Tensor) -> Tensor:
    """Return a result with the strides that a copy of a tensor of its sizes would have."""
    own, found = like._impl, made._impl.strides
    if found in (own.strides, elementwise_strides(own.sizes, [(own.sizes, own.strides)])):
        return made
    return aten.copy_.default(aten.empty_like.default(like, dtype=made.dtype), made)


@composite(f"full_like(Tensor self, Scalar fill_value, *, {_OPTIONS}, MemoryFormat? memory_format=None) -> Tensor")
def full_like(self, fill_value, *, dtype=None, layout=None, device=None, pin_memory=None, memory_format=None):
    impl = self._impl
    if impl.strides == contiguous_strides(impl.sizes) and memory_format not in CHANNELS_LAST_RANKS:
        return aten.full.default(self.shape, fill_value, dtype=dtype or self.dtype, device=device or self.device)
    made = empty_like(self, dtype=dtype, device=device, memory_format=memory_format)
    return aten.fill_.Scalar(made, fill_value)


@composite(f"new_empty(Tensor self, SymInt[] size, *, {_OPTIONS}) -> Tensor")
def new_empty(self, size, *, dtype=None, layout=None, device=None, pin_memory=None):
    return aten.empty.memory_format(size, dtype=dtype or self.dtype, device=device or self.device)


@composite(f"new_empty_strided(Tensor self, SymInt[] size, SymInt[] stride, *, {_OPTIONS}) -> Tensor")
def new_empty_strided(self, size, stride, *, dtype=None, layout=None, device=None, pin_memory=None):
    return aten.empty_strided.default(size, stride, dtype=dtype or self.dtype, device=device or self.device)


@composite(f"new_full(Tensor self, SymInt[] size, Scalar fill_value, *, {_OPTIONS}) -> Tensor")
def new_full(self, size, fill_value, *, dtype=None, layout=None, device=None, pin_memory=None):
    return aten.full.default(size, fill_value, dtype=dtype or self.dtype, device=device or self.device)


@composite(f"arange(Scalar end, *, {_OPTIONS}) -> Tensor")
def arange(end, *, dtype=None, layout=None, device=None, pin_memory=None):
    return aten.arange.start_step(0, end, 1, dtype=dtype, device=device)


@composite(f"arange.start(Scalar start, Scalar end, *, {_OPTIONS}) -> Tensor")
def arange_start(start, end, *, dtype=None, layout=None, device=None, pin_memory=None):
    return aten.arange.start_step(start, end, 1, dtype=dtype, device=device)


@composite(f"eye(SymInt n, *, {_OPTIONS}) -> Tensor")
def eye(n, *, dtype=None, layout=None, device=None, pin_memory=None):
    return eye_m(n, n, dtype=dtype, device=device)


@composite(f"eye.m(SymInt n, SymInt m, *, {_OPTIONS}) -> Tensor")
def eye_m(n, m, *, dtype=None, layout=None, device=None, pin_memory=None):
    for name, size in (("n", n), ("m", m)):
        if size < 0:
            raise RuntimeError(f"{name} must be greater or equal to 0, got {size}")
    if n * m >= 1 << 60:
        raise RuntimeError(f"Storage size calculation overflowed with sizes=[{n}, {m}]")
    rows = aten.unsqueeze.default(aten.arange.start_step(0, n, 1, device=device), 1)
    return (rows == aten.arange.start_step(0, m, 1, device=device)).to(dtype or get_default_dtype())


@composite(f"scalar_tensor(Scalar s, *, {_OPTIONS}) -> Tensor")
def scalar_tensor(s, *, dtype=None, layout=None, device=None, pin_memory=None):
    kind = dtype or get_default_dtype()
    return aten.full.default((), rounded_to_half(s, kind), dtype=kind, device=device)


def as_new(made: Tensor) -> Tensor:
    """Return a new tensor that an operator has filled, whose version does not count that write."""
    made._impl.version.value = 0
    return made


def _define_random(name: str, sampler: str) -> None:
    @composite(f"{name}(SymInt[] size, *, Generator? generator=None, {_OPTIONS}) -> Tensor")
    def sample(size, *, generator=None, dtype=None, layout=None, device=None, pin_memory=None):
        made = aten.empty.memory_format(size, dtype=dtype or get_default_dtype(), device=device)
        return as_new(getattr(aten, sampler).default(made, generator=generator))

    @composite(f"{name}_like(Tensor self, *, {_OPTIONS}, MemoryFormat? memory_format=None) -> Tensor")
    def like(self, *, dtype=None, layout=None, device=None, pin_memory=None, memory_format=None):
        made = aten.empty_like.default(self, dtype=dtype, device=device, memory_format=memory_format)
        return as_new(getattr(aten, sampler).default(made))


_define_random("rand", "uniform_")
_define_random("randn", "normal_")


@composite(f"randint.low(SymInt low, SymInt high, SymInt[] size, *, Generator? generator=None, {_OPTIONS}) -> Tensor")
def randint_low(low, high, size, *, generator=None, dtype=None, layout=None, device=None, pin_memory=None):
    made = aten.empty.memory_format(size, dtype=dtype or int64, device=device)
    return as_new(getattr(aten.random_, "from")(made, low, high, generator=generator))


@composite(f"randint(SymInt high, SymInt[] size, *, Generator? generator=None, {_OPTIONS}) -> Tensor")
def randint(high, size, *, generator=None, dtype=None, layout=None, device=None, pin_memory=None):
    return randint_low(0, high, size, generator=generator, dtype=dtype, device=device)


@composite(f"randint_like(Tensor self, SymInt high, *, {_OPTIONS}, MemoryFormat? memory_format=None) -> Tensor")
def randint_like(self, high, **options):
    return randint_like_low(self, 0, high, **options)


@composite(
    "randint_like.low_dtype(Tensor self, SymInt low, SymInt high, *, "
    f"{_OPTIONS}, MemoryFormat? memory_format=None) -> Tensor"
)
def randint_like_low(self, low, high, *, dtype=None, layout=None, device=None, pin_memory=None, memory_format=None):
    made = aten.empty_like.default(self, dtype=dtype, device=device, memory_format=memory_format)
    return as_new(getattr(aten.random_, "from")(made, low, high))


@composite(
    "to.dtype(Tensor(a) self, ScalarType dtype, bool non_blocking=False, bool copy=False, "
    "MemoryFormat? memory_format=None) -> Tensor(a)"
)
def to_dtype(self, dtype, non_blocking=False, copy=False, memory_format=None):
    return to_layout(self, dtype=dtype, non_blocking=non_blocking, copy=copy, memory_format=memory_format)


@composite(
    "to.dtype_layout(Tensor(a) self, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, "
    "bool? pin_memory=None, bool non_blocking=False, bool copy=False, MemoryFormat? memory_format=None) -> Tensor(a)"
)
def to_layout(
    self, *, dtype=None, layout=None, device=None, pin_memory=None, non_blocking=False, copy=False, memory_format=None
):
    same = (dtype is None or dtype is self.dtype) and (device is None or _is_on(self, device))
    if same and not copy and (memory_format in (None, preserve_format) or _has_format(self, memory_format)):
        return self
    if non_blocking and (self.is_cuda or str(device).startswith("cuda")):
        return aten._to_copy.default(self, dtype=dtype, device=device, non_blocking=True, memory_format=memory_format)
    return aten._to_copy.default(self, dtype=dtype, device=device, memory_format=memory_format)


def _is_on(self, device) -> bool:
    """Return whether a tensor is on a device; "cuda" is the current GPU."""
    place = self._impl.device
    return str(device) == str(place) or (place.type == "cuda" and present_device(device) == place)


def _has_format(self, wanted) -> bool:
    """Return whether the tensor is in this memory format unambiguously: with one channel, strides may match two formats."""
    return self.is_contiguous(wanted) and is_channels_last(self) == (wanted in CHANNELS_LAST_RANKS)


@composite("type_as(Tensor self, Tensor other) -> Tensor")
def type_as(self, other):
    return to_layout(self, dtype=other.dtype, device=other.device)


@composite("zero_(Tensor(a!) self) -> Tensor(a!)")
def zero_(self):
    return aten.fill_.Scalar(self, 0)


@composite("fill_.Tensor(Tensor(a!) self, Tensor value) -> Tensor(a!)")
def fill_tensor(self, value):
    if value.dim():
        raise RuntimeError(f"fill_ only supports 0-dimension value tensor but got tensor with {value.dim()} dimensions.")
    return aten.copy_.default(self, value)


@composite("fill.Scalar(Tensor self, Scalar value) -> Tensor")
def fill(self, value):
    return aten.fill_.Scalar(aten.clone.default(self), value)


@composite("fill.Tensor(Tensor self, Tensor value) -> Tensor")
def fill_with_tensor(self, value):
    return aten.fill_.Tensor(aten.clone.default(self), value)


@composite("_pin_memory(Tensor self, Device? device=None) -> Tensor")
def _pin_memory(self, device=None):
    """Raise RuntimeError: there is no accelerator to lock pages for."""
    raise RuntimeError("Cannot access accelerator device when none is available.")


@composite("_sparse_addmm(Tensor self, Tensor mat1, Tensor mat2, *, Scalar beta=1, Scalar alpha=1) -> Tensor")
def _sparse_addmm(self, mat1, mat2, *, beta=1, alpha=1):
    """Return `addmm` of a sparse matrix and a dense one."""
    return aten.addmm(self, mat1, mat2, beta=beta, alpha=alpha)
