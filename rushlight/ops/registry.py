"""Registration of built-in operators: schema lists, and decorators that fill the per-stage tables."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from rushlight.core.dispatch_key import DispatchKey
from rushlight.core.dtype import can_cast, dtype
from rushlight.core.tensor import Tensor
from rushlight.ops.dispatcher import Kernel, OpOverload, define, find_operator
from rushlight.ops.meta.checks import check_operands, check_writable
from rushlight.ops.native_kernels import with_native, with_native_view
from rushlight.ops.schema import in_place_declaration

PRIMITIVES: list[OpOverload] = []


def aten(name: str) -> OpOverload:
    """Return the aten operator "add.Tensor", or one of another namespace, "torchvision::nms"."""
    short, _, overload = name.partition(".")
    return find_operator(short if "::" in short else f"aten::{short}", overload)


def define_primitives(text: str, namespace: str = "aten") -> None:
    """Define one primitive per non-empty line."""
    for line in text.strip().splitlines():
        if line and not line.startswith("#"):
            PRIMITIVES.append(define(namespace, line))


def _as_it_is(name: str, function: Callable) -> Callable:
    return function


_WITH_NATIVE = {DispatchKey.CPU: with_native, DispatchKey.CompositeExplicitAutograd: with_native_view}


def _registers(key: DispatchKey) -> Callable:
    def register(*names: str) -> Callable:
        def decorate(function: Callable) -> Callable:
            for name in names:
                aten(name).register(key, Kernel(_WITH_NATIVE.get(key, _as_it_is)(name, function)))
            return function

        return decorate

    return register


cpu = _registers(DispatchKey.CPU)
meta = _registers(DispatchKey.Meta)
explicit = _registers(DispatchKey.CompositeExplicitAutograd)


def composite(*schemas: str, namespace: str = "aten") -> Callable:
    """Define operators that are always decomposed into the calls of the decorated function, for every backend and autograd."""

    def decorate(function: Callable) -> Callable:
        for schema in schemas:
            op = define(namespace, schema)
            op.register(DispatchKey.CompositeImplicitAutograd, Kernel(function))
        return function

    return decorate


INPLACE_OF: dict[OpOverload, OpOverload] = {}


def define_inplace(names: Iterable[str], overloads: dict[str, str] | None = None) -> None:
    """For each functional operator, define `name_`, which computes it and copies the result into `self`.

    `overloads` maps overload names where ATen's differ between the two variants.
    """
    for name in names:
        functional = aten(name)
        overload = (overloads or {}).get(functional._overloadname)
        op = define("aten", in_place_declaration(functional.declaration, overload))
        INPLACE_OF[op] = functional
        for key in (DispatchKey.CPU, DispatchKey.Meta):
            op.register(key, Kernel(_write_back(functional, key)))


def _write_back(functional: OpOverload, key: DispatchKey) -> Callable:
    name = functional._opname + "_"
    reads_later = name.startswith("scatter")

    def inplace(self, *args, **kwargs):
        check_operands(self, name, (*args, *kwargs.values()), reads_later)
        if kwargs.get("dtype") not in (None, self._impl.dtype):
            raise RuntimeError(
                f"Bad in-place call: {name} writes to a tensor of dtype {self._impl.dtype}, but was given "
                f"dtype={kwargs['dtype']}"
            )
        result = functional.redispatch(1 << key, self, *args, **kwargs)
        return store_result(functional, self, result)

    return inplace


def elementwise(*names: str) -> Callable:
    """Register a CPU kernel with a keyword `out`, and derive the CPU kernels of the in-place variants from it.

    The kernel writes into `out` when that fits its result; otherwise it returns a new tensor.
    """

    def decorate(function: Callable) -> Callable:
        for name in names:
            functional = aten(name)
            functional.register(DispatchKey.CPU, Kernel(with_native(name, function)))
            for op, original in INPLACE_OF.items():
                if original is functional:
                    general = _write_directly(functional, function)
                    op.register(DispatchKey.CPU, Kernel(with_native(name, general, in_place=True)))
        return function

    return decorate


def _write_directly(functional: OpOverload, function: Callable) -> Callable:
    name = functional._opname + "_"

    def inplace(self, *args, **kwargs):
        check_writable(self, name)
        check_operands(self, name, args)
        result = function(self, *args, **kwargs, out=self)
        return self if result is self else store_result(functional, self, result)

    return inplace


def store_result(functional: OpOverload, self: Tensor, result: Tensor) -> Tensor:
    """Copy `result` into `self`; RuntimeError unless shape and dtype fit."""
    check_writable(self, functional._opname + "_")
    check_inplace_result(functional, self, result)
    impl, made = self._impl, result._impl
    if impl.storage.buffer is not None:
        impl.array[...] = made.array
    return self


def check_inplace_result(functional: OpOverload, self: Tensor, result: Tensor) -> None:
    """Raise RuntimeError unless `result` fits into `self`: the same shape, and a castable dtype."""
    from_dtype, to_dtype = result._impl.dtype, self._impl.dtype
    if result._impl.sizes != self._impl.sizes:
        raise RuntimeError(
            f"output with shape {list(self.shape)} doesn't match the broadcast shape {list(result.shape)} "
            f"(in {functional._opname}_)"
        )
    check_castable(f"{functional._opname}_", from_dtype, to_dtype)


def check_castable(name: str, from_dtype: dtype, to_dtype: dtype) -> None:
    """Raise RuntimeError unless the in-place operator `name` may write results of one dtype to a tensor of another."""
    if not can_cast(from_dtype, to_dtype):
        raise RuntimeError(
            f"result type {from_dtype.scalar_name} can't be cast to the desired output type {to_dtype.scalar_name} (in {name})"
        )
