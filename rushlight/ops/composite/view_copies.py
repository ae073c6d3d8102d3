"""Copy and scatter forms of views: `select_copy` returns a view's elements as a new tensor, `select_scatter` a copy of the base
with the view's elements replaced. Functional code uses them instead of views and writes."""

from __future__ import annotations

from rushlight.core.layout import contiguous_format
from rushlight.core.strides import wrap_dim
from rushlight.core.tensor import Tensor
from rushlight.ops.packet import namespaces
from rushlight.ops.registry import composite

aten = namespaces.namespace("aten")

# The schema of each copy; the view is the overload of the same name without `_copy`.
_COPIES = """
alias_copy(Tensor self) -> Tensor
as_strided_copy(Tensor self, SymInt[] size, SymInt[] stride, SymInt? storage_offset=None) -> Tensor
detach_copy(Tensor self) -> Tensor
diagonal_copy(Tensor self, int offset=0, int dim1=0, int dim2=1) -> Tensor
expand_copy(Tensor self, SymInt[] size, *, bool implicit=False) -> Tensor
permute_copy(Tensor self, int[] dims) -> Tensor
select_copy.int(Tensor self, int dim, SymInt index) -> Tensor
slice_copy.Tensor(Tensor self, int dim=0, SymInt? start=None, SymInt? end=None, SymInt step=1) -> Tensor
squeeze_copy(Tensor self) -> Tensor
squeeze_copy.dim(Tensor self, int dim) -> Tensor
squeeze_copy.dims(Tensor self, int[] dim) -> Tensor
t_copy(Tensor self) -> Tensor
transpose_copy.int(Tensor self, int dim0, int dim1) -> Tensor
unfold_copy(Tensor self, int dimension, int size, int step) -> Tensor
unsqueeze_copy(Tensor self, int dim) -> Tensor
view_copy(Tensor self, SymInt[] size) -> Tensor
view_copy.dtype(Tensor self, ScalarType dtype) -> Tensor
split_copy.Tensor(Tensor self, SymInt split_size, int dim=0) -> Tensor[]
split_with_sizes_copy(Tensor self, SymInt[] split_sizes, int dim=0) -> Tensor[]
unbind_copy.int(Tensor self, int dim=0) -> Tensor[]
"""


def _define_copy(schema: str) -> None:
    name, _, overload = schema.partition("(")[0].partition(".")
    view_name = name.removesuffix("_copy")

    @composite(schema)
    def copy(*args, **kwargs):
        made = getattr(getattr(aten, view_name), overload or "default")(*args, **kwargs)
        return tuple(map(_clone_contiguous, made)) if isinstance(made, tuple) else _clone_contiguous(made)


def _clone_contiguous(view: Tensor) -> Tensor:
    return aten.clone.default(view, memory_format=contiguous_format)


for _schema in _COPIES.strip().splitlines():
    _define_copy(_schema)


@composite("narrow_copy(Tensor self, int dim, SymInt start, SymInt length) -> Tensor")
def narrow_copy(self, dim, start, length):
    if self.dim() and dim >= self.dim():
        raise RuntimeError(
            "Expected dim < static_cast<int64_t>(self_sizes.size()) to be true, but got false.  (narrow_copy got dim "
            f"{dim} for a tensor of shape {list(self.shape)})"
        )
    if self.dim() and length < 0:
        wrap_dim(dim, self.dim())
        raise RuntimeError(f"start ({start}) + length ({length}) exceeds dimension size ({self.size(dim)}).")
    return _clone_contiguous(aten.narrow.default(self, dim, start, length))


def _replace_view(self: Tensor, src: Tensor, name: str, view) -> Tensor:
    """Return a copy of `self` in which the elements that `view` selects are replaced by `src`, of the view's shape."""
    made = aten.clone.default(self)
    part = view(made)
    if part.shape != src.shape:
        raise RuntimeError(
            f"{name}: expected src to have a size equal to that of the view, but got src of shape {list(src.shape)} for a "
            f"view of shape {list(part.shape)}"
        )
    aten.copy_.default(part, src)
    return made


@composite("select_scatter(Tensor self, Tensor src, int dim, SymInt index) -> Tensor")
def select_scatter(self, src, dim, index):
    return _replace_view(self, src, "select_scatter", lambda made: aten.select.int(made, dim, index))


@composite(
    "slice_scatter(Tensor self, Tensor src, int dim=0, SymInt? start=None, SymInt? end=None, SymInt step=1) -> Tensor"
)
def slice_scatter(self, src, dim=0, start=None, end=None, step=1):
    return _replace_view(self, src, "slice_scatter", lambda made: aten.slice.Tensor(made, dim, start, end, step))


@composite("diagonal_scatter(Tensor self, Tensor src, int offset=0, int dim1=0, int dim2=1) -> Tensor")
def diagonal_scatter(self, src, offset=0, dim1=0, dim2=1):
    return _replace_view(self, src, "diagonal_scatter", lambda made: aten.diagonal.default(made, offset, dim1, dim2))


@composite(
    "as_strided_scatter(Tensor self, Tensor src, SymInt[] size, SymInt[] stride, SymInt? storage_offset=None) -> Tensor"
)
def as_strided_scatter(self, src, size, stride, storage_offset=None):
    return _replace_view(
        self, src, "as_strided_scatter", lambda made: aten.as_strided.default(made, size, stride, storage_offset)
    )
