"""Python proxies for objects of scripted code: those that `script` makes, and those whose class exists only in an archive."""

from __future__ import annotations

from collections.abc import Callable

from rushlight.jit.runtime.objects import ScriptObject, run_with_executor
from rushlight.jit.runtime.type_checks import to_script

_MAGIC = (
    "__iter__", "__len__", "__neg__", "__mul__", "__contains__", "__add__", "__sub__", "__pow__", "__truediv__", "__mod__",
    "__lt__", "__gt__", "__le__", "__ge__", "__and__", "__or__", "__xor__", "__getitem__", "__setitem__", "__delitem__",
    "__call__", "__int__", "__float__", "__enter__", "__exit__",
)  # fmt: skip


class RecursiveScriptClass:
    """An object of a scripted class: its attributes, its methods, and its special methods. Scripted code receives the object
    itself, so that writes are shared. AttributeError for unknown names."""

    _c: ScriptObject

    def __init__(self, scripted: ScriptObject):
        object.__setattr__(self, "_c", scripted)

    def forward_magic_method(self, method_name: str, *args: object) -> object:
        """Call a special method of the class. NotImplementedError if it is not defined."""
        if self._c.type.find_method(method_name) is None:
            raise NotImplementedError(f"{self._c.type.name} has no method {method_name}")
        return self._c.call(method_name, *args)

    def __getattr__(self, name: str) -> object:
        return getattr(object.__getattribute__(self, "_c"), name)

    def __setattr__(self, name: str, value: object) -> None:
        kind = self._c.type
        if name in kind.properties and kind.properties[name][1] is not None:
            run_with_executor(kind.properties[name][1], [self._c, value])
        elif name not in kind.attributes:
            raise AttributeError(f"an object of '{kind.name}' has no attribute '{name}'")
        else:
            self._c.slots[name] = to_script(value, kind.attributes[name].type)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, RecursiveScriptClass):
            return NotImplemented
        has_method = self._c.type.find_method("__eq__") is not None
        return self._c.call("__eq__", other._c) if has_method else self._c is other._c

    def __hash__(self) -> int:
        return hash(self._c)

    def __repr__(self) -> str:
        return f"<RecursiveScriptClass {self._c.type.name}>"


def _forward_method(name: str) -> Callable[..., object]:
    def forward(self: RecursiveScriptClass, *args: object) -> object:
        return self.forward_magic_method(name, *args)

    forward.__name__ = name
    return forward


for _name in _MAGIC:
    setattr(RecursiveScriptClass, _name, _forward_method(_name))
