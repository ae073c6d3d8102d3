"""The types of TorchScript: data, with subtyping and joins in `relations.py`.

Two spellings exist. `str(type)` is Python's, as in annotations (`List[int]`); `ir_text` is that of graphs and schemas
(`int[]`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from rushlight.core.dtype import dtype

if TYPE_CHECKING:
    from rushlight.jit.function import Function


@dataclass(frozen=True)
class Type:
    """Base of types."""

    @property
    def ir_text(self) -> str:
        """Return the text in graphs and schemas."""
        return str(self)

    def contained(self) -> tuple[Type, ...]:
        """Return the types that it contains."""
        return ()

    def with_contained(self, types: tuple[Type, ...]) -> Type:
        """Return the same kind of type with other contained types."""
        return self

    def kind(self) -> str:
        """Return the name of its kind, as `ListType`."""
        return type(self).__name__


@dataclass(frozen=True)
class SimpleType(Type):
    """A type with a name and nothing else."""

    name: str

    def __str__(self) -> str:
        return self.name

    def kind(self) -> str:
        """Return the name of its kind."""
        return _KINDS.get(self.name, f"{self.name.capitalize()}Type")


_KINDS = {"str": "StringType", "number": "NumberType", "NoneType": "NoneType", "Device": "DeviceObjType", "Any": "AnyType",
          "Generator": "GeneratorType", "Stream": "StreamObjType"}  # fmt: skip


class NumberType(SimpleType):
    """Any of int, float and complex: `Scalar` in graphs."""

    @property
    def ir_text(self) -> str:
        """Return `Scalar`."""
        return "Scalar"


@dataclass(frozen=True)
class TensorType(Type):
    """A tensor; a profiled or traced one has further known properties."""

    dtype: dtype | None = None
    sizes: tuple[int | None, ...] | None = None
    strides: tuple[int | None, ...] | None = None
    requires_grad: bool | None = None
    device: str | None = None
    undefined: bool | None = None

    @classmethod
    def get(cls) -> TensorType:
        """Return the type of any tensor."""
        return cls()

    def __str__(self) -> str:
        return "Tensor"

    @property
    def ir_text(self) -> str:
        """Return `Tensor`, `FloatTensor` of unknown rank, or `Float(2, 3, strides=[3, 1], requires_grad=0, device=cpu)`."""
        if self.undefined:
            return "AutogradZeroTensor"
        name = "Tensor" if self.dtype is None else self.dtype.scalar_name
        if self.sizes is None and self.dtype is not None:
            return f"{name}Tensor"
        parts = ["*" if size is None else str(size) for size in self.sizes or ()]
        if self.strides:
            parts.append(f"strides=[{', '.join('*' if stride is None else str(stride) for stride in self.strides)}]")
        if self.requires_grad is not None:
            parts.append(f"requires_grad={int(self.requires_grad)}")
        if self.device is not None:
            parts.append(f"device={self.device}")
        return f"{name}({', '.join(parts)})" if parts or self.sizes is not None else name


@dataclass(frozen=True)
class ElementType(Type):
    """Base of types with one element type."""

    element: Type

    word = ""

    def __str__(self) -> str:
        return f"{self.word}[{self.element}]"

    @property
    def ir_text(self) -> str:
        """Return the type in graph text: `Future(int)`."""
        return f"{self.word}({self.element.ir_text})"

    def contained(self) -> tuple[Type, ...]:
        """Return the element type."""
        return (self.element,)

    def with_contained(self, types: tuple[Type, ...]) -> Type:
        """Return the same kind with another element type."""
        return type(self)(*types)


class ListType(ElementType):
    """`List[int]`."""

    word = "List"

    @property
    def ir_text(self) -> str:
        """Return `int[]`."""
        return f"{self.element.ir_text}[]"


class OptionalType(ElementType):
    """`Optional[int]`: the type or None."""

    word = "Optional"

    @property
    def ir_text(self) -> str:
        """Return `int?`."""
        return f"{self.element.ir_text}?"


class FutureType(ElementType):
    """The result of `fork`, and the argument of `wait`."""

    word = "Future"

    @property
    def ir_text(self) -> str:
        """Return `Future[int]`."""
        return f"{self.word}[{self.element.ir_text}]"


class AwaitType(ElementType):
    """A value that is computed on demand."""

    word = "Await"


class RRefType(ElementType):
    """A value on another machine."""

    word = "RRef"


@dataclass(frozen=True)
class DictType(Type):
    """`Dict[str, Tensor]`."""

    key: Type
    value: Type

    def __str__(self) -> str:
        return f"Dict[{self.key}, {self.value}]"

    @property
    def ir_text(self) -> str:
        """Return `Dict(str, Tensor)`."""
        return f"Dict({self.key.ir_text}, {self.value.ir_text})"

    def contained(self) -> tuple[Type, ...]:
        """Return key and value type."""
        return (self.key, self.value)

    def with_contained(self, types: tuple[Type, ...]) -> Type:
        """Return a dict with other types."""
        return DictType(*types)


@dataclass(frozen=True)
class TupleType(Type):
    """`Tuple[int, Tensor]`; a NamedTuple has a qualified name and field names too."""

    elements: tuple[Type, ...]
    name: str | None = None
    fields: tuple[str, ...] = ()
    defaults: tuple[object, ...] = field(default=(), compare=False)
    python_class: type | None = field(default=None, compare=False, repr=False)

    def __str__(self) -> str:
        if self.name is not None:
            return self.name
        return f"Tuple[{', '.join(map(str, self.elements)) or '()'}]"

    @property
    def ir_text(self) -> str:
        """Return `(int, Tensor)`."""
        if self.name is not None:
            given = (*("",) * (len(self.fields) - len(self.defaults)), *(f" = {value}" for value in self.defaults))
            named = zip(self.fields, self.elements, given, strict=True)
            parts = [f"{name} : {kind.ir_text}{default}" for name, kind, default in named]
            return f"NamedTuple({', '.join(parts)})"
        return f"({', '.join(kind.ir_text for kind in self.elements)})"

    def contained(self) -> tuple[Type, ...]:
        """Return the element types."""
        return self.elements

    def with_contained(self, types: tuple[Type, ...]) -> Type:
        """Return a tuple of other types, with the same name and fields."""
        return TupleType(types, self.name, self.fields, self.defaults, self.python_class)

    def kind(self) -> str:
        """Return `TupleType`."""
        return "TupleType"


@dataclass(frozen=True)
class UnionType(Type):
    """`Union[int, str]`; two or more members, in a canonical order, none a subtype of another. Made by `relations.union`."""

    members: tuple[Type, ...]

    def __str__(self) -> str:
        return f"Union[{', '.join(map(str, self.members))}]"

    @property
    def ir_text(self) -> str:
        """Return `Union(int, str)`."""
        return f"Union({', '.join(kind.ir_text for kind in self.members)})"

    def contained(self) -> tuple[Type, ...]:
        """Return the members."""
        return self.members


@dataclass(frozen=True)
class VarType(Type):
    """A type variable of a schema, such as `t`."""

    name: str

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True)
class FunctionType(Type):
    """A function as a value: it has a type of its own."""

    function: Function = field(compare=False)
    name: str = ""

    def __str__(self) -> str:
        return "Function"


@dataclass(frozen=True, eq=False)
class NominalType(Type):
    """Base of types that are equal only to themselves and have a qualified name."""

    name: str

    __eq__ = object.__eq__
    __hash__ = object.__hash__

    def __str__(self) -> str:
        return self.name

    @property
    def short_name(self) -> str:
        """Return the name without its qualification."""
        return self.name.rpartition(".")[2]


@dataclass(frozen=True, eq=False)
class EnumType(NominalType):
    """An enumeration: the names and values of its members, which are of one type."""

    value_type: Type = field(repr=False)
    members: tuple[tuple[str, object], ...] = ()
    python_class: type | None = field(default=None, repr=False)

    @property
    def ir_text(self) -> str:
        """Return `Enum<__torch__.Color>`."""
        return f"Enum<{self.name}>"


@dataclass(frozen=True, eq=False)
class InterfaceType(NominalType):
    """A set of method signatures; every class that has them is a subtype."""

    methods: dict[str, object] = field(default_factory=dict, repr=False)
    is_module: bool = False

    @property
    def ir_text(self) -> str:
        """Return `InterfaceType<Step>`."""
        return f"InterfaceType<{self.name.rpartition('.')[2]}>"


@dataclass(slots=True)
class ClassAttribute:
    """An attribute of a class: its type, and whether it is a parameter or buffer of a module."""

    name: str
    type: Type
    is_parameter: bool = False
    is_buffer: bool = False


@dataclass(frozen=True, eq=False)
class ClassType(NominalType):
    """A class or a module: typed attributes in slots, constants, methods, static methods and properties."""

    is_module: bool = False
    attributes: dict[str, ClassAttribute] = field(default_factory=dict, repr=False)
    constants: dict[str, object] = field(default_factory=dict, repr=False)
    methods: dict[str, Function] = field(default_factory=dict, repr=False)
    static_methods: dict[str, Function] = field(default_factory=dict, repr=False)
    properties: dict[str, tuple[Function, Function | None]] = field(default_factory=dict, repr=False)
    # A module's hooks: "pre_hooks" and "hooks" -> names of methods.
    hooks: dict[str, list[str]] = field(default_factory=dict, repr=False)
    unresolved: dict[str, str] = field(default_factory=dict, repr=False)
    lazy_method: list[Callable[[str], Function | None]] = field(default_factory=list, repr=False)
    annotations: dict[str, Type] = field(default_factory=dict, repr=False)
    python_class: type | None = field(default=None, repr=False)

    def add_attribute(self, name: str, kind: Type, is_parameter: bool = False, is_buffer: bool = False) -> None:
        """Declare an attribute; RuntimeError if there is one of that name with another type."""
        found = self.attributes.get(name)
        if found is not None and found.type != kind:
            raise RuntimeError(f"attribute '{name}' of {self.name} has type {found.type} already, and can't become {kind}")
        self.attributes[name] = ClassAttribute(name, kind, is_parameter, is_buffer)

    def find_method(self, name: str) -> Function | None:
        """Return a method, compiled on demand where the class knows how."""
        found = self.methods.get(name) or self.static_methods.get(name)
        if found is None:
            for compile_method in self.lazy_method:
                found = found or compile_method(name)
        return found


TENSOR = TensorType()
INT = SimpleType("int")
FLOAT = SimpleType("float")
BOOL = SimpleType("bool")
COMPLEX = SimpleType("complex")
STRING = SimpleType("str")
NONE = SimpleType("NoneType")
ANY = SimpleType("Any")
DEVICE = SimpleType("Device")
GENERATOR = SimpleType("Generator")
STREAM = SimpleType("Stream")
STORAGE = SimpleType("Storage")
NUMBER = NumberType("number")
ANY_LIST = SimpleType("list")
ANY_TUPLE = SimpleType("tuple")
ANY_CLASS = SimpleType("AnyClassType")
ANY_ENUM = SimpleType("AnyEnumType")
