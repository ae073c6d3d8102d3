"""The frame hook as documented in `rushlight._dynamo.eval_frame`: what it asks, what it runs, and what it leaves alone."""

from __future__ import annotations

import asyncio
import ctypes
import gc
import inspect
import os
import subprocess
import sys
import threading
import traceback
import weakref

import pytest

from rushlight._C import remove_entry
from rushlight._dynamo.eval_frame import GuardedCode, cache_entries, reset_code, set_eval_frame, skip_code

pytestmark = pytest.mark.usefixtures("small_heap")


class hooked:  # noqa: N801  (reads as a function)
    """A region in which a callback is asked. Its own end is not."""

    def __init__(self, callback):
        self.callback = callback

    def __enter__(self):
        self.before = set_eval_frame(self.callback)

    def __exit__(self, *error):
        set_eval_frame(self.before)


skip_code(hooked.__exit__.__code__)


class Recorder:
    """A callback that writes down what it is asked about."""

    def __init__(self, answer=None):
        self.names, self.answer = [], answer

    def __call__(self, frame, cache_entry, frame_state):
        self.names.append(frame.f_code.co_name)
        return self.answer


def always(*values):
    return True


def with_constants(code, **changes):
    """The same code, `old=new` for constants given as text."""
    return code.replace(co_consts=tuple(changes.get(f"c{constant!r}", constant) for constant in code.co_consts))


def replacing(name, **changes):
    def callback(frame, cache_entry, frame_state):
        if frame.f_code.co_name != name:
            return None
        return GuardedCode(with_constants(frame.f_code, **changes), frame.f_globals, always)

    return callback


def plain(x):
    return x + 1


def test_what_a_callback_sees():
    seen = []

    def callback(frame, cache_entry, frame_state):
        frame_state["calls"] = frame_state.get("calls", 0) + 1
        seen.append((frame.f_code, frame.f_locals, frame.f_globals is globals(), frame.f_func, frame.closure, cache_entry,
                     frame_state["calls"], frame.f_builtins is vars(__import__("builtins"))))  # fmt: skip

    free = 5

    def function(a, b=2, *rest, key=3, **named):
        return a + b + key + free

    with hooked(callback):
        function(1, 2, 9, key=4, other=6)
        function(7)
    one, two = (item for item in seen if item[0] is function.__code__)
    assert one[1] == {"a": 1, "b": 2, "rest": (9,), "key": 4, "named": {"other": 6}} and two[1]["a"] == 7
    assert one[2] and one[3] is function and one[4] == function.__closure__ and one[5] is None and one[7]
    assert (one[6], two[6]) == (1, 2)


def test_answers():
    asked = Recorder(None)
    with hooked(asked):
        plain(1), plain(2)
    assert asked.names == ["plain", "plain"]
    left = Recorder(False)
    with hooked(left):
        plain(1), plain(2)
    assert left.names == ["plain"]
    with hooked(asked):  # what one callback leaves alone, another is asked about
        plain(3)
    assert asked.names == ["plain"] * 3


def test_code_that_runs_instead_and_its_guard():
    def function(x):
        return x + 1

    def callback(frame, cache_entry, frame_state):
        if frame.f_code.co_name != "function":
            return None
        limit = frame.f_locals["x"]
        return GuardedCode(with_constants(frame.f_code, c1=limit * 100), frame.f_globals, lambda x, *_: x == limit)

    with hooked(callback):
        assert [function(1), function(2), function(1), function(2)] == [101, 202, 101, 202]
    latest, first = cache_entries(function.__code__)
    assert latest.next is first and first.next is None and latest.owner is callback
    assert latest.check_fn(2, globals(), None) and not latest.check_fn(1, globals(), None)
    assert latest.guarded_code.code is latest.code
    assert function(1) == 2
    with hooked(False):  # whoever made it
        assert (function(1), function(3)) == (101, 4)
    assert remove_entry(function.__code__, latest) and not remove_entry(function.__code__, latest)
    assert latest.next is None and cache_entries(function.__code__) == [first]
    reset_code(function.__code__)
    assert cache_entries(function.__code__) == []


def test_code_with_parameters_of_all_kinds():
    free = [1000]

    def function(a, /, b, *rest, key, other=7, **named):
        return [a, b, rest, key, other, named, free[0], 1]

    with hooked(replacing("function", c1=2)):
        for _ in range(2):
            assert function(1, 2, 3, 4, key=5, more=6) == [1, 2, (3, 4), 5, 7, {"more": 6}, 1000, 2]
            assert function(1, b=2, key=5, other=8) == [1, 2, (), 5, 8, {}, 1000, 2]
        free = [2000]
        assert function(1, 2, key=3)[6] == 2000
        with pytest.raises(TypeError, match="missing 1 required keyword-only argument: 'key'"):
            function(1, 2)


def test_code_that_takes_the_values():
    scope = {"made": lambda x, values, __globals, __closure: (x, values, __globals is globals(), __closure)}

    def function(x, *values):
        return None

    def callback(frame, cache_entry, frame_state):
        return GuardedCode(scope["made"].__code__, globals(), always) if frame.f_code.co_name == "function" else None

    with hooked(callback):
        assert function(1, 2, 3) == function(1, 2, 3) == (1, (2, 3), True, None)


@pytest.mark.parametrize("answer, error", [
    (3, AttributeError), (GuardedCode(3, {}, always), TypeError), (GuardedCode(plain.__code__, 3, always), TypeError),
    (GuardedCode(plain.__code__, {}, None), TypeError), (GuardedCode((lambda a, b, c, d: 1).__code__, {}, always), TypeError),
], ids=["number", "code", "globals", "guard", "parameters"])  # fmt: skip
def test_answers_that_are_none(answer, error):
    with pytest.raises(error), hooked(Recorder(answer)):
        plain(1)
    assert plain(1) == 2 and not [entry for entry in cache_entries(plain.__code__) if entry.check_fn]


def test_wrong_arguments_of_the_functions():
    for call in (lambda: set_eval_frame(3), lambda: skip_code(3), lambda: reset_code("x"), lambda: cache_entries(None),
                 lambda: remove_entry(plain.__code__, 3)):  # fmt: skip
        with pytest.raises(TypeError):
            call()


def test_what_a_callback_raises_is_raised_by_the_call():
    def callback(frame, cache_entry, frame_state):
        raise LookupError("from the callback")

    for _ in range(2):
        with pytest.raises(LookupError, match="from the callback"), hooked(callback):
            plain(1)
    assert plain(1) == 2


def test_guards_that_raise():
    def function(x):
        return x + 1

    def guard(x, *_):
        if x == 1:
            raise ValueError
        raise KeyboardInterrupt

    count = []

    def callback(frame, cache_entry, frame_state):
        count.append(frame.f_code.co_name)
        return GuardedCode(frame.f_code.replace(), frame.f_globals, guard) if frame.f_code.co_name == "function" else None

    with hooked(callback):
        assert function(1) == function(1) == 2  # does not hold: asked again
        with pytest.raises(KeyboardInterrupt):
            function(2)
    assert count.count("function") == 2


def test_the_hook_is_off_in_callback_and_guard():
    inner = []

    def helper():
        inner.append(1)

    def guard(*values):
        helper()
        return True

    def callback(frame, cache_entry, frame_state):
        helper()
        assert frame.f_code.co_name not in ("helper", "guard")
        return GuardedCode(frame.f_code.replace(), frame.f_globals, guard) if frame.f_code.co_name == "plain" else None

    with hooked(callback):
        plain(1), plain(2)
    assert len(inner) >= 2
    reset_code(plain.__code__)


def test_exceptions_pass_and_keep_their_lines():
    def inner():
        raise KeyError("mine")

    def outer():
        try:
            inner()
        finally:
            plain(1)

    with hooked(Recorder()):
        for _ in range(3):
            with pytest.raises(KeyError, match="mine") as seen:
                outer()
            names = [entry.name for entry in traceback.extract_tb(seen.value.__traceback__)]
            assert names[-2:] == ["outer", "inner"]


# What is left alone


def test_generators_run_as_they_are():
    def numbers(count):
        for number in range(count):
            got = yield number
            if got:
                yield got * 2
        return "end"

    def collect():
        result = yield from numbers(2)
        yield result

    asked = Recorder()
    with hooked(asked):
        started = numbers(3)
        assert [next(started), started.send(5), next(started)] == [0, 10, 1]
        assert list(collect()) == [0, 1, "end"]
        with pytest.raises(ValueError):
            started.throw(ValueError)
    assert "numbers" not in asked.names and "collect" not in asked.names
    later = numbers(2)
    with hooked(asked):
        next(later)
    assert list(later) == [1]


def test_coroutines_run_as_they_are():
    async def step(x):
        await asyncio.sleep(0)
        return plain(x)

    async def stream(count):
        for number in range(count):
            yield await step(number)

    async def main():
        return [await step(1), [number async for number in stream(3)], await asyncio.gather(step(5), step(6))]

    asked = Recorder()
    with hooked(asked):
        assert asyncio.run(main()) == [2, [1, 2, 3], [6, 7]]
    assert "step" not in asked.names and "plain" in asked.names


def test_class_bodies_and_executed_text_run_as_they_are():
    asked = Recorder()
    with hooked(asked):
        class Made:
            value = 1 + plain(1)

        scope = {"plain": plain}
        exec("x = [plain(i) for i in range(3)]", scope)
    assert Made.value == 3 and scope["x"] == [1, 2, 3] and "Made" not in asked.names and "<module>" not in asked.names


def test_other_threads_are_left_alone():
    asked, inside, done = Recorder(), threading.Event(), threading.Event()
    found = []

    def other():
        inside.wait()
        found.append(plain(1))
        done.set()

    thread = threading.Thread(target=other)
    thread.start()
    with hooked(asked):
        inside.set()
        while not done.is_set():
            done.wait(0.01)
    thread.join()
    assert found == [2] and "other" not in asked.names and "plain" not in asked.names


def test_a_thread_may_end_within_its_region():
    asked = Recorder()
    thread = threading.Thread(target=lambda callback: (set_eval_frame(callback), plain(1)), args=(asked,))
    thread.start()
    thread.join()
    gone, names = weakref.ref(asked), asked.names
    assert "plain" in names
    count = len(names)
    plain(2)
    assert len(names) == count
    del asked, thread
    gc.collect()
    assert gone() is None


def test_regions_nest():
    outer, inner = Recorder(), Recorder()
    with hooked(outer):
        plain(1)
        with hooked(inner):
            plain(2)
            with hooked(None):
                plain(3)
        plain(4)
    assert outer.names.count("plain") == 2 and inner.names.count("plain") == 1


def test_skipped_code():
    def callee():
        return plain(1)

    def caller():
        return callee()

    asked = Recorder()
    skip_code(caller.__code__)
    with hooked(asked):
        caller()
    assert asked.names.count("callee") == 1 and "caller" not in asked.names
    skip_code(caller.__code__, True)
    with hooked(asked):
        caller()
    assert asked.names.count("callee") == 1
    reset_code(caller.__code__)
    with hooked(asked):
        caller()
    assert "caller" in asked.names


# Who looks at frames


def test_frames_can_be_looked_at():
    def look():
        frame = sys._getframe(1)
        return frame.f_code.co_name, frame.f_lineno, frame.f_locals["x"], [info.function for info in inspect.stack()[:2]]

    def looked_at(x):
        return look(), 1

    line = looked_at.__code__.co_firstlineno + 1
    for callback in (Recorder(), replacing("looked_at", c1=2)):
        with hooked(callback):
            for _ in range(2):
                assert looked_at(5)[0] == ("looked_at", line, 5, ["look", "looked_at"])


@pytest.mark.parametrize("install", [sys.settrace, sys.setprofile], ids=["trace", "profile"])
def test_debuggers_and_profilers_see_the_calls(install):
    events = []

    def observe(frame, event, arg):
        if frame.f_code.co_name in ("plain", "caller"):
            events.append((event, frame.f_code.co_name))
        return observe

    def caller():
        return plain(1)

    def run(callback):
        events.clear()
        with hooked(callback):
            install(observe)
            try:
                caller()
            finally:
                install(None)
        return list(events)

    before = install is sys.settrace and sys.gettrace()
    wanted = run(None)
    assert ("call", "plain") in wanted and ("return", "caller") in wanted
    assert run(Recorder()) == wanted
    assert run(replacing("plain", c1=5)) == wanted
    assert run(False) == wanted
    if before:
        sys.settrace(before)


def run_apart(text, **options):
    """Run a program in a process of its own; its output."""
    done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, timeout=120, **options)
    assert done.returncode == 0, (done.returncode, done.stderr[-2000:])
    return done.stdout.split()


DEPTH = """
import sys, threading
from rushlight._dynamo.eval_frame import GuardedCode, set_eval_frame
sys.setrecursionlimit({limit})
def down(n):
    return 0 if n == 0 else 1 + down(n - 1)
def callback(frame, cache_entry, frame_state):
    return {answer}
def run():
    set_eval_frame(callback)
    try:
        print(down({depth}))
    except RecursionError:
        print("RecursionError")
    set_eval_frame(None)
{start}
"""
IN_THREAD = "threading.stack_size(1 << 20); t = threading.Thread(target=run); t.start(); t.join()"
COPY = "GuardedCode(frame.f_code.replace(), frame.f_globals, lambda *_: True)"


@pytest.mark.parametrize("answer", ["None", COPY], ids=["as it is", "replaced"])
@pytest.mark.parametrize("start", ["run()", IN_THREAD], ids=["main", "thread"])
def test_deep_recursion_does_not_crash(answer, start):
    found = run_apart(DEPTH.format(limit=200_000, depth=50_000, answer=answer, start=start))
    assert found in (["50000"], ["RecursionError"])
    assert answer != "None" or found == ["50000"] or sys.version_info >= (3, 12)


@pytest.mark.parametrize("answer", ["None", COPY], ids=["as it is", "replaced"])
def test_the_recursion_limit_holds(answer):
    assert run_apart(DEPTH.format(limit=1000, depth=5000, answer=answer, start="run()")) == ["RecursionError"]
    assert run_apart(DEPTH.format(limit=1000, depth=900, answer=answer, start="run()")) == ["900"]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_fork():
    text = """
import os, threading, time
from rushlight._dynamo.eval_frame import set_eval_frame
names = []
def callback(frame, cache_entry, frame_state):
    names.append(frame.f_code.co_name)
def plain(x):
    return x + 1
def other():
    set_eval_frame(callback)
    time.sleep(30)
threading.Thread(target=other, daemon=True).start()
time.sleep(0.1)
child = os.fork()
if not child:
    plain(1)
    count = names.count("plain")
    set_eval_frame(callback)
    plain(2)
    set_eval_frame(None)
    os._exit(0 if (count, names.count("plain")) == (0, 1) else 1)
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
os._exit(0)
"""
    assert run_apart(text) == ["0"]


def test_the_interpreter_ends_within_a_region():
    text = """
import atexit
from rushlight._dynamo.eval_frame import GuardedCode, set_eval_frame
class Last:
    def __del__(self):
        self.close()
    def close(self):
        return 1
def callback(frame, cache_entry, frame_state):
    return GuardedCode(frame.f_code.replace(), frame.f_globals, lambda *_: True) if frame.f_code.co_name == "close" else None
last = Last()
atexit.register(last.close)
set_eval_frame(callback)
print("end")
"""
    assert run_apart(text) == ["end"]


def test_code_objects_to_which_others_attach_data_are_freed():
    api, name = ctypes.pythonapi, "PyUnstable_" if sys.version_info >= (3, 12) else "_Py"
    index = getattr(api, f"{name}Eval_RequestCodeExtraIndex")(None)
    assert index >= 0
    attach = getattr(api, f"{name}Code_SetExtra")
    attach.argtypes = [ctypes.py_object, ctypes.c_ssize_t, ctypes.c_void_p]
    code = compile("1 + 1", "nowhere", "eval")
    assert attach(code, index, 64) == 0
    gone = weakref.ref(code)
    del code
    assert gone() is None
