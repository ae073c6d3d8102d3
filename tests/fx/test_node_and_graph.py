"""Nodes and graphs: making, editing, ordering, checking, printing."""

from __future__ import annotations

import copy
import operator
import pickle

import pytest

from rushlight.fx import Graph, Node, immutable_dict, immutable_list, map_arg


def two_adds() -> tuple[Graph, Node, Node, Node]:
    graph = Graph()
    x = graph.placeholder("x")
    first = graph.call_function(operator.add, (x, 1))
    second = graph.call_function(operator.add, (first, x))
    graph.output(second)
    return graph, x, first, second


def names(graph: Graph) -> list[str]:
    return [node.name for node in graph.nodes]


def test_names_are_unique_identifiers():
    graph = Graph()
    wanted = ["x", "x", "X", "sum", "torch", "class", "a.b", "1a", "add_1", "add_1", "add", "add", "L['a']", "self"]
    given = [graph.placeholder(name).name for name in wanted]
    assert given == [
        "x", "x_1", "x_2", "sum_1", "torch_1", "class_1", "a_b", "_1a", "add_1", "add_2", "add", "add_3", "l_a_",
        "self_1",
    ]  # fmt: skip


def test_arguments_are_immutable_copies():
    graph, x, first, _ = two_adds()
    values = [first, {"k": x}]
    node = graph.call_function(max, (values, slice(x, None)))
    values.append(3)
    assert isinstance(node.args[0], immutable_list) and len(node.args[0]) == 2
    assert isinstance(node.args[0][1], immutable_dict)
    assert node.all_input_nodes == [first, x]
    with pytest.raises(TypeError, match="make a new copy and assign it"):
        node.args[0].append(1)
    with pytest.raises(TypeError, match="immutable_dict"):
        node.kwargs["k"] = 1
    assert copy.deepcopy(immutable_list([1, [2]])) == [1, [2]]


def test_users_follow_arguments():
    graph, x, first, second = two_adds()
    assert list(x.users) == [first, second]
    second.args = (first, 2)
    assert list(x.users) == [first]
    second.update_arg(0, x)
    assert list(x.users) == [first, second] and not first.users
    second.update_kwarg("k", first)
    assert list(first.users) == [second]
    second.insert_arg(0, 7)
    assert second.args == (7, x, 2)
    with pytest.raises(ValueError, match=r"index 9 is outside 0\.\.3"):
        second.insert_arg(9, 0)


def test_replace_all_uses_with():
    graph, x, first, second = two_adds()
    with graph.inserting_after(first):
        negative = graph.call_function(operator.neg, (first,))
    assert first.replace_all_uses_with(negative) == [second]
    assert second.args == (negative, x) and negative.args == (first,)
    assert x.replace_all_uses_with(first, lambda user: user is second) == [second]
    assert first.args == (x, 1) and second.args == (negative, first)
    graph.lint()


def test_replace_all_uses_with_propagates_meta():
    graph, x, first, _ = two_adds()
    first.meta["val"] = 3
    other = graph.placeholder("other")
    first.replace_all_uses_with(other, propagate_meta=True)
    assert other.meta == {"val": 3}
    with pytest.raises(ValueError, match="already has meta"):
        x.replace_all_uses_with(other, propagate_meta=True)


def test_insert_points_nest_and_survive_erasure():
    graph, x, first, second = two_adds()
    with graph.inserting_before(second):
        graph.call_function(abs, (first,), None)
        with graph.inserting_before():
            graph.placeholder("y")
        graph.call_function(abs, (first,))
    graph.call_function(abs, (x,))
    assert names(graph) == ["y", "x", "add", "abs_1", "abs_2", "add_1", "output", "abs_3"]


def test_move_nodes():
    graph, x, first, second = two_adds()
    negative = graph.call_function(operator.neg, (x,))
    x.append(negative)
    assert names(graph) == ["x", "neg", "add", "add_1", "output"]
    second.prepend(negative)
    assert names(graph) == ["x", "add", "neg", "add_1", "output"]
    assert [node.name for node in reversed(graph.nodes)] == ["output", "add_1", "neg", "add", "x"]
    with pytest.warns(UserWarning, match="no effect"):
        first.append(first)
    with pytest.raises(ValueError, match="different graphs"):
        first.prepend(Graph().placeholder("z"))


def test_erase_node():
    graph, _, first, second = two_adds()
    with pytest.raises(RuntimeError, match="Tried to erase Node add but it still had 1 users in the graph"):
        graph.erase_node(first)
    graph.output_node().args = (first,)
    graph.erase_node(second)
    assert names(graph) == ["x", "add", "output"] and len(graph.nodes) == 3
    assert list(first.users) == [graph.output_node()]
    graph.lint()


def test_erase_while_iterating():
    graph, x, *_ = two_adds()
    for _ in range(3):
        graph.call_function(abs, (x,))
    for node in graph.nodes:
        if node.target is abs:
            graph.erase_node(node)
    assert names(graph) == ["x", "add", "add_1", "output"]


def test_eliminate_dead_code():
    graph, x, _, second = two_adds()
    with graph.inserting_before(graph.output_node()):
        dead = graph.call_function(abs, (second,))
        graph.call_function(operator.neg, (dead,))
        graph.call_function(print, (x,))
        graph.call_method("add_", (x, 1))
    assert graph.eliminate_dead_code()
    assert names(graph) == ["x", "add", "add_1", "print_1", "add_", "output"]
    assert not graph.eliminate_dead_code()
    assert graph.eliminate_dead_code(lambda node: node.op in ("placeholder", "output"))
    assert names(graph) == ["x", "add", "add_1", "output"]


def test_printed_form():
    graph, x, *_ = two_adds()
    graph.output_node().args = ({"a": (x, [2])},)
    assert str(graph) == (
        "graph():\n"
        "    %x : [num_users=3] = placeholder[target=x]\n"
        "    %add : [num_users=1] = call_function[target=operator.add](args = (%x, 1), kwargs = {})\n"
        "    %add_1 : [num_users=0] = call_function[target=operator.add](args = (%add, %x), kwargs = {})\n"
        "    return {'a': (x, [2])}"
    )


def test_format_node():
    graph = Graph()
    x = graph.placeholder("x", default_value=3)
    assert x.format_node() == "%x : [num_users=0] = placeholder[target=x](default=3)"
    method = graph.call_method("relu", (x,), {"k": [x, {"z": slice(x, None)}]})
    assert method.format_node() == (
        "%relu : [num_users=0] = call_method[target=relu](args = (%x,), kwargs = {k: [%x, {z: slice(%x, None, None)}]})"
    )
    assert graph.get_attr("a.b").format_node() == "%a_b : [num_users=0] = get_attr[target=a.b]"
    called = graph.call_function(max, (x,)).format_node()
    assert called == "%max_1 : [num_users=0] = call_function[target=builtins.max](args = (%x,), kwargs = {})"


def test_print_tabular(capsys):
    two_adds()[0].print_tabular()
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split() == ["opcode", "name", "target", "args", "kwargs"]
    assert lines[3].split() == ["call_function", "add", "operator.add", "(x,", "1)", "{}"]


def test_find_nodes_and_output_node():
    graph, _, first, second = two_adds()
    assert graph.find_nodes(op="call_function", target=operator.add) == [first, second]
    assert graph.find_nodes(op="call_module") == []
    assert graph.output_node().op == "output"
    with pytest.raises(RuntimeError, match="has no output node"):
        Graph().output_node()


def test_copies():
    graph, x, first, second = two_adds()
    first.meta["val"] = 1
    target = Graph()
    y = target.placeholder("y")
    val_map = {x: y}
    result, output = target.graph_copy(graph, val_map, return_output_node=True)
    assert result is val_map[second] and output is graph.output_node()
    assert names(target) == ["y", "add", "add_1"] and val_map[first].meta == {"val": 1}
    twin = copy.deepcopy(graph)
    assert str(twin) == str(graph)
    assert all(node.graph is twin for node in twin.nodes)
    twin.lint()


def test_pickle_of_a_long_graph():
    graph = Graph()
    value = graph.placeholder("x")
    for _ in range(3000):
        value = graph.call_function(operator.add, ([value][0], 1))
    value.meta.update(stack_trace="here", val=object())
    graph.output({"out": [value]})
    twin = pickle.loads(pickle.dumps(graph))
    assert str(twin) == str(graph)
    assert twin.output_node().args[0]["out"][0].meta == {"stack_trace": "here"}
    twin.lint()


def test_create_node_checks():
    graph = Graph()
    with pytest.raises(ValueError, match="unknown opcode 'call'"):
        graph.create_node("call", "x")
    with pytest.raises(ValueError, match="call_function needs a callable target, got 'add'"):
        graph.call_function("add")
    with pytest.raises(ValueError, match="call_method needs a string target"):
        graph.call_method(abs)
    with pytest.raises(ValueError, match="belongs to another graph"):
        graph.call_function(abs, (Graph().placeholder("x"),))
    with pytest.raises(TypeError, match="args must be a tuple and kwargs a dict"):
        graph.call_function(abs, {1: 2})


def test_lint_finds_faults():
    graph, x, first, second = two_adds()
    graph.lint()
    second.append(first)
    with pytest.raises(RuntimeError, match="Argument 'add' of Node 'add_1' was used before it has been defined!"):
        graph.lint()
    x.append(first)
    second.name = "add"
    with pytest.raises(RuntimeError, match="Node redefined name add"):
        graph.lint()
    second.name = "add_1"
    x.users.pop(first)
    with pytest.raises(RuntimeError, match="does not list it among its users"):
        graph.lint()
    x.users[first] = None
    graph.call_function(abs, (x,))
    with pytest.raises(RuntimeError, match="the output must be the last node"):
        graph.lint()
    graph.output(x)
    with pytest.raises(RuntimeError, match="2 output nodes"):
        graph.lint()


def test_map_arg():
    graph, x, *_ = two_adds()
    assert map_arg((x, [1, {"k": x}], slice(x, 2)), lambda node: node.name) == ("x", [1, {"k": "x"}], slice("x", 2))


@pytest.mark.oracle
def test_same_names_and_print_as_torch():
    torch = pytest.importorskip("torch")

    def build(graph_type: type) -> object:
        graph = graph_type()
        x, y = graph.placeholder("x"), graph.placeholder("y", default_value=3)
        total = graph.call_function(operator.add, (x, y))
        item = graph.call_function(operator.getitem, (total, (slice(1, None, None), 0, None)))
        relu = graph.call_method("relu", (total,), {"k": [total, {"z": item}]})
        layer = graph.call_module("encoder.layers.0", (relu,))
        shape = graph.call_function(getattr, (layer, "shape"))
        graph.call_function(max, (shape, float("inf"), float("nan")))
        graph.output({"a": (shape, [layer]), "b": relu})
        return graph

    ours, theirs = build(Graph), build(torch.fx.Graph)
    assert str(ours) == str(theirs)
    assert names(ours) == [node.name for node in theirs.nodes]
