"""Reuse captures that another process made, if they fit a frame of this one.

In: the description that `keeping.describe` made of a capture, and a frame's values. Out: the same capture bound to the objects
of this process. The program's objects that the capture knew by identity are looked up where its guards found them, all others
by name. Functions, code and classes must have the recorded fingerprints. Finally the guards themselves must hold.
Nothing here imports the code that captures frames: a program whose captures were all kept does not load it.
"""

from __future__ import annotations

import contextlib
import functools
import marshal
import sys
import types
import zlib
from collections.abc import Callable
from importlib import import_module
from typing import Any, NamedTuple

from rushlight._C import GuardTree
from rushlight.core.device import device
from rushlight.core.dtype import from_name
from rushlight.core.tensor import Tensor
from rushlight.dynamo.assumed import Assumed
from rushlight.dynamo.fingerprints import Fingerprints, name_of
from rushlight.dynamo.guarded_code import GuardedCode, renamed
from rushlight.dynamo.sources import ATTRIBUTE, CELL, HELD, ITEM, KEY_AT, MEMBER, OWN, TYPE, VALUE
from rushlight.dynamo.stability import look_up
from rushlight.nn.modules.module import Module

# Ways in which another process finds a named object. The further fields of its description depend on the way.
BOUND, PATH, MODULE, GLOBALS_OF, DTYPE, DEVICE, PLAIN, MODES = range(8)
# Kinds of objects that a process finds by the path in the guards.
A_MODULE, A_TENSOR, OTHER_OBJECT = range(3)


class Kept(NamedTuple):
    """A capture as plain data.

    `names` maps names to descriptions of objects: (how to find it, whether it is referred to weakly, details). `bindings`
    lists, in order, the objects looked up by place: (name, kind of start, start, steps). `nodes` and `relations` make the guard
    tree. `unfinished` holds the indices of nodes that mention objects: their key is a name, and their checks are (kind,
    encoding, encoded value). `attributes` maps the graph's attribute names to names of tensors. `codes` holds places and
    fingerprints of followed functions without a name, `seen` the sizes and numbers that were met, and `stated` the compressed
    texts of the guards.
    """

    code: bytes
    source: str
    parameters: tuple
    names: dict
    bindings: tuple
    nodes: tuple
    unfinished: tuple
    slots: int
    relations: tuple
    attributes: dict
    codes: tuple
    seen: tuple
    stated: bytes


class Differs(Exception):
    """An object of this process does not match the captured one."""


class Found(NamedTuple):
    """A capture that fits: its code and text, guards and their check, and the graph's tensors."""

    code: types.CodeType
    source: str
    globals: dict[str, Any]
    check: GuardTree
    guards: KeptGuards
    attributes: dict[str, Tensor]

    def guarded(self, graph: Any, run: Callable) -> GuardedCode:
        """Complete the capture with `run`, which runs its graph."""
        code, source, name = renamed(self.code, self.source)
        return GuardedCode(code, {**self.globals, name: run}, self.check, self.guards, source, graph, graph_name=name)


class _Stated(NamedTuple):
    """An assumption (see `assumed.Stated`)."""

    expression: str
    place: str | None
    reason: str
    is_native: bool


class KeptGuards(Assumed):
    """The guards of a kept capture. Their texts, and objects that only these mention, are loaded on first use."""

    def __init__(
        self, kept: Kept, free_variables: tuple[str, ...], names: dict[str, Any], died: list[Callable[[], None]]
    ) -> None:  # fmt: skip
        self.parameters = kept.parameters
        self.free_variables = free_variables
        self.died = died
        self._stated = kept.stated
        self._known = names
        self._others = {name: given for name, given in kept.names.items() if name not in names}

    @functools.cached_property
    def guards(self) -> list[_Stated]:
        """Return the assumptions, in their order."""
        return [_Stated(*stated) for stated in marshal.loads(zlib.decompress(self._stated))]

    @functools.cached_property
    def names(self) -> dict[str, Any]:
        """Return the objects that the expressions mention, except those that have changed since."""
        found, prints = dict(self._known), Fingerprints()
        for name, given in self._others.items():
            with contextlib.suppress(Differs, LookupError, AttributeError):
                found[name] = by_description(prints, *given)
        return found


def find(kept: Kept, frame: Any) -> Found | None:
    """Bind a kept capture to this process; None if anything differs."""
    try:
        return _Finder(kept, frame).found()
    except Exception:  # an object on a path no longer exists, or a property of the program raised
        return None


def by_description(prints: Fingerprints, how: int, is_weak: bool, *details: Any) -> Any:
    """Return an object that is looked up by name. Raises Differs if it does not match."""
    if how == PATH:
        module, name, fingerprint = details
        value = at_path(module, name)
        if prints.of(value) != fingerprint:
            raise Differs(f"{module}.{name}")
        return value
    if how == MODULE:
        return sys.modules[details[0]]
    if how == GLOBALS_OF:
        return vars(sys.modules[details[0]])
    if how == DTYPE:
        return from_name(details[0])
    if how == DEVICE:
        return device(details[0])
    if how == MODES:
        return import_module("rushlight.dynamo.guards").Modes(*details[:2], from_name(details[2]), None)
    return details[0]


def at_path(module: str, name: str) -> Any:
    """Return the object at a dotted name in a module. Modules of this library are imported if needed."""
    owner = sys.modules.get(module) or (import_module(module) if module.startswith("rushlight.") else None)
    if owner is None:
        raise Differs(f"no module {module}")
    return functools.reduce(getattr, name.split("."), owner)


class _Finder:
    """Binds one kept capture to a frame."""

    def __init__(self, kept: Kept, frame: Any) -> None:
        self.kept = kept
        self.prints = Fingerprints()
        self.frame = frame
        self.values = (*frame.f_locals.values(), frame.f_globals, frame.closure or None)
        self.objects: dict[str, Any] = {}
        self.names: dict[str, Any] = {}
        self.storages: dict[Any, int] = {}
        self.assumed = Assumed(kept.parameters)

    def found(self) -> Found:
        """Return the capture, bound to objects that match. Raises Differs, or the error of a path that is gone."""
        kept = self.kept
        for name, begin, start, steps in kept.bindings:
            self._bind(name, self._follow_path(begin, start, steps))
        if len(set(map(id, self.objects.values()))) < len(self.objects):
            raise Differs("two objects are one")
        for module, name, fingerprint in kept.codes:
            if self.prints.of(at_path(module, name)) != fingerprint:
                raise Differs(f"{module}.{name}")
        nodes = list(kept.nodes)
        for index in kept.unfinished:
            access, key, after, slot, checks = nodes[index]
            rebuilt = tuple(map(self._rebuild_check, checks))
            nodes[index] = access, self._name(key) if access == HELD else key, after, slot, rebuilt
        check = GuardTree(len(self.values), kept.slots, tuple(nodes), kept.relations, None, None)
        if not check(*self.values):
            raise Differs("a guard does not hold")
        code = marshal.loads(kept.code)
        mentioned = {name: self._name(name) for name in _names_in(code) if name in kept.names}
        names = {"__builtins__": self.frame.f_builtins, "__name__": self.frame.f_globals.get("__name__"), **mentioned}
        attributes = {own: self.objects[name] for own, name in kept.attributes.items()}
        guards = KeptGuards(kept, self.frame.f_code.co_freevars, self.names, self.assumed.died)
        return Found(code, kept.source, names, check, guards, attributes)

    def _follow_path(self, begin: int, start: Any, steps: tuple) -> Any:
        """Follow a path from a parameter or a named object to a value."""
        value = self.values[start] if begin == VALUE else self._object(start)
        for access, key in steps:
            if access == ITEM:
                value = value[key]
            elif access == OWN:
                value = value.__dict__
            elif access == ATTRIBUTE:
                value = getattr(value, key)
            elif access == MEMBER:
                value = look_up(value, key)
            elif access == TYPE:
                value = type(value)
            elif access == CELL:
                value = value.cell_contents
            elif access == KEY_AT:
                value = list(value)[key]
        return value

    def _bind(self, name: str, value: Any) -> None:
        """Bind a name to an object of this process, after checking the properties that guards do not test."""
        _, is_weak, kind, details = self.kept.names[name]
        if kind == A_TENSOR:
            looks = tensor_looks(value, self.storages) if isinstance(value, Tensor) else None
        else:
            looks = None if kind == A_MODULE and isinstance(value, Module) else self.prints.of(value)
        if looks != details:
            raise Differs(name)
        self.objects[name] = value
        self.names[name] = self.assumed.refer(value, is_weak)

    def _object(self, name: str) -> Any:
        self._name(name)
        return self.objects[name]

    def _name(self, name: str) -> Any:
        """Return the object of a name."""
        if name not in self.names:
            given = self.kept.names[name]
            if given[0] == BOUND:
                raise Differs(name)
            value = self.objects[name] = by_description(self.prints, *given)
            self.names[name] = self.assumed.refer(value, given[1])
        return self.names[name]

    def _rebuild_check(self, check: tuple) -> tuple:
        """Decode a check of the guard tree."""
        kind, how, expected = check
        if how == UNCHANGED:
            return kind, expected
        if how == BY_NAME:
            return kind, self._name(expected)
        if how == BUILTIN:
            return kind, getattr(sys.modules["builtins"], expected)
        if how == OF_DTYPE:
            return kind, from_name(expected)
        sizes, strides, dtype, place, requires_grad = expected
        return kind, (sizes, strides, from_name(dtype), device(place), requires_grad)


# Encodings of a check's expected value in a stored capture.
UNCHANGED, BY_NAME, BUILTIN, OF_DTYPE, FACTS = range(5)


def tensor_looks(value: Tensor, storages: dict) -> tuple:
    """Return the properties of a tensor that its guards do not test: type, own attributes, storage, offset, history."""
    impl = value._impl
    number = storages.setdefault(impl.storage, len(storages))
    attributes = tuple(sorted(value.__dict__))
    return (
        name_of(type(value)), attributes, number, impl.storage_offset, impl.storage.nbytes, value.is_inference(),
        value.is_leaf,
    )  # fmt: skip


def _names_in(code: types.CodeType) -> set[str]:
    """Return the global names that a code object and those nested in it use."""
    found = set(code.co_names)
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            found |= _names_in(constant)
    return found
