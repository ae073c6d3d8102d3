"""Views between complex numbers and pairs of real ones, for every backend; they share storage and version."""

from __future__ import annotations

from rushlight.core.dtype import dtype, float16, float32, float64
from rushlight.core.tensor import Tensor, wrap
from rushlight.ops.lazy_views import CONJUGATE, lazy_bits
from rushlight.ops.registry import explicit


def _view_with_dtype(self: Tensor, kind: dtype, sizes: tuple, strides: tuple, offset: int) -> Tensor:
    made = self._impl.alias(sizes, strides, offset)
    made.dtype = kind
    return wrap(made)


@explicit("view_as_real")
def view_as_real(self):
    impl = self._impl
    if not impl.dtype.is_complex:
        raise RuntimeError(f"view_as_real is only supported for complex tensors, but got a tensor of {impl.dtype}")
    if lazy_bits(self) & CONJUGATE:
        raise RuntimeError(
            "view_as_real doesn't work on unresolved conjugated tensors.  To resolve the conjugate tensor so you can view it "
            "as real, use self.resolve_conj(); however, be warned that the resulting tensor will NOT alias the original."
        )
    strides = (*(2 * stride for stride in impl.strides), 1)
    return _view_with_dtype(self, impl.dtype.to_real(), (*impl.sizes, 2), strides, 2 * impl.storage_offset)


@explicit("view_as_complex")
def view_as_complex(self):
    impl = self._impl
    if impl.dtype not in (float16, float32, float64):
        raise RuntimeError(
            "view_as_complex is only supported for half, float and double tensors, but got a tensor of scalar type: "
            f"{impl.dtype.scalar_name}"
        )
    if not impl.sizes:
        raise RuntimeError("Input tensor must have one or more dimensions")
    if impl.sizes[-1] != 2:
        raise RuntimeError("Tensor must have a last dimension of size 2")
    if impl.strides[-1] != 1:
        raise RuntimeError("Tensor must have a last dimension with stride 1")
    if any(stride % 2 for stride in impl.strides[:-1]):
        raise RuntimeError("Tensor must have a stride divisible by 2 for all but last dimension")
    if impl.storage_offset % 2:
        raise RuntimeError("Tensor must have a storage_offset divisible by 2")
    strides = tuple(stride // 2 for stride in impl.strides[:-1])
    return _view_with_dtype(self, impl.dtype.to_complex(), impl.sizes[:-1], strides, impl.storage_offset // 2)
