"""Names in printed code: of values, unique within a function, and of types, unique within an archive.

In: values with debug names, types with qualified names. Out: identifiers, and types as annotations write them. Types that a
type's text refers to are collected, so that they are printed, too. Stage: jit, printing.
"""

from __future__ import annotations

import keyword
import re
from collections.abc import Callable

from rushlight.jit.function import Function
from rushlight.jit.ir.graph import Value
from rushlight.jit.types.extensions import ExtensionType
from rushlight.jit.types.kinds import (
    ClassType,
    DictType,
    ElementType,
    EnumType,
    InterfaceType,
    TupleType,
    Type,
    UnionType,
)

_RESERVED = frozenset(keyword.kwlist) | frozenset(
    ("torch", "ops", "CONSTANTS", "__torch__", "fork", "annotate", "unchecked_cast", "uninitialized", "getattr", "setattr",
     "inf", "nan", "infj", "nanj", "print", "isinstance", "range", "int", "float", "bool", "complex", "str", "sorted", "_")
)  # fmt: skip
_SUFFIX = re.compile(r"(.*)\.\d+\Z", re.DOTALL)


class LocalNames:
    """The names of one function's values."""

    def __init__(self) -> None:
        self.names: dict[Value, str] = {}
        self.taken: set[str] = set()
        self.counts: dict[str, int] = {}

    def __getitem__(self, value: Value) -> str:
        return self.names[value]

    def __contains__(self, value: Value) -> bool:
        return value in self.names

    def give(self, value: Value) -> str:
        """Name a value: by its debug name, or `_0`, `_1`."""
        self.names[value] = self.fresh(identifier(value.debug_name) if value.has_debug_name else "_")
        return self.names[value]

    def share(self, value: Value, name: str) -> None:
        """Give a value the name of another, as for a loop's variable inside and after it."""
        self.names[value] = name

    def fresh(self, base: str) -> str:
        """Return an unused name."""
        name = base
        while name in self.taken or name in _RESERVED:
            number = self.counts.get(base, 0)
            self.counts[base] = number + 1
            name = f"{base}{number}"
        self.taken.add(name)
        return name


def identifier(debug_name: str) -> str:
    """Return a debug name, without its numeric suffix, as an identifier."""
    suffixed = _SUFFIX.match(debug_name)
    text = re.sub(r"[^A-Za-z0-9_]", "_", suffixed[1] if suffixed else debug_name)
    return text if text[:1].isalpha() or text[:1] == "_" else f"_{text}"


class TypeTable:
    """The classes and functions that a program refers to, with their names in it. `note` is called with each new one."""

    def __init__(self, note: Callable[[object, str], None]):
        self.note = note
        self.names: dict[object, str] = {}
        self.owners: dict[str, object] = {}
        self.classes: set[str] = set()

    def name_of(self, item: Type | Function) -> str:
        """Return the qualified name of a class, NamedTuple, enumeration, interface or function; mangled if the name is
        taken.
        """
        if isinstance(item, ExtensionType):  # torch defines extension types, so archives do not contain them
            return item.name
        key = _named_tuple_key(item)
        if key not in self.names:
            wanted = name = qualified(self._outside_of_class(item.name) if isinstance(item, Function) else item.name)
            count = 0
            while name in self.owners:
                prefix, _, last = wanted.rpartition(".")
                name, count = f"{prefix}.___torch_mangle_{count}.{last}", count + 1
            self.names[key], self.owners[name] = name, item
            self.note(item, name)
        return self.names[key]

    def _outside_of_class(self, name: str) -> str:
        """Return the name of a static method as a function beside its class."""
        prefix, _, last = name.rpartition(".")
        return f"{prefix.rpartition('.')[0]}.{last}" if prefix in self.classes else name

    def text(self, kind: Type) -> str:
        """Return a type as an annotation."""
        if isinstance(kind, ClassType | EnumType | InterfaceType) or is_named_tuple(kind):
            return self.name_of(kind)
        if isinstance(kind, TupleType):  # also the type of several results of one operator
            return f"Tuple[{', '.join(map(self.text, kind.elements)) or '()'}]"
        if isinstance(kind, DictType):
            return f"Dict[{self.text(kind.key)}, {self.text(kind.value)}]"
        if isinstance(kind, UnionType):
            return f"Union[{', '.join(map(self.text, kind.members))}]"
        return f"{kind.word}[{self.text(kind.element)}]" if isinstance(kind, ElementType) else str(kind)


def is_named_tuple(kind: Type) -> bool:
    """Return whether a type is a user's NamedTuple; the results of operators such as `max` are named, too."""
    return isinstance(kind, TupleType) and kind.name is not None and (kind.python_class is not None or kind.name.count(".") > 1)


def _named_tuple_key(item: object) -> object:
    """Return the identity of an item: NamedTuples compare by content, everything else by object."""
    return (item.name, item.fields, item.elements) if isinstance(item, TupleType) else item


def qualified(name: str) -> str:
    """Return a name below `__torch__`, as all names in archives, with valid identifiers as parts."""
    parts = [re.sub(r"\W", "_", part) or "_" for part in name.split(".")]
    parts = [part if not part[:1].isdigit() and not keyword.iskeyword(part) else f"_{part}" for part in parts]
    return ".".join(parts if parts[0] == "__torch__" and len(parts) > 1 else ["__torch__", *parts])
