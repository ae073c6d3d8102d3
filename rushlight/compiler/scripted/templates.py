"""Templates describe, as data, the values that a call returns: outputs of native code, values read anew, and containers of
both.


In: templates that `results.py` makes at the end of a capture. Out: `maker` returns a function that makes the value for a call.
Lists, dicts and objects have numbers, so that a container which occurs twice in the template is one object in a call too.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from rushlight.compiler.scripted.readers import Arguments, CannotTell, Reader, from_data, plain
from rushlight.core.tensor import Tensor
from rushlight.jit.operators.numbers import wrapped
from rushlight.jit.runtime.objects import ScriptObject


@dataclass(slots=True)
class Call:
    """One call: native code's outputs, the arguments, and the containers and objects made so far."""

    outputs: Sequence[Tensor]
    arguments: Arguments
    made: dict[int, object] = field(default_factory=dict)


Maker = Callable[[Call], object]


@dataclass(frozen=True, eq=False)
class Output:
    """An output of native code: a tensor, or an int that follows from open sizes and ints."""

    place: int
    is_int: bool = False


@dataclass(frozen=True, eq=False)
class Read:
    """The value of a reader before the call's side effects."""

    reader: Reader


@dataclass(frozen=True, eq=False)
class Value:
    """A value that is the same for all calls."""

    value: object


@dataclass(frozen=True, eq=False)
class Items:
    """A container, or an object of a class with its attributes. `keys` are None for lists and tuples."""

    kind: object
    number: int
    keys: list | None
    items: list[Template]


Template = Output | Read | Value | Items


def maker(template: Template) -> Maker:
    """Return a function that makes the value of a template."""
    return _maker(template, {})


def _maker(template: Template, known: dict[int, Maker]) -> Maker:
    """Return a function that makes the value of a template for a call. `known` maps containers to their makers."""
    if isinstance(template, Output):
        place = template.place
        if template.is_int:
            return lambda call: wrapped(call.outputs[place])
        return lambda call: call.outputs[place]
    if isinstance(template, Read):
        reader = template.reader
        return lambda call: reader(call.arguments)
    if isinstance(template, Value):
        value = template.value
        return lambda call: value
    if isinstance(template.kind, type) and issubclass(template.kind, tuple):
        return _tuple_maker(template, known)
    return known.get(template.number) or _shared_maker(template, known)


def _tuple_maker(template: Items, known: dict[int, Maker]) -> Maker:
    """Return a maker for a tuple or NamedTuple."""
    kind, makers = template.kind, [_maker(item, known) for item in template.items]
    if hasattr(kind, "_fields"):
        return lambda call: kind(*[make(call) for make in makers])
    return lambda call: tuple([make(call) for make in makers])


def _shared_maker(template: Items, known: dict[int, Maker]) -> Maker:
    """Return a maker for a value that has an identity. The value exists before it is filled, since it may contain itself."""
    number, kind = template.number, template.kind
    parts: list[Callable] = []

    def make(call: Call) -> object:
        found = call.made.get(number)
        if found is None:
            found = call.made[number] = kind() if isinstance(kind, type) else ScriptObject(kind)
            parts[0](call, found if isinstance(kind, type) else found.slots)
        return found

    known[number] = make
    parts.append(_filler(template, known))
    return make


def filler(template: Items) -> Callable[[Call, list | dict], None]:
    """Return a function that puts the items of a template into another container."""
    return _filler(template, {})


def _filler(template: Items, known: dict[int, Maker]) -> Callable[[Call, list | dict], None]:
    """Return a function that puts the items of a template into a new container."""
    makers = [_maker(item, known) for item in template.items]
    if template.keys is None:
        return lambda call, target: target.extend([make(call) for make in makers])
    pairs = list(zip(template.keys, makers, strict=True))
    return lambda call, target: target.update([(key, make(call)) for key, make in pairs])


_KINDS = {"list": list, "dict": dict, "tuple": tuple}


def to_data(template: Template) -> tuple:
    """Convert a template to nested tuples of plain values. CannotTell if that is not possible; it is not for objects."""
    if isinstance(template, Output):
        if template.is_int:
            raise CannotTell("an int that follows from open sizes")
        return "output", template.place
    if isinstance(template, Read):
        return "read", template.reader.to_data()
    if isinstance(template, Value):
        return "value", plain(template.value)
    if template.kind not in _KINDS.values() or template.number < 0:
        raise CannotTell(str(template.kind))
    keys = None if template.keys is None else tuple(map(plain, template.keys))
    # The number is negative while the items are converted, to detect a container that contains itself.
    object.__setattr__(template, "number", -1 - template.number)
    try:
        items = tuple(map(to_data, template.items))
    finally:
        object.__setattr__(template, "number", -1 - template.number)
    return "items", template.kind.__name__, template.number, keys, items


def template_of(data: tuple, find: Callable) -> Template:
    """Make the template from the data of `to_data`; LookupError, TypeError or ValueError for any other data."""
    kind, *parts = data
    if kind == "output":
        return Output(int(parts[0]))
    if kind == "read":
        return Read(from_data(parts[0], find))
    if kind == "value":
        return Value(plain(parts[0]))
    if kind == "items":
        keys = None if parts[2] is None else list(map(plain, parts[2]))
        return Items(_KINDS[parts[0]], int(parts[1]), keys, [template_of(item, find) for item in parts[3]])
    raise LookupError(f"no template is called {kind!r}")
