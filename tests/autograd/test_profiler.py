"""`torch.autograd.profiler` and `torch.profiler`: which events there are, how they nest, and what is made of them."""

from __future__ import annotations

import gzip
import json
import threading
import warnings

import pytest

import rushlight as torch
from rushlight import nn
from rushlight.profiler import (
    ProfilerAction,
    ProfilerActivity,
    profile,
    record_function,
    schedule,
    tensorboard_trace_handler,
)


def step(library=torch):
    """A step of training, the same in both libraries."""
    library.manual_seed(0)
    x = library.randn(4, 8, requires_grad=True)
    model = library.nn.Sequential(library.nn.Linear(8, 3), library.nn.ReLU())
    return lambda: model(x).sum().backward()


def names(profiled):
    return [event.name for event in profiled.events()]


def test_calls_nest_and_add_up():
    run = step()
    with profile(record_shapes=True, profile_memory=True, with_flops=True) as profiled, record_function("mine"):
        run()
    events = profiled.events()
    mine, linear, _, addmm = events[:4]
    assert [event.name for event in events[:4]] == ["mine", "aten::linear", "aten::permute", "aten::addmm"]
    assert linear.cpu_parent is mine and addmm.cpu_parent is linear and addmm in linear.cpu_children
    assert mine.is_user_annotation and not addmm.is_user_annotation
    assert addmm.input_shapes[:3] == [[3], [4, 8], [8, 3]] and addmm.flops == 2 * 4 * 8 * 3
    assert addmm.cpu_memory_usage == addmm.self_cpu_memory_usage == 4 * 3 * 4 and linear.self_cpu_memory_usage == 0
    assert "autograd::engine::evaluate_function: AddmmBackward0" in names(profiled)
    for event in events:
        assert event.time_range.start <= event.time_range.end
        for child in event.cpu_children:
            assert event.time_range.start <= child.time_range.start <= child.time_range.end <= event.time_range.end
    assert events.self_cpu_time_total == pytest.approx(mine.cpu_time_total)
    averages = profiled.key_averages()
    assert {average.key: average.count for average in averages}["torch::autograd::AccumulateGrad"] == 3
    assert sum(average.count for average in averages) == averages.total_average().count == len(events)


def test_shapes_group_calls():
    with profile(record_shapes=True) as profiled:
        for size in (2, 3, 3):
            torch.ones(size).sin()
    sines = [each for each in profiled.key_averages(group_by_input_shape=True) if each.key == "aten::sin"]
    assert sorted((each.count, each.input_shapes) for each in sines) == [(1, [[2]]), (2, [[3]])]
    assert [each.count for each in profiled.key_averages() if each.key == "aten::sin"] == [3]


def test_overloads_group_calls():
    with profile() as profiled:
        for power in (2, 3, torch.ones(2)):
            torch.ones(2).pow(power)
    sums = [each for each in profiled.key_averages(group_by_overload_name=True) if each.key == "aten::pow"]
    assert {each.overload_name: each.count for each in sums} == {"Tensor_Scalar": 2, "Tensor_Tensor": 1}
    assert "Overload Name" in profiled.key_averages(group_by_overload_name=True).table()
    assert "Overload Name" not in profiled.key_averages().table()


def test_tables():
    run = step()
    with profile(profile_memory=True, with_stack=True) as profiled:
        run()
    table = profiled.key_averages(group_by_stack_n=2).table(sort_by="cpu_time_total", row_limit=2, header="a step")
    lines = table.splitlines()
    assert lines[1] == "a step" and "CPU Mem" in lines[3] and "Source Location" in lines[3] and len(lines) == 9
    assert lines[-1].startswith("Self CPU time total: ")
    assert "test_profiler.py" in profiled.key_averages(group_by_stack_n=1).table()
    times = [each.self_cpu_time_total for each in profiled.key_averages()]
    assert sum(times) == pytest.approx(profiled.events().self_cpu_time_total)
    with pytest.raises(ValueError, match="sort_by should be one of"):
        profiled.key_averages().table(sort_by="speed")
    assert "ms" in profiled.key_averages().table(time_unit="ms", row_limit=1).splitlines()[3]


def test_nothing_is_recorded_outside():
    with profile() as profiled:
        torch.ones(2)
    torch.ones(2).exp()
    assert "aten::exp" not in names(profiled)
    with pytest.raises(ZeroDivisionError), profile() as failed:
        torch.ones(2).exp()
        _ = 1 / 0
    assert "aten::exp" in names(failed)
    with profile(), pytest.raises(RuntimeError, match="runs in this thread already"), profile():
        pass


def test_threads_are_apart():
    seen = []

    def other():
        with profile() as profiled:
            torch.ones(3).cos()
        seen.extend(names(profiled))

    with profile() as profiled:
        thread = threading.Thread(target=other)
        thread.start()
        thread.join()
        torch.ones(3).sin()
    assert "aten::cos" in seen and "aten::sin" not in seen
    assert "aten::sin" in names(profiled) and "aten::cos" not in names(profiled)


def test_an_overload_that_calls_another_counts_once():
    values = torch.ones(100, requires_grad=True)
    with profile(profile_memory=True) as profiled:
        total = values.sum()
    (row,) = [each for each in profiled.key_averages() if each.key == "aten::sum"]
    (event,) = [each for each in profiled.events() if each.name == "aten::sum"]
    assert (row.count, row.cpu_memory_usage, event.cpu_parent) == (1, 4, None)
    assert row.cpu_time_total == event.cpu_time_total and event.sequence_nr >= 0 and total == 100


def test_recursion_counts_its_time_once():
    def descend(depth):
        with record_function("descend"):
            torch.sin(torch.ones(1)) if depth == 0 else descend(depth - 1)

    with profile() as profiled:
        descend(3)
    (row,) = [each for each in profiled.key_averages() if each.key == "descend"]
    assert row.count == 1
    assert [child.name for child in profiled.events()[0].cpu_children] == ["aten::ones", "aten::sin"]


def test_schedules():
    actions = [schedule(wait=1, warmup=1, active=2, repeat=2, skip_first=1)(number) for number in range(11)]
    once = [ProfilerAction.NONE, ProfilerAction.WARMUP, ProfilerAction.RECORD, ProfilerAction.RECORD_AND_SAVE]
    assert actions == [ProfilerAction.NONE, *once, *once, ProfilerAction.NONE, ProfilerAction.NONE]
    with pytest.raises(ValueError, match="active must be positive"):
        schedule(wait=1, warmup=1, active=0)
    with pytest.warns(UserWarning, match="warmup"):
        schedule(wait=0, warmup=0, active=1)


def test_steps(tmp_path):
    ready = []
    with profile(schedule=schedule(wait=1, warmup=1, active=2), on_trace_ready=lambda each: ready.append(names(each))) as profiled:
        for number in range(9):
            getattr(torch.ones(1), ("sin", "cos", "exp", "log")[number % 4])()
            profiled.step()
    assert [[name for name in each if name != "aten::full"] for each in ready] == [
        [f"ProfilerStep#{first}", "aten::ones", "aten::exp", f"ProfilerStep#{first + 1}", "aten::ones", "aten::log"]
        for first in (2, 6)
    ]
    with profile(on_trace_ready=tensorboard_trace_handler(str(tmp_path), "worker", use_gzip=True)):
        torch.ones(1)
    (written,) = tmp_path.iterdir()
    assert written.name.startswith("worker.") and json.loads(gzip.open(written).read())["traceEvents"]


def test_a_compressed_trace_leaves_its_neighbour(tmp_path):
    (tmp_path / "trace.json").write_text("an earlier trace")
    with profile() as profiled:
        torch.ones(1)
    profiled.export_chrome_trace(tmp_path / "trace.json.gz")
    assert json.loads(gzip.open(tmp_path / "trace.json.gz").read())["traceEvents"]
    assert (tmp_path / "trace.json").read_text() == "an earlier trace"


def test_traces(tmp_path):
    with profile(with_stack=True) as profiled:
        torch.ones(2).sin()
        profiled.add_metadata("who", "me")
        profiled.add_metadata_json("what", '{"a": 1}')
    profiled.export_chrome_trace(tmp_path / "trace.json")
    content = json.loads((tmp_path / "trace.json").read_text())
    assert content["who"] == "me" and content["what"] == {"a": 1}
    sine = next(event for event in content["traceEvents"] if event["name"] == "aten::sin")
    assert sine["ph"] == "X" and sine["dur"] > 0
    profiled.export_stacks(tmp_path / "stacks")
    assert all(line.rsplit(" ", 1)[1].isdigit() for line in (tmp_path / "stacks").read_text().splitlines())
    with pytest.raises(ValueError, match="metric should be one of"):
        profiled.export_stacks(tmp_path / "stacks", "speed")


def trace_of(profiled, path):
    profiled.export_chrome_trace(path)
    return json.loads(path.read_text())


def test_traces_name_processes_and_threads(tmp_path):
    with profile(record_shapes=True, with_stack=True) as profiled:
        torch.full((2, 3), 1.0).pow(2)
    content = trace_of(profiled, tmp_path / "trace.json")
    facts = {event["name"]: event["args"] for event in content["traceEvents"] if event["ph"] == "M"}
    assert set(facts) == {"process_name", "process_labels", "process_sort_index", "thread_name", "thread_sort_index"}
    assert facts["thread_name"]["name"] == f"thread {threading.get_native_id()} ({threading.current_thread().name})"
    power = next(event["args"] for event in content["traceEvents"] if event["name"] == "aten::pow")
    assert power["Input Dims"] == [[2, 3], []] and power["Concrete Inputs"] == ["", 2] and power["Overload"] == "Tensor_Scalar"
    assert "test_profiler.py" in power["Call stack"].split(";\n")[0]
    assert content["record_shapes"] == content["with_stack"] == 1 and "profile_memory" not in content


def test_traces_point_from_forward_to_backward(tmp_path):
    x = torch.ones(3, requires_grad=True)
    with profile() as profiled:
        (x.sin() * 2).sum().backward()
    events = trace_of(profiled, tmp_path / "trace.json")["traceEvents"]
    slices = {(event["tid"], event["ts"]): event["name"] for event in reversed(events) if event["ph"] == "X"}
    starts = {event["id"]: slices[event["tid"], event["ts"]] for event in events if event["ph"] == "s"}
    ends = {event["id"]: slices[event["tid"], event["ts"]] for event in events if event["ph"] == "f"}
    assert {starts[key]: ends[key] for key in ends} == {
        "aten::sin": "SinBackward0", "aten::mul": "MulBackward0", "aten::sum": "SumBackward0",
    }  # fmt: skip


def test_traces_count_memory(tmp_path):
    with profile(profile_memory=True) as profiled:
        kept = [torch.ones(100_000) for _ in range(3)]
        assert len(kept) == 3
        del kept
        torch.ones(1)
    content = trace_of(profiled, tmp_path / "trace.json")
    counted = [event["args"]["bytes"] for event in content["traceEvents"] if event["ph"] == "C"]
    assert counted[2] - counted[0] >= 800_000 and counted[-1] < counted[0] and content["profile_memory"] == 1


def test_compiled_graphs_are_events():
    model = torch.compile(nn.Linear(4, 4))
    x = torch.ones(2, 4)
    with torch.no_grad():
        expected = model(x)
        with profile() as profiled:
            assert torch.equal(model(x), expected)
    assert "aten::addmm" not in names(profiled)
    packing, graph, kernel = [event for event in profiled.events() if event.name.startswith(("CompiledGraph ", "kernel_"))]
    assert packing.name == f"{graph.name}: constants" and packing.time_range.end <= graph.time_range.start
    assert graph.name.startswith("CompiledGraph ") and kernel.name == "kernel_0: addmm" and kernel.cpu_parent is graph
    assert graph.time_range.start <= kernel.time_range.start <= kernel.time_range.end <= graph.time_range.end


def test_compiled_graphs_count_results_and_arena():
    @torch.compile(dynamic=False)
    def function(x):
        return (x @ x).softmax(-1) @ x

    x = torch.ones(64, 64)
    function(x)
    with profile(profile_memory=True) as profiled:
        function(x)
    (graph,) = [event for event in profiled.events() if event.name.startswith("CompiledGraph ")]
    assert graph.cpu_memory_usage == graph.self_cpu_memory_usage >= 2 * 64 * 64 * 4  # the result, and the first product
    assert graph.cpu_memory_usage % 64 == 0 and graph.cpu_memory_usage <= 4 * 64 * 64 * 4


def test_compiled_graphs_of_open_sizes_count_results():
    @torch.compile(dynamic=True)
    def function(x):
        return x.sin() + 1

    function(torch.ones(8))
    with profile(profile_memory=True) as profiled:
        function(torch.ones(32))
    (graph,) = [event for event in profiled.events() if event.name.startswith("CompiledGraph ")]
    assert graph.cpu_memory_usage == 32 * 4


def test_stages_of_a_compilation_are_events():
    @torch.compile
    def function(x):
        return (x * 1.375).sin().sum()

    x = torch.ones(4, requires_grad=True)
    with profile(profile_memory=True) as profiled:
        function(x).backward()
    events = {event.name: event for event in profiled.events()}
    parents = {
        "bytecode_tracing": "dynamo", "backend_compile": "bytecode_tracing", "create_aot_dispatcher_function": "backend_compile",
        "_recursive_joint_graph_passes": "backend_compile", "min_cut_rematerialization_partition": "backend_compile",
        "compile_fx_inner": "backend_compile", "GraphLowering.run": "compile_fx_inner",
        "GraphLowering.codegen": "compile_fx_inner", "compile_file": "compile_fx_inner",
    }  # fmt: skip
    assert {name: events[name].cpu_parent.name for name in parents} == parents
    assert events["dynamo"].cpu_memory_usage == 0  # fake tensors have no memory
    with profile() as again:
        function(x).backward()
    assert not {"dynamo", "backend_compile", "compile_file"} & set(names(again))
    assert torch.equal(x.grad, 2 * 1.375 * (x.detach() * 1.375).cos())


def test_programs_of_scripted_functions_are_events(monkeypatch):
    monkeypatch.setenv("RUSHLIGHT_JIT_NATIVE_AFTER", "0")
    x = torch.ones(4)
    with torch.no_grad():
        for _ in range(3):
            expected = doubled(x, 5)
        with profile() as profiled:
            assert torch.equal(doubled(x, 5), expected)
    assert any(name.startswith(("CompiledGraph ", "CompiledProgram")) for name in names(profiled))


@torch.jit.script
def doubled(x, n: int):
    while n > 0:
        x = (x * 2).relu() + 1
        n -= 1
    return x


def test_modes_of_the_thread_stay():
    with profile() as profiled, torch.autocast("cpu", dtype=torch.bfloat16):
        found = torch.ones(2, 2) @ torch.ones(2, 2)
    assert found.dtype is torch.bfloat16 and "aten::_to_copy" in names(profiled)
    with profile():
        assert torch.vmap(torch.dot)(torch.ones(3, 2), torch.ones(3, 2)).tolist() == [2.0, 2.0, 2.0]


def test_pausing():
    with profile() as profiled:
        profiled.toggle_collection_dynamic(False, [ProfilerActivity.CPU])
        torch.ones(2).sin()
        profiled.toggle_collection_dynamic(True, [ProfilerActivity.CPU])
        torch.ones(2).cos()
    assert "aten::sin" not in names(profiled) and "aten::cos" in names(profiled)


def test_what_is_not_there():
    with pytest.warns(UserWarning, match="CUDA is not available"):
        profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA])
    with pytest.warns(UserWarning, match="with_modules has no effect"):
        profile(with_modules=True)
    with warnings.catch_warnings(), pytest.raises(ValueError, match="no valid activities"):
        warnings.simplefilter("ignore")
        profile(activities=[ProfilerActivity.CUDA])
    with pytest.raises(ValueError, match="only the CPU"):
        torch.autograd.profiler.profile(use_device="cuda")
    with pytest.raises(RuntimeError, match="didn't finish"):
        profile().events()


def test_the_older_profiler():
    with torch.autograd.profiler.profile(record_shapes=True) as profiled:
        torch.ones(2).sin()
    assert "aten::sin" in [event.name for event in profiled.function_events] and "aten::sin" in str(profiled)
    assert profiled.total_average().count == len(profiled.function_events)
    assert isinstance(profiled.function_events, torch.autograd.profiler.EventList)
    with torch.autograd.profiler.profile(enabled=False) as nothing:
        torch.ones(2)
    assert nothing.function_events is None


@pytest.mark.oracle
def test_counts_are_those_of_torch():
    theirs = pytest.importorskip("torch")
    found = []
    for library in (torch, theirs):
        run = step(library)
        with library.profiler.profile(activities=[library.profiler.ProfilerActivity.CPU], with_flops=True) as profiled:
            run()
        compared = ("aten::linear", "aten::addmm", "aten::relu", "aten::mm", "AddmmBackward0", "ReluBackward0", "SumBackward0",
                    "torch::autograd::AccumulateGrad", "autograd::engine::evaluate_function: AddmmBackward0")  # fmt: skip
        averages = {each.key: each for each in profiled.key_averages()}
        found.append([(name, averages[name].count, averages[name].flops) for name in compared])
    assert found[0] == found[1]


def test_steps_of_optimizers_and_loaders_are_sections():
    model = nn.Linear(4, 4)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    loader = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(torch.randn(8, 4)), batch_size=4)
    with profile(schedule=lambda step: ProfilerAction.RECORD) as found:
        for (x,) in loader:
            optimizer.zero_grad()
            model(x).sum().backward()
            optimizer.step()
            found.step()
    counts = {event.key: event.count for event in found.key_averages()}
    assert counts["Optimizer.step#SGD.step"] == counts["Optimizer.zero_grad#SGD.zero_grad"] == 2
    assert counts["enumerate(DataLoader)#LocalIterator.__next__"] >= 2 and counts["ProfilerStep*"] >= 2


def test_sections_of_compiled_functions_are_left_out_of_graphs():
    @torch.compile(fullgraph=True)
    def function(x):
        with record_function("a section"):
            y = x + 1
        return y * 2

    function(torch.ones(3))
    with torch._dynamo.config.patch(error_on_recompile=True), profile() as found:
        assert torch.equal(function(torch.ones(3)), torch.full((3,), 4.0))
    assert "a section" not in {event.key for event in found.key_averages()}


@pytest.mark.parametrize("observe", [profile, torch.autograd.detect_anomaly])
def test_leaves_take_over_gradients_while_observed(observe):
    """Observing a backward pass adds no copies."""
    weight = torch.ones(3, 2, requires_grad=True)
    leaf = torch.ones(2, 3, requires_grad=True)
    addresses = []

    class Record(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x.clone()

        @staticmethod
        def backward(ctx, grad):
            made = torch.full((2, 3), 5.0)
            addresses.append(made.data_ptr())
            return made

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with observe():
            (Record.apply(leaf) @ weight).sum().backward()
    assert leaf.grad.data_ptr() == addresses[0] and leaf.grad.tolist() == [[5.0] * 3] * 2
    assert weight.grad.tolist() == [[2.0, 2.0]] * 3


def test_profiled_leaves_copy_only_shared_gradients():
    one, two = (torch.ones(3, requires_grad=True) for _ in range(2))
    with profile() as profiled:
        (one + two).backward(torch.ones(3))
    assert one.grad.data_ptr() != two.grad.data_ptr()
    with profile() as alone:
        (torch.ones(3, requires_grad=True) * 2).backward(torch.ones(3))
    assert "aten::clone" in names(profiled) and "aten::clone" not in names(alone)


def test_leaves_are_reached_in_the_same_order_while_profiled():
    def order():
        leaves = [torch.ones(2, requires_grad=True) for _ in range(12)]
        reached = []
        for number, leaf in enumerate(leaves):
            leaf.register_post_accumulate_grad_hook(lambda _, number=number: reached.append(number))
        torch.cat(leaves).sum().backward()
        return reached

    expected = order()
    with profile():
        assert order() == expected


def test_leaves_with_hooks_take_over_gradients():
    leaf = torch.ones(3, requires_grad=True)
    seen = []
    leaf.register_hook(lambda grad: seen.append(grad.data_ptr()))
    (leaf * 2).backward(torch.ones(3))
    assert leaf.grad.data_ptr() == seen[0] and leaf.grad.tolist() == [2.0] * 3


def test_training_a_linear_layer_copies_no_gradients():
    model = nn.Linear(3, 2)
    with profile() as profiled:
        model(torch.ones(4, 3)).sum().backward()
    assert "aten::clone" not in names(profiled)
    assert model.weight.grad.tolist() == [[4.0] * 3] * 2 and model.bias.grad.tolist() == [4.0, 4.0]
    assert model.weight.grad._base is None and model.weight.grad.is_contiguous()
