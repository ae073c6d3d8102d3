"""More of the language: exits of every kind, refinement, assignments, comprehensions, text, classes, interfaces, unions."""

from typing import Any, Dict, Final, List, NamedTuple, Optional, Tuple, Union

import rushlight as torch


class Context:
    def __init__(self, log: List[str], name: str):
        self.log = log
        self.name = name

    def __enter__(self):
        self.log.append("in " + self.name)
        return self

    def __exit__(self, kind: Any, value: Any, trace: Any):
        self.log.append("out " + self.name)


class Account:
    """Methods that leave early."""

    limit: Final[int] = 10

    def __init__(self, amount: int):
        self.amount = amount
        self.names: List[str] = []

    def take(self, wanted: int) -> bool:
        if wanted > self.amount:
            return False
        self.amount -= wanted
        return True

    def first_long(self, least: int) -> Optional[str]:
        for name in self.names:
            if len(name) >= least:
                return name
        return None

    def __len__(self) -> int:
        return len(self.names)

    @staticmethod
    def double(x: int) -> int:
        return x * 2

    @property
    def is_empty(self) -> bool:
        return self.amount == 0


class Pair(NamedTuple):
    key: str
    value: int = 3


@torch.jit.interface
class Step:
    def run(self, x: int) -> int:
        pass


@torch.jit.script
class Adding:
    def __init__(self, n: int):
        self.n = n

    def run(self, x: int) -> int:
        return x + self.n


# Exits


def return_in_with_in_loop(n: int):
    log: List[str] = []
    for i in range(n):
        with Context(log, "a"):
            if i == 2:
                return log
            log.append(str(i))
    return log
#: (5,)
#: (2,)


def break_in_with(n: int):
    log: List[str] = []
    for i in range(n):
        with Context(log, "b"):
            if i == 1:
                break
        log.append("after")
    return log
#: (3,)
#: (1,)


def continue_in_with(n: int):
    log: List[str] = []
    for i in range(n):
        with Context(log, "c"):
            if i % 2 == 0:
                continue
            log.append("odd")
    return log
#: (4,)


def two_contexts(n: int):
    log: List[str] = []
    with Context(log, "a") as a, Context(log, "b"):
        log.append(a.name)
        if n > 0:
            return log
    log.append("end")
    return log
#: (1,)
#: (0,)


def always_returned_in_with(n: int):
    log: List[str] = []
    with Context(log, "a"):
        log.append("body")
        return log
#: (1,)


def raised_in_with(n: int):
    log: List[str] = []
    with Context(log, "a"):
        if n > 3:
            raise ValueError("too many")
        log.append("fine")
    return log
#: (1,)
#: (4,)


def return_in_first_round(n: int):
    for i in range(n):
        return i + 10
    return -1
#: (3,)
#: (0,)


def break_at_once(n: int):
    total = 0
    for i in range(n):
        total += i
        break
    return total
#: (3,)


def continue_at_end(n: int):
    total = 0
    for i in range(n):
        if i > 2:
            total += i
            continue
        else:
            total -= 1
            continue
    return total
#: (6,)


def break_or_return(items: List[int]):
    seen = 0
    for item in items:
        if item < 0:
            return -seen
        if item == 0:
            break
        seen += item
    return seen
#: ([1, 2, 0, 5],)
#: ([1, -2, 0],)
#: ([4],)


def breaks_three_deep(n: int):
    count = 0
    for i in range(n):
        for j in range(n):
            for k in range(n):
                if k > j:
                    break
                if (i + j + k) % 2 == 0:
                    continue
                count += 1
            if count > 10:
                break
        if count > 15:
            return -count
    return count
#: (4,)
#: (2,)


def while_with_all_exits(n: int):
    i = 0
    while i < 100:
        i += 1
        if i % 7 == 0:
            continue
        if i > n:
            break
        if i == 13:
            return -1
    return i
#: (5,)
#: (50,)


def while_true_returns(x: float):
    while True:
        x = x / 2
        if x < 1.0:
            return x
        if x > 1000.0:
            raise RuntimeError("large")
#: (10.0,)
#: (1e9,)


def nested_while_return(n: int) -> int:
    i = 0
    while i < n:
        j = 0
        while j < i:
            if i * j == 12:
                return i + j
            j += 1
        i += 1
    return 0
#: (10,)
#: (3,)


def returns_in_both_in_loop(items: List[int]):
    for item in items:
        if item > 3:
            return "large"
        else:
            return "small"
    return "none"
#: ([5],)
#: ([1],)
#: ([],)


def early_return_of_tuples(x: int):
    if x == 0:
        return 0, "zero"
    if x < 0:
        return -x, "negative"
    return x, "positive"
#: (0,)
#: (-2,)
#: (2,)


def raise_or_return(x: int) -> int:
    if x > 0:
        if x > 10:
            raise ValueError("large")
        return x
    raise RuntimeError("not positive")
#: (3,)
#: (30,)
#: (-3,)


def assert_in_loop(items: List[int]):
    for i, item in enumerate(items):
        assert item > i, "item {} is small".format(i)
    return len(items)
#: ([1, 2, 3],)
#: ([1, 1],)


def continue_over_dict(d: Dict[str, int]):
    total = 0
    for key, value in d.items():
        if key == "skip":
            continue
        total += value
    return total
#: ({'a': 1, 'skip': 5, 'b': 2},)


def break_in_zip(a: List[int], b: List[str]):
    out: List[str] = []
    for x, y in zip(a, b):
        if x == 3:
            break
        out.append(y + str(x))
    return out
#: ([1, 2, 3, 4], ['a', 'b', 'c', 'd'])


def early_return_tensor(x: torch.Tensor, n: int):
    for i in range(n):
        x = x * 2
        if bool(x.max() > 10):
            return x, i
    return x, -1
#: (torch.ones(2), 10)
#: (torch.ones(2), 2)


def none_or_value(items: List[int]) -> Optional[int]:
    for item in items:
        if item % 2 == 0:
            return item
    return None
#: ([1, 3, 4],)
#: ([1],)


def return_none_early(x: List[int]) -> None:
    if len(x) == 0:
        return
    x.append(1)
#: ([],)
#: ([3],)


# Refinement


def refined_by_and(x: Optional[int], y: Optional[int]):
    if x is not None and y is not None and x > y:
        return x - y
    return -1
#: (5, 2)
#: (None, 2)
#: (1, None)


def refined_by_or(x: Optional[int], y: Optional[int]):
    if x is None or y is None:
        return 0
    return x * y
#: (5, 2)
#: (None, 2)


def refined_by_not(x: Optional[str]):
    if not (x is None):
        return x.upper()
    else:
        return "NONE"
#: ("a",)
#: (None,)


def refined_in_ternary(x: Optional[int]):
    y = x if x is not None else 5
    return y + 1
#: (None,)
#: (2,)


def refined_by_assert(x: Optional[List[int]]):
    assert x is not None
    x.append(3)
    return x
#: ([1],)
#: (None,)


def refined_attribute(x: Optional[torch.Tensor], y: torch.Tensor):
    if x is None:
        x = torch.zeros_like(y)
    return x + y
#: (None, torch.ones(2))
#: (torch.ones(2), torch.ones(2))


def nested_optionals(x: Optional[Tuple[int, Optional[str]]]):
    if x is None:
        return "nothing"
    n, s = x
    if s is None:
        return str(n)
    return s + str(n)
#: (None,)
#: ((3, None),)
#: ((2, 'ab'),)


def optional_in_while(x: Optional[int]):
    count = 0
    while x is not None:
        count += 1
        if x > 3:
            x = None
        else:
            x = x + 1
    return count
#: (1,)
#: (None,)


def narrowed_union(x: Union[int, str, List[int]]):
    if isinstance(x, int):
        return x + 1
    elif isinstance(x, str):
        return len(x)
    else:
        return x[0]
#: (3,)
#: ('abc',)
#: ([7, 8],)


def union_of_two_types(x: Union[float, str]) -> str:
    if isinstance(x, str):
        return x
    return str(x)
#: (1.5,)
#: ('q',)


def union_after_if(flag: bool):
    x: Union[int, str] = 3
    if flag:
        x = "s"
    return x
#: (True,)
#: (False,)


def isinstance_of_optional(x: Optional[int]):
    if isinstance(x, int):
        return x
    return 0
#: (3,)
#: (None,)


def any_checked(x: Any):
    if isinstance(x, (int, float)):
        return "number"
    if isinstance(x, str):
        return "text " + x
    return "other"
#: (1,)
#: (2.5,)
#: ('a',)
#: ([1],)


# Assignments


def augmented_subscripts(a: List[int], d: Dict[str, float], x: torch.Tensor):
    a[0] += 3
    a[-1] *= 2
    d["k"] += 1.5
    x[0] += 1
    x[1:] *= 3
    return a, d, x
#: ([1, 2, 3], {'k': 1.0}, torch.ones(3))


def augmented_attributes(n: int):
    account = Account(n)
    account.amount += 5
    account.amount *= 2
    account.names += ["a", "bcd"]
    return account.amount, account.names, account.first_long(2), account.first_long(5)
#: (1,)


def chained_targets(x: int):
    a = b = c = x + 1
    a += b
    return a, b, c
#: (1,)


def swapped(a: List[int]):
    a[0], a[1] = a[1], a[0]
    x, y = a[0], a[1]
    x, y = y, x
    return a, x, y
#: ([1, 2],)


def starred_targets(t: Tuple[int, str, float, int]):
    a, *b = t
    *c, d = t
    e, *f, g = t
    return a, b, c, d, e, f, g
#: ((1, 'a', 2.0, 3),)


def nested_targets(items: List[Tuple[int, Tuple[str, float]]]):
    out: List[str] = []
    for i, (n, (s, f)) in enumerate(items):
        out.append(str(i) + s + str(n + int(f)))
    return out
#: ([(1, ('a', 2.0)), (2, ('b', 3.0))],)


def assigned_in_branches(n: int):
    if n > 3:
        a, b = 1, "x"
    elif n > 1:
        a, b = 2, "y"
    else:
        a, b = 3, "z"
    return a, b
#: (5,)
#: (2,)
#: (0,)


def deleted_items(a: List[int], d: Dict[str, int]):
    del a[0]
    del d["x"]
    return a, d
#: ([1, 2], {'x': 1, 'y': 2})


def sliced(a: List[int], s: str, t: Tuple[int, int, int, str]):
    return a[1:], a[:-1], a[::2], a[-2:], s[1:3], s[::-1], s[-1], t[1:], t[:2], t[::2]
#: ([1, 2, 3, 4], 'abcd', (1, 2, 3, 'x'))


def slice_with_variables(a: List[int], i: int, j: int):
    return a[i:j], a[:i], a[j:], a[i:j:2]
#: ([1, 2, 3, 4, 5], 1, 4)


# Comprehensions and iteration


def comprehensions(a: List[int], d: Dict[str, int]):
    squares = [x * x for x in a]
    flags = [x > 1 for x in a]
    inverted = {v: k for k, v in d.items()}
    pairs = [(i, x) for i, x in enumerate(a)]
    return squares, flags, inverted, pairs
#: ([1, 2, 3], {'a': 1, 'b': 2})


def nested_comprehension(n: int):
    return [[i * j for j in range(i)] for i in range(n)]
#: (4,)


def comprehension_of_zip(a: List[int], b: List[float]):
    return [x * y for x, y in zip(a, b)], {x: y for x, y in zip(a, b)}
#: ([1, 2], [0.5, 1.5])


def comprehension_of_tuple(t: Tuple[int, int, int]):
    return [x + 1 for x in t]
#: ((1, 2, 3),)


def zip_of_three(a: List[int], b: List[str], c: List[float]):
    out: List[str] = []
    for x, y, z in zip(a, b, c):
        out.append(y + str(x) + str(z))
    return out
#: ([1, 2], ['a', 'b', 'c'], [0.5, 1.5])


def enumerate_of_zip(a: List[int], b: List[int]):
    total = 0
    for i, (x, y) in enumerate(zip(a, b)):
        total += i * (x - y)
    return total
#: ([4, 5, 6], [1, 1, 1])


def enumerate_from(a: List[str], n: int):
    return [str(i) + x for i, x in enumerate(a, n)], [str(i) + x for i, x in enumerate(a, start=1)]
#: (['a', 'b'], 7)


def over_string(s: str):
    out: List[str] = []
    for c in s:
        if c == " ":
            continue
        out.append(c.upper())
    return "".join(out)
#: ('a b c',)


def over_dict_keys(d: Dict[int, str]):
    out: List[int] = []
    for k in d:
        out.append(k)
    for k in d.keys():
        out.append(k * 2)
    for v in d.values():
        out.append(len(v))
    return out
#: ({1: 'a', 2: 'bb'},)


def range_of_lists(a: List[int]):
    return list(range(3)), list(range(1, 10, 4)), [i for i in range(len(a), 0, -1)]
#: ([1, 2],)


def dict_of_pairs(a: List[Tuple[str, int]], k: List[str], v: List[int]):
    return dict(a), dict(zip(k, v)), dict(a=1, b=2)
#: ([('x', 1)], ['p', 'q'], [3, 4])


# Text


def string_methods(s: str):
    return s.strip().split(","), s.replace("a", "b"), s.startswith("a"), s.endswith("c"), s.find("b"), s.count("a"), s.title()
#: ('a,b,aa',)


def joined(a: List[str]):
    return ", ".join(a), "-".join([x + x for x in a])
#: (['a', 'b'],)


def formatted(a: int, b: float, c: str):
    return "{} {} {}".format(a, b, c), "{0} {1}".format(a, b), f"{a}/{c}", "%d %s" % (a, c)
#: (1, 2.5, 'x')


def constant_format():
    return "{} and {}".format(1, "two"), f"{1}{'a'}", f"plain"
#: ()


def repeated_and_compared(s: str, t: str):
    return s + t, s < t, s == t, s != t, s >= t, len(s + t)
#: ('ab', 'ac')


def converted_text(s: str):
    return int(s), float(s), str(int(s) + 1), bool(int(s)), ord(s[0]), chr(65)
#: ('12',)


def contained_in(s: str, a: List[str], d: Dict[str, int], n: List[int]):
    return "a" in s, s in a, s in d, 3 in n, 3 not in n, s not in d
#: ('ab', ['ab'], {'ab': 1}, [1, 2])


# Classes


def account_used(n: int):
    account = Account(n)
    first = account.take(3)
    second = account.take(100)
    return first, second, account.amount, account.is_empty, Account.double(4), len(account), account.limit
#: (3,)
#: (10,)


def objects_in_lists(n: int):
    accounts = [Account(i) for i in range(n)]
    total = 0
    for account in accounts:
        if not account.take(2):
            continue
        total += account.amount
    return total
#: (6,)


def pair_with_default(k: str):
    a = Pair(k)
    b = Pair(k, 4)
    c = Pair(value=5, key="z")
    return a, b.value + c.value, a.key + c.key, a == Pair(k, 3)
#: ('q',)


def pair_unpacked(p: Pair):
    key, value = p
    return key + str(value), p[0], p[1], len(p)
#: (Pair('a', 2),)


def through_interface(n: int):
    step: Step = Adding(n)
    return step.run(5)
#: (3,)


def lists_of_interfaces(n: int):
    steps: List[Step] = [Adding(1), Adding(n)]
    x = 0
    for step in steps:
        x = step.run(x)
    return x
#: (4,)


def objects_compared(n: int):
    a = Account(n)
    b = a
    b.amount = 7
    return a.amount, a is b
#: (1,)


# Others


def ternaries(a: int, b: float):
    x = a if a > 0 else -a
    y = b if b > 0 else 0.0
    return x, y, "p" if a > 0 else "n" if a < 0 else "z"
#: (1, 2.0)
#: (-1, -2.0)
#: (0, 0.0)


def short_circuits(a: List[int]):
    return len(a) > 0 and a[0] > 1, len(a) == 0 or a[0] < 5, not a
#: ([],)
#: ([3],)


def chained_comparisons(a: int, b: int):
    return 0 < a < b, a <= b <= 10, 1 < a < 5 < b
#: (3, 7)


def shadowed_in_loop(n: int):
    x = 1
    for x in range(n):
        pass
    y = x
    for i in range(2):
        y = y + i
        z = y
    return x, y
#: (4,)


def several_carried(n: int):
    a, b, c, d = 0, 1, 2, 3
    for i in range(n):
        a, b, c, d = b, c, d, a + i
        if d > 6:
            a = 0
    return d, b, a
#: (7,)


def carried_list_and_tensor(x: torch.Tensor, n: int):
    out: List[torch.Tensor] = []
    i = 0
    while i < n:
        x = x + i
        out.append(x)
        i += 1
    return torch.stack(out), i
#: (torch.zeros(2), 3)


def dead_loop(n: int):
    a = 0
    b = 1
    for i in range(n):
        a += i
        c = i * 2
    if n > 3:
        d = b + 1
    return n
#: (3,)


def constants_in_branches(flag: bool):
    if flag:
        a, b, c = 1, True, "x"
    else:
        a, b, c = 1, False, "x"
    return a, b, c
#: (True,)
#: (False,)


def static_branches(x: torch.Tensor):
    if torch.jit.is_scripting():
        y = x + 1
    else:
        y = "never"
    return y
#: (torch.ones(1),)


def printed_in_loop(n: int):
    for i in range(n):
        if i == 1:
            print("one", i)
            continue
        print(i, end_text(i))
    return n
#: (3,)


def end_text(i: int) -> str:
    if i > 1:
        return "large"
    return "small"


def called_with_early_returns(n: int):
    return [end_text(i) for i in range(n)], end_text(n) + "!"
#: (3,)


def integer_division(a: int, b: int):
    if b == 0:
        return 0, 0, 0.0
    return a // b, a % b, a / b
#: (7, 2)
#: (-7, 2)
#: (1, 0)


def tuples_in_loops(n: int):
    best = (0, "none")
    for i in range(n):
        score = (i * 7) % 5
        if score > best[0]:
            best = (score, str(i))
    return best
#: (6,)


def optional_carried(items: List[int]):
    best: Optional[int] = None
    for item in items:
        if best is None or item > best:
            best = item
    return best
#: ([3, 9, 2],)
#: ([],)


def dict_counted(words: List[str]):
    counts: Dict[str, int] = {}
    for word in words:
        if word in counts:
            counts[word] += 1
        else:
            counts[word] = 1
    return counts
#: (['a', 'b', 'a'],)


def matrix_search(rows: List[List[int]], wanted: int):
    for i, row in enumerate(rows):
        for j, value in enumerate(row):
            if value == wanted:
                return i, j
    return -1, -1
#: ([[1, 2], [3, 4]], 3)
#: ([[1, 2], [3, 4]], 9)


def greatest_divisor(a: int, b: int):
    while b != 0:
        a, b = b, a % b
    return a
#: (48, 36)


def binary_search(items: List[int], wanted: int):
    low, high = 0, len(items) - 1
    while low <= high:
        middle = (low + high) // 2
        if items[middle] == wanted:
            return middle
        if items[middle] < wanted:
            low = middle + 1
        else:
            high = middle - 1
    return -1
#: ([1, 3, 5, 7, 9], 7)
#: ([1, 3, 5, 7, 9], 2)


def generator(a: List[int]):
    return sum(x for x in a)
#: ([1, 2],)
