"""fx.passes: what passes are made of, beside PyTorch's."""

from __future__ import annotations

import importlib

import pytest

import rushlight as rl
from rushlight.fx.passes.infra.pass_base import PassBase, PassResult
from rushlight.fx.passes.infra.pass_manager import PassManager, pass_result_wrapper, this_before_that_pass_constraint
from rushlight.fx.passes.operator_support import OpSupports, any_chain, chain, create_op_support
from rushlight.fx.passes.tools_common import get_node_target, legalize_graph
from rushlight.fx.passes.utils.common import HolderModule, compare_graphs


def network(torch):
    class Network(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.first = torch.nn.Linear(3, 3)
            self.inner = torch.nn.Sequential(torch.nn.ReLU(), torch.nn.Linear(3, 3))
            self.scale = torch.nn.Parameter(torch.full((3,), 2.0))

        def forward(self, x, y, z=3):
            t = self.first(x)
            u = self.inner(t + y)
            v = u * self.scale
            return v.relu() + t, v

    torch.manual_seed(0)
    return Network()


def passes(torch, name):
    return importlib.import_module(f"{'rushlight' if torch is rl else 'torch'}.fx.passes.{name}")


def described(graph):
    return [(node.op, node.name, [used.name for used in node.all_input_nodes]) for node in graph.nodes]


def split(torch, **options):
    traced = torch.fx.symbolic_trace(network(torch))
    numbers = {"first": 0, "add": 0, "inner_0": 1, "inner_1": 1, "mul": 2, "relu": 2, "add_1": 0 if options.pop("circle", False) else 2}
    moved = {}
    done = passes(torch, "split_module").split_module(
        traced, traced, lambda node: numbers[node.name], moved, **options
    )
    return traced, done, moved


@pytest.mark.oracle
@pytest.mark.parametrize("options", [
    {}, {"keep_original_order": True}, {"keep_original_node_name": True}, {"keep_original_input_name": False},
    {"partition_affix": "part"}, {"tuple_return": True},
])  # fmt: skip
def test_split_module(options):
    torch = pytest.importorskip("torch")
    _, wanted, moved = split(torch, **options)
    traced, done, own_moved = split(rl, **options)
    assert described(done.graph) == described(wanted.graph) and own_moved == moved
    for (name, part), (other, other_part) in zip(done.named_children(), wanted.named_children(), strict=True):
        assert name == other and described(part.graph) == described(other_part.graph)
    x, y = rl.rand(2, 3), rl.rand(2, 3)
    for one, other in zip(done(x, y), traced(x, y), strict=True):
        assert one.equal(other)


def test_split_module_refuses_a_circle():
    with pytest.raises(RuntimeError, match="cycle exists between partitions"):
        split(rl, circle=True)


@pytest.mark.oracle
def test_shape_prop():
    torch = pytest.importorskip("torch")
    noted = []
    for each in (rl, torch):
        traced = each.fx.symbolic_trace(network(each))
        passes(each, "shape_prop").ShapeProp(traced).propagate(each.ones(2, 3), each.ones(2, 3))
        noted.append([
            (node.name, node.meta["type"].__name__, [tuple(map(str, meta)) for meta in metas(node)]) for node in traced.graph.nodes
        ])  # fmt: skip
    assert noted[0] == noted[1]


def metas(node):
    found = node.meta.get("tensor_meta", ())
    return [found] if hasattr(found, "shape") else list(found)


def test_fake_tensor_prop_computes_nothing():
    traced = rl.fx.symbolic_trace(network(rl))
    result = passes(rl, "fake_tensor_prop").FakeTensorProp(traced).propagate(rl.ones(2, 3), rl.ones(2, 3))
    assert rl._subclasses.fake_tensor.is_fake(result[0])
    assert all(node.meta["val"].shape == (2, 3) for node in traced.graph.nodes if node.op == "call_module")


def partitioned(torch, supported, **options):
    traced = torch.fx.symbolic_trace(network(torch))
    support = passes(torch, "operator_support").create_op_support(lambda modules, node: node.name in supported)
    partitioner = passes(torch, "infra.partitioner").CapabilityBasedPartitioner(traced, support, **options)
    found = partitioner.propose_partitions()
    groups = sorted(sorted(node.name for node in each.nodes) for each in found)
    return groups, partitioner.fuse_partitions(found)


@pytest.mark.oracle
@pytest.mark.parametrize("supported", [
    {"first", "add", "inner_0"}, {"first", "mul", "add_1"}, {"add", "relu"}, {"first", "add", "inner_1", "mul", "add_1"},
])  # fmt: skip
@pytest.mark.parametrize("single", [False, True])
def test_partitioner(supported, single):
    torch = pytest.importorskip("torch")
    wanted, _ = partitioned(torch, supported, allows_single_node_partition=single)
    groups, fused = partitioned(rl, supported, allows_single_node_partition=single)
    assert groups == wanted
    x, y = rl.rand(2, 3), rl.rand(2, 3)
    for one, other in zip(fused(x, y), network(rl)(x, y), strict=True):
        assert one.equal(other)


def test_pass_manager_orders_and_repeats():
    class Counting(PassBase):
        def call(self, graph_module):
            ran.append("counting")
            return PassResult(graph_module, len(ran) < 4)

    def last(graph_module):
        ran.append("last")

    ran, counting = [], Counting()
    manager = PassManager([pass_result_wrapper(last), counting], steps=5)
    manager.add_constraint(this_before_that_pass_constraint(counting, manager.passes[0]))
    traced = rl.fx.symbolic_trace(lambda x: x + 1)
    result = manager(traced)
    assert ran == ["counting", "last"] * 5 and result.modified and result.graph_module is traced
    with pytest.raises(TypeError, match="should be type PassResult"):
        PassManager([lambda graph_module: None])(traced)


def test_support_combines():
    traced = rl.fx.symbolic_trace(network(rl))
    modules = dict(traced.named_modules())
    add = next(node for node in traced.graph.nodes if node.name == "add")
    yes, no = create_op_support(lambda modules, node: True), create_op_support(lambda modules, node: False)
    assert any_chain(no, yes).is_node_supported(modules, add) and not chain(no, yes).is_node_supported(modules, add)
    assert not OpSupports.decline_if_node_in_names({"add"}).is_node_supported(modules, add)
    assert get_node_target(modules, traced.graph.find_nodes(op="call_module")[0]) == "torch.nn.Linear"


def test_graphs_compare_and_become_legal():
    one, other = (rl.fx.symbolic_trace(network(rl)) for _ in range(2))
    assert compare_graphs(one.graph, other.graph)
    first, *_, last = (node for node in one.graph.nodes if node.op == "call_function")
    first.prepend(last)
    assert not compare_graphs(one.graph, other.graph)
    legalize_graph(one).graph.lint()
    assert set(dict(HolderModule({"a": rl.nn.ReLU()}).named_children())) == {"a"}


def test_split_by_tags():
    traced = rl.fx.symbolic_trace(network(rl))
    for index, node in enumerate(node for node in traced.graph.nodes if node.op.startswith("call")):
        node.tag = "red" if index < 3 else "blue"
    done, moved = passes(rl, "split_utils").split_by_tags(traced, ["red", "blue"], return_fqn_mapping=True)
    assert [name for name, _ in done.named_children()] == ["red", "blue"] and moved["red.first"] == "first"
    x = rl.rand(2, 3)
    assert done(x, x)[0].equal(traced(x, x)[0])
