"""Composite differences and integrals along a dimension: diff, gradient, trapezoid and its cumulative form."""

from __future__ import annotations

from collections.abc import Sequence

from rushlight.core.dtype import bool_
from rushlight.core.strides import wrap_dim, wrap_dims
from rushlight.core.tensor import Tensor
from rushlight.ops.packet import namespaces
from rushlight.ops.registry import composite

aten = namespaces.namespace("aten")


@composite("diff(Tensor self, int n=1, int dim=-1, Tensor? prepend=None, Tensor? append=None) -> Tensor")
def diff(self, n=1, dim=-1, prepend=None, append=None):
    if not self.dim():
        raise RuntimeError("diff expects input to be at least one-dimensional")
    if n < 0:
        raise RuntimeError(f"order must be non-negative but got {n}")
    axis = wrap_dim(dim, self.dim())
    for extra in (prepend, append):
        _check_extra(self, extra, axis)
    if n == 0:
        return aten.clone.default(self)
    parts = [part for part in (prepend, self, append) if part is not None]
    value = aten.cat.default(parts, axis) if len(parts) > 1 else self
    for _ in range(min(n, value.size(axis))):
        value = _difference(value, axis)
    return value


def _check_extra(self: Tensor, extra: Tensor | None, axis: int) -> None:
    if extra is None:
        return
    if extra.dim() != self.dim():
        raise RuntimeError(
            f"diff expects prepend or append to be the same dimension as input, but got {extra.dim()} and {self.dim()} "
            "dimensions"
        )
    for dim in range(self.dim()):
        if dim != axis and extra.size(dim) != self.size(dim):
            raise RuntimeError(
                "diff expects the shape of tensor to prepend or append to match that of input except along the "
                f"differencing dimension; input.size({dim}) = {self.size(dim)}, but got tensor.size({dim}) = "
                f"{extra.size(dim)}"
            )


def _difference(value: Tensor, axis: int) -> Tensor:
    count = max(value.size(axis) - 1, 0)
    after = aten.narrow.default(value, axis, min(1, value.size(axis)), count)
    before = aten.narrow.default(value, axis, 0, count)
    return aten.logical_xor.default(after, before) if value.dtype is bool_ else after - before


def _spread_along(value: Tensor, axis: int, rank: int) -> Tensor:
    """Return a vector as a tensor of `rank` dimensions that varies along `axis`."""
    return aten.reshape.default(value, [-1 if dim == axis else 1 for dim in range(rank)])


def _gradient_along(self: Tensor, spacing: object, axis: int, edge_order: int) -> Tensor:
    """Compute second-order central differences inside, and one-sided differences of `edge_order` at the ends."""
    size = self.size(axis)
    slopes = _slopes(self, spacing, axis)
    widths = _widths(spacing, size, axis, self.dim())
    inner = _parabolic_inside(*(self.narrow(axis, start, size - 2) for start in range(3)), *widths)
    first, last = slopes.narrow(axis, 0, 1), slopes.narrow(axis, size - 2, 1)
    if edge_order == 2:
        first, last = _parabolic_edge(slopes, widths, axis, True), _parabolic_edge(slopes, widths, axis, False)
    return aten.cat.default([first, inner, last], axis)


def _parabolic_inside(left: Tensor, middle: Tensor, right: Tensor, before: object, after: object) -> Tensor:
    """Return the slope at the middle point of the parabola through three points. With equal widths the middle value cancels."""
    if not isinstance(before, Tensor):
        return (right - left) / (2 * before)
    both = before + after
    return right * (before / (after * both)) - left * (after / (before * both)) + middle * ((after - before) / (before * after))


def _parabolic_edge(slopes: Tensor, widths: tuple, axis: int, at_start: bool) -> Tensor:
    count = slopes.size(axis)
    near, far = (0, 1) if at_start else (count - 1, count - 2)
    own, other = (widths[0], widths[1]) if at_start else (widths[1], widths[0])
    if isinstance(own, Tensor):
        position = 0 if at_start else own.size(axis) - 1
        own, other = own.narrow(axis, position, 1), other.narrow(axis, position, 1)
    near_slope, far_slope = slopes.narrow(axis, near, 1), slopes.narrow(axis, far, 1)
    return near_slope + (near_slope - far_slope) * own / (own + other)


def _slopes(self: Tensor, spacing: object, axis: int) -> Tensor:
    rise = _difference(self, axis)
    if isinstance(spacing, Tensor):
        return rise / _spread_along(_difference(spacing, 0), axis, self.dim())
    return rise / spacing


def _widths(spacing: object, size: int, axis: int, rank: int) -> tuple:
    if not isinstance(spacing, Tensor):
        return spacing, spacing
    widths = _spread_along(_difference(spacing, 0), axis, rank)
    return widths.narrow(axis, 0, size - 2), widths.narrow(axis, 1, size - 2)


def _check_gradient(self: Tensor, spacing: Sequence, dims: Sequence[int], edge_order: int) -> None:
    if edge_order not in (1, 2):
        raise RuntimeError("torch.gradient only supports edge_order=1 and edge_order=2.")
    if len(spacing) != len(dims):
        raise RuntimeError(
            "torch.gradient expected spacing to be unspecified, a scalar or a list of length equal to 'self.dim() = "
            f"{len(dims)}', since dim argument was not given or names that many, but got a list of length {len(spacing)}"
        )
    for step, dim in zip(spacing, dims, strict=True):
        if isinstance(step, Tensor):
            _check_coordinates(self, step, dim)
        if self.size(dim) < edge_order + 1:
            raise RuntimeError("torch.gradient expected each dimension size to be at least edge_order+1")


def _check_coordinates(self: Tensor, coordinates: Tensor, dim: int) -> None:
    if coordinates.dim() != 1:
        raise RuntimeError(
            "torch.gradient expected each element of spacing to have one dimension, but got an element with "
            f"{coordinates.dim()} dimensions!"
        )
    if coordinates.numel() != self.size(dim):
        raise RuntimeError(
            f"torch.gradient expected spacing to hold one coordinate for each position: dimension {dim} has size "
            f"{self.size(dim)}, but got {coordinates.numel()} coordinates"
        )
    if coordinates.device != self.device:
        raise RuntimeError(
            "torch.gradient expected each tensor to be on the same device, but got devices "
            f"{coordinates.device} and {self.device}!"
        )


def _gradients(self: Tensor, spacing: Sequence, dim: Sequence[int] | int | None, edge_order: int) -> tuple[Tensor, ...]:
    dims = range(self.dim()) if dim is None else wrap_dims((dim,) if isinstance(dim, int) else dim, self.dim())
    if self.dtype.name == "uint8" or self.dtype is bool_:
        raise RuntimeError(f"torch.gradient does not support {self.dtype} tensors; convert to a floating dtype")
    _check_gradient(self, spacing, dims, edge_order)
    return tuple(_gradient_along(self, step, axis, edge_order) for step, axis in zip(spacing, dims, strict=True))


def _count(self: Tensor, dim: Sequence[int] | int | None) -> int:
    return self.dim() if dim is None else 1 if isinstance(dim, int) else len(dim)


@composite(
    "gradient.scalarint(Tensor self, *, Scalar? spacing=None, int? dim=None, int edge_order=1) -> Tensor[]",
    "gradient.scalararray(Tensor self, *, Scalar spacing, int[] dim, int edge_order=1) -> Tensor[]",
    "gradient.array(Tensor self, *, int[] dim, int edge_order=1) -> Tensor[]",
)
def gradient_even(self, *, spacing=None, dim=None, edge_order=1):
    return _gradients(self, [1 if spacing is None else spacing] * _count(self, dim), dim, edge_order)


@composite(
    "gradient.scalarrayint(Tensor self, *, Scalar[] spacing, int? dim=None, int edge_order=1) -> Tensor[]",
    "gradient.scalarrayarray(Tensor self, *, Scalar[] spacing, int[] dim, int edge_order=1) -> Tensor[]",
    "gradient.tensorarrayint(Tensor self, *, Tensor[] spacing, int? dim=None, int edge_order=1) -> Tensor[]",
    "gradient.tensorarray(Tensor self, *, Tensor[] spacing, int[] dim, int edge_order=1) -> Tensor[]",
)
def gradient_spaced(self, *, spacing, dim=None, edge_order=1):
    return _gradients(self, spacing, dim, edge_order)


def _heights(y: Tensor, axis: int) -> Tensor:
    """Return twice the mean height of the trapezoid over each interval."""
    count = max(y.size(axis) - 1, 0)
    right = aten.narrow.default(y, axis, min(1, y.size(axis)), count)
    return aten.narrow.default(y, axis, 0, count) + right


def _widths_of(y: Tensor, x: Tensor, dim: int, name: str) -> tuple[int, Tensor]:
    """Return the wrapped dimension of `y`, and the widths between the coordinates `x` along it, shaped to multiply the areas.
    If `x` has more dimensions than `y`, the same index from the front is used, as in ATen."""
    axis = wrap_dim(dim, y.dim())
    if y.dtype is bool_ or x.dtype is bool_:
        raise RuntimeError(f"{name}: received a bool input for `x` or `y`, but bool is not supported")
    if x.dim() == 1:
        if x.size(0) != y.size(axis):
            raise RuntimeError(
                f"{name}: There must be one `x` value for each sample point, but got {x.size(0)} values and "
                f"{y.size(axis)} points"
            )
        return axis, _spread_along(_difference(x, 0), axis, y.dim())
    missing = y.dim() - x.dim()
    shaped = aten.reshape.default(x, (*(1,) * missing, *x.shape)) if missing > 0 else x
    return axis, _difference(shaped, axis)


def _real(name: str, dx: float) -> float:
    if isinstance(dx, complex):
        raise RuntimeError(f"{name}: Currently, we only support dx as a real number.")
    return dx


@composite(
    "trapezoid.x(Tensor y, Tensor x, *, int dim=-1) -> Tensor",
    "trapz.x(Tensor y, Tensor x, *, int dim=-1) -> Tensor",
)
def trapezoid_x(y, x, *, dim=-1):
    axis = wrap_dim(dim, y.dim())
    if y.dim() and not y.size(axis):
        return aten.zeros.default((*y.shape[:axis], *y.shape[axis + 1 :]), dtype=y.dtype, device=y.device)
    axis, widths = _widths_of(y, x, dim, "trapezoid")
    areas = _heights(y, axis) * widths
    return aten.sum.dim_IntList(areas, (axis,)) / 2.0


@composite(
    "trapezoid.dx(Tensor y, *, Scalar dx=1, int dim=-1) -> Tensor", "trapz.dx(Tensor y, *, float dx=1., int dim=-1) -> Tensor"
)
def trapezoid(y, *, dx=1, dim=-1):
    axis = wrap_dim(dim, y.dim())
    if y.dim() and not y.size(axis):
        return aten.zeros.default((*y.shape[:axis], *y.shape[axis + 1 :]), dtype=y.dtype, device=y.device)
    if y.dtype is bool_ or isinstance(dx, bool):
        raise RuntimeError("trapezoid: received a bool input for `y` or `dx`, but bool is not supported")
    if not y.dim():
        raise IndexError("trapezoid: expected `y` to have at least one dimension")
    ends = aten.select.int(y, axis, 0) + aten.select.int(y, axis, -1)
    return (aten.sum.dim_IntList(y, (axis,)) - ends * 0.5) * _real("trapezoid", dx)


@composite("cumulative_trapezoid.x(Tensor y, Tensor x, *, int dim=-1) -> Tensor")
def cumulative_trapezoid_x(y, x, *, dim=-1):
    axis, widths = _widths_of(y, x, dim, "cumulative_trapezoid")
    return aten.cumsum.default(_heights(y, axis) * widths, axis) / 2.0


@composite("cumulative_trapezoid.dx(Tensor y, *, Scalar dx=1, int dim=-1) -> Tensor")
def cumulative_trapezoid(y, *, dx=1, dim=-1):
    if y.dtype is bool_ or isinstance(dx, bool):
        raise RuntimeError("cumulative_trapezoid: received a bool input for `y` or `dx`, but bool is not supported")
    axis = wrap_dim(dim, y.dim())
    return aten.cumsum.default(_heights(y, axis) * (_real("cumulative_trapezoid", dx) / 2.0), axis)
