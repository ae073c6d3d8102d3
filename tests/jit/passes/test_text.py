"""Passes on texts: IR in, IR out."""

from __future__ import annotations

import pytest

import rushlight as torch
from rushlight.jit.ir.parser import parse_ir
from rushlight.jit.passes.registry import PASSES
from rushlight.jit.passes.run import pass_names, run_pass
from tests.jit.passes.support import after, canonical, check

CANONICALIZE_OPS = (
    "CanonicalizeOps",
    """
    graph(%x : Tensor):
      %two : int = prim::Constant[value=2]()
      %one : int = prim::Constant[value=1]()
      %t : Tensor = prim::Constant[value={3}]()
      %a : Tensor = aten::mul(%x, %t)
      %l : Tensor[] = aten::chunk(%a, %two, %one)
      %b : Tensor, %c : Tensor = prim::ListUnpack(%l)
      return (%b, %c)
    """,
    """
    graph(%x : Tensor):
      %t : int = prim::Constant[value=3]()
      %a : Tensor = aten::mul(%x, %t)
      %b : Tensor, %c : Tensor = prim::ConstantChunk[chunks=2, dim=1](%a)
      return (%b, %c)
    """,
)
GRAD_OF = (
    "LowerGradOf",
    """
    graph(%g : Tensor, %x : Tensor):
      %a : Tensor = prim::GradOf[name="aten::mul"](%g)
        block0():
          %b : Tensor = aten::mul(%g, %x)
          -> (%b)
      return (%a)
    """,
    """
    graph(%g : Tensor, %x : Tensor):
      %q : bool = prim::AutogradAnyNonZero(%g)
      %a : Tensor = prim::If(%q)
        block0():
          %b : Tensor = aten::mul(%g, %x)
          -> (%b)
        block1():
          %z : AutogradZeroTensor = prim::AutogradZero()
          -> (%z)
      return (%a)
    """,
)
AUTOGRAD_ZERO = (
    "specializeAutogradZero",
    """
    graph(%g : Tensor, %x : Tensor):
      %z : AutogradZeroTensor = prim::AutogradZero()
      %q : bool = prim::AutogradAnyNonZero(%z)
      %a : Tensor = prim::If(%q)
        block0():
          %b : Tensor = aten::mul(%z, %x)
          -> (%b)
        block1():
          -> (%z)
      %c : Tensor = prim::AutogradAdd(%g, %a)
      %d : Tensor = aten::mul(%x, %x)
      %e : Tensor = prim::AutogradAdd(%d, %d)
      return (%c, %e)
    """,
    """
    graph(%g : Tensor, %x : Tensor):
      %z : AutogradZeroTensor = prim::AutogradZero()
      %1 : int = prim::Constant[value=1]()
      %d : Tensor = aten::mul(%x, %x)
      %e : Tensor = aten::add(%d, %d, %1)
      return (%g, %e)
    """,
)
PROFILED = (
    "ClearProfilingInformation",
    """
    graph(%x : Float(2, 3, device=cpu)):
      %a : Float(2, 3) = prim::profile[profiled_type=Float(2, 3), seen_none=0](%x)
      %b : Float(2, 3) = aten::relu(%a)
       = prim::profile()
      return (%b)
    """,
    """
    graph(%x : Tensor):
      %b : Tensor = aten::relu(%x)
      return (%b)
    """,
)
UNDEFINED = (
    "ClearUndefinedness",
    "graph(%x : AutogradZeroTensor, %l : AutogradZeroTensor[]):\n  return (%x, %l)",
    "graph(%x : Tensor, %l : Tensor[]):\n  return (%x, %l)",
)
ALIASES = (
    "NormalizeOps",
    """
    graph(%x : Tensor, %y : Tensor, %p : bool, %q : bool):
      %1 : int = prim::Constant[value=1]()
      %a : Tensor = aten::multiply(%x, %y)
      %b : Tensor = aten::true_divide(%a, %y)
      %c : Tensor = aten::rsub(%b, %x, %1)
      %d : bool = aten::__isnot__(%p, %q)
      return (%c, %d)
    """,
    """
    graph(%x : Tensor, %y : Tensor, %p : bool, %q : bool):
      %1 : int = prim::Constant[value=1]()
      %a : Tensor = aten::mul(%x, %y)
      %b : Tensor = aten::div(%a, %y)
      %c : Tensor = aten::sub(%x, %b, %1)
      %d : bool = aten::ne(%p, %q)
      return (%c, %d)
    """,
)
MODIFIED_LOOP = (
    "CanonicalizeModifiedLoops",
    """
    graph(%x : int, %n : int, %q : bool):
      %a : int = prim::Loop(%n, %q, %x)
        block0(%i : int, %b : int):
          %c : int = aten::add(%b, %i)
          %r : bool = aten::lt(%c, %n)
          -> (%r, %c)
      return (%a)
    """,
    """
    graph(%x : int, %n : int, %q : bool):
      %0 : int = prim::Constant[value=0]()
      %1 : int = prim::Constant[value=1]()
      %most : int = prim::Constant[value=9223372036854775807]()
      %runs : bool = aten::gt(%n, %0)
      %begins : bool = aten::__and__(%runs, %q)
      %a : int, %k : int = prim::Loop(%most, %begins, %x, %0)
        block0(%i : int, %b : int, %j : int):
          %c : int = aten::add(%b, %j)
          %r : bool = aten::lt(%c, %n)
          %s : int = aten::add(%j, %1)
          %t : bool = aten::lt(%s, %n)
          %u : bool = aten::__and__(%t, %r)
          -> (%u, %c, %s)
      return (%a)
    """,
)
IN_PLACE_RELU = (
    "FunctionalToInplaceActivation",
    """
    graph(%x : Tensor, %y : Tensor):
      %1 : int = prim::Constant[value=1]()
      %a : Tensor = aten::add(%x, %y, %1)
      %b : Tensor = aten::relu(%a)
      %c : Tensor = aten::relu(%x)
      return (%b, %c)
    """,
    """
    graph(%x : Tensor, %y : Tensor):
      %1 : int = prim::Constant[value=1]()
      %a : Tensor = aten::add(%x, %y, %1)
      %b : Tensor = aten::relu_(%a)
      %c : Tensor = aten::relu(%x)
      return (%b, %c)
    """,
)
NEGATIONS = (
    "PeepholeOptimizeNonTensor",
    """
    graph(%x : int, %y : int, %p : bool, %f : float):
      %0 : int = prim::Constant[value=0]()
      %zero : float = prim::Constant[value=0.]()
      %q : bool = aten::lt(%x, %y)
      %a : bool = aten::__not__(%q)
      %b : bool = aten::eq(%x, %x)
      %c : int = aten::add(%x, %0)
      %d : float = aten::add(%f, %zero)
      %e : bool = aten::__not__(%p)
      %g : bool = aten::__not__(%e)
      return (%a, %b, %c, %d, %g)
    """,
    """
    graph(%x : int, %y : int, %p : bool, %f : float):
      %true : bool = prim::Constant[value=1]()
      %zero : float = prim::Constant[value=0.]()
      %q : bool = aten::lt(%x, %y)
      %a : bool = aten::ge(%x, %y)
      %r : bool = aten::__not__(%q)
      %b : bool = aten::eq(%x, %x)
      %0 : int = prim::Constant[value=0]()
      %c : int = aten::add(%x, %0)
      %d : float = aten::add(%f, %zero)
      %e : bool = aten::__not__(%p)
      %g : bool = aten::__not__(%e)
      return (%a, %true, %x, %d, %p)
    """,
)
SUMS = (
    "PeepholeOptimizeNonTensor",
    """
    graph(%x : int):
      %2 : int = prim::Constant[value=2]()
      %7 : int = prim::Constant[value=7]()
      %a : int = aten::add(%x, %2)
      %b : int = aten::sub(%a, %7)
      %c : int = aten::mul(%7, %b)
      %d : int = aten::ceil(%c)
      return (%d)
    """,
    """
    graph(%x : int):
      %2 : int = prim::Constant[value=2]()
      %5 : int = prim::Constant[value=5]()
      %7 : int = prim::Constant[value=7]()
      %a : int = aten::add(%x, %2)
      %e : int = aten::sub(%x, %5)
      %b : int = aten::sub(%a, %7)
      %c : int = aten::mul(%e, %7)
      %d : int = aten::ceil(%c)
      return (%c)
    """,
)
DICT = (
    "PeepholeOptimizeDictIdioms",
    """
    graph(%x : Tensor, %y : Tensor):
      %a : str = prim::Constant[value="a"]()
      %b : str = prim::Constant[value="b"]()
      %d : Dict(str, Tensor) = prim::DictConstruct(%a, %x, %b, %y)
      %n : int = aten::len(%d)
      %v : Tensor = aten::__getitem__(%d, %b)
      return (%n, %v)
    """,
    """
    graph(%x : Tensor, %y : Tensor):
      %two : int = prim::Constant[value=2]()
      %a : str = prim::Constant[value="a"]()
      %b : str = prim::Constant[value="b"]()
      %d : Dict(str, Tensor) = prim::DictConstruct(%a, %x, %b, %y)
      %n : int = aten::len(%d)
      %v : Tensor = aten::__getitem__(%d, %b)
      return (%two, %y)
    """,
)
LENGTH = (
    "PeepholeOptimizeListIdioms",
    """
    graph(%l : int[]):
      %3 : int = prim::Constant[value=3]()
      %n : int = aten::len(%l)
      %q : bool = aten::eq(%n, %3)
      %a : int = prim::If(%q)
        block0():
          %m : int = aten::len(%l)
          -> (%m)
        block1():
          %k : int = aten::len(%l)
          -> (%k)
      return (%a)
    """,
    """
    graph(%l : int[]):
      %3 : int = prim::Constant[value=3]()
      %n : int = aten::len(%l)
      %q : bool = aten::eq(%n, %3)
      %a : int = prim::If(%q)
        block0():
          -> (%3)
        block1():
          %k : int = aten::len(%l)
          -> (%k)
      return (%a)
    """,
)
SIMPLE_TUPLES = (
    "LowerSimpleTuples",
    """
    graph(%x : Tensor, %y : Tensor, %n : int, %t : (Tensor, int)):
      %true : bool = prim::Constant[value=1]()
      %p : (Tensor, Tensor) = prim::TupleConstruct(%x, %y)
      %q : (Tensor, Tensor) = prim::Loop(%n, %true, %p)
        block0(%i : int, %r : (Tensor, Tensor)):
          %a : Tensor, %b : Tensor = prim::TupleUnpack(%r)
          %s : (Tensor, Tensor) = prim::TupleConstruct(%b, %a)
          -> (%true, %s)
      %c : Tensor, %d : Tensor = prim::TupleUnpack(%q)
      %e : Tensor, %f : int = prim::TupleUnpack(%t)
      return (%c, %d, %f)
    """,
    """
    graph(%x : Tensor, %y : Tensor, %n : int, %t : (Tensor, int)):
      %true : bool = prim::Constant[value=1]()
      %c : Tensor, %d : Tensor = prim::Loop(%n, %true, %x, %y)
        block0(%i : int, %a : Tensor, %b : Tensor):
          -> (%true, %b, %a)
      %e : Tensor, %f : int = prim::TupleUnpack(%t)
      return (%c, %d, %f)
    """,
)
FORK = (
    "InlineForkWait",
    """
    graph(%x : Tensor):
      %f : Future[Tensor] = prim::fork_0(%x)
      %a : Tensor = aten::relu(%x)
      %b : Tensor = aten::wait(%f)
      return (%a, %b)
    with prim::fork_0 = graph(%y : Tensor):
      %c : Tensor = aten::neg(%y)
      return (%c)
    """,
    """
    graph(%x : Tensor):
      %c : Tensor = aten::neg(%x)
      %a : Tensor = aten::relu(%x)
      return (%a, %c)
    """,
)
REFINED_TUPLES = (
    "RefineTupleTypes",
    """
    graph(%x : Float(2, 3), %y : int):
      %t : (Tensor, int) = prim::TupleConstruct(%x, %y)
      %a : Tensor, %b : int = prim::TupleUnpack(%t)
      return (%a, %b)
    """,
    """
    graph(%x : Float(2, 3), %y : int):
      %t : (Float(2, 3), int) = prim::TupleConstruct(%x, %y)
      %a : Float(2, 3), %b : int = prim::TupleUnpack(%t)
      return (%a, %b)
    """,
)
PURE = (
    "CreateFunctionalGraphs",
    """
    graph(%x : Tensor, %y : Tensor):
      %1 : int = prim::Constant[value=1]()
      %a : Tensor = aten::mul(%y, %y)
      %b : Tensor = aten::relu(%a)
      %c : Tensor = aten::relu(%y)
      %d : Tensor = aten::add_(%c, %b, %1)
      return (%d)
    """,
    """
    graph(%x : Tensor, %y : Tensor):
      %1 : int = prim::Constant[value=1]()
      %b : Tensor = prim::FunctionalGraph_0(%y)
      %c : Tensor = aten::relu(%y)
      %d : Tensor = aten::add_(%c, %b, %1)
      return (%d)
    with prim::FunctionalGraph_0 = graph(%y : Tensor):
      %a : Tensor = aten::mul(%y, %y)
      %b : Tensor = aten::relu(%a)
      return (%b)
    """,
)
WIDE_BIAS = """
    graph(%x : Float(2, 3), %y : Float(3, 4), %c : Float(3, 2, 4)):
      %1 : int = prim::Constant[value=1]()
      %v : Float(2, 4) = aten::mm(%x, %y)
      %w : Float(3, 2, 4) = aten::add(%v, %c, %1)
      return (%w)
"""
DIVISIONS = """
    graph(%x : Tensor, %n : int, %f : float):
      %a : Tensor = aten::div(%x, %n)
      %b : Tensor = aten::div(%a, %f)
      %c : Tensor = aten::gelu(%b)
      return (%c)
"""
CASES = [CANONICALIZE_OPS, GRAD_OF, AUTOGRAD_ZERO, PROFILED, UNDEFINED, ALIASES, MODIFIED_LOOP, IN_PLACE_RELU, NEGATIONS, SUMS,
         DICT, SIMPLE_TUPLES, FORK, REFINED_TUPLES, PURE, ("FuseAddMM", WIDE_BIAS, WIDE_BIAS),
         ("InlineFunctionalGraphs", PURE[2], PURE[1]), ("Lint", WIDE_BIAS, WIDE_BIAS)]  # fmt: skip


@pytest.mark.parametrize(("name", "before", "wanted"), CASES, ids=[case[0] for case in CASES])
def test_a_pass_makes_this_of_that(name, before, wanted):
    check(name, before, wanted)


def test_lengths_are_refined_where_they_were_compared():
    check(*LENGTH, refine_list_len=True)


def test_old_operators_get_their_old_meaning():
    check(
        "ReplaceOldOperatorsWithUpgraders",
        DIVISIONS,
        """
        graph(%x : Tensor, %n : int, %f : float):
          %mode : str = prim::Constant[value="trunc"]()
          %none : str = prim::Constant[value="none"]()
          %floats : bool = aten::is_floating_point(%x)
          %a : Tensor = prim::If(%floats)
            block0():
              %d : Tensor = aten::div(%x, %n)
              -> (%d)
            block1():
              %e : Tensor = aten::div(%x, %n, %mode)
              -> (%e)
          %b : Tensor = aten::div(%a, %f)
          %c : Tensor = aten::gelu(%b, %none)
          return (%c)
        """,
        3,
    )
    assert canonical(after("ReplaceOldOperatorsWithUpgraders", DIVISIONS, 10)) == canonical(parse_ir(DIVISIONS))


SUM_OF_PRODUCTS = """
    graph(%a : Float(2, 3), %b : Float(3, 2), %c : Float(2, 3), %d : Float(3, 2)):
      %1 : int = prim::Constant[value=1]()
      %p : Tensor = aten::mm(%a, %b)
      %q : Tensor = aten::mm(%c, %d)
      %r : Tensor = aten::mm(%a, %d)
      %s : Tensor = aten::mm(%c, %b)
      %t : Tensor = aten::add(%p, %q, %1)
      %u : Tensor = aten::add(%r, %s, %1)
      %v : Tensor = aten::add(%t, %u, %1)
      return (%v)
"""
SHARED_FACTOR = """
    graph(%a : Float(2, 3), %b : Float(3, 2), %c : Float(3, 2), %d : Float(3, 2), %e : Float(3, 2)):
      %p : Tensor = aten::mm(%a, %b)
      %q : Tensor = aten::mm(%a, %c)
      %r : Tensor = aten::mm(%a, %d)
      %s : Tensor = aten::mm(%a, %e)
      return (%p, %q, %r, %s)
"""


def test_sums_of_products_are_one_product():
    wanted = """
    graph(%a : Float(2, 3), %b : Float(3, 2), %c : Float(2, 3), %d : Float(3, 2)):
      %v : Tensor = prim::MMTreeReduce(%a, %c, %a, %c, %b, %d, %d, %b)
      return (%v)
    """
    check("BatchMM", SUM_OF_PRODUCTS, wanted)


def test_products_with_a_shared_factor_are_one_product():
    wanted = """
    graph(%a : Float(2, 3), %b : Float(3, 2), %c : Float(3, 2), %d : Float(3, 2), %e : Float(3, 2)):
      %p : Tensor, %q : Tensor, %r : Tensor, %s : Tensor = prim::MMBatchSide[side=0](%a, %b, %c, %d, %e)
      return (%p, %q, %r, %s)
    """
    check("BatchMM", SHARED_FACTOR, wanted)


SHAPES = """
    graph(%x : {x}, %w : {w}, %n : int):
      %0 : int = prim::Constant[value=0]()
      %1 : int = prim::Constant[value=1]()
      %true : bool = prim::Constant[value=1]()
      %a : Tensor = aten::mm(%x, %w)
      %b : Tensor = aten::gt(%a, %0)
      %c : Tensor = aten::t(%a)
      %l : Tensor[] = prim::ListConstruct(%a, %a)
      %d : Tensor = aten::cat(%l, %1)
      %e : Tensor = aten::select(%a, %0, %n)
      %f : Tensor = prim::Loop(%n, %true, %a)
        block0(%i : int, %g : Tensor):
          %h : Tensor = aten::add(%g, %c, %1)
          -> (%true, %h)
      return (%b, %c, %d, %e, %f)
"""


def test_shapes_follow_from_the_inputs():
    complete = SHAPES.format(x="Float(2, 3, strides=[3, 1], device=cpu)", w="Float(3, 2, strides=[2, 1], device=cpu)")
    found = {value.debug_name: value.type.ir_text for value in _values(after("PropagateInputShapes", complete))}
    assert found["b"] == "Bool(2, 2, strides=[2, 1], device=cpu)"
    assert found["c"] == "Float(2, 2, strides=[1, 2], device=cpu)"
    assert found["d"] == "Float(2, 4, strides=[4, 1], device=cpu)"
    assert found["e"] == "Tensor"
    assert found["f"] == found["h"] == "Float(2, 2, strides=[2, 1], device=cpu)"


def test_unknown_sizes_stay_unknown():
    partial = SHAPES.format(x="Float(*, 3)", w="Float(3, 2)")
    found = {value.debug_name: value.type.ir_text for value in _values(after("PropagateInputShapes", partial))}
    assert found["b"] == "Bool(*, 2)"
    assert found["c"] == "Float(2, *)"
    assert found["d"] == "Float(*, 4)"


def test_gradients_are_required_along_the_data():
    text = SHAPES.format(x="Float(2, 3, requires_grad=0)", w="Float(3, 2, requires_grad=1)")
    graph = after("PropagateInputShapes", text)
    run_pass("PropagateRequiresGrad", graph)
    found = {value.debug_name: value.type.requires_grad for value in _values(graph) if value.type.kind() == "TensorType"}
    assert found["a"] and found["d"] and found["f"]
    assert not found["b"]


def _values(graph):
    return [value for node in graph.all_nodes() for value in node.outputs]


def test_canonical_graphs_are_numbered_in_order():
    graph = parse_ir("graph(%7 : Tensor):\n  %3 : Tensor = aten::relu(%7)\n  %9 : Tensor = aten::neg(%3)\n  return (%9)\n")
    wanted = "graph(%0 : Tensor):\n  %1 : Tensor = aten::relu(%0)\n  %2 : Tensor = aten::neg(%1)\n  return (%2)\n"
    assert str(run_pass("Canonicalize", graph)) == wanted


def test_python_functions_in_place_are_errors():
    graph = parse_ir('graph(%x : Tensor):\n  %y : Tensor = prim::PythonOp[name="f", inplace=1](%x)\n  return (%y)\n')
    with pytest.raises(RuntimeError, match="inplace f not supported in the JIT"):
        run_pass("CheckInplace", graph)


def test_dropout_that_may_train_stays():
    graph = parse_ir(
        "graph(%x : Tensor, %t : bool):\n  %p : float = prim::Constant[value=0.5]()\n"
        "  %y : Tensor = aten::dropout(%x, %p, %t)\n  return (%y)\n"
    )
    with pytest.raises(RuntimeError, match="Dropout is in training"):
        run_pass("RemoveDropout", graph)


def test_an_unknown_pass_is_named_with_likely_ones():
    with pytest.raises(ValueError, match="there is no pass 'tuples'; do you mean .*LowerAllTuples"):
        run_pass("tuples", parse_ir("graph():\n  return ()\n"))


def test_every_pass_says_what_it_requires_and_guarantees():
    assert len(pass_names()) > 100
    for function in set(PASSES.values()):
        text = __import__(function.__module__, fromlist=["x"]).__doc__
        assert function.__doc__, function
        assert "Guarantees:" in text or "guarantees" in text, function.__module__


def test_tensors_are_numbers_of_tensors():
    graph = after("EraseNumberTypes", "graph(%x : Tensor):\n  %1 : int = prim::Constant[value=1]()\n"
                  "  %y : Tensor = aten::add(%x, %1, %1)\n  return (%y)\n")  # fmt: skip
    assert torch.equal(graph.find_node("prim::Constant")["value"], torch.tensor(1))


LONG = ("EliminateDeadCode", "EliminateCommonSubexpression", "ConstantPropagation", "PeepholeOptimize", "LowerSimpleTuples",
        "RemoveMutation", "CreateAutodiffSubgraphs", "FuseGraph", "Canonicalize", "ConstantPooling")  # fmt: skip


@pytest.mark.parametrize("name", LONG)
def test_chains_of_nodes_may_be_long(name):
    nodes = [f"  %v{index} : Tensor = aten::cos(%v{index - 1})" for index in range(1, 2000)]
    graph = parse_ir("\n".join(["graph(%v0 : Tensor):", *nodes, "  return (%v1999)", ""]))
    run_pass(name, graph)
    held = graph.nodes if len(list(graph.nodes)) > 1 else next(graph.nodes)["Subgraph"].nodes
    assert len(list(held)) == 1999


def test_sizes_of_a_trace_are_calculated_as_ints():
    check(
        "SizeArithmetic",
        """
        graph(%x : Tensor):
          %zero : int = prim::Constant[value=0]()
          %one : int = prim::Constant[value=1]()
          %two : Tensor = prim::Constant[value={2}]()
          %n : int = aten::size(%x, %zero)
          %t : Tensor = prim::NumToTensor(%n)
          %half : Tensor = aten::floor_divide(%t, %two)
          %more : Tensor = aten::add(%half, %t, %one)
          %k : int = aten::Int(%more)
          %s : int[] = prim::ListConstruct(%k)
          %y : Tensor = aten::reshape(%x, %s)
          return (%y, %half)
        """,
        """
        graph(%x : Tensor):
          %zero : int = prim::Constant[value=0]()
          %one : int = prim::Constant[value=1]()
          %two : Tensor = prim::Constant[value={2}]()
          %n : int = aten::size(%x, %zero)
          %t : Tensor = prim::NumToTensor(%n)
          %c : int = prim::Constant[value=2]()
          %i : int = aten::floordiv(%n, %c)
          %half : Tensor = aten::floor_divide(%t, %two)
          %j : int = aten::add(%i, %n)
          %more : Tensor = aten::add(%half, %t, %one)
          %k : int = aten::Int(%more)
          %s : int[] = prim::ListConstruct(%j)
          %y : Tensor = aten::reshape(%x, %s)
          return (%y, %half)
        """,
    )
