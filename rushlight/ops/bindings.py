"""The public surface of the operators: a function per aten operator, and a Tensor method where the first argument is `self`.

Sizes may be given one by one (`x.view(2, 3)`), `input` may name `self`, NumPy's `axis` and `keepdims` are accepted, and
`out` takes the result of any operator.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from rushlight.core.dtype import can_cast, dtype
from rushlight.core.tensor import Tensor
from rushlight.ops import copying, functional, indexing, methods, operators
from rushlight.ops.construct import PYTHON_TYPES
from rushlight.ops.packet import OpOverloadPacket, namespaces
from rushlight.ops.return_types import return_type_of

aten = namespaces.namespace("aten")
_RENAMED = {
    "axis": "dim", "keepdims": "keepdim", "input": "self", "axes": "dims", "split_size_or_sections": "split_size",
    "tensor": "self",
}  # fmt: skip
# Operators whose size list may be given as separate ints, and the position of that list.
_VARIADIC = {
    **dict.fromkeys(("zeros", "ones", "empty", "rand", "randn"), 0),
    **dict.fromkeys(
        ("view", "reshape", "permute", "expand", "repeat", "tile", "flip", "sum_to_size", "new_zeros", "new_ones", "new_empty",
         "broadcast_to"), 1,
    ),
}  # fmt: skip
# Operators that are not methods under their own name, because the class or `methods` defines them.
_NO_METHOD = frozenset({"detach_", "numpy_T", "to", "mT", "mH"})


# Prefixes of operators that are public in a package of their own, as `linalg_inv` in `rushlight.linalg`.
_PACKAGES = ("linalg_", "fft_", "special_", "sparse_")


def functions() -> dict[str, Callable]:
    """All public operator functions by name, less those of the packages."""
    found = {}
    for name in dir(aten):
        packet = getattr(aten, name)
        if not name.startswith(("_", *_PACKAGES)) and isinstance(packet, OpOverloadPacket):
            found[name] = make_function(packet)
    return {**found, **functional.PUBLIC}


def functions_of(package: str) -> dict[str, Callable]:
    """The public functions of a package by name: "linalg" gives those of the operators `linalg_*`, without the prefix."""
    found = {}
    for name in dir(aten):
        packet = getattr(aten, name)
        if name.startswith(f"{package}_") and isinstance(packet, OpOverloadPacket):
            function = found[name.removeprefix(f"{package}_")] = make_function(packet)
            function.__module__ = f"rushlight.{package}"
    return found


def install_methods(public: dict[str, Callable]) -> None:
    """Attach operators to Tensor as methods, and Python's operators."""
    for name, function in public.items():
        if name not in _NO_METHOD and name not in functional.PUBLIC and _is_method(getattr(aten, name)):
            setattr(Tensor, name, function)
    Tensor.norm, Tensor.nonzero = functional.norm, functional.nonzero
    methods.install()
    operators.install()
    copying.install()
    Tensor.__getitem__ = indexing.getitem
    Tensor.__setitem__ = indexing.setitem


def _is_method(packet: OpOverloadPacket) -> bool:
    arguments = packet._overloads[0]._schema.arguments
    return bool(arguments) and arguments[0].name == "self" and arguments[0].type.is_tensor


def make_function(packet: OpOverloadPacket) -> Callable:
    """The public function of an operator name."""
    position = _VARIADIC.get(packet.__name__)
    results = return_type_of(packet)
    special = position is not None or results is not None

    def function(*args, **kwargs):
        if position is not None and len(args) > position:
            args = _gather_sizes(args, position)
        result = packet(*args) if not kwargs else _call_with_keywords(packet, args, kwargs)
        return results(*result) if results is not None and type(result) is tuple else result

    def plain_function(*args, **kwargs):
        return packet(*args) if not kwargs else _call_with_keywords(packet, args, kwargs)

    made = function if special else plain_function
    made.__name__ = made.__qualname__ = packet.__name__
    made.__module__ = "rushlight"
    schemas = "\n".join(str(op._schema) for op in packet._overloads)
    made.__doc__ = f"{schemas}\n\nThe operator of this name in ATen; its schemas above say what it takes and returns."
    return made


def _gather_sizes(args: tuple, position: int) -> tuple:
    first = args[position]
    if isinstance(first, int | np.integer) or (isinstance(first, Tensor) and first.dim() == 0):
        return (*args[:position], args[position:])
    return args


def _call_with_keywords(packet: OpOverloadPacket, args: tuple, kwargs: dict) -> object:
    known = {argument.name for op in packet._overloads for argument in op._schema.arguments}
    kwargs = {name if name in known else _RENAMED.get(name, name): value for name, value in kwargs.items()}
    out = kwargs.pop("out", None) if "out" not in known else None
    wants_grad = kwargs.pop("requires_grad", False) if "device" in known else False
    kind = kwargs.get("dtype")
    if isinstance(kind, type) and kind in PYTHON_TYPES:
        kwargs["dtype"] = PYTHON_TYPES[kind]
    if "self" in kwargs:
        args = (kwargs.pop("self"), *args)
    result = packet(*args, **kwargs)
    if wants_grad:
        result.requires_grad_(True)
    return result if out is None else _write_out(out, result, packet.__name__)


def _write_out(out: Tensor | tuple, result: Tensor | tuple, name: str) -> Tensor | tuple:
    if isinstance(result, tuple):
        for target, value in zip(out, result, strict=True):
            _write_one(target, value, name)
    else:
        _write_one(out, result, name)
    return out


def _write_one(target: Tensor, value: Tensor, name: str) -> None:
    """Copy a result to where the caller wants it; an empty `target` takes over its shape."""
    if not isinstance(target, Tensor):
        raise TypeError(f"{name}(): argument 'out' must be Tensor, not {type(target).__name__}")
    if target.requires_grad or value.requires_grad:
        raise RuntimeError(
            f"{name}(): functions with out=... arguments don't support automatic differentiation, but one of the arguments "
            "requires grad."
        )
    if not _fits_out(value.dtype, target.dtype):
        raise RuntimeError(
            f"result type {value.dtype.scalar_name} can't be cast to the desired output type {target.dtype.scalar_name}"
        )
    if target.shape != value.shape:
        target.resize_(value.shape)
    target.copy_(value)


def _fits_out(source: dtype, target: dtype) -> bool:
    return source is target or can_cast(source, target)
