"""Programs: try, except, finally, else, raise, assert, context managers and grad modes, each with and without breaks."""

# ruff: noqa: B007, B010, B016, B023, F821, F841, UP003, UP031, UP032, UP033

from __future__ import annotations

import contextlib

import numpy as np

import rushlight as torch
from tests.dynamo.harness import Programs

PROGRAMS = Programs()
one = PROGRAMS.one
program = PROGRAMS
x = torch.tensor([1.0, 2.0, 3.0])
w = torch.tensor([1.0, 2.0, 3.0], requires_grad=True)
LOG: list = []


@one(x)
def caught(a):
    try:
        return {}["k"]
    except KeyError as error:
        r = a + 1
        n = error.args
    else:
        r = a
    finally:
        a = a * 2
    return r + a, n


@one(x)
def not_raised(a):
    try:
        a = a + 1
    except ValueError:
        a = a * 100
    else:
        a = a * 2
    finally:
        a = a - 1
    return a


@one(x)
def by_class(a):
    found = []
    for kind in (ValueError, KeyError, IndexError, ZeroDivisionError):
        try:
            raise kind("boom")
        except (ValueError, IndexError):
            found.append("first")
        except LookupError:
            found.append("second")
        except Exception as error:
            found.append(type(error).__name__)
    return a + len(found), found


@one(x)
def raised_inside(a):
    def g(n):
        if n > 1:
            raise ValueError("too big", n)
        return n

    try:
        return a * g(5)
    except ValueError as error:
        return a * g(1), error.args, str(error)


@program(x)
def escapes(a):
    b = a + 1
    raise ValueError("boom %d" % b.shape[0])


@program(x)
def escapes_inlined(a):
    return _raises(a * 2)


def _raises(a):
    b = a + 1
    return _raises_deeper(b)


def _raises_deeper(a):
    raise IndexError(f"shape {a.shape}")


@program(x)
def escapes_from_operator(a):
    b = a + 1
    return b @ torch.ones(4)


@program(x)
def error_of_operator_caught(a):
    try:
        return a @ torch.ones(4)
    except RuntimeError as error:
        return a + 1, type(error).__name__


@program(x)
def reraised(a):
    try:
        a = a + 1
        [][1]
    except IndexError:
        a = a * 2
        raise


@program(x)
def reraised_after_break(a):
    try:
        a = a + 1
        [][1]
    except IndexError:
        print(end="")
        raise


@program(x)
def raised_from(a):
    try:
        {}["q"]
    except KeyError as error:
        a = a + 1
        raise ValueError("outer") from error


@program(x)
def raised_in_handler(a):
    try:
        {}["q"]
    except KeyError:
        a = a + 1
        raise ValueError("outer")  # noqa: B904


@program(x)
def raised_in_handler_after_break(a):
    try:
        int("q")
    except ValueError:
        print(end="")
        a = a + 1
        raise KeyError("outer")  # noqa: B904


@program(x)
def raised_from_none(a):
    try:
        {}["q"]
    except KeyError:
        a = a + 1
        raise ValueError("outer") from None


@program(x)
def finally_runs(a):
    try:
        a = a + 1
        raise ValueError("q")
    finally:
        LOG.append(a * 2)


@one(x)
def finally_returns(a):
    def g():
        try:
            return 1
        finally:
            LOG.append("finally")

    return a * g(), len(LOG)


@one(x)
def finally_overrides(a):
    def g():
        try:
            raise ValueError("lost")
        finally:
            return 3  # noqa: B012

    return a * g()


@one(x)
def finally_in_loop(a):
    n = 0
    for i in range(4):
        try:
            if i == 1:
                continue
            if i == 3:
                break
            a = a + i
        finally:
            n += 1
    return a, n


@one(x)
def nested_tries(a):
    try:
        try:
            raise KeyError("k")
        except ValueError:
            a = a * 100
        finally:
            a = a + 1
    except KeyError as error:
        try:
            raise ValueError("v")
        except ValueError as inner:
            return a, error.args, inner.args


@program(x)
def name_is_deleted(a):
    try:
        raise ValueError("q")
    except ValueError as error:
        a = a + len(error.args)
    try:
        return error  # noqa: F821
    except UnboundLocalError:
        return a * 2


class Own(Exception):
    pass


class WithState(ValueError):
    def __init__(self, code, text):
        super().__init__(text)
        self.code = code


@one(x)
def own_exception(a):
    try:
        raise Own("q", 2)
    except Own as error:
        return a + 1, error.args, isinstance(error, Exception)


@program(x)
def own_exception_with_state(a):
    try:
        a = a + 1
        raise WithState(7, "text")
    except ValueError as error:
        return a * error.code, str(error)


@program(x)
def own_exception_escapes(a):
    raise WithState(a.shape[0], "text")


@one(x)
def raise_class(a):
    try:
        raise Own
    except Own as error:
        return a + 1, error.args


@program(x)
def raise_nonsense(a):
    try:
        raise 3
    except TypeError as error:
        return a + 1, str(error)


@one(x)
def assertion_holds(a):
    assert a.shape[0] == 3, "bad"
    return a + 1


@program(x)
def assertion_fails(a):
    b = a + 1
    assert b.shape[0] == 4, f"expected 4, got {b.shape[0]}"
    return b


@program(x)
def assertion_on_data(a):
    assert (a > 0).all(), "positive"
    return a + 1


@program(x)
def assertion_on_data_fails(a):
    b = a + 1
    assert (b < 0).all(), "negative"
    return b


@program(x)
def assertion_caught(a):
    try:
        assert not LOG is None and a.ndim == 2  # noqa: E714
    except AssertionError as error:
        return a + 1, error.args


@program(x)
def break_in_try(a):
    try:
        a = a + 1
        print(end="")
        int("q")
    except ValueError as error:
        return a * 2, str(error)


@program(x)
def break_in_handler(a):
    try:
        int("q")
    except ValueError as error:
        print(end="")
        a = a * 2
        text = str(error)
    return a + 1, text


@program(x)
def break_in_handler_twice(a):
    for i in range(3):
        try:
            a = a + i
            [1][i]
        except IndexError:
            print(end="")
            a = a * 2
    return a


@program(x)
def break_in_finally(a):
    try:
        a = a + 1
    finally:
        print(end="")
        a = a * 2
    return a + 1


@program(x)
def break_in_finally_while_raising(a):
    try:
        try:
            a = a + 1
            raise ValueError("q")
        finally:
            print(end="")
            a = a * 2
    except ValueError as error:
        return a, str(error)


@program(x)
def break_in_else(a):
    try:
        a = a + 1
    except ValueError:
        a = a * 100
    else:
        print(end="")
        a = a * 2
    return a


@program(x)
def break_raises_into_finally(a):
    try:
        a = a + 1
        int("q")
    finally:
        LOG.append(a)


@program(x)
def break_raises_two_levels(a):
    try:
        try:
            int("q")
        except KeyError:
            a = a * 100
        finally:
            a = a + 1
    except ValueError:
        return a * 2


@program(x)
def break_in_nested_handlers(a):
    try:
        int("q")
    except ValueError as outer:
        try:
            int("z")
        except ValueError as inner:
            print(end="")
            return a + 1, str(outer), str(inner), inner.__context__ is outer


@program(x)
def traceback_is_there(a):
    try:
        a = a + 1
        int("q")
    except ValueError as error:
        return a, error.__traceback__ is not None, error.__context__


@program(x)
def exception_kept(a):
    kept = None
    try:
        raise ValueError("q")
    except ValueError as error:
        kept = error
    print(end="")
    return a + 1, kept


@program(x)
def exception_raised_later(a):
    kept = ValueError("later")
    print(end="")
    a = a + 1
    raise kept


class Manager:
    def __init__(self, swallows=()):
        self.log = []
        self.swallows = swallows

    def __enter__(self):
        self.log.append("in")
        return self

    def __exit__(self, kind, error, traceback):
        self.log.append(kind.__name__ if kind else "out")
        return kind is not None and issubclass(kind, self.swallows)


@one(x)
def manager(a):
    c = Manager()
    with c as d:
        a = a + 1
    return a, c.log, d is c


@one(x)
def manager_swallows(a):
    c = Manager(ValueError)
    with c:
        a = a + 1
        raise ValueError("x")
    return a * 2, c.log


@program(x)
def manager_lets_through(a):
    c = Manager(KeyError)
    try:
        with c:
            a = a + 1
            raise ValueError("x")
    except ValueError:
        return a * 2, c.log


@program(x)
def manager_escapes(a):
    with Manager():
        a = a + 1
        raise ValueError("x")


@one(x)
def two_managers(a):
    c, d = Manager(ValueError), Manager()
    with c, d:
        raise ValueError("x")
    return a + 1, c.log, d.log


@one(x)
def manager_with_return(a):
    c = Manager()

    def g():
        with c:
            return 5

    return a * g(), c.log


@one(x)
def manager_in_loop(a):
    c = Manager()
    for i in range(3):
        with c:
            if i == 1:
                continue
            a = a + i
    return a, c.log


@program(x)
def manager_with_break(a):
    c = Manager()
    with c:
        print(end="")
        a = a + 1
    return a, c.log


@program(x)
def manager_with_break_raises(a):
    c = Manager(ValueError)
    with c:
        a = a + 1
        int("q")
    return a * 2, c.log


@program(x)
def manager_with_break_escapes(a):
    c = Manager(KeyError)
    with c:
        a = a + 1
        int("q")
    return a * 2, c.log


@program(x)
def nested_managers_with_break(a):
    c, d = Manager(), Manager(ValueError)
    with c:
        with d:
            print(end="")
            a = a + 1
            int("q")
        a = a * 2
        print(end="")
    return a, c.log, d.log


@program(x)
def manager_of_generator(a):
    @contextlib.contextmanager
    def scope():
        LOG.append("in")
        yield 5
        LOG.append("out")

    with scope() as n:
        a = a * n
    return a, list(LOG)


@program(x)
def suppress(a):
    with contextlib.suppress(KeyError):
        a = a + 1
        {}["q"]
    return a * 2


@program(x)
def null_context(a):
    with contextlib.nullcontext(3) as n:
        a = a * n
    return a


@program(x)
def not_a_manager(a):
    try:
        with 3:
            a = a + 1
    except TypeError as error:
        return a * 2, str(error)


@one(w)
def no_grad(a):
    with torch.no_grad():
        b = a * 2
        inside = torch.is_grad_enabled()
    return b, (a * 3).requires_grad, b.requires_grad, inside, torch.is_grad_enabled()


@one(w)
def enable_grad_inside(a):
    with torch.no_grad():
        b = a * 2
        with torch.enable_grad():
            c = a * 3
        d = a * 4
    return b.requires_grad, c.requires_grad, d.requires_grad


@program(w)
def set_grad_enabled_block(a):
    with torch.set_grad_enabled(False):
        b = a * 2
    return b.requires_grad, torch.is_grad_enabled(), b


@program(w)
def set_grad_enabled_call(a):
    torch.set_grad_enabled(False)
    b = a * 2
    torch.set_grad_enabled(True)
    return b.requires_grad, (a * 2).requires_grad


@program(w)
def grad_mode_stays(a):
    torch.set_grad_enabled(False)
    return a * 2


@torch.no_grad()
def _without_grad(a):
    return a * 2


@program(w)
def no_grad_decorator(a):
    return _without_grad(a), (a * 2).requires_grad


@program(w)
def no_grad_with_break(a):
    with torch.no_grad():
        b = a * 2
        print(end="")
        c = a * 3
    return b, c, torch.is_grad_enabled(), (a * 2).requires_grad


@program(w)
def no_grad_with_error(a):
    try:
        with torch.no_grad():
            b = a * 2
            int("q")
    except ValueError:
        return b, torch.is_grad_enabled(), (a + 1).requires_grad


@program(w)
def no_grad_escapes(a):
    with torch.no_grad():
        b = a * 2
        raise ValueError(str(b.requires_grad))


@program(w)
def no_grad_in_callee_with_break(a):
    return _without_grad_and_break(a), (a + 1).requires_grad


def _without_grad_and_break(a):
    with torch.no_grad():
        b = a * 2
        print(end="")
        return b + 1


@program(w)
def inference_mode(a):
    with torch.inference_mode():
        b = a * 2
    return b.requires_grad, torch.is_inference_mode_enabled()


@program(x)
def autocast(a):
    m = torch.ones(3, 3)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        b = m @ a
    return b.dtype, (m @ a).dtype, b.float()


@program(x)
def loop_with_breaks(a):
    out = []
    for i in range(5):
        a = a + i
        if i % 2:
            print(end="")
        out.append(a.sum())
    return out


@program(x)
def loop_over_items_with_breaks(a):
    d = {"p": 1, "q": 2}
    for k, v in d.items():
        a = a + v
        print(end="")
        d[k] = v * 2
    return a, d


@program(x)
def enumerate_with_breaks(a):
    for i, (n, c) in enumerate(zip([1, 2, 3], "abc")):  # noqa: B905
        a = a * n + i
        print(end="")
    return a, c


@program(x)
def while_with_item(a):
    n = 0
    while a.sum().item() < 100:
        a = a * 2
        n += 1
    return a, n


@program(x)
def list_grows_across_breaks(a):
    v = [1]
    for i in v:
        if len(v) < 4:
            v.append(i + 1)
        print(end="")
        a = a + i
    return a, v


@program(x)
def nested_loops_with_breaks(a):
    for i in range(3):
        for j in range(i):
            print(end="")
            a = a + i * j
        else:
            a = a + 1
    return a


@program(x)
def break_in_comprehension_argument(a):
    return [a * float(np.float64(i)) for i in range(3)]


@program(x)
def numpy_calls(a):
    v = np.arange(3)
    return a + float(v.sum()), v.shape, np.sqrt(4.0)


@program(x)
def numpy_array_of_tensor(a):
    b = a * 2
    v = b.numpy()
    return torch.from_numpy(v + 1) * a


@program(x, np.float32(2.5), np.int64(3))
def numpy_scalars(a, f, n):
    return a * float(f), int(n) + 1, a[: int(n)]


@program(x)
def data_dependent_branch(a):
    if a.sum() > 3:
        a = a * 2
    else:
        a = a - 1
    if (a < 0).any():
        return a
    return a + 1


@program(x)
def data_dependent_conditions(a):
    return (a * 2 if a.max() > 2 else a), (a.min() > 5 or a.sum()), (a.min() < 5 and a + 1), not a.sum()


@program(x)
def data_dependent_loop(a):
    while (a < 50).all():
        a = a * 3
        if a.max() > 20:
            break
    else:
        a = -a
    return a


@program(x)
def items(a):
    v = a.sum().item()
    n = int(a[0])
    return a * v if v > 3 else a, n, float(a[1]), a.tolist(), bool(a[0])


@program(x)
def item_as_index(a):
    n = int(a[0].item())
    return a[n], a[:n], [10, 20, 30][n]


@program(x)
def text_of_tensor(a):
    return f"{a.sum()}", str(a), a + 1


@program(x)
def breaks_between_many_locals(a):
    b, c, d, e = a + 1, a + 2, [a], {"k": a}
    print(end="")
    f = b + c
    print(end="")
    return f + d[0] + e["k"]


@program(x)
def break_in_call_arguments(a):
    return torch.add(a + 1, float(np.float64(2.0)), alpha=int(np.int64(3)))


@program(x)
def break_in_expression(a):
    return (a + 1) * (2 + int(np.int64(3))) + [a, a * 2][int(np.int64(1))]


@program(x)
def break_in_chained_comparison(a):
    return a + 1 if 0 < a.sum().item() < 100 else a


@program(x)
def break_in_subscript_store(a):
    v = [a, a]
    v[int(np.int64(1))] = a + 1
    v[int(np.int64(0))] += 5
    return v


@program(x)
def break_in_starred_call(a):
    def g(*args, **named):
        print(end="")
        return sum(args) + named["k"]

    return g(*[a, a], **{"k": a * 2})


@program(x)
def backward_inside(a):
    b = a.clone().requires_grad_()
    (b * b).sum().backward()
    return b.grad + 1


@program(x)
def warns(a):
    import warnings

    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        a = a + 1
        warnings.warn("careful", stacklevel=1)
    return a, [str(one.message) for one in found]


@program(x)
def exits_early(a):
    for i in range(10):
        print(end="")
        if i == 3:
            return a * i
        a = a + 1


def negative_only(a):
    b = a * 2
    assert (b < 0).all(), "positive"
    return b


@PROGRAMS.one(x)
def assertions_hold(a):
    assert a.sum() > 0, "negative"
    b = a + 1
    assert b[0] == 2
    b.zero_()
    return b, negative_only(-a)


@PROGRAMS(x)
def assertion_in_a_call_fails(a):
    return negative_only(a + 1) * 2
