"""Composite Fourier transforms under torch's names: they prepare sizes, dtypes and normalization for three primitives."""

from __future__ import annotations

from collections.abc import Sequence

from rushlight.core.dtype import complex64, complex128, dtype, float32, float64, get_default_dtype
from rushlight.core.strides import wrap_dim
from rushlight.core.tensor import Tensor
from rushlight.ops.packet import namespaces
from rushlight.ops.registry import composite

aten = namespaces.namespace("aten")
_ONE = "(Tensor self, SymInt? n=None, int dim=-1, str? norm=None) -> Tensor"
_TWO = "(Tensor self, SymInt[1]? s=None, int[1] dim=[-2, -1], str? norm=None) -> Tensor"
_MANY = "(Tensor self, SymInt[1]? s=None, int[1]? dim=None, str? norm=None) -> Tensor"
_OPTIONS = "ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None"
NONE, BY_ROOT, BY_NUMBER = range(3)


def _normalization(norm: str | None, forward: bool) -> int:
    if norm in (None, "backward"):
        return NONE if forward else BY_NUMBER
    if norm == "forward":
        return BY_NUMBER if forward else NONE
    if norm == "ortho":
        return BY_ROOT
    raise RuntimeError(f'Invalid normalization mode: "{norm}"; expected "forward", "backward" or "ortho"')


def _promote_to_fft_dtype(self: Tensor, to_complex: bool) -> Tensor:
    kind = get_default_dtype() if self.dtype.is_integral else self.dtype
    if kind not in (float32, float64, complex64, complex128):
        raise RuntimeError(f"Unsupported dtype {kind.scalar_name}; Fourier transforms take float, double and complex tensors")
    return self.to(kind.to_complex() if to_complex else kind)


def _check_points(count: int) -> int:
    if count < 1:
        raise RuntimeError(f"Invalid number of data points ({count}) specified")
    return count


def _crop_or_pad(self: Tensor, dims: Sequence[int], sizes: Sequence[int]) -> Tensor:
    """Truncate the input, or pad it with zeros, at the end of each of `dims`."""
    for dim, size in zip(dims, sizes, strict=True):
        have = self.size(dim)
        if have > size:
            self = aten.narrow.default(self, dim, 0, size)
        elif have < size:
            self = aten.constant_pad_nd.default(self, [0, 0] * (self.dim() - 1 - dim) + [0, size - have], 0)
    return self


def _require_real(self: Tensor, name: str) -> None:
    if self.dtype.is_complex:
        raise RuntimeError(f"{name} expects a real input tensor, but got {self.dtype.scalar_name}")


def _wrap_axis(self: Tensor, dim: int, name: str) -> int:
    if not self.dim():
        raise IndexError(f"Dimension specified as {dim} but tensor has no dimensions ({name})")
    return wrap_dim(dim, self.dim())


# One dimension


def _transform_complex(self: Tensor, n: int | None, dim: int, norm: str | None, forward: bool, name: str) -> Tensor:
    axis = _wrap_axis(self, dim, name)
    size = _check_points(self.size(axis) if n is None else n)
    resized = _crop_or_pad(_promote_to_fft_dtype(self, True), [axis], [size])
    return aten._fft_c2c.default(resized, [axis], _normalization(norm, forward), forward)


def _transform_real(
    self: Tensor, n: int | None, dim: int, norm: str | None, forward: bool, onesided: bool, name: str
) -> Tensor:
    _require_real(self, name)
    source, axis = _promote_to_fft_dtype(self, False), _wrap_axis(self, dim, name)
    size = _check_points(self.size(axis) if n is None else n)
    result = aten._fft_r2c.default(_crop_or_pad(source, [axis], [size]), [axis], _normalization(norm, forward), onesided)
    return result if forward else aten.conj_physical.default(result)


def _transform_to_real(self: Tensor, n: int | None, dim: int, norm: str | None, forward: bool, name: str) -> Tensor:
    source, axis = _promote_to_fft_dtype(self, True), _wrap_axis(self, dim, name)
    size = _check_points(2 * (self.size(axis) - 1) if n is None else n)
    if n is not None:
        source = _crop_or_pad(source, [axis], [size // 2 + 1])
    source = aten.conj.default(source) if forward else source
    return aten._fft_c2r.default(source, [axis], _normalization(norm, forward), size)


@composite(f"fft_fft{_ONE}")
def fft(self, n=None, dim=-1, norm=None):
    if self.dtype.is_complex:
        return _transform_complex(self, n, dim, norm, True, "fft")
    return _transform_real(self, n, dim, norm, True, False, "fft")


@composite(f"fft_ifft{_ONE}")
def ifft(self, n=None, dim=-1, norm=None):
    if self.dtype.is_complex:
        return _transform_complex(self, n, dim, norm, False, "ifft")
    return _transform_real(self, n, dim, norm, False, False, "ifft")


@composite(f"fft_rfft{_ONE}")
def rfft(self, n=None, dim=-1, norm=None):
    return _transform_real(self, n, dim, norm, True, True, "rfft")


@composite(f"fft_irfft{_ONE}")
def irfft(self, n=None, dim=-1, norm=None):
    return _transform_to_real(self, n, dim, norm, False, "irfft")


@composite(f"fft_hfft{_ONE}")
def hfft(self, n=None, dim=-1, norm=None):
    return _transform_to_real(self, n, dim, norm, True, "hfft")


@composite(f"fft_ihfft{_ONE}")
def ihfft(self, n=None, dim=-1, norm=None):
    return _transform_real(self, n, dim, norm, False, True, "ihfft")


# Several dimensions


def _sizes_and_dims(self: Tensor, s: Sequence[int] | None, dim: Sequence[int] | None) -> tuple[list[int], list[int]]:
    """Return the sizes and the wrapped dimensions to transform; RuntimeError where they do not fit the tensor or each other."""
    s, dim = ([value] if isinstance(value, int) else value for value in (s, dim))
    rank = self.dim()
    dims = None if dim is None else [_wrap_axis(self, axis, "fft") for axis in dim]
    if dims is not None and len(set(dims)) < len(dims):
        raise RuntimeError(f"FFT dims must be unique, but got {list(dim)}")
    if s is None:
        dims = list(range(rank)) if dims is None else dims
        sizes = [self.size(axis) for axis in dims]
    else:
        if dims is not None and len(dims) != len(s):
            raise RuntimeError(
                f"When given, dim and shape arguments must have the same length, but got {len(dims)} and {len(s)}"
            )
        if len(s) > rank:
            raise RuntimeError(f"Got shape with {len(s)} values but input tensor only has {rank} dimensions.")
        dims = list(range(rank - len(s), rank)) if dims is None else dims
        sizes = [self.size(axis) if size == -1 else size for axis, size in zip(dims, s, strict=True)]
    for size in sizes:
        _check_points(size)
    return sizes, dims


def _sizes_for_real(self: Tensor, s: object, dim: object, name: str) -> tuple[list[int], list[int], int]:
    """Do the same as `_sizes_and_dims`, but with the size of the half spectrum as the last size; also return the number of
    points from which that size was computed."""
    sizes, dims = _sizes_and_dims(self, s, dim)
    _require_axes(dims, name)
    last = s if isinstance(s, int) else None if s is None else s[-1]
    points = 2 * (self.size(dims[-1]) - 1) if last in (None, -1) else sizes[-1]
    return [*sizes[:-1], _check_points(points) // 2 + 1], dims, points


def _require_axes(dims: list[int], name: str) -> None:
    if not dims:
        raise RuntimeError(f"{name} must transform at least one axis")


def _transform_many(self: Tensor, s: object, dim: object, norm: str | None, forward: bool) -> Tensor:
    sizes, dims = _sizes_and_dims(self, s, dim)
    source = _crop_or_pad(_promote_to_fft_dtype(self, True), dims, sizes)
    return aten._fft_c2c.default(source, dims, _normalization(norm, forward), forward)


def _compute_rfftn(self: Tensor, s: object, dim: object, norm: str | None) -> Tensor:
    if self.dtype.is_complex:
        raise RuntimeError(f"rfftn expects a real-valued input tensor, but got {self.dtype.scalar_name}")
    sizes, dims = _sizes_and_dims(self, s, dim)
    _require_axes(dims, "rfftn")
    resized = _crop_or_pad(_promote_to_fft_dtype(self, False), dims, sizes)
    return aten._fft_r2c.default(resized, dims, _normalization(norm, True), True)


def _compute_irfftn(self: Tensor, s: object, dim: object, norm: str | None) -> Tensor:
    sizes, dims, points = _sizes_for_real(self, s, dim, "irfftn")
    source = _crop_or_pad(_promote_to_fft_dtype(self, True), dims, sizes)
    return aten._fft_c2r.default(source, dims, _normalization(norm, False), points)


def _compute_hfftn(self: Tensor, s: object, dim: object, norm: str | None) -> Tensor:
    sizes, dims, points = _sizes_for_real(self, s, dim, "hfftn")
    source, scale = _crop_or_pad(_promote_to_fft_dtype(self, True), dims, sizes), _normalization(norm, True)
    if len(dims) > 1:
        source = aten._fft_c2c.default(source, dims[:-1], scale, True)
    return aten._fft_c2r.default(aten.conj.default(source), dims[-1:], scale, points)


def _compute_ihfftn(self: Tensor, s: object, dim: object, norm: str | None) -> Tensor:
    if self.dtype.is_complex:
        raise RuntimeError(f"ihfftn expects a real-valued input tensor, but got {self.dtype.scalar_name}")
    sizes, dims = _sizes_and_dims(self, s, dim)
    _require_axes(dims, "ihfftn")
    source, scale = _crop_or_pad(_promote_to_fft_dtype(self, False), dims, sizes), _normalization(norm, False)
    half = aten.conj_physical.default(aten._fft_r2c.default(source, dims[-1:], scale, True))
    return aten._fft_c2c.default(half, dims[:-1], scale, False) if len(dims) > 1 else half


def _define_many(name: str, function, *options) -> None:
    @composite(f"fft_{name}n{_MANY}")
    def many(self, s=None, dim=None, norm=None):
        return function(self, s, dim, norm, *options)

    @composite(f"fft_{name}2{_TWO}")
    def two(self, s=None, dim=(-2, -1), norm=None):
        return function(self, s, dim, norm, *options)


_define_many("fft", _transform_many, True)
_define_many("ifft", _transform_many, False)
_define_many("rfft", _compute_rfftn)
_define_many("irfft", _compute_irfftn)
_define_many("hfft", _compute_hfftn)
_define_many("ihfft", _compute_ihfftn)


# Frequencies


def _check_inexact(name: str, kind: dtype | None) -> None:
    if kind is not None and kind.is_integral:
        raise RuntimeError(f"{name} requires a floating point or complex dtype")


@composite(f"fft_fftfreq(int n, float d=1.0, *, {_OPTIONS}) -> Tensor")
def fftfreq(n, d=1.0, *, dtype=None, layout=None, device=None, pin_memory=None):
    _check_inexact("fftfreq", dtype)
    position = aten.arange.start_step(0, n, 1, dtype=dtype or get_default_dtype(), device=device)
    signed = aten.where.self(position < (n + 1) // 2, position, position - n)
    return signed / (n * d)


@composite(f"fft_rfftfreq(int n, float d=1.0, *, {_OPTIONS}) -> Tensor")
def rfftfreq(n, d=1.0, *, dtype=None, layout=None, device=None, pin_memory=None):
    _check_inexact("rfftfreq", dtype)
    position = aten.arange.start_step(0, n // 2 + 1, 1, dtype=dtype or get_default_dtype(), device=device)
    return position / (n * d)


def _roll_by_half(self: Tensor, dim: Sequence[int] | int | None, extra: int) -> Tensor:
    dims = list(range(self.dim())) if dim is None else [dim] if isinstance(dim, int) else list(dim)
    return aten.roll.default(self, [(self.size(axis) + extra) // 2 for axis in dims], dims) if dims else self


@composite("fft_fftshift(Tensor self, int[1]? dim=None) -> Tensor")
def fftshift(self, dim=None):
    return _roll_by_half(self, dim, 0)


@composite("fft_ifftshift(Tensor self, int[1]? dim=None) -> Tensor")
def ifftshift(self, dim=None):
    return _roll_by_half(self, dim, 1)
