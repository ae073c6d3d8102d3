"""Differentiable graphs and fusion groups: which nodes they take, and that they compute what eager code does."""

from __future__ import annotations

import pytest

import rushlight as torch
from rushlight.jit.function import Function
from rushlight.jit.ir.lint import lint
from rushlight.jit.ir.parser import parse_ir
from rushlight.jit.passes.gradient_formulas import FORMULAS
from rushlight.jit.passes.run import run_pass
from rushlight.jit.runtime.executor import run_function
from tests.jit.passes.support import check

MATRIX, ROW, CUBE = (2, 3), (3,), (2, 3, 4)
CASES = {
    "aten::add.Tensor": ("aten::add(%x, %y, %2)", MATRIX, ROW),
    "aten::add.Scalar": ("aten::add(%x, %2, %1)", MATRIX, None),
    "aten::sub.Tensor": ("aten::sub(%x, %y, %2)", ROW, MATRIX),
    "aten::sub.Scalar": ("aten::sub(%x, %2, %1)", MATRIX, None),
    "aten::mul.Tensor": ("aten::mul(%x, %y)", MATRIX, ROW),
    "aten::mul.Scalar": ("aten::mul(%x, %2)", MATRIX, None),
    "aten::div.Tensor": ("aten::div(%x, %y)", MATRIX, ROW),
    "aten::div.Scalar": ("aten::div(%x, %2)", MATRIX, None),
    "aten::transpose.int": ("aten::transpose(%x, %0, %2)", CUBE, None),
    "aten::unsqueeze": ("aten::unsqueeze(%x, %1)", MATRIX, None),
    "aten::view": ("aten::view(%x, %l)", CUBE, None),
    "aten::reshape": ("aten::reshape(%x, %l)", CUBE, None),
    "aten::expand": ("aten::expand(%x, %e, %false)", ROW, None),
    "aten::type_as": ("aten::type_as(%x, %y)", MATRIX, MATRIX),
    "aten::sum": ("aten::sum(%x, %none)", MATRIX, None),
    "aten::mean": ("aten::mean(%x, %none)", MATRIX, None),
    "aten::mm": ("aten::mm(%x, %y)", MATRIX, (3, 2)),
    "aten::addmm": ("aten::addmm(%x, %y, %z, %2, %1)", ROW, MATRIX, (3, 3)),
    "aten::linear": ("aten::linear(%x, %y, %z)", CUBE, (5, 4), (5,)),
    "aten::where.self": ("aten::where(%q, %x, %y)", MATRIX, MATRIX),
    "aten::softmax.int": ("aten::softmax(%x, %1, %none)", MATRIX, None),
    "aten::log_softmax.int": ("aten::log_softmax(%x, %1, %none)", MATRIX, None),
}
HEADER = """
graph(%x : Tensor, %y : Tensor, %z : Tensor, %q : Tensor):
  %0 : int = prim::Constant[value=0]()
  %1 : int = prim::Constant[value=1]()
  %2 : int = prim::Constant[value=2]()
  %false : bool = prim::Constant[value=0]()
  %none : NoneType = prim::Constant()
  %l : int[] = prim::Constant[value=[6, 4]]()
  %e : int[] = prim::Constant[value=[2, 3]]()
"""


def case(name: str) -> tuple[str, list]:
    call, *sizes = CASES.get(name, (f"{name.partition('.')[0]}(%x)", MATRIX, None))
    sizes += [None] * (3 - len(sizes))
    tensors = [torch.rand(1 if size is None else size, dtype=torch.float64) + 0.3 for size in sizes]
    return f"{HEADER}  %r : Tensor = {call}\n  %s : Tensor = aten::tanh(%r)\n  return (%s)\n", tensors


@pytest.mark.parametrize("name", FORMULAS)
def test_formulas_give_the_gradients_of_autograd(name):
    text, tensors = case(name)
    condition = torch.tensor([[True, False, True], [False, True, False]])
    eager = [each.clone().requires_grad_() for each in tensors]
    wanted = run_function(Function("plain", parse_ir(text)), [*eager, condition])
    grad = torch.rand_like(wanted)
    wanted.backward(grad)
    graph = parse_ir(text)
    assert len(run_pass("CreateAutodiffSubgraphs", graph, 2)) == 1
    lint(graph)
    inputs = [each.clone().requires_grad_() for each in tensors]
    found = run_function(Function("grouped", graph), [*inputs, condition])
    torch.testing.assert_close(found, wanted)
    assert "DifferentiableGraph" in found.grad_fn.name()
    found.backward(grad)
    for own, other in zip(inputs, eager, strict=True):
        torch.testing.assert_close(own.grad, other.grad)


def test_a_graph_without_gradients_is_run_as_it_is():
    text, tensors = case("aten::mul.Tensor")
    graph = parse_ir(text)
    run_pass("CreateAutodiffSubgraphs", graph, 2)
    found = run_function(Function("grouped", graph), [*tensors, tensors[0]])
    torch.testing.assert_close(found, torch.tanh(tensors[0] * tensors[1]))
    assert found.grad_fn is None


APART = """
    graph(%x : Tensor, %y : Tensor):
      %1 : int = prim::Constant[value=1]()
      %a : Tensor = aten::mul(%x, %y)
      %n : int = aten::size(%x, %1)
      %c : Tensor = aten::cumsum(%a, %1, %1)
      %b : Tensor = aten::tanh(%a)
      %d : Tensor = aten::mul(%b, %n)
      %e : Tensor = aten::add(%c, %d, %1)
      %f : Tensor = aten::exp(%e)
      return (%f)
"""
GROUPED = """
    graph(%x : Tensor, %y : Tensor):
      %1 : int = prim::Constant[value=1]()
      %n : int = aten::size(%x, %1)
      %a : Tensor, %d : Tensor = prim::{kind}_0(%x, %y, %n)
      %c : Tensor = aten::cumsum(%a, %1, %1)
      %f : Tensor = prim::{kind}_1(%c, %d)
      return (%f)
    with prim::{kind}_0 = graph(%x : Tensor, %y : Tensor, %n : int):
      %a : Tensor = aten::mul(%x, %y)
      %b : Tensor = aten::tanh(%a)
      %d : Tensor = aten::mul(%b, %n)
      return (%a, %d)
    with prim::{kind}_1 = graph(%c : Tensor, %d : Tensor):
      %1 : int = prim::Constant[value=1]()
      %e : Tensor = aten::add(%c, %d, %1)
      %f : Tensor = aten::exp(%e)
      return (%f)
"""


@pytest.mark.parametrize(("name", "kind"), [("CreateAutodiffSubgraphs", "DifferentiableGraph"), ("FuseGraph", "FusionGroup"),
                                            ("FuseTensorExprs", "TensorExprGroup")])  # fmt: skip
def test_groups_take_in_what_stands_apart(name, kind):
    check(name, APART, GROUPED.format(kind=kind))


@pytest.mark.parametrize("kind", ["DifferentiableGraph", "FusionGroup", "TensorExprGroup"])
def test_groups_run(kind):
    x, y = torch.rand(2, 3), torch.rand(2, 3)
    wanted = run_function(Function("plain", parse_ir(APART)), [x, y])
    torch.testing.assert_close(run_function(Function("grouped", parse_ir(GROUPED.format(kind=kind))), [x, y]), wanted)


def test_small_groups_are_inlined():
    wanted = """
    graph(%x : Tensor, %y : Tensor):
      %1 : int = prim::Constant[value=1]()
      %n : int = aten::size(%x, %1)
      %a : Tensor, %d : Tensor = prim::DifferentiableGraph_0(%x, %y, %n)
      %c : Tensor = aten::cumsum(%a, %1, %1)
      %e : Tensor = aten::add(%c, %d, %1)
      %f : Tensor = aten::exp(%e)
      return (%f)
    with prim::DifferentiableGraph_0 = graph(%x : Tensor, %y : Tensor, %n : int):
      %a : Tensor = aten::mul(%x, %y)
      %b : Tensor = aten::tanh(%a)
      %d : Tensor = aten::mul(%b, %n)
      return (%a, %d)
    """
    check("InlineAutodiffSubgraphs", GROUPED.format(kind="DifferentiableGraph"), wanted, 3)


def test_what_is_written_to_is_in_no_group():
    text = """
    graph(%x : Tensor, %y : Tensor):
      %1 : int = prim::Constant[value=1]()
      %a : Tensor = aten::mul(%x, %y)
      %b : Tensor = aten::add_(%a, %y, %1)
      %c : Tensor = aten::tanh(%y)
      %d : Tensor = aten::mul(%a, %c)
      return (%d)
    """
    check("CreateAutodiffSubgraphs", text, text, 2)


def test_what_has_no_formula_is_named():
    with pytest.raises(RuntimeError, match="aten::size.*can't be differentiated"):
        run_pass("Differentiate", parse_ir(APART))


STRAIGHT = """
    graph(%x : Tensor, %y : Tensor):
      %1 : int = prim::Constant[value=1]()
      %a : Tensor = aten::mul(%x, %y)
      %b : Tensor = aten::tanh(%a)
      %c : Tensor = aten::add(%b, %y, %1)
      %d : Tensor = aten::cumsum(%c, %1, %1)
      return (%d)
"""


@pytest.mark.oracle
def test_torch_makes_the_same_group():
    oracle = pytest.importorskip("torch")
    theirs = oracle._C.parse_ir(STRAIGHT)
    oracle._C._jit_pass_create_autodiff_subgraphs(theirs, 2)
    graph = parse_ir(STRAIGHT)
    run_pass("_jit_pass_create_autodiff_subgraphs", graph, 2)
    kinds = [node.kind() for node in theirs.nodes() if node.kind() != "prim::Constant"]
    assert [node.kind for node in graph.nodes if node.kind != "prim::Constant"] == kinds
    inner = [node.kind() for node in theirs.findNode("prim::DifferentiableGraph").g("Subgraph").nodes()]
    body = graph.find_node("prim::DifferentiableGraph")["Subgraph"]
    assert sorted(node.kind for node in body.nodes) == sorted(inner)
