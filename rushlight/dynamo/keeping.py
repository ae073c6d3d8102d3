"""Keep captures for other processes: write a capture as plain data, which `kept_frames` reads.

In: a capture of a whole frame. Out: its description, or `CannotKeep` if the capture depends on an object that another process
could not find or identify.
"""

from __future__ import annotations

import marshal
import sys
import types
import weakref
import zlib
from enum import Enum
from typing import Any

import rushlight.core.dtype as dtypes
from rushlight.core.device import device
from rushlight.core.dtype import dtype
from rushlight.core.layout import layout, memory_format
from rushlight.core.tensor import Tensor
from rushlight.core.thread_state import state
from rushlight.dynamo import kept_frames as kept
from rushlight.dynamo.dynamic import History
from rushlight.dynamo.fingerprints import METHODS, PLAIN_KINDS, Fingerprints
from rushlight.dynamo.guard_tree import EMPTY, EQUAL, HAS, IS_TYPE, KEYS, LACKS, LENGTH, NO_ATTRIBUTE, SAME, TENSOR, THREAD
from rushlight.dynamo.guarded_code import GuardedCode
from rushlight.dynamo.guards import Modes
from rushlight.dynamo.kept_frames import BOUND, DEVICE, DTYPE, GLOBALS_OF, MODES, MODULE, PATH, PLAIN, Kept
from rushlight.dynamo.sources import HELD, TYPE, VALUE
from rushlight.nn.modules.global_hooks import call_hooks
from rushlight.nn.modules.module import Module
from rushlight.ops.dispatcher import OpOverload
from rushlight.ops.packet import Namespace, OpOverloadPacket

# id of an object -> its module and name, for objects that have no `__module__` and `__qualname__` to tell it.
_PLACES = {id(value): ("types", name) for name, value in vars(types).items() if isinstance(value, type)} | {
    id(state): ("rushlight.core.thread_state", "state"), id(dtypes._default): ("rushlight.core.dtype", "_default"),
    id(call_hooks): ("rushlight.nn.modules.global_hooks", "call_hooks"),
}  # fmt: skip


class CannotKeep(Exception):
    """The capture only holds in its own process."""


def describe(code: types.CodeType, found: GuardedCode, history: History) -> Kept:
    """Describe the first capture of a function with this code, for `kept_frames.find`. CannotKeep for captures with resume
    functions, with guards in Python, and with objects of kinds that this module does not know."""
    if found.followed is None or history.is_unsteady:
        raise CannotKeep("not a whole frame of fixed sizes")
    return _Describer(code, found).kept(history)


class _Describer:
    def __init__(self, code: types.CodeType, found: GuardedCode) -> None:
        self.code = code
        self.found = found
        self.prints = Fingerprints()
        self.storages: dict[Any, int] = {}
        _, self.slots, self.nodes, self.relations, self.rest, self.sizes = found.followed.tree
        self.given = {name: value for name, value in found.guards.names.items() if name != found.graph_name}
        self.name_of = {id(value): name for name, value in self.given.items()}
        self.objects = {name: _object(value) for name, value in self.given.items()}

    def kept(self, history: History) -> Kept:
        if self.rest is not None or self.sizes is not None:
            raise CannotKeep("guards in Python")
        bindings = self._order_paths(self._paths_to_objects())
        # Bindings come first, because the reader numbers storages in this order.
        names = {name: self._describe_binding(name) for name, *_ in bindings}
        names |= {name: self._describe_by_name(name) for name in self.given if name not in names}
        found, (nodes, unfinished) = self.found, self._nodes()
        stated = [(guard.expression, guard.place, guard.reason, guard.is_native) for guard in found.guards.guards]
        return Kept(
            marshal.dumps(found.code), found.source, found.guards.parameters, names, bindings, nodes, unfinished,
            self.slots, self.relations, self._attributes(), self._codes(), _seen_sizes(history),
            zlib.compress(marshal.dumps(stated)),
        )  # fmt: skip

    # Describe objects

    def _describe_binding(self, name: str) -> tuple:
        """Describe an object that other processes find by a path: its kind, and the properties that guards do not test."""
        value, is_weak = self.objects[name], isinstance(self.given[name], weakref.ref)
        if isinstance(value, Tensor):
            return BOUND, is_weak, kept.A_TENSOR, kept.tensor_looks(value, self.storages)
        if isinstance(value, Module):
            return BOUND, is_weak, kept.A_MODULE, None
        return BOUND, is_weak, kept.OTHER_OBJECT, self.prints.of(value)

    def _describe_by_name(self, name: str) -> tuple:
        """Describe an object that every process finds under the same name."""
        value, is_weak = self.objects[name], isinstance(self.given[name], weakref.ref)
        if _is_plain(value):
            return PLAIN, False, value
        if isinstance(value, dtype):
            return DTYPE, False, value.name
        if type(value) is device:
            return DEVICE, False, str(value)
        if type(value) is Modes and value.autocast is None:
            return MODES, False, value.grad, value.inference, value.dtype.name
        if type(value) in (layout, memory_format):
            return PATH, False, "rushlight", repr(value).removeprefix("torch."), self.prints.of(value)
        if isinstance(value, types.ModuleType) and sys.modules.get(value.__name__) is value:
            return MODULE, False, value.__name__
        if type(value) is dict and vars(sys.modules.get(value.get("__name__"), object)) is value:
            return GLOBALS_OF, False, value["__name__"]
        return PATH, is_weak, *self._path(value)

    def _path(self, value: Any) -> tuple[str, str, str]:
        """Return the module and name by which an object can be imported."""
        if id(value) in _PLACES:
            places = [_PLACES[id(value)]]
        elif isinstance(value, Enum):
            places = [(type(value).__module__, f"{type(value).__qualname__}.{value.name}")]
        elif isinstance(value, Namespace | OpOverloadPacket | OpOverload):
            name = value._namespace if isinstance(value, Namespace) else str(value)
            places = [("rushlight", f"ops.{name}")] if name.partition(".")[0] == "aten" else []
        elif isinstance(value, types.FunctionType | types.BuiltinFunctionType | type):
            places = [(value.__module__, f"{value.__qualname__}{part}") for part in ("", ".fget", ".__func__")]
        else:
            places = []
        for module, name in places:
            if _is_at(value, module, name):
                return module, name, self.prints.of(value)
        raise CannotKeep(f"an object of {type(value).__qualname__}")

    # Find the paths to objects

    def _paths_to_objects(self) -> dict[str, list[tuple]]:
        """Return object name -> all paths by which the guards reach it, for objects that are looked up by place."""
        found: dict[str, list[tuple]] = {}
        # For each ancestor of the current node: the index where its subtree ends, and the path to it.
        above: list[tuple[int, tuple]] = []
        for index, (access, key, after, _, checks) in enumerate(self.nodes):
            while above and above[-1][0] <= index:
                above.pop()
            if above:
                begin, start, steps = above[-1][1]
                way = begin, start, (*steps, (access, key))
            elif access in (VALUE, HELD):
                way = access, self._name_of_object(key) if access == HELD else key, ()
            else:
                raise CannotKeep(f"a guard that begins with {access}")
            if after > index + 1:
                above.append((after, way))
            for kind, expected in checks:
                name = self.name_of.get(id(expected)) if kind in (SAME, IS_TYPE) else None
                if name is not None and _is_looked_up(self.objects[name], self.given[name]):
                    begin, start, steps = way
                    found.setdefault(name, []).append(way if kind == SAME else (begin, start, (*steps, (TYPE, None))))
        return found

    def _order_paths(self, places: dict[str, list[tuple]]) -> tuple:
        """Order the paths so that each comes after the object it starts from."""
        waiting, bindings = dict(places), []
        while waiting:
            ready = {}
            for name, ways in waiting.items():
                way = next((way for way in ways if way[0] == VALUE or way[1] not in waiting), None)
                if way is not None:
                    ready[name] = way
            if not ready:
                raise CannotKeep("objects that are found by way of each other")
            bindings += [(name, *way) for name, way in ready.items()]
            for name in ready:
                del waiting[name]
        return tuple(bindings)

    def _attributes(self) -> dict[str, str]:
        names = {id(value): name for name, value in self.objects.items() if isinstance(value, Tensor)}
        nodes = self.found.graph.graph.nodes if self.found.graph is not None else ()
        tensors = {node.target: getattr(self.found.graph, node.target) for node in nodes if node.op == "get_attr"}
        if any(id(tensor) not in names for tensor in tensors.values()):
            raise CannotKeep("a tensor that no guard finds")
        return {target: names[id(tensor)] for target, tensor in tensors.items()}

    def _codes(self) -> tuple:
        """Return the followed functions whose code no other fingerprint covers."""
        known: set[int] = set()
        for value in (self.code, *self.objects.values()):
            code = value.__code__ if isinstance(value, types.FunctionType) else value
            if isinstance(code, types.CodeType):
                _add_code(code, known)
        found = []
        for code, function in self.found.followed.codes:
            if id(code) in known:
                continue
            if function is None or function.__code__ is not code:
                raise CannotKeep(f"code of {code.co_qualname}")
            found.append(self._path(function))
            _add_code(code, known)
        return tuple(found)

    # Encode guards

    def _nodes(self) -> tuple[tuple, tuple[int, ...]]:
        """Return the guard tree's nodes, and the indices of those that mention objects and must be completed by the reader."""
        nodes, unfinished = [], []
        for index, (access, key, after, slot, checks) in enumerate(self.nodes):
            written = tuple(map(self._describe_check, checks))
            if access != HELD and all(how == kept.UNCHANGED for _, how, _ in written):
                nodes.append((access, _plain_data(key), after, slot, tuple((kind, expected) for kind, _, expected in written)))
            else:
                nodes.append((access, self._name_of_object(key) if access == HELD else _plain_data(key), after, slot, written))
                unfinished.append(index)
        return tuple(nodes), tuple(unfinished)

    def _name_of_object(self, value: Any) -> str:
        """Return the name of an object in the stored capture."""
        name = self.name_of.get(id(value))
        if name is None:
            raise CannotKeep(f"an object of {type(value).__qualname__} without a name")
        return name

    def _describe_check(self, check: tuple) -> tuple:
        """Encode a check of the guard tree."""
        kind, expected = check
        if kind in (SAME, IS_TYPE):
            if expected is None or expected is True or expected is False or expected is ...:
                return kind, kept.UNCHANGED, expected
            if id(expected) in self.name_of:
                return kind, kept.BY_NAME, self.name_of[id(expected)]
            if isinstance(expected, dtype):
                return kind, kept.OF_DTYPE, expected.name
            if isinstance(expected, type) and expected.__module__ == "builtins":
                return kind, kept.BUILTIN, expected.__qualname__
        if kind == TENSOR:
            sizes, strides, of, place, requires_grad = expected
            return kind, kept.FACTS, (tuple(map(int, sizes)), tuple(map(int, strides)), of.name, str(place), requires_grad)
        if kind in (EQUAL, LENGTH, EMPTY, LACKS, HAS, NO_ATTRIBUTE):
            return kind, kept.UNCHANGED, _plain_data(expected)
        if kind in (KEYS, THREAD):
            return kind, kept.UNCHANGED, tuple(map(_plain_data, expected))
        raise CannotKeep(f"a check of {type(expected).__qualname__}")


def _object(value: Any) -> Any:
    return value() if isinstance(value, weakref.ref) else value


def _is_looked_up(value: Any, given: Any) -> bool:
    """Return whether an object belongs to the program and is therefore looked up where the guards found it."""
    return isinstance(value, (Tensor, *METHODS)) or isinstance(given, weakref.ref)


def _is_at(value: Any, module: str, name: str) -> bool:
    """Return whether an object is found under a module and name."""
    try:
        return kept.at_path(module, name) is value
    except (kept.Differs, AttributeError, ImportError):
        return False


def _is_plain(value: Any) -> bool:
    return type(value) in PLAIN_KINDS or (type(value) is tuple and all(map(_is_plain, value)))


def _plain_data(value: Any) -> Any:
    """Return a value of a plain type; CannotKeep for others."""
    if type(value) not in PLAIN_KINDS:
        raise CannotKeep(f"an object of {type(value).__qualname__}")
    return value


def _add_code(code: types.CodeType, known: set[int]) -> None:
    """Add a code object and those nested in it to the known ones."""
    known.add(id(code))
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            _add_code(constant, known)


def _seen_sizes(history: History) -> tuple:
    """Return the sizes and numbers that the capture met."""
    tensors = tuple((place, seen.sizes, seen.strides) for place, seen in history.tensors.items())
    integers = tuple((place, value) for place, (value, _) in history.integers.items())
    return tensors, integers, tuple((place, value) for place, (value, _) in history.numbers.items())
