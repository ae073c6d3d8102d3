"""The public surface of the operators: `functions()` for the package, methods and Python operators for Tensor.

Every aten operator whose first argument is `self` becomes a method; every aten operator becomes a function. Sizes may be
given one by one (`x.view(2, 3)`), `input` may name `self`, and NumPy's `axis` and `keepdims` are accepted.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from rushlight.core import dtype as dtypes
from rushlight.core.device import device
from rushlight.core.dtype import dtype
from rushlight.core.layout import memory_format
from rushlight.core.tensor import Tensor, tensor_from_array
from rushlight.ops import indexing
from rushlight.ops.composite.pointwise import as_tensor
from rushlight.ops.packet import OpOverloadPacket, namespaces

aten = namespaces.namespace("aten")
_RENAMED = {"axis": "dim", "keepdims": "keepdim", "input": "self", "axes": "dims"}
_PYTHON_TYPES = {float: dtypes.float64, int: dtypes.int64, bool: dtypes.bool_, complex: dtypes.complex128}
# Operators whose size list may be given as separate ints, and the position of that list.
_VARIADIC = {
    "view": 1, "reshape": 1, "permute": 1, "expand": 1, "repeat": 1, "tile": 1, "flip": 1, "zeros": 0, "ones": 0, "empty": 0,
    "rand": 0, "randn": 0, "new_zeros": 1, "new_ones": 1, "new_empty": 1, "broadcast_to": 1,
}  # fmt: skip
_NUMBERS = (bool, int, float, complex, np.number, np.bool_)
_KEEP_OWN = frozenset({"detach_", "equal", "data", "numpy_T"})


def _fix_keywords(packet: OpOverloadPacket, kwargs: dict) -> dict:
    known = {argument.name for op in packet._overloads for argument in op._schema.arguments}
    fixed = {}
    for name, value in kwargs.items():
        renamed = name if name in known else _RENAMED.get(name, name)
        if renamed == "dtype" and value in _PYTHON_TYPES:
            value = _PYTHON_TYPES[value]
        if renamed in ("requires_grad", "out") and renamed not in known:
            continue
        fixed[renamed] = value
    return fixed


def _finish(result, kwargs: dict, name: str):
    out = kwargs.get("out")
    if out is not None:
        return _write_out(out, result, name)
    if kwargs.get("requires_grad"):
        result.requires_grad_(True)
    return result


def _write_out(out, result, name: str):
    pairs = zip(out, result, strict=True) if isinstance(result, tuple) else [(out, result)]
    for target, value in pairs:
        if target.shape != value.shape:
            if target.numel():
                raise RuntimeError(f"{name}: out has shape {list(target.shape)} but the result has {list(value.shape)}")
            fresh = value.to(target.dtype)._impl
            target._impl.replace_geometry(fresh.storage, fresh.sizes, fresh.strides, fresh.storage_offset)
        else:
            target.copy_(value)
    return out


def make_function(packet: OpOverloadPacket) -> Callable:
    """The public function of an operator name."""
    name = packet.__name__
    position = _VARIADIC.get(name)
    named_self = packet._overloads[0]._schema.arguments[:1]
    takes_self = bool(named_self) and named_self[0].name == "self"

    def function(*args, **kwargs):
        if position is not None and len(args) > position:
            args = _gather_sizes(args, position)
        if not kwargs:
            return packet(*args)
        fixed = _fix_keywords(packet, kwargs)
        if takes_self and "self" in fixed:
            args = (fixed.pop("self"), *args)
        return _finish(packet(*args, **fixed), kwargs, name)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = "\n".join(str(op._schema) for op in packet._overloads) + _composite_doc(packet)
    function.__module__ = "rushlight"
    return function


def _composite_doc(packet: OpOverloadPacket) -> str:
    return "\n\nThe operator of this name and schema in ATen; see its schemas above for argument types and results."


def _gather_sizes(args: tuple, position: int) -> tuple:
    first = args[position]
    if isinstance(first, list | tuple):
        return args
    if isinstance(first, int | np.integer) or (isinstance(first, Tensor) and first.dim() == 0):
        return (*args[:position], tuple(int(size) for size in args[position:]))
    return args


def functions() -> dict[str, Callable]:
    """All public operator functions by name."""
    found = {}
    for name in dir(aten):
        if not name.startswith("_"):
            packet = getattr(aten, name)
            if isinstance(packet, OpOverloadPacket):
                found[name] = make_function(packet)
    return found


def _is_method(packet: OpOverloadPacket) -> bool:
    arguments = packet._overloads[0]._schema.arguments
    return bool(arguments) and arguments[0].name == "self" and arguments[0].type.is_tensor


def install_methods(public: dict[str, Callable]) -> None:
    """Attach operators to Tensor as methods, and Python's operators."""
    for name, function in public.items():
        if _is_method(getattr(aten, name)) and name not in _KEEP_OWN and name not in ("to", "mT"):
            setattr(Tensor, name, function)
    for method in _METHODS:
        setattr(Tensor, method.__name__, method)
    Tensor.equal = public["equal"]
    Tensor.T = property(lambda self: aten.numpy_T.default(self))
    Tensor.mT = property(lambda self: aten.mT.default(self))
    Tensor.H = property(lambda self: aten.mT.default(self))
    Tensor.__getitem__ = indexing.getitem
    Tensor.__setitem__ = indexing.setitem
    _install_operators()


def _binary(op: Callable, reflected: bool = False) -> Callable:
    def forward(self, other):
        if isinstance(other, Tensor) or isinstance(other, _NUMBERS):
            return op(self, other)
        return _foreign(op, self, other, reflected)

    def backward(self, other):
        if isinstance(other, _NUMBERS):
            return op(as_tensor(other, self), self)
        return _foreign(op, self, other, reflected)

    return backward if reflected else forward


def _foreign(op: Callable, self: Tensor, other: object, reflected: bool):
    if isinstance(other, np.ndarray):
        other = tensor_from_array(other)
        return op(other, self) if reflected else op(self, other)
    return NotImplemented


def _in_place(op: Callable) -> Callable:
    def update(self, other):
        if not isinstance(other, Tensor | bool | int | float | complex | np.number | np.bool_):
            return NotImplemented
        return op(self, other)

    return update


def _install_operators() -> None:
    binary = {
        "add": aten.add.Tensor, "sub": aten.sub.Tensor, "mul": aten.mul.Tensor, "truediv": aten.div.Tensor,
        "floordiv": aten.floor_divide.default, "mod": aten.remainder.Tensor, "eq": aten.eq.Tensor, "ne": aten.ne.Tensor,
        "lt": aten.lt.Tensor, "le": aten.le.Tensor, "gt": aten.gt.Tensor, "ge": aten.ge.Tensor,
        "and": aten.bitwise_and.Tensor, "or": aten.bitwise_or.Tensor, "xor": aten.bitwise_xor.Tensor, "pow": aten.pow,
        "matmul": aten.matmul.default,
    }  # fmt: skip
    for name, op in binary.items():
        setattr(Tensor, f"__{name}__", _binary(op))
    for name in ("add", "mul", "and", "or", "xor"):
        setattr(Tensor, f"__r{name}__", _binary(binary[name]))
    for name in ("sub", "floordiv", "mod"):
        setattr(Tensor, f"__r{name}__", _binary(binary[name], reflected=True))
    Tensor.__rtruediv__ = lambda self, other: aten.reciprocal.default(self) * other
    Tensor.__rpow__ = lambda self, other: aten.pow.Scalar(other, self)
    Tensor.__rmatmul__ = _binary(binary["matmul"], reflected=True)
    for name, op in {"add": aten.add_.Tensor, "sub": aten.sub_.Tensor, "mul": aten.mul_.Tensor,
                     "truediv": aten.div_.Tensor, "and": aten.bitwise_and_.Tensor, "or": aten.bitwise_or_.Tensor,
                     "xor": aten.bitwise_xor_.Tensor, "mod": aten.remainder_.Tensor,
                     "floordiv": aten.floor_divide_.default}.items():  # fmt: skip
        setattr(Tensor, f"__i{name}__", _in_place(op))
    Tensor.__ipow__ = _in_place(aten.pow_)
    Tensor.__neg__ = lambda self: aten.neg.default(self)
    Tensor.__pos__ = lambda self: self
    Tensor.__abs__ = lambda self: aten.abs.default(self)
    Tensor.__invert__ = lambda self: aten.bitwise_not.default(self)
    Tensor.__hash__ = lambda self: id(self)


# Methods that are more than one operator call


def item(self: Tensor):
    """The value of a one-element tensor as a Python number; RuntimeError for more or fewer elements."""
    return aten._local_scalar_dense.default(self)


def _bool(self: Tensor) -> bool:
    if self.numel() != 1:
        what = "more than one value" if self.numel() else "no values"
        raise RuntimeError(f"Boolean value of Tensor with {what} is ambiguous")
    return bool(aten._local_scalar_dense.default(self))


def _integer(self: Tensor) -> int:
    return int(aten._local_scalar_dense.default(self))


def _index(self: Tensor) -> int:
    value = aten._local_scalar_dense.default(self)
    if not isinstance(value, int):
        raise TypeError("only integer tensors of a single element can be converted to an index")
    return int(value)


def _iterate(self: Tensor):
    if self.dim() == 0:
        raise TypeError("iteration over a 0-d tensor")
    return iter(aten.unbind.int(self, 0))


def _contains(self: Tensor, element: object) -> bool:
    return bool(aten.any(aten.eq.Tensor(self, element)).item())


def to(self: Tensor, *args, **kwargs) -> Tensor:
    """A tensor of another dtype or device: `to(dtype)`, `to(device, dtype)`, `to(other)`; itself when nothing changes."""
    wanted = dict(kwargs)
    other = wanted.pop("other", None)
    positional = list(args)
    for argument in [*positional, *([other] if other is not None else [])]:
        if isinstance(argument, Tensor):
            wanted.setdefault("dtype", argument.dtype)
            wanted.setdefault("device", argument.device)
        elif isinstance(argument, dtype) or argument in _PYTHON_TYPES:
            wanted["dtype"] = argument
        elif isinstance(argument, str | device):
            wanted["device"] = argument
        elif isinstance(argument, memory_format):
            wanted["memory_format"] = argument
        elif isinstance(argument, bool):
            wanted["copy" if "non_blocking" in wanted else "non_blocking"] = argument
        elif argument is not None:
            raise TypeError(f"to() received an invalid argument of type {type(argument).__name__}")
    if wanted.get("dtype") in _PYTHON_TYPES:
        wanted["dtype"] = _PYTHON_TYPES[wanted["dtype"]]
    return aten.to.dtype_layout(self, **wanted)


def _converter(name: str, kind: dtype) -> Callable:
    def convert(self: Tensor) -> Tensor:
        return aten.to.dtype_layout(self, dtype=kind)

    convert.__name__ = name
    convert.__doc__ = f"This tensor as {kind}."
    return convert


def type(self: Tensor, dtype: object = None):
    """The type's name, or the tensor converted to `dtype`."""
    if dtype is None:
        names = {"float32": "Float", "float64": "Double", "int64": "Long", "int32": "Int", "float16": "Half"}
        return f"torch.{names.get(self.dtype.name, self.dtype.name.capitalize())}Tensor"
    return to(self, dtype)


def cpu(self: Tensor) -> Tensor:
    """This tensor on the CPU."""
    return to(self, "cpu")


def new_tensor(self: Tensor, data: object, *, dtype=None, device=None, requires_grad: bool = False) -> Tensor:
    """A tensor of `data` with this tensor's dtype."""
    made = tensor_from_array(np.array(data, (dtype or self.dtype).numpy))
    return made.requires_grad_() if requires_grad else made


def resize_(self: Tensor, *sizes) -> Tensor:
    """Change the sizes in place; contents beyond the old storage are uninitialised."""
    wanted = tuple(sizes[0]) if len(sizes) == 1 and isinstance(sizes[0], list | tuple) else sizes
    fresh = aten.empty.memory_format(wanted, dtype=self.dtype)
    count = min(fresh.numel(), self._impl.storage.nbytes // self.element_size() - self.storage_offset())
    if count > 0:
        old = aten.as_strided.default(self.detach(), (count,), (1,), self.storage_offset())
        fresh.view(-1)[:count].copy_(old)
    made = fresh._impl
    self._impl.replace_geometry(made.storage, made.sizes, made.strides, 0)
    return self


def _copy(self: Tensor, memo: dict | None = None) -> Tensor:
    if not self.is_leaf:
        raise RuntimeError(
            "Only Tensors created explicitly by the user (graph leaves) support the deepcopy protocol at the moment."
        )
    if memo is not None and id(self) in memo:
        return memo[id(self)]
    made = self.detach().clone()
    made.requires_grad_(self.requires_grad)
    if self.grad is not None:
        made.grad = self.grad.detach().clone()
    if memo is not None:
        memo[id(self)] = made
    return made


def _rebuild(array: np.ndarray, kind: dtype, requires_grad: bool) -> Tensor:
    made = tensor_from_array(array if array.dtype == kind.numpy else array.view(kind.numpy), kind)
    return made.requires_grad_(requires_grad)


def _reduce(self: Tensor, protocol):
    array = self.detach().numpy().copy()
    return (_rebuild, (array.view(np.uint16) if self.dtype is dtypes.bfloat16 else array, self.dtype, self.requires_grad))


_METHODS = [item, to, type, cpu, new_tensor, resize_]
for _name, _kind in {
    "float": dtypes.float32, "double": dtypes.float64, "half": dtypes.float16, "bfloat16": dtypes.bfloat16,
    "long": dtypes.int64, "int": dtypes.int32, "short": dtypes.int16, "char": dtypes.int8, "byte": dtypes.uint8,
    "bool": dtypes.bool_, "cfloat": dtypes.complex64, "cdouble": dtypes.complex128,
}.items():  # fmt: skip
    _METHODS.append(_converter(_name, _kind))

Tensor.__bool__ = _bool
Tensor.__int__ = _integer
Tensor.__float__ = lambda self: float(aten._local_scalar_dense.default(self))
Tensor.__complex__ = lambda self: complex(aten._local_scalar_dense.default(self))
Tensor.__index__ = _index
Tensor.__iter__ = _iterate
Tensor.__contains__ = _contains
Tensor.__deepcopy__ = _copy
Tensor.__copy__ = lambda self: self.alias()
Tensor.__reduce_ex__ = _reduce
