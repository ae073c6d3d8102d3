"""Programs: user classes, properties, descriptors, inheritance, special methods, dataclasses, enums, slots, container classes."""

# ruff: noqa: B007, B010, B016, B023, F821, F841, UP003, UP031, UP032, UP033

from __future__ import annotations

import abc
import collections
import dataclasses
import enum
import functools
import types

import rushlight as torch
from tests.dynamo.harness import Programs

PROGRAMS = Programs()
one = PROGRAMS.one
program = PROGRAMS
x = torch.tensor([1.0, 2.0, 3.0])


class Base:
    factor = 5
    shared = [1]

    def __init__(self, v):
        self.v = v

    def go(self, a):
        return a + self.v

    @property
    def double(self):
        return self.v * 2

    @double.setter
    def double(self, value):
        self.v = value / 2

    @staticmethod
    def plain(a):
        return a * 2

    @classmethod
    def of_class(cls, a):
        return a * cls.factor

    @classmethod
    def make(cls, v):
        return cls(v)


class Child(Base):
    factor = 7

    def __init__(self, v, w=1):
        super().__init__(v)
        self.w = w

    def go(self, a):
        return super().go(a) * 2

    @classmethod
    def of_class(cls, a):
        return super().of_class(a) + 1


class Grandchild(Child):
    @property
    def double(self):
        return super().double + 1


OBJECT = Child(10.0)


@one(x)
def construct(a):
    c = Child(a)
    return c.go(a) + c.double + Child.plain(a) + c.of_class(a) + c.plain(1), c.w


@one(x)
def checks(a):
    c = Child(a, w=3)
    return isinstance(c, Base), hasattr(c, "nope"), getattr(c, "w", 7), getattr(c, "nope", 7), type(c).__name__, c.__class__ is Child, a + c.w


@one(x)
def class_methods(a):
    return Child.make(a).v + Grandchild.of_class(a), Child.factor, Base.make(2).double


@one(x)
def inherited_property(a):
    return Grandchild(a).double, Grandchild(3).double


@one(x)
def property_setter(a):
    c = Child(a)
    c.double = 10
    return c.v * a


@program(x)
def property_without_setter(a):
    g = Grandchild(a)
    try:
        g.double = 3
    except AttributeError as error:
        return a + 1, type(error).__name__


@one(x)
def attributes(a):
    c = Child(a)
    c.extra = a * 2
    setattr(c, "other", 3)
    del c.w
    return c.extra, c.other, hasattr(c, "w")


@program(x)
def missing_attribute(a):
    return Child(a + 1).nope


@program(x)
def missing_attribute_caught(a):
    c = Child(a)
    try:
        del c.nope
    except AttributeError:
        a = a + 1
    try:
        return c.nope
    except AttributeError as error:
        return a + 1, str(error)


@one(x)
def global_object(a):
    OBJECT.v += 1
    OBJECT.log = [a * 2]
    return OBJECT.go(a)


@one(x)
def global_object_deletes(a):
    OBJECT.extra = 3
    n = OBJECT.extra
    del OBJECT.extra
    del OBJECT.w
    return a * n


@one(Child(2.0), x)
def object_argument(c, a):
    c.v = c.v * 2
    c.w += 1
    return c.go(a)


@one([Child(2.0), Child(3.0)], x)
def objects_in_a_list(v, a):
    v[0].v, v[1].v = v[1].v, v[0].v
    return v[0].go(a) - v[1].go(a)


@one(x)
def objects_returned(a):
    c = Child(a + 1, [a])
    c.other = c.w
    return c, [c]


@one(x)
def cyclic_object(a):
    c = Child(a + 1)
    c.own = [c]
    return c.own[0].v


@program(x)
def class_attribute_mutated(a):
    Base.shared.append(2)
    n = len(Child.shared)
    Base.shared.pop()
    return a * n


@program(x)
def class_attribute_written(a):
    before = Base.factor
    Base.factor = 6
    found = Base.of_class(a)
    Base.factor = before
    return found


@one(x)
def instance_hides_class(a):
    c = Child(a)
    n = c.factor
    c.factor = 100
    return a * n, c.factor, Child.factor


@one(x)
def bound_methods(a):
    c = Child(a)
    f, g = c.go, Base.go
    return f(1), g(c, 2), f.__self__ is c, c.go.__func__ is Child.go


@program(x)
def bound_method_returned(a):
    return OBJECT.go, OBJECT.go(a)


class Vector:
    def __init__(self, items):
        self.items = items

    def __add__(self, other):
        return Vector([p + q for p, q in zip(self.items, other.items, strict=True)])

    def __radd__(self, other):
        return Vector([other + p for p in self.items])

    def __mul__(self, n):
        return Vector([p * n for p in self.items])

    def __iadd__(self, n):
        self.items = [p + n for p in self.items]
        return self

    def __neg__(self):
        return self * -1

    def __eq__(self, other):
        return isinstance(other, Vector) and len(self) == len(other)

    def __lt__(self, other):
        return len(self) < len(other)

    def __len__(self):
        return len(self.items)

    def __getitem__(self, i):
        return self.items[i]

    def __setitem__(self, i, value):
        self.items[i] = value

    def __delitem__(self, i):
        del self.items[i]

    def __contains__(self, wanted):
        return any(p is wanted for p in self.items)

    def __iter__(self):
        return iter(self.items)

    def __call__(self, a, scale=1):
        return a * scale + self.items[0]

    def __bool__(self):
        return len(self.items) > 1

    def __float__(self):
        return 1.5

    def __int__(self):
        return 4

    def __index__(self):
        return 1

    def __str__(self):
        return "Vector!"

    def __repr__(self):
        return f"Vector({len(self.items)})"


@one(x)
def operators(a):
    v = Vector([a, a + 1])
    w = v + v * 2
    w += 1
    u = 5 + v
    return w.items, u.items, (-v).items


@one(x)
def comparisons(a):
    v, w = Vector([a, 1]), Vector([a])
    return v == w, v != w, w < v, v == 3, v != 3, v > w, a + 1


@one(x)
def container_methods(a):
    v = Vector([a, 2, 3])
    v[1] = a * 2
    del v[2]
    return v[1], len(v), [p + 1 for p in v], a in v, a not in v, bool(v), list(v)


@one(x)
def callable_objects(a):
    v = Vector([a])
    return v(a, scale=3), v(1), callable(v)


@one(x)
def conversions(a):
    v = Vector([a])
    return float(v), int(v), [1, 2, 3][v], bool(v), a + 1


@program(x)
def texts_of_objects(a):
    v = Vector([a])
    return str(v), repr(v), f"{v}", f"{v!r}", a + 1


class Countdown:
    def __init__(self, n):
        self.n = n

    def __iter__(self):
        return self

    def __next__(self):
        if self.n <= 0:
            raise StopIteration
        self.n -= 1
        return self.n


@one(x)
def own_iterator(a):
    for i in Countdown(3):
        a = a + i
    return a, list(Countdown(2)), next(Countdown(5)), sum(Countdown(4)), [n for n, _ in zip(Countdown(3), "ab")]  # noqa: B905


@program(x)
def own_iterator_with_break(a):
    c = Countdown(3)
    for i in c:
        print(end="")
        a = a + i
    return a, c


class Dynamic:
    def __init__(self):
        self.known = 1

    def __getattr__(self, name):
        if name.startswith("made"):
            return len(name)
        raise AttributeError(name)


@one(x)
def getattr_method(a):
    d = Dynamic()
    return a * d.made_up + d.known, hasattr(d, "other"), getattr(d, "other", 3)


class Recording:
    def __init__(self):
        object.__setattr__(self, "log", [])

    def __setattr__(self, name, value):
        self.log.append(name)
        object.__setattr__(self, name, value)


@one(x)
def setattr_method(a):
    r = Recording()
    r.p = a * 2
    r.q = 3
    return r.log, r.p


class Strict:
    def __getattribute__(self, name):
        if name == "magic":
            return 42
        return object.__getattribute__(self, name)


@program(x)
def getattribute_method(a):
    return a + Strict().magic


class Positive:
    def __set_name__(self, owner, name):
        self.name = "_" + name

    def __get__(self, obj, kind=None):
        return self if obj is None else getattr(obj, self.name, 0)

    def __set__(self, obj, value):
        if value < 0:
            raise ValueError("negative")
        obj.__dict__[self.name] = value


class Described:
    size = Positive()


@program(x)
def descriptors(a):
    d = Described()
    first = d.size
    d.size = 3
    try:
        d.size = -1
    except ValueError as error:
        return a * d.size, first, str(error)


class Lazy:
    def __init__(self, f):
        self.f = f

    def __get__(self, obj, kind):
        return self.f(obj)


class UsesLazy:
    n = 4

    @Lazy
    def value(self):
        return self.n * 2


@one(x)
def non_data_descriptor(a):
    return a * UsesLazy().value


class Caching:
    def __init__(self):
        self.count = 0

    @functools.cached_property
    def value(self):
        self.count += 1
        return 3


@program(x)
def cached_property(a):
    c = Caching()
    return a * c.value + c.value, c.count


class Slotted:
    __slots__ = ("p", "q")

    def __init__(self, p):
        self.p = p


@one(x)
def slots(a):
    s = Slotted(a)
    s.p = s.p * 2
    return s.p, hasattr(s, "q")


@program(x)
def slots_refuse(a):
    s = Slotted(a)
    try:
        s.other = 1
    except AttributeError as error:
        return a + 1, str(error)


@one(x)
def slots_returned(a):
    s = Slotted(a * 2)
    s.q = 5
    return s.q, s


@dataclasses.dataclass
class Data:
    a: object
    n: int = 2
    log: list = dataclasses.field(default_factory=list)

    def scaled(self):
        return self.a * self.n


@dataclasses.dataclass(frozen=True)
class Frozen:
    n: int
    m: int = 3


@dataclasses.dataclass(order=True)
class Ordered:
    n: int
    m: int = 0


@dataclasses.dataclass
class Derived(Data):
    k: int = 9

    def __post_init__(self):
        self.k += 1


@one(x)
def dataclass(a):
    d = Data(a, 3)
    d.n += 1
    d.log.append(d.n)
    return d.scaled(), d.log, Data(a).log


@one(x)
def dataclass_derived(a):
    d = Derived(a, k=1)
    return d.scaled() + d.k, isinstance(d, Data)


@one(x)
def dataclass_returned(a):
    return Data(a + 1, 5, [a])


@program(x)
def dataclass_frozen(a):
    f = Frozen(4)
    try:
        f.n = 3
    except dataclasses.FrozenInstanceError as error:
        return a * f.n + f.m, str(error)


@one(x)
def dataclass_compared(a):
    return Ordered(1) < Ordered(2), Ordered(1, 2) == Ordered(1, 2), Frozen(1) == Frozen(2), a + 1


@program(x)
def dataclass_functions(a):
    d = Data(a + 1)
    e = dataclasses.replace(d, n=7)
    return e.n, [f.name for f in dataclasses.fields(d)], dataclasses.astuple(Ordered(1, 2)), dataclasses.asdict(Ordered(3))


@one(Data(x, 3), x)
def dataclass_argument(d, a):
    d.n = 5
    d.log.append(a * 2)
    return d.scaled()


class Colour(enum.Enum):
    RED = 1
    GREEN = 2

    def next_one(self):
        return Colour.GREEN if self is Colour.RED else Colour.RED


class Level(enum.IntEnum):
    LOW = 1
    HIGH = 5


@one(x, Colour.RED)
def enums(a, c):
    return a * c.value, c is Colour.RED, c == Colour.GREEN, c.name, {Colour.RED: 1}[c], c in (Colour.GREEN,)


@one(x, Level.HIGH)
def integer_enums(a, level):
    return a * level, level + 1, level > Level.LOW, level == 5, level.name


@program(x)
def enum_methods(a):
    return a + Colour.RED.next_one().value, Colour(2), Colour["RED"], [c.name for c in Colour], len(Colour)


class MyList(list):
    def total(self):
        return sum(self)


class MyDict(dict):
    def __missing__(self, key):
        return key * 2


@program(x)
def list_subclass(a):
    v = MyList([1, 2])
    v.append(3)
    return a * v.total(), len(v), v[0]


@program(MyList([1, 2]), x)
def list_subclass_argument(v, a):
    v.append(3)
    return a * v.total(), v


@program(x)
def dict_subclass(a):
    d = MyDict(p=1)
    return a * d["p"], d["q"], len(d)


@program(MyDict(p=2), x)
def dict_subclass_argument(d, a):
    a = a * d["p"]
    d["r"] = 1
    return a, d["zz"], d


class Pair(collections.namedtuple("Pair", "p q")):
    def total(self):
        return self.p + self.q

    @property
    def first(self):
        return self.p


@one(x)
def named_tuple_subclass(a):
    v = Pair(a, 2)
    return v.total(), v.first, v.q


class Abstract(abc.ABC):
    @abc.abstractmethod
    def go(self, a): ...

    def twice(self, a):
        return self.go(self.go(a))


class Concrete(Abstract):
    def go(self, a):
        return a + 1


CONCRETE = Concrete()


@one(x)
def abstract_classes(a):
    return CONCRETE.twice(a), isinstance(CONCRETE, Abstract)


@program(x)
def abstract_made(a):
    return Concrete().twice(a)


class Singleton:
    instance = None

    def __new__(cls):
        if cls.instance is None:
            cls.instance = super().__new__(cls)
            cls.instance.n = 3
        return cls.instance


@program(x)
def new_method(a):
    return a * Singleton().n, Singleton() is Singleton()


class Meta(type):
    def __call__(cls, *args):
        made = super().__call__(*args)
        made.tag = "meta"
        return made


class WithMeta(metaclass=Meta):
    def __init__(self, n):
        self.n = n


@program(x)
def metaclass(a):
    w = WithMeta(3)
    return a * w.n, w.tag


class Left:
    def go(self):
        return ["left"]


class Right:
    def go(self):
        return ["right"]


class Both(Left, Right):
    def go(self):
        return ["both", *super().go(), *super(Left, self).go()]


@one(x)
def multiple_inheritance(a):
    return Both().go(), a + len(Both().go())


class Node:
    def __init__(self, value, following=None):
        self.value = value
        self.following = following


@one(x)
def linked_list(a):
    head = None
    for i in range(4):
        head = Node(a * i, head)
    total = 0
    while head is not None:
        total = total + head.value
        head = head.following
    return total


@one(x)
def objects_as_state(a):
    class_free = {"n": Node(1), "list": [Node(2), Node(3)]}
    class_free["list"][0].value += class_free["n"].value
    return a * class_free["list"][0].value


@one(Node(x, Node(x)))
def nested_object_argument(n):
    n.following.value = n.value * 2
    n.value = 7
    return n.following.value + 1


@one(Node([1]), x)
def aliased_attribute(n, a):
    v = n.value
    v.append(2)
    n.other = v
    return a * len(n.value), n.other is n.value


@program(Node(1), x)
def object_across_break(n, a):
    n.value += 1
    print(end="")
    n.value += 1
    m = Node(a, n)
    print(end="")
    return m.following.value * m.value, m


@program(x)
def method_with_break(a):
    class_free = Breaking(3)
    return class_free.go(a), class_free.n


class Breaking:
    def __init__(self, n):
        self.n = n

    def go(self, a):
        a = a * self.n
        print(end="")
        self.n += 1
        return a + self.n


@program(Node(3), x)
def vars_of_object(n, a):
    a = a + 1
    return sorted(vars(n)), n.__dict__["value"] * a


@one(x)
def object_identity(a):
    n, k = Node(1), Node(1)
    return n is n, n is k, n == k, n != k, n == n, [n] == [n], n in [k, n], a + 1


@program(x)
def object_as_key(a):
    n = Node(1)
    d = {n: 5}
    return d[n] * a, n in {n}


@one(x)
def plain_object(a):
    sentinel = object()
    return a if sentinel is object else a + 1


class Options(types.SimpleNamespace):
    def area(self):
        return self.width * 2


@one(types.SimpleNamespace(scale=2.0, count=3, inner=types.SimpleNamespace(w=x)), x)
def namespace_of_settings(options, a):
    a = a * options.scale + options.inner.w * options.count
    return a + getattr(options, "missing", 7), hasattr(options, "count"), sorted(vars(options))


@one(types.SimpleNamespace(scale=2.0, count=3), x)
def namespace_changes(options, a):
    options.scale, options.new = 3.0, a + 1
    del options.count
    return a * options.scale


@one(x)
def namespace_is_made(a):
    made = types.SimpleNamespace(first=a + 1, second=2)
    made.third = Options(width=4).area()
    return made.first * made.second, made.third


@one(x)
def namespace_is_returned(a):
    return vars(Options(first=a + 1, second=2))


@program(types.SimpleNamespace(a=1), x)
def namespaces_are_equal_by_attributes(options, a):
    return a + 1 if options == types.SimpleNamespace(a=1) else a - 1, options != types.SimpleNamespace(a=1)


@one(x)
def subclasses_listed(a):
    return a + 1, [kind.__name__ for kind in Base.__subclasses__()], Base.__subclasses__()[0] is Left
