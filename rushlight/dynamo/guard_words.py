"""Guards in the program's words, for messages: variables as the program spells them, instead of names in generated code.

In: the expressions of a capture's guards, and the objects that they mention by name. Out: a text for each expression, such as
`model.layers[0].weight is the same Parameter` for `__member_16()._parameters['weight'] is __weight_19()`.
"""

from __future__ import annotations

import re
import types
import weakref
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from rushlight.core.device import device
from rushlight.core.dtype import dtype
from rushlight.dynamo.sources import CLOSURE, GLOBALS

_MENTIONED = re.compile(r"__\w+_\d+(?:\(\))?")
_IDENTITY = re.compile(r"(.+) is (__\w+_\d+(?:\(\))?)")
_PLACES = re.compile(
    rf"{CLOSURE}\[(?P<cell>\d+)\]\.cell_contents|{GLOBALS}\['(?P<own>\w+)'\]|(?P<module>__\w+_\d+)\['(?P<name>\w+)'\]"
    r"|(?P<object>__\w+_\d+(?:\(\))?)|\b__of_(?P<parameter>\w+)|\._(?:modules|parameters|buffers)\['(?P<member>[^']*)'\]"
)
_MODES = re.compile(r"ambient\(\) == (.*)")
_TENSOR = re.compile(r"tensor\((.+), (\(.*?\)), (\(.*?\)), (\S+), (\S+), (True|False)\)")
_DIFFERENT = re.compile(r"len\(\{(.*)\}\) == \d+")
_NO_HOOKS = re.compile(r"not \((\S+)\._\w+_hooks(?: or \S+)*\)")
_MAX_WORD = 40  # characters; a longer repr is replaced by the name that generated code gives the object


class Words:
    """Texts for the guards of one capture. `free_variables` are the names of the captured function's cells, `names` the objects
    that expressions mention, or weak references to them."""

    def __init__(self, expressions: Sequence[str], names: Mapping[str, Any], free_variables: Sequence[str]) -> None:
        self._expressions = expressions
        self._names = names
        self._free_variables = free_variables
        self._places: dict[str, str] = {}
        for expression in expressions:
            found = _IDENTITY.fullmatch(expression)
            if found is not None and not isinstance(self._object(found[2]), type):
                self._places.setdefault(found[2], self._name_places(found[1]))

    def text(self, expression: str) -> str:
        """Return an expression in the program's words."""
        found = _IDENTITY.fullmatch(expression)
        if found is not None and found[2] in self._places:
            return f"{self._name_places(found[1])} is the same {_kind_of(self._object(found[2]))}"
        text = self._name_places(expression)
        for form, write in _FORMS:
            found = form.fullmatch(text)
            if found is not None:
                return write(found)
        return text

    def legend(self) -> list[str]:
        """Return what the names in the expressions stand for, a line each. Names that say it themselves are left out."""
        lines = [f"{CLOSURE}[{index}].cell_contents: {name}" for index, name in enumerate(self._free_variables)]
        mentioned = dict.fromkeys(name for each in self._expressions for name in _MENTIONED.findall(each))
        for name in mentioned:
            plain = name.removesuffix("()")
            text = self._word(name if name in self._places else plain)
            lines += [f"{plain}: {text}"] if plain in self._names and text != _hint(plain) else []
        return lines

    def _name_places(self, expression: str) -> str:
        """Return an expression in which the program's variables and objects have their own names."""
        return _PLACES.sub(self._name, expression)

    def _name(self, found: re.Match) -> str:
        kind, text = found.lastgroup, found[found.lastgroup]
        if kind == "object":
            return self._word(text)
        if kind == "member":
            return f"[{text}]" if text.isdigit() else f".{text}"
        if kind == "cell":
            return self._free_variables[int(text)] if int(text) < len(self._free_variables) else found[0]
        return self._global_variable(found) if kind == "name" else text

    def _global_variable(self, found: re.Match) -> str:
        """A variable of another module than that of the function, or the item of an object."""
        module = self._object(found["module"])
        if type(module) is not dict or "__name__" not in module:
            return f"{self._word(found['module'])}['{found['name']}']"
        return found["name"] if module["__name__"] == "__main__" else f"{module['__name__']}.{found['name']}"

    def _word(self, name: str) -> str:
        """The program's expression for an object, or a description of it."""
        plain = name.removesuffix("()")
        if name in self._places:
            return self._places[name]
        if plain not in self._names:
            return name
        return _describe(self._object(name)) or _hint(plain) + name[len(plain) :]

    def _object(self, name: str) -> Any:
        value = self._names.get(name.removesuffix("()"))
        return value() if isinstance(value, weakref.ref) else value


def _hint(name: str) -> str:
    return re.sub(r"^__|_\d+$", "", name)


def _describe(value: object) -> str:
    """The name of an object in programs; an empty text for objects that have none."""
    if isinstance(value, type | types.ModuleType):
        return value.__name__
    if isinstance(value, types.CodeType):
        return f"the code of {value.co_qualname}"
    if isinstance(value, dtype | device):
        return str(value)
    if isinstance(value, types.FunctionType):
        return "" if (value.__module__ or "").startswith("rushlight.dynamo") else value.__qualname__
    if isinstance(value, int | float | str | bytes | tuple) or value is None:
        text = repr(value)
        return text if len(text) <= _MAX_WORD or hasattr(value, "_fields") else ""
    return ""


def _kind_of(value: object) -> str:
    if isinstance(value, types.FunctionType):
        return "function"
    return "code" if isinstance(value, types.CodeType) else type(value).__name__


def _write_tensor(found: re.Match) -> str:
    name, size, stride, kind, place, requires_grad = found.groups()
    size, stride = (re.sub(r",?\)$", "]", f"[{text[1:]}") for text in (size, stride))
    return f"check_tensor({name}, {kind}, device={place}, requires_grad={requires_grad}, size={size}, stride={stride})"


def _write_different(found: re.Match) -> str:
    return re.sub(r"\bid\(((?:[^()]|\([^()]*\))*)\)", r"\1", found[1]) + " are different objects"


_FORMS: tuple[tuple[re.Pattern, Callable[[re.Match], str]], ...] = (
    (_MODES, lambda found: f"the thread's modes are {found[1]}"),
    (_TENSOR, _write_tensor),
    (_DIFFERENT, _write_different),
    (_NO_HOOKS, lambda found: f"{found[1]} has no hooks"),
)
