"""Programs: closures and cells, arguments of every kind, lambdas, partials, decorators, recursion, generators, builtins, globals."""

# ruff: noqa: B007, B010, B016, B023, F821, F841, UP003, UP031, UP032, UP033

from __future__ import annotations

import copy
import functools
import itertools
import operator

import rushlight as torch
from tests.dynamo.harness import Programs

PROGRAMS = Programs()
one = PROGRAMS.one
program = PROGRAMS
x = torch.tensor([1.0, 2.0, 3.0])
y = torch.tensor([4.0, -5.0, 6.0])
COUNTER = 0
ITEMS = [1, 2]
CONFIG = {"scale": 2.0, "bias": [1.0, 2.0]}


@one(x, y)
def closure(a, b):
    k = 2

    def g(z):
        return z * k + b

    return g(a)


@one(x)
def nonlocal_variable(a):
    n = 0

    def increase():
        nonlocal n
        n += 1
        return a * n

    return increase() + increase(), n


@one(x)
def late_binding(a):
    found = []
    for i in range(3):
        found.append(lambda: a + i)
    return [f() for f in found]


@one(x)
def shared_cell(a):
    n = 1

    def get():
        return n

    def put(v):
        nonlocal n
        n = v

    put(5)
    first = get()
    n = 7
    return a * first + get()


def _counter():
    n = 0

    def step():
        nonlocal n
        n += 1
        return n

    return step


@one(x)
def counter_objects(a):
    c, d = _counter(), _counter()
    c()
    c()
    d()
    return a * c() + d()


@one(x)
def returned_function(a):
    def g(z):
        return z + a

    return g


@one(x)
def returned_functions_with_defaults(a):
    def g(z, k=2, *, q=3):
        """Doc."""
        return z + a * k * q

    return g, g.__name__, g.__doc__, g.__defaults__


@program(x)
def function_returned_then_called(a):
    n = 1

    def g():
        nonlocal n
        n += 1
        return n

    g()
    print(end="")
    return g(), n, a + n


@one(x)
def deep_closure(a):
    def one_level(p):
        def two_levels(q):
            def three_levels(r):
                return a + p * q - r

            return three_levels

        return two_levels

    return one_level(1)(2)(3)


@program(x)
def unbound_cell(a):
    def g():
        return later

    try:
        g()
    except NameError as error:
        found = str(error)
    later = a + 1
    return g(), found


@program(x)
def deleted_cell(a):
    n = 1

    def g():
        return n

    del n
    try:
        g()
    except NameError as error:
        return a + 1, str(error)


@one(x)
def default_arguments(a):
    def f(p, q=2, *r, s=3, **t):
        return p * q + s, r, t

    return f(a), f(a, 3), f(a, 3, 4, 5), f(a, s=1, z=2), f(p=a, q=1)


@one(x)
def positional_only(a):
    def f(p, /, q, *, r):
        return p * q - r

    return f(a, 2, r=3), f(a, q=1, r=0)


@program(x)
def wrong_arguments(a):
    def f(p, /, q, *, r=3):
        return p * q * r

    found = []
    for call in (lambda: f(1, q=2, z=3), lambda: f(), lambda: f(1, 2, 3), lambda: f(p=1, q=2), lambda: f(1, 2, q=3)):
        try:
            call()
        except TypeError as error:
            found.append(str(error))
    return a + 1, found


@one(x)
def star_calls(a):
    def f(*args, k=1, **named):
        return args[0] * k + named.get("z", 0), len(args), sorted(named)

    v, d = [a, 1], {"z": 3, "k": 2}
    return f(*v), f(*v, *v, **d), f(a, **{"y": 1}), f(*(a,), k=3)


@one(x, y)
def variadic(*tensors):
    total = 0
    for t in tensors:
        total = total + t
    return total, len(tensors)


def _keywords(a, *, scale=1, **others):
    return a * scale + sum(others.values())


@one(x)
def keyword_calls(a):
    return _keywords(a), _keywords(a, scale=3), _keywords(a, p=1, q=2)


def _accumulate(value, found=[]):  # noqa: B006
    found.append(value)
    return len(found)


@program(x)
def mutable_default(a):
    n = _accumulate(1)
    n2 = _accumulate(2)
    _accumulate.__defaults__[0].clear()
    return a * n, n2 - n


@one(x)
def lambdas(a):
    return (lambda q, w=2: q * w)(a), (lambda *v: len(v))(1, 2), [f(3) for f in (lambda n: n + 1, lambda n: n * 2)]


@one(x)
def partials(a):
    f = functools.partial(torch.add, a)
    g = functools.partial(lambda p, q, r=0: p - q + r, r=5)
    return f(1), g(a, 2), g(a, q=1, r=2), f.args[0] + 1, functools.reduce(operator.add, [a, a, a]), functools.reduce(max, [1, 3, 2], 0)


@one(x, functools.partial(torch.add, y, alpha=2))
def partial_of_the_library(a, f):
    return a * f(a) * 2 + f(a, alpha=3)


@one(x, functools.partial(operator.mul, 3))
def partial_argument(a, f):
    return f(a)


def _decorator(function):
    @functools.wraps(function)
    def inner(*args, **kwargs):
        return function(*args, **kwargs) + 1

    return inner


@_decorator
def _decorated(z):
    return z * 2


@one(x)
def decorated(a):
    return _decorated(a), _decorated.__name__


@one(x)
def decorated_inside(a):
    def times(n):
        def decorate(f):
            def run(*args):
                return f(*args) * n

            return run

        return decorate

    @times(3)
    @_decorator
    def g(z):
        return z * 2

    return g(a)


def _factorial(n):
    return 1 if n <= 1 else n * _factorial(n - 1)


def _fibonacci(a, n):
    return a if n < 2 else _fibonacci(a, n - 1) + _fibonacci(a, n - 2)


@one(x)
def recursion(a):
    return a * _factorial(5), _fibonacci(a, 5)


@program(x)
def deep_recursion(a):
    return a * _depth(150)


def _depth(n):
    return 0 if n == 0 else 1 + _depth(n - 1)


@program(x)
def endless_recursion(a):
    def f(n):
        return f(n + 1)

    try:
        f(0)
    except RecursionError as error:
        return a + 1, str(error)[:20]


def _numbers(a):
    for i in range(3):
        yield a * i


def _delegating(a):
    yield 1
    found = yield from _returning(a)
    yield found


def _returning(a):
    yield a
    return a * 5


@one(x)
def generators(a):
    return list(_numbers(a)), sum(_numbers(a)), [v + 1 for v in _numbers(a)], max(len(v) for v in _numbers(a))


@one(x)
def generator_delegation(a):
    return list(_delegating(a))


@one(x)
def generator_partly_used(a):
    g = _numbers(a)
    first = next(g)
    for v in g:
        return first, v


@program(x)
def generator_returned(a):
    g = _numbers(a + 1)
    first = next(g)
    return first, g


@program(x)
def generator_across_break(a):
    g = _numbers(a + 1)
    first = next(g)
    print(end="")
    return first, list(g)


@program(x)
def generator_with_effects_across_break(a):
    log = []

    def g():
        for i in range(3):
            log.append(i)
            yield a * i

    made = g()
    next(made)
    print(end="")
    before = list(log)
    return list(made), before, log


@program(x)
def generator_send(a):
    def g():
        v = yield 1
        yield a * v

    made = g()
    next(made)
    return made.send(3)


@program(x)
def generator_close(a):
    log = []

    def g():
        try:
            yield a
            yield a + 1
        finally:
            log.append("closed")

    made = g()
    v = next(made)
    made.close()
    return v * 2, log


@program(x)
def generator_throw(a):
    def g():
        try:
            yield a
        except ValueError:
            yield a * 2

    made = g()
    next(made)
    return made.throw(ValueError("q"))


@program(x)
def generator_stops_in_generator(a):
    def g():
        yield next(iter(()))

    try:
        list(g())
    except RuntimeError as error:
        return a + 1, str(error)


@program(x)
def endless_generator(a):
    for i in itertools.count():
        a = a + i
        if i == 3:
            break
    return a, list(itertools.islice(itertools.count(5), 3)), list(itertools.repeat(1, 2))


@one(x, y)
def zips(a, b):
    return list(zip([1, 2], [a, b], strict=True)), dict(zip("ab", [a, b], strict=False)), [p * q for p, q in zip([1, 2, 3], [a, b])]  # noqa: B905


@one(x)
def enumerates(a):
    return list(enumerate([a], 1)), [i * v for i, v in enumerate([a, a + 1])], [i for i, c in enumerate("ab", start=5)]


@one(x)
def maps_and_filters(a):
    return list(map(lambda t: t + 1, [a, a])), list(filter(None, [0, 1])), list(filter(lambda n: n > 1, [1, 2])), list(map(max, [1, 5], [3, 2]))


@one(x)
def sorting(a):
    return a + 1, sorted([3, 1, 2], reverse=True), sorted("bca", key=lambda c: -ord(c)), sorted([(1, "b"), (0, "a")], key=operator.itemgetter(1))


@one(x)
def reductions(a):
    return a, any([0, 1]), all([]), any(n > 2 for n in range(4)), sum([[1], [2]], []), max([1, 3], default=0), min([], default=7), max("ab", key=ord)


@one(x)
def extremes(a):
    return a + max(1, 2, key=lambda v: -v), min([3, 1]), max([[1, 2], [1, 3]]), min("b", "a"), max(1.5, 1)


@one(x)
def conversions(a):
    return a, int("5"), float("1.5"), str(3), bool(""), list("ab"), tuple([1]), set([1, 1]), dict([(1, 2)]), int(2.9), complex(1, 2), bytes([65]), frozenset("a")


@one(x)
def type_checks(a):
    return (isinstance(a, torch.Tensor), type(a) is torch.Tensor, isinstance(1, int), isinstance(True, int), issubclass(bool, int), isinstance("a", (int, str)),
            type(1) is int, type([]).__name__, isinstance(1, int | str), callable(len), isinstance(a.dtype, torch.dtype), a + 1)  # fmt: skip


@one(x)
def iterators(a):
    it = iter([1, 2, 3, 4])
    first = next(it)
    for v in it:
        if v == 2:
            break
    return first, list(it), next(it, "end"), a, next(iter({1: 2})), list(iter("ab"))


@program(x)
def stop_iteration(a):
    it = iter([1])
    next(it)
    try:
        next(it)
    except StopIteration as stop:
        return a + 1, stop.value


@one(x)
def itertools_functions(a):
    return (list(itertools.chain([1], (2, 3))), list(itertools.product([1, 2], "ab")), list(itertools.islice([1, 2, 3, 4], 1, 3)),
            list(itertools.accumulate([1, 2, 3])), list(itertools.chain.from_iterable([[1], [2]])), [a * n for n in itertools.chain([1], [2])])  # fmt: skip


@program(x)
def more_itertools(a):
    pairs = list(itertools.pairwise([1, 2, 3]))
    groups = [(k, list(g)) for k, g in itertools.groupby([1, 1, 2])]
    return a + 1, pairs, groups, list(itertools.combinations("abc", 2)), list(itertools.zip_longest([1], [2, 3])), list(itertools.starmap(pow, [(2, 3)]))


@one(x)
def operator_functions(a):
    return operator.add(a, 1), operator.mul(2, 3), operator.getitem([1, 2], 1), operator.truth([]), operator.contains([1], 1), operator.is_(a, a), operator.neg(3)


@one(x)
def reversed_values(a):
    return list(reversed([1, 2])), [a * n for n in reversed((1, 2))], list(reversed("ab"))


@one(x)
def copies(a):
    v = [1, [2]]
    w = copy.copy(v)
    w[1].append(3)
    w.append(a)
    return v, w, copy.copy({"a": 1})


@one(x)
def globals_read(a):
    return a * COUNTER + ITEMS[1] + CONFIG["scale"] * CONFIG["bias"][0]


@one(x)
def globals_written(a):
    global COUNTER
    COUNTER = COUNTER + 1
    first = COUNTER
    COUNTER += 2
    return a * COUNTER + first


@one(x)
def globals_mutated(a):
    ITEMS.append(a + 1)
    CONFIG["bias"][0] += 1
    CONFIG["new"] = [a]
    del CONFIG["scale"]
    return len(ITEMS)


@one(x)
def global_made_and_deleted(a):
    global FRESH
    FRESH = a * 2
    v = FRESH + 1
    del FRESH
    return v


@one(x)
def global_made(a):
    global MADE
    MADE = [a * 2]
    return MADE[0] + 1


@program(x)
def missing_global(a):
    a = a + 1
    return NOWHERE + a  # noqa: F821


@program(x)
def global_written_before_break(a):
    global COUNTER
    COUNTER += 1
    print(end="")
    COUNTER += 1
    return a * COUNTER


def _writes_global(n):
    global COUNTER
    COUNTER += n
    return COUNTER


@one(x)
def global_written_inside(a):
    return a * _writes_global(2) + _writes_global(3)


@one(x, [1, 2, 3])
def higher_order(a, v):
    def compose(*functions):
        return functools.reduce(lambda f, g: lambda z: g(f(z)), functions)

    return compose(lambda z: z + 1, lambda z: z * 2, torch.relu)(a), [f(2) for f in map(lambda k: lambda n: n * k, v)]


@one(x)
def function_attributes(a):
    def g(z):
        return z

    g.scale = 3
    return g(a) * g.scale, hasattr(g, "scale"), hasattr(g, "other"), g.__name__


@one(x)
def annotated(a):
    def g(z: int, *, k: float = 1.0) -> torch.Tensor:
        n: int = 3
        return z * k + n

    return g(a)


@one(x, lambda z: z + 1)
def function_argument(a, f):
    return f(a) * 2


@one([lambda z: z + 1, lambda z: z * 3], x)
def functions_in_a_list(v, a):
    for f in v:
        a = f(a)
    return a


@one(x, torch.sin)
def library_function_argument(a, f):
    return f(a) + torch.cos(a)


@functools.lru_cache(maxsize=None)
def _cached(n):
    return n * 2


@program(x)
def cached_function(a):
    return a * _cached(3) + _cached(3)


@program(x)
def prints(a):
    a = a + 1
    print("", end="")
    a = a * 2
    print("", end="")
    return a - 1


@program(x)
def looks_at_locals(a):
    b = a + 1
    return sorted(locals()), b


@program(x)
def looks_at_globals(a):
    return a + len(globals()["ITEMS"]), "COUNTER" in globals()


@program(x)
def evaluates(a):
    n = 3
    return a + eval("n + 1"), eval("len(ITEMS)")


@program(x)
def looks_at_locals_inside(a):
    def g(z):
        w = z + 1
        return sorted(locals()), w

    return g(a * 2)


@program(x)
def imports(a):
    import math
    from os import path

    return a * math.floor(2.5), path.join("a", "b")


@program(x)
def shadowed_names(a):
    len = 3
    list = [len]
    type = a + len
    return type, list


@program(x, 3, [1])
def parameters_named_like_builtins(input, len, list):
    type = input * len
    return type + list[0], list


@one(x)
def conditional_function(a):
    if a.shape[0] > 2:

        def g(z):
            return z + 1
    else:

        def g(z):
            return z - 1

    return g(a)


@program(x)
def identity_of_objects(a):
    v = [1]
    return id(v) == id(v), a + 1, hash("a") == hash("a")


@program(x)
def class_in_function(a):
    class C:
        k = 3

        def go(self, z):
            return z * self.k

    return C().go(a)


@program(x)
def function_used_after_break(a):
    def g(z):
        return z + a

    print(end="")
    return g(a * 2)


@program(x)
def closure_changed_around_break(a):
    n = 1

    def g():
        return n

    n = 2
    print(end="")
    v = g()
    n = 3
    return v, g(), a * n


@program(x)
def comprehension_with_break(a):
    return [a + print(end="") if i < 0 else a * i for i in range(3)], [str(a.sum().item()) for _ in range(2)]


@program(x)
def sum_of_items(a):
    return sum(v.item() for v in a) + a
