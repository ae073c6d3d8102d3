"""Programs: builtins, functools, itertools, operator, collections, math, texts and numbers, sets, views, slices, unpacking."""

# ruff: noqa: F401, B007, B019, B905, C400, C401, C402, C408, C416, C417, C419, E731, FURB

from __future__ import annotations

import collections
import functools
import itertools
import math
import operator
import os
import re
import threading
import weakref

import rushlight as torch
from tests.dynamo.harness import Programs

PROGRAMS = Programs()
one = PROGRAMS.one
program = PROGRAMS
x = torch.tensor([1.0, 2.0, 3.0])
CALLS = []
TAGS = {"p", "q", "r"}
QUEUE = collections.deque([1, 2])


def expressions(source):
    """Each expression becomes its own program of a tensor `a`, a list `v` and a dict `d`."""
    for index, text in enumerate(line.strip() for line in source.strip().splitlines()):
        namespace = globals()
        name = f"expression_{len(PROGRAMS.found)}"
        code = compile(f"def {name}(a, v, d):\n    return a + 1, {text}\n", __file__, "exec")
        scope = {}
        exec(code, namespace, scope)
        PROGRAMS.one(x, [3, 1, 2], {"k": 1, "m": 2})(scope[name])


expressions("""
functools.partial(max, 3)(1, 5), functools.partial(int, base=2)("101"), functools.reduce(operator.add, v), functools.reduce(lambda p, q: p * q, v, 10)
functools.reduce(lambda p, q: p + q, [a, a, a]), functools.partial(torch.add, alpha=2)(a, a), functools.partial(pow, 2).func is pow, functools.partial(max, 1, key=abs).keywords
sorted(v, key=functools.cmp_to_key(lambda p, q: q - p))
list(itertools.chain(v, [9], "ab")), list(itertools.chain.from_iterable([v, v])), list(itertools.product(v, "ab")), list(itertools.product([0, 1], repeat=2))
list(itertools.zip_longest(v, [1], fillvalue=0)), list(itertools.zip_longest("abc", "d"))
list(itertools.accumulate(v)), list(itertools.accumulate(v, operator.mul)), list(itertools.accumulate(v, initial=10)), list(itertools.accumulate(v, max))
list(itertools.islice(v, 2)), list(itertools.islice(itertools.count(5), 3)), list(itertools.islice(v, 1, None)), list(itertools.islice(itertools.count(1, 2), 1, 6, 2))
list(itertools.repeat(7, 2)), [p for p, _ in zip(itertools.repeat("r"), v)], list(zip(itertools.count(), v)), list(itertools.islice(itertools.cycle(v), 5))
[(k, list(g)) for k, g in itertools.groupby([1, 1, 2, 3, 3])], [(k, list(g)) for k, g in itertools.groupby(sorted(v), key=lambda p: p % 2)]
list(itertools.permutations(v, 2)), list(itertools.combinations(v, 2)), list(itertools.combinations_with_replacement("ab", 2)), len(list(itertools.permutations(v)))
list(itertools.takewhile(lambda p: p > 2, v)), list(itertools.dropwhile(lambda p: p > 2, v)), list(itertools.starmap(pow, [(2, 3), (3, 2)])), list(itertools.filterfalse(lambda p: p > 1, v))
list(itertools.compress(v, [1, 0, 1])), list(itertools.pairwise(v)), [list(t) for t in itertools.tee(v, 2)]
operator.itemgetter(1)(v), operator.itemgetter(0, 2)(v), operator.attrgetter("shape")(a), operator.attrgetter("dtype", "ndim")(a), operator.methodcaller("upper")("ab")
operator.methodcaller("split", ",", maxsplit=1)("p,q,r"), operator.add(1, 2), operator.sub(a, 1), operator.mul(a, a), operator.neg(3), operator.not_([]), operator.truth(v)
operator.contains(v, 3), operator.getitem(v, 0), operator.concat([1], [2]), operator.index(4), operator.countOf(v, 1), operator.indexOf(v, 2), operator.is_(a, a), operator.eq(v, [3, 1, 2])
operator.and_(6, 3), operator.xor(6, 3), operator.lshift(1, 3), operator.matmul(a, a), operator.le(1, 2), operator.abs(-3), operator.length_hint(v), operator.floordiv(7, 2)
collections.Counter("abca"), collections.Counter("abca").most_common(1), collections.Counter(v)[3], collections.Counter("ab") + collections.Counter("bc"), collections.Counter(a=2)["z"]
collections.OrderedDict(d), list(collections.OrderedDict(p=1, q=2).items()), collections.OrderedDict([("a", 1)]) == {"a": 1}, list(reversed(collections.OrderedDict(d)))
collections.defaultdict(list, {"k": [1]})["k"], collections.defaultdict(int)["z"], collections.defaultdict(lambda: 5)["q"], collections.defaultdict(list).default_factory is list
collections.deque(v, maxlen=2), collections.deque([1, 2, 3], 2).maxlen, list(collections.deque(v)), collections.deque(v)[0], collections.deque(v) == collections.deque([3, 1, 2])
"a,b".split(","), "  s ".strip(), "abc".upper(), "abc".replace("b", "x"), "abc".find("c"), "abc".startswith(("x", "a")), "-".join(["p", "q"]), "abc"[::-1], "abc".index("b")
"a b".title(), "abc".center(7, "*"), "5".zfill(3), "a\\nb".splitlines(), "abc".partition("b"), "x=%s" % 3, "%05.2f|%-4s|%x" % (3.14159, "a", 255), "%(k)s" % d
"{} {1}".replace("{1}", "{}").format(1, 2), "{0:>5}|{1:.2f}|{k!r}".format(1, 2.5, k="s"), "{:,}".format(12345), f"{3.14159:.2f}", f"{255:#x} {5:03d} {1e10:g}", f"{'s':>4}|{'s':<4}|{'s':^4}"
f"{v} {d} {a.shape} {a.dtype} {None!r} {(1,)} {v=}", f"{max(v):>{5}}", f"{True} {1.0} {1j}", f"{a.ndim:02d}", str(v), repr(d), str((1, "a")), str({1}), repr("q"), str(1.5), str(torch.float32)
"abc".encode(), b"abc".decode(), b"ab" + b"c", b"abc"[0], b"abc".hex(), list(b"ab"), bytes([1, 2]), bytes(2), len(b"abc"), b"%d" % 3, "é".encode("utf-8"), ord("a"), chr(98)
"abc".isalpha(), "12".isdigit(), "a".islower(), "abc".count("a"), "A".swapcase(), "a1".isalnum(), "a-b".casefold(), "ab".ljust(4, "."), "xax".strip("x"), "abc".removeprefix("a"), "%s" % (v,)
"abc".translate(str.maketrans("ab", "xy")), "a" in "abc", "b" * 3, "a" < "b", max("hello"), sorted("hello"), list("abc"), "".join(reversed("abc")), "abc"[1:], "a" "b", "abcdef"[-3:-1]
(5).bit_length(), (255).to_bytes(2, "big"), int.from_bytes(b"\\x01\\x02", "little"), int("ff", 16), int(3.9), int("-5"), round(2.567, 2), round(5), divmod(7, 2), abs(-3), pow(2, 3), pow(2, 3, 5)
7 // 2, -7 // 2, 7 % -3, 2**10, 2**-1, 1 / 3, 5 & 3, 5 | 3, 5 ^ 3, ~5, 1 << 4, 100 >> 2, (1.5).is_integer(), float("inf") > 1, float("nan") != float("nan"), (0.5).as_integer_ratio(), 1e3
math.sqrt(2), math.floor(2.5), math.ceil(2.5), math.pi, math.prod(v), math.gcd(12, 18), math.log(8, 2), math.exp(1), math.isnan(float("nan")), math.inf, math.factorial(5), math.hypot(3, 4), math.isclose(1, 1)
math.comb(5, 2), math.trunc(2.7), math.copysign(1, -2), math.fsum([0.1] * 3), math.sin(1) + math.cos(1), math.degrees(math.pi), math.perm(4, 2), math.log2(8), math.isqrt(10), math.dist([0, 0], [3, 4])
complex(1, 2), (1 + 2j).real, (1 + 2j).conjugate(), abs(3 + 4j), 1j * 1j, bin(5), oct(8), hex(255), hash("a") == hash("a"), bool([]), bool("a"), int(True), True + 1
{1, 2} | {3}, {1, 2} & {2}, {1, 2} - {2}, {1, 2} ^ {2, 3}, {1} <= {1, 2}, {1, 2}.issubset({1, 2, 3}), {1}.isdisjoint({2}), frozenset(v), frozenset([1]) | {2}, 3 in {1, 2, 3}, len({1, 1})
set(v), set("hello"), sorted({3, 1}), {p % 2 for p in v}, set(), set(d), frozenset("ab") == {"a", "b"}, {1, 2} == {2, 1}, max({1, 5}), sum({1, 2}), list(frozenset([10, 20, 5])), {1, 2}.union([5], (6,))
{*v, 9}, {1, 2}.intersection([2, 3]), {1, 2}.difference([1]), set(range(5)), {(1, 2), (3,)}, {"a", 1, None, True, 2.5}, list({17, 33, 1, 5}), list({"x", "y", "z"}), tuple({8, 16, 24, 0})
list(d), list(d.keys()), list(d.values()), list(d.items()), d.keys() & {"k"}, d.keys() | {"z"}, d.keys() - {"k"}, "k" in d.keys(), 1 in d.values(), ("k", 1) in d.items(), len(d.items()), d.keys() == {"k", "m"}
d.get("z"), d.get("z", 5), {**d, "n": 3}, d | {"q": 4}, dict(d), dict(p=1), dict([("a", 1)]), dict(zip("ab", v)), {k: w for w, k in d.items()}, dict.fromkeys("ab", 0), d == {"m": 2, "k": 1}, list(reversed(d)), sorted(d)
sorted(v), sorted(v, reverse=True), sorted(["bb", "a"], key=len), sorted(d, key=d.get, reverse=True), sorted([(1, "b"), (1, "a")]), sorted([3, 1, 2], key=lambda p: -p), sorted("bca"), sorted(v, key=None)
min(v), max(v), min(v, key=lambda p: -p), max([], default=5), min(3, 1), max("a", "bb", key=len), min([a.ndim, 5]), max(d, key=d.get), max((1, 2), (1, 3)), min(v, default=0), max([1.5, 2])
sum(v), sum(v, 10), sum([[1], [2]], []), sum(p for p in v), sum([a, a]), sum((p * a for p in v), a), sum([0.5, 1]), sum([], a), any(p > 2 for p in v), all([]), any([]), all(v)
list(zip(v, "abc")), list(zip(v, v, v)), list(zip()), list(zip(v, "abc", strict=True)), dict(zip(v, d)), [*zip(*[(1, 2), (3, 4)])], list(enumerate(v)), list(enumerate("ab", 5)), list(enumerate(v, start=1))
list(map(str, v)), list(map(lambda p, q: p + q, v, [1, 2])), list(map(pow, v, v)), list(filter(None, [0, 1, 2])), list(filter(lambda p: p > 1, v)), [*map(int, "12")], list(map(len, ["a", "bb"])), list(map(str.upper, "ab"))
list(reversed(v)), v[::-1], v[1:], v[:-1], v[::2], v[-2:], v[5:], v[1:2], (1, 2, 3)[::-1], "abcd"[1:3], range(10)[2:5], list(range(5, 0, -2)), range(3) == range(0, 3), len(range(0, 10, 3)), v[slice(1)], 3 in range(5)
range(10)[-1], range(5).start, range(0, 9, 2).step, list(range(3))[slice(None, None, -1)], slice(1, 2).start, slice(1, 5, 2).indices(4), range(5).index(3), range(5).count(2), (*v, 4), [*v, *d], [*range(2)]
1 < 2 < 3, 1 < 3 < 2, v[0] == 3 != 4, 1 in v, 9 not in v, None is None, a is a, v is not d, not v, v and 5, [] or "d", (n := 5) + n, 3 if v else 4, v == [3, 1, 2], [1] < [1, 2], (1, 2) == (1, 2)
hasattr(a, "shape"), hasattr(v, "append"), hasattr(v, "nope"), getattr(v, "nope", 3), getattr("s", "upper")(), callable(len), callable(3), type(v), type(v) is list, isinstance(v, (list, tuple)), issubclass(bool, int)
[p for q in [v, v] for p in q if p > 1], {p: [q for q in range(p)] for p in v}, [[p * q for q in v] for p in v], {p for p in "abca"}, tuple(p for p in v), [p if p > 1 else 0 for p in v], [(p, q) for p in v for q in d]
v.index(1), v.count(3), v.copy(), v + [1], v * 2, [0] * 3, [[]] * 2, (1,) * 2, (1, 2) + (3,), (1, 2).index(2), (1, 1).count(1), [1, [2]][1][0], len([]), list(()), tuple([1]), list("ab"), [None] * 2
a.shape == (3,), a.shape[0], len(a.shape), tuple(a.shape), list(a.shape), a.shape + (1,), a.shape[:0], torch.Size([1, 2]).numel(), a.size(), a.shape * 2, (2, *a.shape), a.shape == torch.Size([3]), a.numel() * 2, isinstance(a.shape, tuple)
a.dtype == torch.float32, a.dtype is torch.float32, a.dtype in (torch.float32, torch.float64), a.device == torch.device("cpu"), a.device.type == "cpu", str(a.dtype), str(a.device), a.dtype.itemsize, torch.finfo(a.dtype).max, torch.iinfo(torch.int8).min
""")


@one(x)
def counter_changes(a):
    counts = collections.Counter()
    for letter in "abcab":
        counts[letter] += 1
    counts.update("aa")
    counts.subtract({"b": 1})
    return a + counts["a"], counts, counts.most_common(), sorted(counts.elements()), counts.total(), counts["z"], len(counts)


@one(x)
def deque_changes(a):
    line = collections.deque([1, 2, 3], maxlen=3)
    line.append(4)
    line.appendleft(0)
    line.rotate(1)
    line.extend([7])
    last = line.pop()
    return a + last, line, line.maxlen, list(line), line.popleft(), len(line), line[0]


@one(x)
def deque_without_limit(a):
    line = collections.deque()
    line.extend(range(4))
    line.extendleft([8, 9])
    line.rotate(-1)
    line.remove(2)
    line.insert(1, 5)
    line.reverse()
    return a + line[0], line, line.index(3), line.count(1), 5 in line, [p for p in line]


@program(x)
def deque_of_a_global(a):
    QUEUE.append(3)
    first = QUEUE.popleft()
    return a + first, list(QUEUE)


@one(x)
def ordered_dict_changes(a):
    table = collections.OrderedDict(p=1, q=2, r=3)
    table.move_to_end("p")
    table.move_to_end("r", last=False)
    first = table.popitem(last=False)
    return a + first[1], table, list(table), table.popitem(), "p" in table


@one(x)
def default_dict_changes(a):
    groups = collections.defaultdict(list)
    for n in range(4):
        groups[n % 2].append(n)
    nested = collections.defaultdict(lambda: collections.defaultdict(int))
    nested["p"]["q"] += 2
    return a + len(groups), groups, nested["p"]["q"], groups.get(9), 9 in groups, list(nested)


@program(x)
def chain_map(a):
    both = collections.ChainMap({"p": 1}, {"p": 2, "q": 3})
    return a + both["q"], both["p"], len(both)


@functools.lru_cache(maxsize=None)
def squared(n):
    return n * n


@program(x)
def cached_function(a):
    return a + squared(3) + squared(3)


@functools.singledispatch
def described(value):
    return "anything"


@described.register
def _(value: int):
    return "int"


@described.register
def _(value: list):
    return f"list of {len(value)}"


@program(x)
def dispatched_function(a):
    return a + 1, described(3), described([1]), described("s")


def doubled(function):
    @functools.wraps(function)
    def inside(*args, **kwargs):
        return function(*args, **kwargs) * 2

    return inside


@doubled
def plus(a, b=1):
    return a + b


@one(x)
def wrapped_function(a):
    return plus(a), plus(a, b=3), plus.__name__, plus.__wrapped__(a)


@one(x)
def wrapping_inside(a):
    @doubled
    def minus(v):
        """Subtract."""
        return v - 1

    return minus(a), minus.__name__, minus.__doc__


@one(x)
def partial_of_partial(a):
    first = functools.partial(torch.clamp, min=1.5)
    second = functools.partial(first, max=2.5)
    third = functools.partial(lambda *p, **q: (p, q), 1, k=2)
    return second(a), third(3, m=4), second.keywords, third.args


class WithPartial:
    def scale(self, a, by):
        return a * by

    double = functools.partialmethod(scale, by=2)

    @functools.cached_property
    def costly(self):
        CALLS.append("costly")
        return 5


@program(x)
def partial_method(a):
    return WithPartial().double(a)


@one(x)
def cached_property_twice(a):
    made = WithPartial()
    return a + made.costly + made.costly, CALLS


@functools.total_ordering
class Ranked:
    def __init__(self, n):
        self.n = n

    def __eq__(self, other):
        return self.n == other.n

    def __lt__(self, other):
        return self.n < other.n


@one(x)
def total_ordering(a):
    return a + (Ranked(1) <= Ranked(2)), Ranked(3) > Ranked(2), Ranked(1) >= Ranked(1), max(Ranked(1), Ranked(4)).n


@one(x)
def unpackings(a):
    first, *middle, last = [1, 2, 3, 4]
    (p, q), [r, *s] = (1, 2), "abc"
    *init, end = (5,)
    t, u = u, t = 1, 2
    return a * first, middle, last, p, q, r, s, init, end, t, u


@one(x)
def unpacking_refused(a):
    found = []
    for values in ([1], [1, 2, 3], []):
        try:
            p, q = values
        except ValueError as error:
            found.append(str(error))
    return a + len(found), found


@one(x)
def zip_strict_refused(a):
    try:
        list(zip([1, 2], [1], strict=True))
    except ValueError as error:
        return a + 1, str(error)


@one(x)
def slices_assigned(a):
    v = list(range(6))
    v[1:3] = [9]
    v[::2] = [7, 7, 7]
    del v[0]
    v[len(v) :] = [4]
    v[:0] = (5,)
    w = v[:]
    w[-1] = 0
    return a + v[0], v, w


@one(x)
def set_changes(a):
    s = {1, 2}
    t = s
    s |= {5, 3}
    s.add(7)
    s.discard(100)
    s.remove(1)
    s -= {2}
    s.update([11], (12,))
    s ^= {11, 99}
    s.intersection_update({5, 3, 7, 12, 99})
    return a + len(s), s, t is s, sorted(t), list(s), s.pop() in t, 5 in s


@program(x)
def set_of_a_global(a):
    TAGS.add("z")
    TAGS.discard("p")
    return a + len(TAGS), [t for t in TAGS], sorted(TAGS)


@program(x)
def set_after_a_break(a):
    s = {10, 3, 20, 5, "q", "r"}
    print(end="")
    s.add(4)
    return a + 1, sorted(s, key=str), sorted(frozenset(s), key=str)


@one(x)
def set_refused(a):
    try:
        {1}.remove(2)
    except KeyError as error:
        return a + 1, error.args


@one(x)
def while_with_walrus(a):
    items = [3, 2, 1]
    total = 0
    while items and (item := items.pop()):
        total += item
    return a * total, item, items


@one(x)
def iterators_kept(a):
    it = iter([1, 2, 3])
    first = next(it)
    rest = list(it)
    pairs = enumerate("ab")
    index, letter = next(pairs)
    return a + first, rest, index, letter, list(pairs), next(it, "none")


@one(x)
def iterator_with_a_sentinel(a):
    values = [3, 2, 1]
    return a + 1, list(iter(values.pop, 1)), values


@one(x)
def dict_changed_in_a_loop(a):
    d = {"p": 1, "q": 2}
    for key in list(d):
        d[key + "2"] = d.pop(key)
    view = d.items()
    d["late"] = 5
    return a + len(view), d, list(view), d.setdefault("n", []), d


@one(x)
def dict_refused(a):
    found = []
    for wrong in (lambda: {}["z"], lambda: {[]: 1}, lambda: {}.popitem(), lambda: dict([1]), lambda: {"p": 1} < {"p": 2}):
        try:
            wrong()
        except (KeyError, TypeError) as error:
            found.append((type(error).__name__, str(error)))
    return a + len(found), found


@one(x)
def nested_containers(a):
    deep = {"p": [1, {"q": (2, [3])}]}
    deep["p"][1]["q"][1].append(a)
    deep["p"].insert(0, deep["p"][0])
    return deep, deep["p"][2]["q"][1][1] + 1


@one(x)
def same_object_twice(a):
    shared = [1]
    pair = [shared, shared]
    pair[0].append(2)
    return pair, pair[0] is pair[1], a + 1


@program(x)
def weak_references(a):
    class Held:
        pass

    held = Held()
    ref = weakref.ref(held)
    return a + (ref() is held)


@one(x)
def map_is_lazy(a):
    seen = []
    lazy = map(lambda p: seen.append(p) or p, [1, 2, 3])
    first = next(lazy)
    return a + first, list(seen), list(lazy), seen


@one(x)
def bytes_and_arrays(a):
    data = b"ab" * 2
    return a + data[1], data.split(b"b"), data.replace(b"a", b"c"), bytes(range(3)), data == b"abab", data.find(b"b"), data[::-1]


@one(x)
def text_formatting(a):
    n, name = 3, "s"
    return a + n, "%s-%d" % (name, n), "{}".format(n), f"{n:>{n}}", "%r" % name, f"{name!r:>5}", "%5.1f%%" % 2.25, f"{n:+d}{n:b}", "{0[0]}{1.real}".format([1], 2), f"{'nested ' + f'{n}'}"


@program(x)
def counter_most_common(a):
    return a + 1, collections.Counter("abcab").most_common(2)


@one(x)
def operators_refused(a):
    class_of, found = object, []
    for wrong in (lambda: class_of() + 1, lambda: class_of() < class_of(), lambda: [] < {}, lambda: class_of() ** 2):
        try:
            wrong()
        except TypeError as error:
            found.append(str(error))
    return a + len(found), found


@one(x)
def keywords_of_any_name(a):
    made = dict(other=a + 1, self=2, tx=3, values=4), functools.partial(dict, function=1)(kind=2)
    return a + 1, made, collections.OrderedDict(other=1), collections.defaultdict(int, factory=2), {}.update(other=1)


@one(x)
def dicts_from_keys(a):
    plain = dict.fromkeys("ab", 1)
    counted = collections.defaultdict.fromkeys("ab", 2)
    counted.setdefault("c", 3)
    return a + counted["b"], plain, counted, counted.default_factory, collections.OrderedDict.fromkeys("ab")


@one(x)
def attributes_of_partials(a):
    made = functools.partial(max, 1)
    made.note = "n"
    names = ("__call__", "__name__", "__class__", "__doc__", "__code__", "__dict__", "func", "keywords", "note", "other")
    return a + 1, [hasattr(made, name) for name in names], made.__class__ is functools.partial, made.note


@one(x)
def a_named_tuple_class(a):
    pair = collections.namedtuple("Pair", "one two", defaults=[2])
    made = pair(a)
    return made.one + made.two, made._fields, len(made)


class Labelled(collections.namedtuple("Labelled", "p q")):
    def total(self):
        return self.p + self.q


class Doubled(collections.namedtuple("Doubled", "p q")):
    def __getitem__(self, index):
        return super().__getitem__(index) * 2


@one(x, Labelled(1, 2))
def named_tuples_with_attributes(a, given):
    made = Labelled(a, 2)
    made.label = "l"
    return made, made.label, made.total(), made[0], given.p + given.total(), Doubled(3, 4)[1], Doubled(3, 4).q, len(made)


@one(x)
def classes_of_containers(a):
    return a + 1, [1].__class__((2, 3)), (1,).__class__([2]), {"k": 1}.__class__(), {1}.__class__() == set()


@one(x, {torch.Size([3]): 5})
def sizes_as_keys(a, known):
    known[torch.Size([1, 2])] = 6
    return a + known[a.shape], (2,) in known, len(known)


@one(x)
def functions_that_refer_to_themselves(a):
    def first(n):
        return n if n <= 0 else second(n - 1)

    def second(n):
        return first(n)

    return a + first(3), first, first.__name__


@one(x)
def smallest_and_largest_tensors(a):
    total, other = a.sum(), a.mean()
    return max(total, other), min(total, other), max(total, 1.5), min(5, other), max(map(torch.sum, [a, a * 2]))


@one(x)
def constant_tensors(a):
    if torch.tensor(True):
        a = a + 1
    return a + [1, 2, 3, 4][torch.tensor(2)], int(torch.tensor(3)), torch.tensor(2.5).item()


@one(x)
def tensors_of_tensors(a):
    return torch.tensor([a[0], 2.0, a.sum()]), torch.tensor([[a[0], a[1]], [1, 2]]), a.new(a.shape).shape


@one(torch.tensor([[3, 1], [2, 5]]))
def lists_of_numbers(a):
    return a + 1, a.tolist(), [n * 2 for row in a.tolist() for n in row], a.sum().tolist()


@one(x)
def paths_and_patterns(a):
    found = re.compile(r"(\d+)-(\w+)").fullmatch("12-ab")
    return a + 1, os.fspath("p"), found.groups(), found[1], re.compile("q").search("p")


@one(x)
def results_by_name(a):
    made = torch.return_types.max((a, a + 1))
    return made, made.indices, tuple(made)


local = threading.local()


@one(x)
def attributes_of_threads(a):
    local.held = a + 1
    return local.held * 2, hasattr(local, "other")
