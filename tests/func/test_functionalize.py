"""functionalize: no writes in what runs, the same results, and arguments that are written to in the end."""

import pytest

import rushlight as torch
from rushlight.fx.experimental.proxy_tensor import make_fx

functionalize = torch.func.functionalize


def through_a_view(x):
    y = x.view(4, 2)
    y.add_(torch.ones(2))
    return x


def through_two_views(x):
    first, _ = x.split(2)
    first.diagonal().mul_(3)
    return x + 1


def of_a_value(x):
    y = x * 2
    y.t()[0].sub_(1)
    return y, y.sum()


PROGRAMS = [through_a_view, through_two_views, of_a_value]


@pytest.mark.parametrize("remove", ["mutations", "mutations_and_views"])
@pytest.mark.parametrize("program", PROGRAMS)
def test_results_and_arguments_are_the_same(program, remove):
    one, other = torch.arange(8.0).view(4, 2), torch.arange(8.0).view(4, 2)
    torch.testing.assert_close(functionalize(program, remove=remove)(one), program(other))
    assert torch.equal(one, other)


@pytest.mark.parametrize("program", PROGRAMS)
def test_graphs_have_no_writes_but_the_last(program):
    graph = make_fx(functionalize(program, remove="mutations_and_views"))(torch.zeros(4, 2)).graph
    calls = [node.target for node in graph.nodes if node.op == "call_function"]
    written = [op for op in calls if getattr(op, "is_mutable", False)]
    assert all(str(op) == "aten.copy_.default" for op in written)
    assert all(
        str(node.meta.get("val").device) != "meta" for node in graph.nodes if hasattr(node.meta.get("val"), "device")
    )


def test_maps_and_gradients():
    x, y = torch.arange(24.0).view(3, 4, 2), torch.arange(24.0).view(3, 4, 2)
    torch.testing.assert_close(torch.vmap(functionalize(through_two_views))(x), torch.vmap(through_two_views)(y))
    found = torch.func.grad(functionalize(lambda x: of_a_value(x)[1]))(torch.ones(2, 2))
    torch.testing.assert_close(found, torch.full((2, 2), 2.0))


def test_other_kinds_are_refused():
    with pytest.raises(RuntimeError, match="expected one of"):
        functionalize(through_a_view, remove="views")
