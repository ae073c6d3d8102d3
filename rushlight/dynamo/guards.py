"""Guards: the assumptions of one capture about the frame, as readable Python that is checked before its code runs again.

In: assumptions, in the order in which they are made. Out: a check of a frame's values, its text, and an explanation of the
first failing guard with the value found.
"""

from __future__ import annotations

import builtins
import functools
import re
import types
import weakref
from collections import defaultdict
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import rushlight.core.dtype as dtypes
from rushlight._C import GuardTree
from rushlight.core.layout import strided
from rushlight.core.symbolic import SymInt
from rushlight.core.tensor import Tensor
from rushlight.core.thread_state import state
from rushlight.core.wrapper_subclasses import is_constant_of_graphs
from rushlight.dynamo.assumed import Assumed, is_referred_to_weakly
from rushlight.dynamo.dynamic import Assumption, OpenSizes, assumptions
from rushlight.dynamo.guard_tree import (
    DIFFERENT_OBJECTS,
    DIFFERENT_STORAGES,
    EMPTY,
    EQUAL,
    HAS,
    IS_TYPE,
    KEYS,
    LACKS,
    LENGTH,
    NO_ATTRIBUTE,
    SAME,
    SAME_OBJECTS,
    TENSOR,
    THREAD,
    Check,
    Relation,
    TreeBuilder,
    has_native_form,
)
from rushlight.dynamo.sources import GLOBALS, Attribute, Held, Item, Local, Member, OwnDict, Source
from rushlight.dynamo.stability import look_up
from rushlight.fx.symbolic_sizes import Geometry

_ILLEGAL = re.compile(r"\W")


_SOURCE = "\0"  # stands for the source's expression in the text of a guard


class Guard:
    """One assumption: an expression that must be true, the source of its value, and whether native code tests it."""

    __slots__ = ("form", "source", "reason", "is_native")

    def __init__(self, form: str, source: Source | None, reason: str, is_native: bool) -> None:
        self.form = form
        self.source = source
        self.reason = reason
        self.is_native = is_native

    @property
    def expression(self) -> str:
        """Return the expression. It is only built for readers; native checks do not need it."""
        return self.form if self.source is None else self.form.replace(_SOURCE, self.source.text)

    @property
    def place(self) -> str | None:
        """Return an expression that reaches the tested value."""
        return None if self.source is None else self.source.expression()


class Guards(Assumed):
    """The guards of one capture while it runs. `tree` holds the arguments of the `GuardTree` once that is built."""

    def __init__(self, parameters: tuple[str, ...], free_variables: tuple[str, ...] = ()) -> None:
        super().__init__(parameters, free_variables)
        self.guards: list[Guard] = []
        self.tree: tuple = ()
        # Guards added so far, to drop duplicates: expressions, or (node, form) of native guards.
        self._said: set[object] = set()
        self._relations: list[Relation] = []
        self._sizes: dict[str, Assumption] = {}
        self._tree = TreeBuilder(parameters, self.names)
        self._texts: dict[int, tuple[object, str]] = {}

    def add(self, expression: str, source: Source | None, reason: str) -> None:
        """Add a guard that Python tests. Duplicates are dropped."""
        if expression not in self._said:
            self._said.add(expression)
            self.guards.append(Guard(expression, source, reason, False))

    def _add_native(self, form: str, source: Source | None, reason: str, check: Check) -> None:
        """Add a guard that native code tests by `check`. In its form `_SOURCE` stands for the source."""
        place, kind, expected = check
        node = self._tree.node(place)
        said = node, form
        if said not in self._said:
            self._said.add(said)
            self.guards.append(Guard(form, source, reason, True))
            node.check(kind, expected)

    def _add_relation(self, expression: str, source: Source | None, reason: str, relation: Relation) -> None:
        """Add a guard that native code tests on several values together."""
        if expression not in self._said:
            self._said.add(expression)
            self.guards.append(Guard(expression, source, reason, True))
            self._relations.append(relation)

    def name(self, value: object, hint: str, is_owned: bool = False) -> str:
        """Return an expression for an object that generated code mentions: a name, or the call of a weak reference with that
        name.

        With `is_owned` the capture made the object and keeps it alive.
        """
        known = self._texts.get(id(value))
        if known is not None:
            return known[1]
        hint = hint if hint.isidentifier() else _ILLEGAL.sub("_", hint)
        name = f"__{hint.strip('_')}_{len(self.names)}"
        is_weak = not is_owned and is_referred_to_weakly(value)
        self.names[name] = self.refer(value, is_weak)
        text = f"{name}()" if is_weak else name
        self._texts[id(value)] = (value, text)
        return text

    def _expected_object(self, text: str) -> object:
        """Return the object, or weak reference, that a text of `name` refers to."""
        return self.names[text.removesuffix("()")]

    def finish(self) -> None:
        """End the capture: drop what only adding guards needs."""
        self._texts.clear()
        self._said.clear()
        self._tree = None
        self.tree = ()

    # Assumptions: one method for each kind

    def same_type(self, source: Source, value: object) -> None:
        """Guard that the type is exactly that of `value`."""
        kind = type(value)
        name = kind.__name__ if getattr(builtins, kind.__name__, None) is kind else self.name(kind, kind.__name__)
        expected = kind if name == kind.__name__ else self._expected_object(name)
        self._add_native(f"type({_SOURCE}) is {name}", source, "type", (source, IS_TYPE, expected))

    def same_object(self, source: Source, value: object) -> None:
        """Guard that it is the same object."""
        if isinstance(source, Held):
            return
        if value is None or value is True or value is False or value is ...:
            text, expected = repr(value), value
        else:
            hint = getattr(value, "__name__", type(value).__name__)
            text = self.name(value, hint if isinstance(hint, str) and hint.isidentifier() else "object")
            expected = self._expected_object(text)
        self._add_native(f"{_SOURCE} is {text}", source, "identity", (self._own_attribute(source, value), SAME, expected))

    def _own_attribute(self, source: Source, value: object) -> Source:
        """Return a faster source for an instance's own attribute: its item in the `__dict__` of an object that the guards
        hold.
        """
        if type(source) is not Attribute or type(source.base) is not Held:
            return source
        held = self._expected_object(source.base.text)
        held = held() if isinstance(held, weakref.ref) else held
        own = getattr(held, "__dict__", None)
        is_own = isinstance(own, dict) and own.get(source.key, self) is value and not isinstance(held, type)
        return Item(OwnDict(source.base), source.key) if is_own else source

    def same_value(self, source: Source, value: object) -> None:
        """Guard type and value; NaN equals itself, and -0.0 differs from 0.0."""
        if value is None or isinstance(value, bool):
            return self.same_object(source, value)
        if type(value) not in (int, float, complex, str, bytes):
            self.same_type(source, value)
            if isinstance(value, range):
                return self.add(f"repr({source}) == {repr(value)!r}", source, "value")
            return self.add(f"{source} == {self.name(value, 'value')}", source, "value")
        check = (self._own_attribute(source, value), EQUAL, value)
        self._add_native(f"type({_SOURCE}) is {type(value).__name__}", source, "type", check)
        if isinstance(value, float | complex):
            self._add_native(f"repr({_SOURCE}) == {repr(value)!r}", source, "value", check)
        else:
            self._add_native(f"{_SOURCE} == {value!r}", source, "value", check)

    def same_length(self, source: Source, value: Any) -> None:
        """Guard the number of items."""
        self._add_native(f"len({_SOURCE}) == {len(value)}", source, "length", (source, LENGTH, len(value)))

    def same_items(self, source: Source, values: list, reason: str, kind: type = set) -> None:
        """Guard a dict's keys or a set's items, in their order; 1, 1.0 and True differ."""
        wanted = [weakref.ref(value) if is_referred_to_weakly(value) else value for value in values]
        if all(type(value) is str for value in values):
            form = f"list({_SOURCE}) == {values!r}"
        else:
            form = f"{self.name(equal_items, 'equal_items')}({_SOURCE}, {self.name(wanted, reason)})"
        if kind in (dict, defaultdict):
            self._add_native(form, source, reason, (source, KEYS, tuple(wanted)))
        else:
            self.add(form.replace(_SOURCE, source.text), source, reason)

    def same_place(self, source: Source, other: Source) -> None:
        """Guard that two sources reach one object."""
        relation = (SAME_OBJECTS, (source, other))
        self._add_relation(f"{source} is {other}", source, "the same object in two places", relation)

    def empty(self, source: Source, reason: str) -> None:
        """Guard that a container is empty, or another value false."""
        self._add_native(f"not {_SOURCE}", source, reason, (source, EMPTY, None))

    def no_attribute(self, source: Source, name: str) -> None:
        """Guard that there is no attribute of that name."""
        self._add_native(f"not hasattr({_SOURCE}, {name!r})", source, "no such attribute", (source, NO_ATTRIBUTE, name))

    def no_own_attribute(self, source: Source, name: str) -> None:
        """Guard that the instance's `__dict__` has no attribute of that name."""
        self._add_native(f"{name!r} not in {_SOURCE}.__dict__", source, "no such attribute", (OwnDict(source), LACKS, name))

    def has_key(self, source: Source, key: object, is_there: bool) -> None:
        """Guard whether a dict has a key."""
        check = (source, HAS if is_there else LACKS, key)
        self._add_native(f"{key!r} {'in' if is_there else 'not in'} {_SOURCE}", source, "whether there is a key", check)

    def globals_of(self, function: Source, namespace: dict, is_own: bool) -> None:
        """Guard a function's globals; `is_own` if they are the frame's own."""
        place = Attribute(function, "__globals__")
        if is_own:
            self.same_place(place, Local(GLOBALS))
        else:
            self.same_object(place, namespace)

    def no_hooks(self, module: Source, groups: tuple[str, ...]) -> None:
        """Guard that a module's dicts of hooks are empty."""
        own = self._tree.node(OwnDict(module))
        said = own, groups
        if groups and said not in self._said:
            self._said.add(said)
            self.guards.append(Guard(_no_hooks_form(groups), module, "no hooks", True))
            for group in groups:
                own.item(group).check(EMPTY, None)

    def tensor(self, source: Source, value: Tensor, geometry: Geometry | None = None) -> None:
        """Guard type, dtype, device, sizes, strides and requires_grad; `geometry` has symbols for open sizes and strides."""
        self.same_type(source, value)
        facts = tensor_facts(value, geometry)
        self._add_native(self._tensor_form(facts), source, "tensor", (source, TENSOR, facts))

    def open_sizes(self, sizes: OpenSizes) -> None:
        """Guard the assumptions about sizes and integers that the capture leaves open."""
        for assumption in assumptions(sizes):
            text, place = str(assumption.relation), f", for {assumption.location}" if assumption.location else ""
            if text not in self._said:
                self._said.add(text)
                is_native = has_native_form(assumption)
                self.guards.append(Guard(text, assumption.source, f"size{place}", is_native))
                self._sizes |= {text: assumption} if is_native else {}

    def _tensor_form(self, facts: tuple) -> str:
        """Write the guard of a tensor as a Python expression."""
        sizes, strides, dtype, device, requires_grad = facts
        matches = self.name(tensor_matches, "tensor")
        dtype, device = self.name(dtype, dtype.name), self.name(device, "device")
        return f"{matches}({_SOURCE}, {sizes}, {strides}, {dtype}, {device}, {requires_grad})"

    def member(self, owner: Source, source: Item, own: Item, value: object) -> Held:
        """Guard that module `owner` keeps a parameter, buffer or submodule, and that a tensor keeps its metadata. `own` is a
        faster source for the same place as `source`. Returns the source under which generated code holds the member."""
        name = source.key
        held = Held(self.name(value, name if name.isidentifier() else "member"))
        form = f"{_SOURCE}.{source.base.key}[{name!r}] is {held.text}"
        self._add_native(form, owner, "the same member of a module", (own, SAME, self._expected_object(held.text)))
        if isinstance(value, Tensor):
            facts = tensor_facts(value)
            self._add_native(self._tensor_form(facts), held, "a tensor of a module", (own, TENSOR, facts))
            self.parts(held, own, value)
        return held

    def parts(self, source: Source, own: Source, value: Tensor) -> None:
        """Guard the inner tensors of a tensor subclass that the graph holds as a constant."""
        if not is_constant_of_graphs(type(value)):
            return
        for name, part in vars(value).items():
            if isinstance(part, Tensor):
                text = self.name(part, name)
                check = (Attribute(own, name), SAME, self._expected_object(text))
                self._add_native(f"{_SOURCE}.{name} is {text}", source, "what a tensor is made of", check)

    def class_member(self, kind: type, name: str, found: object) -> None:
        """Guard what a class or one of its bases holds under a name."""
        text = self.name(kind, kind.__name__ if kind.__name__.isidentifier() else "class")
        held = self.name(found, found.__name__ if isinstance(found, types.FunctionType) else "member")
        if isinstance(found, types.FunctionType) and type(kind) is type and name.isidentifier():
            expression = f"{text}.{name} is {held}"
        else:
            expression = f"{self.name(look_up, 'look_up')}({text}, {name!r}) is {held}"
        check = (Member(Held(text), name), SAME, self._expected_object(held))
        self._add_native(expression, None, f"the class {kind.__name__}", check)

    def different_objects(self, sources: list[Source]) -> None:
        """Guard that all values are different objects."""
        if len(sources) > 1:
            listed = ", ".join(f"id({source})" for source in sources)
            relation = (DIFFERENT_OBJECTS, tuple(sources))
            self._add_relation(f"len({{{listed}}}) == {len(sources)}", None, "aliasing", relation)

    def different_storages(self, sources: list[Source]) -> None:
        """Guard that no two tensors share memory."""
        listed = ", ".join(map(str, sources))
        relation = (DIFFERENT_STORAGES, tuple(sources))
        check = self.name(storages_differ, "storages_differ")
        self._add_relation(f"{check}({listed})", None, "inputs do not share memory", relation)

    def ambient(self) -> None:
        """Guard the thread's grad mode, autocast and default dtype."""
        found, thread = ambient_state(), Held(self.name(state, "thread"))
        now = f"{self.name(ambient_state, 'ambient')}()"
        default = Item(Held(self.name(dtypes._default, "default_dtype")), 0)
        text, reason = f"{now} == {self.name(found, 'ambient_then')}", f"modes of the thread, captured with {found!r}"
        if found.autocast is None:
            self._add_native(text, Held(now), reason, (thread, THREAD, (*found[:2], False)))
            self._tree.check(default, SAME, found[2])
        else:
            self.add(text, Held(now), reason)

    # Results

    def build(self) -> GuardTree:
        """Return the check of a frame's values; it gives the same answer as the function of `text`."""
        tests = [guard.expression for guard in self.guards if not guard.is_native]
        rest = self._python_form(tests) if tests else None
        exact = self._python_form(list(self._sizes)) if self._sizes else None
        self.tree = self._tree.build(self._relations, rest, list(self._sizes.values()), exact)
        return GuardTree(*self.tree)

    def _python_form(self, tests: list[str]) -> Callable[..., bool]:
        """Compile guards to a Python function."""
        namespace = dict(self.names)
        exec(compile(self.function(tests), "<guards>", "exec"), namespace)
        return namespace["guard"]


@functools.cache
def _no_hooks_form(groups: tuple[str, ...]) -> str:
    return f"not ({' or '.join(f'{_SOURCE}.{group}' for group in groups)})"


def tensor_facts(value: Tensor, geometry: Geometry | None = None) -> tuple:
    """Return sizes, strides, dtype, device and requires_grad of a tensor; None for open sizes and strides."""
    impl = value._impl
    sizes, strides = impl.sizes, impl.strides
    if geometry is not None:
        sizes, strides = tuple(map(_fixed_or_none, geometry[0])), tuple(map(_fixed_or_none, geometry[1]))
    return sizes, strides, impl.dtype, impl.device, bool(impl.requires_grad)


def _fixed_or_none(number: SymInt | int) -> int | None:
    return None if type(number) is SymInt else number


def tensor_matches(value: Tensor, sizes: tuple, strides: tuple, dtype: object, device: object, requires_grad: bool) -> bool:
    """Return whether a tensor has the guarded metadata; None matches any size or stride."""
    impl = value._impl
    return (
        _same_numbers(impl.sizes, sizes)
        and _same_numbers(impl.strides, strides)
        and impl.dtype is dtype
        and impl.device == device
        and impl.requires_grad == requires_grad
        and value.layout is strided
    )


def _same_numbers(found: tuple, wanted: tuple) -> bool:
    return len(found) == len(wanted) and all(other in (None, one) for one, other in zip(found, wanted, strict=True))


def storages_differ(*tensors: Tensor) -> bool:
    """Return whether no two tensors share memory."""
    return len({id(tensor._impl.storage) for tensor in tensors}) == len(tensors)


def equal_items(values: Iterable, wanted: list) -> bool:
    """Return whether iterating yields values with the wanted types and values; tensors are compared by identity. Weak
    references in `wanted` stand for their referents."""
    found = list(values)
    wanted = [item() if isinstance(item, weakref.ref) else item for item in wanted]
    return len(found) == len(wanted) and all(
        one is other or (type(one) is type(other) and not isinstance(one, Tensor) and one == other)
        for one, other in zip(found, wanted, strict=True)
    )


class Modes(NamedTuple):
    """The thread's state that changes what operators do."""

    grad: bool
    inference: bool
    dtype: dtypes.dtype
    autocast: Any

    def __repr__(self) -> str:
        cast = None if self.autocast is None else self.autocast.dtype
        return f"grad={self.grad}, inference={self.inference}, dtype={self.dtype}, autocast={cast}"


def ambient_state() -> Modes:
    """Return the current modes."""
    cast = state.autocast
    active = cast if cast is not None and cast.enabled else None
    return Modes(state.grad_enabled, state.inference, dtypes.get_default_dtype(), active)
