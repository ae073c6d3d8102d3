"""How the project's own operators enter the dispatcher: schema lists, and decorators that fill the per-stage tables."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from rushlight.core.dispatch_key import DispatchKey
from rushlight.ops.dispatcher import Kernel, OpOverload, define, find_operator
from rushlight.ops.schema import Argument, FunctionSchema, parse_schema

PRIMITIVES: list[OpOverload] = []


def aten(name: str) -> OpOverload:
    """The aten operator "add.Tensor"."""
    short, _, overload = name.partition(".")
    return find_operator(f"aten::{short}", overload)


def define_primitives(text: str) -> None:
    """Define one aten primitive per non-empty line."""
    for line in text.strip().splitlines():
        if line and not line.startswith("#"):
            PRIMITIVES.append(define("aten", parse_schema(line)))


def _registers(key: DispatchKey) -> Callable:
    def register(*names: str) -> Callable:
        def decorate(function: Callable) -> Callable:
            for name in names:
                aten(name).register(key, Kernel(function))
            return function

        return decorate

    return register


cpu = _registers(DispatchKey.CPU)
meta = _registers(DispatchKey.Meta)
explicit = _registers(DispatchKey.CompositeExplicitAutograd)


def composite(*schemas: str) -> Callable:
    """Define operators that are always replaced by the calls in the decorated function, for every backend and autograd."""

    def decorate(function: Callable) -> Callable:
        for schema in schemas:
            op = define("aten", parse_schema(schema))
            op.register(DispatchKey.CompositeImplicitAutograd, Kernel(function))
        return function

    return decorate


def inplace_schema(functional: FunctionSchema) -> FunctionSchema:
    """The schema of the variant that writes its result to `self`."""
    first, *rest = functional.arguments
    written = Argument(first.name, first.type, first.default, first.kwarg_only, "a!")
    result = Argument("", functional.returns[0].type, functional.returns[0].default, False, "a!")
    arguments = (written, *rest)
    positions = {argument.name: index for index, argument in enumerate(arguments)}
    return FunctionSchema(functional.name + "_", functional.overload, arguments, (result,), positions)


INPLACE_OF: dict[OpOverload, OpOverload] = {}


def define_inplace(names: Iterable[str]) -> None:
    """For each functional operator, define `name_`, which computes it and copies the result into `self`."""
    for name in names:
        functional = aten(name)
        op = define("aten", inplace_schema(functional._schema))
        INPLACE_OF[op] = functional
        op.register(DispatchKey.CPU, Kernel(_write_back(functional, check=True)))
        op.register(DispatchKey.Meta, Kernel(_write_back(functional, check=False)))


def _write_back(functional: OpOverload, check: bool) -> Callable:
    def inplace(self, *args, **kwargs):
        result = functional(self, *args, **kwargs)
        check_inplace_result(functional, self, result)
        if check:
            self._impl.array[...] = result._impl.array
        return self

    return inplace


def check_inplace_result(functional: OpOverload, self, result) -> None:
    """RuntimeError unless `result` fits into `self`: the same shape, and a dtype that casts to its dtype."""
    from_dtype, to_dtype = result._impl.dtype, self._impl.dtype
    if result._impl.sizes != self._impl.sizes:
        raise RuntimeError(
            f"output with shape {list(self.shape)} doesn't match the broadcast shape {list(result.shape)} "
            f"(in {functional._schema.name}_)"
        )
    lowers = from_dtype.is_complex > to_dtype.is_complex or (from_dtype.is_floating_point and to_dtype.is_integral)
    if lowers or (to_dtype.name == "bool" and from_dtype.name != "bool"):
        raise RuntimeError(
            f"result type {_scalar_name(from_dtype)} can't be cast to the desired output type {_scalar_name(to_dtype)} "
            f"(in {functional._schema.name}_)"
        )


_SCALAR_NAMES = {
    "float32": "Float", "float64": "Double", "float16": "Half", "bfloat16": "BFloat16", "int64": "Long", "int32": "Int",
    "int16": "Short", "int8": "Char", "uint8": "Byte", "bool": "Bool", "complex64": "ComplexFloat",
    "complex128": "ComplexDouble",
}  # fmt: skip


def _scalar_name(element_type) -> str:
    return _SCALAR_NAMES[element_type.name]
