"""Keep the programs of an archive's methods for other processes that load the same archive.


In: a program and the graph that it was compiled from, or the bytes of an entry of the cache folder. Out: bytes, or a program.

An entry names a plan of the cache, attributes by their paths, operators on numbers, and plain values. A forged entry can ask
for
nothing else, and what it says about attributes and sizes is checked against the module and the plan.
"""

from __future__ import annotations

import marshal
from collections.abc import Callable, Sequence
from enum import Enum
from typing import Protocol

import numpy as np

from rushlight.compiler.logs import is_heard
from rushlight.compiler.scripted.program import UNFIT, Form, Inputs, KnownSizes, WholeProgram
from rushlight.compiler.scripted.readers import CannotTell, Held, Path, Reader, from_data, plain
from rushlight.compiler.scripted.templates import Output, template_of, to_data
from rushlight.core.dtype import float32, int8, int32, uint8
from rushlight.core.tensor import Tensor, tensor_from_array
from rushlight.inductor import plan_cache
from rushlight.inductor.compiled import CompiledGraph
from rushlight.jit.runtime.native import Native, Part, set_resumer
from rushlight.jit.runtime.objects import ExtensionObject, ScriptObject
from rushlight.jit.source import NO_SOURCE
from rushlight.quantized.packed import GraphConstants
from rushlight.utils.native import cache

_VERSION = 2
_DIGEST = len(cache.digest(b""))
_MISSES_BEFORE_COMPILING = 3
_BY_VALUE = (float32, int32, uint8, int8)
_MAX_VALUE_SIZE = 256  # elements of a tensor that an entry may contain: enough for a table with a number for each byte
_CONTAINERS = {"list": list, "dict": dict, "tuple": tuple}


class Constants(Protocol):
    """The constants of an archive's code, by number."""

    def name_of_tensor(self, tensor: Tensor) -> int:
        """Return the number of a tensor; ValueError for a tensor that is no constant of the code."""

    def tensor(self, number: int) -> Tensor | None:
        """Return the tensor with a number."""


def to_bytes(form: Form, plan_key: str, held: dict[str, Tensor], constants: Constants) -> bytes | None:
    """Serialize a program; None if another process could not understand it. `held` are the graph's constants."""
    if form.written or form.asking is not None or not isinstance(form.sizes, KnownSizes):
        return None
    try:
        content = marshal.dumps((_VERSION, plan_key, *_describe_form(form, held, constants)))
    except (CannotTell, ValueError):
        return None
    return cache.digest(content).encode() + content


def _describe_form(form: Form, held: dict[str, Tensor], constants: Constants) -> tuple:
    """Describe as plain data all that a program reads, checks and returns."""
    readers = {id(value): ("slot", ("held", path), name) for path, (_, name, value) in zip(form.paths, form.reads, strict=True)}
    readers |= {id(value): read.to_data() for read, value in form.conditions if isinstance(value, Tensor)}
    readers |= _find_derived(form)
    return (
        form.inputs.pattern,
        tuple((target, readers.get(id(value)) or _constant_data(value, constants)) for target, value in held.items()),
        tuple((path, name, _describe_expected(value)) for path, (_, name, value) in zip(form.paths, form.reads, strict=True)),
        tuple((read.to_data(), _describe_expected(value)) for read, value in form.conditions),
        tuple((read.to_data(), _kind_data(kind)) for read, kind in form.kinds),
        tuple((one.to_data(), other.to_data()) for one, other in form.aliases),
        tuple(read.to_data() for read in form.apart),
        tuple(read.to_data() for read in form.late),
        tuple(map(to_data, form.results)),
        tuple((owner.to_data(), name, to_data(value)) for owner, name, value in form.assignments),
        tuple((read.to_data(), grows, to_data(contents)) for read, grows, contents in form.changes),
        form.grad_mode,
    )  # fmt: skip


def _find_derived(form: Form) -> dict[int, tuple]:
    """Find the tensors that the capture derived from packed weights, and the recipes to derive them again."""
    found: dict[int, tuple] = {}
    for path, (_, name, value) in zip(form.paths, form.reads, strict=True):
        if isinstance(value, ExtensionObject) and isinstance(value.held, GraphConstants):
            found |= {id(made): ("derived", path, name, recipe) for recipe, made in value.held.constants.items()}
    return found


def _constant_data(tensor: Tensor, constants: Constants) -> tuple:
    """Serialize a constant of the archive's code, or a small tensor that the capture made from numbers which the entry
    checks."""
    try:
        return ("constant", constants.name_of_tensor(tensor))
    except ValueError:
        impl = tensor._impl
        if impl.dtype not in _BY_VALUE or tensor.numel() > _MAX_VALUE_SIZE or not impl.is_contiguous():
            raise
        return ("elements", impl.dtype.name, tuple(impl.sizes), impl.array.tobytes())


def _tensor_of_elements(name: str, sizes: tuple, data: bytes) -> Tensor:
    kind = next(each for each in _BY_VALUE if each.name == name)
    return tensor_from_array(np.frombuffer(bytearray(data), kind.numpy).reshape(sizes))


def _derive_again(owner: object, name: str, recipe: tuple) -> Tensor:
    """Derive a constant from an object's packed weights by the recipe."""
    held = getattr(owner.slots[name], "held", None)
    if not isinstance(held, GraphConstants):
        raise _NotThere
    return held.constant(*recipe)


def _describe_expected(value: object) -> tuple:
    """Describe as plain data the value that a reader has to find."""
    if isinstance(value, Tensor):
        return ("tensor",)
    if isinstance(value, Enum):
        return ("enum", type(value).__name__, value.name)
    return ("object", value.type.name) if isinstance(value, ScriptObject) else ("value", plain(value))


def _kind_data(kind: object) -> tuple:
    """Describe as plain data the type or shape that a value must have."""
    if isinstance(kind, tuple):
        container, shape = kind
        return container.__name__, tuple(map(plain, shape)) if isinstance(shape, tuple) else shape
    return "object", kind.name


def from_bytes(content: bytes, arguments: Sequence[object], constants: Constants) -> WholeProgram | None:
    """Load the program of an entry for a module and arguments; None if it does not fit them, or was forged."""
    try:
        told, content = content[:_DIGEST], content[_DIGEST:]
        if told != cache.digest(content).encode():
            return None
        version, key, *parts = marshal.loads(content)
        found = plan_cache.load(key) if version == _VERSION and isinstance(key, str) else None
        return None if found is None else _make_program(*found, parts, arguments, constants)
    except (ValueError, TypeError, LookupError, AttributeError, EOFError, RuntimeError, StopIteration):
        return None


class _NotThere(LookupError):
    """The module lacks something that an entry expects."""


def _make_program(plan, library, parts: list, arguments: Sequence[object], constants: Constants) -> WholeProgram:
    """Make the program from the data of an entry. Any invalid data raises."""
    pattern, held, reads, conditions, kinds, aliases, apart, late, results, assignments, changes, grad_mode = parts

    def at(path: Path) -> object:
        value: object = arguments[path[0]]
        for name in path[1:]:
            value = value.slots[name]
        return value

    def reader(data: tuple) -> Reader:
        kind, *rest = data
        if kind == "derived":
            return Held(_derive_again(at(rest[0]), *rest[1:]), ("a packed weight",))
        if kind == "elements":
            return Held(_tensor_of_elements(*rest), ("a constant",))
        return Held(constants.tensor(rest[0]), ("a constant",)) if kind == "constant" else from_data(data, at)

    inputs = Inputs(arguments, frozenset())
    if repr(inputs.pattern) != repr(pattern):  # repr tells 1 from True, == does not
        raise _NotThere
    form = Form(
        inputs, [(at(path), name, _check_found(at(path).slots[name], expected)) for path, name, expected in reads],
        [(reader(data), _check_found(reader(data)(arguments), expected)) for data, expected in conditions],
        [(reader(data), _kind(reader(data)(arguments), kind)) for data, kind in kinds],
        [(reader(one), reader(other)) for one, other in aliases], [reader(data) for data in apart],
        [reader(data) for data in late],
        KnownSizes([(each.dtype, each.size, each.stride) for each in plan.inputs]),
        [template_of(data, at) for data in results],
        [(reader(owner), str(name), template_of(value, at)) for owner, name, value in assignments],
        [(reader(data), bool(grows), template_of(contents, at)) for data, grows, contents in changes], bool(grad_mode),
    )  # fmt: skip
    _check_outputs(form, len(plan.views))
    by_target = {target: reader(data)(arguments) for target, data in held}
    given = {each.target: by_target[each.target] for each in plan.constants}
    if not all(isinstance(each, Tensor) for each in given.values()) or plan.written:
        raise _NotThere
    return WholeProgram(CompiledGraph(plan, library, given, _give_up, _describe_nothing).callable(), form)


def _check_outputs(form: Form, count: int) -> None:
    """Check that templates only name outputs that exist."""
    pending = [*form.results, *(value for *_, value in form.assignments), *(contents for *_, contents in form.changes)]
    while pending:
        template = pending.pop()
        if isinstance(template, Output) and not 0 <= template.place < count:
            raise _NotThere
        pending += getattr(template, "items", ())


def _give_up(*tensors: Tensor) -> tuple:
    raise RuntimeError("native code met an index out of range")  # the interpreter then runs the call


def _describe_nothing() -> tuple:
    raise RuntimeError("the graph of a kept program is not there")


def _check_found(value: object, expected: tuple) -> object:
    """Return the value that is there now, if it is as the entry expects."""
    kind, *rest = expected
    fits = {
        "tensor": lambda: isinstance(value, Tensor),
        "object": lambda: isinstance(value, ScriptObject) and value.type.name == rest[0],
        "enum": lambda: isinstance(value, Enum) and [type(value).__name__, value.name] == rest,
        "value": lambda: type(value) is type(rest[0]) and value == rest[0],
    }[kind]
    if not fits():
        raise _NotThere
    return value


def _kind(value: object, kind: tuple) -> object:
    name, rest = kind
    if name == "object":
        return _check_found(value, ("object", rest)).type
    container = _CONTAINERS[name]
    return container, tuple(rest) if isinstance(rest, tuple) else int(rest)


class Resumed:
    """A kept program, and the programs that are made when it does not fit. `others` makes those at the first need."""

    is_whole = True

    def __init__(self, program: WholeProgram, others: Callable[[], Native | None]):
        self.program = program
        self._make_others = others
        self._others: Native | None = None
        self._misses = 0

    def __call__(self, arguments: Sequence[object]) -> list | None:
        """Return the results; None if the interpreter has to run."""
        results = self.program.attempt(arguments)
        if results is not UNFIT:
            return results
        self._misses += 1
        if self._misses == _MISSES_BEFORE_COMPILING:
            self._others = self._make_others()
        return None if self._others is None else self._others(arguments)

    def entry(self, constants: object) -> None:
        """Return None: the entry exists already."""

    def watch(self, seconds: dict[object, float] | None) -> None:
        """Do nothing: the program is a single part."""

    def parts(self, depth: int = 0) -> list[Part]:
        """Describe the program: a single part."""
        return [Part(depth, "native", len(self.program.form.reads), NO_SOURCE, "", None)]


def resume(
    content: bytes, arguments: Sequence[object], constants: Constants, others: Callable[[], Native | None]
) -> Resumed | None:  # fmt: skip
    """Return the native form of an entry; None while a log or an observer wants to see programs being compiled."""
    program = None if is_heard() else from_bytes(content, arguments, constants)
    return None if program is None else Resumed(program, others)


set_resumer(resume)
