"""Recordings: what they say of programs, seen as the page gets it."""

from __future__ import annotations

import threading
import time
from contextlib import contextmanager

import pytest

import rushlight as torch
from rushlight import nn
from rushlight.autograd.profiler_recording import RecordedFacts, Recording
from rushlight.compiler import backends, logs
from rushlight.compiler.settings import Settings
from rushlight.core.thread_state import state
from rushlight.explorer import clock
from rushlight.explorer import recorder as recorders
from rushlight.explorer.recorder import Recorder
from rushlight.jit.runtime.executor import run_function


@contextmanager
def recorded():
    """A block that is recorded; the recording is in the list afterwards."""
    recorder, found = Recorder(), []
    recorder.start()
    try:
        yield found
    finally:
        recorder.stop()
        found.append(recorder.as_dict("title", "command"))


def line_of(recording: dict, text: str) -> str:
    """The place of the one line of this file that ends in a comment of that text."""
    (index,) = [number for number, file in enumerate(recording["files"]) if file["path"] == __file__]
    lines = recording["files"][index]["text"].split("\n")
    (number,) = [number for number, line in enumerate(lines, 1) if line.endswith(f"# here: {text}")]
    return f"{index}:{number}"


def stages(unit: dict, name: str) -> list[dict]:
    return [stage for stage in unit["stages"] if stage["stage"] == name]


def texts_from(stage: dict, place: str) -> list[str]:
    """The blocks of a stage's text that come from a place."""
    lines = stage["text"].split("\n")
    return ["\n".join(lines[first - 1 : last]) for first, last, places in stage["places"] if place in places]


def scale(x, w):
    y = x @ w  # here: product
    z = y + 1  # here: sum
    return z.relu() * 2  # here: rest


def test_a_line_is_found_in_every_stage():
    with recorded() as found, torch.no_grad():
        compiled = torch.compile(scale)
        for _ in range(3):
            compiled(torch.randn(4, 8), torch.randn(8, 6))
    (recording,) = found
    (unit,) = recording["units"]
    assert unit["name"] == "scale" and unit["kind"] == "capture" and unit["status"] == "compiled"
    assert [stage["stage"] for stage in unit["stages"]] == [
        "captured", "passes", "graph", "loops", "fusion", "memory", "code", "library", "module", "guards", "bytecode",
        "bytecode",
    ]  # fmt: skip
    place = line_of(recording, "sum")
    for name, piece in (("captured", "y + 1"), ("graph", "aten.add.Tensor"), ("loops", "ops.add"), ("code", "tmp")):
        (stage,) = stages(unit, name)
        assert any(piece in text for text in texts_from(stage, place)), name
    assert any("BINARY_OP" in text for text in texts_from(stages(unit, "bytecode")[0], place))
    (kernel,) = unit["kernels"]
    assert place in kernel["places"] and kernel["operators"] == ["mm", "add", "relu", "mul"] and kernel["calls"] == 3
    code, first, last = kernel["code"]
    (stage,) = stages(unit, "code")
    assert code == stage["id"] and f"{kernel['name']}(" in "\n".join(stage["text"].split("\n")[first - 1 : last])
    (graph,) = stages(unit, "graph")
    calls = [node for node in graph["graph"]["nodes"] if node["kind"] == "call"]
    assert [node["kernel"] for node in calls] == [kernel["name"]] * 4
    assert [graph["text"].split("\n")[node["line"] - 1].strip().split(":")[0] for node in calls] == ["mm", "add", "relu", "mul"]
    assert line_of(recording, "rest") in unit["captured"] and not unit["broken"] and not unit["untouched"]


def test_times_are_those_of_the_kernels_that_ran():
    with recorded() as found, torch.no_grad():
        compiled = torch.compile(scale)
        for _ in range(4):
            compiled(torch.randn(64, 64), torch.randn(64, 64))
    (recording,) = found
    (kernel,) = recording["units"][0]["kernels"]
    runs = [call for call in recording["calls"] if call["timed"]]
    assert len(runs) == kernel["calls"] == 4 and 0 < kernel["seconds"] < sum(call["seconds"] for call in runs)
    assert kernel["flops"] == 4 * (2 * 64**3 + 3 * 64 * 64) and kernel["bytes"] == 4 * 3 * 64 * 64 * 4
    (compile_call,) = [call for call in recording["calls"] if call["kind"] == "compile"]
    assert compile_call["seconds"] == pytest.approx(recording["units"][0]["seconds"])
    assert sum(seconds for _, seconds in compile_call["stages"]) <= compile_call["seconds"]


def test_packing_of_weights_is_an_event_of_its_own():
    with recorded() as found, torch.no_grad():
        model = torch.compile(nn.Linear(256, 256))
        began = time.perf_counter()
        for _ in range(3):
            model(torch.randn(64, 256))
        spent = time.perf_counter() - began
    (recording,) = found
    packings = [call for call in recording["calls"] if call["kind"] == "pack"]
    (runs,) = recording["runs"]
    assert packings and all(call["name"] == runs["name"] and not call["timed"] for call in packings)
    assert runs["preparing"] == pytest.approx(sum(call["seconds"] for call in packings))
    assert 0 < runs["preparing"] + runs["seconds"] < spent


def broken(x):
    y = x * 2
    print("broken")  # here: broken
    return y + 1  # here: after


def test_a_break_and_what_comes_after_it(capsys):
    with recorded() as found:
        torch.compile(broken)(torch.ones(3))
    (recording,) = found
    first, second = recording["units"]
    place = line_of(recording, "broken")
    assert first["broken"] == [place] and first["breaks"][0]["places"][-1] == place and first["breaks"][0]["hint"]
    assert not first["untouched"] and line_of(recording, "after") in second["captured"]
    assert second["name"] == f"broken from line {place.split(':')[1]}"


def test_a_recompilation_says_which_guard_failed():
    with recorded() as found, torch.no_grad():
        compiled = torch.compile(scale)
        for rows in (4, 5):
            compiled(torch.randn(rows, 8), torch.randn(8, 6))
    (recording,) = found
    first, second = recording["units"]
    assert second["recompile"]["of"] == first["id"] and "found a tensor of shape [5, 8]" in second["recompile"]["failed"][0]
    assert [guard["failed"] for guard in first["guards"]].count(True) == 1
    assert [call["kind"] for call in recording["calls"]] == ["compile", "hit", "recompile", "hit"]


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Linear(8, 8), nn.Linear(8, 8)

    def forward(self, x):
        return self.second(self.first(x).relu())  # here: block


def test_guards_of_other_functions_did_not_fail():
    with recorded() as found:
        first, second = (torch.compile(function, dynamic=False) for function in (lambda x: x.sin(), lambda x: x.cos()))
        first(torch.ones(4)), second(torch.ones(4)), first(torch.ones(5))
    units = found[0]["units"]
    assert [any(guard["failed"] for guard in unit["guards"]) for unit in units] == [True, False, False]


def test_what_runs_in_eager_says_why():
    def counts(x, n):
        return x.sin() + n

    def prints(x):
        print(end="")
        return x + 1

    def fails(gm, inputs):
        raise ValueError("no backend")

    def calls(x):
        return prints(x) * 2

    def raises(x):
        raise LookupError("its own")

    with recorded() as found, pytest.warns(UserWarning, match="was compiled 2 times"):
        with torch._dynamo.config.patch(recompile_limit=2):
            compiled = torch.compile(counts, dynamic=False)
            for n in range(3):
                compiled(torch.ones(3), n)
        with pytest.raises(Exception, match="effect on the world"):
            torch.compile(prints, fullgraph=True)(torch.ones(3))
        with pytest.raises(Exception, match="no backend"):
            torch.compile(counts, backend=fails)(torch.ones(3), 7)
        torch.compile(calls)(torch.ones(3))
        with pytest.raises(LookupError):
            torch.compile(raises)(torch.ones(3))
    units = found[0]["units"]
    whys = [(unit["status"], unit["why"]) for unit in units if unit["status"] == "eager"]
    assert [status for status, _ in whys] == ["eager"] * len(whys) and all(why for _, why in whys)
    for text in ("the limit (RUSHLIGHT_RECOMPILE_LIMIT)", "effect on the world", "no backend", "its own"):
        assert any(text in why for _, why in whys)
    assert all(not unit["captured"] for unit in units if unit["status"] == "eager")


def test_training_has_two_graphs_whose_nodes_know_their_modules():
    model = nn.Sequential(Block(), nn.ReLU())
    with recorded() as found:
        compiled = torch.compile(model)
        for _ in range(2):
            compiled(torch.randn(4, 8)).sum().backward()
    (recording,) = found
    (unit,) = recording["units"]
    assert [stage["title"] for stage in stages(unit, "partition")] == ["forward", "backward"]
    assert {kernel["graph"] for kernel in unit["kernels"]} == {"forward", "backward"}
    assert all(kernel["calls"] == 2 for kernel in unit["kernels"])
    assert len({kernel["name"] for kernel in unit["kernels"]}) == len(unit["kernels"])
    (joint,) = stages(unit, "joint")
    paths = {tuple(node["path"]) for node in joint["graph"]["nodes"] if node["label"].startswith("aten.mm")}
    assert paths == {("Sequential", "Sequential.0", f"Sequential.0.{name}") for name in ("first", "second")}
    forward = stages(unit, "partition")[0]
    assert {node["kernel"] for node in forward["graph"]["nodes"] if node["label"] == "aten.addmm"} <= {
        kernel["name"] for kernel in unit["kernels"] if kernel["graph"] == "forward"
    }
    place = line_of(recording, "block")
    assert any(place in kernel["places"] for kernel in unit["kernels"] if kernel["graph"] == "backward")


def test_open_sizes_have_a_memory_plan_of_the_first_call():
    def program(x):
        y = x.softmax(0) @ x.T
        return (y / y.sum(0)).T @ y

    with recorded() as found, torch.no_grad():
        torch.compile(program, dynamic=True)(torch.randn(33, 8))
    memory = found[0]["units"][0]["memory"][0]
    assert memory["arena"] > 0 and all(offset >= 0 and nbytes > 0 for _, nbytes, offset, _, _ in memory["blocks"])
    ends = [(first, last, offset, offset + nbytes) for _, nbytes, offset, first, last in memory["blocks"]]
    for index, (first, last, start, end) in enumerate(ends):
        for other_first, other_last, other_start, other_end in ends[:index]:
            beside = other_last < first or last < other_first
            assert beside or end <= other_start or other_end <= start


@torch.jit.script
def looped(x, n: int):
    y = x
    for i in range(n):  # here: loop
        if i % 2 == 0:
            y = y + x  # here: in a branch
        else:
            y = y * 2
    return y, [n], (n, "text")


def test_a_scripted_function_has_its_stages():
    recorder = Recorder()
    recorder.start()
    looped(torch.ones(3), 4)
    recorder.show_steps(looped._function, [torch.ones(3), 4])
    recorder.stop()
    recording = recorder.as_dict("title", "command")
    (unit,) = [unit for unit in recording["units"] if unit["kind"] == "script"]
    assert {"source", "tree", "ir", "instructions"} <= {stage["stage"] for stage in unit["stages"]}
    (emitted, *_) = stages(unit, "ir")
    assert any("aten::add" in text for text in texts_from(emitted, line_of(recording, "in a branch")))
    steps = unit["steps"]
    count = stages(unit, "instructions")[0]["text"].count("\n")
    assert not steps["cut"] and len(steps["instructions"]) == len(steps["places"]) == count
    assert steps["instructions"][steps["steps"][-1][0]] == "RET 0" and steps["steps"][-1][1] == ["(f32[3], [4], (4, 'text'))"]


@torch.jit.script
class Pair:
    def __init__(self, a: int, b: int):
        self.a = a
        self.b = b

    def both(self) -> int:
        return self.a * self.b


@torch.jit.script
def all_kinds(x, n: int):
    pair = Pair(n, 3)
    pair.b = 5
    table = {"a": pair.both(), "b": n}
    first, second = [n + 1, n + 2]
    total = first + second + table["a"]
    while total > 20:
        total -= 7
    kind = isinstance(x, torch.Tensor)
    return x * total, kind, table


def test_the_stepper_gives_what_the_machine_gives():
    from rushlight.explorer.places import Files
    from rushlight.explorer.stepping import _Machine, steps_of
    from rushlight.jit.runtime.executor import executor_of

    for n in (0, 2, 9):
        arguments = [torch.ones(2), n]
        code = executor_of(all_kinds._function).plan().code
        machine = _Machine(code, arguments)
        while code.instructions[machine.position][0] != "RET":
            machine.step()
        wanted = run_function(all_kinds._function, arguments)
        wanted = wanted if isinstance(wanted, tuple) else (wanted,)
        assert str(machine.stack) == str(list(wanted)) or str(machine.stack[0]) == str(wanted)
        assert not steps_of(code, arguments, Files())["cut"]


def test_eager_calls_show_their_way_through_the_dispatcher():
    weight = torch.randn(3, 4, requires_grad=True)
    with recorded() as found:
        for _ in range(2):
            loss = nn.functional.linear(torch.ones(2, 4), weight).relu().sum()  # here: eager
            loss.backward()  # here: backward
    (recording,) = found
    calls = {(call["operator"], *call["places"]): call for call in recording["eager"]}
    relu = calls["aten::relu", line_of(recording, "eager")]
    assert relu["count"] == 2 and relu["inputs"] == ["f32[2, 3]"] and relu["outputs"] == ["f32[2, 3]"]
    assert [step["key"] for step in relu["steps"]] == ["Autograd", "ADInplaceOrView", "CPU"]
    assert relu["steps"][0]["keys"] == ["Autograd", "ADInplaceOrView", "CPU"] and relu["steps"][-1]["keys"] == ["CPU"]
    linear = calls["aten::linear", line_of(recording, "eager")]
    assert linear["steps"][0]["key"] == "CompositeImplicitAutograd" and any("aten::mm" in s["kernel"] for s in linear["steps"][1:])
    (tape,) = recording["tapes"]
    names = [node["name"] for node in tape["nodes"]]
    assert names[0] == "SumBackward0" and "ReluBackward0" in names and "AccumulateGrad" in names
    relu_node = tape["nodes"][names.index("ReluBackward0")]
    assert relu_node["places"] == [line_of(recording, "eager")] and relu_node["saved"] == [["result", "f32[2, 3]", 24]]
    assert tape["bytes"] >= 24 and [0, names.index("ReluBackward0")] in tape["edges"]


def test_a_tape_names_each_node_once():
    x = torch.ones(3, requires_grad=True)
    with recorded() as found:
        (x * x).sum().backward()
    (tape,) = found[0]["tapes"]
    assert [node["name"] for node in tape["nodes"]] == ["SumBackward0", "MulBackward0", "AccumulateGrad"]
    assert tape["edges"] == [[0, 1], [1, 2], [1, 2]]


def test_profilers_of_the_program_go_first():
    compiled = torch.compile(scale)
    with recorded() as found, torch.no_grad():
        compiled(torch.randn(4, 8), torch.randn(8, 6))
        with torch.compiler.profile() as profile:
            compiled(torch.randn(4, 8), torch.randn(8, 6))
        with torch.profiler.profile() as events:
            torch.ones(3).exp()
        compiled(torch.randn(4, 8), torch.randn(8, 6))
        torch.ones(3).cos()
    assert profile.kernels and any(event.name == "aten::exp" for event in events.events())
    assert found[0]["units"][0]["kernels"][0]["calls"] == 2
    operators = {call["operator"] for call in found[0]["eager"]}
    assert "aten::cos" in operators and "aten::exp" not in operators


def test_what_was_compiled_before_is_shown_as_far_as_it_is_known():
    compiled = torch.compile(scale)
    with torch.no_grad():
        compiled(torch.randn(4, 8), torch.randn(8, 6))
        with recorded() as found:
            compiled(torch.randn(4, 8), torch.randn(8, 6))
    (unit,) = found[0]["units"]
    assert (unit["name"], unit["status"]) == ("scale", "kept")
    assert [stage["stage"] for stage in unit["stages"]] == ["loops", "fusion", "memory", "code"]
    assert unit["kernels"][0]["calls"] == 1 and line_of(found[0], "sum") in unit["kernels"][0]["places"]
    assert [call["kind"] for call in found[0]["calls"]] == ["hit"]


def test_nothing_is_left_when_it_ends():
    with recorded():
        torch.compile(lambda x: x + 1)(torch.ones(2))
    assert not logs.is_heard() and state.recording is None
    Recording(RecordedFacts()).start()
    state.recording.stop()


def test_a_recording_that_another_thread_or_a_profiler_outlives():
    recorder = Recorder()
    recorder.start()
    thread = threading.Thread(target=recorder.stop)
    thread.start(), thread.join()
    torch.ones(3).cos()
    assert state.recording is None and not recorder.eager.calls
    recorder = Recorder()
    recorder.start()
    with torch.profiler.profile():
        recorder.stop()
    torch.ones(3).cos()
    assert state.recording is None


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("stage", ["loops", "fusion", "code"])
def test_a_recording_that_begins_within_a_compilation(stage):
    late, found = Recorder(), []

    class Starter:
        def heard(self, log, record):
            if record.stage == stage and not found:
                found.append(stage)
                late.start()

    starter = Starter()
    logs.listen(starter)
    try:
        torch.compile(lambda x: x.tan() + 5)(torch.ones(3))
    finally:
        logs.leave(starter)
        late.stop()
    unit = late.as_dict("title", "command")["units"][0]
    assert found and "library" in {stage["stage"] for stage in unit["stages"]}


def test_two_recordings_at_once():
    with recorded() as outer, pytest.warns(UserWarning, match="kernels are not timed"), recorded() as inner:
        torch.compile(lambda x: x.sin() + 1)(torch.ones(2))
    assert len(outer[0]["units"]) == len(inner[0]["units"]) == 1 and "not timed" in inner[0]["notes"][0]


def test_texts_beyond_the_limit_are_left_out(monkeypatch):
    monkeypatch.setattr(recorders, "MAX_TEXT", 2_000)
    with recorded() as found, torch.no_grad():
        torch.compile(scale)(torch.randn(4, 8), torch.randn(8, 6))
    unit = found[0]["units"][0]
    assert any(stage["text"] for stage in unit["stages"]) and not all(stage["text"] for stage in unit["stages"])
    assert "left out" in found[0]["notes"][0]


def test_threads_compile_at_once():
    functions = [torch.compile(lambda x, n=n: (x * n).sin()) for n in range(4)]
    with recorded() as found:
        threads = [threading.Thread(target=function, args=(torch.ones(8),)) for function in functions]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert len(found[0]["units"]) == 4 and len({stage["id"] for unit in found[0]["units"] for stage in unit["stages"]}) == 48


def test_a_listener_that_fails_does_no_harm_and_hears_no_more():
    class Listener:
        def heard(self, log, record):
            raise LookupError("deaf")

    listener = Listener()
    logs.listen(listener)
    try:
        with pytest.warns(UserWarning, match="a listener failed at the stage captured of .*LookupError: deaf") as warned:
            assert torch.compile(lambda x: x + 1)(torch.ones(2)).tolist() == [2, 2]
        assert len(warned) == 1 and not logs.is_heard()
    finally:
        logs.leave(listener)


def test_listeners_get_the_text_that_is_printed(capfd):
    class Listener:
        records = []

        def heard(self, log, record):
            self.records.append(record)

    listener = Listener()
    logs.listen(listener)
    try:
        logs.StageLog(Settings(logs=frozenset(["loops"])), "name")("loops", lambda: "text", lambda: 5, "part")
    finally:
        logs.leave(listener)
    assert capfd.readouterr().err == "--- loops, part: name ---\ntext\n\n"
    (record,) = listener.records
    assert (record.stage, record.title, record.text, record.subject) == ("loops", "part", "text", 5)


def test_runs_beyond_those_that_are_shown_singly_are_summed(monkeypatch):
    monkeypatch.setattr(clock, "MAX_RUNS", 3)
    with recorded() as found, torch.no_grad():
        compiled = torch.compile(scale)
        for _ in range(10):
            compiled(torch.randn(64, 64), torch.randn(64, 64))
    (recording,) = found
    assert len([call for call in recording["calls"] if call["timed"]]) == 3
    (runs,) = recording["runs"]
    assert runs["calls"] == 10 and runs["unit"] == recording["units"][0]["id"] and 0 < runs["median"] < runs["seconds"]
    assert runs["kernels"] == pytest.approx(recording["units"][0]["kernels"][0]["seconds"])
    assert runs["kernels"] < runs["seconds"]


def test_a_tape_has_what_compiled_code_saved():
    with recorded() as found:
        compiled = torch.compile(lambda x, w: (x @ w).exp())
        compiled(torch.randn(16, 8, requires_grad=True), torch.randn(8, 4, requires_grad=True)).sum().backward()
    (tape,) = found[0]["tapes"]
    (node,) = [each for each in tape["nodes"] if each["name"] == "CompiledFunctionBackward"]
    assert {nbytes for _, _, nbytes in node["saved"]} == {16 * 8 * 4, 8 * 4 * 4, 16 * 4 * 4}
    assert tape["bytes"] == (16 * 8 + 8 * 4 + 16 * 4) * 4


@torch.jit.script
def counted_down(x, n: int):
    while n > 0:
        x = x.relu() + 1
        n -= 1
    return x


def test_interpreted_runs_of_scripts_are_counted(monkeypatch):
    monkeypatch.setenv("RUSHLIGHT_JIT_NATIVE_AFTER", "1000")
    with recorded() as found:
        for _ in range(3):
            counted_down(torch.ones(3), 2)
    (runs,) = found[0]["interpreted"]
    assert (runs["name"], runs["calls"], runs["native"]) == ("counted_down", 3, 0.0) and runs["seconds"] > 0
    assert found[0]["units"][runs["unit"]]["name"].endswith("counted_down")


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_runs_of_graphs_without_native_code_are_counted(backend):
    compiled = torch.compile(lambda x: x.sin() + 1, backend=backend)
    with recorded() as found:
        for _ in range(4):
            compiled(torch.ones(3))
    (runs,) = found[0]["interpreted"]
    assert runs["calls"] == 4 and runs["native"] == 0.0 and runs["unit"] == 0


def test_runs_of_compiled_graphs_are_not_interpreted():
    compiled = torch.compile(lambda x: x.sin() + 1)
    with recorded() as found:
        for _ in range(4):
            compiled(torch.ones(3))
    assert found[0]["interpreted"] == [] and sum(runs["calls"] for runs in found[0]["runs"]) == 4


def test_graphs_that_no_native_code_can_be_made_of_are_counted(monkeypatch):
    def fails(*args):
        raise ArithmeticError("no code")

    monkeypatch.setattr(backends, "compile_fx", fails)
    compiled = torch.compile(lambda x: x.sin() + 2)
    with recorded() as found, pytest.warns(UserWarning, match="through the interpreter"):
        for _ in range(2):
            assert torch.equal(compiled(torch.zeros(3)), torch.full((3,), 2.0))
    (runs,) = found[0]["interpreted"]
    assert runs["calls"] == 2
