"""Programs: generators, generator expressions and coroutines, followed where they are made and consumed in a captured function."""

# ruff: noqa: B007, B012, B023, B904, C400, C401, C402, C416, E731, F841, RUF, SIM105, UP028

from __future__ import annotations

import asyncio
import collections
import contextlib
import itertools

import rushlight as torch
from tests.dynamo.harness import Programs

PROGRAMS = Programs()
one = PROGRAMS.one
program = PROGRAMS
x = torch.tensor([1.0, 2.0, 3.0])
LOG: list = []


def count(n):
    for i in range(n):
        LOG.append(i)
        yield i


@one(x)
def loop_over(a):
    for i in count(3):
        a = a + i
    return a


@program(x)
def loop_left_early(a):
    for i in count(5):
        if i == 2:
            break
        a = a + i
    return a


@one(x)
def consumers(a):
    return (
        a + sum(i for i in range(4)), list(i for i in "ab"), tuple(i for i in (1, 2)), {i for i in (3, 3)}, set(i for i in [4]),
        dict((i, i * 2) for i in range(2)), max(i for i in [1, 5, 2]), min((-i for i in [1, 5]), default=3), any(i > 1 for i in (1, 2)),
        all(i for i in (1, 0)), sorted(i for i in (3, 1, 2)), ",".join(str(i) for i in range(3)), [*(i for i in (7, 8))],
        list(zip((i for i in (1, 2)), "xy", strict=False)), list(enumerate(i for i in "pq")), list(map(str, (i for i in (1,)))),
        next(i for i in (9, 10)), frozenset(i for i in (1,)), collections.deque(i for i in (1, 2)), 3 in (i for i in range(5)),
        list(reversed(list(i for i in (1, 2)))), list(itertools.chain((i for i in (1,)), (2,))), collections.OrderedDict((i, 1) for i in (5, 6)),
    )  # fmt: skip


@one(x)
def of_tensors(a):
    return sum(a * i for i in range(3)), torch.stack([*(a + i for i in range(2))]), torch.cat(list(a[:i] for i in (1, 2)))


@one(x)
def unpacked(a):
    p, q, r = (a + i for i in range(3))
    first, *rest = (i for i in range(3))
    return p, q, r, first, rest


@one(x)
def arguments(a):
    def f(*args, **named):
        return args, named

    return a + 1, f(*(i for i in range(2)), **dict((k, 1) for k in "pq"))


@one(x)
def lazily(a):
    found = []

    def note(i):
        found.append(i)
        return i

    made = (note(i) for i in range(5))
    first = next(made)
    found.append("between")
    return a + first, next(made), any(note(i) > 0 for i in range(4)), found, next(made, None)


@one(x)
def nested_expressions(a):
    return a + sum(sum(j for j in range(i)) for i in range(4)), list((i, list(j for j in range(i))) for i in range(3))


@one(x)
def filtered(a):
    return a + sum(i for i in range(10) if i % 2 if i > 3), list(i + j for i in (1, 2) for j in (10, 20) if i + j != 12)


def delegating(n):
    found = yield from returning(n)
    yield found
    yield from [7, 8]
    yield from (i for i in (9,))
    return "end"


def returning(n):
    for i in range(n):
        yield i
    return n * 100


@one(x)
def delegated(a):
    return a + sum(delegating(2)), list(delegating(3))


@one(x)
def returned_value(a):
    made = returning(1)
    next(made)
    try:
        next(made)
    except StopIteration as stop:
        return a + stop.value


@program(x)
def sent(a):
    def averaging():
        total, n = 0, 0
        value = yield
        while value is not None:
            total, n = total + value, n + 1
            value = yield total / n
        return total

    made = averaging()
    next(made)
    first, second = made.send(a), made.send(a * 3)
    try:
        made.send(None)
    except StopIteration as stop:
        return first, second, stop.value


@program(x)
def thrown(a):
    def guarded():
        while True:
            try:
                yield "value"
            except ValueError as error:
                yield str(error)
            finally:
                LOG.append("finally")

    made = guarded()
    return a + 1, next(made), made.throw(ValueError("thrown")), next(made)


@program(x)
def thrown_and_not_caught(a):
    made = count(3)
    next(made)
    b = a + 1
    made.throw(KeyError("k"))


@program(x)
def closed(a):
    def guarded():
        try:
            yield 1
            yield 2
        finally:
            LOG.append("closed")

    made = guarded()
    n = next(made)
    made.close()
    return a + n, list(made)


@program(x)
def thrown_into_delegate(a):
    def inner():
        try:
            yield 1
        except KeyError:
            yield 2
        return 3

    def outer():
        n = yield from inner()
        yield n

    made = outer()
    return a + 1, next(made), made.throw(KeyError), next(made)


@program(x)
def stop_iteration_inside(a):
    def bad():
        yield 1
        raise StopIteration("inside")

    return a + sum(bad())


@one(x)
def stop_iteration_inside_caught(a):
    def bad():
        yield 1
        next(iter(()))

    try:
        return a + sum(bad())
    except RuntimeError as error:
        return a * 2, str(error)


@program(x)
def error_inside(a):
    def failing(t):
        yield t + 1
        raise ValueError("inside")

    total = a
    try:
        for b in failing(a):
            total = total + b
    except ValueError as error:
        return total, str(error)


@program(x)
def error_escapes(a):
    def failing(t):
        yield t + 1
        yield [][1]

    total = a
    for b in failing(a):
        total = total + b
    return total


@program(x)
def given_back(a):
    made = (a + i for i in range(3))
    return made, a * 2


@program(x)
def given_back_half_consumed(a):
    made = count(3)
    return a + next(made), made


@program(x)
def taken_from_outside(a):
    made = OUTSIDE()
    total = a
    for i in made:
        total = total + i
    return total


def OUTSIDE():
    yield 1
    yield 2


@program(x)
def over_a_break(a):
    made = count(4)
    b = a + next(made)
    print(end="")
    return b + sum(made)


@program(x)
def expression_over_a_break(a):
    made = (a * i for i in range(4))
    b = next(made)
    print(end="")
    return b, list(made)


@program(x)
def break_inside(a):
    def noisy(t):
        for i in range(3):
            print(end="")
            t = t + i
            yield t

    return sum(noisy(a)), list(noisy(a))[1]


@program(x)
def shared_variable(a):
    n = 1

    def scaled():
        for i in range(3):
            yield i * n

    total = 0
    for i in scaled():
        total += i
        n += 1
    return a + total, n


@one(x)
def class_with_iter(a):
    class_made = Numbers(3)
    return a + sum(class_made), [i for i in class_made], max(class_made), (*class_made,)


class Numbers:
    def __init__(self, n):
        self.n = n

    def __iter__(self):
        for i in range(self.n):
            yield i


@program(x)
def as_context(a):
    @contextlib.contextmanager
    def managed(n):
        LOG.append("in")
        try:
            yield n
        except ValueError:
            LOG.append("swallowed")
        finally:
            LOG.append("out")

    with managed(3) as n:
        a = a + n
        raise ValueError
    with managed(4) as n:
        a = a * n
    return a


@program(x)
def recursive(a):
    def walk(tree):
        if isinstance(tree, list):
            for part in tree:
                yield from walk(part)
        else:
            yield tree

    return a + sum(walk([1, [2, [3, []], 4]]))


@program(x)
def infinite(a):
    def naturals():
        n = 0
        while True:
            yield n
            n += 1

    return a + sum(itertools.islice(naturals(), 4)), [i for i, _ in zip(naturals(), "abc", strict=False)]


@program(x)
def pipeline(a):
    def doubled(values):
        for value in values:
            yield value * 2

    def kept(values):
        for value in values:
            if value.shape[0] > 1:
                yield value

    return [t + 1 for t in kept(doubled(a[:i] for i in range(4)))]


@program(x)
def grad_mode_inside(a):
    def without():
        with torch.no_grad():
            yield torch.is_grad_enabled()
            yield torch.is_grad_enabled()

    return a + 1, list(without()), torch.is_grad_enabled()


@program(x)
def is_generator_itself(a):
    return list(_generator(a))


def _generator(a):
    b = a + 1
    yield b
    print(end="")
    yield b * 2


@program(x)
def coroutine(a):
    async def double(t):
        return t * 2

    async def run():
        first = await double(a)
        async with Manager() as n:
            first = first + n
        return first + sum([i async for i in numbers()])

    async def numbers():
        for i in range(3):
            yield i

    return asyncio.run(run())


class Manager:
    async def __aenter__(self):
        return 5

    async def __aexit__(self, *error):
        return False


@program(x)
def coroutine_by_hand(a):
    async def double(t):
        return t * 2

    made = double(a + 1)
    try:
        made.send(None)
    except StopIteration as stop:
        return stop.value


@one(x)
def left_in_a_handler(a):
    def careful():
        try:
            yield a
        except ValueError as error:
            yield a + len(error.args)

    values = careful()
    next(values)
    return values.throw(ValueError("thrown"))


@program(x)
def left_in_a_finally(a):
    def careful():
        try:
            yield a
        except ValueError:
            try:
                yield a + 1
            finally:
                LOG.append("left")

    values = careful()
    next(values)
    return values.throw(ValueError("thrown"))
