"""Passes over captured graphs: common subexpressions, folding of constants, recorded asserts, matching by schema."""

import operator

import pytest

import rushlight as torch
from rushlight import fx
from rushlight.fx.experimental.const_fold import split_const_subgraphs
from rushlight.fx.experimental.proxy_tensor import make_fx
from rushlight.fx.experimental.rewriter import RewritingTracer
from rushlight.fx.passes.dialect.common.cse_pass import CSEPass, get_CSE_banned_ops
from rushlight.fx.passes.utils.matcher_utils import SubgraphMatcher
from rushlight.fx.subgraph_rewriter import replace_pattern_with_filters


def count(module, name):
    return sum(name in str(node.target) for node in module.graph.nodes if node.op == "call_function")


def test_cse_merges_calls_with_equal_arguments_and_defaults_written_out():
    def program(x):
        return x.sum(dim=1) + x.sum(dim=1, keepdim=False) + x.cos().sum(1) + x.cos().sum(1)

    traced = make_fx(program)(torch.randn(2, 3))
    merged, modified = CSEPass()(traced)
    x = torch.randn(2, 3)
    assert modified and (count(merged, "sum"), count(merged, "cos")) == (2, 1)
    assert torch.equal(merged(x), program(x))
    assert not CSEPass()(merged).modified


def test_cse_keeps_values_apart_across_a_write_and_random_draws():
    def program(x):
        before = x * 2
        x.add_(1)
        return before, x * 2, torch.rand_like(x), torch.rand_like(x)

    merged = CSEPass(get_CSE_banned_ops())(make_fx(program)(torch.ones(3))).graph_module
    before, after, one, other = merged(torch.ones(3))
    assert torch.equal(before, torch.full((3,), 2.0)) and torch.equal(after, torch.full((3,), 4.0))
    assert not torch.equal(one, other)


def test_cse_tells_numbers_of_types_apart():
    def program(x):
        return x.int() * 1, x.int() * 1.0

    merged = CSEPass()(make_fx(program)(torch.ones(3))).graph_module
    assert [value.dtype for value in merged(torch.ones(3))] == [torch.int32, torch.float32]


class Scaled(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.randn(2, 3))
        self.lin = torch.nn.Linear(3, 3)

    def forward(self, x):
        return x - (self.weight + self.weight) + self.lin(self.weight), x * 2


def test_constants_fold_once_into_attributes():
    module = Scaled()
    folded = split_const_subgraphs(module)
    assert folded.const_subgraph_module is not None
    assert not [node for node in folded.graph.nodes if node.op == "call_module"]
    x = torch.randn(2, 3)
    for _ in range(2):
        for one, other in zip(folded(x), module(x), strict=True):
            assert torch.equal(one, other)


def test_nothing_folds_where_a_callback_forbids():
    folded = split_const_subgraphs(Scaled(), lambda node: node.target in (operator.add, "lin"))
    assert folded.const_subgraph_module is None


def test_asserts_are_recorded():
    shift = 1

    class Checked(torch.nn.Module):
        def forward(self, x):
            y: torch.Tensor = x + shift
            assert y.size(0) > 2, "too few rows"
            return y

    module = Checked()
    traced = fx.GraphModule(module, RewritingTracer().trace(module))
    assert torch.equal(traced(torch.ones(3)), torch.full((3,), 2.0))
    with pytest.raises(AssertionError, match="too few rows"):
        traced(torch.ones(2))


def test_matcher_completes_arguments_by_schema_and_ignores_literals_on_request():
    def pooled(x):
        return torch.ops.aten.max_pool2d_with_indices.default(x, [2, 2], stride=[2, 2])

    def pattern(x, kernel_size, stride):
        return torch.ops.aten.max_pool2d_with_indices.default(x, kernel_size, stride, padding=[0, 0])

    graph = fx.symbolic_trace(pooled).graph
    assert len(SubgraphMatcher(fx.symbolic_trace(pattern).graph).match(graph)) == 1

    plus_one = make_fx(lambda x: x + 1)(torch.ones(3)).graph
    plus_two = make_fx(lambda x: x + 2)(torch.ones(3)).graph
    assert SubgraphMatcher(plus_two).match(plus_one) == []
    assert len(SubgraphMatcher(plus_two, ignore_literals=True).match(plus_one)) == 1


def test_filters_choose_matches_and_replacements_are_told():
    def program(x, y):
        return torch.add(x, 2) * torch.add(x, y)

    traced = fx.symbolic_trace(program)
    done = replace_pattern_with_filters(
        traced, lambda a, b: torch.add(a, b), lambda a, b: torch.mul(a, b),
        [lambda match, graph, pattern: isinstance(match.placeholder_nodes[1], int)],
    )  # fmt: skip
    assert [node.target for match in done for node in match.replacements] == [torch.mul]
    assert torch.equal(traced(torch.ones(2), torch.ones(2)), torch.full((2,), 4.0))


def test_replacement_may_depend_on_the_match():
    traced = fx.symbolic_trace(lambda x: torch.add(x, 2) + torch.add(x, 3))

    def twice(match, graph, pattern):
        number = match.placeholder_nodes[1]
        return fx.symbolic_trace(lambda a, b: torch.mul(a, 10 * number)).graph

    replace_pattern_with_filters(traced, lambda a, b: torch.add(a, b), replacement_callback=twice)
    assert torch.equal(traced(torch.ones(1)), torch.tensor([50.0]))


class Pair(metaclass=fx.ProxyableClassMeta):
    def __init__(self, left, right):
        self.left, self.right = left, right

    def add(self, other):
        return Pair(self.left + other.left, self.right + other.right)


def test_objects_of_proxyable_classes_are_made_by_the_graph():
    def program(x: Pair, y):
        return x.add(Pair(y, y)).add(Pair(torch.zeros(2), torch.ones(2)))

    traced = fx.symbolic_trace(program)
    result = traced(Pair(torch.ones(2), torch.ones(2)), torch.ones(2))
    assert torch.equal(result.left, torch.full((2,), 2.0)) and torch.equal(result.right, torch.full((2,), 3.0))


def test_proxies_without_a_tracer_write_into_their_graph():
    graph = fx.Graph()
    a, b = fx.Proxy(graph.placeholder("a")), fx.Proxy(graph.placeholder("b"))
    graph.output((torch.relu(a) + b).node)
    assert torch.equal(fx.GraphModule({}, graph)(-torch.ones(2), torch.ones(2)), torch.ones(2))


def test_arguments_by_position_reach_variadic_parameters():
    traced = fx.symbolic_trace(lambda *args: args[0] + args[1], concrete_args=(fx.PH, fx.PH))
    assert torch.equal(traced(torch.ones(2), torch.ones(2)), torch.full((2,), 2.0))


def test_nodes_know_the_modules_around_them():
    module = torch.nn.Sequential(torch.nn.Sequential(torch.nn.ReLU()))
    node = next(node for node in fx.symbolic_trace(module).graph.nodes if node.op == "call_module")
    assert list(node.meta["nn_module_stack"].values()) == [("0", torch.nn.Sequential), ("0.0", torch.nn.ReLU)]


@pytest.mark.parametrize("change", [lambda x: x.resize_(2), lambda x: x.set_(torch.ones(2))])
def test_changes_of_memory_are_not_lost_without_a_word(change):
    def program(x):
        y = x * 1
        change(y)
        return y + 1

    with pytest.raises(RuntimeError, match="which memory a tensor shows"):
        make_fx(program)(torch.ones(4))


def test_functions_of_quantized_tensors_are_recorded_as_themselves():
    traced = fx.symbolic_trace(lambda x: torch.dequantize(torch.quantize_per_tensor(x, 0.5, 3, torch.quint8)))
    assert [node.target for node in traced.graph.nodes if node.op == "call_function"] == [
        torch.quantize_per_tensor, torch.dequantize
    ]
