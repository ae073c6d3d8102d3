"""The base of tracked values: the operations that a followed frame may ask of every kind of value.

The protocols are the interfaces through which values use the frame, its capture, and the writer of generated code. Values know
nothing else of these.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NoReturn, Protocol

from rushlight.dynamo.errors import GraphBreak
from rushlight.dynamo.sources import Source

if TYPE_CHECKING:
    from collections.abc import Iterator
    from contextlib import AbstractContextManager
    from types import CellType

    from rushlight.core.dtype import dtype
    from rushlight.core.symbolic import Relation, ShapeEnv, SymInt
    from rushlight.core.tensor import Tensor
    from rushlight.dynamo.dynamic import OpenSizes
    from rushlight.dynamo.guards import Guards
    from rushlight.dynamo.input_names import InputNames
    from rushlight.dynamo.sources import NumberTensor
    from rushlight.fx.fake_tensor import FakeTensorMode
    from rushlight.fx.graph import Graph
    from rushlight.fx.node import Node
    from rushlight.fx.symbolic_sizes import SymbolNodes


class Value:
    """What is known about one Python value. `source` says how the frame reaches it; None for values that the program made.

    An operation that a kind of value does not implement breaks the graph.
    """

    source: Source | None = None
    is_of_library = False  # True for state of this library, which captured programs may only read

    def python_type(self) -> type:
        """Return the value's type."""
        raise GraphBreak(f"the type of {self} is not known")

    def is_constant(self) -> bool:
        """Return whether `constant` may be called."""
        return False

    def constant(self) -> Any:
        """Return the Python value itself, if it is fully known and immutable."""
        raise GraphBreak(f"{self} is not a constant")

    def operand(self) -> Any:
        """Return the constant for arithmetic and comparisons; an open integer stays symbolic."""
        return self.constant()

    def snapshot(self) -> Any:
        """Return the current value, for functions that only read it."""
        return self.constant()

    def truth(self, tx: Following) -> bool:
        """Evaluate `bool(value)`."""
        raise GraphBreak(f"the truth value of {self} is not known")

    def length(self, tx: Following) -> Value:
        """Evaluate `len(value)`."""
        raise GraphBreak(f"the length of {self} is not known")

    def items_of(self, tx: Following) -> list[Value]:
        """Return all values that iterating yields."""
        raise GraphBreak(f"cannot iterate over {self}")

    def iterator(self, tx: Following) -> Value | None:
        """Evaluate `iter(value)` for values whose iteration is followed step by step; None for others."""
        return None

    def attribute(self, tx: Following, name: str) -> Value:
        """Evaluate `value.name`."""
        raise GraphBreak(f"attribute {name!r} of {self}")

    def set_attribute(self, tx: Following, name: str, value: Value) -> None:
        """Evaluate `value.name = ...`."""
        raise GraphBreak(f"writing attribute {name!r} of {self}")

    def delete_attribute(self, tx: Following, name: str) -> None:
        """Evaluate `del value.name`."""
        raise GraphBreak(f"deleting attribute {name!r} of {self}")

    def item(self, tx: Following, key: Value) -> Value:
        """Evaluate `value[key]`."""
        raise GraphBreak(f"an item of {self}")

    def set_item(self, tx: Following, key: Value, value: Value) -> None:
        """Evaluate `value[key] = ...`."""
        raise GraphBreak(f"writing an item of {self}")

    def delete_item(self, tx: Following, key: Value) -> None:
        """Evaluate `del value[key]`."""
        raise GraphBreak(f"deleting an item of {self}")

    def call(self, tx: Following, args: list[Value], kwargs: dict[str, Value]) -> Value:
        """Evaluate `value(*args, **kwargs)`."""
        raise GraphBreak(f"a call of {self}")

    def method(self, tx: Following, name: str, args: list[Value], kwargs: dict[str, Value]) -> Value:
        """Evaluate `value.name(*args, **kwargs)`."""
        return self.attribute(tx, name).call(tx, args, kwargs)

    def same_as(self, other: Value) -> bool:
        """Evaluate `value is other`."""
        if self is other:
            return True
        raise GraphBreak(f"whether {self} is {other} is not known")

    def node(self, tx: Following) -> Any:
        """Return the argument that represents the value in a graph node."""
        raise GraphBreak(f"{self} cannot be an argument of an operation in the graph")

    def write(self, writer: Writer) -> str:
        """Return an expression of generated code that rebuilds the value; add statements before it if needed."""
        raise GraphBreak(f"{self} cannot be made again in generated code")

    def __str__(self) -> str:
        return type(self).__name__ + (f" from {self.source}" if self.source else "")


class PendingValue(Value):
    """A lazy value from outside: `make` wraps and guards it at its first use."""

    def __init__(self, make: Callable[[], Value], source: Source, kind: type) -> None:
        self.make = make
        self.source = source
        self.kind = kind
        self.made: Value | None = None

    def realize(self) -> Value:
        """Return the tracked value."""
        if self.made is None:
            self.made = self.make()
            del self.make  # breaks the reference cycle between the value and its closure
        return self.made


def has_finalizer(value: Value | None) -> bool:
    """Return whether a value is an outside object with `__del__`: then the moment it is dropped matters."""
    if type(value) is PendingValue:
        return hasattr(value.kind, "__del__")
    return value is not None and value.source is not None and hasattr(getattr(value, "kind", None), "__del__")


def realized(value: Value) -> Value:
    """Realize a pending value; return other values unchanged."""
    return value.realize() if type(value) is PendingValue else value


def realize_all(values: list[Value]) -> list[Value]:
    """Realize the pending values of a list in place."""
    for index, value in enumerate(values):
        if type(value) is PendingValue:
            values[index] = value.realize()
    return values


class NullValue(Value):
    """The NULL that CPython pushes below a callable."""

    def __str__(self) -> str:
        return "NULL"


NULL = NullValue()

BINARY: dict[str, Callable] = {
    "+": operator.add, "-": operator.sub, "*": operator.mul, "/": operator.truediv, "//": operator.floordiv,
    "%": operator.mod, "**": operator.pow, "@": operator.matmul, "<<": operator.lshift, ">>": operator.rshift,
    "&": operator.and_, "|": operator.or_, "^": operator.xor,
}  # fmt: skip
IN_PLACE: dict[str, Callable] = {
    "+=": operator.iadd, "-=": operator.isub, "*=": operator.imul, "/=": operator.itruediv, "//=": operator.ifloordiv,
    "%=": operator.imod, "**=": operator.ipow, "@=": operator.imatmul, "<<=": operator.ilshift, ">>=": operator.irshift,
    "&=": operator.iand, "|=": operator.ior, "^=": operator.ixor,
}  # fmt: skip
COMPARISONS: dict[str, Callable] = {
    "<": operator.lt, "<=": operator.le, "==": operator.eq, "!=": operator.ne, ">": operator.gt, ">=": operator.ge,
}  # fmt: skip

# Type -> function that makes the tracked value of a new Python object. The modules beside this one register theirs.
MAKERS: dict[type, Callable[[Any], Value]] = {}


class Raised(Exception):
    """The followed program raised an exception; its own handlers may catch it."""

    def __init__(self, value: Value) -> None:
        super().__init__(str(value))
        self.value = value


class Following(Protocol):
    """The followed frame, as values see it: it makes values, adds nodes to the graph, and guards assumptions."""

    session: Capture
    graph: CapturedGraph
    guards: Guards
    effects: Effects
    module_globals: dict

    @property
    def parent(self) -> Following | None:
        """Return the frame that called this one."""

    @property
    def python(self) -> tuple[int, int]:
        """Return the Python version; the texts of its errors differ."""

    def wrap(self, value: Any, source: Source | None) -> Value:
        """Return the tracked value of a real object."""

    def later(self, value: Any, source: Source | None) -> Value:
        """Return a lazy tracked value, guarded when something first uses it."""

    def wrap_constant(self, value: Any) -> Value:
        """Return the tracked value of an object that is the same on every run."""

    def wrap_class(self, kind: type) -> Value:
        """Return a class as value."""

    def wrap_cell(self, cell: CellType, source: Source, name: str) -> Any:
        """Return a real cell."""

    def wrap_constant_attribute(self, owner: Any, name: str, source: Source | None = None) -> Value:
        """Return an attribute of a function or builtin."""

    def wrap_class_attribute(self, owner: Any, name: str) -> Value:
        """Return an attribute of a class that is neither a method nor a descriptor of a known kind."""

    def wrap_module_attribute(self, owner: Any, name: str, found: Any) -> Value:
        """Return an attribute of a module."""

    def class_member(self, kind: type, name: str, found: Any) -> Value | None:
        """Return the function of a class's method, guarded to stay there; None for an attribute that is no method."""

    def guard_member(self, kind: type, name: str, found: Any) -> None:
        """Guard that a class keeps its attribute of this name."""

    def class_source(self, kind: type) -> Source:
        """Return a source for a class."""

    def method_of(self, owner: Value, function: Value) -> Value:
        """Bind a method to its object."""

    def bound_method(self, owner: Value, name: str) -> Value:
        """Return a method of a value with a built-in type; AttributeError if the type has none of that name."""

    def tensor_value(self, node: Any, source: Source | None, kind: type) -> Value:
        """Return the tracked value of a tensor node."""

    def held(self, value: Any) -> Source:
        """Return a source for an object that generated code holds."""

    def held_object(self, value: Value) -> Any:
        """Return the real module, parameter or buffer if the value is guarded by identity; else None."""

    def identity(self, value: Value) -> Value:
        """Evaluate `id(value)`, for an object that the captured program made."""

    def known_id(self, value: Value) -> Value:
        """An `id` as a number, its object guarded by identity; other values as they are."""

    def key(self, value: Value) -> Any:
        """Return the key that a value makes in a dict or set."""

    def key_value(self, key: Any) -> Value:
        """Return the tracked value of a key."""

    def compare(self, symbol: str, left: Value, right: Value) -> Value:
        """Return a comparison."""

    def contains(self, values: Value, wanted: Value) -> Value:
        """Evaluate `wanted in values`."""

    def item(self, owner: Value, key: Value) -> Value:
        """Evaluate `owner[key]`."""

    def next(self, iterator: Value) -> Value | None:
        """Return the next value of an iterator, None at its end."""

    def next_or_raise(self, iterator: Value) -> Value:
        """Evaluate `next(iterator)`."""

    def lazily(self, values: Value) -> Iterator[Value]:
        """Iterate over a value lazily."""

    def drain(self, iterator: Value) -> Iterator[Value]:
        """Return the remaining values of an iterator."""

    def construct(self, kind: Any, args: list[Value], kwargs: dict[str, Value]) -> Value:
        """Call a class."""

    def inline(self, function: Any, args: list[Value], kwargs: dict[str, Value]) -> Value:
        """Follow a call of a function written in Python."""

    def implicit_super(self) -> Value:
        """Evaluate `super()` without arguments."""

    def call_in_graph(self, op: str, target: Any, args: list[Value], kwargs: dict[str, Value]) -> Value:
        """Add a node for a call of the library."""

    def add_call(self, op: str, target: Any, args: tuple, kwargs: dict[str, Any]) -> tuple[Node, Any]:
        """Add a node for a call whose arguments are nodes and plain values; returns it with the fake result."""

    def set_grad_mode(self, enabled: bool) -> None:
        """Switch grad mode in the graph and for the rest of the capture."""

    def leave_to_python(self, reason: str, hint: str) -> NoReturn:
        """Break the graph before the call being followed."""

    def user_places(self) -> list[tuple[str, int, str]]:
        """Return file, line and function of each followed frame, outermost first."""


class Suspended(Protocol):
    """The frame of a generator, followed up to a `yield`."""

    result: Value

    def go_on(self, sent: Value | None, error: Raised | None, is_result: bool) -> Value | None:
        """Follow it to its next `yield`; None if it ends, with its result in `result`."""

    def delegate(self) -> Value | None:
        """Return the iterator of its current `yield from`."""

    def is_guarded(self) -> bool:
        """Return whether it is suspended inside a try or with block."""


class Capture(Protocol):
    """The state shared by all frames of one capture, as values see it."""

    names: InputNames
    sizes: OpenSizes
    module_globals: dict
    generators: list[Value]
    assertions: list[Any]
    open_modes: list[Any]
    build_part: Callable | None
    maps: int
    asked_grad_mode: bool

    def known(self, value: Any) -> Value | None:
        """Return the tracked value of an object that was wrapped before."""

    def remember(self, value: Any, made: Value) -> None:
        """Make `wrap` return this tracked value for an object."""

    def is_key(self, value: Any) -> bool:
        """Return whether an object may be a key of a tracked dict."""

    def key_text(self, key: Any) -> Any:
        """Return a key in the form for expressions: itself, or a name for it."""

    def number_tensor(self, number: Any, kind: dtype, source: NumberTensor) -> Any:
        """Return a graph input for open numbers. A single number becomes a 0-d tensor."""


class CapturedGraph(Protocol):
    """The graph of a capture, as values see it."""

    graph: Graph
    fakes: FakeTensorMode
    environment: ShapeEnv
    symbols: SymbolNodes

    def tensor_value(self, node: Node, fake: Tensor, source: Source | None = None, real: Tensor | None = None) -> Any:
        """Return the tracked value of a tensor. Each tensor has exactly one, so that `x.add_(1) is x`."""

    def attribute(self, tensor: Tensor, name: str, source: Source | None = None) -> Node:
        """Add a `get_attr` node for a tensor that the graph owns."""

    def listing_numbers(self) -> AbstractContextManager[None]:
        """Keep `item()` of integers in the graph for `tolist()`."""

    def known(self, tensor: Tensor) -> Node | None:
        """Return the node of a tensor that is already in the graph."""

    def real(self, node: Node) -> Tensor | None:
        """Return the real tensor of an input or attribute."""

    def replace_value(self, value: Any, by: Any) -> None:
        """Make a tensor of the program stand for the result of another node."""

    def add(self, function: Callable, args: tuple, result: Any) -> Node:
        """Add a node for a function of numbers that are known only when the graph runs."""

    def add_item(self, node: Node) -> Node:
        """Add a node for `item()` of a one-element float tensor."""

    def check(self, relation: Relation, message: str, error: type[Exception] = RuntimeError) -> None:
        """Add a node that raises `error` unless a relation between numbers holds that the graph computes."""


class Effects(Protocol):
    """The program's side effects, as values see them."""

    def mutates(self, value: Value) -> None:
        """Record that the program changes a value."""

    def is_changed(self, value: Value) -> bool:
        """Return whether the program changed an outside value."""

    def global_value(self, module_globals: dict, name: str) -> tuple[bool, Value | None]:
        """Return whether the program wrote a module's variable during capture, and its value; None if it deleted it."""

    def class_attribute(self, kind: type, name: str) -> Value | None:
        """Return the value that the program wrote to a class attribute during capture; None if it wrote none."""

    def store_class_attribute(self, owner: Value, kind: type, name: str, value: Value) -> None:
        """Record that the program sets an attribute of the class `kind`, tracked as `owner`."""

    def call_later(self, function: Callable, *arguments: object) -> None:
        """Call a function after the graph has run. The graph must not depend on it."""


class Writer(Protocol):
    """The writer of the generated code that rebuilds values, as values see it."""

    lines: list[str]
    symbols: Any

    def expression(self, value: Value) -> str:
        """Return an expression that reaches or builds a value. A mutable value is built once."""

    def literal(self, value: Any) -> str:
        """Return a constant."""

    def symbolic(self, number: SymInt) -> str:
        """Return an open integer, computed from input sizes."""

    def key(self, value: Any) -> str:
        """Return a key of a dict or item of a set."""

    def begin(self, value: Value, text: str) -> str:
        """Create an object before its contents, which may refer to it; return its name."""

    def has(self, value: Value) -> bool:
        """Return whether a value was made before."""

    def globals_of(self, namespace: dict) -> str:
        """Return an expression for a module's globals."""

    def output(self, value: Any) -> str:
        """Return the graph's result for a tensor."""

    def result(self, node: Any) -> str:
        """Return the graph's result for a node."""

    def keep(self, text: str) -> str:
        """Assign an expression to a new variable, and return the variable's name."""

    def statement(self, line: str) -> None:
        """Add a statement."""

    def name_of(self, value: Any, hint: str) -> str:
        """Return the name of an object in generated code; `hint` goes into the name."""

    def node_of(self, number: SymInt) -> Any:
        """Return the graph's node of an integer that the graph computes."""

    def is_changed(self, value: Value) -> bool:
        """Return whether the program changed an outside value."""
