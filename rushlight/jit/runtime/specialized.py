"""Native forms of a graph, one per kind of arguments, compiled once the interpreter has spent long enough on that kind.

The argument `compile` overrides the registered compiler (`native.py`). `only_whole`: reject native forms with interpreted
parts.

In: arguments, and the interpreter's time for such arguments. Out: the results of native code, or None where the interpreter
must run. Arguments of one kind have the same dtypes, sizes and strides of tensors, and the same types otherwise.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from rushlight.amp.autocast_mode import is_autocast_enabled
from rushlight.core.device import CPU
from rushlight.core.dispatch_key import AUTOGRAD_BITS, CPU_KEYS, DispatchKey
from rushlight.core.dtype import dtype, get_default_dtype
from rushlight.core.tensor import Tensor
from rushlight.core.thread_state import state
from rushlight.jit.ir.graph import Graph
from rushlight.jit.runtime.native import KeptPrograms, Native, NativeCompiler, native_compiler, resumer
from rushlight.jit.runtime.objects import ScriptObject
from rushlight.jit.settings import native_seconds
from rushlight.utils.native import cache

_IGNORED_KEYS = AUTOGRAD_BITS | 1 << DispatchKey.Profiler  # dispatch keys of a thread that do not change how native code runs
_PLAIN = (bool, int, float, str, type(None))
_MAX_KINDS = 16  # kinds that differ only in sizes
_MAX_STATIC_SIZES = 2  # once there is static code for this many sizes, the next code gets dynamic sizes
_MAX_REMEMBERED = 256
_MAX_MISSES = 64  # after this many calls in a row that no kind fits, no further kind is compiled


def spec_of(arguments: Sequence[object], unread: frozenset[int] = frozenset()) -> tuple | None:
    """Return the kind of these arguments; None for kinds without native forms. The contents of lists at the positions `unread`
    are ignored."""
    if state.modes or state.include & ~_IGNORED_KEYS or is_autocast_enabled("cpu"):
        return None
    parts: list[object] = [state.grad_enabled, get_default_dtype()]
    for place, value in enumerate(arguments):
        if place in unread:
            parts.append(type(value))
        elif isinstance(value, Tensor):
            impl = value._impl
            if impl.key_set != CPU_KEYS or impl.device is not CPU or impl.fake:
                return None
            asks = state.grad_enabled and impl.requires_grad
            parts.append((impl.dtype, impl.sizes, impl.strides, asks) if asks else (impl.dtype, impl.sizes, impl.strides))
        elif isinstance(value, _PLAIN):
            parts.append(type(value))
        elif isinstance(value, list | tuple):
            part = _spec_of_items(value)
            if part is None:
                return None
            parts.append(part)
        elif isinstance(value, dict):
            part = spec_of(list(value.values()))
            if part is None:
                return None
            parts.append((*value, part))
        elif isinstance(value, ScriptObject):
            parts.append(value.type)
        else:
            return None
    return tuple(parts)


def _spec_of_items(values: Sequence[object]) -> tuple | None:
    """Return the spec of a list or tuple. Lists of numbers have one spec whatever their length; lists of tensors do not."""
    kinds = set(map(type, values))
    if isinstance(values, list) and len(kinds) == 1 and kinds <= {bool, int, float}:
        return (list, *kinds)
    if kinds == {str}:
        return (type(values), str, len(values))
    inner = spec_of(values)
    return None if inner is None else (type(values), inner)


_WANTED, _CANNOT_KEEP = b"wanted", b"cannot keep"


def _note_of(entry: Path) -> Path:
    """Return the marker file that native code for a kind would pay, or that other processes could not read it."""
    return entry.with_suffix(".wanted")


@dataclass
class Kind:
    """The state of one kind of arguments. `family`: it stands for all sizes of a family's arguments."""

    limit: float = field(default_factory=native_seconds)
    """Seconds of interpretation before native code is made. Cached: reading the environment takes as long as a short run."""
    seconds: float = 0.0
    runs: int = 0
    tried: bool = False
    native: Native | None = None
    misses: int = 0
    family: _Family | None = None
    entry: Path | None = None
    """The cache file of the program for this kind, for other processes."""
    at_once: bool = False
    """Native code is made at the first call with this kind."""


@dataclass
class _Family:
    """Kinds that differ only in sizes: the observed sizes, and, unless code for dynamic sizes has failed, the kind for all
    further sizes."""

    met: list[list[tuple]] = field(default_factory=list)
    kind: Kind | None = None
    is_open: bool = True

    def dims(self) -> dict[object, frozenset[int]]:
        """Return the dimensions that differed, per tensor, in order of arguments."""
        return {place: found for place, rows in enumerate(zip(*self.met, strict=True)) if (found := _differing_columns(rows))}


@dataclass
class _Kinds:
    """All observed kinds by spec, and their families."""

    by_spec: dict[tuple, Kind] = field(default_factory=dict)
    families: dict[object, _Family] = field(default_factory=dict)


def _differing_columns(rows: Sequence[tuple]) -> frozenset[int]:
    return frozenset(dim for dim, sizes in enumerate(zip(*rows, strict=True)) if len(set(sizes)) > 1)


def _sizes_in(arguments: Sequence[object], unread: frozenset[int]) -> list[tuple]:
    """Return the sizes of all tensors among arguments, in order."""
    found: list[tuple] = []
    for place, value in enumerate(arguments):
        if place not in unread:
            _add_sizes(value, found)
    return found


def _add_sizes(value: object, found: list[tuple]) -> None:
    if isinstance(value, Tensor):
        found.append(value._impl.sizes)
    elif isinstance(value, list | tuple | dict):
        for item in value.values() if isinstance(value, dict) else value:
            _add_sizes(item, found)


def _without_sizes(spec: object) -> object:
    """Return a spec with sizes and strides reduced to the rank."""
    if not isinstance(spec, tuple):
        return spec
    if spec and isinstance(spec[0], dtype):
        return spec[0], len(spec[1]), spec[3:]
    return tuple(map(_without_sizes, spec))


class Specialized:
    """The native forms of one graph. It is thread-safe: one thread compiles, the others go on without."""

    def __init__(
        self, graph: Graph, name: str, compile: NativeCompiler | None = None, unread: frozenset[int] = frozenset(),
        only_whole: bool = False, kept: KeptPrograms | None = None, at_once: bool = False,
    ):  # fmt: skip
        """`at_once`: compile native code for the first kind of arguments immediately."""
        self.graph = graph
        self.name = name
        self._compiler = compile
        self._unread = unread
        self._only_whole = only_whole
        self._kept = kept
        self._at_once = at_once
        self._kinds = _Kinds()
        self._lock = threading.Lock()

    def kind_of(self, arguments: Sequence[object]) -> Kind | None:
        """Return the record for such arguments; None if no native code is to be made for them."""
        spec = spec_of(arguments, self._unread)
        if spec is None:
            return None
        kinds = self._kinds_for(arguments)
        found = kinds.by_spec.get(spec)
        if found is None or (found.family is not None and not found.family.is_open):
            found = self._new_kind(kinds, spec, arguments)
        return found

    def _new_kind(self, kinds: _Kinds, spec: tuple, arguments: Sequence[object]) -> Kind | None:
        """Return the kind for new arguments: one of their own, or that of their family."""
        with self._lock:
            family = kinds.families.setdefault(_without_sizes(spec), _Family())
            if family.is_open and len(family.met) >= _MAX_STATIC_SIZES:
                if family.kind is None:
                    family.met.append(_sizes_in(arguments, self._unread))
                    family.kind = Kind(family=family)
                if len(kinds.by_spec) < _MAX_REMEMBERED:
                    kinds.by_spec[spec] = family.kind
                return family.kind
            if len(family.met) >= _MAX_KINDS:
                return None
            family.met.append(_sizes_in(arguments, self._unread))
            entry = None if self._kept is None else self._kept.path(spec)
            found = kinds.by_spec[spec] = Kind(entry=entry, at_once=self._at_once and not kinds.by_spec)
            return found

    def _kinds_for(self, arguments: Sequence[object]) -> _Kinds:
        """Return the compiled kinds for arguments. Native code of a method embeds the attributes of one module, so it is stored
        with the module."""
        owner = arguments[0] if arguments else None
        if isinstance(owner, ScriptObject) and owner.type.is_module:
            return owner.kept_for(self, _Kinds)
        return self._kinds

    def natives(self, arguments: Sequence[object]) -> list[Native]:
        """Return the native forms for the module among the arguments, or for all arguments."""
        kinds = self._kinds_for(arguments).by_spec.values()
        return list(dict.fromkeys(kind.native for kind in kinds if kind.native is not None))

    def run(self, kind: Kind, arguments: Sequence[object]) -> list | None:
        """Return the results of native code, if there is some that applies. The call after the one that reached the threshold
        compiles it, so that a program with a single call does not wait."""
        if kind.entry is not None and not kind.runs and not kind.tried:
            self._resume(kind, arguments)
        if not kind.tried and (kind.at_once or (kind.runs and kind.seconds >= kind.limit)):
            self._compile(kind, arguments)
        native = kind.native
        if native is None:
            return None
        results = native(arguments)
        if results is None:
            kind.misses += 1
            if kind.misses > _MAX_MISSES:
                kind.native = None
        else:
            kind.misses = 0
        return results

    def compile_now(self, kind: Kind, arguments: Sequence[object]) -> bool:
        """Compile native code for such arguments, unless that was tried; returns whether there is some."""
        if not kind.tried:
            self._compile(kind, arguments)
        return kind.native is not None

    def _resume(self, kind: Kind, arguments: Sequence[object]) -> None:
        """Load another process's program for such arguments from the cache. If it is only marked as worthwhile, compile it
        now."""
        if kind.limit == float("inf"):
            return
        content = cache.read(kind.entry)
        if content is None:
            kind.at_once = kind.at_once or cache.read(_note_of(kind.entry)) == _WANTED
            return
        make = resumer()
        if make is not None:
            kind.native = make(content, arguments, self._kept, lambda: self._compile_native(arguments))
            kind.tried = kind.native is not None

    def _compile_native(self, arguments: Sequence[object]) -> Native | None:
        compiler = self._compiler or native_compiler()
        return None if compiler is None else compiler(self.graph, arguments, self.name, None)

    def note(self, kind: Kind, seconds: float) -> None:
        """Add the interpreter's time for such arguments; beyond the threshold, native code is compiled."""
        kind.seconds += seconds
        kind.runs += 1
        if kind.runs == 1 and kind.entry is not None and not kind.tried and kind.seconds >= kind.limit:
            self._note_wanted(kind.entry)

    def _note_wanted(self, entry: Path) -> None:
        if cache.read(_note_of(entry)) is None:
            cache.keep(_note_of(entry), _WANTED)

    def _compile(self, kind: Kind, arguments: Sequence[object]) -> None:
        with self._lock:
            if kind.tried:
                return
            kind.tried = True
        compiler = self._compiler or native_compiler()
        if compiler is not None:
            dims = kind.family.dims() if kind.family is not None else None
            made = compiler(self.graph, arguments, self.name, dims)
            kind.native = None if made is None or (self._only_whole and not made.is_whole) else made
            if kind.native is not None:
                content = kind.native.entry(None if kind.entry is None else self._kept)
                if content is not None:
                    cache.keep(kind.entry, content)
                elif kind.entry is not None:
                    cache.keep(_note_of(kind.entry), _CANNOT_KEEP)
            if kind.native is None and kind.family is not None:
                kind.family.is_open = False
