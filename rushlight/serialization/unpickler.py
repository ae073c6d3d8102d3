"""Unpickler: reads the pickles of checkpoints as data. Nothing that a pickle refers to is ever imported or called.

In: a binary stream, and two functions that resolve globals and persistent ids. Out: one object.

A pickle is a program for a stack machine (Python's `pickletools` documents the instructions). This machine knows the
instructions that plain containers, numbers, strings, tensors and storages need, at protocols 2 to 5. A GLOBAL yields an
inert value of an allow-list; REDUCE accepts only a `Constructor` of that list, which checks its arguments itself. Work
and memory stay proportional to the size of the pickle: every declared length is compared with the bytes that remain,
objects are counted, and dictionary keys are limited to types whose hashing is cheap.
"""

from __future__ import annotations

import pickle
import struct
from collections import Counter, OrderedDict
from collections.abc import Callable
from typing import Any, BinaryIO

from rushlight.quantized.saved import ScriptObject
from rushlight.serialization.errors import UnpicklingError
from rushlight.serialization.keys import KeyChecker

MAX_PICKLE_BYTES = 256 << 20
_MAX_INSTRUCTIONS = 20_000_000
_MAX_CONTAINERS = 5_000_000
_MAX_CONSTRUCTED = 1_000_000
_MAX_INTEGER_BYTES = 4096
_MAX_NAME = 500
_UNCHECKED_READ = 1 << 16
_PYTHON_2 = {"__builtin__": "builtins", "copy_reg": "copyreg"}
"""Python 2 names of modules, which pickles of protocol 2 use."""
_BLOCKED = ("sys", "os", "posix", "nt")
"""Modules whose functions may never be called, even if the user allows them."""
_EXACT_DICTS = (dict, OrderedDict, Counter)

FindGlobal = Callable[[str, str], Any]
PersistentLoad = Callable[[Any], Any]
# Reads one pickle: (file, position where the pickle ends at the latest, function that loads storages) -> object.
ReadPickle = Callable[[BinaryIO, int, PersistentLoad], Any]


_PACKED = "torch.ScriptObject"


class Constructor:
    """A global that may be applied to arguments: `build(machine, args)` checks the arguments and makes the object."""

    __slots__ = ("name", "build")

    def __init__(self, name: str, build: Callable[[Unpickler, tuple], Any]):
        self.name = name
        self.build = build

    def __repr__(self) -> str:
        return f"<{self.name} of a checkpoint>"


class Unpickler:
    """One pickle of `stream`, which ends at or before position `end`. `load` raises UnpicklingError for malformed data.
    `instructions` is the table of instructions, which a dialect of pickles extends.
    """

    instructions: dict[bytes, Callable[[Unpickler], None]]

    def __init__(
        self, stream: BinaryIO, end: int, find_global: FindGlobal, persistent_load: PersistentLoad,
        trusted: dict[str, Any] | None = None, encoding: str = "utf-8",
    ):  # fmt: skip
        self.encoding = encoding
        self.trusted = trusted or {}
        self.trusted_ids = set(map(id, self.trusted.values()))
        self.stream = stream
        self.end = end
        self.find_global = find_global
        self.persistent_load = persistent_load
        self.start = stream.tell()
        self.keys = KeyChecker(UnpicklingError)
        self.stack: list[Any] = []
        self.outer_stacks: list[list[Any]] = []
        self.memo: dict[int, Any] = {}
        self.containers = 0
        self.constructed = 0
        self.copied = 0

    def load(self) -> Any:
        """Return the object; the stream is left after the pickle."""
        read, instructions = self.stream.read, self.instructions
        for _ in range(_MAX_INSTRUCTIONS):
            code = read(1)
            if code == pickle.STOP:
                return self.pop()
            instruction = instructions.get(code)
            if instruction is None:
                self._refuse_instruction(code)
            instruction(self)
        raise UnpicklingError(f"the pickle has more than {_MAX_INSTRUCTIONS} instructions")

    def charge(self, count: int) -> None:
        """Account for `count` elements or bytes that a constructor copies: in total at most the pickle's size."""
        self.copied += count
        if self.copied > self.end - self.start:
            raise UnpicklingError("the pickle copies more than it contains, by using one object over and over")

    def pop(self) -> Any:
        """Return the top of the stack, removed."""
        if not self.stack:
            self.fail("takes a value from an empty stack")
        return self.stack.pop()

    def pop_group(self) -> list[Any]:
        """Return the values above the last mark, removed together with it."""
        if not self.outer_stacks:
            self.fail("uses a mark that was not set")
        group = self.stack
        self.stack = self.outer_stacks.pop()
        return group

    def top(self) -> Any:
        """Return the top of the stack."""
        if not self.stack:
            self.fail("uses a value of an empty stack")
        return self.stack[-1]

    def take(self, length: int) -> bytes:
        """Return exactly `length` bytes; UnpicklingError if the pickle ends before."""
        if length > _UNCHECKED_READ and length > self.end - self.stream.tell():
            self.fail(f"declares {length} bytes where {self.end - self.stream.tell()} are left")
        data = self.stream.read(length)
        if len(data) != length:
            self.fail("ends too early")
        return data

    def number(self, layout: struct.Struct) -> Any:
        """Return a number of fixed size."""
        return layout.unpack(self.take(layout.size))[0]

    def push_container(self, container: Any) -> None:
        """Push a new container, counting it."""
        self.containers += 1
        if self.containers > _MAX_CONTAINERS:
            raise UnpicklingError(f"the pickle makes more than {_MAX_CONTAINERS} containers")
        self.stack.append(container)

    def set_items(self, target: Any, flat: list[Any]) -> None:
        """Store alternating keys and values in a dictionary."""
        if type(target) not in _EXACT_DICTS and not (isinstance(target, dict) and self.is_trusted(type(target))):
            self.fail(f"sets items of a {type(target).__name__}, and only dictionaries have items")
        if len(flat) % 2:
            self.fail("sets a key without a value")
        for position in range(0, len(flat), 2):
            key = flat[position]
            self.keys.check(key)
            target[key] = flat[position + 1]

    def lookup(self, module: str, name: str) -> Any:
        """Return the value of a global."""
        if module in _BLOCKED:
            raise UnpicklingError(
                f"Weights only load failed. Trying to load unsupported GLOBAL {module}.{name} whose module {module} is blocked."
            )
        found = self.trusted.get(f"{_PYTHON_2.get(module, module)}.{name}") if self.trusted else None
        return self.find_global(module, name) if found is None else found

    def is_trusted(self, value: Any) -> bool:
        """Return whether a class or function is trusted by the user."""
        return id(value) in self.trusted_ids

    def fail(self, what: str) -> None:
        """Raise UnpicklingError, saying where in the pickle."""
        raise UnpicklingError(f"the pickle is malformed: near its byte {self.stream.tell() - self.start} it {what}")

    def _refuse_instruction(self, code: bytes) -> None:
        if not code:
            self.fail("ends too early")
        self.fail(f"has the instruction {code!r}, which checkpoints do not use; nothing was executed")


_UINT8, _UINT16, _UINT32, _UINT64 = (struct.Struct(f"<{code}") for code in "BHIQ")
_INT32, _FLOAT64 = struct.Struct("<i"), struct.Struct(">d")


def _protocol(machine: Unpickler) -> None:
    version = machine.number(_UINT8)
    if not 2 <= version <= 5:
        machine.fail(f"declares protocol {version}, and only 2 to 5 are read")


def _frame(machine: Unpickler) -> None:
    machine.number(_UINT64)


def _mark(machine: Unpickler) -> None:
    machine.outer_stacks.append(machine.stack)
    machine.stack = []


def _pop(machine: Unpickler) -> None:
    if machine.stack:
        machine.stack.pop()
    else:
        machine.pop_group()


def _constant(value: Any) -> Callable[[Unpickler], None]:
    return lambda machine: machine.stack.append(value)


def _push_number(layout: struct.Struct) -> Callable[[Unpickler], None]:
    return lambda machine: machine.stack.append(machine.number(layout))


def _text(layout: struct.Struct) -> Callable[[Unpickler], None]:
    def push(machine: Unpickler) -> None:
        raw = machine.take(machine.number(layout))
        try:
            machine.stack.append(raw.decode("utf-8", "surrogatepass"))
        except UnicodeDecodeError:
            machine.fail("has a string that is not UTF-8")

    return push


def _old_text(layout: struct.Struct) -> Callable[[Unpickler], None]:
    """Return a handler that pushes Python 2's `str`: text in some encoding, or bytes."""

    def push(machine: Unpickler) -> None:
        raw = machine.take(machine.number(layout))
        if machine.encoding == "bytes":
            machine.stack.append(raw)
            return
        try:
            machine.stack.append(raw.decode(machine.encoding))
        except UnicodeDecodeError:
            machine.fail(f"has a string that is not in the encoding {machine.encoding}")

    return push


def _bytes(layout: struct.Struct) -> Callable[[Unpickler], None]:
    return lambda machine: machine.stack.append(machine.take(machine.number(layout)))


def _byte_array(machine: Unpickler) -> None:
    machine.stack.append(bytearray(machine.take(machine.number(_UINT64))))


def _long_integer(layout: struct.Struct) -> Callable[[Unpickler], None]:
    def push(machine: Unpickler) -> None:
        length = machine.number(layout)
        if length > _MAX_INTEGER_BYTES:
            machine.fail(f"has an integer of {length} bytes, and at most {_MAX_INTEGER_BYTES} are accepted")
        machine.stack.append(int.from_bytes(machine.take(length), "little", signed=True))

    return push


def _empty(kind: type) -> Callable[[Unpickler], None]:
    return lambda machine: machine.push_container(kind())


def _tuple_of(count: int) -> Callable[[Unpickler], None]:
    def push(machine: Unpickler) -> None:
        if len(machine.stack) < count:
            machine.fail("takes a value from an empty stack")
        values = tuple(machine.stack[-count:])
        del machine.stack[-count:]
        machine.push_container(values)

    return push


def _marked_tuple(machine: Unpickler) -> None:
    group = machine.pop_group()
    machine.push_container(tuple(group))


def _append(machine: Unpickler) -> None:
    _extend(machine, [machine.pop()])


def _appends(machine: Unpickler) -> None:
    _extend(machine, machine.pop_group())


def _extend(machine: Unpickler, values: list[Any]) -> None:
    target = machine.top()
    if type(target) is not list and not (isinstance(target, list) and machine.is_trusted(type(target))):
        machine.fail(f"appends to a {type(target).__name__}, and only lists can grow")
    target.extend(values)


def _set_item(machine: Unpickler) -> None:
    value, key = machine.pop(), machine.pop()
    machine.set_items(machine.top(), [key, value])


def _set_items(machine: Unpickler) -> None:
    group = machine.pop_group()
    machine.set_items(machine.top(), group)


def _add_items(machine: Unpickler) -> None:
    group = machine.pop_group()
    target = machine.top()
    if type(target) is not set:
        machine.fail(f"adds elements to a {type(target).__name__}, and only sets take elements")
    for element in group:
        machine.keys.check(element)
        target.add(element)


def _global(machine: Unpickler) -> None:
    machine.stack.append(machine.lookup(_name_line(machine), _name_line(machine)))


def _name_line(machine: Unpickler) -> str:
    line = machine.stream.readline(_MAX_NAME)
    if not line.endswith(b"\n"):
        machine.fail("names a global without end")
    try:
        return line[:-1].decode("utf-8")
    except UnicodeDecodeError:
        machine.fail("names a global that is not UTF-8")


def _stack_global(machine: Unpickler) -> None:
    name, module = machine.pop(), machine.pop()
    if type(name) is not str or type(module) is not str or len(name) + len(module) > _MAX_NAME:
        machine.fail("names a global by something other than two short strings")
    machine.stack.append(machine.lookup(module, name))


def _reduce(machine: Unpickler) -> None:
    args, function = machine.pop(), machine.pop()
    if machine.is_trusted(function) and type(args) is tuple:
        _count(machine)
        machine.stack.append(function(*args))
        return
    if type(function) is not Constructor:
        machine.fail(f"calls a {type(function).__name__}, which is data; nothing was executed")
    if type(args) is not tuple:
        machine.fail(f"calls {function.name} with a {type(args).__name__} in place of a tuple of arguments")
    _count(machine)
    machine.stack.append(function.build(machine, args))


def _count(machine: Unpickler) -> None:
    machine.constructed += 1
    if machine.constructed > _MAX_CONSTRUCTED:
        raise UnpicklingError(f"the pickle constructs more than {_MAX_CONSTRUCTED} objects")


def _new_object(machine: Unpickler) -> None:
    """Create an object of a trusted class without calling `__init__`, or packed weights."""
    args, kind = machine.pop(), machine.pop()
    if isinstance(kind, Constructor) and kind.name == _PACKED and args == ():
        machine.stack.append(kind.build(machine, args))
        return
    if not machine.is_trusted(kind) or not isinstance(kind, type) or type(args) is not tuple:
        machine.fail("makes an object of something that is no trusted class; nothing was executed")
    _count(machine)
    machine.stack.append(kind.__new__(kind, *args))


def _restore_packed(machine: Unpickler, target: ScriptObject, state: Any) -> None:
    """Restore packed weights from their state, which is checked."""
    try:
        target.__setstate__(state)
    except (RuntimeError, TypeError, ValueError, IndexError, AttributeError) as error:
        raise UnpicklingError(f"packed weights contradict themselves: {error}") from error


def _restore(target: Any, state: Any) -> None:
    """Restore an object of a trusted class from its state, as pickle does."""
    if hasattr(target, "__setstate__"):
        target.__setstate__(state)
        return
    own, slots = state if isinstance(state, tuple) and len(state) == 2 else (state, None)
    target.__dict__.update(own or {})
    for name, value in (slots or {}).items():
        setattr(target, name, value)


def _build(machine: Unpickler) -> None:
    """Restore attributes: of objects of trusted classes, and of a state dict's OrderedDict, which has `_metadata`, and names
    that hide no method."""
    state, target = machine.pop(), machine.top()
    if machine.is_trusted(type(target)):
        _restore(target, state)
        return
    if isinstance(target, ScriptObject):
        _restore_packed(machine, target, state)
        return
    if type(target) is not OrderedDict or type(state) is not dict:
        machine.fail(f"sets the state of a {type(target).__name__}, and only an OrderedDict has any")
    for name, value in state.items():
        if type(name) is not str or hasattr(OrderedDict, name):
            machine.fail("sets an attribute of an OrderedDict that would hide its methods")
        target.__dict__[name] = value


def _persistent_id(machine: Unpickler) -> None:
    machine.stack.append(machine.persistent_load(machine.pop()))


def _memoize_at(layout: struct.Struct) -> Callable[[Unpickler], None]:
    def store(machine: Unpickler) -> None:
        machine.memo[machine.number(layout)] = machine.top()

    return store


def _memoize(machine: Unpickler) -> None:
    machine.memo[len(machine.memo)] = machine.top()


def _get(layout: struct.Struct) -> Callable[[Unpickler], None]:
    def fetch(machine: Unpickler) -> None:
        index = machine.number(layout)
        if index not in machine.memo:
            machine.fail(f"uses entry {index} of its memo, which was never stored")
        machine.stack.append(machine.memo[index])

    return fetch


_INSTRUCTIONS: dict[bytes, Callable[[Unpickler], None]] = {
    pickle.PROTO: _protocol,
    pickle.FRAME: _frame,
    pickle.MARK: _mark,
    pickle.POP: _pop,
    pickle.POP_MARK: Unpickler.pop_group,
    pickle.NONE: _constant(None),
    pickle.NEWTRUE: _constant(True),
    pickle.NEWFALSE: _constant(False),
    pickle.BININT: _push_number(_INT32),
    pickle.BININT1: _push_number(_UINT8),
    pickle.BININT2: _push_number(_UINT16),
    pickle.LONG1: _long_integer(_UINT8),
    pickle.LONG4: _long_integer(_UINT32),
    pickle.BINFLOAT: _push_number(_FLOAT64),
    pickle.BINUNICODE: _text(_UINT32),
    pickle.SHORT_BINUNICODE: _text(_UINT8),
    pickle.BINUNICODE8: _text(_UINT64),
    pickle.BINSTRING: _old_text(_UINT32),
    pickle.SHORT_BINSTRING: _old_text(_UINT8),
    pickle.BINBYTES: _bytes(_UINT32),
    pickle.SHORT_BINBYTES: _bytes(_UINT8),
    pickle.BINBYTES8: _bytes(_UINT64),
    pickle.BYTEARRAY8: _byte_array,
    pickle.EMPTY_LIST: _empty(list),
    pickle.EMPTY_DICT: _empty(dict),
    pickle.EMPTY_SET: _empty(set),
    pickle.EMPTY_TUPLE: _constant(()),
    pickle.TUPLE: _marked_tuple,
    pickle.TUPLE1: _tuple_of(1),
    pickle.TUPLE2: _tuple_of(2),
    pickle.TUPLE3: _tuple_of(3),
    pickle.APPEND: _append,
    pickle.APPENDS: _appends,
    pickle.SETITEM: _set_item,
    pickle.SETITEMS: _set_items,
    pickle.ADDITEMS: _add_items,
    pickle.GLOBAL: _global,
    pickle.STACK_GLOBAL: _stack_global,
    pickle.REDUCE: _reduce,
    pickle.NEWOBJ: _new_object,
    pickle.BUILD: _build,
    pickle.BINPERSID: _persistent_id,
    pickle.BINPUT: _memoize_at(_UINT8),
    pickle.LONG_BINPUT: _memoize_at(_UINT32),
    pickle.MEMOIZE: _memoize,
    pickle.BINGET: _get(_UINT8),
    pickle.LONG_BINGET: _get(_UINT32),
}
Unpickler.instructions = _INSTRUCTIONS
