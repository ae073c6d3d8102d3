"""Programs: arithmetic, texts, branches, loops, containers and their mutation, comprehensions, match."""

# ruff: noqa: B007, B010, B016, B023, F821, F841, UP003, UP031, UP032, UP033

from __future__ import annotations

import collections
import math

import rushlight as torch
from tests.dynamo.harness import Programs

PROGRAMS = Programs()
one = PROGRAMS.one
program = PROGRAMS
x = torch.tensor([1.0, 2.0, 3.0])
y = torch.tensor([4.0, -5.0, 6.0])
m = torch.arange(6.0).reshape(2, 3)


@one(x)
def arithmetic(a):
    return a + 1 - 2 * a / 3 ** 2 % 5, a // 2, -a, +a, a @ a, abs(a), a**2


@one(x, 7, 3)
def integers(a, n, k):
    return a * (n + k - n * k // 2 % 5) + (n << k) - (n >> 1) + (n & k | 8 ^ k) + ~n, divmod(n, k), n / k, n**k, -n


@one(x, 2.5)
def floats(a, f):
    return a * f, f // 1, f % 1, round(f), round(f, 1), int(f), float(3), f.is_integer(), math.floor(f), f == 2.5, math.sqrt(f)


@one(x, True, False)
def booleans(a, p, q):
    return a + (1 if p and not q else 2), p or q, p ^ q, p & q, not p, p == 1, p + p, bool([]), bool("a")


@one(x)
def comparisons(a):
    return a > 2, a == a, a != 2, 1 < 2 <= 2, "a" < "b", (1, 2) < (1, 3), [1] == [1], [1, 2] > [1], None is None, 1 == 1.0


@one(x)
def chained_comparisons(a):
    n = a.shape[0]
    return a if 1 < n < 5 and n != 4 or False else a + 1


@one(x, 3)
def conditional(a, n):
    if n > 5:
        return a
    elif n > 2:
        a = a * 2
    else:
        a = a * 3
    return a + 1


@one(x)
def nested_functions_of_numbers(a):
    return a * max(1, 2, 3) + min([4, 5]) - abs(-3) + sum([1, 2]) + pow(2, 3) + pow(2, 3, 5) + len("abc") + ord("a") + int("12")


@one(x)
def texts(a):
    s = "Hello World"
    return (a + len(s), s.lower(), s.split(), s.replace("l", "L"), s[1:4], s[::-1], s.find("o"), s.startswith("He"), "o" in s,
            s.encode(), s.center(15, "*"), s * 2, s.partition(" "), s.title(), s.count("l"), "-".join(["a", "b"]))  # fmt: skip


@one(x, "name", 3)
def formatted(a, s, n):
    return a * n, f"{s}={n}", f"{s!r:>8}|{n:03d}|{n / 7:.2f}", "%s %d" % (s, n), "{} {k}".format(s, k=n), f"{a.shape}", f"{n=}"


@one(x)
def format_nested(a):
    w = 8
    return a, f"{3.14159:{w}.{2}f}", str(1), str(None), repr("a"), str([1, 2]), str((1,)), str(True)


@one(x)
def walrus(a):
    if (n := a.shape[0]) > 2:
        return a * n
    return a


@one(x)
def for_else(a):
    for i in range(3):
        if i == 5:
            break
    else:
        a = a + 1
    for i in range(3):
        if i == 1:
            break
    else:
        a = a + 100
    return a, i


@one(x)
def while_loop(a):
    i = 5
    while i > 0:
        i -= 1
        if i == 3:
            continue
        if i == 1:
            break
        a = a * 2
    else:
        a = a + 1000
    return a, i


@one(x)
def while_else(a):
    n = 0
    while n < 3:
        n += 1
        a = a + n
    else:
        a = -a
    return a


@one(x)
def nested_loops(a):
    out = []
    for i in range(3):
        for j in range(3):
            if j > i:
                break
            if (i + j) % 2:
                continue
            out.append(a * i + j)
    return out


@one(x)
def swaps(a):
    p, q, r = 1, a, 3
    p, q = q, p
    p, q, r = r, p, q
    return p, q, r


@one(x)
def unpacking(a):
    (p, q), *rest = [(1, 2), a, 3]
    first, *middle, last = range(5)
    [b, c] = "bc"
    return p, q, rest, first, middle, last, b, c


@one(x)
def unpack_tensor(a):
    p, q, r = a
    return p + q * r


@one(m)
def iterate_tensor(a):
    s = 0
    for row in a:
        s = s + row.sum()
    return s, [r.max() for r in a], len(a)


@one(x)
def list_methods(a):
    v = [3, 1, 2]
    v.extend((5, 6))
    v.insert(0, "z")
    v.remove(1)
    v.append(a)
    v.append(a + 1)
    p = v.pop()
    q = v.pop(0)
    v.reverse()
    w = v.copy()
    w.clear()
    return v[-1], p, q, w, v[1:].index(3), v[1:].count(3), len(v), 5 in v[1:], 7 not in v[1:]


@one(x)
def list_sort(a):
    v = [3, 1, 2]
    v.sort()
    w = sorted(["bb", "a", "ccc"], key=len, reverse=True)
    v2 = [(2, "a"), (1, "b")]
    v2.sort(key=lambda t: t[0])
    return a, v, w, v2, sorted({3: 1, 1: 2}), sorted("bca")


@one(x)
def list_slices(a):
    v = list(range(6))
    v[1:3] = [9, 9, 9]
    del v[0]
    del v[-2:]
    v[::2] = [0, 0]
    return a, v, v[1:], v[::-1], v[-1], v[:-1], v + [1], v * 2, [0] * 3


@one(x)
def list_in_place(a):
    v = [1]
    w = v
    v += [2]
    v *= 2
    w.append(a)
    return v, v is w


@one([1, 2, x])
def mutate_argument_list(v):
    v.append(5)
    v[0] = v[2] * 2
    del v[1]
    return len(v)


@one([3, 1, 2], x)
def mutate_argument_sort(v, a):
    v.sort(reverse=True)
    v += [a + 1]
    v[1:2] = []
    return a * v[0]


@one([x, [1, [2]]])
def mutate_nested_list(v):
    v[1][1].append(v[0] + 1)
    v[1][1][0] += 1
    return v[0] * 2


@one([1, 2], x)
def same_list_twice(v, a):
    w = v
    w.append(3)
    return v, w, v is w, a + len(v)


@one(x)
def tuples(a):
    t = (1, "s", a)
    u = t + (2,)
    return t[2] * 2, u, u[1:], len(t), 1 in t, t.index(1), t[:2].count(1), (1, 2) * 2, tuple([1, 2]), ()


@one(x)
def dict_methods(a):
    d = {"k": 1, 2: a}
    d.update(z=3)
    d.update({"y": 4})
    d.update([("w", 5)])
    v = d.pop("k")
    u = d.pop("none", None)
    s = d.setdefault("s", [])
    s.append(1)
    return d, v, u, d.get("q"), d.get("q", 7), list(d.keys()), list(d.items())[0], "z" in d, len(d), d | {"n": 1}, dict(d)


@one(x)
def dict_loops(a):
    d = {"p": a, "q": a + 1}
    total = 0
    for k in d:
        total = total + d[k]
    for k, v in d.items():
        total = total + v * len(k)
    for v in d.values():
        total = total + v
    del d["p"]
    return total, d, {**d, "r": 1}, dict(zip("ab", (1, 2), strict=True)), dict.fromkeys([1, 2], 0)


@one({"a": x, "n": 2})
def mutate_argument_dict(d):
    d["b"] = d["a"] + 1
    d.setdefault("c", []).append(d["n"])
    d["n"] += 1
    del d["a"]
    return d["b"]


@one({"a": x}, {"a": 1})
def dict_merge(d, e):
    f = {**d, **e}
    d |= {"z": 3}
    return f, d["z"], d["a"] + 1


@one(x)
def dict_popitem(a):
    d = {"a": 1, "b": a}
    return d.popitem(), d, d.copy(), bool(d), d == {"a": 1}, d != {}


@one(x)
def dict_views(a):
    d, e = {"a": 1, "b": 2}, {"b": 3}
    return a, d.keys() & e.keys(), d.keys() - e.keys(), "a" in d.keys(), 2 in d.values(), ("a", 1) in d.items(), len(d.items())


@one(x)
def sets(a):
    s = {1, 2}
    s.add(3)
    s.discard(9)
    s.update([4, 5])
    s.remove(1)
    return a, s, s | {7}, s & {2, 3}, s - {2}, s ^ {2, 9}, 2 in s, len(s), s <= {2, 3, 4, 5, 6}, frozenset(s), s == {2, 3, 4, 5}


@one({1, 2}, x)
def mutate_argument_set(s, a):
    s.add(3)
    s.discard(1)
    return a * len(s)


@one(x)
def set_loops(a):
    for i in {3, 1, 2}:
        a = a + i
    return a, sorted({"b", "a"}), [i for i in frozenset((5, 6))]


@one(x)
def ordered_dicts(a):
    d = collections.OrderedDict(a=1, b=a)
    d["c"] = 3
    d.move_to_end("a")
    d.move_to_end("c", last=False)
    return d, list(d), d.popitem(last=False), d


@one(x)
def default_dicts(a):
    d = collections.defaultdict(list)
    d["a"].append(a)
    d["a"].append(1)
    e = collections.defaultdict(int)
    for c in "abca":
        e[c] += 1
    return d, e, d["new"], dict(e), "zz" in e, e.get("zz")


@one(x)
def deques(a):
    d = collections.deque([1, 2])
    d.append(a)
    d.appendleft(0)
    d.extend([5])
    return d, d.pop(), d.popleft(), len(d), d[0], list(d)


Point = collections.namedtuple("Point", "x y", defaults=[5])


@one(x)
def named_tuples(a):
    p = Point(a, 2)
    q = p._replace(y=3)
    u, v = q
    return q.x * q.y, p, p[0], len(p), u + v, Point(1), Point(y=1, x=a), q._asdict(), isinstance(p, tuple), p._fields


@one(Point(x, 3))
def named_tuple_argument(p):
    return p.x * p.y, p._replace(y=1), p


@one(x)
def ranges(a):
    r = range(1, 10, 3)
    return a, list(r), len(r), r[1], 4 in r, r[-1], list(reversed(range(3))), r.start, r.stop, r.step, list(range(5, 0, -2)), sum(r)


@one(x)
def slices_objects(a):
    s = slice(1, None)
    return a[s], [1, 2, 3][s], s.start, s.stop, a[slice(0, 2)]


@one(x)
def list_comprehensions(a):
    return [a * i for i in range(3) if i != 1], [[i * j for j in range(2)] for i in range(2)], [i for v in ((1, 2), (3,)) for i in v]


@one(x)
def other_comprehensions(a):
    return {i: a + i for i in range(2)}, {i % 2 for i in range(4)}, tuple(i for i in range(3)), sum(a * i for i in range(3))


@one(x)
def comprehension_scopes(a):
    i = 10
    v = [i for i in range(3)]
    f = [lambda n=n: n + i for n in range(2)]
    return a, i, v, [g() for g in f]


@one(x)
def comprehension_with_closure(a):
    k = 2
    return [a * k + i for i in range(2)], [(lambda: k + i)() for i in range(2)]


@one(x)
def generator_expression(a):
    g = (a * i for i in range(3))
    first = next(g)
    return first, list(g)


def _match(v):
    match v:
        case 0:
            return "zero"
        case int(n) if n > 10:
            return "big", n
        case int() | float():
            return "number"
        case []:
            return "empty"
        case [a]:
            return "single", a
        case [a, 2, *rest]:
            return "two", a, rest
        case {"k": w, **rest}:
            return "dict", w, rest
        case Point(x=1, y=n):
            return "point", n
        case "a" | "b" as s:
            return "text", s
        case None:
            return "none"
        case _:
            return "other"


@one(x)
def matches(a):
    values = [0, 5, 50, 2.5, [], [1], [1, 2, 3], {"k": 1, "z": 2}, Point(1, 9), "b", None, "q", (1, 2)]
    return a + 1, [_match(v) for v in values]


@one(x)
def match_tensors(a):
    match {"k": [1, 2], "z": a}:
        case {"k": [p, q], "z": t}:
            return t * p + q
    return a


@one(x)
def match_attributes(a):
    match a.shape:
        case (3,):
            a = a + 1
        case (n, _):
            a = a + n
    return a


@one(x)
def identity(a):
    b = a
    v, w = [], []
    return b is a, None is not a, a is not None, v is w, v is v, a.add_(0) is a, (a + 0) is a


@one(x)
def delete_variables(a):
    b = a + 1
    c = b
    del b
    return c


@program(x)
def unbound_variable(a):
    b = a + 1
    del b
    return b


@one(x)
def ellipsis_and_none(a):
    return a[..., None], a[None, :, None].shape, ... is Ellipsis, a[...]


@one(x, None)
def none_argument(a, b):
    return a if b is None else b


@one(x, 1 + 2j)
def complex_numbers(a, c):
    return a + c.real, c * 2, c.conjugate(), abs(3 + 4j)


@one(x)
def bytes_values(a):
    b = b"abc"
    return a, b[0], b[1:], b.decode(), list(b), b + b"d", len(b)


@one(x)
def math_functions(a):
    return a * math.pi, math.floor(2.5), math.log(2), math.gcd(4, 6), math.inf > 1, math.isnan(math.nan), math.prod([1, 2, 3])


@one(x, float("inf"), float("nan"))
def special_floats(a, p, q):
    return a.clamp(max=p), p, q != q, -p


@one(x)
def mutation_while_iterating(a):
    v = [1, 2]
    for i in v:
        if len(v) < 5:
            v.append(i + 2)
    return a, v


@program(x, {"a": 1})
def dict_changed_size(a, d):
    a = a + 1
    for k in d:
        d[k + "b"] = 1
    return a


@one(x)
def starred_literals(a):
    v = [1, 2]
    return [0, *v, a], (*v, *"ab"), {*v, 5}, {**{"a": 1}, "b": 2}


@one(x)
def multiple_assignment(a):
    p = q = [a]
    p.append(1)
    return q, p is q


@one(x)
def augmented(a):
    n = 10
    n += 1
    n -= 2
    n *= 3
    n //= 2
    n **= 2
    n %= 50
    n <<= 1
    n >>= 1
    n |= 1
    n &= 0xFF
    n ^= 3
    s = "a"
    s += "b"
    t = (1,)
    t += (2,)
    return a * n, n, s, t


@one(x)
def deep_nesting(a):
    d = {"a": [{"b": (1, [a])}]}
    d["a"][0]["b"][1].append(d["a"][0]["b"][1][0] * 2)
    return d


@one(x)
def truth_values(a):
    return [1 if v else 0 for v in ([], [0], {}, {1: 1}, "", "a", 0, 0.0, None, (), (0,), set(), range(0))], a


@one([x, 1], [x, 1])
def compare_lists(v, w):
    return v[0] + 1, v[1:] == w[1:], v[1:] != [2]


@program(x)
def index_errors(a):
    found = []
    for bad in (lambda: [1][5], lambda: (1,)[5], lambda: {}["k"], lambda: "a"[3], lambda: [1][a.dtype], lambda: int("q"), lambda: 1 / 0):
        try:
            bad()
        except Exception as error:
            found.append((type(error).__name__, str(error)))
    return a, found
