"""Programs: every kind of statement: imports, classes, del, global, match, except*, raise from, texts, assignments."""

# ruff: noqa: F401, F842, B007, B012, B016, B018, B023, B904, E701, E702, E711, E731, F402, F811, F841, I001, PLC0415, SIM105, SIM108, RUF

from __future__ import annotations

import collections
import dataclasses
import sys

import rushlight as torch
from tests.dynamo.harness import Programs

PROGRAMS = Programs()
one = PROGRAMS.one
program = PROGRAMS
broken = PROGRAMS.broken
x = torch.tensor([1.0, 2.0, 3.0])
LOG: list = []
COUNT = 0
TABLE: dict = {}


# Imports


@one(x)
def import_module(a):
    import math

    return a * math.pi


@program(x)
def import_dotted(a):
    import os.path
    import collections.abc as abc

    return a + len(os.path.join("p", "q")), issubclass(list, abc.Sequence)


@one(x)
def import_names(a):
    from math import floor, sqrt as root

    return a * root(floor(4.5))


@one(x)
def import_submodule(a):
    from rushlight.nn import functional

    return functional.relu(a - 2)


@program(x)
def import_missing_name(a):
    b = a + 1
    from math import nothing_of_that_name

    return b


@program(x)
def import_missing_module(a):
    b = a + 1
    try:
        import a_module_that_is_not_there
    except ImportError as error:
        return b, type(error).__name__, error.name
    return a


# Classes


@program(x)
def class_statement(a):
    class Scale:
        factor = 3

        def __init__(self, n):
            self.n = n

        def __call__(self, t):
            return t * self.factor + self.n

    return Scale(2)(a + 1)


@program(x)
def class_with_base_and_decorator(a):
    @dataclasses.dataclass
    class Point:
        t: torch.Tensor
        n: int = 2

        def moved(self):
            return Point(self.t + self.n, self.n + 1)

    class Named(Point):
        def moved(self):
            return super().moved()

    made = Named(a).moved()
    return made.t, made.n


@program(x)
def class_with_closure(a):
    scale = 2
    b = a * 3

    class Holder:
        def value(self):
            return b * scale

    scale = 5
    return Holder().value()


@program(x)
def class_with_metaclass(a):
    class Meta(type):
        def __len__(cls):
            return 3

    class Thing(metaclass=Meta):
        pass

    return a + len(Thing)


class Base:
    def __init__(self, n):
        print(end="")
        self.n = n

    def scaled(self, t):
        print(end="")
        return t * self.n


class Derived(Base):
    def __init__(self, n):
        print(end="")
        super().__init__(n + 1)
        self.m = 1

    def scaled(self, t):
        print(end="")
        t = super().scaled(t) + self.m

        def inner():
            return self.n

        print(end="")
        return t + inner()


class Captured(Base):
    def scaled(self, t):
        def inner():
            return self.n

        print(end="")
        t = t + inner()
        return super().scaled(t)


@program(x)
def super_behind_breaks(a):
    return Derived(2).scaled(a)


@program(x)
def super_behind_break_of_captured_self(a):
    return Captured(2).scaled(a)


# del, global, nonlocal


@one(x)
def delete_local(a):
    b = a + 1
    del a
    try:
        return a
    except UnboundLocalError as error:
        return b, str(error)


@one(x, [1, 2, 3, 4], {"k": 1, "q": 2})
def delete_items(a, v, d):
    del v[0], d["k"], v[1:]
    return a + 1, v, d


@one(x)
def delete_attribute(a):
    box = Box()
    box.n = 1
    del box.n
    return a + 1, hasattr(box, "n")


class Box:
    pass


@program(x)
def delete_global(a):
    global TEMPORARY
    TEMPORARY = 3
    b = a + TEMPORARY
    del TEMPORARY
    try:
        return TEMPORARY
    except NameError as error:
        return b, str(error)


@program(x)
def delete_cell(a):
    n = 1

    def read():
        return n

    first = read()
    del n
    try:
        return read()
    except NameError as error:
        return a + first, str(error)


@one(x)
def global_written(a):
    global COUNT
    COUNT += 2
    return a + COUNT


@one(x)
def global_written_by_callee(a):
    def bump():
        global COUNT
        COUNT = COUNT + 1

    bump()
    bump()
    return a * COUNT


@one(x)
def nonlocal_twice_removed(a):
    n = 1

    def outer():
        def inner():
            nonlocal n
            n += 5

        inner()
        return n

    return a + outer() + n


# match


@one(x)
def match_values(a):
    found = []
    for value in (1, "a", None, True, 2.5, -1, "other"):
        match value:
            case True:
                found.append("true")
            case 1 | 2:
                found.append("small")
            case "a":
                found.append("text")
            case None:
                found.append("none")
            case float():
                found.append("float")
            case int(n) if n < 0:
                found.append(n)
            case _:
                found.append("rest")
    return a + len(found), found


@one(x)
def match_sequences(a):
    found = []
    for value in ([], [1], (1, 2), [1, 2, 3, 4], "ab", [[1, 2], 3], range(2), {"k": 1}):
        match value:
            case []:
                found.append("empty")
            case [n]:
                found.append(n)
            case (1, second):
                found.append(second)
            case [[p, q], r]:
                found.append(p + q + r)
            case [first, *rest]:
                found.append((first, rest))
            case _:
                found.append("no sequence")
    return a, a + len(found), found


@one(x)
def match_mappings(a):
    found = []
    for value in ({"k": 1}, {"k": 2, "q": 3}, {"z": [1, 2]}, {}, [1], {"w": {"v": 7}}):
        match value:
            case {"k": 1}:
                found.append("one")
            case {"k": n, **rest}:
                found.append((n, rest))
            case {"z": [p, q]}:
                found.append(p + q)
            case {"w": {"v": n}}:
                found.append(n)
            case {}:
                found.append("mapping")
            case _:
                found.append("other")
    return a + 1, found


class Point:
    __match_args__ = ("p", "q")

    def __init__(self, p, q):
        self.p, self.q = p, q


Pair = collections.namedtuple("Pair", "left right")


@one(x)
def match_classes(a):
    found = []
    for value in (Point(0, 1), Point(2, a), Point(3, [4]), Pair(1, 2), 7, "t"):
        match value:
            case Point(0, q):
                found.append(q)
            case Point(p=2, q=torch.Tensor() as t):
                found.append(t + 1)
            case Point(p, q=[n]):
                found.append(p * n)
            case Pair(left, right):
                found.append(left + right)
            case int(n) | str(n):
                found.append(n)
    return found


@program(x)
def match_class_refused(a):
    b = a + 1
    match Point(1, 2):
        case Point(1, 2, 3):
            return b
    return a


@one(x)
def match_tensor(a):
    match a, a.shape[0]:
        case torch.Tensor() as t, 3:
            return t + 1
        case _:
            return a


# Exceptions


@program(x)
def except_star(a):
    b = a + 1
    try:
        raise ExceptionGroup("group", [ValueError("v"), KeyError("k")])
    except* ValueError as group:
        LOG.append([str(error) for error in group.exceptions])
        b = b * 2
    except* KeyError as group:
        LOG.append(len(group.exceptions))
        b = b + 5
    return b


@program(x)
def except_star_plain_error(a):
    b = a + 1
    try:
        int("q")
    except* ValueError as group:
        b = b * 2
        LOG.append(type(group).__name__)
    return b + 1


@program(x)
def except_star_rest_escapes(a):
    try:
        a = a + 1
        raise ExceptionGroup("group", [ValueError("v"), KeyError("k")])
    except* ValueError:
        LOG.append("caught")


@program(x)
def raise_from_cause(a):
    try:
        [][a.shape[0]]
    except IndexError as error:
        b = a + 1
        raise RuntimeError("outer", b.shape[0]) from error


@program(x)
def cause_is_seen(a):
    try:
        try:
            {}["k"]
        except KeyError as error:
            raise RuntimeError("outer") from error
    except RuntimeError as error:
        return a + 1, repr(error.__cause__), repr(error.__context__), error.__suppress_context__


@program(x)
def context_is_seen(a):
    try:
        try:
            {}["k"]
        except KeyError:
            raise RuntimeError("outer")
    except RuntimeError as error:
        return a + 1, error.__cause__, repr(error.__context__), error.__suppress_context__


@program(x)
def context_from_callee(a):
    def fail():
        raise RuntimeError("outer")

    try:
        try:
            a = a + 1
            int("q")
        except ValueError:
            fail()
    except RuntimeError as error:
        return a * 2, repr(error.__context__)


@program(x)
def traceback_is_seen(a):
    try:
        a = a + 1
        int("q")
    except ValueError as error:
        lines, step = [], error.__traceback__
        while step is not None:
            lines.append((step.tb_frame.f_code.co_name, step.tb_lineno - step.tb_frame.f_code.co_firstlineno))
            step = step.tb_next
        return a * 2, lines


@program(x)
def exc_info(a):
    try:
        a = a + 1
        {}[3]
    except KeyError:
        kind, error, trace = sys.exc_info()
        return a, kind.__name__, error.args, trace is not None, sys.exc_info()[1] is error


@program(x)
def raise_class_and_instance(a):
    found = []
    for error in (ValueError, KeyError("k"), StopIteration(3)):
        try:
            a = a + 1
            raise error
        except (ValueError, KeyError) as caught:
            found.append(caught.args)
        except StopIteration as caught:
            found.append(caught.value)
    return a, found


@program(x)
def raise_no_exception(a):
    b = a + 1
    raise b


@program(x)
def except_no_class(a):
    try:
        a = a + 1
        int("q")
    except "text":
        return a


@program(x)
def except_by_variable(a):
    kinds = [KeyError]
    kinds.append(ValueError)
    try:
        a = a + 1
        int("q")
    except tuple(kinds) as error:
        return a * 2, str(error)


class Custom(Exception):
    def __init__(self, code, t):
        super().__init__(f"code {code}")
        self.code = code
        self.t = t


@program(x)
def custom_error(a):
    try:
        raise Custom(3, a + 1)
    except Custom as error:
        return error.t * error.code, str(error), error.args


@program(x)
def custom_error_escapes(a):
    b = a + 1
    raise Custom(4, b)


@one(x)
def containers_raise(a):
    found = []
    for action in (lambda: [1][3], lambda: {}["k"], lambda: (1, 2).index(3), lambda: [].pop(), lambda: next(iter(())),
                   lambda: {1}.remove(2), lambda: int("q"), lambda: 1 // 0, lambda: "a" + 1, lambda: [1, 2].remove(5),
                   lambda: {}.popitem(), lambda: None.nothing, lambda: len(3), lambda: [*3], lambda: nothing_global):  # fmt: skip
        try:
            action()
        except Exception as error:
            found.append((type(error).__name__, error.args))
    return a + len(found), found


@program(x)
def error_crosses_inlined_frames(a):
    def third(t):
        return t[0], [][1]

    def second(t):
        try:
            return third(t + 1)
        finally:
            LOG.append("second")

    def first(t):
        try:
            return second(t * 2)
        except KeyError:
            return t

    try:
        return first(a)
    except IndexError as error:
        return a * 3, str(error)


@program(x)
def error_escapes_inlined_frames(a):
    def third(t):
        return {}[t.shape[0]]

    def second(t):
        with_more = t + 1
        return third(with_more)

    return second(a * 2)


@one(x)
def finally_overrides(a):
    def returns():
        for i in range(3):
            try:
                return i
            finally:
                if i < 2:
                    continue
                return "finally"

    def swallows():
        while True:
            try:
                raise ValueError
            finally:
                break
        return "swallowed"

    return a + 1, returns(), swallows()


@one(x)
def try_nested_in_loops(a):
    found = []
    for i in range(3):
        try:
            for j in range(3):
                try:
                    if j == 1:
                        continue
                    if i == 1:
                        break
                    if i == j == 2:
                        raise KeyError(i)
                    found.append((i, j))
                finally:
                    found.append(j)
            else:
                found.append("else")
        except KeyError as error:
            found.append(error.args)
    return a + len(found), found


@program(x)
def assert_with_message(a):
    assert a.shape[0] == 3, "never"
    b = a + 1
    assert b.shape[0] == 4, ("wrong shape", b.shape[0])


@program(x)
def assert_without_message(a):
    b = a + 1
    assert not b.shape


# Texts


@one(x)
def texts(a):
    n, s, v = 3, "it", [1, "two"]
    width = 8
    return a + 1, f"{n}{s!r}{n:>{width}}|{n:05.1f}|{s:^6}|{v[0]}|{{}}|{n=}|{n + 1 = }|{s!a:>6}|{a.shape[0]:03d}|{a.dtype}"


@program(x)
def texts_of_containers(a):
    return a + 1, f"{[1, 2]} {(1,)} {'k'} {None} {True}", "%d %s" % (3, "a"), "{} {k}".format(1, k=2), str(3.5) + repr("q")


# Assignments


@one(x)
def unpackings(a):
    (p, q), [r, *s], t = (a, a + 1), [1, 2, 3], "xyz"
    u, *_, z = t
    p, q = q, p
    m = n = k = 2
    m, n = n + k, m
    first, (second, *others) = "a", "bcd"
    return p, q, r, s, u, z, m, n, first, second, others


@program(x)
def unpack_too_many(a):
    b = a + 1
    p, q = [1, 2, 3]


@program(x)
def unpack_too_few(a):
    b = a + 1
    p, q, *r = [1]


@program(x)
def unpack_no_iterable(a):
    b = a + 1
    p, q = 3


@one(x)
def augmented(a):
    n, v, s = 7, [1], "a"
    n += 1; n -= 2; n *= 3; n //= 2; n %= 7; n **= 2; n <<= 2; n >>= 1; n |= 9; n &= 29; n ^= 3
    v += (2, 3); v *= 2; s *= 3
    f = 3.0
    f /= 2
    b = a
    b += 1
    b *= 2
    return a, b is a, n, v, s, f


@one(x)
def walrus(a):
    if (n := 4) > 3 and (t := a + n) is not None:
        found = [last := i for i in range(n)]
    return t, last, found, (k := 5) + k


@one(x)
def walrus_in_comprehensions(a):
    total = 0
    partial = [total := total + i for i in range(4)]
    found = {key: (m := key * 2) for key in (1, 2)}
    return a + total, partial, found, m, any((hit := i) > 1 for i in range(4)), hit


@one(x)
def annotated(a):
    n: int = 2
    unset: str
    t: torch.Tensor = a * n
    return t


@one(x)
def chained_and_lazy(a):
    found = []

    def note(n):
        found.append(n)
        return n

    return a + 1, note(1) < note(3) > note(2), note(5) < note(4) < note(9), note(0) and note(6), note(7) or note(8), found


@one(x)
def conditional_expressions(a):
    return a + 1 if a.ndim == 1 else a - 1, [i if i % 2 else -i for i in range(4)], (lambda n: "p" if n > 0 else "n")(3)


@one(x)
def comprehensions_nested(a):
    square = [[i * j for j in range(i)] for i in range(4) if i]
    flat = [n for row in square for n in row if n]
    by_key = {i: {j for j in range(i)} for i in range(3)}
    return a + len(flat), flat, by_key, [(lambda: i)() for i in range(3)], [f() for f in [lambda: i for i in range(3)]]


@one(x)
def comprehension_hides_variable(a):
    i, n = 10, 2
    found = [i * n for i in range(3)]
    return a + i, found, {i for i in "ab"} == {"a", "b"}, i


@one(x)
def comprehension_hides_cell(a):
    i = 10

    def read():
        return i

    found = [i for i in range(3)]
    made = [lambda: i for i in range(2)]
    return a + read(), found, [f() for f in made], i


@program(x)
def comprehension_hides_unbound(a):
    found = [later for later in range(2)]
    try:
        return later
    except UnboundLocalError as error:
        return a + 1, found, str(error)


@program(x)
def comprehension_raises(a):
    n = 5
    try:
        return [10 // n for n in (2, 1, 0)]
    except ZeroDivisionError as error:
        return a + n, str(error)


@one(x)
def while_else_and_pass(a):
    n = 3
    while n:
        n -= 1
        if n == 7:
            break
        pass
    else:
        a = a * 2
    while True:
        n += 1
        if n > 4:
            break
    else:
        a = a * 100
    return a + n


@program(x)
def frames_are_looked_at(a):
    b = a + 1
    names = sorted(locals())
    return b, names, "COUNT" in globals(), sorted(vars())


@program(x)
def code_is_evaluated(a):
    n = 2
    b = a * n
    c = eval("b + n")
    exec("LOG.append(n)")
    return c + eval("a", {"a": 1})


@program(x)
def yield_and_lambda_in_defaults(a, f=lambda t, k=2: t * k):
    return f(a) + f(a, k=3)


@one(x)
def positional_and_keyword_only(a):
    def f(p, /, q, *, r=2, **more):
        return p + q * r + sum(more.values())

    return f(a, 1), f(a, q=2, r=3), f(a, 1, z=4, w=5)


@program(x)
def decorated_by_several(a):
    def add(n):
        def decorate(function):
            def run(*args, **kwargs):
                return function(*args, **kwargs) + n

            return run

        return decorate

    @add(1)
    @add(10)
    def f(t, scale=2):
        return t * scale

    return f(a), f(a, scale=3)
