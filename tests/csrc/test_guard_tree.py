"""Native guards: each kind of step, check and relation, and descriptions that fit no tree."""

from __future__ import annotations

import collections
import gc
import weakref
from types import CellType

import pytest

import rushlight as torch
from rushlight._C import GuardTree
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
    TreeBuilder,
)
from rushlight.dynamo.guards import tensor_facts
from rushlight.dynamo.sources import Attribute, Content, Held, Item, Key, Kind, Local, Member, Named, OwnDict, Source

pytestmark = pytest.mark.usefixtures("small_heap")

X, Y = Local("x"), Local("y")


def tree(*checks, relations=(), rest=None, **names):
    builder = TreeBuilder(("x", "y"), names)
    for check in checks:
        builder.check(*check)
    return GuardTree(*builder.build(relations, rest))


def holds(made, x=None, y=None, module_globals=None, closure=None):
    return made(x, y, module_globals or {}, closure)


class Plain:
    """With a dict of its own."""

    kind = "class"

    def __init__(self, **attributes):
        vars(self).update(attributes)


A = object()


@pytest.mark.parametrize("kind, expected, good, bad", [
    (IS_TYPE, int, [1, 7], [True, 1.0, "1"]),
    (SAME, A, [A], [object(), None]),
    (EQUAL, 1, [1], [True, 1.0, 2, "1"]),
    (EQUAL, 10**30, [10**30], [10**30 + 1]),
    (EQUAL, 0.0, [0.0], [-0.0, 0, 1e-300]),
    (EQUAL, float("nan"), [float("nan")], [0.0]),
    (EQUAL, complex(0.0, -0.0), [complex(0.0, -0.0)], [0j, 0.0]),
    (EQUAL, "name", ["".join(["na", "me"])], ["names", b"name"]),
    (LENGTH, 2, [[1, 2], (1, 2), "ab", {1: 2, 3: 4}, collections.deque("ab")], [[1], (), 2]),
    (KEYS, ("a", 1), [{"a": 0, 1: 0}], [{1: 0, "a": 0}, {"a": 0}, {"a": 0, True: 0}, {"a": 0, 1: 0, 2: 0}, ["a", 1]]),
    (EMPTY, None, [[], {}, 0, None], [[0], {1: 1}]),
    (LACKS, "k", [{}, {"j": 1}], [{"k": 1}, 3]),
    (HAS, "k", [{"k": None}], [{}, 3]),
    (NO_ATTRIBUTE, "nothing", [1, Plain()], [Plain(nothing=1)]),
])  # fmt: skip
def test_checks(kind, expected, good, bad):
    made = tree((X, kind, expected))
    assert all(holds(made, value) for value in good)
    assert not any(holds(made, value) for value in bad)


def test_tensors():
    x = torch.ones(2, 3)
    made = tree((X, TENSOR, tensor_facts(x)))
    others = [torch.ones(3, 2), torch.ones(3, 2).t(), x.double(), torch.ones(2, 3, requires_grad=True), x[None], 3, None,
              torch.ones(2, 3, device="meta")]  # fmt: skip
    assert holds(made, torch.zeros(2, 3)) and holds(made, torch.ones(4, 3)[1:3])
    assert not any(holds(made, other) for other in others)


def test_sizes_and_strides_that_may_be_any():
    _, _, dtype, device, needs = tensor_facts(torch.ones(2, 3))
    made = tree((X, TENSOR, ((None, 3), (None, 1), dtype, device, needs)))
    assert holds(made, torch.ones(7, 3)) and holds(made, torch.ones(7, 6)[:, :3])
    assert not holds(made, torch.ones(7, 4)) and not holds(made, torch.ones(3, 7).t()) and not holds(made, torch.ones(3))


def test_the_state_of_the_thread():
    made = tree((X, THREAD, (True, False, False)))
    assert holds(made)
    for mode in (torch.no_grad(), torch.inference_mode(), torch.autocast("cpu")):
        with mode:
            assert not holds(made)
    with torch.no_grad():
        assert holds(tree((X, THREAD, (False, False, False))))


@pytest.mark.parametrize("source, value", [
    (Item(X, 1), [0, A]), (Item(X, 1), (0, A)), (Item(X, -1), [0, A]), (Item(X, 1), {1: A}), (Item(X, "k"), {"k": A}),
    (Item(X, 1), collections.deque([0, A])), (Item(X, Named("__key")), {A: A}), (Attribute(X, "held"), Plain(held=A)),
    (Item(OwnDict(X), "held"), Plain(held=A)), (Key(X, 1), {0: 0, A: 0}), (Content(X), CellType(A)), (Kind(X), A),
    (Item(Item(Attribute(X, "deep"), 0), "k"), Plain(deep=[{"k": A}])),
], ids=lambda value: value.text if isinstance(value, Source) else "")  # fmt: skip
def test_ways_to_a_value(source, value):
    expected = object if isinstance(source, Kind) else A
    made = tree((source, SAME, expected), __key=A)
    assert holds(made, value)
    assert not any(holds(made, other) for other in (None, 3, [], [0], {}, Plain(), "text", Plain(held=1), Plain(deep=[{}])))


def test_keys_that_are_not_kept_alive():
    first, second = torch.ones(2, requires_grad=True), torch.ones(2, requires_grad=True)
    made = tree((X, KEYS, (weakref.ref(first), "k")), (Item(X, Named("__key()")), EQUAL, 1), __key=weakref.ref(first))
    assert holds(made, {first: 1, "k": 2})
    for other in ({second: 1, "k": 2}, {first: 2, "k": 2}, {"k": 2, first: 1}, {first: 1}, {None: 1, "k": 2}, {}):
        assert not holds(made, other)
    table = {first: 1, "k": 2}
    del first, table
    assert not holds(made, {second: 1, "k": 2}) and not holds(made, {None: 1, "k": 2})


def test_what_a_class_holds():
    class Base:
        def method(self):
            return 1

    class Derived(Base):
        pass

    made = tree((Member(Held("__kind()"), "method"), SAME, Base.method), __kind=weakref.ref(Derived))
    assert holds(made)
    Derived.method = lambda self: 2
    assert not holds(made)
    del Derived.method
    assert holds(made)
    Base.method = None
    assert not holds(made)


def test_globals_and_closure():
    made = tree((Item(Local("__globals"), "name"), EQUAL, 3), (Content(Item(Local("__closure"), 0)), EQUAL, 4))
    cell = (CellType(4),)
    assert holds(made, module_globals={"name": 3}, closure=cell)
    assert not holds(made, module_globals={}, closure=cell) and not holds(made, module_globals={"name": 3})
    cell[0].cell_contents = 5
    assert not holds(made, module_globals={"name": 3}, closure=cell)
    del cell[0].cell_contents
    assert not holds(made, module_globals={"name": 3}, closure=cell)


def test_a_dict_is_not_asked_for_a_default():
    made, seen = tree((Item(X, "k"), EQUAL, 1)), collections.defaultdict(lambda: 1)
    assert not holds(made, seen) and not seen


def test_relations():
    same = tree(relations=[(SAME_OBJECTS, (X, Y))])
    different = tree(relations=[(DIFFERENT_OBJECTS, (X, Y, Item(Local("__globals"), "z")))])
    apart = tree(relations=[(DIFFERENT_STORAGES, (X, Y))])
    x, y = torch.ones(4), torch.ones(4)
    assert holds(same, x, x) and not holds(same, x, y)
    assert holds(different, x, y, {"z": 3}) and not holds(different, x, y, {"z": x}) and not holds(different, x, y)
    assert holds(apart, x, y) and not holds(apart, x[:2], x[2:]) and not holds(apart, x, x)


def test_many_slots():
    places = [Item(X, index) for index in range(100)]
    made, values = tree(relations=[(DIFFERENT_OBJECTS, tuple(places))]), [object() for _ in range(100)]
    assert holds(made, values)
    assert not holds(made, [*values[:99], values[3]])


def test_the_rest_is_asked_last_and_may_raise():
    asked = []

    def rest(x, y, module_globals, closure):
        asked.append(x)
        return 1 / x > 0

    made = tree((X, IS_TYPE, int), rest=rest)
    assert holds(made, 2) and not holds(made, 2.0) and not holds(made, 0) and not holds(made, -1)
    assert asked == [2, 0, -1]


def test_what_interrupts_goes_through():
    class Slow:
        @property
        def value(self):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        holds(tree((Attribute(X, "value"), EQUAL, 1)), Slow())


def test_weakly_held_objects_that_are_gone():
    held, kind = Plain(a=1), type("Local", (), {})
    made = tree((Attribute(Held("__held()"), "a"), EQUAL, 1), (X, IS_TYPE, weakref.ref(kind)), __held=weakref.ref(held))
    assert holds(made, kind()) and not holds(made, held)
    del kind
    gc.collect()
    assert not holds(made, None)
    identity = tree((X, SAME, weakref.ref(held)))
    assert holds(identity, held)
    del held
    gc.collect()
    assert not holds(identity, None)


def test_a_tree_is_collected_with_what_it_holds():
    owner = Plain()
    owner.guard = tree((Held("__owner"), SAME, owner), __owner=owner)
    gone = weakref.ref(owner)
    assert holds(owner.guard)
    del owner
    gc.collect()
    assert gone() is None


@pytest.mark.parametrize("args", [
    (), (1, 0, [], (), None), (1, 0, ((0, 0, 1, -1, ()),), (), None, 3),
    (1, 0, ((0, 5, 1, -1, ()),), (), None),  # a value that there is not
    (1, 0, ((99, 0, 1, -1, ()),), (), None),  # a step of no kind
    (1, 0, ((2, "a", 1, -1, ()),), (), None),  # an attribute of nothing
    (1, 0, ((0, 0, 2, -1, ()), (0, 0, 2, -1, ())), (), None),  # a value within a value
    (1, 0, ((0, 0, 0, -1, ()),), (), None), (1, 0, ((0, 0, 9, -1, ()),), (), None),  # ends before it begins; behind the end
    (1, 1, ((0, 0, 1, 3, ()),), (), None),  # a slot that there is not
    (1, 0, ((0, 0, 1, -1, ((99, 1),)),), (), None), (1, 0, ((0, 0, 1, -1, (1,)),), (), None), (1, 0, (3,), (), None), (1, 0, (), (3,), None),  # none
    (1, 0, ((0, 0, 1, -1, ((3, -1),)),), (), None), (1, 0, ((0, 0, 1, -1, ((8, (1, 2)),)),), (), None),
    (1, 1, ((0, 0, 1, -1, ()),), ((0, (0,)),), None),  # a relation of a slot that nothing fills
    (1, 1, ((0, 0, 1, 0, ()),), ((7, (0,)),), None), (1, 1, ((0, 0, 1, 0, ()),), ((0, ("x",)),), None),
])  # fmt: skip
def test_descriptions_that_fit_no_tree(args):
    with pytest.raises((TypeError, ValueError)):
        GuardTree(*args)


def test_calls_with_other_values():
    with pytest.raises(TypeError, match="take 4 values, got 1"):
        tree()(1)
    with pytest.raises(TypeError, match="by position"):
        tree()(1, 2, 3, y=4)
