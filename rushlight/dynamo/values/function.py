"""Functions of the user's program, which captures follow into. Cells, bound methods and partials."""

from __future__ import annotations

import functools
import inspect
import types
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from rushlight.dynamo.errors import GraphBreak
from rushlight.dynamo.instructions import PYTHON
from rushlight.dynamo.sources import Attribute, Item, Source
from rushlight.dynamo.stability import MISSING, is_stable, look_up
from rushlight.dynamo.values.base import Value, realize_all, realized
from rushlight.dynamo.values.constant import ConstantValue, raised
from rushlight.dynamo.values.mappings import DictValue
from rushlight.dynamo.values.sequences import SequenceValue

if TYPE_CHECKING:
    from rushlight.dynamo.values.base import Following, Writer


_TAKES_MORE = inspect.CO_VARARGS | inspect.CO_VARKEYWORDS


class CellValue(Value):
    """A closure variable. `content` is None while it is unbound."""

    def __init__(self, content: Value | None, source: Source | None = None, name: str = "") -> None:
        self.content = content
        self.source = source
        self.name = name

    def load(self, name: str) -> Value:
        """Return the variable's value."""
        if self.content is None:
            where = "where it is not associated with a value in enclosing scope"
            raise raised(NameError(f"cannot access free variable '{name}' {where}"))
        self.content = realized(self.content)
        return self.content

    def store(self, tx: Following, value: Value | None) -> None:
        """Set the variable, or with None unbind it."""
        tx.effects.mutates(self)
        self.content = value

    def write(self, writer: Writer) -> str:
        made = self.begin(writer)
        self.fill(writer)
        return made

    def begin(self, writer: Writer) -> str:
        """Make the cell without its content."""
        return writer.begin(self, f"{writer.name_of(types.CellType, 'Cell')}()")

    def fill(self, writer: Writer) -> None:
        """Add the content to a cell that was made without it."""
        if self.content is not None:
            writer.statement(f"{writer.expression(self)}.cell_contents = {writer.expression(self.content)}")

    def write_back(self, writer: Writer, target: str) -> list[str]:
        """Return statements that set the cell `target`."""
        if self.content is None:
            return [f"del {target}.cell_contents"]
        return [f"{target}.cell_contents = {writer.expression(self.content)}"]


class FunctionValue(Value):
    """A function written in Python: its code, globals, defaults and cells.

    `function` is the real one, if there is one. With `by_code` only its code is guarded, not its identity: a program may make a
    new function at each call.
    """

    def __init__(
        self,
        code: types.CodeType,
        module_globals: dict,
        name: str,
        defaults: list[Value],
        keyword_defaults: dict[str, Value],
        cells: list[CellValue],
        source: Source | None = None,
        function: types.FunctionType | None = None,
        by_code: bool = False,
    ) -> None:
        self.code = code
        self.globals = module_globals
        self.name = name
        self.defaults = defaults
        self.keyword_defaults = keyword_defaults
        self.cells = cells
        self.source = source
        self.function = function
        self.by_code = by_code
        self.attributes: dict[str, Value] = {}

    def annotate(self, values: list[Value]) -> None:
        """Set the annotations, given as alternating names and values."""
        if values:
            names = [value.constant() for value in values[::2]]
            self.attributes["__annotations__"] = DictValue(dict(zip(names, values[1::2], strict=True)), dict)

    def python_type(self) -> type:
        return types.FunctionType

    def truth(self, tx: Following) -> bool:
        return True

    def same_as(self, other: Value) -> bool:
        if isinstance(other, FunctionValue) and self.function is not None:
            return self.function is other.function
        return self is other

    def is_constant(self) -> bool:
        return self.function is not None and not self.by_code

    def constant(self) -> Any:
        if not self.is_constant():
            raise GraphBreak(f"{self} is made by the program, so it is no constant")
        return self.function

    def call(self, tx: Following, args: list[Value], kwargs: dict[str, Value]) -> Value:
        return tx.inline(self, args, kwargs)

    def attribute(self, tx: Following, name: str) -> Value:
        if name in self.attributes:
            return self.attributes[name]
        if name in ("__name__", "__qualname__"):
            return ConstantValue(self.name if name == "__qualname__" else self.name.rpartition(".")[2])
        if name == "__code__":
            return ConstantValue(self.code)
        if name == "__get__":
            return tx.bound_method(self, name)
        if self.function is None:
            if name == "__defaults__":
                return SequenceValue(list(self.defaults), tuple) if self.defaults else ConstantValue(None)
            if name == "__kwdefaults__":
                return DictValue(dict(self.keyword_defaults), dict) if self.keyword_defaults else ConstantValue(None)
            if name == "__dict__":
                return DictValue(self.attributes, dict)
            if name == "__annotations__":
                return DictValue({}, dict)
            if name == "__type_params__" and PYTHON >= (3, 12):
                # Functions with type parameters are never followed: defining one breaks the graph.
                return SequenceValue([], tuple)
            if name in ("__closure__", "__globals__"):
                raise GraphBreak(f"attribute {name!r} of {self}")
            if name in ("__doc__", "__module__"):
                found = self.code.co_consts[0] if name == "__doc__" else self.globals.get("__name__")
                return ConstantValue(found if isinstance(found, str) else None)
            raise raised(AttributeError(f"'function' object has no attribute '{name}'"))
        return tx.wrap_constant_attribute(self.function, name, self.source)

    def set_attribute(self, tx: Following, name: str, value: Value) -> None:
        if self.function is not None:
            raise GraphBreak(f"writing attribute {name!r} of function {self.name}")
        self.attributes[name] = value

    def method(self, tx: Following, name: str, args: list[Value], kwargs: dict[str, Value]) -> Value:
        if name == "__call__":
            return self.call(tx, args, kwargs)
        if name == "__get__":
            return BoundMethodValue(args[0], self)
        return super().method(tx, name, args, kwargs)

    def bind(self, args: list[Value], kwargs: dict[str, Value]) -> dict[str, Value]:
        """Bind a call's arguments to the parameters; raises like the call if they do not fit."""
        code, parameters = self.code, self.code.co_varnames
        count, last = code.co_argcount, code.co_argcount + code.co_kwonlyargcount
        found = dict(zip(parameters[:count], args, strict=False))
        if len(args) == count == last and not kwargs and not code.co_flags & _TAKES_MORE:
            return found
        others = {}
        for name, value in kwargs.items():
            if name not in parameters[code.co_posonlyargcount : last]:
                others[name] = value
            elif name in found:
                raise raised(self._argument_error(len(args), kwargs))
            else:
                found[name] = value
        does_fit = len(found) == last or self._take_defaults(found)
        if code.co_flags & inspect.CO_VARARGS:
            found[parameters[last]] = SequenceValue(args[count:], tuple)
            last += 1
        elif len(args) > count:
            does_fit = False
        if code.co_flags & inspect.CO_VARKEYWORDS:
            found[parameters[last]] = DictValue(others, dict)
        elif others:
            does_fit = False
        if not does_fit:
            raise raised(self._argument_error(len(args), kwargs))
        return found

    def _take_defaults(self, found: dict[str, Value]) -> bool:
        """Add defaults for the missing parameters; returns whether all parameters have values then."""
        count = self.code.co_argcount
        last = count + self.code.co_kwonlyargcount
        positional, by_name = self.code.co_varnames[:count], self.code.co_varnames[count:last]
        defaults = dict(zip(reversed(positional), reversed(self.defaults), strict=False))
        defaults |= {name: self.keyword_defaults[name] for name in by_name if name in self.keyword_defaults}
        for name, value in defaults.items():
            found.setdefault(name, value)
        return len(found) == last

    def _argument_error(self, count: int, names: Iterable[str]) -> TypeError:
        """Return CPython's own error for arguments that do not fit, from calling a copy of the function, whose body
        therefore never runs.
        """
        cells = tuple(types.CellType() for _ in self.code.co_freevars)
        defaults = (None,) * len(self.defaults)
        twin = types.FunctionType(self.code, {}, self.name, defaults, cells)
        twin.__qualname__ = self.name
        twin.__kwdefaults__ = dict.fromkeys(self.keyword_defaults)
        try:
            twin(*[None] * count, **dict.fromkeys(names))
        except TypeError as error:
            return error
        raise AssertionError(f"{self} takes these arguments")

    def write(self, writer: Writer) -> str:
        if self.function is not None:
            return writer.name_of(self.function, self.function.__name__)
        kind, code = writer.name_of(types.FunctionType, "Function"), writer.name_of(self.code, "code")
        module_globals = writer.globals_of(self.globals)
        defaults = writer.expression(SequenceValue(self.defaults, tuple)) if self.defaults else "None"
        empty = [cell for cell in self.cells if cell.source is None and not writer.has(cell)]
        for cell in empty:
            cell.begin(writer)  # before their contents, one of which may be this function
        cells = "".join(f"{writer.expression(cell)}, " for cell in self.cells)
        name = self.name.rpartition(".")[2]
        made = writer.begin(self, f"{kind}({code}, {module_globals}, {name!r}, {defaults}, ({cells}))")
        for cell in empty:
            cell.fill(writer)
        if self.keyword_defaults:
            writer.statement(f"{made}.__kwdefaults__ = {writer.expression(DictValue(dict(self.keyword_defaults), dict))}")
        writer.statement(f"{made}.__qualname__ = {self.name!r}")
        for name, value in self.attributes.items():
            writer.statement(f"{made}.{name} = {writer.expression(value)}")
        return made

    def __str__(self) -> str:
        return f"function {self.name}"


def wrap_function(tx: Following, function: types.FunctionType, source: Source | None, by_code: bool) -> FunctionValue:
    """Track a real function. Its identity, or with `by_code` its code, is guarded; defaults and cells are guarded where they
    are used."""
    base = source if source is not None else tx.held(function)
    defaults = [
        tx.later(value, Item(Attribute(base, "__defaults__"), index)) for index, value in enumerate(function.__defaults__ or ())
    ]
    keyword_defaults = {
        name: tx.later(value, Item(Attribute(base, "__kwdefaults__"), name))
        for name, value in (function.__kwdefaults__ or {}).items()
    }
    cells = [
        tx.wrap_cell(cell, Item(Attribute(base, "__closure__"), index), name)
        for index, (cell, name) in enumerate(zip(function.__closure__ or (), function.__code__.co_freevars, strict=True))
    ]
    if by_code:
        _guard_by_code(tx, function, base)
    elif not is_stable(function):
        tx.guards.same_object(Attribute(base, "__code__"), function.__code__)
    code, name = function.__code__, function.__qualname__
    return FunctionValue(
        code, function.__globals__, name, defaults, keyword_defaults, cells, source, function, by_code
    )


def _guard_by_code(tx: Following, function: types.FunctionType, source: Source) -> None:
    guards = tx.guards
    guards.same_type(source, function)
    guards.same_object(Attribute(source, "__code__"), function.__code__)
    guards.globals_of(source, function.__globals__, function.__globals__ is tx.session.module_globals)
    for name in ("__defaults__", "__kwdefaults__"):
        held = getattr(function, name)
        if held:
            guards.same_length(Attribute(source, name), held)
        else:
            guards.empty(Attribute(source, name), "number of defaults")


class BoundMethodValue(Value):
    """A method bound to its object."""

    def __init__(self, owner: Value, function: Value, source: Source | None = None) -> None:
        self.owner = owner
        self.function = function
        self.source = source

    def python_type(self) -> type:
        return types.MethodType

    def truth(self, tx: Following) -> bool:
        return True

    def call(self, tx: Following, args: list[Value], kwargs: dict[str, Value]) -> Value:
        return self.function.call(tx, [self.owner, *args], kwargs)

    def attribute(self, tx: Following, name: str) -> Value:
        if name == "__self__":
            return self.owner
        if name == "__func__":
            return self.function
        return self.function.attribute(tx, name)

    def write(self, writer: Writer) -> str:
        kind = writer.name_of(types.MethodType, "Method")
        return f"{kind}({writer.expression(self.function)}, {writer.expression(self.owner)})"

    def __str__(self) -> str:
        return f"method {self.function} of {self.owner}"


class NamedMethodValue(Value):
    """A bound method of a value with a built-in type: `value.append`."""

    def __init__(self, owner: Value, name: str) -> None:
        self.owner = owner
        self.name = name

    def python_type(self) -> type:
        return types.BuiltinMethodType

    def truth(self, tx: Following) -> bool:
        return True

    def call(self, tx: Following, args: list[Value], kwargs: dict[str, Value]) -> Value:
        return self.owner.method(tx, self.name, args, kwargs)

    def attribute(self, tx: Following, name: str) -> Value:
        if name == "__self__":
            return self.owner
        if name == "__name__":
            return ConstantValue(self.name)
        return super().attribute(tx, name)

    def write(self, writer: Writer) -> str:
        return f"{writer.expression(self.owner)}.{self.name}"

    def __str__(self) -> str:
        return f"method {self.name!r} of {self.owner}"


class PartialValue(Value):
    """`functools.partial`."""

    def __init__(
        self,
        kind: type,
        function: Value,
        args: list[Value],
        kwargs: dict[str, Value],
        source: Source | None = None,
        real: functools.partial | None = None,
    ) -> None:
        self.kind = kind
        self.real = real
        self.function = function
        self.args = args
        self.kwargs = kwargs
        self.source = source
        self.attributes: dict[str, Value] = {}  # attributes that the program set during the capture

    def python_type(self) -> type:
        return self.kind

    def truth(self, tx: Following) -> bool:
        return True

    def call(self, tx: Following, args: list[Value], kwargs: dict[str, Value]) -> Value:
        return self.function.call(tx, [*realize_all(list(self.args)), *args], {**self.kwargs, **kwargs})

    def attribute(self, tx: Following, name: str) -> Value:
        if name == "func":
            return self.function
        if name == "args":
            return SequenceValue(list(self.args), tuple)
        if name == "keywords":
            return DictValue(dict(self.kwargs), dict)
        if name == "__class__":
            return tx.wrap_class(self.kind)
        if self.source is not None:
            return tx.wrap_constant_attribute(self.real, name, self.source)
        if name == "__dict__":
            return DictValue(self.attributes, dict)
        if name in self.attributes:
            return self.attributes[name]
        found = look_up(self.kind, name)
        if found is MISSING:
            raise raised(AttributeError(f"'{self.kind.__module__}.{self.kind.__qualname__}' object has no attribute '{name}'"))
        return tx.bound_method(self, name) if callable(found) else tx.wrap_constant(found)

    def set_attribute(self, tx: Following, name: str, value: Value) -> None:
        if self.source is not None or look_up(self.kind, name) is not MISSING:
            super().set_attribute(tx, name, value)
        self.attributes[name] = value

    def write(self, writer: Writer) -> str:
        args = [writer.expression(value) for value in (self.function, *self.args)]
        args += [f"{name}={writer.expression(value)}" for name, value in self.kwargs.items()]
        text = f"{writer.name_of(self.kind, 'partial')}({', '.join(args)})"
        if not self.attributes:
            return text
        made = writer.begin(self, text)
        for name, value in self.attributes.items():
            writer.statement(f"{made}.{name} = {writer.expression(value)}")
        return made
