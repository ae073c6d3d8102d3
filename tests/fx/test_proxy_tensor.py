"""make_fx and capture: programs as graphs of aten operators."""

from __future__ import annotations

import operator

import pytest

import rushlight as rl
from rushlight.fx.fake_tensor import DataDependentError
from rushlight.fx.proxy_tensor import capture, make_fx


def targets(graph) -> list[str]:
    """The operators of a graph in order."""
    return [str(node.target) for node in graph.nodes if node.op == "call_function"]


def agree(program, *inputs, skip_version=False):
    """The module that make_fx gives, after checking that it computes what the program does, also on other values."""
    module = make_fx(program)(*inputs)
    module.graph.lint()
    for values in (inputs, [x * 2 + 1 if x.is_floating_point() else x for x in inputs]):
        expected, got = program(*[x.clone() for x in values]), module(*[x.clone() for x in values])
        expected, got = ((r if isinstance(r, tuple | list) else (r,)) for r in (expected, got))
        assert len(expected) == len(got)
        for want, have in zip(expected, got, strict=True):
            assert have.tolist() == want.tolist() and have.dtype is want.dtype
    return module


def test_composites_become_primitives():
    module = agree(lambda x, y: rl.softmax(x @ y.t(), -1).mean(), rl.randn(2, 3), rl.randn(4, 3))
    expected = ["aten.permute.default", "aten.mm.default", "aten._softmax.default", "aten.sum.dim_IntList", "aten.div.Tensor"]
    assert targets(module.graph) == expected
    assert [node.name for node in module.graph.nodes if node.op == "placeholder"] == ["arg0_1", "arg1_1"]


def test_nodes_know_their_value_and_their_line():
    def program(x):
        y = x.exp()  # first line
        return y + 1  # second line

    nodes = [node for node in make_fx(program)(rl.ones(2, 3)).graph.nodes if node.op == "call_function"]
    assert [node.meta["val"].shape for node in nodes] == [(2, 3)] * 2
    assert [node.meta["stack_trace"].splitlines()[1].strip() for node in nodes] == [
        "y = x.exp()  # first line",
        "return y + 1  # second line",
    ]
    assert all("test_proxy_tensor.py" in node.meta["stack_trace"] for node in nodes)


def test_in_place_writes_stay_in_order():
    def program(x):
        y = x * 2
        y.add_(1)
        z = y.exp()
        y.mul_(3)
        return z, y

    module = agree(program, rl.randn(3))
    assert "aten.add_.Tensor" in targets(module.graph) and "aten.mul_.Tensor" in targets(module.graph)


def test_writes_through_views_reach_the_base():
    def program(x):
        y = x.clone()
        row = y[0]
        row.zero_()
        y.t()[1] = 5.0
        return y, row

    agree(program, rl.randn(2, 3))


def test_writes_to_inputs_happen_to_inputs():
    def program(x):
        x[0].add_(10)
        return x * 2

    module = make_fx(program)(rl.zeros(2))
    x = rl.zeros(2)
    assert module(x).tolist() == [20, 0] and x.tolist() == [10, 0]


def test_detached_and_aliased_values_are_their_source():
    module = agree(lambda x: (x * 2).detach().exp()[...], rl.randn(3))
    assert targets(module.graph) == ["aten.mul.Tensor", "aten.exp.default"]


def test_tensors_from_outside_become_attributes():
    weight = rl.randn(3)
    module = agree(lambda x: x * weight + weight, rl.randn(3))
    constants = [node.target for node in module.graph.nodes if node.op == "get_attr"]
    assert constants == ["_tensor_constant0"] and module._tensor_constant0 is weight


def test_parameters_keep_their_names():
    layer = rl.nn.Linear(3, 2)
    names = {parameter._impl: name for name, parameter in layer.named_parameters()}
    captured = capture(layer, (rl.randn(4, 3),), names=names)
    assert set(captured.constants) == {"weight", "bias"} and captured.constants["bias"] is layer.bias
    qualified = {node.meta["qualified_name"] for node in captured.module.graph.nodes if node.op == "get_attr"}
    assert qualified == {"weight", "bias"}


def test_unused_constants_and_results_are_left_out():
    module = agree(lambda x: (x.exp(), x + rl.ones(3))[1], rl.randn(3))
    assert "aten.exp.default" not in targets(module.graph)


def test_literals_are_made_anew_by_every_call():
    def program(x):
        made = rl.tensor([1.0, 2.0])
        made.add_(x)
        return made

    module = make_fx(program)(rl.zeros(2))
    assert module(rl.ones(2)).tolist() == module(rl.ones(2)).tolist() == [2, 3]


def test_lists_of_tensors_and_keywords():
    module = agree(lambda x, y: rl.stack([x, y, x], dim=1).sum(dim=0), rl.randn(3), rl.randn(3))
    (cat,) = [node for node in module.graph.nodes if str(node.target) == "aten.cat.default"]
    assert len(cat.args[0]) == 3 and all(hasattr(item, "op") for item in cat.args[0])


def test_operators_with_several_results():
    module = agree(lambda x: (lambda values, order: values * 2 + order)(*x.sort(descending=True)), rl.randn(4))
    items = [node for node in module.graph.nodes if node.target is operator.getitem]
    assert [node.args[1] for node in items] == [0, 1] and items[0].meta["val"].dtype is rl.float32


def test_structures_go_in_and_out():
    def program(batch, scale=2.0):
        return {"sum": batch["a"] + batch["b"][0], "pair": (batch["a"] * scale, 3, None)}

    captured = capture(program, ({"a": rl.ones(2), "b": [rl.ones(2)]},), {"scale": 4.0})
    outputs = captured.module(rl.ones(2), rl.ones(2))
    result = captured.unflatten(outputs)
    assert result["sum"].tolist() == [2, 2] and result["pair"][0].tolist() == [4, 4] and result["pair"][1:] == (3, None)
    traced = make_fx(program)({"a": rl.ones(2), "b": [rl.ones(2)]})
    assert traced(rl.ones(2), rl.ones(2))["sum"].tolist() == [2, 2]


def test_one_tensor_given_twice_is_one_input():
    x = rl.randn(2)
    captured = capture(lambda a, b: a + b, (x, x))
    assert sum(node.op == "placeholder" for node in captured.module.graph.nodes) == 1


def test_inputs_are_returned_as_they_are():
    assert make_fx(lambda x: x)(rl.ones(2))(rl.zeros(2)).tolist() == [0, 0]
    assert make_fx(lambda x: (x, x.view(2)))(rl.ones(2))(rl.zeros(2))[1].tolist() == [0, 0]


def test_python_decides_once():
    module = make_fx(lambda x: x * 2 if x.shape[0] > 2 else x + 1)(rl.ones(3))
    assert targets(module.graph) == ["aten.mul.Tensor"]


def test_random_numbers_are_drawn_by_the_graph():
    module = make_fx(lambda x: x + rl.rand(3))(rl.zeros(3))
    rl.manual_seed(1)
    expected = rl.rand(3)
    rl.manual_seed(1)
    assert module(rl.zeros(3)).tolist() == expected.tolist() != module(rl.zeros(3)).tolist()


def test_recording_autograd_gives_its_operators():
    def program(x, w):
        y = (x @ w).tanh().sum()
        return rl.autograd.grad(y, w)[0]

    x, w = rl.randn(2, 3), rl.randn(3, 2, requires_grad=True)
    eager = program(x, w)
    w_input = w.detach()

    def functional(x, w):
        return program(x, w.detach().requires_grad_())

    module = make_fx(functional)(x, w_input)
    assert rl.allclose(module(x, w_input), eager) and "aten.mm.default" in targets(module.graph)


def test_what_depends_on_values_cannot_be_captured():
    with pytest.raises(DataDependentError, match="aten._local_scalar_dense.default needs the values of a tensor"):
        make_fx(lambda x: x if x.sum() > 0 else -x)(rl.ones(2))


def test_tensors_of_an_earlier_capture_are_refused():
    kept = []
    make_fx(lambda x: kept.append(x * 2) or x)(rl.ones(2))
    with pytest.raises(RuntimeError, match="a fake tensor from outside this capture reached it"):
        make_fx(lambda x: x + kept[0])(rl.ones(2))


def test_nothing_remains_after_an_error():
    def broken(x):
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        make_fx(broken)(rl.ones(2))
    assert (rl.ones(2) * 2).tolist() == [2, 2]
