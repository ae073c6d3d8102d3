"""Sources: how a value was reached from the frame. Guards test there, and generated code reads from there.

In: the way the symbolic interpreter took to a value. Out: a Python expression over the frame's parameters, `__globals` (the
function's globals) and `__closure` (its cells); and the same way in steps, for native guards.
"""

from __future__ import annotations

import builtins

from rushlight.core.algebra import Var

# How a step leads from the value before to the next, as csrc/guard_tree.c numbers them.
VALUE, HELD, ATTRIBUTE, OWN, ITEM, TYPE, CELL, MEMBER, KEY_AT, CALL = range(10)

GLOBALS, CLOSURE = "__globals", "__closure"


class Source:
    """A step from another source (`base`, None at the beginning) to a value. `form` has places for the text of the base and for
    the key.

    Sources with the same text are equal: they reach the same value.
    """

    __slots__ = ("base", "key", "_text")
    access: int
    form: str

    def __init__(self, base: Source | None, key: object = None, text: str | None = None) -> None:
        self.base = base
        self.key = key
        self._text = text

    @property
    def text(self) -> str:
        """The whole way as an expression. Most sources are never asked for it."""
        if self._text is None:
            self._text = self.form.format(self.base.text, self.key)
        return self._text

    def expression(self) -> str:
        """A Python expression for the value."""
        return self.text

    def label(self) -> str:
        """What an input of the graph is named after."""
        return self.expression()

    def __str__(self) -> str:
        return self.text

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.text})"

    def __eq__(self, other: object) -> bool:
        return self is other or (isinstance(other, Source) and self.text == other.text)

    def __hash__(self) -> int:
        return hash(self.text)


def parameter_text(name: str) -> str:
    """A parameter's name in generated code, where it must not hide a builtin that the code needs."""
    return f"__of_{name}" if hasattr(builtins, name) else name


class Local(Source):
    """A parameter of the frame."""

    __slots__ = ()
    access = VALUE

    def __init__(self, name: str) -> None:
        super().__init__(None, name, parameter_text(name))


class Held(Source):
    """An object that the generated code holds, by an expression for it: a name, or the call of a weak reference."""

    __slots__ = ()
    access = HELD

    def __init__(self, name: str) -> None:
        super().__init__(None, name, name)

    @property
    def name(self) -> str:
        """The expression."""
        return self.text


class Attribute(Source):
    """An attribute."""

    __slots__ = ()
    access = ATTRIBUTE
    form = "{}.{}"


class Content(Source):
    """What a cell holds."""

    __slots__ = ()
    access = CELL
    form = "{}.cell_contents"


class OwnDict(Source):
    """The dict of an instance's own attributes."""

    __slots__ = ()
    access = OWN
    form = "{}.__dict__"


class Item(Source):
    """An item by a constant index or key."""

    __slots__ = ()
    access = ITEM
    form = "{}[{!r}]"


class Global(Item):
    """A global variable of a module, given by an expression for its dict."""

    __slots__ = ()

    def __init__(self, name: str, namespace: str = GLOBALS) -> None:
        super().__init__(Local(GLOBALS) if namespace == GLOBALS else Held(namespace), name)


class PlainItem(Item):
    """An item of an object whose class rests on a built-in container, as that container, `kind`, finds it."""

    __slots__ = ()

    def __init__(self, base: Source, kind: type, key: object) -> None:
        super().__init__(base, key, f"{kind.__name__}.__getitem__({base}, {key!r})")


class FreeVariable(Source):
    """A cell of the called function's closure."""

    __slots__ = ()
    access = ITEM
    form = "{}[{}]"

    def __init__(self, index: int) -> None:
        super().__init__(Local(CLOSURE), index)


class Key(Source):
    """The key at a position of a dict."""

    __slots__ = ()
    access = KEY_AT
    form = "list({})[{}]"


class Kind(Source):
    """The type of a value."""

    __slots__ = ()
    access = TYPE
    form = "type({})"


class Asked(Source):
    """What a function gives for a value; `key` names the function."""

    __slots__ = ()
    access = CALL
    form = "{1!r}({0})"

    def __init__(self, base: Source, function: str) -> None:
        super().__init__(base, Named(function))


class NumberTensor(Source):
    """Open numbers (`key` is their text) as a tensor, which generated code makes by the expression `text` of size symbols."""

    __slots__ = ("symbols",)

    def __init__(self, number: str, text: str, symbols: frozenset[Var]) -> None:
        super().__init__(None, number, text)
        self.symbols = symbols

    def label(self) -> str:
        return self.key


class Member(Source):
    """What a class, or the first of its bases that has it, holds under a name."""

    __slots__ = ()
    access = MEMBER
    form = "{}.{}"


class Named:
    """A dict's key that is mentioned by a name in expressions."""

    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        self.name = name

    def __repr__(self) -> str:
        return self.name
