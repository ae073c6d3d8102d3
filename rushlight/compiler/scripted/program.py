"""A compiled graph as the executor calls it: checks, inputs, one native call, results and side effects.


In: native code, and what a capture has found about the calls that it serves (`Form`). Out: results, or UNFIT.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

import rushlight._C as _C
from rushlight.autograd.grad_mode import set_grad_enabled
from rushlight.compiler.scripted.checks import are_apart, entry_of, has_kind, same_value
from rushlight.compiler.scripted.readers import FAILURES, Applied, Path, Reader
from rushlight.compiler.scripted.templates import Call, Items, Read, Template, filler, maker
from rushlight.core.device import CPU
from rushlight.core.dispatch_key import CPU_KEYS
from rushlight.core.pytree import LEAF, tree_flatten
from rushlight.core.tensor import Tensor
from rushlight.core.tensor_impl import TensorImpl
from rushlight.core.thread_state import state
from rushlight.inductor.compiled import ConstantChanged
from rushlight.jit.runtime.objects import ScriptObject

UNFIT = object()


class Inputs:
    """The tensors among a call's arguments, without duplicates, in the order of the compiled graph's inputs."""

    def __init__(self, arguments: Sequence[object], unread: frozenset[int]):
        self.positions = [
            index for index, value in enumerate(arguments) if not isinstance(value, ScriptObject) and index not in unread
        ]  # fmt: skip
        self.objects = [(index, value) for index, value in enumerate(arguments) if _is_module(value)]
        self.given = tuple(arguments[index] for index in self.positions)
        leaves, self.spec = tree_flatten(self.given)
        self.is_flat = all(child is LEAF for child in self.spec.children)
        first: dict[int, int] = {}
        self.tensors = [index for index, leaf in enumerate(leaves) if isinstance(leaf, Tensor)]
        firsts = [(index, first.setdefault(id(leaves[index]._impl), index)) for index in self.tensors]
        self.distinct = [index for index, before in firsts if index == before]
        self._repeated = [(index, before) for index, before in firsts if index != before]
        self.leaves = leaves
        numbers = _number_arguments(self.given)
        self.fixed = [
            (index, leaf) for index, leaf in enumerate(leaves) if not isinstance(leaf, Tensor) and index not in numbers
        ]  # fmt: skip

    @property
    def pattern(self) -> tuple:
        """Return the part of the arguments that a program specializes on, except objects, as plain values: the structure, which
        tensors are

        identical, and the other values in containers.
        """
        fixed = tuple((index, value.hex() if isinstance(value, float) else value) for index, value in self.fixed)
        return repr(self.spec), tuple(self._repeated), fixed

    def read(self, arguments: Sequence[object]) -> list[Tensor] | None:
        """Return the tensors of a call, None if its arguments have another structure."""
        for index, value in self.objects:
            if arguments[index] is not value:
                return None
        leaves = [arguments[index] for index in self.positions]
        if not self.is_flat:
            leaves, spec = tree_flatten(tuple(leaves))
            if spec != self.spec:
                return None
        for index, value in self.fixed:
            if not same_value(leaves[index], value):
                return None
        tensors = [leaves[index] for index in self.distinct]
        if len(self.tensors) > 1 and not self._are_distinct(leaves):
            return None
        return tensors

    def _are_distinct(self, leaves: list) -> bool:
        """Return whether the same arguments are identical as in the capture, and no others."""
        if any(leaves[index]._impl is not leaves[before]._impl for index, before in self._repeated):
            return False
        return len(self.distinct) == len({id(leaf._impl) for leaf in leaves if isinstance(leaf, Tensor)})


def _is_module(value: object) -> bool:
    return isinstance(value, ScriptObject) and value.type.is_module


def _number_arguments(given: tuple) -> set[int]:
    """Return the leaf indices of numbers that are arguments themselves, not elements of containers."""
    places, place = set(), 0
    for value in given:
        if isinstance(value, bool | int | float):
            places.add(place)
        place += tree_flatten(value)[1].num_leaves
    return places


@dataclass
class Form:
    """What a program takes for granted, takes and gives. `reads` are attributes of objects that are always the same, with what
    must be there, `paths` where these objects are. `aliases` find one object in two ways, `apart` different ones. `late` reads
    the inputs behind the tensors among the arguments, whose names are `places`; `sizes` checks all inputs. `asking` says which
    inputs and constants ask for gradients, None where none may."""

    inputs: Inputs
    reads: list[tuple[ScriptObject, str, object]]
    conditions: list[tuple[Reader, object]]
    kinds: list[tuple[Reader, object]]
    aliases: list[tuple[Reader, Reader]]
    apart: list[Reader]
    late: list[Reader]
    sizes: object
    results: list[Template]
    assignments: list[tuple[Reader, str, Template]]
    changes: list[tuple[Reader, bool, Items]]
    grad_mode: bool
    written: list[int] = field(default_factory=list)
    asking: list[bool] | None = None
    numbers: dict[tuple, tuple[Reader, object]] = field(default_factory=dict)
    places: dict[object, tuple[Reader, tuple]] = field(default_factory=dict)
    paths: list[Path] = field(default_factory=list)


class KnownSizes:
    """The check that a call's tensors have the dtypes, sizes and strides that a program takes."""

    def __init__(self, expected: Sequence[tuple]):
        self._expected = expected

    def hold(self, given: Sequence[object]) -> bool:
        """Return whether all inputs pass."""
        if len(given) != len(self._expected):
            return False
        for value, (kind, sizes, strides) in zip(given, self._expected, strict=True):
            impl = value._impl if isinstance(value, Tensor) else None
            if impl is None or impl.dtype is not kind or impl.sizes != sizes or impl.strides != strides:
                return False
            if impl.key_set != CPU_KEYS or impl.device is not CPU or impl.fake:
                return False
        return True


class WholeProgram:
    """A compiled graph as the executor calls it."""

    def __init__(self, native: Callable[..., tuple], form: Form, describe: Callable[[], tuple[str | None, dict]] | None = None):
        self.native = native
        self.describe = describe
        """Returns the key of the graph's plan, and its constants, for an entry of the cache. It is dropped after the first
        use."""
        self.form = form
        self.inputs = form.inputs
        self.checks = _C.AttributeChecks([entry_of(owner, name) for owner, name, _ in form.reads])
        self.conditions, self.kinds, self.aliases, self.apart = form.conditions, form.kinds, form.aliases, form.apart
        self.late, self.sizes, self.written, self.asking = form.late, form.sizes, form.written, form.asking
        self.constants = constants_of(form)
        self.makers = [maker(each) for each in form.results]
        self.assignments = [(owner, name, maker(value)) for owner, name, value in form.assignments]
        self.changes = [(read, grows, contents.kind, filler(contents)) for read, grows, contents in form.changes]
        self.is_pure = not (self.assignments or self.changes)
        self.calculated = calculated_in(form) if form.written else []

    def attempt(self, arguments: Sequence[object]) -> object:
        """Run a call. Return its results, None if the interpreter has to run it, or UNFIT if the program was not made for such
        a call."""
        try:
            tensors = self._inputs_if_fitting(arguments)
            if tensors is None:
                return UNFIT
            for read in self.calculated:
                read(arguments)
        except FAILURES:
            return None
        try:
            outputs = self.native(*tensors)
        except ConstantChanged:
            return UNFIT
        # The interpreter runs the call again, and raises the error at its line, after earlier side effects.
        except (RuntimeError, IndexError):
            if self.written:
                raise
            return None
        call = Call(outputs, arguments)
        try:
            # Make the results before the side effects, which may change what the results read.
            results = [make(call) for make in self.makers]
            effects = None if self.is_pure else self._effects(call)
        except FAILURES:  # such an error comes before the native call, so nothing was written
            return None
        if effects is not None:
            _take_effect(*effects)
        if self.form.grad_mode is not state.grad_enabled:
            set_grad_enabled(self.form.grad_mode)
        return results

    def _effects(self, call: Call) -> tuple[list, list]:
        """Compute the new contents of lists and dicts and the new values of attributes, before any of them is changed."""
        contents = []
        for read, grows, kind, fill in self.changes:
            content = kind()
            fill(call, content)
            contents.append((read(call.arguments), grows, content))
        return contents, [(owner(call.arguments), name, make(call)) for owner, name, make in self.assignments]

    def _inputs_if_fitting(self, arguments: Sequence[object]) -> list[Tensor] | None:
        """Return the inputs of the native code if the call passes all checks, else None."""
        tensors = self.inputs.read(arguments)
        if tensors is None or not self.checks.hold():
            return None
        for read, kind in self.kinds:
            if not has_kind(read(arguments), kind):
                return None
        for one, other in self.aliases:
            if one(arguments) is not other(arguments):
                return None
        if self.apart and not are_apart(self.apart, arguments):
            return None
        for read, value in self.conditions:
            if not same_value(read(arguments), value):
                return None
        tensors += [read(arguments) for read in self.late]
        if not self.sizes.hold(tensors):
            return None
        if state.grad_enabled and not self._same_tensors_require_grad(tensors):
            return None
        return tensors if self._may_write(tensors) else None

    def _same_tensors_require_grad(self, tensors: list[Tensor]) -> bool:
        """Return whether the same inputs require gradients as in the capture."""
        asking = asking_of((*tensors, *self.constants))
        return not any(asking) if self.asking is None else asking == self.asking

    def _may_write(self, tensors: list[Tensor]) -> bool:
        """Return whether the tensors that are written to overlap with no other, and may be written to."""
        if not self.written:
            return True
        impls = [each._impl if isinstance(each, Tensor) else None for each in (*tensors, *self.constants)]
        for place in self.written:
            impl = impls[place]
            first, last = memory_of(impl)
            if impl.inference and not state.inference:
                return False
            for other, each in enumerate(impls):
                if other == place or each is None:
                    continue
                low, high = memory_of(each)
                if low < last and first < high:
                    return False
        return True

    def fits(self, arguments: Sequence[object]) -> bool:
        """Return whether the program serves a call."""
        return self._inputs_if_fitting(arguments) is not None

    def changed_sources(self, arguments: Sequence[object]) -> set[tuple]:
        """Return the sources of numbers whose values in a call differ from the capture's."""
        found = {source: (read_or(read, arguments, value), value) for source, (read, value) in self.form.numbers.items()}
        return {source for source, (now, value) in found.items() if not same_value(now, value)}

    def changed_dims(self, arguments: Sequence[object]) -> dict[object, frozenset[int]]:
        """Return the dimensions in which a call's state has other sizes than in the capture."""
        found = {}
        for place, (read, sizes) in self.form.places.items():
            value = read_or(read, arguments, None)
            if isinstance(value, Tensor):
                found[place] = differing(sizes, value._impl.sizes)
        return {place: dims for place, dims in found.items() if dims}


def _take_effect(contents: list, values: list) -> None:
    """Write the new contents into containers."""
    for target, grows, content in contents:
        if isinstance(target, list):
            target[len(target) if grows else 0 :] = content
        else:
            target.clear()
            target.update(content)
    for owner, name, value in values:
        owner.slots[name] = value


def read_or(read: Reader, arguments: Sequence[object], default: object) -> object:
    """Return a reader's value; the default if it is no longer there."""
    try:
        return read(arguments)
    except FAILURES:
        return default


def calculated_in(form: Form) -> list[Reader]:
    """Find the readers that compute numbers for results or effects; such a computation may fail."""
    pending = [*form.results, *(value for *_, value in form.assignments), *(contents for *_, contents in form.changes)]
    found, seen = [], set()
    for template in pending:
        if isinstance(template, Read) and isinstance(template.reader, Applied):
            found.append(template.reader)
        if isinstance(template, Items) and template.number not in seen:
            seen.add(template.number)
            pending += template.items
    return found


def differing(before: Sequence[int], now: Sequence[int]) -> frozenset[int]:
    """Return the dimensions in which two sizes differ; none if their ranks differ."""
    if len(before) != len(now):
        return frozenset()
    return frozenset(dim for dim, (one, other) in enumerate(zip(before, now, strict=True)) if one != other)


def constants_of(form: Form) -> list[Tensor]:
    """Return the tensors that a program holds as constants, without duplicates."""
    held = [value for _, _, value in form.reads] + [value for _, value in form.conditions]
    return list({id(value): value for value in held if isinstance(value, Tensor)}.values())


def asking_of(values: Iterable[object]) -> list[bool]:
    return [isinstance(value, Tensor) and value.requires_grad for value in values]


def memory_of(impl: TensorImpl) -> tuple[int, int]:
    """Return the first and the end address of a tensor's elements."""
    reach = sum((size - 1) * step for size, step in zip(impl.sizes, impl.strides, strict=True)) + 1 if impl.numel else 0
    return impl.data_ptr, impl.data_ptr + reach * impl.dtype.itemsize
