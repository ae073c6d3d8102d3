"""The outside of a capture of scripted code: arguments, attributes of objects, numbers that may change.


In: the objects among a call's arguments. Out: records of what was read (`reads`, `conditions`), of what native code takes as
further inputs (`inputs`), and of what a call has to write back (`written`, `containers`).

A capture never changes an object: what its code assigns or appends is recorded here. Attributes of modules that the code never
assigns are constants, with a check that they are still the same objects. Attributes that it assigns are state: tensors become
inputs, numbers become Symbols.
"""

from __future__ import annotations

from dataclasses import dataclass

from rushlight.compiler.scripted.checks import are_apart, shape_of
from rushlight.compiler.scripted.open_sizes import OpenSizes
from rushlight.compiler.scripted.readers import (
    DTYPES,
    Applied,
    Argument,
    Arguments,
    AsTensor,
    Held,
    Item,
    Path,
    Reader,
    Slot,
)
from rushlight.compiler.scripted.recorder import Recorder
from rushlight.compiler.scripted.regions import Unsupported
from rushlight.core.tensor import Tensor
from rushlight.core.thread_state import state
from rushlight.jit.operators.registry import Operator
from rushlight.jit.runtime.objects import ExtensionObject, ScriptObject
from rushlight.ops.modes import SuspendModes
from rushlight.ops.packet import find_packet


@dataclass(frozen=True, eq=False)
class Symbol:
    """A number that may differ between calls: what it is now, how a call calculates it, and on which sources it depends."""

    value: bool | int | float
    read: Reader
    sources: frozenset[tuple]


@dataclass(frozen=True, eq=False)
class Attribute:
    """An attribute of an object, whether that is always the same one, and how a call finds it."""

    owner: ScriptObject
    name: str
    is_fixed: bool
    read_owner: Reader

    @property
    def place(self) -> tuple:
        """Return its key among a program's inputs."""
        return id(self.owner), self.name

    @property
    def read(self) -> Slot:
        """Return the reader of its value."""
        return Slot(self.read_owner, self.name)


@dataclass(frozen=True, eq=False)
class Container:
    """A list or dict from outside: `shadow` is the copy that the capture works on, `before` its first contents."""

    shadow: list | dict
    before: list | dict
    read: Reader
    grows: bool = False
    """Whether the copy holds only items to be appended."""

    @property
    def is_changed(self) -> bool:
        """Return whether the capture changed the copy."""
        if isinstance(self.shadow, list):
            return not _same_items(self.shadow, self.before)
        return list(self.shadow) != list(self.before) or not _same_items([*self.shadow.values()], [*self.before.values()])


def _same_items(one: list, other: list) -> bool:
    return len(one) == len(other) and all(map(lambda a, b: a is b, one, other))


@dataclass(frozen=True)
class Written:
    """What code may change outside of itself: attributes of these names, and containers."""

    names: frozenset[str]
    containers: bool


class World:
    """The outside of one capture. `assigned` names the attributes that its code assigns. `changes_containers` says whether it

    changes lists or dicts that it did not make. `changing` are the sources of numbers that differ from call to call.
    """

    def __init__(
        self, arguments: Arguments, written: Written, changing: frozenset[tuple], sizes: OpenSizes, recorder: Recorder | None
    ):  # fmt: skip
        self.sizes = sizes
        self.recorder = recorder
        self.assigned, self.changes_containers = written.names, written.containers
        self.changing = changing
        self.reads: list[tuple[Attribute, object]] = []
        self.conditions: list[tuple[Reader, object]] = []
        self.inputs: dict[tuple, Reader] = {}
        self.numbers: dict[tuple, tuple[Reader, object]] = {}
        self.containers: dict[int, Container] = {}
        self.written: dict[tuple[int, str], Attribute] = {}
        self.kinds: list[tuple[Reader, object]] = []
        self.aliases: list[tuple[Reader, Reader]] = []
        self._values: dict[tuple[int, str], object] = {}
        self._first: dict[tuple[int, str], object] = {}
        self._finders: dict[int, tuple[ScriptObject, bool, Reader]] = {}
        self._shadows: dict[int, tuple[object, object]] = {}
        self._first_readers: dict[int, Reader] = {}
        self._symbols: dict[tuple, Symbol] = {}
        self._fixed: set[int] = set()
        self._kept: list[Symbol] = []  # keeps the symbols alive, so that their ids stay unique
        self._constants: set[int] = set()
        self._readers: dict[int, Reader] = {}
        self._fakes: dict[int, tuple[Tensor, Tensor, Reader]] = {}
        for index, value in enumerate(arguments):
            if isinstance(value, ScriptObject):
                self._admit_object(value, value.type.is_module, Argument(index))

    def _admit_object(self, found: ScriptObject, is_fixed: bool, read: Reader) -> ScriptObject:
        if id(found) in self._finders:
            if not is_fixed or not self._finders[id(found)][1]:
                self.aliases.append((self._finders[id(found)][2], read))
            return found
        self._finders[id(found)] = (found, is_fixed, Held(found, path_of(read)) if is_fixed else read)
        if not is_fixed:
            self.kinds.append((read, found.type))
        return found

    def is_outside(self, value: object) -> bool:
        """Return whether an object existed before the capture."""
        return id(value) in self._finders

    def reader_of(self, value: ScriptObject) -> Reader:
        """Return the reader of an object that existed before the capture."""
        return self._finders[id(value)][2]

    def apart(self, arguments: Arguments) -> list[Reader]:
        """Return the readers of objects that have to be distinct because one of them is changed.


        These are lists, dicts and objects; the capture assumes that no two of them are the same.
        """
        found: list[Reader] = []
        if any(each.is_changed for each in self.containers.values()):
            found += [each.read for each in self.containers.values()]
        if self.written and not all(is_fixed for _, is_fixed, _ in self._finders.values()):
            found += [read for _, _, read in self._finders.values()]
        if not are_apart(found, arguments):
            raise Unsupported("a list, dict or object that is changed, and reached in several ways")
        return found

    # Read and write attributes

    def get(self, owner: ScriptObject, name: str) -> object:
        """Return the value of an attribute."""
        if id(owner) not in self._finders:  # the captured code made the object
            return owner.slots[name]
        key = (id(owner), name)
        if key not in self._values:
            self._values[key] = self._first[key] = self._read_attribute(self._describe_attribute(owner, name))
        return self._values[key]

    def set(self, owner: ScriptObject, name: str, value: object) -> None:
        """Assign an attribute."""
        if id(owner) not in self._finders:
            owner.slots[name] = value
            return
        # This assignment was found only now: an earlier read may have made the attribute a constant.
        if name not in self.assigned:
            raise Unsupported(f"an assignment to '{name}' through an interface")
        self.written[id(owner), name] = self._describe_attribute(owner, name)
        self._values[id(owner), name] = value

    def _describe_attribute(self, owner: ScriptObject, name: str) -> Attribute:
        _, is_fixed, read = self._finders[id(owner)]
        return Attribute(owner, name, is_fixed, read)

    def _read_attribute(self, attribute: Attribute) -> object:
        value = attribute.owner.slots[attribute.name]
        is_state = attribute.name in self.assigned or not attribute.is_fixed
        if isinstance(value, ScriptObject) and not isinstance(value, ExtensionObject):
            return self._admit_object(value, self._is_fixed(attribute, value), attribute.read)
        if is_state and isinstance(value, Tensor):
            return self._add_input(attribute.place, value, attribute.read)
        if is_state and isinstance(value, bool | int | float):
            return self._make_symbol(attribute.place, value, attribute.read)
        return self._require_same(attribute, value, is_state)

    def _is_fixed(self, attribute: Attribute, value: ScriptObject) -> bool:
        """Record the checks on an object in an attribute; return whether they make it always the same object."""
        if attribute.name in self.assigned:
            self.conditions.append((attribute.read, value))
            return True
        if attribute.is_fixed:
            self.reads.append((attribute, value))
        return attribute.is_fixed

    def _require_same(self, attribute: Attribute, value: object, is_state: bool) -> object:
        """Return a value that every call must find again."""
        if isinstance(value, list | dict | tuple):
            return self._copy_container(attribute.place, value, attribute.read, is_state)
        if is_state:
            self.conditions.append((attribute.read, value))
        else:
            self.reads.append((attribute, value))
            self._note_constant(value, attribute.read)
        return value

    def _note_constant(self, value: object, read: Reader) -> None:
        if isinstance(value, Tensor):
            self._constants.add(id(value._impl))
            self._readers[id(value)] = read
            if id(value._impl) in self._fakes:
                raise Unsupported("a parameter that is also state")

    # Copy containers

    def _copy_container(self, place: tuple, value: list | dict | tuple, read: Reader, is_state: bool) -> object:
        """Copy a container whose elements a call reads, or has to find again."""
        found = self._shadows.get(id(value))
        if found is not None:
            self.aliases.append((self._first_readers[id(value)], read))
            return found[1]
        self._first_readers[id(value)] = read
        self.kinds.append((read, shape_of(value)))
        if isinstance(value, dict):
            made: object = {
                key: self._copy_element((*place, key), item, Item(read, key), is_state) for key, item in value.items()
            }
        else:
            items = [
                self._copy_element((*place, index), item, Item(read, index), is_state) for index, item in enumerate(value)
            ]
            made = items if isinstance(value, list) else _tuple_like(value, items)
        if isinstance(made, list | dict):
            self.containers[id(made)] = Container(made, made.copy(), read)
        self._shadows[id(value)] = (value, made)
        return made

    def _copy_element(self, place: tuple, value: object, read: Reader, is_state: bool) -> object:
        if isinstance(value, Tensor) and (is_state or self.changes_containers):
            return self._add_input(place, value, read)
        if isinstance(value, Tensor):
            self.conditions.append((read, value))
            self._note_constant(value, read)
            return value
        if isinstance(value, list | dict | tuple):
            return self._copy_container(place, value, read, is_state)
        if isinstance(value, ScriptObject):
            if isinstance(value, ExtensionObject):
                raise Unsupported("a list of packed weights")
            return self._admit_object(value, False, read)
        if is_state and isinstance(value, bool | int | float):
            return self._make_symbol(place, value, read)
        self.conditions.append((read, value))
        return value

    def argument_containers(self, given: object, read: Reader) -> None:
        """Record the lists and dicts of an argument, which the capture may change."""
        if isinstance(given, list | dict):
            self.containers[id(given)] = Container(given, given.copy(), read)
        if isinstance(given, list | tuple | dict):
            for key, item in given.items() if isinstance(given, dict) else enumerate(given):
                self.argument_containers(item, Item(read, key))

    def unread_list(self, read: Reader) -> list:
        """Make a stand-in for a list that the code only appends to."""
        made: list = []
        self.containers[id(made)] = Container(made, [], read, grows=True)
        return made

    # Make inputs and Symbols

    def _add_input(self, place: tuple, value: Tensor, read: Reader) -> Tensor:
        """Return the fake tensor for a tensor that becomes an input of native code."""
        key = id(value._impl)
        if key in self._constants:
            raise Unsupported("a parameter that is also state")
        if key in self._fakes:
            _, fake, first = self._fakes[key]
            if first is not read:
                self.aliases.append((first, read))
            return fake
        fake = state.modes[-1].new_input(value, self.sizes.geometry(place, value), f"state{len(self.inputs)}")
        if self.recorder is not None:
            self.recorder.input(fake)
        self._fakes[key] = (value, fake, read)
        self.inputs[place] = read
        return fake

    def _make_symbol(self, source: tuple, value: bool | int | float, read: Reader) -> Symbol:
        if source not in self._symbols:
            self._symbols[source] = Symbol(value, read, frozenset([source]))
            self.numbers[source] = (read, value)
        return self._symbols[source]

    def argument_number(self, index: int, value: bool | int | float) -> Symbol:
        """Return the symbol of a number among the arguments."""
        return self._make_symbol(("argument", index), value, Argument(index))

    def is_constant(self, value: object) -> bool:
        """Return whether a value is a tensor of one element that native code would hold as a constant."""
        if not isinstance(value, Tensor):
            return False
        return not value._impl.fake and value._impl.numel == 1

    def element(self, operator: Operator, tensor: Tensor, value: object) -> object:
        """Return what an operator computes from a one-element constant; every call computes it again."""
        if not isinstance(value, bool | int | float):
            return value
        read = self._readers.get(id(tensor)) or Held(tensor, ("a constant",))
        return self._make_symbol(("constant", id(tensor)), value, Applied(operator, (read,)))

    def is_changing(self, symbol: Symbol) -> bool:
        """Return whether a number is known to differ from call to call."""
        return not symbol.sources.isdisjoint(self.changing)

    def fixed(self, symbol: Symbol) -> bool | int | float:
        """Return a number's value, and make every call check it."""
        if id(symbol) not in self._fixed:
            self._fixed.add(id(symbol))
            self._kept.append(symbol)
            self.conditions.append((symbol.read, symbol.value))
        return symbol.value

    def tensor_of(self, symbol: Symbol) -> Tensor:
        """Make a number a 0-dim tensor that is an input."""
        with SuspendModes():
            made = find_packet("aten::scalar_tensor")(symbol.value, dtype=DTYPES[type(symbol.value)])
        return self._add_input(("number", len(self.inputs)), made, AsTensor(symbol.read, type(symbol.value)))

    def open_integer(self, symbol: Symbol) -> int:
        """Make an int an input of native code, since it is used as a size or index."""
        place = ("int", *sorted(symbol.sources, key=str), id(symbol))
        if place in self.sizes.integers:
            return self.sizes.integers[place]
        made = self.sizes.integer(place, symbol.value)
        if type(made) is int:  # sizes 0 and 1 are always specialized
            return self.fixed(symbol)
        self.inputs[place] = symbol.read
        self._kept.append(symbol)
        return state.modes[-1].new_input(made, None, f"int{len(self.inputs)}")


def path_of(read: Reader) -> Path:
    """Return the path by which an object is reached from an argument."""
    if isinstance(read, Argument):
        return (read.index,)
    if isinstance(read, Held):
        return read.path
    return (*path_of(read.owner), read.name if isinstance(read, Slot) else read.key)


def _tuple_like(value: tuple, items: list) -> tuple:
    return type(value)(*items) if hasattr(value, "_fields") else tuple(items)
