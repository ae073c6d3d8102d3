"""Tensors, and the library's functions on them, which become nodes of the graph."""

from __future__ import annotations

import operator
import sys
from collections.abc import Callable
from contextlib import nullcontext
from types import BuiltinFunctionType, FunctionType
from typing import TYPE_CHECKING, Any

from rushlight._C import BinaryMethod
from rushlight.core.dtype import bool_
from rushlight.core.size import Size
from rushlight.core.symbolic import SymInt
from rushlight.core.tensor import Tensor
from rushlight.dynamo.errors import GraphBreak
from rushlight.dynamo.handlers import ALLOWED_IN_GRAPH, HANDLERS, METHODS
from rushlight.dynamo.rules import RULES
from rushlight.dynamo.sources import Attribute, Held, Source
from rushlight.dynamo.values.base import Value
from rushlight.dynamo.values.constant import ConstantValue, FixedValue, fold, from_python, is_constant_value, raised
from rushlight.dynamo.values.later_numbers import LaterNumberValue
from rushlight.dynamo.values.scalar_indices import by_scalars
from rushlight.dynamo.values.sequences import SequenceValue
from rushlight.fx.node import Node
from rushlight.fx.targets import TORCH
from rushlight.nn.parameter import Buffer, Parameter
from rushlight.ops.dispatcher import OpOverload
from rushlight.ops.packet import OpOverloadPacket

if TYPE_CHECKING:
    from rushlight.dynamo.values.base import Following, Writer

# Attributes that fake tensors answer like real ones.
_KNOWN_ATTRIBUTES = frozenset({
    "shape", "dtype", "device", "ndim", "requires_grad", "is_leaf", "layout", "itemsize", "nbytes", "is_sparse", "is_nested",
    "is_quantized", "is_meta", "is_cuda", "names",
})  # fmt: skip
_KNOWN_METHODS = frozenset({
    "size", "dim", "numel", "stride", "storage_offset", "is_contiguous", "is_floating_point", "is_complex", "element_size",
    "nelement", "ndimension", "get_device", "is_signed", "__len__",
})  # fmt: skip
_GRAPH_ATTRIBUTES = frozenset({"T", "mT", "H", "mH", "real", "imag", "data", "grad"})
_NEEDS_VALUES = frozenset({
    "item", "tolist", "numpy", "__bool__", "__int__", "__float__", "__index__", "__complex__", "data_ptr", "__array__",
    "__repr__", "__str__", "__format__", "__dlpack__", "__reduce_ex__", "__deepcopy__",
})  # fmt: skip
_NUMBERS = frozenset({"item", "tolist", "__int__", "__float__", "__index__"})
_ACTS_ON_OBJECT = frozenset({
    "backward", "register_post_accumulate_grad_hook", "retain_grad", "requires_grad_", "set_", "resize_",
    "resize_as_", "untyped_storage", "storage", "share_memory_", "is_shared", "pin_memory", "cuda", "xpu",
    "mtia", "ipu",
})  # fmt: skip
_READS_LAYOUT = frozenset({"stride", "storage_offset", "is_contiguous"})
_VIEWS_IN_PLACE = frozenset({"as_strided_", "squeeze_", "swapaxes_", "swapdims_", "t_", "transpose_", "unsqueeze_"})
# Functions of the library with side effects, which must not become graph nodes.
_NOT_IN_GRAPH = frozenset({
    "manual_seed", "seed", "save", "load", "compile", "set_default_dtype", "set_default_device", "set_num_threads",
    "from_numpy", "set_printoptions", "get_rng_state", "set_rng_state", "fork_rng", "initial_seed", "set_grad_enabled",
    "frombuffer", "from_dlpack", "save_safetensors", "load_safetensors", "empty_cache", "allocator_statistics", "asarray",
    "typename", "as_tensor", "tensor", "is_nonzero", "equal", "allclose",
})  # fmt: skip


class TensorValue(Value):
    """A tensor: its node and its fake."""

    def __init__(self, node: Node, fake: Tensor, source: Source | None = None, kind: type = Tensor) -> None:
        self.graph_node = node
        self.fake = fake
        self.source = source
        self.kind = kind
        self.own_attributes: frozenset[str] = frozenset()
        self.is_inference = self.is_from_outside = self.is_gradient = False
        self.constant_at_first: Tensor | None = None  # the value of a constant that the program made
        self.new_data: TensorValue | None = None  # the tensor that the program assigned to `data` of an outside tensor
        self.is_hidden = False  # True for a tensor with gradients and new data, which no node can stand for
        self.changes: list[str] = []  # calls that changed sizes and strides of an outside tensor
        self.attributes: dict[str, Value] = {}  # attributes that the program set during the capture

    def python_type(self) -> type:
        return self.kind

    def known(self) -> Tensor | None:
        """Return the tensor's value if it is a constant that the graph has not used yet, so that nothing has changed it."""
        return self.constant_at_first if not self.graph_node.users else None

    def truth(self, tx: Following) -> bool:
        if self.known() is not None:
            return bool(self.known())
        raise GraphBreak("a branch on the value of a tensor", "use torch.where, or keep the branch outside the compiled part")

    def length(self, tx: Following) -> Value:
        if not self.fake.dim():
            raise raised(TypeError("len() of a 0-d tensor"))
        return from_python(self.fake.shape[0])

    def items_of(self, tx: Following) -> list[Value]:
        if not self.fake.dim():
            raise raised(TypeError("iteration over a 0-d tensor"))
        return tx.call_in_graph("call_method", "unbind", [self, ConstantValue(0)], {}).items_of(tx)

    def same_as(self, other: Value) -> bool:
        return isinstance(other, TensorValue) and self.graph_node is other.graph_node

    def attribute(self, tx: Following, name: str) -> Value:
        if name == "is_leaf" and self.source is not None and self.fake.requires_grad:
            raise GraphBreak("whether a tensor from outside is a leaf")
        if name in _KNOWN_ATTRIBUTES:
            return from_python(getattr(self.fake, name))
        if name == "grad" and self.source is not None:
            return self._gradient(tx)
        if name in _GRAPH_ATTRIBUTES:
            return tx.call_in_graph("call_function", getattr, [self, ConstantValue(name)], {})
        if name == "__class__":
            return tx.wrap_class(self.kind)
        if name in self.attributes:
            return self.attributes[name]
        if name == "__dict__":
            raise GraphBreak("the dict of a tensor's attributes")
        if name in self.own_attributes:
            return tx.wrap(tx.graph.real(self.graph_node).__dict__[name], Attribute(self.source, name) if self.source else None)
        if not hasattr(Tensor, name):
            self._guard_missing(tx, name)
            raise raised(AttributeError(f"'{self.kind.__name__}' object has no attribute '{name}'"))
        if isinstance(getattr(Tensor, name), property):
            raise GraphBreak(f"attribute {name!r} of a tensor")
        return tx.bound_method(self, name)

    def set_attribute(self, tx: Following, name: str, value: Value) -> None:
        if name == "data" and isinstance(value, TensorValue) and value.fake.dtype is self.fake.dtype:
            self._set_data(tx, value)
            return
        if hasattr(Tensor, name) or self.kind is not Tensor:
            super().set_attribute(tx, name, value)
        tx.effects.mutates(self)
        self.attributes[name] = value

    def _set_data(self, tx: Following, value: TensorValue) -> None:
        """Evaluate `self.data = value`: a detached view of the value replaces the tensor, and an outside tensor gets it as its
        data after the graph has run.
        """
        if self.is_from_outside:
            may_change = self.source is not None and not isinstance(self.source, Held) and not self.changes
        else:
            may_change = not self.fake.requires_grad
        if not may_change:
            raise GraphBreak("new data of a tensor that autograd or a module holds")
        made = tx.call_in_graph("call_method", "detach", [value], {})
        if self.is_from_outside:
            tx.effects.mutates(self)
            self.new_data = made
            self.is_hidden = self.fake.requires_grad
        tx.graph.replace_value(self, made)

    def delete_attribute(self, tx: Following, name: str) -> None:
        if name not in self.attributes or self.source is not None:
            super().delete_attribute(tx, name)
        del self.attributes[name]

    def _gradient(self, tx: Following) -> Value:
        """Evaluate `.grad` of an outside tensor. It cannot change during a capture, because a call that sets it breaks the
        graph.
        """
        if tx.session.sizes.history.is_unsteady:
            hint = "keep rates and step counts in tensors"
            tx.leave_to_python("gradients in a function whose numbers change at every call, as those of an optimizer", hint)
        real = tx.graph.real(self.graph_node)
        if real is None or not real.is_leaf:
            raise GraphBreak("attribute 'grad' of a tensor that may be no leaf")
        return tx.wrap(real.grad, Attribute(self.source, "grad"))

    def _guard_missing(self, tx: Following, name: str) -> None:
        if self.source is not None and name.isidentifier():
            tx.guards.no_attribute(self.source, name)

    def _view_in_place(self, tx: Following, name: str, args: list[Value], kwargs: dict[str, Value]) -> Value:
        """Evaluate `x.t_()` and other in-place changes of sizes and strides: a view replaces the tensor, and an outside
        tensor is changed after the graph has run.
        """
        if self.is_from_outside:
            self._check_may_view_in_place(name)
            given = [repr(value.snapshot()) for value in args]
            given += [f"{key}={value.snapshot()!r}" for key, value in kwargs.items()]
        made = tx.call_in_graph("call_method", name[:-1], [self, *args], kwargs)
        if self.is_from_outside:
            tx.effects.mutates(self)
            self.changes.append(f"{name}({', '.join(given)})")
        tx.graph.replace_value(self, made)
        return self

    def _check_may_view_in_place(self, name: str) -> None:
        if self.source is None or isinstance(self.source, Held) or self.fake.requires_grad:
            raise GraphBreak(f"Tensor.{name}() of a tensor that autograd or a module holds")

    def write_back(self, writer: Writer, target: str) -> list[str]:
        """Return statements that change sizes, strides and attributes of the tensor `target`."""
        changes = [] if self.new_data is None else [f"{target}.data = {writer.expression(self.new_data)}"]
        changes += [f"{target}.{change}" for change in self.changes]
        return changes + [f"{target}.{name} = {writer.expression(value)}" for name, value in self.attributes.items()]

    def _was_made_in_inference_mode(self, tx: Following) -> Value:
        if self.source is not None:
            tx.guards.add(f"{self.source.expression()}.is_inference() is {self.is_inference}", self.source, "is_inference")
        return ConstantValue(self.is_inference)

    def method(self, tx: Following, name: str, args: list[Value], kwargs: dict[str, Value]) -> Value:
        if name in self.attributes or name in self.own_attributes:
            return self.attribute(tx, name).call(tx, args, kwargs)
        if name in _NUMBERS and self.known() is not None:
            return fold(getattr(self.known(), name), *args, **kwargs)
        if name in _NUMBERS and (RULES.capture_scalar_outputs or name == "tolist" and _is_whole(self.fake)):
            return number_of(tx, self, name)
        if name == "numpy" and RULES.trace_numpy:
            return METHODS[name](tx, self, *args, **kwargs)
        if name in _NEEDS_VALUES:
            raise GraphBreak(f"Tensor.{name}() needs the tensor's value", "keep the value in a tensor, or call it outside")
        if name in _ACTS_ON_OBJECT and not self._requires_as_asked(name, args, kwargs):
            raise GraphBreak(f"Tensor.{name}() acts on the tensor as an object", "call it outside of the compiled part")
        if name == "requires_grad_":
            return self
        if name == "register_hook":
            return HANDLERS[Tensor.register_hook](tx, self, *args, **kwargs)
        if self.is_gradient and name in _READS_LAYOUT:
            raise GraphBreak(f"Tensor.{name}() of a gradient, whose layout is known in the backward pass only")
        if name in _VIEWS_IN_PLACE:
            return self._view_in_place(tx, name, args, kwargs)
        if name == "new" and len(args) == 1 and args[0].python_type() is Size:
            args = args[0].items_of(tx)  # a node takes a Size for a tuple, from which `new` would make data
        if name == "is_inference" and not args:
            return self._was_made_in_inference_mode(tx)
        if not hasattr(Tensor, name):
            raise raised(AttributeError(f"'Tensor' object has no attribute '{name}'"))
        if name in _KNOWN_METHODS and not any(isinstance(value, TensorValue) for value in args):
            return fold(lambda *a, **k: getattr(self.fake, name)(*a, **k), *args, **kwargs)
        return tx.call_in_graph("call_method", name, [self, *args], kwargs)

    def _requires_as_asked(self, name: str, args: list[Value], kwargs: dict[str, Value]) -> bool:
        """Return whether this is a `requires_grad_` call that changes nothing."""
        asked = [*args, *kwargs.values()] or [ConstantValue(True)]
        return name == "requires_grad_" and asked[0].is_constant() and asked[0].constant() is self.fake.requires_grad

    def item(self, tx: Following, key: Value) -> Value:
        owner, key = by_scalars(tx, self, key) if tx.session.maps else (self, key)
        if key is None or owner is not self:
            return owner if key is None else owner.item(tx, key)
        return tx.call_in_graph("call_function", operator.getitem, [self, key], {})

    def set_item(self, tx: Following, key: Value, value: Value) -> None:
        tx.call_in_graph("call_function", operator.setitem, [self, key, value], {})

    def node(self, tx: Following) -> Any:
        if self.is_hidden:
            raise GraphBreak("a use of a tensor that requires grad after its data was replaced")
        return self.graph_node

    def write(self, writer: Writer) -> str:
        text = writer.output(self)
        if not self.attributes:
            return text
        name = writer.begin(self, text)
        for line in self.write_back(writer, name):
            writer.statement(line)
        return name

    def __str__(self) -> str:
        return f"a tensor {self.graph_node.name} of shape {list(self.fake.shape)}"


def number_of(tx: Following, value: TensorValue, name: str) -> Value:
    """Evaluate `item()`, `tolist()`, `int(x)` or `float(x)` of a tensor, as numbers that the graph computes."""
    fake = value.fake
    if name == "tolist" and fake.dim():
        return SequenceValue([number_of(tx, item, name) for item in value.items_of(tx)], list)
    if not _is_one(fake) or fake.is_complex() or fake.dtype is bool_:
        raise GraphBreak(f"Tensor.{name}() of a tensor of shape {list(fake.shape)} and {fake.dtype} needs its values")
    if not fake.is_floating_point():
        with tx.graph.listing_numbers() if name == "tolist" else nullcontext():
            made = tx.call_in_graph("call_method", "item", [value], {})
        return made.method(tx, "__float__", [], {}) if name == "__float__" else made
    node = tx.graph.add_item(value.graph_node)
    made = LaterNumberValue(node, node.meta["val"])
    return made if name != "__int__" else made.method(tx, "__int__", [], {})


def _is_whole(fake: Tensor) -> bool:
    """Return whether a tensor's numbers are integers."""
    return not (fake.is_floating_point() or fake.is_complex() or fake.dtype is bool_)


def _is_one(fake: Tensor) -> bool:
    return all(size == 1 for size in fake.shape)


class LibraryFunctionValue(FixedValue):
    """A function of the library that computes with tensors: a call of it is one node."""

    def call(self, tx: Following, args: list[Value], kwargs: dict[str, Value]) -> Value:
        return tx.call_in_graph("call_function", self.value, args, kwargs)

    def attribute(self, tx: Following, name: str) -> Value:
        return tx.wrap_constant_attribute(self.value, name)

    def node(self, tx: Following) -> Any:
        return self.value

    def __str__(self) -> str:
        return f"torch.{getattr(self.value, '__name__', self.value)}"


class TensorMethodValue(FixedValue):
    """A method accessed on the class: `Tensor.add`, `Tensor.__mul__`."""

    def call(self, tx: Following, args: list[Value], kwargs: dict[str, Value]) -> Value:
        if not args or not isinstance(args[0], TensorValue):
            raise GraphBreak(f"a call of {self} with these arguments")
        return args[0].method(tx, _METHODS[id(self.value)], args[1:], kwargs)

    def attribute(self, tx: Following, name: str) -> Value:
        return tx.wrap_constant_attribute(self.value, name)

    def __str__(self) -> str:
        return f"Tensor.{_METHODS[id(self.value)]}"


_METHODS = {id(value): name for name, value in vars(Tensor).items() if isinstance(value, FunctionType | BinaryMethod)}
_OPERATORS = (OpOverload, OpOverloadPacket)
_FUNCTIONS = (FunctionType, BuiltinFunctionType)
# Module -> prefix of its functions' operator names: `torch.linalg.norm` is the operator `linalg_norm`.
_PACKAGES = {"rushlight.linalg": "linalg", "rushlight.fft": "fft", "rushlight.special": "special"}


def _is_public(function: Callable) -> bool:
    """Return whether a function is a public tensor function of the library: a namespace holds it under its name."""
    module, name = str(function.__module__), function.__name__
    if module in _PACKAGES:
        return getattr(sys.modules.get(module), name.removeprefix(f"{_PACKAGES[module]}_"), None) is function
    if not module.startswith("rushlight") or name.startswith("__") or name in _NOT_IN_GRAPH or name in TORCH._FUNCTIONS:
        return False
    return vars(TORCH).get(name) is function or vars(TORCH.nn.functional).get(name) is function


def is_library_function(value: object) -> bool:
    """Return whether calls of a function become nodes."""
    if isinstance(value, _FUNCTIONS):
        return _is_public(value) or id(value) in ALLOWED_IN_GRAPH
    return isinstance(value, _OPERATORS) or id(value) in ALLOWED_IN_GRAPH


def is_tensor_method(value: object) -> bool:
    """Return whether a callable is a method of Tensor."""
    return id(value) in _METHODS


def wrap_result(tx: Following, node: Node, result: Any) -> Value:
    """Track a node's result."""
    if isinstance(result, Tensor):
        if type(result) not in (Tensor, Parameter, Buffer):
            raise GraphBreak(f"a tensor of class {type(result).__name__}")
        return tx.graph.tensor_value(node, result)
    if is_constant_value(result):
        return ConstantValue(result)
    if type(result) is SymInt or isinstance(result, Size):
        return from_python(result)
    if isinstance(result, list | tuple):
        items = []
        for index, value in enumerate(result):
            item = tx.graph.graph.create_node("call_function", operator.getitem, (node, index))
            item.stack_trace = node.stack_trace
            item.meta["example_value"] = item.meta["val"] = value
            if "of_values" in node.meta:
                tx.graph.symbols.bind(value, item)
            items.append(wrap_result(tx, item, value))
        return SequenceValue(items, type(result))
    raise GraphBreak(f"a library function returned a {type(result).__name__}")
