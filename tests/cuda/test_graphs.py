"""CUDA graphs: random numbers of replays, and results of compiled functions in a graph's memory."""

import gc
import threading

import pytest

import rushlight as torch
from rushlight.inductor.triton import graph_calls

F = torch.nn.functional


def drawing(x, compiled):
    def layer(x):
        return F.dropout(x, 0.5) * 3

    kept = torch.utils.checkpoint.checkpoint(layer, x, use_reentrant=False)
    gradient = torch.autograd.grad(kept.sum(), x)[0]
    return [torch.rand(3, device="cuda"), F.dropout(x, 0.5).detach(), compiled(x).detach(), kept.detach(), gradient]


def test_replays_draw_what_eager_calls_draw():
    x = torch.ones(64, device="cuda", requires_grad=True)
    compiled = torch.compile(lambda x: F.dropout(x, 0.5) * 2)
    torch.cuda.manual_seed(1)
    wanted = [[value.cpu() for value in drawing(x, compiled)] for _ in range(3)]
    after = torch.cuda.get_rng_state()
    torch.cuda.manual_seed(1)
    before = torch.cuda.get_rng_state()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        results = drawing(x, compiled)
    assert torch.equal(torch.cuda.get_rng_state(), before)
    for values in wanted:
        graph.replay()
        assert [torch.equal(ours.cpu(), theirs) for ours, theirs in zip(results, values, strict=True)] == [True] * 5
    assert torch.equal(torch.cuda.get_rng_state(), after) and not torch.equal(wanted[0][0], wanted[1][0])


def test_replays_draw_from_a_generator():
    generator, graph = torch.Generator("cuda").manual_seed(3), torch.cuda.CUDAGraph()
    graph.register_generator_state(generator)
    torch.cuda.synchronize()
    with torch.cuda.graph(graph):
        result = torch.rand(4, device="cuda", generator=generator)
    graph.replay()
    first = result.cpu()
    graph.replay()
    assert not torch.equal(result.cpu(), first)
    generator.manual_seed(3)
    graph.replay()
    assert torch.equal(result.cpu(), first)


def test_a_captured_generator_is_not_seeded():
    torch.cuda.synchronize()
    with pytest.raises(RuntimeError, match="seeded while a graph is captured"), torch.cuda.graph(torch.cuda.CUDAGraph()):
        torch.rand(1, device="cuda")
        torch.cuda.manual_seed(3)
        torch.rand(1, device="cuda")
    torch.cuda.synchronize()
    assert torch.rand(1, device="cuda").item() < 1


def graphed(function):
    return torch.compile(function, mode="reduce-overhead")


def test_results_are_copied_only_while_they_are_used(standin):
    run, weight = graphed(lambda x: (x * 2).sum(0)), torch.ones(3, 4, device="cuda")
    for _ in range(4):
        run(weight)
    standin.wait_for_device()
    standin.log.clear()
    for _ in range(3):
        run(weight)
    standin.wait_for_device()
    assert [entry[0] for entry in standin.log] == ["launch_graph"] * 3
    kept = run(weight)
    run(weight)
    assert [entry[0] for entry in standin.log[3:]] == ["launch_graph", "copy_on_device", "launch_graph"]
    assert kept.tolist() == [6, 6, 6, 6]


def test_results_outlive_replays(standin):
    run, weight = graphed(lambda x, w: (x @ w).tanh()), torch.randn(4, 4)
    there = weight.cuda().requires_grad_()
    for _ in range(6):
        values = [torch.randn(3, 4) for _ in range(3)]
        results = [run(value.cuda(), there) for value in values]
        there.grad = None
        sum((result * result).sum() for result in results).backward()
        here = weight.clone().requires_grad_()
        wanted = [(value @ here).tanh() for value in values]
        sum((result * result).sum() for result in wanted).backward()
        for ours, theirs in zip([*results, there.grad], [*wanted, here.grad], strict=True):
            torch.testing.assert_close(ours.detach().cpu(), theirs.detach(), rtol=1e-4, atol=1e-5)
    assert any(entry[0] == "launch_graph" for entry in standin.log)


def test_views_and_writes_of_results_outlive_replays():
    run = graphed(lambda x: (x + 1, x * 2))
    for _ in range(4):
        run(torch.zeros(2, 3, device="cuda"))
    first, second = run(torch.ones(2, 3, device="cuda"))
    part = first[0]
    first.add_(5)
    run(torch.zeros(2, 3, device="cuda"))
    assert part.tolist() == [7, 7, 7] and first._version == 1 and second.tolist() == [[2, 2, 2]] * 2
    part.mul_(2)
    assert first[0].tolist() == [14, 14, 14]


def test_replays_wait_for_readers_on_other_streams(standin):
    run, side = graphed(lambda x: x + 1), torch.cuda.Stream()
    for value in range(4):
        run(torch.full((2,), float(value), device="cuda"))
    result = run(torch.full((2,), 10.0, device="cuda"))
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        copy = result * 2
        result.record_stream(side)
    del result
    run(torch.zeros(2, device="cuda"))
    torch.cuda.current_stream().synchronize()
    assert copy.tolist() == [22, 22]


def test_graphed_functions_in_a_capture():
    run, x = graphed(lambda x: x * 3), torch.ones(2, device="cuda")
    for _ in range(4):
        run(x)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        result = run(x)
    x.fill_(2)
    graph.replay()
    assert result.tolist() == [6, 6]


def trained(calls, **options):
    """The losses of some steps in which a layer is called a number of times, and the compiled layer."""
    torch.manual_seed(0)
    layer = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.GELU(), torch.nn.Linear(16, 8)).cuda()
    run = torch.compile(layer, **options) if options else layer
    optimizer = torch.optim.SGD(layer.parameters(), lr=0.1)
    losses = []
    for step in range(7):
        x = torch.full((4, 8), 0.1 * step, device="cuda")
        loss = sum((run(x + number) ** 2).mean() for number in range(calls))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


@pytest.mark.parametrize("calls", [1, 2])
def test_backward_passes_by_graphs(calls):
    assert trained(calls, mode="reduce-overhead") == pytest.approx(trained(calls), rel=1e-4)


def test_a_backward_graph_reads_what_the_forward_graph_kept():
    captured = lambda: [each for each in gc.get_objects() if type(each) is graph_calls.GraphedCalls]  # noqa: E731
    before = {id(each) for each in captured()}
    trained(1, mode="reduce-overhead")
    found = [each for calls in captured() if id(calls) not in before for each in calls._captured.values()]
    assert len(found) == 2 and all(len(each.static) <= 2 for each in found)  # copied: the input, and the gradient of the result


@pytest.mark.parametrize("number", [float, lambda value: torch.tensor(float(value))], ids=["float", "tensor"])
def test_numbers_change_from_call_to_call(number):
    run, x = graphed(lambda x, factor: x * factor), torch.ones(4, device="cuda")
    assert [run(x, number(value)).tolist()[0] for value in range(6)] == [0, 1, 2, 3, 4, 5]


def test_threads_do_not_write_to_each_others_results():
    run, wrong = graphed(lambda x: x * 2 + 1), []

    def work(thread):
        for value in range(thread * 100, thread * 100 + 12):
            found = run(torch.full((5,), float(value), device="cuda")).tolist()[0]
            if found != 2 * value + 1:
                wrong.append((found, value))

    threads = [threading.Thread(target=work, args=(number,)) for number in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


def test_results_of_calls_on_several_streams():
    run, results = graphed(lambda x: (x * 2).sum(0) + x), []
    for value in range(9):
        stream = torch.cuda.Stream() if value % 3 else torch.cuda.default_stream()
        with torch.cuda.stream(stream):
            results.append(run(torch.full((3, 4), float(value), device="cuda")))
    torch.cuda.synchronize()
    assert [result.tolist()[0][0] for result in results] == [7.0 * value for value in range(9)]
