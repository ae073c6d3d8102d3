"""What a program says to the compiler: what it leaves out, puts into graphs whole, or replaces; what may be compiled."""

from __future__ import annotations

import asyncio
import functools
import gc
import math
import threading
import weakref

import pytest

import rushlight as torch
from rushlight import nn

pytestmark = pytest.mark.usefixtures("small_heap")


@pytest.fixture(autouse=True)
def forget_afterwards():
    yield
    torch.compiler.reset()


class Graphs:
    """A backend that keeps the graphs it is given."""

    def __init__(self):
        self.found = []

    def __call__(self, module, inputs):
        self.found.append(module)
        return module.forward

    def targets(self):
        return [[node.target for node in module.graph.nodes if node.op.startswith("call_")] for module in self.found]


def ones():
    return torch.ones(3)


# Leaving out


@pytest.mark.parametrize("decorate", [torch.compiler.disable, torch.compiler.disable()], ids=["plain", "with options"])
def test_a_disabled_function_runs_in_python_between_two_graphs(decorate):
    @decorate
    def left_out(x):
        assert not torch.compiler.is_compiling()
        return x * 2

    graphs = Graphs()
    assert torch.compile(lambda x: left_out(x + 1) - 1, backend=graphs)(ones()).tolist() == [3, 3, 3]
    assert len(graphs.found) == 2 and left_out.__name__ == "left_out"


@pytest.mark.parametrize("recursive, count", [(True, 0), (False, 1)])
def test_what_a_disabled_function_calls(recursive, count):
    graphs = Graphs()

    def inner(x):
        return x * 2

    def outer(x):
        return inner(x)

    compiled = torch.compile(lambda x: torch.compiler.disable(outer, recursive)(x), backend=graphs)
    assert compiled(ones()).tolist() == [2, 2, 2] and len(graphs.found) == count


def test_disabled_modules_classes_and_compiled_functions():
    graphs = Graphs()
    linear = nn.Linear(3, 3)
    left_out = torch.compiler.disable(linear)
    model = torch.compile(nn.Sequential(nn.ReLU(), left_out), backend=graphs)
    assert torch.allclose(model(ones()), linear(ones())) and left_out.weight is linear.weight
    assert not any(torch.nn.functional.linear in targets for targets in graphs.targets())
    assert torch.compiler.disable(torch.compile(lambda x: x + 1, backend=graphs))(ones()).tolist() == [2, 2, 2]
    with pytest.raises(TypeError, match="a function, module or class, got int"):
        torch.compiler.disable(3)


def test_graph_break():
    def function(x):
        x = x + 1
        torch.compiler.graph_break()
        return x * 2

    graphs = Graphs()
    assert torch.compile(function, backend=graphs)(ones()).tolist() == function(ones()).tolist() == [4, 4, 4]
    assert len(graphs.found) == 2
    with pytest.raises(torch._dynamo.exc.Unsupported, match="graph_break"):
        torch.compile(function, fullgraph=True)(ones())


def test_is_compiling():
    def function(x):
        return x + (10 if torch.compiler.is_compiling() else 20)

    assert function(ones()).tolist() == [21] * 3
    assert torch.compile(function, backend="eager")(ones()).tolist() == [11] * 3
    assert not torch.compiler.is_compiling() and not torch.compiler.is_dynamo_compiling()


# Stances


def tells(x):
    return x + (10 if torch.compiler.is_compiling() else 20)


@pytest.fixture
def default_stance():
    yield
    torch.compiler.set_stance("default")


def test_force_eager_is_for_all_compiled_functions(default_stance):
    graphs = Graphs()
    compiled = torch.compile(tells, backend=graphs)
    with torch.compiler.set_stance("force_eager"):
        later = torch.compile(tells, backend=graphs)
        model = torch.compile(nn.Sequential(nn.Linear(3, 3)), backend=graphs)
        assert compiled(ones()).tolist() == later(ones()).tolist() == [21] * 3
        assert model(ones()).shape == (3,) and not graphs.found
    assert compiled(ones()).tolist() == later(ones()).tolist() == [11] * 3 and len(graphs.found) == 1
    torch.compiler.set_stance("force_eager")
    assert compiled(ones()).tolist() == [21] * 3
    torch.compiler.set_stance("default")
    assert compiled(ones()).tolist() == [11] * 3 and len(graphs.found) == 1


def test_a_stance_decorates_a_function(default_stance):
    compiled = torch.compile(tells, backend="eager")

    @torch.compiler.set_stance("force_eager")
    def called(x):
        return compiled(x)

    assert compiled(ones()).tolist() == [11] * 3
    assert called(ones()).tolist() == [21] * 3
    assert compiled(ones()).tolist() == [11] * 3


def test_stances_about_what_was_not_captured(default_stance):
    graphs = Graphs()
    compiled = torch.compile(tells, backend=graphs)
    compiled(ones())
    others = torch.ones(3, dtype=torch.float64)
    with torch.compiler.set_stance("eager_on_recompile"):
        assert compiled(ones()).tolist() == [11] * 3 and compiled(others).tolist() == [21] * 3
    with torch.compiler.set_stance("fail_on_recompile"):
        assert compiled(ones()).tolist() == [11] * 3
        with pytest.raises(RuntimeError, match="Detected recompile.*test_control.py', function name: 'tells'.*\n.*float64"):
            compiled(others)
    with torch.compiler.set_stance("eager_then_compile"):
        late = torch.compile(tells, backend=Graphs())
        assert [late(ones())[0].item() for _ in range(3)] == [21, 11, 11]
    assert compiled(others).tolist() == [11] * 3 and len(graphs.found) == 2


def test_compiling_a_function_again_keeps_its_captures():
    graphs, others = Graphs(), Graphs()
    for _ in range(3):
        assert torch.compile(tells, backend=graphs)(ones()).tolist() == [11] * 3
    assert len(graphs.found) == 1
    for backend, fullgraph in ((others, False), (graphs, True)):
        torch.compile(tells, backend=backend, fullgraph=fullgraph)(ones())
    assert len(graphs.found) == 2 and len(others.found) == 1


def test_what_a_stance_cannot_be(default_stance):
    with pytest.raises(RuntimeError, match="invalid torch.compile stance 'lying down'; stances are default"):
        torch.compiler.set_stance("lying down")
    with pytest.raises(RuntimeError, match="cannot force a backend"):
        torch.compiler.set_stance("default", force_backend="eager")

    def inside(x):
        torch.compiler.set_stance("default")
        return x + 1

    with pytest.raises(Exception, match="set the stance outside of what is compiled"):
        torch.compile(inside, fullgraph=True)(ones())
    assert torch.compile(inside, backend="eager")(ones()).tolist() == [2] * 3


def test_questions_about_devices_and_exports():
    def function(x):
        torch.compiler.cudagraph_mark_step_begin()
        return x + torch.compiler.is_exporting()

    assert function(ones()).tolist() == torch.compile(function, fullgraph=True)(ones()).tolist() == [1] * 3


# Whole, replaced, forgotten


def helper(x):
    return (x * 2).relu()


def test_allow_in_graph():
    graphs = Graphs()
    torch.compiler.allow_in_graph(helper)
    assert torch.compile(lambda x: helper(x) + 1, backend=graphs)(ones()).tolist() == [3, 3, 3]
    assert graphs.targets()[0][0] is helper
    with pytest.raises(TypeError, match="expects a function, got int"):
        torch.compiler.allow_in_graph([3])


def test_substitute_in_graph():
    @torch.compiler.substitute_in_graph(math.nextafter, skip_signature_check=True)
    def next_after(x, y):
        return x + 1

    assert torch.compile(lambda x: x * math.nextafter(2.0, 3.0), fullgraph=True)(ones()).tolist() == [3, 3, 3]
    assert math.nextafter(2.0, 3.0) != 3
    with pytest.raises(ValueError, match="Duplicate"):
        torch.compiler.substitute_in_graph(math.nextafter)(next_after)
    with pytest.raises(TypeError, match="Signature mismatch"):
        torch.compiler.substitute_in_graph(helper)(lambda other: None)


def test_reset_forgets_what_was_compiled():
    graphs = Graphs()
    compiled = torch.compile(lambda x: x + 1, backend=graphs)
    for _ in range(2):
        compiled(ones()), compiled(ones())
        torch.compiler.reset()
    assert len(graphs.found) == 2


def test_mark_dynamic_is_taken():
    torch._dynamo.mark_dynamic(torch.ones(2, 3), 0)
    with pytest.raises(IndexError, match="dimension 2 of a tensor with 2 dimensions"):
        torch._dynamo.mark_dynamic(torch.ones(2, 3), [0, 2])


# What may be compiled


def test_modes_and_options():
    of_torch = {"epilogue_fusion": True, "triton.cudagraphs": False, "threads": 1}
    for options in ({"mode": "max-autotune"}, {"dynamic": True}, {"options": of_torch}, {"dynamic": False}):
        assert torch.compile(lambda x: x + 1, **options)(ones()).tolist() == [2, 2, 2]
    with pytest.raises(ValueError, match="Unrecognized mode='fast'"):
        torch.compile(helper, mode="fast")
    with pytest.raises(RuntimeError, match="can't be specified at the same time"):
        torch.compile(helper, mode="default", options={})
    with pytest.raises(RuntimeError, match="Unexpected optimization option warp"):
        torch.compile(helper, options={"warp": 9})


@pytest.mark.parametrize("name, value, kind, message", [
    ("threads", -1, ValueError, "between 0 and 4096"), ("threads", 10**6, ValueError, "between 0 and 4096"),
    ("threads", "4", TypeError, "expects int, got '4'"), ("threads", True, TypeError, "expects int, got True"),
    ("memory_budget", 1.5, ValueError, "between 0 and 1, got 1.5"), ("memory_budget", "1", TypeError, "expects float"),
    ("partitioner", "best", ValueError, "one of min_cut, default"), ("recompile_limit", -1, ValueError, "not be negative"),
    ("logs", {"tea"}, ValueError, "no logs are named tea"), ("verify", 1, TypeError, "expects bool"),
])  # fmt: skip
def test_what_settings_cannot_be(monkeypatch, name, value, kind, message):
    with pytest.raises(kind, match=message):
        torch.compile(helper, options={name: value})
    if name != "logs" and not isinstance(value, bool | str) and kind is ValueError:
        monkeypatch.setenv(f"RUSHLIGHT_{name.upper()}", str(value))
        with pytest.raises(ValueError, match=message):
            torch.compile(helper)


def test_settings_that_are_no_numbers(monkeypatch):
    monkeypatch.setenv("RUSHLIGHT_THREADS", "two")
    with pytest.raises(ValueError, match="RUSHLIGHT_THREADS must be a whole number, got 'two'"):
        torch.compile(helper)


def test_more_threads_than_any_machine_has():
    with pytest.raises(RuntimeError, match="at most 4096 threads"):
        torch.set_num_threads(10**6)


class Doubler:
    """Doubles."""

    def __call__(self, x):
        return x * 2


@pytest.mark.parametrize("model", [
    torch.sin, torch.nn.functional.gelu, abs, Doubler(), functools.partial(torch.add, torch.ones(3)), ones().add, helper,
    torch.compile(helper, backend="eager"), nn.ReLU(),
], ids=["function", "functional", "builtin", "object", "partial", "method", "python", "compiled", "module"])  # fmt: skip
def test_callables_of_all_kinds(model):
    compiled = torch.compile(model, backend="aot_eager")
    for _ in range(2):
        assert torch.allclose(compiled(-ones()), model(-ones()))


def test_a_class_is_compiled_in_place():
    graphs = Graphs()

    @torch.compile(backend=graphs)
    class Net(nn.Module):
        def forward(self, x):
            return x * 3

    @torch.compile(backend=graphs)
    class Tripler(Doubler):
        def __call__(self, x):
            return x * 3

    assert Net()(ones()).tolist() == Tripler()(ones()).tolist() == [3, 3, 3]
    assert len(graphs.found) == 2 and isinstance(Tripler(), Doubler)


def test_module_compile_in_place():
    graphs = Graphs()
    model = nn.Linear(3, 2)
    model.compile(backend=graphs)
    assert model(ones()).shape == (2,) and len(graphs.found) == 1
    assert list(model.state_dict()) == ["weight", "bias"]


def test_generators_and_coroutines_run_as_they_are():
    def numbers(x):
        yield x + 1
        yield x + 2

    async def later(x):
        await asyncio.sleep(0)
        return x + 1

    assert [x.tolist() for x in torch.compile(numbers)(ones())] == [[2] * 3, [3] * 3]
    assert asyncio.run(torch.compile(later)(ones())).tolist() == [2] * 3


def test_exceptions_of_the_program_leave_the_hook_in_order():
    graphs = Graphs()

    def function(x, fails):
        y = x + 1
        if fails:
            raise KeyError("mine")
        return y * 2

    compiled = torch.compile(function, backend=graphs)
    for fails in (True, False, True, False):
        if fails:
            with pytest.raises(KeyError, match="mine"):
                compiled(ones(), True)
        else:
            assert compiled(ones(), False).tolist() == [4, 4, 4]
    assert graphs.found
    count = len(graphs.found)
    helper(ones())  # outside of a compiled function nothing is captured
    assert len(graphs.found) == count


def test_compile_inside_a_compiled_function():
    def outer(x):
        inner = torch.compile(lambda y: y * 2, backend="eager")
        return inner(x) + 1

    compiled = torch.compile(outer, backend="eager")
    for _ in range(2):
        assert compiled(ones()).tolist() == [3, 3, 3]


def test_a_wrapper_of_a_compiled_function_is_called():
    compiled = torch.compile(helper, backend="eager")

    @functools.wraps(compiled)
    def wrapper(x):
        return compiled(x) + 1

    assert torch.compile(lambda x: wrapper(x), backend="eager")(ones()).tolist() == [3, 3, 3]


def test_compiled_models_that_go_out_of_use_are_freed():
    def make():
        model = nn.Linear(3, 3)
        with torch.no_grad():
            torch.compile(model, backend="eager")(ones())
        return weakref.ref(model)

    gone = [make() for _ in range(3)]
    gc.collect()
    assert not any(reference() for reference in gone)


def test_eight_threads_compile_and_call_the_same_and_different_functions():
    model = nn.Sequential(nn.Linear(3, 8), nn.Tanh(), nn.Linear(8, 3)).eval()
    shared_graphs = Graphs()
    shared = torch.compile(model, backend=shared_graphs)
    want, problems = model(ones()).detach(), []

    def work(number):
        def own(x, k):
            y = x * number
            torch.compiler.graph_break()
            return y + k

        compiled = torch.compile(own, backend="eager")
        try:
            for turn in range(20):
                with torch.no_grad():
                    assert torch.allclose(shared(ones()), want)
                assert compiled(ones(), turn % 3).tolist() == [number + turn % 3] * 3
        except BaseException as error:
            problems.append(error)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not problems and len(shared_graphs.found) == 1


def test_hooks_that_come_and_go():
    model = nn.Sequential(nn.Linear(3, 3), nn.ReLU())
    compiled = torch.compile(model, backend="eager")
    registrations = [
        lambda: model[0].register_forward_hook(lambda module, args, result: result * 0 + 5),
        lambda: model.register_forward_pre_hook(lambda module, args: (args[0] * 0,)),
        lambda: nn.modules.module.register_module_forward_hook(lambda module, args, result: result + 100),
    ]
    for register in registrations:
        assert torch.allclose(compiled(ones()), model(ones()))
        handle = register()
        assert torch.allclose(compiled(ones()), model(ones()))
        handle.remove()
        assert torch.allclose(compiled(ones()), model(ones()))


class Answers:
    def __init__(self):
        self.calls = 0


ANSWERS = Answers()


@torch.compiler.assume_constant_result
def answer(question):
    ANSWERS.calls += 1
    return [question, 6.0, ANSWERS]


def test_a_call_assumed_constant_happens_once_at_capture():
    def ask(x):
        found = answer("what")
        return x * found[1] if found[2] is ANSWERS and found[0] == "what" else x

    backend = Graphs()
    ANSWERS.calls = 0
    compiled = torch.compile(ask, backend=backend, fullgraph=True)
    for _ in range(3):
        assert torch.equal(compiled(ones()), ones() * 6)
    assert (ANSWERS.calls, len(backend.found)) == (1, 1)
    with pytest.raises(TypeError):
        torch._dynamo.assume_constant_result(3)


def test_a_call_assumed_constant_needs_known_arguments():
    compiled = torch.compile(lambda x: x * answer(x + 1)[1], backend="eager", fullgraph=True)
    with pytest.raises(torch._dynamo.exc.Unsupported, match="assume_constant_result"):
        compiled(ones())
