"""Programs: subclasses of built-in classes, special methods of all kinds, metaclasses, `__new__`, descriptors, exceptions' classes."""

# ruff: noqa: B006, B009, B010, B023, E731

from __future__ import annotations

import abc
import collections
import contextlib
import copy
import dataclasses
import enum
import functools
import typing

import rushlight as torch
from tests.dynamo.harness import Programs

PROGRAMS = Programs()
one = PROGRAMS.one
program = PROGRAMS
x = torch.tensor([1.0, 2.0, 3.0])
LOG = []


class Listed(list):
    def total(self):
        return sum(self)

    def append(self, item):
        super().append(item + 1)


class Stack(list):
    def __init__(self, items=(), name=""):
        super().__init__(items)
        self.name = name

    def push(self, item):
        self.append(item)

    def __len__(self):
        return 100 + super().__len__()

    def __getitem__(self, index):
        return list.__getitem__(self, index) * 2


class Table(dict):
    def __init__(self, *args, **named):
        super().__init__(*args, **named)
        self.reads = 0

    def __getitem__(self, key):
        self.reads += 1
        return super().__getitem__(key)

    def __setitem__(self, key, value):
        super().__setitem__(key, value * 2)

    def __missing__(self, key):
        return f"no {key}"


class Attributes(dict):
    def __getattr__(self, name):
        try:
            return self[name]
        except KeyError:
            raise AttributeError(name) from None

    def __setattr__(self, name, value):
        self[name] = value


class Point(tuple):
    __slots__ = ()

    def __new__(cls, x, y):
        return super().__new__(cls, (x, y))

    @property
    def norm(self):
        return (self[0] ** 2 + self[1] ** 2) ** 0.5

    def __add__(self, other):
        return Point(self[0] + other[0], self[1] + other[1])


class Tags(set):
    def add(self, item):
        super().add(str(item))


class Meters(float):
    def __new__(cls, value, unit="m"):
        made = super().__new__(cls, value)
        made.unit = unit
        return made

    def __add__(self, other):
        return Meters(float.__add__(self, other))


class Name(str):
    def shout(self):
        return self.upper() + "!"


class Grade(int):
    def __str__(self):
        return f"grade {int(self)}"


class Ordered(collections.OrderedDict):
    def first(self):
        return next(iter(self))


class Counts(collections.defaultdict):
    def __init__(self):
        super().__init__(int)


@one(x)
def list_subclass(a):
    items = Listed([1, 2])
    items.append(3)
    items.extend([5])
    return a + items.total(), items, len(items), items[2], items[1:], [i for i in items], isinstance(items, list)


@one(x)
def list_subclass_with_special_methods(a):
    stack = Stack([1, 2], name="s")
    stack.push(5)
    return a * stack[0], len(stack), [i for i in stack], stack.name, 5 in stack, list(stack) == [1, 2, 5]


@one(x)
def list_subclass_returned(a):
    stack = Listed([a, a + 1])
    stack.extra = 3
    return stack


@one(x)
def list_subclass_arithmetic(a):
    items = Listed([1])
    items += [2]
    more = items + [3]
    return a + 1, items, more, type(more) is list, items * 2, items == [1, 2], [0] + items


@one(x)
def dict_subclass(a):
    table = Table(p=1)
    table["q"] = 4
    table.update(r=5)
    return a + table["q"], table["p"], table["none"], table.reads, list(table), table.get("q"), "r" in table, len(table), table


@one(x)
def attribute_dict(a):
    config = Attributes(size=3)
    config.depth = 2
    return a * config.size + config["depth"], hasattr(config, "nope"), getattr(config, "nope", 1), dict(config)


@one(x)
def tuple_subclass(a):
    point = Point(3, 4) + Point(0, 0)
    first, second = point
    return a * point.norm, point, first + second, len(point), point[1], point == (3, 4), isinstance(point, tuple)


@one(x)
def set_subclass(a):
    tags = Tags()
    tags.add(1)
    tags.add(1)
    return a + len(tags), sorted(tags), "1" in tags, 1 in tags


@one(x)
def float_subclass(a):
    length = Meters(2.0) + 3.0
    return a * float(length), length.unit, length > 4, length * 2, isinstance(length, float)


@one(x)
def text_subclass(a):
    name = Name("ab")
    return a + len(name), name.shout(), name + "c", name == "ab", name[0], f"{name}", name.upper(), "a" in name


@one(x)
def int_subclass(a):
    grade = Grade(3)
    return a + int(grade), str(grade), f"{grade}", grade + 1, grade > 2, [10, 20, 30, 40][grade], -grade


@one(x)
def ordered_dict_subclass(a):
    table = Ordered(p=1)
    table["q"] = 2
    table.move_to_end("p")
    return a + table["p"], table.first(), list(table.items())


@one(x)
def default_dict_subclass(a):
    counts = Counts()
    for letter in "abca":
        counts[letter] += 1
    return a + counts["a"], dict(counts), counts


GLOBAL_LIST = Listed([1, 2])


@program(x)
def list_subclass_from_outside(a):
    GLOBAL_LIST.append(3)
    return a + GLOBAL_LIST[0], len(GLOBAL_LIST), GLOBAL_LIST


class Plain(list):
    pass


@program(Plain([1, 2]), x)
def plain_list_subclass_from_outside(items, a):
    items.append(3)
    items[0] = a
    return a + items[1], items, len(items)


class PlainTable(dict):
    def double(self, key):
        return self[key] * 2


@program(PlainTable(p=1), x)
def plain_dict_subclass_from_outside(table, a):
    table["q"] = 2
    return a + table.double("p"), table, list(table)


class Vector:
    def __init__(self, *items):
        self.items = list(items)

    def __len__(self):
        return len(self.items)

    def __getitem__(self, index):
        return self.items[index]

    def __setitem__(self, index, value):
        self.items[index] = value

    def __delitem__(self, index):
        del self.items[index]

    def __add__(self, other):
        return Vector(*[p + q for p, q in zip(self.items, other, strict=True)]) if isinstance(other, Vector) else NotImplemented

    def __radd__(self, other):
        return Vector(*[other + p for p in self.items])

    def __iadd__(self, other):
        self.items = [p + other for p in self.items]
        return self

    def __mul__(self, scale):
        return Vector(*[p * scale for p in self.items])

    __rmul__ = __mul__

    def __neg__(self):
        return Vector(*[-p for p in self.items])

    def __abs__(self):
        return sum(abs(p) for p in self.items)

    def __eq__(self, other):
        return isinstance(other, Vector) and self.items == other.items

    def __lt__(self, other):
        return self.items < other.items

    def __hash__(self):
        return hash(tuple(self.items))

    def __bool__(self):
        return any(self.items)

    def __contains__(self, item):
        return item in self.items

    def __call__(self, scale=1):
        return [p * scale for p in self.items]

    def __repr__(self):
        return f"Vector({', '.join(map(str, self.items))})"

    def __format__(self, specification):
        return f"<{specification}>"

    def __int__(self):
        return int(self.items[0])

    def __float__(self):
        return float(self.items[0])

    def __index__(self):
        return self.items[0]

    def __round__(self, digits=0):
        return round(self.items[0] + 0.26, digits)

    def __divmod__(self, other):
        return ("divmod", other)

    def __matmul__(self, other):
        return sum(p * q for p, q in zip(self.items, other.items, strict=True))

    def __pow__(self, power):
        return Vector(*[p**power for p in self.items])

    def __invert__(self):
        return "inverted"

    def __getattr__(self, name):
        if name.startswith("item"):
            return self.items[int(name[4:])]
        raise AttributeError(f"no {name}")


@one(x)
def containers_of_the_user(a):
    v = Vector(1, 2, 3)
    v[0] = 5
    del v[1]
    return a + v[0], len(v), v[-1], v[0:1], 3 in v, 9 in v, list(v), [p for p in v], bool(v), bool(Vector(0)), sum(v)


@one(x)
def operators_of_the_user(a):
    v, w = Vector(1, 2), Vector(3, 4)
    u = v + w
    r = 10 + v
    v += 1
    return a * (v @ w), u.items, r.items, v.items, (2 * w).items, (w * 2).items, (-w).items, abs(-w), (w**2).items, ~w


@one(x)
def comparisons_of_the_user(a):
    v, w = Vector(1, 2), Vector(1, 2)
    return a + (v == w), v != w, v is w, v < Vector(2), Vector(2) > v, v == 3, sorted([Vector(3), Vector(1)])[0].items, v in [w]


@one(x)
def conversions_of_the_user(a):
    v = Vector(2, 3)
    return a + int(v), float(v), [1, 2, 3][v], str(v), repr(v), f"{v:abc}", f"{v!r}", "%s" % v, round(v, 1), divmod(v, 3), range(5)[v]


@one(x)
def calls_of_the_user(a):
    v = Vector(2, 3)
    return [a * p for p in v()], v(scale=3), callable(v), v.item1, hasattr(v, "nope"), getattr(v, "nope", "d"), list(map(v, [1, 2]))


@program(x)
def hashes_of_the_user(a):
    table = {Vector(1): "one", Vector(2): "two"}
    return a + 1, table[Vector(2)], Vector(3) in table, len({Vector(1), Vector(1)})


@one(x)
def reversed_of_the_user(a):
    return [a + p for p in reversed(Vector(1, 2))], next(iter(Vector(4))), max(Vector(1, 7, 3)), list(enumerate(Vector(5)))


class Chain:
    def __init__(self, *items):
        self.items = items

    def __iter__(self):
        for item in self.items:
            LOG.append(item)
            yield item

    def __reversed__(self):
        return iter(self.items[::-1])


@one(x)
def iterators_of_the_user(a):
    chain = Chain(1, 2, 3)
    first, *rest = chain
    return a + first, rest, list(reversed(chain)), tuple(chain), [*chain], dict.fromkeys(chain), LOG, 2 in chain


class Countdown:
    def __init__(self, start):
        self.left = start

    def __iter__(self):
        return self

    def __next__(self):
        if not self.left:
            raise StopIteration
        self.left -= 1
        return self.left


@one(x)
def own_iterator(a):
    down = Countdown(3)
    first = next(down)
    return a + first, list(down), next(down, "end"), sum(Countdown(4)), [*zip(Countdown(2), "ab", strict=True)]


class Mapping:
    def keys(self):
        return ["p", "q"]

    def __getitem__(self, key):
        return key * 2


def keywords(**named):
    return named


@one(x)
def mapping_of_the_user(a):
    return a + 1, dict(Mapping())


class Guarded:
    def __enter__(self):
        LOG.append("enter")
        return self

    def __exit__(self, kind, error, trace):
        LOG.append(None if kind is None else kind.__name__)
        return kind is KeyError


@one(x)
def context_of_the_user(a):
    with Guarded() as g:
        a = a + 1
    with Guarded():
        {}["missing"]
    with Guarded(), Guarded():
        a = a * 2
    return a, LOG, isinstance(g, Guarded)


@contextlib.contextmanager
def noted(name):
    LOG.append(f"begin {name}")
    try:
        yield name * 2
    finally:
        LOG.append(f"end {name}")


@one(x)
def context_of_a_generator(a):
    with noted("p") as name:
        a = a + len(name)
    return a, LOG


@program(x)
def context_of_a_generator_raising(a):
    try:
        with noted("p"):
            a = a + 1
            raise ValueError("inside")
    except ValueError as error:
        LOG.append(str(error))
    return a, LOG


@one(x)
def suppressed(a):
    with contextlib.suppress(KeyError):
        a = a + 1
        {}["k"]
    with contextlib.nullcontext(3) as three:
        a = a * three
    return a


class Meta(type):
    registry = []

    def __call__(cls, *args):
        made = super().__call__(*args)
        made.marked = True
        return made

    @property
    def title(cls):
        return cls.__name__.lower()

    def shout(cls):
        return cls.__name__.upper()


class Made(metaclass=Meta):
    def __init__(self, v):
        self.v = v


@one(x)
def metaclass_call(a):
    made = Made(3)
    return a + made.v, made.marked, Made.title, Made.shout(), type(Made) is Meta, isinstance(made, Made)


class Single:
    instance = None

    def __new__(cls, *args):
        made = super().__new__(cls)
        made.order = ["new"]
        return made

    def __init__(self, v):
        self.order.append("init")
        self.v = v


class Other:
    def __new__(cls, v):
        return v * 2

    def __init__(self, v):
        raise RuntimeError("not called")


@one(x)
def new_of_the_user(a):
    made = Single(4)
    return a + made.v, made.order, Other(3), Other(a), type(made) is Single


class Shape(abc.ABC):
    @abc.abstractmethod
    def area(self): ...

    @property
    @abc.abstractmethod
    def name(self): ...

    def describe(self):
        return f"{self.name} {self.area()}"


class Square(Shape):
    def __init__(self, side):
        self.side = side

    def area(self):
        return self.side**2

    @property
    def name(self):
        return "square"


@one(x)
def abstract_classes(a):
    square = Square(3)
    return a * square.area(), square.describe(), isinstance(square, Shape), issubclass(Square, Shape)


@one(x)
def abstract_class_made(a):
    try:
        Shape()
    except TypeError as error:
        return a + 1, str(error)


class Celsius:
    def __set_name__(self, owner, name):
        self.name = "_" + name

    def __get__(self, owner, kind=None):
        return self if owner is None else getattr(owner, self.name, 0.0)

    def __set__(self, owner, value):
        setattr(owner, self.name, value + 0.5)

    def __delete__(self, owner):
        setattr(owner, self.name, -1.0)


class Room:
    temperature = Celsius()
    limit = 30

    def __init__(self):
        self.temperature = 20.0

    @functools.cached_property
    def costly(self):
        LOG.append("computed")
        return self.temperature * 2

    @property
    def size(self):
        return self.__dict__.get("_size", 1)

    @size.setter
    def size(self, value):
        self.__dict__["_size"] = value

    @size.deleter
    def size(self):
        del self.__dict__["_size"]

    @staticmethod
    def plain(v):
        return v + 1

    @classmethod
    def named(cls, v):
        return f"{cls.__name__} {v} {cls.limit}"


@one(x)
def descriptors_of_the_user(a):
    room = Room()
    room.temperature = 5.0
    return a + room.temperature, room.costly, room.costly, LOG, Room.plain(1), room.plain(2), Room.named(3), room.named(4)


@one(x)
def properties_of_the_user(a):
    room = Room()
    first = room.size
    room.size = 5
    second = room.size
    del room.size
    return a + first, second, room.size, vars(room), room.__dict__


@program(x)
def descriptor_deleted(a):
    room = Room()
    del room.temperature
    return a + 1, room.temperature


class Slotted:
    __slots__ = ("p", "q")

    def __init__(self, p):
        self.p = p


@one(x)
def slots(a):
    made = Slotted(2)
    has = hasattr(made, "q")
    made.q = 3
    return a * made.p + made.q, has, hasattr(made, "q"), made.__slots__


@one(x)
def slots_refused(a):
    made = Slotted(2)
    try:
        made.r = 1
    except AttributeError as error:
        return a + 1, str(error)


class Watched:
    def __init__(self):
        self.v = 1

    def __setattr__(self, name, value):
        LOG.append(name)
        super().__setattr__(name, value)

    def __delattr__(self, name):
        LOG.append(f"del {name}")
        object.__delattr__(self, name)


@one(x)
def watched_attributes(a):
    made = Watched()
    made.w = a
    del made.v
    return made.w + 1, LOG, hasattr(made, "v"), vars(made)


@one(x)
def dict_of_an_object(a):
    room = Room()
    room.__dict__["direct"] = 3
    vars(room).update(p=1, q=2)
    room.__dict__.pop("p")
    return a + room.direct, room.q, hasattr(room, "p"), "q" in room.__dict__, list(vars(room)), len(vars(room)), dict(vars(room))


@program(Room(), x)
def dict_of_an_object_from_outside(room, a):
    room.__dict__["extra"] = a
    room.other = 2
    del room.other
    return a + len(room.__dict__), sorted(vars(room)), room


@dataclasses.dataclass
class Config:
    size: int
    name: str = "n"
    items: list = dataclasses.field(default_factory=list)
    derived: int = dataclasses.field(init=False, default=0)

    def __post_init__(self):
        self.derived = self.size * 2


@dataclasses.dataclass(frozen=True, order=True)
class Frozen:
    p: int
    q: int = 2


@dataclasses.dataclass(slots=True, kw_only=True)
class Keyworded:
    p: int
    q: float = 1.0


@one(x)
def dataclass_basics(a):
    config = Config(3, items=[1])
    config.items.append(2)
    return a * config.size + config.derived, config, config == Config(3, items=[1, 2]), repr(config), Config(1).items


@one(x)
def dataclass_frozen(a):
    f = Frozen(1)
    try:
        f.p = 2
    except dataclasses.FrozenInstanceError as error:
        message = str(error)
    return a + f.q, message, f < Frozen(2), f == Frozen(1, 2), max(Frozen(1), Frozen(3)), str(f)


@program(x)
def dataclass_functions(a):
    f = Frozen(1)
    g = dataclasses.replace(f, q=7)
    return a + g.q, dataclasses.asdict(f), dataclasses.astuple(f), [field.name for field in dataclasses.fields(f)], hash(f) == hash(Frozen(1))


@one(x)
def dataclass_keyword_only(a):
    return a * Keyworded(p=2).q, Keyworded(p=1, q=2.0), dataclasses.is_dataclass(Keyworded)


@program(x)
def dataclass_refused(a):
    try:
        Keyworded(1)
    except TypeError as error:
        return a + 1, str(error)


class Color(enum.Enum):
    RED = 1
    GREEN = 2

    @property
    def double(self):
        return self.value * 2

    @classmethod
    def first(cls):
        return cls.RED

    def describe(self):
        return f"{self.name}: {self.value}"


class Level(enum.IntEnum):
    LOW = 1
    HIGH = 5


class Bits(enum.Flag):
    A = enum.auto()
    B = enum.auto()


@one(x)
def enumerations(a):
    color = Color(2)
    found = [c.name for c in Color]
    return a + color.value, color is Color.GREEN, Color["RED"].double, found, len(Color), Color.first().describe(), color == Color.RED, color in (Color.RED, Color.GREEN), {Color.RED: 1}[Color.RED]


@one(x)
def integer_enumerations(a):
    return a + Level.HIGH, Level.LOW < Level.HIGH, Level(5).name, int(Level.LOW), Level.HIGH * 2, [10, 20][Level.LOW], f"{Level.LOW:d}", isinstance(Level.LOW, int)


@one(x)
def flags(a):
    both = Bits.A | Bits.B
    return a + both.value, Bits.A in both, bool(both & Bits.B), both ^ Bits.A


@one(x)
def enumeration_refused(a):
    try:
        Color(9)
    except ValueError as error:
        return a + 1, str(error)


Pair = collections.namedtuple("Pair", "left right", defaults=[7])


class Record(typing.NamedTuple):
    p: int
    q: str = "q"

    def both(self):
        return f"{self.p}{self.q}"

    @property
    def doubled(self):
        return self.p * 2


@one(x)
def named_tuples(a):
    pair = Pair(1)
    left, right = pair
    changed = pair._replace(left=a)
    return a + left, right, changed.left, pair._asdict(), pair._fields, Pair._make([3, 4]), pair == (1, 7), pair + (1,), pair[0], repr(pair), pair.index(7), Pair(left=2, right=3)


@one(x)
def typed_named_tuples(a):
    record = Record(2)
    return a * record.doubled, record.both(), record.q, record, Record._field_defaults, isinstance(record, tuple), record[::-1], len(record)


@program(x)
def named_tuple_refused(a):
    try:
        Record()
    except TypeError as error:
        return a + 1, str(error)


class ProblemError(Exception):
    def __init__(self, code, detail="d"):
        super().__init__(f"problem {code}")
        self.code = code
        self.detail = detail

    @property
    def doubled(self):
        return self.code * 2


class DeepProblemError(ProblemError):
    def __str__(self):
        return f"deep {self.code}"


@one(x)
def exception_classes(a):
    try:
        raise ProblemError(3)
    except ProblemError as error:
        return a + error.code, error.args, error.detail, error.doubled, isinstance(error, Exception)


@program(x)
def exception_class_texts(a):
    try:
        raise DeepProblemError(3, detail="x")
    except ProblemError as error:
        return a + error.code, str(error), f"{error}", repr(error)


@program(x)
def exception_class_raised(a):
    a + 1
    raise ProblemError(4)


@program(x)
def exception_class_returned(a):
    error = ProblemError(5)
    error.extra = a
    return error.code, error.args, error.extra + 1


class Base:
    def __init__(self, v):
        self.v = v

    def go(self, a):
        return a + self.v


class Left(Base):
    def go(self, a):
        return super().go(a) * 2


class Right(Base):
    def go(self, a):
        return super().go(a) - 1


class Both(Left, Right):
    def __init__(self):
        super().__init__(3)

    def go(self, a):
        return super(Both, self).go(a) + super(Left, self).go(a)

    def __init_subclass__(cls, **named):
        super().__init_subclass__(**named)


@one(x)
def diamond(a):
    both = Both()
    return both.go(a), Base.go(both, a), [kind.__name__ for kind in Both.__mro__], Both.__bases__ == (Left, Right), type(both).__name__


class Lazy:
    loads = 0

    def __getattribute__(self, name):
        return object.__getattribute__(self, name)


@program(x)
def getattribute_of_the_user(a):
    return a + Lazy().loads


@program(x)
def class_attribute_written(a):
    before = Room.limit
    Room.limit = 40
    try:
        return a + Room.limit, Room().limit
    finally:
        Room.limit = before


@program(x)
def class_made_inside(a):
    class Inside(Base):
        factor = 3

        def go(self, a):
            return super().go(a) * self.factor

    return Inside(1).go(a), Inside.__name__, Inside.__qualname__


@program(x)
def generic_classes(a):
    T = typing.TypeVar("T")  # noqa: N806

    class Box(typing.Generic[T]):
        def __init__(self, v):
            self.v = v

    return a + Box(3).v, Box[int](4).v


@one(x)
def types_of_values(a):
    kinds = [type(v).__name__ for v in (1, 1.0, "s", None, [], {}, (), set(), a, Base(1), len, Base, lambda: 1, 1j, b"")]
    return a + 1, kinds, type(1) is int, type(Base(1)) is Base, type(a) is torch.Tensor, isinstance(1, (int, str)), isinstance(True, int), isinstance([], collections.abc.Sequence), isinstance({}, collections.abc.Mapping)


@one(x)
def callables(a):
    return a + 1, [callable(v) for v in (len, Base, Base(1), Vector(1), lambda: 1, 3, "s", a.sum, Base(1).go, functools.partial(len), torch.sin)]


@program(x)
def copies(a):
    items = [1, [2, a]]
    table = {"k": items}
    shallow, deep = copy.copy(items), copy.deepcopy(table)
    shallow.append(3)
    shallow[1].append(4)
    return items, shallow, deep, a + 1


@program(Base(1), x)
def copies_of_objects(base, a):
    other = copy.copy(base)
    other.v = 9
    deep = copy.deepcopy(base)
    deep.w = 1
    return base.v, other.v, deep.v, a + 1


@program(x)
def identities(a):
    base = Base(1)
    return id(base) == id(base), id(a) == id(a), a + 1


@one(x)
def attribute_functions(a):
    base = Base(2)
    setattr(base, "w", 5)
    delattr(base, "v")
    return a + getattr(base, "w"), hasattr(base, "v"), getattr(base, "v", None), [name for name in ("w", "v") if hasattr(base, name)]


@one(x)
def operators_between_classes(a):
    class_of = {int: "int", str: "str", Base: "base"}
    return a + 1, class_of[type(3)], class_of[type(Base(1))], int in class_of, Base is Base, Base == Left, Base != Left
