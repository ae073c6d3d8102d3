"""Operators that inspect values: identity, None, enums, devices, tensors' properties, and exceptions."""

from __future__ import annotations

from rushlight.autograd.grad_mode import is_grad_enabled, set_grad_enabled
from rushlight.core.device import device
from rushlight.core.generator import Generator
from rushlight.core.tensor import Tensor
from rushlight.jit.enumerations import dtype_number, dtype_of_number
from rushlight.jit.operators.registry import declare_operator
from rushlight.ops.construct import tensor
from rushlight.random import manual_seed

_NUMBERS = ("bool", "float", "int", "complex")  # bool is first, because a bool would convert to any of the others


def _is(a: object, b: object) -> bool:
    return a is b or type(a) is type(b) and isinstance(a, int | float | complex) and a == b


def _is_not(a: object, b: object) -> bool:
    return not _is(a, b)


def _unwrap(value: object) -> object:
    if value is None:
        raise RuntimeError("Unwrapping null optional")
    return value


def _register_values() -> None:
    register = declare_operator
    register("aten::__is__(t1 self, t2 obj) -> bool", _is)
    register("aten::__isnot__(t1 self, t2 obj) -> bool", _is_not)
    register("aten::_unwrap_optional(t(a)? optional) -> t(a)", _unwrap)
    register("prim::unchecked_unwrap_optional(t(a)? optional) -> t(a)", lambda optional: optional)
    register("prim::unchecked_cast(t x) -> t", lambda x: x)
    register("aten::hash.generic(t value) -> int", hash)
    register("prim::id(AnyClassType? x) -> int", id)
    for kind in ("int", "float", "str"):
        register(f"prim::EnumValue.{kind}(AnyEnumType enum) -> {kind}", lambda enum: enum.value)
    register("prim::EnumName(AnyEnumType enum) -> str", lambda enum: enum.name)
    register("aten::device(str a) -> Device", device)
    register("aten::device.type(str type) -> Device", device)
    register("aten::device.with_index(str type, int index) -> Device", lambda kind, index: device(kind, index))
    register("prim::type(Device self) -> str", lambda self: self.type)
    register("prim::index(Device self) -> int?", lambda self: self.index)
    register("aten::is_scripting() -> bool", lambda: True)
    register("aten::_get_tracing_state() -> bool", lambda: False)
    register("aten::has_torch_function(...) -> bool", lambda *values: False)
    register("aten::is_grad_enabled() -> bool", is_grad_enabled, has_side_effects=True)
    register("aten::set_grad_enabled(bool val) -> ()", _set_grad_mode, has_side_effects=True)
    register("aten::manual_seed(int seed) -> ()", lambda seed: manual_seed(seed) and None, has_side_effects=True)
    register("aten::Generator(*, Device? device=None, int? seed=None) -> Generator", _generator, has_side_effects=True)
    register("aten::manual_seed.generator(Generator(a!) self, int seed) -> Generator(a!)", Generator.manual_seed)
    for name in ("initial_seed", "seed"):
        register(f"aten::{name}(Generator self) -> int", getattr(Generator, name), has_side_effects=True)
    register("prim::IfThenElse(bool cond, Any(a) x, Any(b) y) -> Any(b|a)", lambda cond, x, y: x if cond else y)
    register("aten::__range_length(int lo, int hi, int step) -> int", _range_length)
    register("aten::__derive_index(int index, int start, int step) -> int", lambda index, start, step: start + index * step)


def _generator(place: device | None = None, seed: int | None = None) -> Generator:
    made = Generator(place or "cpu")
    return made if seed is None else made.manual_seed(seed)


def _set_grad_mode(value: bool) -> None:
    set_grad_enabled(value)


def _range_length(low: int, high: int, step: int) -> int:
    if step == 0:
        raise RuntimeError("range() arg 3 must not be zero")
    return len(range(low, high, step))


def _register_tensor_properties() -> None:
    register = declare_operator
    for name in ("is_sparse", "is_quantized", "is_cuda", "is_meta", "requires_grad", "is_cpu", "is_leaf",
                 "is_sparse_csr", "is_xpu", "is_mkldnn", "is_vulkan", "is_mps"):  # fmt: skip
        schema = f"aten::{name}" if name == "is_leaf" else f"prim::{name}"
        register(f"{schema}(Tensor self) -> bool" if name != "is_leaf" else "aten::is_leaf(Tensor self) -> bool",
                 lambda self, name=name: bool(getattr(self, name, False)))  # fmt: skip
    register("prim::dtype(Tensor a) -> int", lambda a: dtype_number(a.dtype))
    register("prim::device(Tensor a) -> Device", lambda a: a.device)
    register("prim::layout(Tensor a) -> int", lambda a: 0)
    register("prim::shape(Tensor a) -> int[]", lambda a: list(a.shape))
    register("aten::size(Tensor self) -> int[]", lambda self: list(self.shape))
    register("aten::stride(Tensor self) -> int[]", lambda self: list(self.stride()))
    register("aten::dim(Tensor self) -> int", lambda self: self.dim())
    register("aten::numel(Tensor self) -> int", lambda self: self.numel())
    register("prim::itemsize(Tensor self) -> int", lambda self: self.element_size())
    register("prim::nbytes(Tensor self) -> int", lambda self: self.numel() * self.element_size())
    register("aten::len.Tensor(Tensor t) -> int", len)
    register("prim::grad(Tensor a) -> Tensor(*)", lambda a: a.grad)
    register("prim::data(Tensor(a) a) -> Tensor(a)", lambda a: a.data)
    register("aten::item(Tensor self) -> Scalar", Tensor.item)
    for kind in _NUMBERS:
        register(f"aten::tensor.{kind}({kind} t, *, ScalarType? dtype=None, Device? device=None, bool requires_grad=False)"
                 " -> Tensor",
                 _make_tensor)  # fmt: skip
    register("aten::tensor(t[] data, *, ScalarType? dtype=None, Device? device=None, bool requires_grad=False) -> Tensor",
             _make_tensor)  # fmt: skip
    for kind in _NUMBERS:
        register(f"aten::as_tensor.{kind}({kind} t, *, ScalarType? dtype=None, Device? device=None) -> Tensor", _make_tensor)
    register("aten::as_tensor.list(t[] data, *, ScalarType? dtype=None, Device? device=None) -> Tensor", _make_tensor)
    register("aten::as_tensor(Tensor(a) data, *, ScalarType? dtype=None, Device? device=None) -> Tensor(a|b)", _as_tensor)


def _make_tensor(data: object, kind: int | None, place: device | None, requires_grad: bool = False) -> Tensor:
    chosen = None if kind is None else dtype_of_number(kind)
    return tensor(data, dtype=chosen, device=place, requires_grad=requires_grad)


def _as_tensor(data: Tensor, kind: int | None, place: device | None) -> Tensor:
    chosen = data.dtype if kind is None else dtype_of_number(kind)
    return data.to(device=data.device if place is None else place, dtype=chosen)


_register_values()
_register_tensor_properties()
