"""Tensor: the handle users hold. It forwards to its TensorImpl; operators are attached to it by `rushlight.ops.bindings`."""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence

import numpy as np

import rushlight._C as _C
from rushlight.core.device import CPU, device
from rushlight.core.dispatch_key import CPU_KEYS, CUDA_KEYS, LAZY_BITS
from rushlight.core.dtype import (
    BITS,
    NARROW_TYPES,
    complex32,
    complex64,
    dtype,
    float4_e2m1fn_x2,
    float32,
    from_numpy_dtype,
    get_default_dtype,
)
from rushlight.core.layout import (
    CHANNELS_LAST_RANKS,
    contiguous_format,
    layout,
    memory_format,
    preserve_format,
    strided,
)
from rushlight.core.lazy_module import LazyModule
from rushlight.core.printing import format_meta, format_tensor
from rushlight.core.size import Size
from rushlight.core.storage import StorageImpl, UntypedStorage
from rushlight.core.strides import (
    is_non_overlapping_and_dense,
    lies_channels_last,
    storage_extent,
    wrap_dim,
)
from rushlight.core.tensor_impl import AutogradMeta, TensorImpl, empty_impl, impl_from_array, in_current_mode
from rushlight.core.thread_state import state
from rushlight.core.typed_storage import LEGACY_STORAGES, TypedStorage

interchange = LazyModule("rushlight.cuda.interchange")
NON_LEAF_GRAD = (
    "The .grad attribute of a Tensor that is not a leaf Tensor is being accessed. Its .grad attribute won't be populated "
    "during autograd.backward(). If you indeed want the .grad field to be populated for a non-leaf Tensor, use "
    ".retain_grad() on the non-leaf Tensor. If you access the non-leaf Tensor by mistake, make sure you access the leaf "
    "Tensor instead."
)


def _entry_of_dim(values: tuple[int, ...], dim: int) -> int:
    if not values:
        raise IndexError(f"Dimension specified as {dim} but tensor has no dimensions")
    return values[wrap_dim(dim, len(values))]


class Tensor(_C.TensorBase):
    """A multi-dimensional, strided view of a storage.

    `Tensor(2, 3)` gives an uninitialised tensor and `Tensor([1, 2])` one of those values, both of the default dtype;
    prefer `empty` and `tensor`.
    """

    __slots__ = ()

    def __new__(cls, *args, **kwargs):
        if kwargs and cls is Tensor:
            _check_keywords(args, kwargs)
        made = object.__new__(cls)
        if len(args) == 1 and isinstance(args[0], Tensor):
            made._impl = args[0]._impl
        elif len(args) == 1 and isinstance(args[0], Size):
            made._impl = empty_impl(tuple(args[0]), get_default_dtype())
        elif len(args) == 1 and isinstance(args[0], list | tuple | np.ndarray):
            made._impl = impl_from_array(np.array(args[0], get_default_dtype().numpy), get_default_dtype())
        elif len(args) == 1 and isinstance(args[0], UntypedStorage | TypedStorage):
            made._impl = _over_storage(args[0].untyped(), get_default_dtype())
        elif all(isinstance(size, int) for size in args):
            made._impl = empty_impl(args or (0,), get_default_dtype())
        else:
            given = ", ".join(type(argument).__name__ for argument in args)
            raise TypeError(f"Tensor() takes sizes, or one sequence of values, but got ({given})")
        return made

    def __delitem__(self, index: object) -> None:
        raise TypeError("Tensor does not support deleting items")

    # Geometry

    @property
    def shape(self) -> Size:
        """Return the sizes."""
        return tuple.__new__(Size, self._impl.sizes)  # they are integers

    def size(self, dim: int | None = None) -> Size | int:
        """Return all sizes, or the size of `dim`; IndexError when there is no such dimension."""
        sizes = self._impl.sizes
        return Size(sizes) if dim is None else _entry_of_dim(sizes, dim)

    def stride(self, dim: int | None = None) -> tuple[int, ...] | int:
        """Return the strides in elements, or that of `dim`."""
        strides = self._impl.strides
        return strides if dim is None else _entry_of_dim(strides, dim)

    def storage_offset(self) -> int:
        """Return the offset of the first element in the storage, in elements."""
        return self._impl.storage_offset

    @property
    def ndim(self) -> int:
        """Return the number of dimensions."""
        return len(self._impl.sizes)

    def dim(self) -> int:
        """Return the number of dimensions."""
        return len(self._impl.sizes)

    ndimension = dim

    def numel(self) -> int:
        """Return the number of elements."""
        return self._impl.numel

    nelement = numel

    def element_size(self) -> int:
        """Return the bytes of an element."""
        return self._impl.dtype.itemsize

    @property
    def itemsize(self) -> int:
        """Return the bytes of an element."""
        return self._impl.dtype.itemsize

    @property
    def nbytes(self) -> int:
        """Return the bytes of all elements."""
        return self._impl.numel * self._impl.dtype.itemsize

    def is_contiguous(self, memory_format: memory_format = contiguous_format) -> bool:
        """Return whether the elements lie without gaps in the order of `memory_format`."""
        impl = self._impl
        if memory_format is contiguous_format:
            return impl.is_contiguous()
        if memory_format is preserve_format:
            raise RuntimeError("is_contiguous() of preserve_format: expected a format that orders the dimensions")
        rank = len(impl.sizes)
        return rank == CHANNELS_LAST_RANKS[memory_format] and lies_channels_last(impl.sizes, impl.strides)

    def is_non_overlapping_and_dense(self) -> bool:
        """Return whether some order of the dimensions is contiguous."""
        return is_non_overlapping_and_dense(self._impl.sizes, self._impl.strides)

    # Kind

    @property
    def dtype(self) -> dtype:
        """Return the element type."""
        return self._impl.dtype

    @property
    def device(self) -> device:
        """Return the device of the elements."""
        return self._impl.device

    @property
    def layout(self) -> layout:
        """Return `strided`."""
        return strided

    @property
    def is_cpu(self) -> bool:
        """Return whether the device is the CPU."""
        return self._impl.device.type == "cpu"

    @property
    def is_meta(self) -> bool:
        """Return whether the device is `meta`."""
        return self._impl.device.type == "meta"

    @property
    def is_cuda(self) -> bool:
        """Return whether the device is a GPU."""
        return self._impl.device.type == "cuda"

    is_sparse = False
    is_quantized = False
    is_nested = False

    def is_floating_point(self) -> bool:
        """Return whether the dtype is a floating one."""
        return self._impl.dtype.is_floating_point

    def is_complex(self) -> bool:
        """Return whether the dtype is complex."""
        return self._impl.dtype.is_complex

    def is_signed(self) -> bool:
        """Return whether the dtype holds negative numbers."""
        return self._impl.dtype.is_signed

    def is_inference(self) -> bool:
        """Return whether the tensor was made in inference mode."""
        return self._impl.inference

    def get_device(self) -> int:
        """Return the device index; -1 on the CPU."""
        return -1 if self._impl.device.index is None else self._impl.device.index

    # Memory

    def data_ptr(self) -> int:
        """Return the address of the first element; 0 where there is none."""
        return self._impl.data_ptr if self.numel() else 0

    def untyped_storage(self) -> UntypedStorage:
        """Return the storage, as bytes."""
        return UntypedStorage(self._impl.storage)

    def storage_type(self) -> type:
        """Return the class of `storage()` by its dtype: `torch.FloatStorage`."""
        return LEGACY_STORAGES[f"{self._impl.dtype.scalar_name}Storage"]

    def storage(self) -> TypedStorage:
        """Return the storage, as elements of this dtype."""
        return TypedStorage(self.untyped_storage(), self._impl.dtype)

    def share_memory_(self) -> Tensor:
        """Move the elements to memory that forked child processes see; all tensors over this storage move."""
        self.untyped_storage().share_memory_()
        return self

    def is_shared(self) -> bool:
        """Return whether child processes see writes to this memory."""
        return self.untyped_storage().is_shared()

    def is_set_to(self, other: Tensor) -> bool:
        """Return whether `other` views the same elements of the same storage in the same way."""
        a, b = self._impl, other._impl
        return a.storage is b.storage and (a.sizes, a.strides, a.storage_offset) == (b.sizes, b.strides, b.storage_offset)

    @property
    def _version(self) -> int:
        if self._impl.inference:
            raise RuntimeError("Inference tensors do not track version counter.")
        return self._impl.version.value

    # Data out

    def numpy(self, *, force: bool = False) -> np.ndarray:
        """Return the elements as a NumPy array over the same memory.

        Raises RuntimeError for a tensor that requires grad where autograd records, and for a lazy conjugate or negative view,
        unless `force`, which detaches and materialises it.
        """
        if self.requires_grad and state.grad_enabled and not force:
            raise RuntimeError(
                "Can't call numpy() on Tensor that requires grad. Use tensor.detach().numpy() instead."
            )
        if self._impl.device.type == "meta" and not self._impl.fake:
            raise TypeError(
                "can't convert meta device type tensor to numpy. Use Tensor.cpu() to copy the tensor to host memory first."
            )
        if self._impl.device.type == "cuda":
            return self._on_host().numpy(force=True) if force else self._impl.array
        if self._impl.dtype.category == BITS or self._impl.dtype in (complex32, float4_e2m1fn_x2):
            raise TypeError(f"Got unsupported ScalarType {self._impl.dtype.scalar_name}")
        if self._impl.key_set & LAZY_BITS:
            if force:
                return _materialise_lazy(self)._impl.array
            kind, method = ("conjugate", "conj") if self.is_conj() else ("negative", "neg")
            raise RuntimeError(
                f"Can't call numpy() on Tensor that has {kind} bit set. Use tensor.resolve_{method}().numpy() instead."
            )
        return self._impl.array[...]

    def __array__(self, dtype=None, copy=None) -> np.ndarray:
        array = self.numpy()
        if dtype is not None and np.dtype(dtype) != array.dtype:
            return array.astype(dtype)
        return array.copy() if copy else array

    __array_priority__ = 1000

    def tolist(self) -> list | int | float | bool | complex:
        """Return the elements as nested lists of Python numbers; a number for a 0-dim tensor."""
        if self._impl.device.type == "meta" and not self._impl.fake:
            raise NotImplementedError("Cannot copy out of meta tensor; no data!")
        if self._impl.dtype in NARROW_TYPES:
            return self.to(complex64 if self._impl.dtype.is_complex else float32).tolist()
        return _materialise_lazy(self._on_host())._impl.array.tolist()

    def _on_host(self) -> Tensor:
        """Return this tensor, or its copy in host memory, without history."""
        return self if self._impl.device.type != "cuda" else self.detach().to("cpu")

    def __dlpack_device__(self) -> tuple[int, int]:
        return (2, self._impl.device.index) if self.is_cuda else (1, 0)

    @property
    def __cuda_array_interface__(self) -> dict:
        return interchange.array_interface(self)

    def __dlpack__(self, **kwargs):
        if self._impl.device.type == "meta":
            raise BufferError("Cannot pack tensors on meta")
        if self.requires_grad and state.grad_enabled:
            raise BufferError("Can't export tensors that require gradient, use tensor.detach()")
        if self.is_conj():
            raise BufferError("Can't export tensors with the conjugate bit set")
        if self.is_neg():
            raise BufferError("Can't export tensors with the negative bit set")
        if self.is_cuda:
            return interchange.to_capsule(self, kwargs.get("stream"))
        return self.numpy().__dlpack__(**kwargs)

    def __len__(self) -> int:
        if not self._impl.sizes:
            raise TypeError("len() of a 0-d tensor")
        return self._impl.sizes[0]

    def __repr__(self, *, tensor_contents=None) -> str:
        impl = self._impl
        try:
            grad_fn_name = None if self.grad_fn is None else self.grad_fn.name()
        except RuntimeError:  # a view made in no_grad mode, whose base was modified in place since
            grad_fn_name = "Invalid"
        facts = {
            "requires_grad": self.requires_grad,
            "grad_fn_name": grad_fn_name,
            "default_dtype": get_default_dtype(),
        }
        prefix = "Parameter containing:\n" if type(self).__name__ == "Parameter" else ""
        if impl.fake:
            return f"{prefix}FakeTensor(..., size={impl.sizes}, dtype={impl.dtype})"
        if impl.storage.buffer is None:
            return prefix + format_meta(impl.sizes, impl.dtype, **facts)
        if impl.device.type == "cuda":
            facts["device"] = impl.device
        given = self._on_host() if impl.dtype is not complex32 else self._on_host().detach().to(complex64)
        return prefix + format_tensor(_materialise_lazy(given)._impl.array, impl.dtype, **facts)

    def __format__(self, spec: str) -> str:
        if self.dim() == 0 and not self.is_meta and type(self) is Tensor:
            return self.item().__format__(spec)
        return object.__format__(self, spec)

    # Autograd state

    @property
    def requires_grad(self) -> bool:
        """Return whether autograd records operations on this tensor."""
        return self._impl.requires_grad

    @requires_grad.setter
    def requires_grad(self, value: bool) -> None:
        self.requires_grad_(value)

    def requires_grad_(self, requires_grad: bool = True) -> Tensor:
        """Turn recording on or off for a leaf; RuntimeError for integers and, when turning off, for non-leaves."""
        impl = self._impl
        if impl.autograd is not None and impl.autograd.grad_fn is not None:
            if not requires_grad:
                raise RuntimeError(
                    "you can only change requires_grad flags of leaf variables. If you want to use a computed variable "
                    "in a subgraph that doesn't require differentiation use var_no_grad = var.detach()."
                )
            return self
        if requires_grad and not (impl.dtype.is_floating_point or impl.dtype.is_complex):
            raise RuntimeError("only Tensors of floating point dtype can require gradients")
        if requires_grad and impl.inference and not state.inference:
            raise RuntimeError("Setting requires_grad=True on inference tensor outside InferenceMode is not allowed.")
        self._autograd_meta().requires_grad = requires_grad
        return self

    def _autograd_meta(self) -> AutogradMeta:
        impl = self._impl
        if impl.autograd is None:
            impl.autograd = AutogradMeta()
        return impl.autograd

    @property
    def grad(self) -> Tensor | None:
        """Return the gradient that `backward` accumulated, or None."""
        meta = self._impl.autograd
        if meta is None:
            return None
        if meta.grad is None and meta.grad_fn is not None and not meta.retains_grad:
            warnings.warn(NON_LEAF_GRAD, UserWarning, stacklevel=2)
        return meta.grad

    @grad.setter
    def grad(self, value: Tensor | None) -> None:
        if value is not None:
            if value is self:
                raise RuntimeError("can't assign Variable as its own grad")
            if not isinstance(value, Tensor):
                raise TypeError(f"assigned grad expected to be a Tensor or None but got grad of type {type(value).__name__}")
            if value._impl.sizes != self._impl.sizes:
                raise RuntimeError(
                    f"attempting to assign a gradient of size '{list(value.shape)}' to a tensor of size '{list(self.shape)}'. "
                    "Please ensure that the gradient and the tensor are the same size"
                )
            if value._impl.dtype is not self._impl.dtype:
                raise RuntimeError(
                    f"attempting to assign a gradient with dtype '{value.dtype}' to a tensor with dtype '{self.dtype}'. Please "
                    "ensure that the gradient and the tensor have the same dtype"
                )
            if value.device.type != self.device.type:
                raise RuntimeError(
                    f"attempting to assign a gradient with device type '{value.device.type}' to a tensor with device type "
                    f"'{self.device.type}'. Please ensure that the gradient and the tensor are on the same device"
                )
        self._autograd_meta().grad = value

    @grad.deleter
    def grad(self) -> None:
        self.grad = None

    _grad = grad  # PyTorch's second name

    @property
    def output_nr(self) -> int:
        """Return the index of this tensor among the outputs of its grad_fn."""
        meta = self._impl.autograd
        return 0 if meta is None else meta.output_nr

    @property
    def retains_grad(self) -> bool:
        """Return whether a non-leaf keeps its gradient."""
        meta = self._impl.autograd
        return meta is not None and meta.retains_grad

    def _is_view(self) -> bool:
        return self._impl.view is not None

    @property
    def _base(self) -> Tensor | None:
        view = self._impl.view
        return None if view is None else view.base

    @property
    def data(self) -> Tensor:
        """Return the same memory without autograd history and with a version counter of its own."""
        impl = self._impl
        alias = impl.alias(impl.sizes, impl.strides, impl.storage_offset)
        alias.version = type(impl.version)()
        alias.version.separate = True
        return wrap(alias)

    @data.setter
    def data(self, value: Tensor) -> None:
        if not isinstance(value, Tensor):
            raise TypeError(f"Variable data has to be a tensor, but got {type(value).__name__}")
        impl, new = self._impl, value._impl
        if value.layout is not self.layout:
            raise RuntimeError(
                f"Attempted to call `variable.set_data(tensor)`, but `variable` and `tensor` have incompatible tensor type: "
                f"{self.layout} and {value.layout}."
            )
        if self.requires_grad and not (new.dtype.is_floating_point or new.dtype.is_complex):
            raise RuntimeError("data set to a tensor that requires gradients must be floating point or complex dtype")
        if impl.autograd is not None and (impl.dtype is not new.dtype or impl.sizes != new.sizes):
            # Make a new AccumulateGrad node: the old one makes gradients of the old data's shape.
            impl.autograd.accumulator = None
        impl.replace_geometry(new.storage, new.sizes, new.strides, new.storage_offset)
        impl.version.separate = new.version.separate = True
        impl.dtype, impl.device, impl.key_set = new.dtype, new.device, new.key_set


def _check_keywords(args: tuple, kwargs: dict) -> None:
    """Raise TypeError for keywords that `Tensor(...)` does not take: it only makes CPU tensors of the default dtype."""
    unknown = [name for name in kwargs if name != "device"]
    if unknown:
        given = ", ".join([*(type(value).__name__ for value in args), *(f"{name}=..." for name in unknown)])
        raise TypeError(
            f"new() received an invalid combination of arguments - got ({given}), but expected sizes, or one sequence of "
            "values; torch.tensor(data, dtype=...) takes a dtype"
        )
    if device(kwargs["device"] or CPU) != CPU:
        raise RuntimeError(
            f"legacy constructor expects device type: cpu but device type: {device(kwargs['device']).type} was passed"
        )


def _over_storage(storage: UntypedStorage, element_type: dtype) -> TensorImpl:
    count = storage.nbytes() // element_type.itemsize
    return tensor_from_storage(storage, element_type, (count,), (1,))._impl


_C.configure(tensor_type=Tensor)
wrap = _C.wrap


def tensor_from_array(array: np.ndarray, element_type: dtype | None = None) -> Tensor:
    """Return a tensor over the memory of `array`; its NumPy dtype must have a counterpart here."""
    return wrap(impl_from_array(array, element_type or from_numpy_dtype(array.dtype)))


def from_numpy(array: np.ndarray) -> Tensor:
    """Return a tensor that shares the memory of `array`; TypeError for NumPy dtypes without a counterpart."""
    if not isinstance(array, np.ndarray):
        raise TypeError(f"expected np.ndarray (got {type(array).__name__})")
    if not array.dtype.isnative:
        raise ValueError(
            "given numpy array has byte order different from the native byte order. "
            "Conversion between byte orders is currently not supported."
        )
    element_type = from_numpy_dtype(array.dtype)
    if any(stride % element_type.itemsize for stride in array.strides):
        raise ValueError("given numpy array strides not a multiple of the element byte size. Copy it first.")
    if not array.flags.writeable:
        warnings.warn("The given NumPy array is not writable: writing to the tensor will fail. Copy it first.", stacklevel=2)
    return tensor_from_array(array, element_type)


def tensor_from_storage(
    storage: UntypedStorage | StorageImpl,
    element_type: dtype,
    sizes: Sequence[int],
    strides: Sequence[int],
    storage_offset: int = 0,
) -> Tensor:
    """Return a tensor over part of a storage of the CPU or a GPU; sizes, strides and offset in elements; RuntimeError when out
    of bounds."""
    impl = storage._impl if isinstance(storage, UntypedStorage) else storage
    sizes, strides = tuple(sizes), tuple(strides)
    check_geometry(impl, element_type, sizes, strides, storage_offset)
    keys = CUDA_KEYS if impl.device.type == "cuda" else CPU_KEYS
    return wrap(in_current_mode(TensorImpl(impl, sizes, strides, storage_offset, element_type, impl.device, keys)))


def check_geometry(storage: StorageImpl, element_type: dtype, sizes: tuple, strides: tuple, offset: int) -> None:
    """Raise RuntimeError unless a view of this geometry stays inside the storage."""
    if len(sizes) != len(strides):
        raise RuntimeError(
            f"mismatch in length of strides and shape: got {len(strides)} strides for {len(sizes)} dimensions"
        )
    if any(size < 0 for size in sizes):
        raise RuntimeError(f"Trying to create tensor with negative dimension {min(sizes)}: {list(sizes)}")
    if any(stride < 0 for stride in strides):
        raise RuntimeError(f"as_strided: Negative strides are not supported at the moment, got strides: {list(strides)}")
    if offset < 0:
        raise RuntimeError(f"Tensor: invalid storage offset {offset}")
    needed = storage_extent(sizes, strides, offset) * element_type.itemsize
    if math.prod(sizes) and needed > storage.nbytes:
        raise RuntimeError(
            f"setStorage: sizes {list(sizes)}, strides {list(strides)}, storage offset {offset}, and itemsize "
            f"{element_type.itemsize} requiring a storage size of {needed} are out of bounds for storage of size "
            f"{storage.nbytes}"
        )


def _materialise_lazy(self: Tensor) -> Tensor:
    """Return `self`, with a lazy conjugate or negation materialised."""
    return self.detach().clone() if self._impl.key_set & LAZY_BITS else self
