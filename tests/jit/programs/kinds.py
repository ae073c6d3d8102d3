"""Types: Optional and its refinement, Union, Any, NamedTuple, Enum, classes, interfaces, devices, Future."""

from dataclasses import dataclass
from enum import Enum
from typing import Any, Dict, List, NamedTuple, Optional, Tuple, Union

import rushlight as torch


class Color(Enum):
    RED = 1
    GREEN = 2


class Unit(Enum):
    METRE = "m"
    SECOND = "s"


class Point(NamedTuple):
    x: int
    y: float = 0.5


class Pair(NamedTuple):
    first: torch.Tensor
    second: Optional[torch.Tensor]


class Counter:
    def __init__(self, start: int):
        self.count = start
        self.history: List[int] = []

    def add(self, by: int = 1) -> int:
        self.count += by
        self.history.append(self.count)
        return self.count

    def __len__(self) -> int:
        return len(self.history)

    def __eq__(self, other: "Counter") -> bool:
        return self.count == other.count

    def __contains__(self, value: int) -> bool:
        return value in self.history

    @property
    def doubled(self) -> int:
        return self.count * 2

    @staticmethod
    def zero():
        return Counter(0)


class Vector:
    def __init__(self, x: float, y: float):
        self.x = x
        self.y = y

    def __add__(self, other: "Vector") -> "Vector":
        return Vector(self.x + other.x, self.y + other.y)

    def __mul__(self, k: float) -> "Vector":
        return Vector(self.x * k, self.y * k)

    def __neg__(self) -> "Vector":
        return Vector(-self.x, -self.y)

    def __getitem__(self, i: int) -> float:
        return self.x if i == 0 else self.y

    def __setitem__(self, i: int, v: float):
        if i == 0:
            self.x = v
        else:
            self.y = v

    def __lt__(self, other: "Vector") -> bool:
        return self.x < other.x


class Scope:
    def __init__(self):
        self.log: List[str] = []

    def __enter__(self) -> int:
        self.log.append("in")
        return 7

    def __exit__(self, kind: Any, value: Any, trace: Any):
        self.log.append("out")


@torch.jit.interface
class Shape:
    def area(self, scale: float) -> float:
        pass


class Square:
    def __init__(self, side: float):
        self.side = side

    def area(self, scale: float) -> float:
        return self.side * self.side * scale


class Disc:
    def __init__(self, radius: float):
        self.radius = radius

    def area(self, scale: float) -> float:
        return 3.0 * self.radius * self.radius * scale


@dataclass
class Item:
    name: str
    price: float = 1.5
    count: int = 2


def optional_default(x: Optional[int] = None) -> int:
    if x is None:
        x = 5
    return x + 1
#: ()
#: (3,)


def optional_else(x: Optional[int]):
    if x is not None:
        return x * 2
    else:
        return -1
#: (None,)
#: (4,)


def optional_and(x: Optional[int], y: Optional[int]):
    if x is not None and y is not None:
        return x + y
    return 0
#: (1, 2)
#: (1, None)


def optional_or(x: Optional[int], y: Optional[int]):
    if x is None or y is None:
        return -1
    return x * y
#: (2, 3)
#: (None, 3)


def optional_not(x: Optional[int]):
    if not (x is None):
        return x + 1
    return 0
#: (1,)
#: (None,)


def optional_while(xs: List[Optional[int]]):
    total = 0
    for x in xs:
        if x is None:
            continue
        total += x
    return total
#: ([1, None, 2],)


def optional_unwrapped(x: Optional[int]):
    return torch.jit._unwrap_optional(x) + 1
#: (3,)
#: (None,)


def optional_ternary(x: Optional[int]):
    return x + 1 if x is not None else 0
#: (3,)
#: (None,)


def optional_assigned(flag: bool):
    x: Optional[int] = None
    if flag:
        x = 3
    return x
#: (True,)
#: (False,)


def optional_list(flag: bool):
    x: Optional[List[int]] = None
    if flag:
        x = [1]
    if x is not None:
        x.append(2)
    return x
#: (True,)
#: (False,)


def union_argument(x: Union[int, str]):
    if isinstance(x, int):
        return x + 1
    else:
        return len(x)
#: (3,)
#: ('abc',)


def union_of_lists(x: Union[List[int], List[str]]):
    if isinstance(x, List[int]):
        return x[0]
    return len(x)
#: ([4],)
#: (['a', 'b'],)


def union_returned(flag: bool) -> Union[int, str]:
    if flag:
        return 1
    return "a"
#: (True,)
#: (False,)


def any_value(x: Any):
    if isinstance(x, int):
        return x + 1
    if isinstance(x, str):
        return len(x)
    return -1
#: (3,)
#: ('ab',)
#: (2.5,)


def any_returned(x: int) -> Any:
    return x
#: (3,)


def isinstance_static(x: int, y: torch.Tensor):
    return isinstance(x, int), isinstance(y, torch.Tensor), isinstance(x, float), isinstance(x, (int, str))
#: (1, torch.ones(1))


def isinstance_containers(x: List[int], d: Dict[str, int], t: Tuple[int, int]):
    return isinstance(x, list), isinstance(d, dict), isinstance(t, tuple), torch.jit.isinstance(x, List[int])
#: ([1], {'a': 1}, (1, 2))


def enum_values(c: Color):
    return c.value, c.name, c == Color.RED, c != Color.GREEN
#: (Color.RED,)
#: (Color.GREEN,)


def enum_strings(u: Unit):
    if u == Unit.METRE:
        return "metre " + u.value
    return "second"
#: (Unit.METRE,)
#: (Unit.SECOND,)


def enum_iterated():
    total = 0
    for c in Color:
        total += c.value
    return total
#: ()


def enum_made(flag: bool):
    c = Color.RED
    if flag:
        c = Color.GREEN
    return c
#: (True,)
#: (False,)


def enum_list(cs: List[Color]):
    return cs[0] == Color.RED, Color.GREEN in cs
#: ([Color.RED],)


def named_tuple(p: Point):
    return p.x, p.y, p[0], len(p)
#: (Point(1, 2.0),)


def named_tuple_made(x: int):
    p = Point(x)
    q = Point(y=1.5, x=2)
    return p, q.y + p.y
#: (3,)


def named_tuple_unpacked(p: Point):
    x, y = p
    return y * x
#: (Point(2, 2.5),)


def named_tuple_of_tensors(x: torch.Tensor):
    p = Pair(x, None)
    if p.second is None:
        p = Pair(x * 2, x)
    return p
#: (torch.ones(2),)


def class_counter(n: int):
    c = Counter(n)
    c.add()
    c.add(by=5)
    return c.count, len(c), c.doubled, 6 in c, c.history
#: (3,)


def class_static(n: int):
    z = Counter.zero()
    for i in range(n):
        z.add(i)
    return z.count, z == Counter(6)
#: (4,)


def class_argument(c: Counter):
    c.add(10)
    return c.count
#: (Counter(1),)


def class_returned(n: int):
    c = Counter(n)
    c.add(2)
    return c
#: (3,)


def class_operators(k: float):
    v = Vector(1.0, 2.0) + Vector(3.0, 4.0) * k
    w = -v
    w[0] = 9.0
    return v[0], v[1], w[0], w[1], v < w
#: (2.0,)


def class_in_list(n: int):
    vs = [Vector(float(n - i), 0.0) for i in range(n)]
    vs.sort()
    return vs[0].x, vs[-1].x
#: (3,)


def class_in_dict():
    d = {"a": Counter(1), "b": Counter(2)}
    d["a"].add(5)
    total = 0
    for k, c in d.items():
        total += c.count
    return total
#: ()


def class_attribute_assigned(n: int):
    c = Counter(n)
    c.count = 7
    c.count *= 2
    return c.count
#: (1,)


def class_context(n: int):
    s = Scope()
    with s as seven:
        n += seven
    return n, s.log
#: (1,)


def class_dataclass(n: int):
    i = Item("a", count=n)
    return i.name, i.price * i.count, i == Item("a", 1.5, n)
#: (3,)


def interface_value(flag: bool):
    s: Shape = Square(2.0)
    if flag:
        s = Disc(1.0)
    return s.area(2.0)
#: (True,)
#: (False,)


def takes_shape(s: Shape) -> float:
    return s.area(1.0)


def interface_argument():
    return takes_shape(Square(3.0)) + takes_shape(Disc(1.0))
#: ()


def doubled(x: int) -> int:
    return x * 2


def forked(x: int):
    a = torch.jit.fork(doubled, x)
    b = torch.jit.fork(doubled, x + 1)
    return torch.jit.wait(a) + torch.jit.wait(b)
#: (3,)


def forked_tensors(x: torch.Tensor):
    futures: List[torch.jit.Future[torch.Tensor]] = []
    for i in range(3):
        futures.append(torch.jit.fork(torch.neg, x * i))
    return [f.wait() for f in futures]
#: (torch.ones(2),)


def device_type(x: torch.Tensor):
    return x.device.type, str(x.device), x.device.index
#: (torch.ones(1),)


def dtype_values(x: torch.Tensor):
    return x.dtype == torch.float32, x.dtype == torch.int64
#: (torch.ones(1),)


def annotated(n: int):
    x = torch.jit.annotate(Optional[int], None)
    if n > 0:
        x = n
    y = torch.jit.annotate(Dict[int, List[str]], {})
    y[n] = ["a"]
    return x, y
#: (3,)
#: (-1,)


def scripting_only(n: int):
    if torch.jit.is_scripting():
        return n + 1
    return [i for i in (n, "mixed")]
#: (3,)


def deep_types(d: Dict[str, List[Tuple[int, Optional[str]]]]):
    out: List[str] = []
    for k, v in d.items():
        for n, s in v:
            if s is not None:
                out.append(k + s * 1 if False else k + s)
    return out
#: ({'a': [(1, 'x'), (2, None)]},)


def list_or_tuple(x: Union[int, List[int], Tuple[int, int]]):
    if isinstance(x, list):
        return len(x)
    elif isinstance(x, tuple):
        return x[0]
    return x
#: ([7, 8, 9],)
#: ((7, 8),)
#: (3,)


def any_list(x: Any) -> int:
    if isinstance(x, (list, tuple)):
        return 1
    if isinstance(x, int):
        return x + 5
    return 0
#: ([7, 8],)
#: ((7, 8),)
#: (3,)
#: ('a',)


def filled(x: torch.Tensor, fill: Union[int, float, List[float]]):
    values, count = (fill, len(fill)) if isinstance(fill, (tuple, list)) else ([float(fill)], 1)
    return torch.tensor(values).view(1, count) + x
#: (torch.zeros(2, 1), [1.0, 2.0])
#: (torch.zeros(2, 1), 3)
#: (torch.zeros(2, 1), 0.5)
