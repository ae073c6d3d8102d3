"""`torch._inductor.select_algorithm`: `extern_kernels`, the library's operators that generated programs call with `out=`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from rushlight.ops.packet import namespaces


class ExternKernels:
    """Operators by name, such as `extern_kernels.mm(a, b, out=c)`; AttributeError for names that aten does not have."""

    def __getattr__(self, name: str) -> Callable[..., Any]:
        return getattr(namespaces.namespace("aten"), name)


extern_kernels = ExternKernels()
