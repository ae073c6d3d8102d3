"""Launch plans: calls that come again repeat their launches, with the right values in all cases."""

import gc
import multiprocessing
import threading

import pytest

import rushlight as torch
from rushlight._C import LaunchPlan, PlannedCalls
from rushlight.cuda import runtime
from rushlight.cuda.single_graphs import graphs

F = torch.nn.functional


def warm(function, *args):
    """Call a function until its operators have plans; return the last result."""
    return [function(*args) for _ in range(3)][-1]


@pytest.fixture
def unprepared(monkeypatch):
    """A function after which operators that have no plan yet fail."""

    def refuse(op, *rest):
        raise AssertionError(f"{op} has no plan")

    return lambda: monkeypatch.setattr(graphs, "run", refuse)


def same(ours, theirs):
    torch.testing.assert_close(ours.cpu(), theirs)


OPERATORS = {
    "add": lambda x: x + x * 0.5,
    "add an integer": lambda x: x + 1,
    "sigmoid": lambda x: x.sigmoid(),
    "softmax": lambda x: torch.softmax(x, -1),
    "layer_norm": lambda x: F.layer_norm(x, x.shape[-1:]),
    "matmul": lambda x: x @ x.t(),
    "sum": lambda x: x.sum(1),
    "several results": lambda x: x.max(1).values,
    "a list of tensors": lambda x: torch.cat([x, x + 1, x]),
    "a list of results": lambda x: torch.split(x + 0, 2)[1],
    "clone": lambda x: x.clone(),
    "a conversion": lambda x: x.to(torch.bfloat16).to(torch.float64),
    "contiguous": lambda x: x.t().contiguous(),
    "where": lambda x: torch.where(x > 0, x, -x),
}


@pytest.mark.parametrize("name", OPERATORS)
def test_calls_alike_need_no_graph_again(name, unprepared):
    run, values = OPERATORS[name], [torch.randn(6, 8) for _ in range(3)]
    same(warm(run, values[0].cuda()), run(values[0]))
    unprepared()
    for value in values:
        same(run(value.cuda()), run(value))


def test_other_strides_and_sizes():
    x = torch.randn(6, 6)
    for _ in range(3):
        for view in (lambda x: x, lambda x: x.t(), lambda x: x[::2], lambda x: x[:, :3], lambda x: x[:1].expand(6, 6)):
            same(view(x.cuda()).exp(), view(x).exp())
            same(view(x.cuda()) + view(x.cuda()), view(x) + view(x))


def test_addresses_that_are_not_multiples_of_16():
    x = torch.randn(65)
    for start in (0, 1, 4, 3, 0, 1, 0, 3):
        same(x.cuda()[start : start + 32].sigmoid(), x[start : start + 32].sigmoid())


def test_numbers_are_read_at_each_call(unprepared):
    x = torch.randn(8)
    for number in (0.5, 0.75, 0.625):
        x.cuda() * number
    unprepared()
    for number in (0.25, -0.0, float("inf"), 0.25, float("nan"), 0.0):
        ours = (x.cuda() * number).cpu()
        torch.testing.assert_close(ours, x * number, equal_nan=True)
        assert torch.equal(torch.signbit(ours), torch.signbit(x * number)) or number != number


def test_types_of_numbers_decide_on_results():
    x = torch.arange(4).cuda()
    assert [(x + number).dtype for number in (1, 1.0, True) * 3] == [torch.int64, torch.float32, torch.int64] * 3


def test_the_default_dtype_decides_on_results():
    x = torch.arange(1, 4).cuda()
    assert warm(lambda: (x / x).dtype) is torch.float32
    torch.set_default_dtype(torch.float64)
    try:
        assert (x / x).dtype is torch.float64
    finally:
        torch.set_default_dtype(torch.float32)
    assert (x / x).dtype is torch.float32


def test_one_tensor_twice_and_two_tensors():
    x, y = torch.randn(8), torch.randn(8)
    for left, right in ((x, x), (x, y), (y, y), (y, x)) * 2:
        ours = {id(value): value.cuda() for value in (left, right)}
        same(ours[id(left)] * ours[id(right)], left * right)


def test_writes_are_counted_and_return_their_target(unprepared):
    x, y = torch.zeros(4).cuda(), torch.ones(4).cuda()
    warm(x.add_, y)
    unprepared()
    version = x._version
    assert x.add_(y) is x and x._version == version + 1
    view = x.view(4)
    assert view.add_(y) is view and x._version == version + 2
    same(x, torch.full((4,), 5.0))


def test_targets_with_gaps_are_written():
    x, y = torch.zeros(4, 6), torch.randn(4, 3)
    ours = x.cuda()
    for _ in range(4):
        for value, other in ((x, y), (ours, y.cuda())):
            view = value[:, ::2]
            assert view.add_(other).mul_(0.5) is view
            value[1:3].t().add_(1.0)
    same(ours, x)


def test_writes_to_overlapping_memory_are_refused():
    x = torch.arange(8.0).cuda()
    warm(lambda: x[:4].copy_(torch.ones(4).cuda()))
    x[4:].copy_(x[:4])
    with pytest.raises(RuntimeError, match="single memory location"):
        x[1:5].copy_(x[:4])
    same(x, torch.ones(8))


def test_empty_tensors():
    for _ in range(3):
        assert (torch.ones(0, 3).cuda() + 1).shape == (0, 3)
        same(torch.ones(0, 3).cuda().sum(0), torch.zeros(3))
        same(torch.ones(2, 3).cuda() + 1, torch.full((2, 3), 2.0))


def test_fills():
    for kind in (torch.float32, torch.float16, torch.bfloat16, torch.int32, torch.int64, torch.int8, torch.bool, torch.float64):
        for value in (0, 1, 3) if kind is not torch.bool else (True, False):
            for sizes in ((), (3,), (2, 4)):
                same(torch.full(sizes, value, dtype=kind, device="cuda"), torch.full(sizes, value, dtype=kind))
    same(torch.zeros(9).cuda()[1:8:2].fill_(2.5), torch.full((4,), 2.5))
    same(torch.zeros(3).cuda().fill_(-0.0).signbit(), torch.ones(3, dtype=torch.bool))


def test_the_current_stream_is_used(standin):
    x = torch.ones(4).cuda()
    warm(lambda: x.sigmoid() * 2.0)
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    standin.log.clear()
    with torch.cuda.stream(side):
        y = x.sigmoid() * 2.0
    y.record_stream(torch.cuda.current_stream())
    assert {entry[1] for entry in standin.log if entry[0] == "launch"} == {side.cuda_stream}
    side.synchronize()
    same(y, torch.ones(4).sigmoid() * 2)


def test_captured_calls_read_their_inputs_and_numbers_again():
    x = torch.ones(4).cuda()
    for _ in range(2):
        (x.sigmoid() * 0.125 + 1).sum()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        result = (x.sigmoid() * 0.125 + 1).sum()
    (x.sigmoid() * 0.25 + 1).sum()
    gc.collect()
    for value in (0.0, 3.0):
        x.fill_(value)
        graph.replay()
        same(result, (torch.full((4,), value).sigmoid() * 0.125 + 1).sum())


def test_random_numbers_go_on():
    x = torch.ones(64).cuda()
    torch.cuda.manual_seed(5)
    first = [F.dropout(x, 0.5).cpu() for _ in range(3)]
    torch.cuda.manual_seed(5)
    second = [F.dropout(x, 0.5).cpu() for _ in range(3)]
    assert all(map(torch.equal, first, second)) and not torch.equal(first[0], first[1])


def test_each_index_out_of_range_is_reported(unprepared):
    table, fine, wrong = torch.randn(4, 3).cuda(), torch.tensor([1, 3]).cuda(), torch.tensor([1, 9]).cuda()
    warm(F.embedding, fine, table).cpu()
    unprepared()
    for _ in range(2):
        F.embedding(wrong, table)
        with pytest.raises(IndexError, match="embedding"):
            torch.cuda.synchronize()
        same(F.embedding(fine, table), table.cpu()[[1, 3]])


def test_inference_mode_marks_results(unprepared):
    x = torch.ones(3).cuda()
    warm(x.exp)
    unprepared()
    with torch.inference_mode():
        assert x.exp().is_inference()
    assert not x.exp().is_inference()


def test_a_device_without_a_number_is_the_current_one():
    if torch.cuda.device_count() < 2:
        pytest.skip("needs two GPUs")
    x = torch.ones(3).cuda(0)
    for index in (0, 0, 1, 0, 1, 1):
        with torch.cuda.device(index):
            assert x.to("cuda").device.index == torch.ones_like(x, device="cuda").device.index == index
    y = torch.ones(3).cuda(1)
    assert warm(lambda: (y + y).device.index) == 1 and warm(lambda: (x + x).device.index) == 0
    with pytest.raises(RuntimeError, match="same device"):
        x + y


def test_gradients():
    x, w = torch.randn(4, 8), torch.randn(8, 8)
    for _ in range(3):
        theirs, ours = x.clone().requires_grad_(), x.cuda().requires_grad_()
        for value, weight in ((theirs, w), (ours, w.cuda())):
            F.gelu(F.layer_norm(value @ weight, (8,)) * 0.5).sigmoid().sum().backward()
        torch.testing.assert_close(ours.grad.cpu(), theirs.grad)


def test_threads_repeat_calls_on_streams_of_their_own():
    inputs = [torch.randn(16) for _ in range(4)]
    failures = []

    def work(value):
        with torch.cuda.stream(torch.cuda.Stream()):
            for _ in range(10):
                ours = (value.cuda() * 0.5 + 1).sigmoid().cpu()
                if not torch.allclose(ours, (value * 0.5 + 1).sigmoid()):
                    failures.append(ours)

    threads = [threading.Thread(target=work, args=(value,)) for value in inputs]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures


def _call_in_child(x, answers):
    try:
        x.exp()
    except RuntimeError as error:
        answers.put(str(error))
    else:
        answers.put("no error")


def test_a_forked_process_runs_no_plans():
    x = torch.ones(3).cuda()
    warm(x.exp)
    context = multiprocessing.get_context("fork")
    answers = context.Queue()
    child = context.Process(target=_call_in_child, args=(x, answers))
    child.start()
    assert "Cannot re-initialize CUDA in forked subprocess" in answers.get(timeout=60)
    child.join()
    same(x.exp(), torch.ones(3).exp())


def test_memory_is_released_and_counted():
    x = torch.ones(1024).cuda()
    warm(x.exp)
    before = torch.cuda.memory_allocated()
    kept = x.exp()
    assert torch.cuda.memory_allocated() == before + 4096
    del kept
    assert torch.cuda.memory_allocated() == before


def test_a_storage_that_became_too_short_is_an_error():
    x = torch.ones(8).cuda()
    warm(x.exp)
    x.untyped_storage().resize_(16)
    with pytest.raises(RuntimeError, match="storage"):
        x.exp().cpu()


def test_the_profiler_sees_planned_calls():
    x = torch.ones(3).cuda()
    warm(x.exp)
    with torch.profiler.profile() as profile:
        x.exp()
    assert any(event.key == "aten::exp" for event in profile.key_averages())


def plan(**changes):
    found = runtime.device_at(0)
    facts = {
        "device": found, "place": found.place, "driver": found.driver, "heap": found.allocator, "index": 0, "failing": {},
        "reason": None, "reaches": (4,), "memory": (16,), "steps": (), "outputs": (("input", 0),),
    }  # fmt: skip
    return LaunchPlan(**facts | changes)


@pytest.mark.parametrize("changes", [
    {"index": 1000}, {"reaches": (-1,)}, {"memory": ("4",)}, {"steps": ((None, None, ((0, 0),), None),)}, {"steps": (3,)},
    {"steps": ((None, None, ((0, 0), (7, 0), (-1, 4)), None),)}, {"outputs": (("input", 5),)}, {"outputs": (("memory", 0),)},
    {"outputs": (("memory", 0, (1,), (1,), 0, torch.float32),)}, {"outputs": (("view", 0, (1,), (), 0),)}, {"outputs": (1,)},
    {"steps": ((object(), (1, 1), (), {}),)}, {"outputs": (("other", 0, (), (), 0),)},
])  # fmt: skip
def test_malformed_plans_are_refused(changes):
    with pytest.raises((ValueError, TypeError)):
        plan(**changes)


def test_plans_check_their_inputs():
    made = plan()
    x = torch.ones(4).cuda()
    assert made(x)[0] is x
    for wrong in ((), (x, x), (1,), (torch.ones(4),), (torch.ones(0).cuda(),)):
        with pytest.raises((TypeError, RuntimeError)):
            made(*wrong)


def test_calls_keep_plans_by_their_arguments():
    calls = PlannedCalls(lambda *args: "slow", False)
    x = torch.ones(4).cuda()
    assert calls(x, 1) == "slow" and calls.find(x, 1) is None
    assert calls.remember((x, 1), {}, plan(), "single", None)
    assert calls(x, 1) is x and calls(x, 2) == calls(x, 1.0) == calls(x[1:], 1) == calls(x) == "slow"
    assert not calls.remember((torch.ones(4), 1), {}, plan(), "single", None)
    assert not calls.remember((x, x), {}, plan(), "single", None)
    with pytest.raises(ValueError, match="expected 'single'"):
        calls.remember((x, 3), {}, plan(), "other", None)
    calls.forget()
    assert calls(x, 1) == "slow" and calls.plan_count == 0
