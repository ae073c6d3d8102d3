"""Register operators of quantized tensors with the dispatcher.

`quantized` adds a kernel for quantized tensors to an operator that exists; `operator` defines one, with a kernel for each of
the given keys. An operator without tensor arguments is registered for every backend.
"""

from __future__ import annotations

from collections.abc import Callable

from rushlight.core.dispatch_key import DispatchKey
from rushlight.ops.dispatcher import Kernel, OpOverload, define, register_fallback
from rushlight.ops.packet import namespaces
from rushlight.ops.registry import aten as find

CPU, QUANTIZED = DispatchKey.CPU, DispatchKey.QuantizedCPU
ANY_BACKEND = DispatchKey.CompositeImplicitAutograd
aten = namespaces.namespace("aten")


def kernel(key: DispatchKey, *names: str) -> Callable:
    """Register a function as the kernel of aten operators for a key."""

    def decorate(function: Callable) -> Callable:
        for name in names:
            find(name).register(key, Kernel(function))
        return function

    return decorate


def quantized(*names: str) -> Callable:
    """Register a function as the kernel of aten operators for quantized tensors."""
    return kernel(QUANTIZED, *names)


def operator(*declarations: str, keys: tuple[DispatchKey, ...] = (QUANTIZED,)) -> Callable:
    """Define operators, `quantized::relu6(...) -> Tensor`, that the decorated function computes."""

    def decorate(function: Callable) -> Callable:
        for declaration in declarations:
            namespace, _, rest = declaration.partition("::")
            made = namespaces.add(define(namespace, rest))
            for key in keys:
                made.register(key, Kernel(function))
        return function

    return decorate


def _make_refusal(op: OpOverload, below: int) -> Callable:
    """Return the fallback for an operator without a quantized kernel: it raises, because the operator's plain kernel would read
    the integers as numbers."""

    def refuse(*args: object, **kwargs: object) -> None:
        raise NotImplementedError(
            f"Could not run '{op.name}' with arguments from the 'QuantizedCPU' backend: it is not available for quantized "
            "tensors. Use dequantize() before it"
        )

    return refuse


register_fallback(QUANTIZED, Kernel(_make_refusal, linked=True))
