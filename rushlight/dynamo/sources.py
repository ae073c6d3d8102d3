"""Sources: paths from the frame to values. Guards test the value at a source, and generated code reads it from there.

In: the path that the symbolic interpreter took to a value. Out: a Python expression over the frame's parameters, `__globals`
(the function's globals) and `__closure` (its cells); and the same path in steps, for native guards.
"""

from __future__ import annotations

import builtins

from rushlight.core.algebra import Var

# Kinds of step from one value to the next, numbered as in csrc/guard_tree.c.
VALUE, HELD, ATTRIBUTE, OWN, ITEM, TYPE, CELL, MEMBER, KEY_AT, CALL = range(10)

GLOBALS, CLOSURE = "__globals", "__closure"
STACK_PARAMETER = "__stack"  # a resume function takes the values on the stack under this name, with a number


class Source:
    """A step from another source (`base`, None at the start) to a value. `form` formats the text of the base and the key.

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
        """Return the whole path as an expression, built on first use."""
        if self._text is None:
            self._text = self.form.format(self.base.text, self.key)
        return self._text

    def expression(self) -> str:
        """Return a Python expression for the value."""
        return self.text

    def label(self) -> str:
        """Return the text that an input of the graph is named after."""
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
    """Return a parameter's name in generated code, renamed if it would hide a builtin that the code needs."""
    return f"__of_{name}" if hasattr(builtins, name) else name


class Local(Source):
    """A parameter of the frame."""

    __slots__ = ()
    access = VALUE

    def __init__(self, name: str) -> None:
        super().__init__(None, name, parameter_text(name))


class Held(Source):
    """An object that the generated code holds under a name. The expression is the name, or a call of a weak reference with that
    name."""

    __slots__ = ()
    access = HELD

    def __init__(self, name: str) -> None:
        super().__init__(None, name, name)

    @property
    def name(self) -> str:
        """Return the expression."""
        return self.text


class Attribute(Source):
    """An attribute."""

    __slots__ = ()
    access = ATTRIBUTE
    form = "{}.{}"


class Content(Source):
    """The content of a cell."""

    __slots__ = ()
    access = CELL
    form = "{}.cell_contents"


class OwnDict(Source):
    """An instance's `__dict__`."""

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
    """An item of an object whose class inherits from a built-in container, read by the method of that container `kind`."""

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
    """The result of a function of a value; `key` names the function."""

    __slots__ = ()
    access = CALL
    form = "{1!r}({0})"

    def __init__(self, base: Source, function: str) -> None:
        super().__init__(base, Named(function))


class NumberTensor(Source):
    """Open numbers (`key` is their text) as a tensor. Generated code builds it by the expression `text` over size symbols."""

    __slots__ = ("symbols",)

    def __init__(self, number: str, text: str, symbols: frozenset[Var]) -> None:
        super().__init__(None, number, text)
        self.symbols = symbols

    def label(self) -> str:
        return self.key


class Member(Source):
    """The attribute of a class in its method resolution order, without descriptors."""

    __slots__ = ()
    access = MEMBER
    form = "{}.{}"


class Named:
    """A dict's key that expressions mention by a name."""

    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        self.name = name

    def __repr__(self) -> str:
        return self.name
