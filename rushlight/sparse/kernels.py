"""Registration of sparse kernels: one per operator for COO tensors, and one for compressed ones."""

from __future__ import annotations

from collections.abc import Callable

from rushlight.core.dispatch_key import DispatchKey
from rushlight.core.tensor import Tensor
from rushlight.ops.dispatcher import Kernel
from rushlight.ops.registry import aten as find
from rushlight.sparse.layout import is_compressed


class LayoutKernels:
    """The kernels of one operator by layout; the arguments' layouts select one."""

    def __init__(self, name: str):
        self.name = name
        self.coo: Callable | None = None
        self.compressed: Callable | None = None

    def __call__(self, *args, **kwargs):
        found = any(isinstance(each, Tensor) and is_compressed(each) for each in (*args, *kwargs.values()))
        kernel = self.compressed if found else self.coo
        if kernel is None:
            kind = "sparse_csr and sparse_csc" if found else "sparse_coo"
            raise NotImplementedError(f"aten::{self.name} has no kernel for the layout {kind}; use to_dense() first")
        return kernel(*args, **kwargs)


_KERNELS: dict[str, LayoutKernels] = {}


def _kernels_of(name: str) -> LayoutKernels:
    if name not in _KERNELS:
        _KERNELS[name] = LayoutKernels(name)
        find(name).register(DispatchKey.SparseCPU, Kernel(_KERNELS[name]))
    return _KERNELS[name]


def sparse(*names: str) -> Callable:
    """Register a function as the kernel of operators for COO tensors."""

    def decorate(function: Callable) -> Callable:
        for name in names:
            _kernels_of(name).coo = function
        return function

    return decorate


def compressed(*names: str) -> Callable:
    """Register a function as the kernel of operators with a compressed tensor among their arguments."""

    def decorate(function: Callable) -> Callable:
        for name in names:
            _kernels_of(name).compressed = function
        return function

    return decorate
