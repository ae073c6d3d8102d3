"""Programs: graph breaks in loops, with and try blocks, handlers, and in the middle of expressions; capture goes on behind them."""

# ruff: noqa: B007, B012, B018, B023, E711, E731, F841, SIM105

from __future__ import annotations

import contextlib
import sys

import rushlight as torch
from tests.dynamo.harness import Programs

PROGRAMS = Programs()
program = PROGRAMS
broken = PROGRAMS.broken
x = torch.tensor([1.0, 2.0, 3.0])
w = torch.tensor([1.0, 2.0, 3.0], requires_grad=True)
LOG: list = []
COUNT = 0


def leave(value=None):
    """Break the graph."""
    print(end="")
    return value


class Noting:
    def __init__(self, swallows=False):
        self.swallows = swallows

    def __enter__(self):
        LOG.append("in")
        return len(LOG)

    def __exit__(self, kind, error, traceback):
        LOG.append("out" if kind is None else (kind.__name__, str(error)))
        return self.swallows


class Breaking(Noting):
    def __enter__(self):
        print(end="")
        return super().__enter__()

    def __exit__(self, kind, error, traceback):
        print(end="")
        return super().__exit__(kind, error, traceback)


# Loops


@broken(x, pieces=6)  # Python advances the iterator, so one resume function serves all values
def in_for(a):
    for i in range(3):
        a = a * 2
        print(end="")
        a = a + i
    return a


@broken(x, pieces=3)
def in_while(a):
    i = 0
    while i < 2:
        a = a + i
        i += 1
        print(end="")
    return a * 2


@broken(x, pieces=5)
def in_nested_loops(a):
    for i in range(2):
        for j in range(2):
            a = a * (i + 1) + j
            print(end="")
        a = a + 1
    return a


@program(x)
def in_for_else(a):
    for i in range(2):
        a = a + i
        print(end="")
    else:
        a = a * 10
        print(end="")
        a = a + 1
    return a


@program(x)
def in_for_left(a):
    for i in range(5):
        a = a + i
        if a.sum() > 10:
            print(end="")
            break
        a = a * 2
    else:
        a = a * 100
    return a


@program(x)
def in_while_else(a):
    n = 3
    while n:
        n -= 1
        if n == 1:
            leave()
            continue
        a = a + n
    else:
        leave()
        a = a - 1
    return a


@program(x)
def in_while_by_data(a):
    steps = 0
    while a.sum() < 100:
        a = a * 2
        steps += 1
    return a, steps


@program(x, [1, 2, 3])
def over_changing_list(a, v):
    for i in v:
        a = a + i
        print(end="")
        if i < 3:
            v.append(i + 2)
    return a, v


@program(x, {"k": 1, "q": 2})
def over_dict(a, d):
    for key, value in d.items():
        a = a * value
        print(end="")
        LOG.append(key)
    return a


@program(x, {"k": 1, "q": 2})
def over_dict_that_changes(a, d):
    for key in d:
        a = a + 1
        print(end="")
        d[key + "k"] = 1
    return a


@program(x)
def over_enumerate_and_zip(a):
    for i, (j, k) in enumerate(zip(range(3), [4, 5, 6], strict=True)):
        a = a + i * j
        print(end="")
        a = a + k
    return a


@program(x)
def over_map(a):
    for i in map(lambda n: n + 1, [1, 2, 3]):
        a = a + i
        print(end="")
    return a


@program(x)
def over_tensor(a):
    total = a.sum()
    for row in torch.stack([a, a * 2]):
        print(end="")
        total = total + row.sum()
    return total


@program(x)
def over_reversed(a):
    for i in reversed([1, 2, 3]):
        a = a * i + 1
        print(end="")
    return a


@program(x)
def two_iterators_on_the_stack(a):
    for i in [1, 2]:
        for j in (3, 4):
            for k in {"p": 5}:
                a = a + i * j
                print(end="")
                LOG.append((i, j, k))
    return a


@program(x)
def iterator_shared_by_loops(a):
    numbers = iter([1, 2, 3, 4, 5])
    for i in numbers:
        a = a + i
        print(end="")
        for j in numbers:
            a = a * j
            break
    return a, list(numbers)


def _produce(a, count):
    for i in range(count):
        LOG.append(i)
        yield a + i


@program(x)
def over_generator(a):
    total = a
    for b in _produce(a, 3):
        total = total + b
        print(end="")
    return total


def _breaking_producer(a):
    for i in range(3):
        a = a + 1
        print(end="")
        yield a * i


@program(x)
def over_breaking_generator(a):
    b = a * 2
    for c in _breaking_producer(a):
        b = b + c
    return b


@program(x)
def return_inside_loop(a):
    for i in range(4):
        a = a + i
        if leave(i) == 2:
            return a * 100, i
    return a


@program(x)
def loop_variable_afterwards(a):
    for i in range(3):
        last = a + i
        leave()
    return last, i


# with


@broken(w, pieces=2)
def in_no_grad(a):
    with torch.no_grad():
        b = a * 2
        print(end="")
        c = a * 3
    return b, c, a * 4


@program(w)
def in_nested_grad_modes(a):
    with torch.no_grad():
        b = a * 2
        with torch.enable_grad():
            c = a * 2
            print(end="")
            d = c * a
        print(end="")
        e = a * 3
    return b, c.detach(), d.detach(), e, torch.is_grad_enabled()


@program(w)
def in_set_grad_enabled(a):
    with torch.set_grad_enabled(False):
        b = a + 1
        leave()
        c = a + 2
    return b, c, (a * 1).requires_grad


@program(w)
def in_inference_mode(a):
    with torch.inference_mode():
        b = a + 1
        leave()
        c = b + 1
    return c.sum().item()


@program(x)
def in_autocast(a):
    b = torch.stack([a, a, a])
    with torch.autocast("cpu", dtype=torch.bfloat16):
        c = b @ b
        print(end="")
        d = b @ b
    return c.dtype, d.dtype, (b @ b).dtype


@program(x)
def in_user_context(a):
    with Noting() as n:
        a = a + n
        print(end="")
        a = a * 2
        LOG.append("middle")
    return a


@program(x)
def in_breaking_context(a):
    with Breaking() as n:
        a = a + n
        a = a * 2
    return a + 1


@program(x)
def in_several_contexts(a):
    with Noting() as n, torch.no_grad(), Breaking(True) as m:
        a = a + n
        print(end="")
        a = a * m
        raise ValueError("inside")
    return a, torch.is_grad_enabled()


@program(x)
def in_parenthesized_contexts(a):
    with (
        Noting() as n,
        Noting() as m,
    ):
        leave()
        a = a + n + m
    return a


@contextlib.contextmanager
def _managed(n):
    LOG.append(("enter", n))
    try:
        yield n * 2
    finally:
        LOG.append(("exit", n))


@program(x)
def in_contextmanager(a):
    with _managed(3) as n:
        a = a * n
        print(end="")
        a = a + 1
    return a


@program(x)
def in_contextmanager_with_error(a):
    with _managed(3) as n:
        a = a * n
        print(end="")
        raise KeyError("inside")


@program(x)
def in_suppress(a):
    with contextlib.suppress(ValueError):
        a = a + 1
        leave()
        raise ValueError("gone")
    return a * 2


@program(x)
def in_exit_stack(a):
    with contextlib.ExitStack() as stack:
        stack.enter_context(Noting())
        stack.callback(LOG.append, "callback")
        a = a + 1
        leave()
        a = a + 2
    return a


@program(x)
def context_in_loop(a):
    for i in range(3):
        with Noting():
            a = a + i
            if i == 0:
                leave()
                continue
            if i == 1:
                leave()
                break
    return a


@program(x)
def return_inside_context(a):
    for i in range(3):
        with Noting(), torch.no_grad():
            leave()
            return a + i, torch.is_grad_enabled()


@program(x)
def swallowed_after_break(a):
    with Noting(True):
        a = a + 1
        leave()
        [][0]
        a = a * 100
    return a * 2


@program(x)
def error_in_context_at_break(a):
    with Noting(True):
        a = a + 1
        int("q")
        a = a * 100
    return a * 2


@program(x)
def error_in_context_escapes(a):
    with Noting():
        a = a + 1
        int("q")
    return a


@program(x)
def context_from_outside(a):
    manager = Noting()
    with manager as n:
        leave()
        a = a + n
    with manager as n:
        a = a + n
        leave()
    return a, manager


# try, except and finally


@broken(x, pieces=3)
def in_try(a):
    try:
        a = a + 1
        print(end="")
        a = a * 2
    except ValueError:
        a = a * 100
    print(end="")
    return a - 1


@program(x)
def break_raises_in_try(a):
    try:
        a = a + 1
        int("q")
        a = a * 2
    except ValueError as error:
        a = a * 3
        LOG.append(str(error))
    return a - 1


@program(x)
def in_except(a):
    try:
        a = a + 1
        raise ValueError("one")
    except ValueError as error:
        a = a * 3
        print(end="")
        a = a + 1
        LOG.append(str(error))
    return a - 1


@broken(x, pieces=4)
def in_except_and_capture_goes_on(a):
    try:
        a = a + 1
        int("q")
    except ValueError as error:
        a = a * 3
        print(end="")
        a = a + 1
    a = a * 2
    print(end="")
    return a - 1


@program(x)
def in_except_twice(a):
    for i in range(3):
        try:
            a = a + 1
            {}[i]
        except KeyError as error:
            print(end="")
            a = a * 2
            print(end="")
            LOG.append(error.args)
            a = a + i
        a = a - 1
        print(end="")
    return a


@program(x)
def in_bare_except(a):
    try:
        a = a + 1
        int("q")
    except:  # noqa: E722
        a = a * 3
        leave()
        a = a + 1
    return a - 1


@program(x)
def reraise_after_break_in_handler(a):
    try:
        a = a + 1
        int("q")
    except ValueError:
        a = a * 3
        leave()
        LOG.append(float(a.sum()))
        raise


@program(x)
def reraise_by_name_after_break(a):
    try:
        int("q")
    except ValueError as error:
        a = a * 3
        leave()
        raise error


@program(x)
def other_error_after_break_in_handler(a):
    try:
        a = a + 1
        int("q")
    except ValueError:
        a = a * 3
        leave()
        raise KeyError("k")


@program(x)
def raise_from_after_break_in_handler(a):
    try:
        a = a + 1
        int("q")
    except ValueError as error:
        a = a * 3
        leave()
        raise KeyError("k") from error


@program(x)
def raise_from_none_after_break(a):
    try:
        a = a + 1
        [][2]
    except IndexError:
        leave()
        raise KeyError("k") from None


@program(x)
def breaking_instruction_raises_in_handler(a):
    try:
        a = a + 1
        {}["q"]
    except KeyError as error:
        a = a * 3
        int("w")
        a = a * 100
    return a


@program(x)
def handler_in_handler(a):
    try:
        a = a + 1
        {}["q"]
    except KeyError as outer:
        leave()
        try:
            a = a * 2
            int("w")
        except ValueError as inner:
            leave()
            a = a * 3
            LOG.append((str(outer), str(inner), type(inner.__context__).__name__))
        leave()
        a = a + 1
        LOG.append(str(outer))
    return a


@program(x)
def handler_in_handler_reraises_outer(a):
    try:
        a = a + 1
        {}["q"]
    except KeyError:
        try:
            int("w")
        except ValueError:
            leave()
        a = a * 3
        leave()
        raise


@program(x)
def in_finally(a):
    try:
        a = a + 1
    finally:
        a = a * 3
        print(end="")
        LOG.append("finally")
        a = a + 1
    return a - 1


@program(x)
def in_finally_with_error(a):
    try:
        a = a + 1
        raise ValueError("one")
    finally:
        a = a * 3
        print(end="")
        LOG.append(float(a.sum()))


@program(x)
def in_finally_with_error_of_break(a):
    try:
        try:
            a = a + 1
            int("q")
        finally:
            a = a * 3
            print(end="")
            LOG.append(float(a.sum()))
    except ValueError:
        a = a + 7
        leave()
    return a


@program(x)
def return_in_finally(a):
    try:
        a = a + 1
        int("q")
    finally:
        leave()
        return a * 3


@program(x)
def return_through_finally(a):
    for i in range(3):
        try:
            a = a + i
            leave()
            if i == 1:
                return a
        finally:
            a = a * 2
            leave()
            LOG.append(float(a.sum()))


@program(x)
def continue_and_break_through_finally(a):
    for i in range(4):
        try:
            if i == 0:
                continue
            a = a + i
            leave()
            if i == 2:
                break
        finally:
            a = a * 2
            leave()
            LOG.append(i)
    else:
        a = a * 100
    return a


@program(x)
def in_else_of_try(a):
    try:
        a = a + 1
    except ValueError:
        a = a * 100
    else:
        leave()
        a = a * 2
    finally:
        leave()
        a = a - 1
    return a


@program(x)
def all_parts_of_try(a):
    for i in range(4):
        try:
            leave()
            a = a + 1
            if i % 2:
                {}[i]
        except KeyError as error:
            leave()
            a = a * 2
            LOG.append(error.args)
        else:
            leave()
            a = a * 3
        finally:
            leave()
            a = a - i
    return a


@program(x)
def handled_error_is_known_to_callee(a):
    def note():
        LOG.append(type(sys.exc_info()[1]).__name__)

    note()
    try:
        a = a + 1
        int("q")
    except ValueError:
        note()
        a = a * 2
        leave()
        note()
    note()
    return a


@program(x)
def bare_raise_in_callee(a):
    def again():
        print(end="")
        raise

    try:
        try:
            a = a + 1
            int("q")
        except ValueError:
            a = a * 2
            again()
    except ValueError as error:
        return a, str(error)


@program(x)
def error_variable_is_gone(a):
    error = 5
    try:
        int("q")
    except ValueError as error:
        leave()
        a = a + 1
    try:
        return error
    except UnboundLocalError as gone:
        leave()
        return a, str(gone)


@program(x)
def error_kept_beyond_handler(a):
    kept = None
    try:
        a = a + 1
        int("q")
    except ValueError as error:
        kept = error
        leave()
        a = a * 2
    leave()
    return a, kept.args, kept.__context__


@program(x)
def handler_loops(a):
    try:
        int("q")
    except ValueError as error:
        for i in range(3):
            a = a + i
            leave()
        LOG.append(str(error))
    return a


@program(x)
def second_handler_matches(a):
    for kind in (ValueError, KeyError, TypeError):
        try:
            try:
                leave()
                raise kind("k")
            except ValueError:
                leave()
                a = a + 1
            except KeyError:
                leave()
                a = a * 2
        except Exception as error:
            leave()
            a = a - 1
            LOG.append(type(error).__name__)
    return a


# Inside called functions


def _level(a, depth):
    if depth == 0:
        print(end="")
        return a + 1
    return _level(a * 2, depth - 1) + depth


@program(x)
def deep_in_calls(a):
    b = a + 1
    c = _level(b, 5)
    return c * 2


@program(x)
def in_method(a):
    class Counter:
        def __init__(self):
            self.n = 0

        def step(self, t):
            self.n += 1
            print(end="")
            return t + self.n

    counter = Counter()
    for _ in range(3):
        a = counter.step(a)
    return a, counter.n


@program(x)
def in_closure(a):
    n = 1

    def step(t):
        nonlocal n
        n += 1
        print(end="")
        n += 1
        return t * n

    b = step(a)
    return step(b), n


@program(x)
def in_lambda_argument(a):
    return sum(map(lambda t: leave(t) * 2, [a, a + 1]))


@program(x)
def in_sort_key(a):
    def key(n):
        print(end="")
        return -n

    return a + sorted([1, 3, 2], key=key)[0]


@program(x)
def in_property(a):
    class Box:
        @property
        def value(self):
            print(end="")
            return a * 2

    return Box().value + 1


@program(x)
def in_operator_method(a):
    class Number:
        def __add__(self, other):
            print(end="")
            return a + other

        def __eq__(self, other):
            print(end="")
            return other == 3

        def __len__(self):
            print(end="")
            return 4

    one = Number()
    return one + 2, one == 3, len(one), bool(one)


@program(x)
def error_from_breaking_callee(a):
    def fail(t):
        print(end="")
        raise ValueError(float(t.sum()))

    try:
        a = a + 1
        fail(a)
    except ValueError as error:
        a = a * 2
        LOG.append(error.args)
    return a


@program(x)
def error_escapes_breaking_callee(a):
    def fail(t):
        t = t * 2
        print(end="")
        raise ValueError(float(t.sum()))

    a = a + 1
    fail(a)


# In the middle of expressions


@program(x)
def between_arguments(a):
    return torch.stack([a + 1, leave(a) + 2, a * 3]) + leave(1)


@program(x)
def in_call_with_keywords(a):
    def f(p, *args, q, **rest):
        return p + q, args, rest

    return f(a + 1, leave(2), q=a * 2, z=leave(3))


@program(x)
def in_call_with_stars(a):
    def f(*args, **named):
        return args, named

    return f(a + 1, *leave((1, 2)), k=leave(a), **leave({"z": 2}))


@program(x)
def in_displays(a):
    return [a + 1, leave(1)], (leave(2), a * 2), {"p": leave(3), leave("q"): a}, {leave(4), 5}


@program(x)
def in_chained_comparison(a):
    n = 3
    return a + (1 if 1 < leave(n) < 5 < leave(7) else 0), 1 < leave(0) < leave(5)


@program(x)
def in_boolean_operators(a):
    return (leave(0) or leave([]) or a), (leave(1) and leave(a + 1)), not leave(0)


@program(x)
def in_conditional_expression(a):
    return (a + 1 if leave(0) else a * leave(2)) + (leave(1) if leave(1) else a)


@program(x)
def in_text(a):
    n = 3
    return f"{n} {leave(4)!r:>5} {leave('a')} {n:{leave(4)}} {a.shape[0]}", a + 1


@program(x)
def in_text_of_tensor(a):
    b = a + 1
    return f"<{b.sum().item():.2f} {b.shape}>", f"{b}", b * 2


@program(x, [1, 2, 3])
def in_item_store(a, v):
    v[leave(1)] = a + 1
    v[0:leave(1)] = [leave(7), 8]
    v[leave(-1)] += 5
    return v


@program(x, {"k": 1})
def in_dict_store(a, d):
    d[leave("k")] += leave(2)
    d["q"] = leave(a) + 1
    del d[leave("k")]
    return d


@program(x)
def in_attribute_store(a):
    class Box:
        pass

    box = Box()
    box.t = leave(a) + 1
    leave(box).t += leave(2)
    leave(box).n = 3
    del leave(box).n
    return box.t, hasattr(box, "n")


@program(x)
def in_unpacking(a):
    p, (q, *r), s = leave(a + 1), leave([1, 2, 3]), leave(a)
    p, q = q, leave(p)
    return p, q, r, s


@program(x)
def in_starred_unpacking(a):
    first, *middle, last = leave(range(5))
    return a + first, middle, last, [*leave([1]), *middle], {**leave({"k": 1}), "z": a}


@program(x)
def in_comprehension(a):
    return [leave(a) + i for i in range(3) if leave(i) != 1]


@program(x)
def in_nested_comprehension(a):
    return [[leave(a) * i * j for i in range(2)] for j in leave(range(2))], {i: leave(a) for i in (1, 2)}


@program(x)
def in_generator_expression(a):
    return sum(leave(a) + i for i in range(3)), list(leave(i) for i in (1, 2))


@program(x)
def in_slice(a):
    return a[leave(0) : leave(2)] + a[: leave(2)], [1, 2, 3][leave(1) :: leave(1)]


@program(x)
def in_augmented_assignment(a):
    b = a
    a += leave(1)
    v = w_ = [1]
    v += leave([2])
    n = 5
    n **= leave(2)
    return a, b, v is w_, n


@program(x)
def in_walrus(a):
    if (n := leave(3)) > 2 and (m := a + n).sum() > 0:
        return m * n
    return n


@program(x)
def in_assert(a):
    assert leave(True), "fine"
    b = a + 1
    assert leave(False), f"shape {b.shape[leave(0)]}"


@program(x)
def in_lambda_default(a):
    f = lambda t, n=leave(3): t * n
    return f(a) + f(a, leave(2))


@program(x)
def in_decorator(a):
    def twice(function):
        print(end="")
        return lambda *args: function(*args) * 2

    @twice
    def f(t):
        return t + 1

    return f(a)


@program(x)
def in_subscript_of_call(a):
    return leave([a, a + 1])[leave(1)] + leave({"k": a})["k"]


@program(x)
def in_method_chain(a):
    return leave(a).add(leave(1)).mul(leave(2)).sum().add(leave(a)).tolist()


@program(x)
def in_matrix_product(a):
    return torch.outer(a, leave(a)) @ (leave(a) + 1)


@program(x)
def in_return_of_tuple(a):
    return a, leave(1), a + 1, leave(2)


@program(x)
def in_delete(a):
    v = [1, 2, 3]
    b = a + 1
    del v[leave(0)], b
    return a, v


@program(x)
def in_global_store(a):
    global COUNT
    COUNT = leave(3)
    COUNT += leave(4)
    return a + COUNT


@program(x)
def in_match(a):
    match leave({"k": [1, a]}):
        case {"k": [1, t]} if leave(True):
            return t + leave(1)
    return a


# Variables that are shared


@program(x)
def cells_live_across(a):
    n, t = 1, a

    def read():
        return t * n

    leave()
    n = 2
    first = read()
    leave()
    t = t + 1
    return first, read()


@program(x)
def cell_written_by_inner(a):
    total = a

    def add(k):
        nonlocal total
        total = total + k

    for i in range(3):
        add(i)
        leave()
    return total


@program(x)
def unbound_cell_across(a):
    def read():
        return later

    leave()
    later = a + 1
    return read()


@program(x)
def unbound_local_across(a):
    if a.sum() < 0:
        n = 1
    leave()
    return a + n


@program(x)
def functions_made_before(a):
    fs = [lambda t, k=k: t + k for k in range(3)]
    leave()
    return [f(a) for f in fs]


@program(x)
def recursion_across(a):
    def down(t, n):
        if n == 0:
            return t
        leave()
        return down(t + n, n - 1)

    return down(a, 4)


@program(x, [1])
def order_of_effects(a, v):
    global COUNT
    v.append(2)
    COUNT += 1
    LOG.append(list(v))
    leave()
    v.append(COUNT)
    LOG.append(v)
    COUNT += 1
    leave()
    LOG.append(COUNT)
    return a + 1, v


@program(x)
def effects_before_error(a):
    LOG.append("before")
    b = a + 1
    leave()
    LOG.append("after")
    raise KeyError("k")


@program(x)
def writes_before_break(a):
    a.add_(1)
    b = a.view(3, 1)
    leave()
    b.mul_(2)
    a[0] = leave(7)
    return a, b


@program(x)
def same_object_twice(a):
    b = a
    v = [a, b]
    leave()
    b.add_(1)
    return v[0] is v[1], v, a


@program(x)
def star_args(a, *args, **named):
    leave()
    args = (*args, a + 1)
    leave()
    named["k"] = a
    return args, named


@program(x)
def data_dependent(a):
    if a.sum() > 3:
        a = a * 2
        if a.max() > 100:
            return a
        a = a + a.min().item()
    elif a.sum() > 2:
        a = a - 1
    n = int(a[0])
    return a + n, a.tolist(), bool((a > 0).all())


@program(x, [1, 2])
def captured_arguments_across(a, v):
    leave()

    def read(k):
        return a * v[k]

    leave()
    return read(0), (lambda: [a, v, read])()[1], [lambda k: a + k for _ in v][0](3)


@program(x)
def comprehension_with_cell_across(a):
    i, n = 7, 1
    leave()
    made = [lambda: i + n for i in range(2)]
    leave()
    n = 2
    found = [f() for f in made]
    leave()
    return a + i, found


@program(x)
def comprehension_hides_captured_across(a):
    i = 7

    def read():
        return i

    leave()
    found = [(lambda: i)() for i in range(3)]
    leave()
    return a + read(), found, i


@program(x)
def generator_left_in_try(a):
    def guarded():
        try:
            yield a + 1
            yield a + 2
        finally:
            LOG.append("finally")

    for t in guarded():
        break
    LOG.append("end")
    return t


@program(x, 5)
def comprehension_hides_arguments_across(a, n):
    def read():
        return n

    leave()
    pairs = [(n, function) for n in range(2) for function in [read]]
    leave()
    found = [(lambda: n)() for n in range(3)]
    leave()
    return a + n, [(m, function()) for m, function in pairs], found, read()


@program(x, 5)
def comprehension_hides_and_raises(a, n):
    def read():
        return n

    try:
        [1 // (n - 1) for n in range(3)]
    except ZeroDivisionError:
        leave()
        a = a + n
    try:
        [leave() or (lambda: n)() // (n - 1) for n in range(3)]
    except ZeroDivisionError:
        a = a * read()
    return a, n


@program(x)
def many_variables_across(a):
    v0 = a + 0
    v1 = a + 1
    v2 = a + 2
    v3 = a + 3
    v4 = a + 4
    v5 = a + 5
    v6 = a + 6
    v7 = a + 7
    v8 = a + 8
    v9 = a + 9
    v10 = a + 10
    v11 = a + 11
    leave()
    v12 = v0 * 2 - v11
    v13 = v1 * 2 - v0
    v14 = v2 * 2 - v1
    v15 = v3 * 2 - v2
    v16 = v4 * 2 - v3
    v17 = v5 * 2 - v4
    v18 = v6 * 2 - v5
    v19 = v7 * 2 - v6
    v20 = v8 * 2 - v7
    v21 = v9 * 2 - v8
    v22 = v10 * 2 - v9
    v23 = v11 * 2 - v10
    leave()
    total = [v0, v1, v2, v3, v4, v5, v6, v7, v8, v9, v10, v11, v12, v13, v14, v15, v16, v17, v18, v19, v20, v21, v22, v23]
    leave()
    return total, v3 + v23, v22 - v4
