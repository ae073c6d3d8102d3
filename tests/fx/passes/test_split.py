"""split_by_support: few pieces, the same results, effects in order."""

from __future__ import annotations

import operator
import random

import pytest

from rushlight.fx import Graph, GraphModule, Interpreter
from rushlight.fx.passes.split import plan_segments, split_by_support


def supported(node) -> bool:
    return node.target in (operator.add, operator.mul, divmod)


def pieces(module: GraphModule) -> list[str]:
    return [node.target for node in module.graph.nodes if node.op == "call_module"]


def check(graph: Graph, *inputs) -> GraphModule:
    graph.lint()
    original = GraphModule({}, graph)
    text = str(graph)
    split = split_by_support(original, supported)
    split.graph.lint()
    assert str(graph) == text
    assert split(*inputs) == original(*inputs) == Interpreter(split).run(*inputs)
    assert not any(supported(node) for node in split.graph.nodes if node.op == "call_function")
    return split


def test_everything_supported():
    graph = Graph()
    x = graph.placeholder("x")
    graph.output((graph.call_function(operator.mul, (graph.call_function(operator.add, (x, 1)), x)),))
    split = check(graph, 3)
    assert pieces(split) == ["compiled_0"]
    assert split.compiled_0.code == (
        "def forward(self, x):\n    add = x + 1\n    mul = add * x;  add = x = None\n    return mul\n"
    )


def test_nothing_supported():
    graph = Graph()
    graph.output(graph.call_function(abs, (graph.placeholder("x"),)))
    assert pieces(check(graph, -3)) == []


def test_cut_by_a_dependency():
    graph = Graph()
    x = graph.placeholder("x")
    first = graph.call_function(operator.add, (x, 1))
    middle = graph.call_function(abs, (first,))
    graph.output(graph.call_function(operator.mul, (middle, first)))
    assert pieces(check(graph, -5)) == ["compiled_0", "compiled_1"]


def test_independent_nodes_move():
    graph = Graph()
    x = graph.placeholder("x")
    sums = []
    for number in range(4):
        sums.append(graph.call_function(operator.add, (x, number)))
        sums.append(graph.call_function(abs, (x,)))
    graph.output(sums)
    split = check(graph, -2)
    assert pieces(split) == ["compiled_0"]
    assert split.graph.find_nodes(op="call_function", target=operator.getitem)


def test_the_better_first_kind_is_chosen():
    graph = Graph()
    x = graph.placeholder("x")
    # supported -> unsupported -> supported, and unsupported -> supported: beginning with "unsupported" needs 2 pieces.
    a = graph.call_function(operator.add, (x, 1))
    b = graph.call_function(abs, (a,))
    c = graph.call_function(operator.add, (b, 1))
    d = graph.call_function(operator.mul, (graph.call_function(abs, (x,)), 2))
    graph.output((c, d))
    assert len(pieces(check(graph, -4))) == 2


def test_single_and_several_outputs_keep_their_meta():
    graph = Graph()
    x = graph.placeholder("x")
    one = graph.call_function(operator.add, (x, 1))
    two = graph.call_function(operator.mul, (one, 2))
    one.meta["val"], two.meta["val"], x.meta["val"] = "one", "two", "x"
    graph.output((one, two))
    split = check(graph, 1)
    elements = split.graph.find_nodes(op="call_function", target=operator.getitem)
    assert [(node.name, node.meta["val"]) for node in elements] == [("add", "one"), ("mul", "two")]
    inner = list(split.compiled_0.graph.nodes)
    assert [node.meta.get("val") for node in inner] == ["x", "one", "two", None]


def test_elements_of_a_tuple_stay_with_the_call():
    graph = Graph()
    x = graph.placeholder("x")
    both = graph.call_function(divmod, (x, 3))
    both.meta["val"] = (0, 0)
    quotient = graph.call_function(operator.getitem, (both, 0))
    graph.output(graph.call_function(abs, (quotient,)))
    split = check(graph, 10)
    assert not split.graph.find_nodes(op="call_function", target=operator.getitem)


def test_elements_of_an_unsupported_tuple_stay_outside():
    graph = Graph()
    x = graph.placeholder("x")
    both = graph.call_function(list, (x,))
    both.meta["val"] = [0, 0]
    item = graph.call_function(operator.getitem, (both, 0))
    graph.output(graph.call_function(operator.add, (item, 1)))
    split = check(graph, (5, 6))
    assert [node.op for node in split.compiled_0.graph.nodes] == ["placeholder", "call_function", "output"]


def test_effects_keep_their_order():
    graph = Graph()
    x = graph.placeholder("x")
    before = graph.call_function(operator.getitem, (x, 0))
    early = graph.call_function(operator.add, (before, 1))
    graph.call_function(operator.setitem, (x, 0, early))
    after = graph.call_function(operator.getitem, (x, 0))
    late = graph.call_function(operator.add, (after, 1))
    graph.output([before, late])
    graph.lint()
    original = GraphModule({}, graph)
    split = split_by_support(original, supported)
    assert split([1]) == original([1]) == [1, 3]
    assert pieces(split) == ["compiled_0", "compiled_1"]


def test_attributes_become_inputs():
    graph = Graph()
    x = graph.placeholder("x")
    graph.output(graph.call_function(operator.add, (x, graph.get_attr("weight"))))
    module = GraphModule({"weight": 5}, graph)
    split = split_by_support(module, supported)
    assert split(1) == 6 and split.weight == 5
    assert [node.op for node in split.compiled_0.graph.nodes] == ["placeholder"] * 2 + ["call_function", "output"]


def test_split_of_a_split():
    graph = Graph()
    x = graph.placeholder("x")
    graph.output(graph.call_function(operator.neg, (graph.call_function(operator.add, (x, 1)),)))
    once = split_by_support(GraphModule({}, graph), supported)
    twice = split_by_support(once, lambda node: node.target is operator.neg)
    assert twice(1) == -2 and pieces(twice) == ["compiled_0", "compiled_1"]


@pytest.mark.parametrize("seed", range(20))
def test_random_graphs(seed):
    choose = random.Random(seed)
    graph = Graph()
    values = [graph.placeholder(name) for name in "xyz"]
    for _ in range(40):
        target = choose.choice([operator.add, operator.mul, operator.sub, max])
        values.append(graph.call_function(target, tuple(choose.choices(values[-8:], k=2))))
    graph.output([choose.choice(values) for _ in range(5)])
    check(graph, 1, -2, 3)


def test_plan_takes_no_more_pieces_than_cutting_in_place():
    for seed in range(20):
        choose = random.Random(seed)
        graph = Graph()
        values = [graph.placeholder("x")]
        for _ in range(30):
            target = choose.choice([operator.add, operator.sub])
            values.append(graph.call_function(target, tuple(choose.choices(values, k=2))))
        graph.output(values[-1])
        flags = [supported(node) for node in graph.nodes]
        in_place = sum(now and not before for before, now in zip([False, *flags], flags, strict=False))
        planned = sum(segment.supported for segment in plan_segments(graph, supported))
        assert planned <= in_place
