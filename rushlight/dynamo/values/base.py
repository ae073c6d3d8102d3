"""The base of tracked values: what every kind of value can be asked while a frame is followed.

The protocols say what values ask in turn of the frame, of the capture that it belongs to, and of the writer of generated code.
Values know no more of these.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NoReturn, Protocol

from rushlight.dynamo.errors import GraphBreak
from rushlight.dynamo.sources import Source

if TYPE_CHECKING:
    from collections.abc import Iterator
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
    """What is known of one Python value. `source` says how the frame reaches it; None for values made by the program.

    A method that a kind of value does not answer breaks the graph.
    """

    source: Source | None = None
    is_of_library = False  # whether it is state of this library, which may only be read

    def python_type(self) -> type:
        """The value's type."""
        raise GraphBreak(f"the type of {self} is not known")

    def is_constant(self) -> bool:
        """Whether `constant` may be called."""
        return False

    def constant(self) -> Any:
        """The Python value itself, for values that are known completely and never change."""
        raise GraphBreak(f"{self} is not a constant")

    def operand(self) -> Any:
        """The same for arithmetic and comparisons, where an open integer stays open."""
        return self.constant()

    def snapshot(self) -> Any:
        """The value as it is now, for functions that only look at it."""
        return self.constant()

    def truth(self, tx: Following) -> bool:
        """`bool(value)`."""
        raise GraphBreak(f"the truth value of {self} is not known")

    def length(self, tx: Following) -> Value:
        """`len(value)`."""
        raise GraphBreak(f"the length of {self} is not known")

    def items_of(self, tx: Following) -> list[Value]:
        """All values that iterating yields."""
        raise GraphBreak(f"cannot iterate over {self}")

    def iterator(self, tx: Following) -> Value | None:
        """`iter(value)` for values that are followed while they are iterated over; None for others."""
        return None

    def attribute(self, tx: Following, name: str) -> Value:
        """`value.name`."""
        raise GraphBreak(f"attribute {name!r} of {self}")

    def set_attribute(self, tx: Following, name: str, value: Value) -> None:
        """`value.name = ...`."""
        raise GraphBreak(f"writing attribute {name!r} of {self}")

    def delete_attribute(self, tx: Following, name: str) -> None:
        """`del value.name`."""
        raise GraphBreak(f"deleting attribute {name!r} of {self}")

    def item(self, tx: Following, key: Value) -> Value:
        """`value[key]`."""
        raise GraphBreak(f"an item of {self}")

    def set_item(self, tx: Following, key: Value, value: Value) -> None:
        """`value[key] = ...`."""
        raise GraphBreak(f"writing an item of {self}")

    def delete_item(self, tx: Following, key: Value) -> None:
        """`del value[key]`."""
        raise GraphBreak(f"deleting an item of {self}")

    def call(self, tx: Following, args: list[Value], kwargs: dict[str, Value]) -> Value:
        """`value(*args, **kwargs)`."""
        raise GraphBreak(f"a call of {self}")

    def method(self, tx: Following, name: str, args: list[Value], kwargs: dict[str, Value]) -> Value:
        """`value.name(*args, **kwargs)`."""
        return self.attribute(tx, name).call(tx, args, kwargs)

    def same_as(self, other: Value) -> bool:
        """`value is other`."""
        if self is other:
            return True
        raise GraphBreak(f"whether {self} is {other} is not known")

    def node(self, tx: Following) -> Any:
        """What stands for the value among the arguments of a graph's node."""
        raise GraphBreak(f"{self} cannot be an argument of an operation in the graph")

    def write(self, writer: Writer) -> str:
        """An expression of generated code that makes the value; it may add statements before."""
        raise GraphBreak(f"{self} cannot be made again in generated code")

    def __str__(self) -> str:
        return type(self).__name__ + (f" from {self.source}" if self.source else "")


class PendingValue(Value):
    """A value from outside that nothing has looked at: `make` wraps it, and guards it, at its first use."""

    def __init__(self, make: Callable[[], Value], source: Source, kind: type) -> None:
        self.make = make
        self.source = source
        self.kind = kind
        self.made: Value | None = None

    def realize(self) -> Value:
        """The tracked value."""
        if self.made is None:
            self.made = self.make()
            del self.make  # which may hold this value
        return self.made


def has_finalizer(value: Value | None) -> bool:
    """Whether a value is an object from outside with `__del__`, so that it matters when the program lets go of it."""
    if type(value) is PendingValue:
        return hasattr(value.kind, "__del__")
    return value is not None and value.source is not None and hasattr(getattr(value, "kind", None), "__del__")


def realized(value: Value) -> Value:
    """The value itself for one that was pending."""
    return value.realize() if type(value) is PendingValue else value


def realize_all(values: list[Value]) -> list[Value]:
    """The list, whose pending values have been replaced."""
    for index, value in enumerate(values):
        if type(value) is PendingValue:
            values[index] = value.realize()
    return values


class NullValue(Value):
    """The NULL that the interpreter keeps below a callable on the stack."""

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

# For each type of plain Python values, how a fresh one becomes a tracked value. The modules of the kinds fill it.
MAKERS: dict[type, Callable[[Any], Value]] = {}


class Raised(Exception):
    """The followed program raised an exception, which a handler of its own may catch."""

    def __init__(self, value: Value) -> None:
        super().__init__(str(value))
        self.value = value


class Following(Protocol):
    """The frame that is followed, as values know it: what makes values, adds to the graph, and assumes."""

    session: Capture
    graph: CapturedGraph
    guards: Guards
    effects: Effects
    module_globals: dict

    @property
    def parent(self) -> Following | None:
        """The frame that called this one."""

    @property
    def python(self) -> tuple[int, int]:
        """The version of Python, whose errors' texts differ."""

    def wrap(self, value: Any, source: Source | None) -> Value:
        """The tracked value of a real object."""

    def later(self, value: Any, source: Source | None) -> Value:
        """The same, guarded when something looks at it."""

    def wrap_constant(self, value: Any) -> Value:
        """The tracked value of an object that the frame always finds the same."""

    def wrap_class(self, kind: type) -> Value:
        """A class as value."""

    def wrap_cell(self, cell: CellType, source: Source, name: str) -> Any:
        """A real cell."""

    def wrap_constant_attribute(self, owner: Any, name: str, source: Source | None = None) -> Value:
        """An attribute of a function or builtin."""

    def wrap_class_attribute(self, owner: Any, name: str) -> Value:
        """An attribute of a class that is neither a method nor a descriptor of a known kind."""

    def wrap_module_attribute(self, owner: Any, name: str, found: Any) -> Value:
        """An attribute of a module."""

    def class_member(self, kind: type, name: str, found: Any) -> Value | None:
        """The function of a method that a class has, guarded to stay there; None for what is no method."""

    def guard_member(self, kind: type, name: str, found: Any) -> None:
        """Assume that a class keeps what it has under a name."""

    def class_source(self, kind: type) -> Source:
        """A source for a class."""

    def method_of(self, owner: Value, function: Value) -> Value:
        """A method with its object."""

    def bound_method(self, owner: Value, name: str) -> Value:
        """A method of a value of a built-in type; AttributeError where its type has none of that name."""

    def tensor_value(self, node: Any, source: Source | None, kind: type) -> Value:
        """The tracked value of a tensor with a node."""

    def held(self, value: Any) -> Source:
        """A source for an object that generated code keeps."""

    def held_object(self, value: Value) -> Any:
        """The module, parameter or buffer itself for one that is guarded by its identity; or None."""

    def identity(self, value: Value) -> Value:
        """`id(value)` of an object that only the running program has."""

    def key(self, value: Value) -> Any:
        """A value as key of a dict or item of a set."""

    def key_value(self, key: Any) -> Value:
        """The tracked value of a key."""

    def compare(self, symbol: str, left: Value, right: Value) -> Value:
        """A comparison."""

    def contains(self, values: Value, wanted: Value) -> Value:
        """`wanted in values`."""

    def item(self, owner: Value, key: Value) -> Value:
        """`owner[key]`."""

    def next(self, iterator: Value) -> Value | None:
        """The next value of an iterator, None at its end."""

    def next_or_raise(self, iterator: Value) -> Value:
        """`next(iterator)`."""

    def lazily(self, values: Value) -> Iterator[Value]:
        """The values that iterating yields, taken when they are needed."""

    def drain(self, iterator: Value) -> Iterator[Value]:
        """All further values of an iterator."""

    def construct(self, kind: Any, args: list[Value], kwargs: dict[str, Value]) -> Value:
        """Call a class."""

    def inline(self, function: Any, args: list[Value], kwargs: dict[str, Value]) -> Value:
        """Follow a call of a function written in Python."""

    def implicit_super(self) -> Value:
        """`super()` without arguments."""

    def call_in_graph(self, op: str, target: Any, args: list[Value], kwargs: dict[str, Value]) -> Value:
        """A call of the library as a node."""

    def add_call(self, op: str, target: Any, args: tuple, kwargs: dict[str, Any]) -> tuple[Node, Any]:
        """The node of a call whose arguments are nodes and plain values, and the fake result."""

    def set_grad_mode(self, enabled: bool) -> None:
        """Switch the grad mode from here on, in the graph and for what follows."""

    def leave_to_python(self, reason: str, hint: str) -> NoReturn:
        """End the graph before the call that is being followed."""

    def user_places(self) -> list[tuple[str, int, str]]:
        """The files, lines and functions of the program that are being followed."""


class Suspended(Protocol):
    """The frame of a generator that is followed up to a `yield`."""

    result: Value

    def go_on(self, sent: Value | None, error: Raised | None, is_result: bool) -> Value | None:
        """Follow it to its next `yield`; None where it returns `result`."""

    def delegate(self) -> Value | None:
        """The iterator that it delegates to by `yield from`."""

    def is_guarded(self) -> bool:
        """Whether it is suspended inside of a try or with block."""


class Capture(Protocol):
    """What all frames of one capture share, as values know it."""

    names: InputNames
    sizes: OpenSizes
    module_globals: dict
    generators: list[Value]
    open_modes: list[Any]
    build_part: Callable | None
    maps: int
    asked_grad_mode: bool

    def known(self, value: Any) -> Value | None:
        """The tracked value of an object that was met before."""

    def remember(self, value: Any, made: Value) -> None:
        """Have `wrap` answer with this tracked value for an object."""

    def is_key(self, value: Any) -> bool:
        """Whether an object may be a key of a followed dict."""

    def key_text(self, key: Any) -> Any:
        """A key as it stands in expressions: itself, or a name for it."""

    def number_tensor(self, number: Any, kind: dtype, source: NumberTensor) -> Any:
        """Open numbers as an input of the graph: for a single one, a tensor without dimensions."""


class CapturedGraph(Protocol):
    """The graph of a capture, as values know it."""

    graph: Graph
    fakes: FakeTensorMode
    environment: ShapeEnv
    symbols: SymbolNodes

    def tensor_value(self, node: Node, fake: Tensor, source: Source | None = None, real: Tensor | None = None) -> Any:
        """The tracked value of a tensor: one for each, so that `x.add_(1) is x`."""

    def attribute(self, tensor: Tensor, name: str, source: Source | None = None) -> Node:
        """The `get_attr` node of a tensor that belongs to the graph."""

    def known(self, tensor: Tensor) -> Node | None:
        """The node of a tensor that was met before."""

    def real(self, node: Node) -> Tensor | None:
        """The tensor behind an input or attribute of the graph."""

    def replace_value(self, value: Any, by: Any) -> None:
        """Let a tensor that the program made be what another node computes."""

    def add(self, function: Callable, args: tuple, result: Any) -> Node:
        """A node of a function of numbers that are known when the graph runs."""

    def add_item(self, node: Node) -> Node:
        """The node of the number in a tensor of one element, a float."""

    def check(self, relation: Relation, message: str, error: type[Exception] = RuntimeError) -> None:
        """A node that raises `error` unless a relation of numbers holds which the graph computes."""


class Effects(Protocol):
    """What the program changes, as values know it."""

    def mutates(self, value: Value) -> None:
        """The program changes a value."""

    def is_changed(self, value: Value) -> bool:
        """Whether the program changed a value from outside."""

    def class_attribute(self, kind: type, name: str) -> Value | None:
        """What a class has under a name because the program wrote it there."""

    def store_class_attribute(self, owner: Value, kind: type, name: str, value: Value) -> None:
        """The program sets an attribute of the class `kind`, whose tracked value is `owner`."""

    def call_later(self, function: Callable, *arguments: object) -> None:
        """Call a function that the graph does not depend on after it has run."""


class Writer(Protocol):
    """What writes the generated code that makes values again, as values know it."""

    lines: list[str]
    symbols: Any

    def expression(self, value: Value) -> str:
        """An expression for a value: how it was reached, or how it is made. A mutable value is made once."""

    def literal(self, value: Any) -> str:
        """A constant."""

    def symbolic(self, number: SymInt) -> str:
        """An open integer, computed from the sizes of inputs."""

    def key(self, value: Any) -> str:
        """A key of a dict or item of a set."""

    def begin(self, value: Value, text: str) -> str:
        """Make an object before what it holds, which may hold the object; returns its name."""

    def globals_of(self, namespace: dict) -> str:
        """An expression for a module's globals."""

    def output(self, value: Any) -> str:
        """The result of the graph for a tensor."""

    def result(self, node: Any) -> str:
        """What the graph gives for a node."""

    def keep(self, text: str) -> str:
        """Assign an expression to a variable of its own, and return the variable's name."""

    def statement(self, line: str) -> None:
        """Add a statement."""

    def name_of(self, value: Any, hint: str) -> str:
        """The name by which generated code finds an object; `hint` is what it is like."""

    def node_of(self, number: SymInt) -> Any:
        """The graph's node of an integer that the graph calculates."""

    def is_changed(self, value: Value) -> bool:
        """Whether the program changed a value from outside."""
